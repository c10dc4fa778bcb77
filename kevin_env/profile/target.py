"""The submission as a program in its own sandbox, which NVIDIA's tools start and examine.

The candidate that starts the tools has not imported the submission. But copies of it and the
program have: what outlives those may answer in its place, and the tools' reports are where it can
write. The threat model states what depends on this.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from kevin_env import candidate
from kevin_env.candidate.standalone import DIFFERENT as DIFFERENT
from kevin_env.judge.api import Options
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.inputs.cases import construction, model_tensors
from kevin_env.judge.inputs.distributions import add_outliers, has_outliers
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.workers.worker import Worker
from kevin_env.profile.tools import OUTPUT_LIMIT, Ran

LINES = {"NVCC_APPEND_FLAGS": "-lineinfo"}
"""Has nvcc keep line numbers; the machine code stays the same. Triton always keeps them."""
Step = Literal["load", "call", "compare"]
_FILES_SECONDS = 30.0
_SLACK = 5.0
_START = """
import sys, types
package = sys.argv[1]
for name in ("kevin_env", "kevin_env.candidate", "kevin_env.extension"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [package + name.removeprefix("kevin_env").replace(".", "/")]
from kevin_env.candidate.standalone import main
main()
"""
"""Starts the program without importing the whole package: a sandbox may hide a checkout."""


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
        package = str(Path(str(candidate.__file__)).parent.parent)
        self.command = [sys.executable, "-P", "-c", _START, package, str(worker.folder)]
        """Runs the submission: constructs it, warms it up, calls it once more."""

    def write_code(self, code: str) -> None:
        """Writes what the program needs to load a submission. Errors as `write`."""
        self._job = {
            "device": self.worker.device, "threads": self.threads, "step": "call",
            "load": {
                "path": self._path("submission.py"), "code": code, "entry": "ModelNew",
                "headers": self.options.headers,
            },
        }  # fmt: skip
        self._write("job.json", self._job)

    def write(
        self, case: Case, distribution: str, seed: int, admitted: Collection[str] = ()
    ) -> None:
        """Writes what the program needs to build and call the model, with inputs as in a verdict.

        Args:
            case: Whose weights and inputs they are.
            distribution: Of the inputs.
            seed: Of weights and inputs.
            admitted: The distributions that the case admits, as far as they are known.

        Raises:
            CandidateError: if the candidate fails.
            ProblemError: if the reference fails.
        """
        case.draw_weights(seed)
        skeleton, inputs = case.draw_inputs(distribution, seed + 1)
        weights, inbox = _image(model_tensors(case)), _image(inputs)
        if has_outliers(distribution, admitted):
            add_outliers(inbox.tensors, case.structures, seed)
        call = {
            "construct": construction(case, weights.specs, seed),
            "stage": {"inputs": skeleton, "specs": inbox.specs, "seed": seed},
            "regions": {
                name: self._save(name, image)
                for name, image in (("weights", weights), ("inbox", inbox))
            },
        }
        self._write("call.json", call)

    def rehearse(self, seconds: float, step: Step = "call") -> int | None:
        """Runs the program without any tool, so that everything is compiled.

        Args:
            seconds: After which it is stopped.
            step: Up to which it runs; where it compares calls that differ, `DIFFERENT` is what it
                exits with.

        Returns:
            Its exit code; None when it was stopped.
        """
        job, folder = self._job | {"step": step}, str(self.worker.folder)
        fields = {"job": job, "folder": folder, "seconds": seconds, "environment": LINES}
        return _code(self.worker.ask("rehearse", seconds + _SLACK, **fields).get("code"))

    def run(self, command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Ran:
        """See `Runner.run`."""
        claim = self.worker.ask(
            "run", seconds + _SLACK, command=list(command), seconds=seconds,
            environment={**LINES, **environment}, limit=OUTPUT_LIMIT,
        )  # fmt: skip
        return Ran(_code(claim.get("code")), _text(claim.get("output")))

    def read(self, path: str) -> str:
        """See `Runner.read`."""
        return _text(
            self.worker.ask("read", _FILES_SECONDS, path=path, limit=OUTPUT_LIMIT).get("text")
        )

    def _write(self, name: str, content: dict[str, Any]) -> None:
        self.worker.ask("write", _FILES_SECONDS, path=self._path(name), text=json.dumps(content))

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
