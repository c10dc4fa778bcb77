"""Compiles and loads a submission's Triton kernels before it holds the device.

Each input case runs in a fork of this process, on tensors with shapes and no bytes (`fake_cuda`):
the model is constructed and called, and each kernel that would be launched is compiled into the
candidate's cache, in a separate process. Only files in a folder that the submission may write
remain, and a fork can do nothing that the submission could not do at import. A failing fork is
ignored: the real call compiles, and fails there.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kevin_env.candidate import fake_cuda, programs
from kevin_env.candidate.model import LoadedModel
from kevin_env.extension.build import NICENESS

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


def precompile(runtime: LoadedModel, cases: list[dict[str, Any]], seconds: float) -> None:
    """Compiles what the submission launches in any of the cases.

    Args:
        runtime: With the submission loaded and nothing constructed.
        cases: Arguments of the orders `construct` and `stage` for each.
        seconds: For all of them; then every fork is killed.
    """
    with suppress(Exception):  # the calls report it
        if runtime.device.type == "cuda" and has_kernels():
            compile_in_forks(
                runtime, cases, seconds, torch.cuda.get_device_properties(runtime.device)
            )


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
    runtime: LoadedModel, cases: list[dict[str, Any]], seconds: float, properties: Any
) -> None:
    """Runs all cases at once on a device with these properties. Other arguments as `precompile`."""
    at_once = min(len(os.sched_getaffinity(0)), MOST_AT_ONCE)
    reader, writer = os.pipe()
    try:
        with tempfile.TemporaryDirectory(
            dir=Path(runtime.path).parent, ignore_cleanup_errors=True
        ) as folder:
            os.write(writer, bytes(at_once))
            compilations = Compilations(Path(folder), reader, writer)
            functions = [
                partial(_run_case, runtime, case, properties, compilations) for case in cases
            ]
            programs.run_in_forks(functions, seconds, {})
    finally:
        os.close(reader)
        os.close(writer)


class Compilations:
    """Compilations in separate processes; each is done once for all forks.

    Args:
        claims: An empty folder in which forks mark what they compile.
        reader: Of a pipe with one byte per compilation that may start.
        writer: Of that pipe.
    """

    def __init__(self, claims: Path, reader: int, writer: int) -> None:
        self._claims = claims
        self._reader = reader
        self._writer = writer
        self._children: list[int] = []

    def compile_kernel(
        self, source: Any, target: Any = None, options: Any = None, **more: Any
    ) -> object:
        """Starts what `triton.compiler.compile` does; the result cannot be launched."""
        if not _uses_descriptors(source):
            self.begin(_launcher(source), partial(_build_launcher, source, None))
        self.begin(
            f"{source.hash()} {options}", partial(self._compile, source, target, options, more)
        )
        return object()

    def begin(self, name: str, work: Callable[[], object]) -> None:
        """Runs `work` in a process once there is room, unless another fork claimed the name."""
        if not self._claim(name):
            return
        if threading.active_count() > 1:  # a fork would inherit locks that other threads hold
            with suppress(Exception):
                work()
            return
        self._reap(os.WNOHANG)  # tuning starts hundreds, and zombies count as processes
        os.read(self._reader, 1)
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os.write(self._writer, b".")
                os._exit(0)
        self._children.append(pid)

    def finish(self) -> None:
        """Waits for all processes started here."""
        self._reap(0)

    def _reap(self, options: int) -> None:
        running: list[int] = []
        for pid in self._children:
            with suppress(ChildProcessError):
                ended, status = os.waitpid(pid, options)
                if not ended:
                    running.append(pid)
                elif os.WIFSIGNALED(status):  # a crashed compiler does not write its byte
                    os.write(self._writer, b".")
        self._children = running

    def _compile(self, source: Any, target: Any, options: Any, more: dict[str, Any]) -> None:
        from triton.compiler.compiler import compile as compile_now

        kernel = compile_now(source, target=target, options=options, **more)
        form = getattr(kernel.metadata, "tensordesc_meta", None)
        if _uses_descriptors(source) and self._claim(f"{_launcher(source)} {form}"):
            _build_launcher(source, kernel.metadata)

    def _claim(self, name: str) -> bool:
        try:
            (self._claims / hashlib.sha256(name.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def _run_case(
    runtime: LoadedModel, case: dict[str, Any], properties: Any, compilations: Compilations
) -> int:
    """In a fork: constructs the model for a case and calls it once."""
    _silence()
    os.nice(NICENESS)
    runtime.channel.close()  # so that the judge sees when the candidate ends
    try:
        with fake_cuda.imagine(properties, compilations.compile_kernel), torch.no_grad():
            runtime.regions = dict.fromkeys(("weights", "inbox"), fake_cuda.Region(runtime.device))  # type: ignore
            runtime.construct(**case["construct"])
            runtime.stage(**case["stage"])
            runtime.model(*runtime.arguments)
    finally:
        compilations.finish()
    return 0


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
