"""The submission as a program in a sandbox of its own, which NVIDIA's tools start and look into.

The candidate that starts the tools has not imported the submission: what it says of them is not the submission's word.
The tools' own reports lie where the submission can write while it runs, and the part of them that collects lives in its
process; no Python code reaches either, machine code that was written for it could.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from kevin_env import candidate
from kevin_env.candidate.replay import DIFFERENT as DIFFERENT
from kevin_env.judge.api import Options
from kevin_env.judge.cases import construction, handed_over
from kevin_env.judge.memory import Image, SharedRegion
from kevin_env.judge.plant import plant, planted
from kevin_env.judge.probe.tools import OUTPUT_LIMIT, Ran
from kevin_env.judge.reference import Case
from kevin_env.judge.worker import Worker

LINES = {"NVCC_APPEND_FLAGS": "-lineinfo"}
"""Has nvcc keep line numbers; the machine code stays the same. Triton always keeps them."""
Step = Literal["load", "call", "compare"]
_FILES_SECONDS = 30.0
_SLACK = 5.0
_START = """
import sys, types
package, job = sys.argv[1:]
for name, folder in (("kevin_env", package), ("kevin_env.candidate", package + "/candidate")):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [folder]
from kevin_env.candidate.replay import main
main()
"""
"""Starts the program without importing what is ours alone: in a checkout a sandbox shows nothing of it."""


class Target:
    """A submission, its weights and inputs as files in a fresh candidate's folder.

    Args:
        worker: The candidate; only programs run in it.
        options: How the submission is judged.
        threads: For torch, on a CPU.
    """

    def __init__(self, worker: Worker, options: Options, threads: int) -> None:
        self.worker = worker
        self.options = options
        self.threads = threads
        self._job: dict[str, Any] = {}
        self.command: list[str] = []
        """Runs the submission: constructs it, warms it up, calls it once more."""

    def write(self, case: Case, code: str, distribution: str, seed: int, admitted: Collection[str] = ()) -> None:
        """Writes everything that the program needs, with inputs like those of a verdict.

        Args:
            case: Whose weights and inputs they are.
            code: The submission.
            distribution: Of the inputs.
            seed: Of weights and inputs.
            admitted: The distributions that the case admits, as far as they are known.

        Raises:
            Trouble: when the candidate does not do as it is told.
            ProblemError: when the reference fails.
        """
        case.draw_weights(seed)
        skeleton, inputs = case.draw_inputs(distribution, seed + 1)
        weights, inbox = _image(handed_over(case)), _image(inputs)
        if planted(distribution, admitted):
            plant(inbox.tensors, seed)
        self._job = {
            "device": self.worker.device, "threads": self.threads, "step": "call",
            "load": {
                "path": self._path("submission.py"), "code": code, "entry": "ModelNew", "headers": self.options.headers,
            },
            "construct": construction(case, weights.specs, seed),
            "stage": {"inputs": skeleton, "sets": [inbox.specs], "seed": seed},
            "regions": {name: self._save(name, image) for name, image in (("weights", weights), ("inbox", inbox))},
        }  # fmt: skip
        path = self._path("job.json")
        self.worker.ask("write", _FILES_SECONDS, path=path, text=json.dumps(self._job))
        package = str(Path(str(candidate.__file__)).parent.parent)
        self.command = [sys.executable, "-P", "-c", _START, package, path]

    def rehearse(self, seconds: float, step: Step = "call") -> int | None:
        """Runs the program without any tool, so that everything is compiled.

        Args:
            seconds: After which it is stopped.
            step: Up to which it runs; where it compares calls that differ, `DIFFERENT` is what it exits with.

        Returns:
            Its exit code; None when it was stopped.
        """
        job = self._job | {"step": step}
        answer = self.worker.ask("rehearse", seconds + _SLACK, job=job, seconds=seconds, environment=LINES)
        return _code(answer.get("code"))

    def run(self, command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Ran:
        """See `Runner.run`."""
        answer = self.worker.ask(
            "run", seconds + _SLACK, command=list(command), seconds=seconds, environment={**LINES, **environment},
            limit=OUTPUT_LIMIT,
        )  # fmt: skip
        return Ran(_code(answer.get("code")), _text(answer.get("output")))

    def read(self, path: str) -> str:
        """See `Runner.read`."""
        return _text(self.worker.ask("read", _FILES_SECONDS, path=path, limit=OUTPUT_LIMIT).get("text"))

    def _save(self, name: str, image: Image) -> str:
        """Hands an image over as a file; its path."""
        region, path = SharedRegion(image.end, torch.device("cpu")), self._path(name)
        try:
            image.write_to(region)
            self.worker.share(name, region, _FILES_SECONDS)
            self.worker.ask("save", _FILES_SECONDS, name=name, path=path)
        finally:
            region.close()
        return path

    def _path(self, name: str) -> str:
        return str(self.worker.folder / name)


def _image(tensors: list[torch.Tensor]) -> Image:
    return Image([tensor.cpu() for tensor in tensors], torch.device("cpu"))


def _code(claim: Any) -> int | None:
    return claim if isinstance(claim, int) else None


def _text(claim: Any) -> str:
    return claim if isinstance(claim, str) else ""
