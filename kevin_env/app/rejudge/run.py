"""Judges the kernels of a run, many at once. Verdicts are recorded, so that a rerun resumes."""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError
from rich.console import Console

from kevin_env import kernelbench
from kevin_env.app.kernelbench_run import Sample, read_samples
from kevin_env.app.screen import progress_of, show
from kevin_env.extract import extract_file
from kevin_env.judge.api import JudgeError, JudgePool, Options, Seconds
from kevin_env.outcome import Frozen, Outcome, printable
from kevin_env.problem import Baseline, Dtype, Problem, ProblemError, load_kernelbench
from kevin_env.recorder import append_lines
from kevin_env.rules import Rules
from kevin_env.settings import Settings
from kevin_env.turn import Verdict, begin_verdict

RECORD = "kevin_verdicts.jsonl"
AT_ONCE = 64
"""Kernels in flight: more than the judges work on, so that none of them idles."""


class Terms(Frozen):
    """The conditions of a verdict. Under others a kernel is judged again."""

    rules: Rules
    glue: float = 0.0
    inputs: Literal["varied", "shipped"]
    baseline: Literal["auto"] | Baseline
    dtype: Dtype | None = None
    backward: bool = False
    hardware: str
    """The model of the device."""

    @classmethod
    def of(cls, settings: Settings, hardware: str) -> Self:
        """The terms of verdicts with these settings."""
        names = ("rules", "glue", "inputs", "baseline", "dtype", "backward")
        return cls(hardware=hardware, **{name: getattr(settings, name) for name in names})


class Key(Frozen):
    """Identifies a verdict: kernel, reference and terms."""

    kernel: str
    """The file's name."""
    code_sha256: str
    problem: str
    problem_sha256: str
    terms: Terms


class Entry(Frozen):
    """One line of the record."""

    key: Key
    outcome: Outcome
    seconds: Seconds = Seconds()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel with its problem and kevin-env's verdict."""

    sample: Sample
    code: str
    problem: Problem | None
    """None if the installed KernelBench does not have it."""
    entry: Entry | None = None
    error: str = ""
    """Why `entry` is None."""


Agreement = Literal[
    "both_accept",
    "both_refuse",
    "only_kernelbench_accepts",
    "only_kevin_env_accepts",
    "no_verdict",
    "not_judged",
]
"""`no_verdict`: KernelBench recorded none. `not_judged`: kevin-env has none, see `Kernel.error`."""
HEADINGS: dict[Agreement, str] = {
    "both_accept": "both accept",
    "both_refuse": "both refuse",
    "only_kernelbench_accepts": "only KernelBench accepts",
    "only_kevin_env_accepts": "only kevin-env accepts",
    "no_verdict": "no KernelBench verdict",
    "not_judged": "not judged",
}
DIFFERENT: tuple[Agreement, ...] = ("only_kernelbench_accepts", "only_kevin_env_accepts")
_BOTH: dict[tuple[bool, bool], Agreement] = {
    (True, True): "both_accept",
    (False, False): "both_refuse",
    (True, False): "only_kernelbench_accepts",
    (False, True): "only_kevin_env_accepts",
}


def agreement_of(kernel: Kernel) -> Agreement:
    """How the two verdicts compare. Accepted means that all outputs were correct."""
    if kernel.entry is None:
        return "not_judged"
    if kernel.sample.verdict is None:
        return "no_verdict"
    return _BOTH[
        kernel.sample.verdict.category == "correct", kernel.entry.outcome.category == "correct"
    ]


def read_run(folder: Path, console: Console) -> list[Kernel]:
    """The kernels of a KernelBench run folder; `console` shows what is left out.

    Raises:
        BadInput: if the folder has no kernels, or one cannot be read.
        ProblemError: if KernelBench is not installed.
    """
    samples = read_samples(folder, lambda line: show(console, line, "yellow"))
    levels = {sample.level for sample in samples} & set(kernelbench.LEVELS)
    problems = {
        (each.level, each.number): each
        for level in sorted(levels)
        for each in load_kernelbench(f"{kernelbench.PREFIX}level{level}")
    }
    kernels = []
    for sample in samples:
        problem = problems.get((sample.level, sample.number))
        missing = f"KernelBench has no problem {sample.number} on level {sample.level} here"
        kernels.append(Kernel(sample, sample.code, problem, error="" if problem else missing))
    return kernels


def rejudge(
    kernels: Sequence[Kernel],
    out: Path,
    pool: JudgePool,
    options: Options,
    terms: Terms,
    console: Console,
) -> list[Kernel]:
    """Judges the kernels without a recorded verdict; returns all of them in the same order.

    Each verdict is recorded at once, in the folder `out`. If the judge or a reference fails, the
    kernel's `error` says so, and the next start judges it again. `options` must match `terms`.

    Raises:
        OSError: if `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    record = out / RECORD
    append_lines(record, [])
    ended: dict[Path, Kernel] = {}
    with progress_of(console) as progress:
        task = progress.add_task("", total=len(kernels))
        for kernel in _ended(kernels, pool, options, terms, record):
            ended[kernel.sample.file] = kernel
            line = f"{kernel.sample.file.name}: {_ending(kernel)}"
            progress.update(task, advance=1, description=line)
            if not console.is_terminal:
                show(console, line)
    return [ended[kernel.sample.file] for kernel in kernels]


def _ended(
    kernels: Sequence[Kernel], pool: JudgePool, options: Options, terms: Terms, record: Path
) -> Iterator[Kernel]:
    """All kernels: first those that need no judge, then the others as they finish."""
    known = _recorded(record)
    unjudged: list[tuple[Kernel, Problem, Key]] = []
    for kernel in kernels:
        if kernel.problem is None:
            yield kernel
        elif (key := _key(kernel, kernel.problem, terms)) in known:
            yield replace(kernel, entry=known[key])
        else:
            unjudged.append((kernel, kernel.problem, key))
    for kernel in _judged(unjudged, pool, options):
        if kernel.entry is not None:
            append_lines(record, [kernel.entry.model_dump_json()])
        yield kernel


def _recorded(record: Path) -> dict[Key, Entry]:
    """The recorded verdicts, without partially written lines."""
    known: dict[Key, Entry] = {}
    for line in record.read_bytes().split(b"\n"):
        with suppress(ValidationError):  # the kernel is judged again
            entry = Entry.model_validate_json(line)
            known[entry.key] = entry
    return known


def _judged(
    unjudged: Sequence[tuple[Kernel, Problem, Key]], pool: JudgePool, options: Options
) -> Iterator[Kernel]:
    """The kernels in the order in which they finish."""
    waiting, under_way = deque(unjudged), dict[Future[Verdict], tuple[Kernel, Key]]()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < AT_ONCE:
                kernel, problem, key = waiting.popleft()
                submission = extract_file(kernel.code)
                under_way[begin_verdict(submission, problem, options, pool)] = kernel, key
            wait(under_way, return_when=FIRST_COMPLETED)
            for future in [each for each in under_way if each.done()]:
                yield _with_verdict(*under_way.pop(future), future)
    finally:
        for future in under_way:
            future.cancel()


def _with_verdict(kernel: Kernel, key: Key, future: Future[Verdict]) -> Kernel:
    try:
        verdict = future.result()
    except (JudgeError, ProblemError) as error:
        return replace(kernel, error=printable(str(error)))
    judgement = verdict.judgement
    if judgement is None:
        return replace(kernel, entry=Entry(key=key, outcome=verdict.outcome))
    entry = Entry(
        key=key, outcome=verdict.outcome, seconds=judgement.seconds, flags=judgement.flags
    )
    return replace(kernel, entry=entry)


def _key(kernel: Kernel, problem: Problem, terms: Terms) -> Key:
    return Key(
        kernel=kernel.sample.file.name,
        code_sha256=hashlib.sha256(kernel.code.encode("utf-8", "replace")).hexdigest(),
        problem=problem.id,
        problem_sha256=problem.sha256,
        terms=terms,
    )


def _ending(kernel: Kernel) -> str:
    ours = kernel.entry.outcome if kernel.entry else None
    verdict = f"{ours.category}/{ours.kind}" if ours else kernel.error
    return f"{verdict} ({HEADINGS[agreement_of(kernel)]})"
