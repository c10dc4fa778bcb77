"""The judge's own processes, next to which a submission is timed: references and a null model.

They have the same form as a candidate, but no submission enters them, and their failures are the
judge's. Only the submission in the lane uses them, so there is nothing to lend or to lock.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from kevin_env.judge.api import JudgeError, Options
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


class Baselines:
    """Processes that have loaded trusted code. Use them in the lane.

    Args:
        start: Returns a warm candidate for trusted code.
        most: How many are kept; the one used longest ago is ended for another.
    """

    def __init__(self, start: Callable[[], Worker], most: int) -> None:
        self._start = start
        self._most = most
        self._kept = OrderedDict[str, Worker]()

    def loaded(self, key: str, code: str, entry: str) -> Worker:
        """The process that has loaded the code which `key` stands for.

        Args:
            key: Another one means other code.
            code: Python source.
            entry: The class in it.

        Raises:
            JudgeError: if it does not start or load.
        """
        worker = self._kept.get(key)
        if worker is not None and worker.waiting:
            self._kept.move_to_end(key)
            return worker
        self.end(key)
        while len(self._kept) >= self._most:
            self.end(next(iter(self._kept)))
        worker = self._start()
        try:
            with as_judge_error():
                worker.ask("load", BASELINE_SECONDS, path=worker.path, code=code, entry=entry)
        except JudgeError:
            worker.close()
            raise
        self._kept[key] = worker
        return worker

    def end(self, key: str) -> None:
        """Ends one that failed, or is used no longer."""
        if (worker := self._kept.pop(key, None)) is not None:
            worker.close()

    def close(self) -> None:
        """Ends all of them."""
        while self._kept:
            self._kept.popitem()[1].close()
