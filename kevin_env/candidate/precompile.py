"""Compiles and loads a submission's Triton kernels before it holds the device, and records it.

Each input case runs in a fork of this process, on tensors with shapes and no bytes (`fake_cuda`):
the model is constructed and called twice, and each kernel that would be launched is compiled into
the candidate's cache, in a separate process. What was launched is recorded (`tape`), so that it can
be played without this process (`replay`). A fork can do nothing that the submission could not do at
import. A failing fork is ignored: the real call compiles, and fails there.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch

from kevin_env.candidate import failure, fake_cuda, programs
from kevin_env.candidate.model import LoadedModel
from kevin_env.candidate.tape import Tape
from kevin_env.candidate.wire import LIMIT
from kevin_env.extension.build import NICENESS

Json = dict[str, Any]
MOST_LOADED = 64
"""Most kernels that are loaded ahead; a tuned kernel may have hundreds of configurations."""
TUNING = 5, 20
"""Milliseconds for which Triton's autotuner warms up and measures each configuration.

By default it takes 25 and 100, and all others wait for it.
"""
MOST_AT_ONCE = 16
"""Most kernels compiled concurrently, for any number of cores: each takes tens of MB."""
LAUNCHER_OPTIMIZATION = "-O1"
"""For the C code that launches kernels; with Triton's -O3, gcc takes twice as long."""


def precompile(
    runtime: LoadedModel, cases: dict[str, Json], properties: Json, seconds: float
) -> Json:
    """Compiles what the submission launches in any of the cases, and records its calls.

    Args:
        runtime: With the submission loaded and nothing constructed.
        cases: Arguments of the orders `construct` and `stage` for each, by name.
        properties: Of the device, as `torch.cuda.get_device_properties` returns them.
        seconds: For all of them; then every fork is killed.

    Returns:
        `cases` and `kernels`, as `kevin_env.candidate.replay` plays them; `failure`, if a kernel
        does not compile in the first case; or `unrecorded`: why there is no recording.
    """
    try:
        if runtime.device.type == "cuda" and has_kernels():
            return compile_in_forks(runtime, cases, seconds, SimpleNamespace(**properties))
    except Exception as error:  # the calls report it
        return {"unrecorded": type(error).__name__}
    return {"unrecorded": "no kernel of Triton"}


def has_kernels() -> bool:
    """Whether the submission, or a module it imported first, has a Triton kernel as a global."""
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None:
        return False
    names = list(sys.modules)
    modules = [sys.modules.get(name) for name in names[names.index("submission") :]]
    values = [
        value for module in modules for value in list(getattr(module, "__dict__", {}).values())
    ]
    return any(issubclass(type(value), jit.KernelInterface) for value in values)


def prepare_kernels() -> None:
    """Loads what was compiled onto the device of this process; its first calls then find it there.

    Loading waits for a lock of the driver, which processes that create or end contexts hold for
    tenths of a second. Autotuners take less time from then on.
    """
    with suppress(Exception):  # the calls report it
        if "triton.runtime.jit" not in sys.modules:
            return
        _shorten_tuning()
        binaries = sorted(Path(os.environ["TRITON_CACHE_DIR"]).glob("*/*.cubin"))
        if binaries:  # most submissions have none, and need no driver of Triton
            _load(binaries[:MOST_LOADED])


def _shorten_tuning() -> None:
    from triton.testing import do_bench

    do_bench.__defaults__ = (*TUNING, *(do_bench.__defaults__ or ())[2:])


def _load(binaries: list[Path]) -> None:
    """Loads binaries, which Triton then gets in place of loading them again."""
    from triton.runtime import driver

    active: Any = driver.active
    utils, device = active.utils, active.get_current_device()
    load, loaded = utils.load_binary, dict[tuple[str, bytes, int, int], Any]()
    for binary in binaries:
        with suppress(Exception):
            about = json.loads(binary.with_suffix(".json").read_bytes())
            given = about["name"], binary.read_bytes(), about["shared"], device
            loaded[given] = load(*given)

    def load_once(*given: Any) -> Any:
        return loaded.get(given) or load(*given)

    utils.load_binary = load_once


def compile_in_forks(
    runtime: LoadedModel, cases: dict[str, Json], seconds: float, properties: Any
) -> Json:
    """Runs all cases at once on a device with these properties. As `precompile` otherwise."""
    at_once = min(len(os.sched_getaffinity(0)), MOST_AT_ONCE)
    reader, writer = os.pipe()
    try:
        with tempfile.TemporaryDirectory(
            dir=Path(runtime.path).parent, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            os.write(writer, bytes(at_once))
            files = [folder / f"case{number}" for number in range(len(cases))]
            functions = [
                partial(_run_case, runtime, case, properties, folder, (reader, writer), file)
                for case, file in zip(cases.values(), files, strict=True)
            ]
            programs.run_in_forks(functions, seconds, {})
            return _collected(folder, dict(zip(cases, files, strict=True)))
    finally:
        os.close(reader)
        os.close(writer)


def _collected(folder: Path, files: dict[str, Path]) -> Json:
    """The recordings of all cases, with the kernels that they launch."""
    cases, kernels = dict[str, Json](), dict[str, Json]()
    for name, file in files.items():
        case: Json = json.loads(file.read_bytes()) if file.exists() else {"unrecorded": "it failed"}
        if "failure" in case and cases:
            return {"unrecorded": "a kernel that does not compile"}
        if "failure" in case or "unrecorded" in case:
            return case
        for call in (case["first"], case["later"]):
            if why := _without_missing(call["steps"], folder, kernels):
                return {"unrecorded": why}
        cases[name] = case
    recording = {"cases": cases, "kernels": kernels}
    return recording if len(json.dumps(recording)) < LIMIT // 2 else {"unrecorded": "its size"}


def _without_missing(steps: list[Json], folder: Path, kernels: dict[str, Json]) -> str:
    """Drops options whose kernels have not been compiled; why others are missing, if they are."""
    for step in steps:
        if "choice" in step:
            step["options"] = [
                each for each in step["options"] if not _without_missing(each, folder, kernels)
            ]
            if not step["options"]:
                return "no configuration of a tuned kernel can be launched"
        if (name := step.get("kernel")) and name not in kernels:
            file = folder / f"{name}.kernel"  # as `Compilations` writes it
            about = json.loads(file.read_bytes()) if file.exists() else {}
            if "cubin" not in about:
                return about.get("unrecorded", "a kernel that does not compile")
            kernels[name] = about
    return ""


class Pending:
    """A kernel that is being compiled. Its launches are recorded.

    Args:
        name: Of the compilation.
        source: As Triton has it.
        tape: For its launches.
        require: Raises if it is known not to compile.
    """

    function = packed_metadata = None

    def __init__(
        self, name: str, source: Any, tape: Tape, require: Callable[[], None]
    ) -> None:  # fmt: skip
        self._name, self._tape, self._require = name, tape, require
        self._signature = list(source.signature.values())

    def launch_metadata(self, *_: Any) -> None:
        """Of interest to profilers only."""

    def run(self, x: int, y: int, z: int, *more: Any) -> None:
        """Launches it, with the arguments that Triton gives."""
        self._require()
        self._tape.launch(self._name, (x, y, z), self._signature, more[-len(self._signature) :])


class Compilations:
    """Compilations in separate processes; each is done once for all forks.

    Args:
        claims: An empty folder in which forks mark what they compile, and put what is compiled.
        reader: Of a pipe with one byte per compilation that may start.
        writer: Of that pipe.
        tape: For launches of the kernels.

    Attributes:
        eager: Whether launches raise the errors of the compiler.
    """

    def __init__(self, claims: Path, reader: int, writer: int, tape: Tape) -> None:
        self._claims = claims
        self._reader = reader
        self._writer = writer
        self._tape = tape
        self.eager = False
        self._children = dict[int, str]()
        self._sources = list[Any]()
        self._asked = dict[str, Callable[[], object]]()

    def compile_kernel(
        self, source: Any, target: Any = None, options: Any = None, **more: Any
    ) -> Pending:
        """Starts what `triton.compiler.compile` does."""
        if _uses_descriptors(source):
            self._tape.refuse("tensor descriptors of the host")
        else:
            self._sources.append(source)
        name = hashlib.sha256(f"{source.hash()} {options}".encode()).hexdigest()
        self._asked[name] = partial(self._compile, name, source, target, options, more)
        self.begin(name, self._asked[name])
        return Pending(name, source, self._tape, partial(self._require, name))

    def failed(self) -> bool:
        """Whether a kernel does not compile. Waits for those that other forks compile."""
        self.finish()
        files = [(self._file(name), self._file(name, ".failed")) for name in self._asked]
        while not all(done.exists() or failed.exists() for done, failed in files):
            time.sleep(programs.STEP)
        return any(failed.exists() for _, failed in files)

    def _require(self, name: str) -> None:
        if self.eager and not self._file(name).exists():
            self._asked[name]()

    def _file(self, name: str, suffix: str = ".kernel") -> Path:
        return self._claims / f"{name}{suffix}"

    def build_launchers(self) -> None:
        """Builds what launches the kernels in a process of the submission's own."""
        for source in self._sources:
            self.begin(_launcher(source), partial(_build_launcher, source, None))

    def begin(self, name: str, work: Callable[[], object]) -> None:
        """Runs `work` in a process once there is room, unless another fork claimed the name."""
        if not self._claim(name):
            return
        if threading.active_count() > 1:  # a fork would inherit locks that other threads hold
            try:
                work()
            except Exception:
                self._file(name, ".failed").touch()
            return
        self._reap(os.WNOHANG)  # tuning starts hundreds, and zombies count as processes
        os.read(self._reader, 1)
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException:
                self._file(name, ".failed").touch()
            finally:
                os.write(self._writer, b".")
                os._exit(0)
        self._children[pid] = name

    def finish(self) -> None:
        """Waits for all processes started here."""
        self._reap(0)

    def _reap(self, options: int) -> None:
        running = dict[int, str]()
        for pid, name in self._children.items():
            try:
                ended, status = os.waitpid(pid, options)
            except ChildProcessError:  # the submission ignores SIGCHLD
                ended, status = pid, 0
            if not ended:
                running[pid] = name
            elif os.WIFSIGNALED(status):  # a crashed compiler does not write its byte
                self._file(name, ".failed").touch()
                os.write(self._writer, b".")
        self._children = running

    def _compile(self, name: str, source: Any, target: Any, options: Any, more: Json) -> None:
        from triton.compiler.compiler import compile as compile_now

        kernel = compile_now(source, target=target, options=options, **more)
        file = self._claims / f"{name}.part"
        file.write_text(json.dumps(_described(kernel)))
        file.rename(self._file(name))
        form = getattr(kernel.metadata, "tensordesc_meta", None)
        if _uses_descriptors(source) and self._claim(f"{_launcher(source)} {form}"):
            _build_launcher(source, kernel.metadata)

    def _claim(self, name: str) -> bool:
        try:
            (self._claims / hashlib.sha256(name.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def _described(kernel: Any) -> Json:
    """What is needed to launch a compiled kernel."""
    from triton.runtime import driver

    about, active = kernel.metadata, cast(Any, driver.active)
    most = active.utils.get_device_properties(0).get("max_shared_mem", 0)
    if most and about.shared > most:
        return {"unrecorded": "a kernel that needs too much shared memory"}
    if about.num_ctas != 1 or about.launch_cooperative_grid or about.launch_pdl:
        return {"unrecorded": "clusters, cooperative or dependent launches"}
    scratch = [getattr(about, f"{kind}_scratch_size", 0) or 0 for kind in ("global", "profile")]
    return {
        "name": about.name, "shared": about.shared, "num_warps": about.num_warps,
        "scratch": scratch, "cubin": base64.b64encode(kernel.asm["cubin"]).decode(),
    }  # fmt: skip


def _run_case(
    runtime: LoadedModel, case: Json, properties: Any, folder: Path, pipe: tuple[int, int],
    file: Path,
) -> int:  # fmt: skip
    """In a fork: constructs the model for a case, and records its first calls."""
    _silence()
    os.nice(NICENESS)
    runtime.channel.close()  # so that the judge sees when the candidate ends
    tape = Tape()
    compilations = Compilations(folder, *pipe, tape)
    answer = dict[str, Any]()
    try:
        with fake_cuda.imagine(properties, compilations.compile_kernel, tape), torch.no_grad():
            answer = _recorded(runtime, case, tape)
            if not tape.refused and compilations.failed():  # its code may handle that
                compilations.eager = True
                tape.restart()
                answer = _recorded(runtime, case, tape)
    except Exception as error:
        about = failure.describe(error, runtime.path, None)
        if compilations.eager and about["kind"] == "jit":
            answer = {"failure": about}
        else:  # the calls report it
            tape.refuse(f"{type(error).__name__} in the code")
    if tape.refused:
        compilations.build_launchers()
        answer = {"unrecorded": tape.refused}
    compilations.finish()
    file.write_text(json.dumps(answer))
    return 0


def _recorded(runtime: LoadedModel, case: Json, tape: Tape) -> Json:
    regions: Any = {
        name: fake_cuda.Region(name, runtime.device, tape) for name in ("weights", "inbox")
    }
    runtime.regions = regions
    with tape:
        with tape.part() as prepared:
            paired = runtime.construct(**case["construct"])["paired"]
            runtime.stage(**case["stage"])
        recorder, runtime.recorder = runtime.recorder, None
        with recorder.watch(runtime.model) if recorder else nullcontext():
            first = tape.call(runtime.model, runtime.arguments)
        later = tape.call(runtime.model, runtime.arguments)
    record = recorder.record() if recorder else None
    recorded = {
        "construct": {name: case["construct"][name] for name in ("init", "tensors", "state")},
        "stage": {name: case["stage"][name] for name in ("inputs", "specs")},
        "paired": paired, "record": record,
    }  # fmt: skip
    return tape.case(prepared, first, later, **recorded)


def _launcher(source: Any) -> str:
    """A name for the C code that launches kernels of this signature."""
    return f"launcher {list(source.signature.values())}"


def _uses_descriptors(source: Any) -> bool:
    return "tensordesc" in _launcher(source)


def _build_launcher(source: Any, metadata: Any) -> None:
    """Compiles the C launcher of a kernel, in versions of Triton that have one per signature.

    Only launchers for tensor descriptors depend on `metadata`; others compile in parallel with the
    kernel. Changes how this process starts compilers from then on.
    """
    from triton.runtime import driver

    # Triton uses it to start the compiler
    subprocess.check_call = partial(_with_optimization, subprocess.check_call)
    active: Any = driver.active
    active.launcher_cls(source, metadata)


def _with_optimization(start: Callable[..., int], command: list[str], **how: Any) -> int:
    return start([*command, LAUNCHER_OPTIMIZATION], **how)


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)
    os.close(null)
