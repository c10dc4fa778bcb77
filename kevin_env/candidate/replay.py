"""The submission as a program of its own, for tools that start one; its last argument is JOB.

JOB is a JSON file that the judge wrote, with weights and inputs in files beside it. The model is constructed, called
until it is warm, and then called once between the marks that profilers look for.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import Region
from kevin_env.candidate.runtime import Runtime

DIFFERENT = 10
"""Exit code that says that the same inputs gave different outputs."""
WARM_UPS = 2


def replay(job: dict[str, Any]) -> int:
    """Does a job; the exit code. Errors of the submission pass through.

    Args:
        job: `device`, `threads`, `load`, `construct` and `stage` as the orders of `Runtime`, `regions` with the file of
            each, and `step`: `load` does no more than that, `compare` looks if outputs change from call to call.
    """
    runtime = Runtime(None)  # type: ignore[arg-type]  # no judge to talk to
    if job["step"] == "load":
        runtime.load(**job["load"])
        return 0
    runtime.prepare(job["device"], job["threads"])
    for name, path in job["regions"].items():
        data = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8)
        runtime.regions[name] = Region(data.to(runtime.device))
    runtime.load(**job["load"])
    runtime.construct(**job["construct"])
    runtime.stage(**job["stage"])
    outputs = [_call(runtime) for _ in range(WARM_UPS)]
    _mark(runtime.device, True)
    outputs.append(_call(runtime))
    _mark(runtime.device, False)
    return DIFFERENT if job["step"] == "compare" and _differ(outputs) else 0


def _call(runtime: Runtime) -> list[torch.Tensor]:
    with torch.no_grad():
        _, tensors = tree.take_apart(runtime.model(*runtime.sets[0]))
    runtime.synchronize()
    return [tensor.clone() for tensor in tensors]


def _differ(outputs: list[list[torch.Tensor]]) -> bool:
    """Whether any call gave other bytes than the first."""
    return any(not _same(each, outputs[0]) for each in outputs[1:])


def _same(outputs: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    if len(outputs) != len(others):
        return False
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(outputs, others, strict=True))


def _mark(device: torch.device, begin: bool) -> None:
    if device.type == "cuda":
        library: Any = torch.cuda.cudart()  # what it answers does not matter: nobody may be looking
        (library.cudaProfilerStart if begin else library.cudaProfilerStop)()


def main() -> None:
    """Does the job whose file is the last argument."""
    sys.exit(replay(json.loads(Path(sys.argv[-1]).read_text())))
