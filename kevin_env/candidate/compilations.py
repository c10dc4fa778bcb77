"""Compilations of Triton kernels in processes of their own, while a submission is recorded."""

import base64
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from kevin_env.candidate import programs
from kevin_env.candidate.tape import Tape

Json = dict[str, Any]
KERNEL = ".kernel"
"""Ending of a file with a compiled kernel, whose name is that of its compilation."""
LAUNCHER_OPTIMIZATION = "-O1"
"""For the C code that launches kernels; with Triton's -O3, gcc takes twice as long."""


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

    def _file(self, name: str, suffix: str = KERNEL) -> Path:
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
        file = self._claims / f"{name}.{os.getpid()}.part"  # two may compile it: `_require`
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
