"""A judge pool that answers from a script, for tests and for trying things out without a device."""

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, get_args

from kevin_env.judge.api import (
    CaseFacts,
    DeviceInfo,
    Facts,
    InputFacts,
    JudgeError,
    Judgement,
    OnStage,
    Options,
    Sandbox,
    Seconds,
    Stage,
    Submission,
)
from kevin_env.outcome import Outcome
from kevin_env.problem import Problem

Answer = Outcome | Judgement | Exception
"""The script's answer to one submission: an outcome, a whole judgement, or an error to raise."""

Script = Iterable[Answer] | Callable[[Problem, Submission], Answer]

SCRIPTED_CPU = DeviceInfo(device="cpu", name="scripted CPU", processors=2, versions={"python": "3"})
SCRIPTED_GPU = DeviceInfo(
    device="cuda:0",
    name="scripted GPU",
    capability="9.0",
    processors=132,
    memory=80 << 30,
    shared_memory=227 << 10,
    l2=50 << 20,
    bandwidth=3.35e12,
    versions={"torch": "2", "triton": "3", "cuda": "12"},
)


class ScriptedPool:
    """A `JudgePool` with predefined verdicts. Nothing is compiled or run.

    Args:
        script: Answers in the order in which submissions arrive, or a function that returns the
            answer to one, called in a thread per submission.
        device: The device that it claims to have.
        workers: How many submissions are judged at once.
    """

    def __init__(
        self, script: Script, device: DeviceInfo = SCRIPTED_CPU, workers: int = 16
    ) -> None:
        self.device = device
        self.submissions: list[tuple[Problem, Submission, Options]] = []
        """Everything that was submitted, in order."""
        self.closed = False
        self._script = script if callable(script) else deque(script)
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="scripted-judge")

    def __deepcopy__(self, memo: object) -> Self:
        """Returns itself: Gymnasium copies an environment's arguments, and a pool is a handle."""
        return self

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        """Plausible facts with the problem's cases; `options` do not matter."""
        self._require_open()
        return self._threads.submit(_facts, problem, self.device)

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        """Returns the next answer, after reporting every stage.

        Raises (from the future):
            JudgeError: if the script says so, or has ended.
        """
        with self._lock:
            self._require_open()
            self.submissions.append((problem, submission, options))
            answer = self._answer(problem, submission)
            return self._threads.submit(self._judge, answer, options, on_stage)

    def close(self) -> None:
        """Ends the threads; may be called twice."""
        self.closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answer(self, problem: Problem, submission: Submission) -> Callable[[], Answer]:
        """Takes the next answer of a list, so that the order holds; calls a function later."""
        if callable(self._script):
            return functools.partial(self._script, problem, submission)
        number = len(self.submissions)
        if not self._script:
            return lambda: JudgeError(
                f"the script of this ScriptedPool has no answer to submission {number}"
            )
        answer = self._script.popleft()
        return lambda: answer

    def _judge(
        self, ask: Callable[[], Answer], options: Options, on_stage: OnStage | None
    ) -> Judgement:
        if on_stage:
            for stage in get_args(Stage):
                if stage != "profile" or options.profile != "none":
                    on_stage(stage)
        answer = ask()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Judgement):
            return answer
        return Judgement(
            outcome=answer,
            seconds=Seconds(queue=0.01, build=0.5, load=0.1, verify=0.2, time=0.1),
            device=self.device,
            sandbox=Sandbox(
                network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
            ),
            secret=options.secret or "0" * 32,
        )

    def _require_open(self) -> None:
        if self.closed:
            raise JudgeError("this pool is closed")


def _facts(problem: Problem, device: DeviceInfo) -> Facts:
    x = InputFacts(name="x", dtype="float32", shape=(128, 1024))
    return Facts(
        device=device,
        cases=tuple(
            CaseFacts(name=case, inputs=(x,), outputs=("float32[128, 1024]",))
            for case in problem.cases
        ),
        distributions=("The problem's own inputs.",),
        tolerance="The error may be a few times that of the reference.",
        precision="ieee",
        weights=(),
    )
