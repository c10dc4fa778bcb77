"""Compiles and loads a submission's Triton kernels before it holds the device, and records it.

Each input case runs in a fork of this process, on tensors with shapes and no bytes (`fake_cuda`):
the model is constructed and called twice, and each kernel that would be launched is compiled into
the candidate's cache, in a separate process. What was launched is recorded (`tape`), so that it can
be played without this process (`replay`). A fork can do nothing that the submission could not do at
import. A failing fork is ignored: the real call compiles, and fails there.
"""

import json
import os
import sys
import tempfile
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from kevin_env.candidate import failure, fake_cuda, programs
from kevin_env.candidate.compilations import KERNEL, Compilations
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
        if runtime.device.type == "cuda" and (has_kernels() or fake_cuda.has_compilers()):
            return compile_in_forks(runtime, cases, seconds, SimpleNamespace(**properties))
    except Exception as error:  # the calls report it
        return {"unrecorded": type(error).__name__}
    return {"unrecorded": "no kernel that can be recorded"}


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
        for steps in (case["prepare"], case["first"]["steps"], case["later"]["steps"]):
            if why := _without_missing(steps, folder, kernels):
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
            file = folder / f"{name}{KERNEL}"
            about = json.loads(file.read_bytes()) if file.exists() else {}
            if "cubin" not in about:
                return about.get("unrecorded", "a kernel that does not compile")
            kernels[name] = about
    return ""


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


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)
    os.close(null)
