"""The submission as a program of its own, for tools that start one.

In its folder the judge writes `job.json` and, of all but loading, `call.json`, with weights and
inputs in files beside them. The model is constructed, called until it is warm, and then called once
between the marks that profilers look for. A program that holds stops before it reads the first,
before it reads the second, and before the last call.
"""

import importlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from kevin_env.candidate import commands, tree
from kevin_env.candidate.programs import hold
from kevin_env.candidate.region import Region
from kevin_env.candidate.runtime import Runtime
from kevin_env.candidate.wire import Channel

DIFFERENT = 10
"""Exit code that says that the same inputs gave different outputs."""
WARM_UPS = 2
COMPILE_SECONDS = 20.0
"""For Triton's kernels, where nothing else is done."""


def replay(
    job: dict[str, Any], folder: Path, channel: Channel | None = None, holding: bool = False
) -> int:
    """Does a job; the exit code. Errors of the submission pass through.

    Args:
        job: `device`, `threads`, `load` as the order of `Runtime`, and `step`: `load` does no more
            than that, `compile` makes what the calls would else compile, `compare` looks if outputs
            change from call to call.
        folder: Of `call.json`: `construct` and `stage` as the orders, and `regions` with the file
            of each.
        channel: To the judge, in a copy of the candidate.
        holding: Whether it waits at `loaded` and `warm` for the word to go on.
    """
    runtime = Runtime(channel)  # type: ignore[arg-type]  # a program of its own has no judge to talk to
    runtime.load(**job["load"])
    if job["step"] == "load":
        return 0
    if holding:
        hold(folder, "loaded")
    call = json.loads((folder / "call.json").read_text())
    if job["step"] == "compile":
        runtime.device = torch.device(job["device"])
        runtime.precompile([call], COMPILE_SECONDS)
        return 0
    _construct(runtime, job, call)
    outputs = [_call(runtime) for _ in range(WARM_UPS)]
    if holding:
        hold(folder, "warm")
    _mark(runtime.device, True)
    outputs.append(_call(runtime))
    _mark(runtime.device, False)
    return DIFFERENT if job["step"] == "compare" and _differ(outputs) else 0


def _construct(runtime: Runtime, job: dict[str, Any], call: dict[str, Any]) -> None:
    runtime.prepare(job["device"], job["threads"])
    for name, path in call["regions"].items():  # mapped, not read: a private view of the file
        data = torch.from_file(path, size=Path(path).stat().st_size, dtype=torch.uint8)
        runtime.regions[name] = Region(data.to(runtime.device))
    runtime.construct(**call["construct"])
    runtime.stage(**call["stage"])


def _call(runtime: Runtime) -> list[torch.Tensor]:
    with torch.no_grad():
        _, tensors = tree.take_apart(runtime.model(*runtime.arguments))
    runtime.synchronize()
    return [tensor.clone() for tensor in tensors]


def _differ(outputs: list[list[torch.Tensor]]) -> bool:
    """Whether any call gave other bytes than the first."""
    return any(not _same(each, outputs[0]) for each in outputs[1:])


def _same(outputs: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    if len(outputs) != len(others):
        return False
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(outputs, others, strict=True)
    )


def _mark(device: torch.device, begin: bool) -> None:
    if device.type == "cuda":
        library: Any = torch.cuda.cudart()  # what it answers does not matter: nobody may be looking
        (library.cudaProfilerStart if begin else library.cudaProfilerStop)()


def main() -> None:
    """Does the job in the folder that is the last argument but one; the last is `hold`, or `run` to
    stop nowhere.
    """
    folder, holding = Path(sys.argv[-2]), sys.argv[-1] == "hold"
    if holding:
        with suppress(ImportError):
            importlib.import_module("triton.language")  # before anybody waits
        hold(folder, "ready")
    code = replay(json.loads((folder / "job.json").read_text()), folder, holding=holding)
    if holding:  # others wait for the device: no time for what an interpreter, and whoever asked it to, does at its end
        commands.flush()
        os._exit(code)
    sys.exit(code)
