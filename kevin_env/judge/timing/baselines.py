"""The judge's own processes, next to which a submission is timed: references and a null model.

They have the same form as a candidate, but no submission enters them, and their failures are the
judge's. Only the submission in the lane uses them, so there is nothing to lend or to lock.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from kevin_env.judge.api import Options
from kevin_env.judge.handshake.arena import Arena, Seat, Sizes
from kevin_env.judge.handshake.handshake import Player
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.workers.errors import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import KernelFile, Problem, baseline_of


@dataclass(frozen=True)
class TimedCode:
    """What a submission is timed next to.

    Attributes:
        key: Of its code, case and way to run.
        code: Python source.
        entry: The class in it.
        compiled: Whether torch compiles it.
        kept: Whether it keeps the weights with which it was first constructed: to compile or to
            tune it again for each submission would take seconds.
    """

    key: str
    code: str
    entry: str
    compiled: bool
    kept: bool


def timed_code(problem: Problem, case: str, options: Options, on_gpu: bool) -> TimedCode:
    """The reference in a case, eager or compiled, or the kernel that is its baseline."""
    baseline = baseline_of(options, problem, on_gpu)
    if isinstance(baseline, KernelFile):
        name = hashlib.sha256(baseline.code.encode()).hexdigest()
        return TimedCode(f"{problem.sha256}/{case}/{name}", baseline.code, "ModelNew", False, True)
    compiled, key = baseline == "compile", f"{problem.sha256}/{case}/{baseline}"
    return TimedCode(key, source_of(problem, case), "Model", compiled, compiled)


UNKNOWN = "code that may not have been loaded"


class Partner:
    """One of the judge's own processes.

    Args:
        start: Returns a warm candidate for trusted code, on a GPU with a context.
        device: Where it runs.
        l2: Bytes of a GPU's L2.
    """

    def __init__(self, start: Callable[[], Worker], device: torch.device, l2: int) -> None:
        self._start = start
        self._seat = Seat(device, l2, trusted=True)
        self._worker: Worker | None = None
        self._loaded = ""

    def load(self, key: str, code: str, entry: str) -> tuple[Worker, bool]:
        """The process, with the code loaded that `key` stands for, and whether it was loaded now.

        Raises:
            JudgeError: if it does not start or load.
        """
        if self._worker is None or self._worker.answers_within(0.0):
            self.close()
            self._worker = self._start()
        if self._loaded == key:
            return self._worker, False
        with as_judge_error():
            if self._loaded:
                self._worker.ask("forget", BASELINE_SECONDS)
            self._loaded = UNKNOWN
            path = self._worker.path
            self._worker.ask("load", BASELINE_SECONDS, path=path, code=code, entry=entry)
            self._loaded = key
        return self._worker, True

    def seated(self, sizes: Sizes) -> tuple[Arena, Player]:
        """On a GPU its memory, replaced if it is too small, and the process in it. Load it before.

        Raises:
            JudgeError: if it does not map the memory.
            torch.OutOfMemoryError: if there is none.
        """
        assert self._worker is not None
        with as_judge_error():
            return self._seat.of(self._worker, sizes, BASELINE_SECONDS)

    def close(self) -> None:
        """Ends it; another one is started when it is needed."""
        worker, self._worker, self._loaded = self._worker, None, ""
        if worker is not None:
            worker.close()
        self._seat.close()
