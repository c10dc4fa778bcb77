"""The judge of one device: build, screen, time, verdict. The only broad boundary on the trusted side is in `server`."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kevin_env.judge.api import JudgeError, Judgement, OnStage, Options, Seconds, Stage, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.contest import TIMED, Contest, Wrong
from kevin_env.judge.device import inform, resolve
from kevin_env.judge.doubts import believed, coverage_flags, doubted, explained
from kevin_env.judge.launcher import ForkServer
from kevin_env.judge.measure import measure
from kevin_env.judge.pauses import asleep
from kevin_env.judge.probe.look import Look, with_profile
from kevin_env.judge.processors import on_its_own
from kevin_env.judge.trial import Trial
from kevin_env.judge.verdict import verdict
from kevin_env.judge.worker import Trouble, Worker
from kevin_env.outcome import Correct, Outcome
from kevin_env.problem import Problem

RETRIED_ALONE = ("out_of_memory", "timeout")
"""Ends that a neighbour on the device can cause; they are verdicts only when they happen alone. So are a limit, since
that of device memory follows from what is free, and a SIGKILL, which the kernel gives to somebody when the machine's
memory is used up."""


class Judge:
    """Judges submissions on one device; safe to use from many threads.

    Args:
        device: `cpu` or `cuda:0`.
        server: Where candidates are forked from, when it has been started already.

    Raises:
        JudgeError: when the device is not there.
    """

    def __init__(self, device: str, server: ForkServer | None = None) -> None:
        self.device = resolve(device)
        self.enter_thread()
        if self.device.type == "cuda":
            torch.zeros(1, device=self.device)
        self.info = inform(self.device)
        self.bench = Bench(self.device, self.info, server)
        self._slots = threading.Semaphore(self.bench.capacity.slots)
        self._on_device = threading.Semaphore(self.bench.capacity.on_device)

    def judge(self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage) -> Judgement:
        """The verdict on one submission.

        Raises:
            ProblemError: when the reference fails.
            JudgeError: when the judge does.
        """
        watch = Stopwatch(on_stage)
        with watch.waiting_for(self._slots):
            judgement = self._judge(problem, submission, options, watch, alone=False)
            return self._looked_into(judgement, problem, submission, options, watch)

    def enter_thread(self) -> None:
        """Makes the judge's device the current one in the calling thread; to be called in each that judges."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    def close(self) -> None:
        """Ends every process."""
        self.bench.close()

    def _judge(
        self, problem: Problem, submission: Submission, options: Options, watch: "Stopwatch", alone: bool
    ) -> Judgement:
        with watch("queue"):
            worker = self.bench.take()
        secret = options.secret or secrets.token_hex(16)
        trial = Trial(self.bench, problem, options, secret, worker)
        flags: list[str] = []
        try:
            self._require(worker, options)
            outcome = self._outcome(trial, submission.code, watch, flags, alone)
        finally:
            with watch("queue"), self.bench.lease.shared():  # not while others are timed
                self.bench.retire(worker)  # the submission is dead before anything is said of it
                trial.close()
        crowded = (outcome.kind in RETRIED_ALONE or worker.limited) and not self.bench.lease.idle()
        if not alone and (crowded or worker.shot):
            return self._judge(problem, submission, options, watch, alone=True)
        return Judgement(
            outcome=outcome, seconds=watch.seconds(), device=self.info, sandbox=worker.sandbox, secret=secret,
            log=worker.log, flags=tuple(flags),
        )  # fmt: skip

    def _looked_into(
        self, judgement: Judgement, problem: Problem, submission: Submission, options: Options, watch: "Stopwatch"
    ) -> Judgement:
        """The judgement with what was asked for besides it, found in fresh candidates."""
        if options.profile == "none" and not options.sanitize:
            return judgement
        with watch("profile"):
            profile = Look(self.bench, problem, submission.code, options).at(judgement.outcome)
        judgement = with_profile(judgement, profile)
        flags = (*judgement.flags, *coverage_flags(judgement.outcome))
        return judgement.model_copy(update={"seconds": watch.seconds(), "flags": flags})

    def _outcome(
        self, trial: Trial, code: str, watch: "Stopwatch", flags: list[str], alone: bool
    ) -> Outcome:  # fmt: skip
        lease = self.bench.lease.exclusive if alone else self.bench.lease.shared
        try:
            with watch("build"):
                trial.build(code)
            with watch.waiting_for(self._on_device):
                with watch("queue"), lease(), watch("load"):
                    wrong = trial.screen(lambda: watch("verify"))
                return wrong or self._time(trial, watch, flags)
        except Trouble as trouble:
            return verdict(trouble, trial.place.step, str(trial.worker.folder), trial.place.input_set)

    def _time(self, trial: Trial, watch: "Stopwatch", flags: list[str]) -> Outcome:
        with watch("queue"):
            self.bench.timing.acquire()
        try:
            return self._believed(self._measure(trial, watch, flags), trial, watch, flags)
        except Wrong as wrong:
            return wrong.outcome
        except JudgeError:
            self.bench.drop_partners()
            raise
        finally:
            self.bench.timing.release()

    def _believed(self, outcome: Correct, trial: Trial, watch: "Stopwatch", flags: list[str]) -> Correct:
        """The outcome against floor and roofline; what is doubted is measured again. Errors and locks as `_measure`."""
        case, bench, key = trial.case, self.bench, trial.problem.sha256
        with watch("load"), asleep(trial.worker):
            floor = bench.floors.of(key, case, lambda: trial.draw(TIMED))
            outcome = bench.rooflines.added(outcome, key, case, lambda: trial.draw(TIMED))
        if not doubted(outcome, floor):
            return outcome
        with watch("queue"), bench.lease.shared(), watch("load"):
            trial.restart(case)
        flags.clear()  # what was odd about times that are not told
        outcome = believed(self._measure(trial, watch, flags), floor, flags)
        with watch("load"), asleep(trial.worker):
            outcome = bench.rooflines.added(outcome, key, case, lambda: trial.draw(TIMED))
        if outcome.roofline is None or not outcome.roofline.above:
            return outcome
        with watch("load"), asleep(trial.worker):
            smaller = bench.rooflines.smaller(trial.problem, case)
        if smaller is None:
            return explained(outcome, None, flags)
        with watch("queue"), bench.lease.shared(), watch("load"):
            trial.restart(smaller)
        return explained(outcome, (smaller.name, self._measure(trial, watch, [])), flags)

    def _measure(self, trial: Trial, watch: "Stopwatch", flags: list[str]) -> Correct:
        """Times a screened submission. Errors as `Contest.gated`. Hold `bench.timing`."""
        with watch("queue"), self.bench.lease.shared(), watch("load"):
            contest = Contest.prepare(trial)
        with watch("queue"), self.bench.lease.exclusive(), watch("time"), on_its_own(str(self.device)), contest.still():
            return measure(contest, flags)

    def _require(self, worker: Worker, options: Options) -> None:
        missing = [name for name, level in worker.sandbox.model_dump().items() if level == "missing"]
        if options.require_sandbox and missing:
            raise JudgeError(
                f"this machine's sandbox gives no protection of {', '.join(missing)}; see kevin-env doctor"
            )


class Stopwatch:
    """Wall time by stage. Stages may nest: time goes to the innermost one."""

    def __init__(self, on_stage: OnStage) -> None:
        self._on_stage = on_stage
        self._spent: dict[Stage, float] = {}
        self._stack: list[Stage] = []
        self._since = time.monotonic()

    @contextmanager
    def __call__(self, stage: Stage) -> Iterator[None]:
        """Books what happens inside under `stage`."""
        self._book()
        self._stack.append(stage)
        self._on_stage(stage)
        try:
            yield
        finally:
            self._book()
            self._stack.pop()

    @contextmanager
    def waiting_for(self, places: threading.Semaphore) -> Iterator[None]:
        """Holds one of some places; until there is one, time is booked under `queue`."""
        with self("queue"):
            places.acquire()
        try:
            yield
        finally:
            places.release()

    def seconds(self) -> Seconds:
        """What was booked so far."""
        return Seconds(**self._spent)

    def _book(self) -> None:
        now = time.monotonic()
        if self._stack:
            stage = self._stack[-1]
            self._spent[stage] = self._spent.get(stage, 0.0) + now - self._since
        self._since = now
