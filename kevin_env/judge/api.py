"""The interface between client and judge: frozen values, and the protocol of a pool."""

import math
import os
import re
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from kevin_env.languages import Name
from kevin_env.outcome import Frozen, Outcome, Printable, Profile, ProfileKind
from kevin_env.problem import Baseline, Dtype, Problem
from kevin_env.rules import Rules

Stage = Literal["queue", "build", "load", "verify", "time", "profile"]
"""The stages of a judgement in order, each reported when it begins; `profile` on request only."""
Level = Literal["enforced", "missing"]
OnStage = Callable[[Stage], None]


class JudgeError(RuntimeError):
    """The judge itself failed. Raised to the caller, never scored, never shown to a model."""


Written = Name | Literal["python"]
"""The language of a file; `python` if no kernels were found."""


class Submission(Frozen):
    """A Python file that defines `ModelNew`, as text."""

    code: str
    language: Written = "python"
    """The language of its kernels, found from its imports and sources; for display only."""


CALL_SECONDS, CALL_MULTIPLE = {"cpu": 2.0, "cuda": 0.5}, 200.0
"""Seconds of a call, by device, or this multiple of the reference's time if that is longer."""
FIRST_SECONDS = 30.0
"""More seconds for constructing `ModelNew` and each case's first call, to compile and tune."""
INTERPRETED_SECONDS = 120.0
"""The same for constructing `ModelNew` and for each call where Triton's interpreter runs."""

MOST_BUILD_SECONDS, MOST_CALL_SECONDS = 3600.0, 1200.0
"""The longest limits that may be requested."""


class Limits(Frozen):
    """Seconds after which a submission is ended as hung.

    On a CPU they are of its own processor time, and one that sleeps has up to ten times as long.
    """

    build: float
    """Importing it, compilers included."""
    first: float
    """Constructing `ModelNew`, and its first call in each case."""
    call: float
    """Every later call."""

    @property
    def interpreted(self) -> "Limits":
        """The same where Triton's interpreter runs the kernels; see `Options.limits`."""
        if self.first == self.call:  # a limit that was requested
            return self
        first = self.call + INTERPRETED_SECONDS
        return Limits(build=self.build, first=first, call=first)


class Options(Frozen):
    """How a submission is to be judged."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, several as `cuda:0,1`, or `auto`: a GPU if there is one."""
    language: str = ""
    """The one that is asked for, whose package is imported while a problem is described."""
    baseline: Literal["auto"] | Baseline = "eager"
    """What speedups are relative to; see `baseline_of`. A kernel is verified once per device."""
    rules: Rules = "open"
    """What a call of a right submission may do (`kevin_env.rules.recorded`).

    What the code itself shows has been checked before, and is not the judge's business.
    """
    glue: float = Field(default=0.0, ge=0, lt=1)
    """Under the rules `kernel`, torch may compute on this share of the largest tensor."""
    inputs: Literal["varied", "shipped"] = "varied"
    """`varied`: several distributions besides the problem's. `shipped`: only its `get_inputs`."""
    require_sandbox: bool = False
    """Raise JudgeError if a protection of the sandbox is missing on this machine."""
    profile: ProfileKind = "none"
    """What to profile after a right answer was timed.

    `kernels`: operators and kernels of a call, as the submission's process reports them. `ncu`: a
    digest of Nsight Compute as well.
    """
    sanitize: bool = False
    """Whether compute-sanitizer looks for the cause of illegal accesses and changing outputs."""
    secret: str | None = None
    """128 bits as hex from which all inputs are drawn. None: the judge draws it.

    Given only to judge a record again.
    """
    headers: Literal["short", "full"] = "short"
    """Compile torch extensions with our `short` headers first, or only with torch's own: `full`."""
    build_timeout: float = Field(default=300.0, gt=0, le=MOST_BUILD_SECONDS)
    """Seconds for importing the submission, compilers included."""
    call_timeout: float | None = Field(default=None, gt=0, le=MOST_CALL_SECONDS)
    """Seconds for constructing the model and for each call; None: derived from the reference."""
    dtype: Dtype | None = None
    """What floating-point inputs and weights are converted to, for reference and submission."""
    backward: bool = False
    """Whether a call is a forward and a backward pass, and gradients are compared."""
    timing_precision: float | None = Field(default=None, gt=0, lt=1)
    """Relative half-width of the speedup's interval at which it is precise; None: the pace's."""
    retry_noisy: bool = False
    """Whether a time with a wide interval is measured again."""
    replay: Literal["auto", "never"] = "auto"
    """Whether recorded launches of a submission are played, on a GPU, in place of its process."""

    def limits(
        self, reference: float = 0.0, interpreted: bool = False, device: str = "cpu"
    ) -> Limits:
        """The limits if a call of the reference takes `reference` seconds.

        `device` is its kind. With `interpreted`, for a submission that Triton's interpreter runs:
        each of its calls has as long as a first one.
        """
        if self.call_timeout is not None:
            return Limits(build=self.build_timeout, first=self.call_timeout, call=self.call_timeout)
        call = max(CALL_SECONDS[device], CALL_MULTIPLE * reference)
        digit = 10.0 ** math.floor(math.log10(call))  # rounded up: one call of it was timed
        call = math.ceil(call / digit) * digit
        first = FIRST_SECONDS + call
        limits = Limits(build=self.build_timeout, first=first, call=call)
        return limits.interpreted if interpreted else limits


class Sandbox(Frozen):
    """Which protections held while the submission ran."""

    network: Level
    filesystem: Level
    limits: Level
    processes: Level


class Seconds(Frozen):
    """Seconds of each stage of one judgement; `queue` includes preparing a new reference."""

    queue: float = 0.0
    build: float = 0.0
    load: float = 0.0
    verify: float = 0.0
    time: float = 0.0
    profile: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all stages."""
        return self.queue + self.build + self.load + self.verify + self.time + self.profile


class DeviceInfo(Frozen):
    """The device and its software, in bytes and bytes per second; 0 where unknown."""

    device: str
    """`cpu` or `cuda:0`."""
    name: str
    capability: str = ""
    """Compute capability such as `9.0`; empty on a CPU."""
    processors: int = 0
    """Streaming multiprocessors, or cores."""
    memory: int = 0
    shared_memory: int = 0
    """Largest shared memory of one block, opted in."""
    l2: int = 0
    bandwidth: float = 0.0
    """Theoretical device memory bandwidth."""
    sm_shared_memory: int = 0
    """Of a streaming multiprocessor; one block gets at most `shared_memory` of it."""
    sm_registers: int = 0
    """32-bit registers of a streaming multiprocessor."""
    peaks: dict[str, float] = Field(default_factory=dict[str, float])
    """Theoretical FLOP/s at the highest clock, dense, by arithmetic such as `BF16 tensor cores`."""
    instructions: str = ""
    """The vector instructions of a CPU, such as `AVX2, FMA`."""
    caches: tuple[int, ...] = ()
    """Data caches of a CPU from L1 up."""
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    """Of torch, triton, cuda, driver, python, compiler."""


class InputFacts(Frozen):
    """One input of a case, for the prompt."""

    name: str
    """The parameter's name in `forward`."""
    dtype: str
    """`float32`, `int64`, ..., or the Python type of a value that is not a tensor."""
    shape: tuple[int, ...] | None = None
    low: int | None = None
    high: int | None = None
    """Smallest and largest value of a tensor of integers; None where draws differ."""
    structure: tuple[str, ...] = ()
    """What holds in every distribution, such as `lower triangular`, and unusual strides."""


class CaseFacts(Frozen):
    """One input case."""

    name: str
    overrides: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Module constants that have another value in this case."""
    inputs: tuple[InputFacts, ...]
    outputs: tuple[str, ...]
    """Each output as `float32[128, 1024]`."""


class Facts(Frozen):
    """What a judge tells the prompt about a problem on its device: no check is a surprise."""

    device: DeviceInfo
    cases: tuple[CaseFacts, ...]
    """The timed case first."""
    distributions: tuple[str, ...]
    """One sentence each: which values the inputs take."""
    tolerance: str
    """One sentence: how outputs are compared."""
    precision: str
    """`ieee` or `tf32`: what float32 arithmetic may be."""
    weights: tuple[str, ...]
    """Each parameter that is copied from the reference, as `name: float32[128]`."""
    buffers: tuple[str, ...] = ()
    """Each buffer, likewise; a submission need not have it."""
    limits: Limits = Options().limits()
    """For the timed case, whose reference is timed once."""


Run = Literal["replayed", "own process"]
"""Whether a submission's recorded launches were played, or it ran in a process of its own."""


class Judgement(Frozen):
    """The verdict on one submission, and how it was reached."""

    outcome: Outcome
    seconds: Seconds
    device: DeviceInfo
    sandbox: Sandbox
    secret: str
    """What every input was drawn from; recorded only once the submission has ended."""
    log: Printable = ""
    """What the submission wrote to stdout and stderr, capped."""
    flags: tuple[str, ...] = ()
    """Observations for a person to look at; they do not affect the verdict."""
    profile: Profile | None = None
    """What was profiled on request; None if nothing was."""
    run: Run = "own process"
    unrecorded: Printable = ""
    """Why its launches could not be recorded, as its process says; empty if that was not tried."""


@runtime_checkable
class JudgePool(Protocol):
    """Judges submissions, many at once. Its owner closes it; closing twice is allowed."""

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        """The facts of a problem on a device.

        Raises (from the future):
            ProblemError: if the reference fails.
            JudgeError: if the judge fails or the device does not exist.
        """
        ...

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        """Starts judging; `on_stage` is called in another thread when a stage begins.

        Cancelling the future ends the judgement if possible. Errors as `describe`.
        """
        ...

    def close(self) -> None:
        """Ends every process of the pool."""
        ...


class Pace(Frozen):
    """How thoroughly a judge screens and times; `PACES` has the defaults for each kind of device.

    With fewer calls, verdicts come sooner, miss more wrong answers, and times vary more. A recorded
    turn has the same inputs again only at the pace at which it was judged.
    """

    pairs: tuple[int, int]
    """The fewest and the most pairs of measurements: calls on a CPU, chains of calls on a GPU."""
    seconds: float
    """No further pair begins after this time, eight times as long if a precision is requested."""
    precision: float = 0.02
    """No further pair is needed once the speedup's interval is this narrow on either side."""
    warm_ups: int = 2
    """Calls of the reference and of the null model before the first that is timed."""
    sets: int = 5
    """Input sets on which the timed case is screened: each distribution once, then any of them.

    May be fewer than there are distributions if other cases use all of them; timed inputs include
    some of each as well.
    """
    sets_of_others: int = 5
    """Input sets of every other case, each of another distribution.

    With fewer than there are distributions, an error that only shows for one shape and
    distribution, such as a softmax that overflows, often passes.
    """


PACES = {
    "cpu": Pace(pairs=(21, 75), seconds=1.0, precision=0.1),
    "cuda": Pace(pairs=(1, 8), seconds=0.25, warm_ups=1, sets=2),
}
"""By kind of device."""
DEVICES = "auto|cpu|cuda(:[0-9]{1,3}(,[0-9]{1,3})*)?"
"""A choice of devices, as a regular expression."""


def device_names(choice: str) -> tuple[str, ...]:
    """The devices of a choice: `auto` is the first GPU if there is one, `cuda:0,1` are two.

    Raises:
        JudgeError: if it is no choice of devices.
    """
    if not re.fullmatch(DEVICES, choice):
        raise JudgeError(f"unknown device {choice[:40]!r}: use auto, cpu, cuda, cuda:1 or cuda:0,1")
    if choice == "auto":
        return ("cuda:0",) if gpu_present() else ("cpu",)
    kind, _, numbers = choice.partition(":")
    if kind == "cpu":
        return ("cpu",)
    return tuple(dict.fromkeys(f"cuda:{int(number)}" for number in (numbers or "0").split(",")))


def devices_here(choice: str) -> tuple[str, ...]:
    """As `device_names`, of this machine.

    Raises:
        JudgeError: also if this machine certainly lacks one, so that no judge is started for it.
    """
    names, most = device_names(choice), most_gpus()
    for name in names:
        if most is not None and name != "cpu" and int(name.removeprefix("cuda:")) >= most:
            devices = f"{most} CUDA device{'s' * (most != 1)} found"
            raise JudgeError(f"no device {name} here: {devices}; choose the device cpu")
    return names


def most_gpus() -> int | None:
    """How many GPUs CUDA can show to this process at most, found without CUDA; None if unknown.

    The driver need not list what CUDA shows with MIG, in WSL, on Tegra, and before it is loaded.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible in ("", "-1"):
        return 0
    nodes, proc = _files("/dev", "nvidia[0-9]*"), Path("/proc/driver/nvidia")
    found = max(len(nodes), len(_files(proc / "gpus", "*")))
    mig = _files(proc / "capabilities", "gpu*/mig/gi*")
    counts = [found] if not mig and (found or not _maybe_gpu()) else []
    counts += [] if visible is None else [visible.count(",") + 1]
    return min(counts, default=None)


def gpu_present() -> bool:
    """Whether the kernel shows an NVIDIA device that may be used, found without CUDA."""
    return most_gpus() != 0 and bool(_files("/dev", "nvidia[0-9]*"))


def _maybe_gpu() -> bool:
    """Whether there may be a GPU although the driver lists none."""
    vendors = _files("/sys/bus/pci/devices", "*/vendor")
    return bool(_files("/dev", "dxg") or _files("/dev", "nvhost*")) or any(
        each.read_text().strip() == "0x10de" for each in vendors
    )


def _files(folder: str | Path, pattern: str) -> list[Path]:
    return list(Path(folder).glob(pattern))
