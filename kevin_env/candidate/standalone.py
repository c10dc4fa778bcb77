"""The submission as a separate program, for tools that start one.

The judge writes `job.json` to its folder and, except for jobs that only load, `call.json`, with
weights and inputs in files beside them. The model is constructed, warmed up, and called once
between the marks that profilers look for.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.model import LoadedModel
from kevin_env.candidate.region import Region
from kevin_env.candidate.wire import Channel

DIFFERENT = 10
"""Exit code: the same inputs gave different outputs."""
WARM_UPS = 2


def run_job(job: dict[str, Any], folder: Path, channel: Channel | None = None) -> int:
    """Runs a job and returns the exit code. Errors of the submission propagate.

    Args:
        job: `device`, `threads`, `load` (arguments of the order) and `step`: `load` only loads,
            `compare` also checks whether outputs change from call to call.
        folder: Has `call.json`: `construct` and `stage` (arguments of the orders), and `regions`
            with the file of each.
        channel: To the judge, in a fork of the candidate.
    """
    runtime = LoadedModel(channel)  # type: ignore[arg-type]  # None in a separate program
    runtime.load(**job["load"])
    if job["step"] == "load":
        return 0
    call = json.loads((folder / "call.json").read_text())
    _construct(runtime, job, call)
    outputs = [_call(runtime) for _ in range(WARM_UPS)]
    _mark(runtime.device, True)
    outputs.append(_call(runtime))
    _mark(runtime.device, False)
    return DIFFERENT if job["step"] == "compare" and _differ(outputs) else 0


def _construct(runtime: LoadedModel, job: dict[str, Any], call: dict[str, Any]) -> None:
    runtime.prepare(job["device"], job["threads"])
    if runtime.device.type == "cuda":
        runtime.create_context()
    for name, path in call["regions"].items():  # a private mapping
        data = torch.from_file(path, size=Path(path).stat().st_size, dtype=torch.uint8)
        runtime.regions[name] = Region(data.to(runtime.device))
    runtime.construct(**call["construct"])
    runtime.stage(**call["stage"])


def _call(runtime: LoadedModel) -> list[torch.Tensor]:
    with torch.no_grad():
        _, tensors = tree.flatten(runtime.model(*runtime.arguments))
    runtime.synchronize()
    return [tensor.clone() for tensor in tensors]


def _differ(outputs: list[list[torch.Tensor]]) -> bool:
    return any(not _same(each, outputs[0]) for each in outputs[1:])


def _same(outputs: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    if len(outputs) != len(others):
        return False
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(outputs, others, strict=True)
    )


def _mark(device: torch.device, begin: bool) -> None:
    if device.type == "cuda":
        library: Any = torch.cuda.cudart()  # fails where no profiler is attached
        (library.cudaProfilerStart if begin else library.cudaProfilerStop)()


def main() -> None:
    """Runs the job in the folder that is the last argument."""
    folder = Path(sys.argv[-1])
    sys.exit(run_job(json.loads((folder / "job.json").read_text()), folder))
