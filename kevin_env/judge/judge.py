"""The judge of one device: builds, screens and times a submission, and gives the verdict.

Errors are caught by class here. The one broad exception boundary around a judgement is in `server`.
"""

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch

from kevin_env.judge.api import JudgeError, Judgement, OnStage, Options, Pace, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.crowding import (
    ShortOfMemory,
    ended_on_failure,
    leased,
)
from kevin_env.judge.device import StallWatch, inform, resolve
from kevin_env.judge.job import Cancellation, Job, Stopwatch
from kevin_env.judge.lease import Gathering
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.measure import measure, sets_needed
from kevin_env.judge.timing.session import (
    TIMED,
    TimingSession,
    UnverifiedAnswers,
    WrongAnswer,
    borrow_baselines,
)
from kevin_env.judge.verdict import (
    hoarding,
    may_be_environmental,
    roofline_flags,
    verdict,
    without_paths,
)
from kevin_env.judge.workers.baselines import BaselineOutOfMemory, OwnProcessKilled
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker, asleep
from kevin_env.outcome import Correct, Incorrect, Outcome, RulesViolation
from kevin_env.problem import Problem
from kevin_env.profile.look import Look, with_profile

Clock = Callable[[SubmissionRun, UnverifiedAnswers, Stopwatch], Correct]
"""Times a screened submission and adds its answers to those to be compared. Errors as `measure`."""


class NoContext(JudgeError):
    """A submission that was built got no CUDA context."""


RETRIES = 2
"""How often a noisy time is measured again."""
YIELD = 0.02
"""Seconds for which a place stays free, so that a waiting thread can take it."""


class Judge:
    """Judges submissions on one device; safe to use from many threads.

    Args:
        device: `cpu` or `cuda:0`.
        server: A fork server for candidates that is already running.
        pace: How many calls a verdict takes; by default the entry of `PACES` for the device.
        clock: Times a screened submission; by default under the exclusive lease, next to the
            reference. Tests pass a scripted one.
        memory: As for `Bench`.

    Raises:
        JudgeError: if the device does not exist.
    """

    def __init__(
        self,
        device: str,
        server: ForkServer | None = None,
        pace: Pace | None = None,
        clock: Clock | None = None,
        memory: int | None = None,
    ) -> None:
        self.device = resolve(device)
        if self.device.type == "cuda":
            self.enter_thread()
            torch.zeros(1, device=self.device)
        self.info = inform(self.device)
        self.bench = Bench(self.device, self.info, server, pace, memory)
        self._slots = threading.Semaphore(self.bench.capacity.slots)
        self._on_device = threading.Semaphore(self.bench.capacity.on_device)
        # held while a thread acquires several places: two with some each would deadlock
        self._acquiring = threading.Semaphore()
        self._gathering = Gathering(self.bench.capacity.sessions)
        self._stalls = StallWatch()
        self._clock = clock or self._timed

    def judge(
        self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage,
        cancellation: Cancellation | None = None,
    ) -> Judgement:  # fmt: skip
        """Judges one submission.

        Raises:
            ProblemError: if the reference fails.
            JudgeError: if the judge fails, or is cancelled.
        """
        watch = Stopwatch(on_stage)
        job = Job(problem, submission, options, watch, cancellation or Cancellation())
        with watch.waiting_for(self._slots):
            try:
                judgement = self._judge(job)
            except OwnProcessKilled:
                judgement = self._judge(job)
            job.cancellation.require_wanted()
            return self._with_profile(judgement, job)

    def enter_thread(self) -> None:
        """Makes the judge's device the current one in the calling thread, before it judges."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    def trouble(self) -> str | None:
        """Why this process can judge nothing else; None if all is well."""
        return self._stalls.trouble(self.device)

    def close(self) -> None:
        """Ends every process."""
        self.bench.close()

    def _judge(self, job: Job) -> Judgement:
        """Judges with others on the device, and alone if a failure may have been caused by them."""
        attempt = self._attempt(job, alone=False)
        if attempt.environmental:
            attempt = self._attempt(job.on_other_inputs(attempt.secret), alone=True)
        outcome, worker = attempt.outcome, attempt.worker
        assert outcome is not None  # alone, a lack of memory is raised
        return Judgement(
            outcome=outcome, seconds=job.watch.seconds(), device=self.info,
            sandbox=self.bench.candidates.sandbox(worker), secret=attempt.secret,
            log=without_paths(worker.log, str(worker.folder)), flags=roofline_flags(outcome),
        )  # fmt: skip

    def _attempt(self, job: Job, alone: bool) -> "_Attempt":
        """Judges once. Its models are freed on return, which makes room for another attempt."""
        worker, lease = self._take_worker(job, alone), self.bench.lease
        secret = job.options.secret or secrets.token_hex(16)
        run = SubmissionRun(self.bench, job.problem, job.options, secret, worker, not alone)
        outcome, shot, beside = None, False, not lease.idle()
        with lease.in_use(), ExitStack() as places:
            try:
                job.require_protection_by(self.bench.candidates.sandbox(worker))
                outcome = self._outcome(run, job, alone, places)
                shot = worker.shot  # afterwards it is stopped, and may be gone
            except (torch.OutOfMemoryError, BaselineOutOfMemory, ShortOfMemory, NoContext):
                if alone:  # otherwise others may hold what was lacking
                    raise
            finally:
                self._gathering.remove(run)
                with job.watch("queue"):  # the submission ends before anything is reported of it
                    run.end()
        again = outcome is None or may_be_environmental(outcome, shot, beside or not lease.idle())
        return _Attempt(outcome, worker, secret, again)

    def _take_worker(self, job: Job, alone: bool) -> Worker:
        """A candidate that has run nothing; tried again alone on the device if none starts."""
        job.cancellation.require_wanted()
        with job.watch("queue"), ExitStack() as held:
            try:
                worker = self.bench.candidates.take(context=alone)
            except JudgeError:
                self._take_places(held, job.watch, self.bench.capacity.on_device)
                worker = self.bench.candidates.take()
        job.cancellation.ends(worker)
        return worker

    def _with_profile(self, judgement: Judgement, job: Job) -> Judgement:
        """Adds what the options ask for beyond the verdict, measured in fresh candidates."""
        if job.options.profile == "none" and not job.options.sanitize:
            return judgement
        with job.watch("profile"), self.bench.lease.in_use():
            look = Look(self.bench, job.problem, job.submission.code, job.options)
            profile = look.at(judgement.outcome)
        judgement = with_profile(judgement, profile, job.options.rules)
        return judgement.model_copy(update={"seconds": job.watch.seconds()})

    def _outcome(self, run: SubmissionRun, job: Job, alone: bool, places: ExitStack) -> Outcome:
        watch = job.watch
        try:
            with watch("build"):
                run.build(job.submission.code)
            self._give_context(run, watch)
            self._enter_device(run, watch, alone, places)
            return self._screened(run, watch, alone) or self._time(run, watch)
        except CandidateError as error:
            worker = run.worker
            return verdict(error, run.place, str(worker.folder), worker.fault_line)
        except (torch.OutOfMemoryError, BaselineOutOfMemory):
            if alone and self.bench.hoards(run.worker):
                return hoarding(run.place.input_set)
            raise

    def _give_context(self, run: SubmissionRun, watch: Stopwatch) -> None:
        """Creates the CUDA context of a submission that has none.

        Raises:
            NoContext: if that fails, whatever the cause. Judged alone, it gets one before its code.
        """
        if run.worker.has_context:
            return
        with ExitStack() as held:
            with watch("queue"), asleep(run.worker, wait=False):
                held.enter_context(self.bench.lease.shared())
            try:
                with watch("load"):
                    run.worker.create_context()
            except CandidateError as error:
                run.worker.close()
                raise NoContext("no CUDA context was created after the build") from error

    def _enter_device(
        self, run: SubmissionRun, watch: Stopwatch, alone: bool, places: ExitStack
    ) -> None:
        """Acquires places on the device; the submission is stopped while it waits."""
        capacity = self.bench.capacity
        with watch("queue"), asleep(run.worker, wait=False):
            needed = math.inf if alone else self.bench.needed(run.problem)
            count = capacity.on_device if alone else capacity.places(needed)
            self._take_places(places, watch, count, needed)
            self._gathering.add(run)
            if alone:
                self.bench.wait_for_memory(run.worker)

    def _take_places(
        self, held: ExitStack, watch: Stopwatch, count: int, needed: float = math.inf
    ) -> None:
        """Acquires places in order of arrival; whoever has all of them is alone on the device.

        Idle processes then give way if fewer than `needed` bytes are free.
        """
        with watch.waiting_for(self._acquiring):
            for _ in range(count):
                held.enter_context(watch.waiting_for(self._on_device))
        if 1 < count == self.bench.capacity.on_device:
            self.bench.clear(needed)

    def _screened(
        self, run: SubmissionRun, watch: Stopwatch, alone: bool
    ) -> Incorrect | RulesViolation | None:
        """Screens a submission, and pauses for others that wait to be timed."""
        with ExitStack() as long, leased(run, watch, alone) as give_way:

            def pause() -> None:
                """Called repeatedly during a long call."""
                if self.device.type == "cuda":  # a kernel would go on
                    long.enter_context(self.bench.lease.long_call())
                else:
                    give_way(self._yield_places)

            for wrong in run.screening(lambda: watch("verify"), (lambda: None) if alone else pause):
                long.close()
                if wrong is not None:
                    return wrong
                if not alone and self.bench.lease.wanted():
                    give_way()
        return None

    def _yield_places(self) -> None:
        """Lets waiting threads have this one's places first. Call without holding the lease."""
        for places in (self._on_device, self._slots):
            places.release()
        time.sleep(YIELD)  # otherwise this thread would take them again at once
        for places in (self._slots, self._on_device):
            places.acquire()

    def _time(self, run: SubmissionRun, watch: Stopwatch) -> Outcome:
        """The outcome of a screened submission, with its roofline."""
        try:
            with self._measured(run, watch) as outcome:
                self.bench.candidates.dismiss(run.worker)  # ends while its answers are compared
        except WrongAnswer as wrong:
            return wrong.outcome
        with watch("load"), asleep(run.worker):
            rooflines, draw = self.bench.problems.rooflines, partial(run.draw, TIMED)
            return rooflines.added(outcome, run.problem.sha256, run.case, draw)

    @contextmanager
    def _measured(self, run: SubmissionRun, watch: Stopwatch) -> Iterator[Correct]:
        """Times a screened submission, then compares every answer. Errors as `measure`.

        If the options say so, a noisy time is measured up to `RETRIES` more times; the last counts.
        """
        for left in reversed(range(1 + RETRIES * run.options.retry_noisy)):
            unverified = UnverifiedAnswers(run)
            try:
                outcome = self._clock(run, unverified, watch)
                if outcome.kind == "timed" or not left:
                    yield outcome
                    return
            finally:  # also after a failure, before which an answer may have been wrong
                with asleep(run.worker, wait=False):
                    unverified.compare_beside_others(self.bench.lease, watch)
            with leased(run, watch):
                run.enter(run.case.name)

    def _timed(
        self, run: SubmissionRun, unverified: UnverifiedAnswers, watch: Stopwatch
    ) -> Correct:
        """The default `Clock`."""
        lease = self.bench.lease
        with ExitStack() as held:
            with asleep(run.worker, wait=False):
                held.enter_context(watch.waiting_for(self.bench.sessions))
                with watch("load"):
                    baselines = borrow_baselines(run, held)
            with leased(run, watch) as give_way:
                session = TimingSession.prepare(run, baselines, unverified)
                for _ in session.warm(sets_needed()):
                    if lease.wanted():
                        give_way()
            with watch("queue"), asleep(run.worker, wait=False):
                self._gathering.wait(run)
                held.callback(self._gathering.remove, run)
                held.enter_context(lease.exclusive())
            with watch("time"), ended_on_failure(run):
                return measure(session)


@dataclass(frozen=True)
class _Attempt:
    """How one attempt to judge a submission ended.

    Attributes:
        outcome: None without a context, or if device memory was lacking that others may have held.
        secret: What its inputs were drawn from.
        environmental: Whether that, or the outcome, may have been caused by others on the machine.
    """

    outcome: Outcome | None
    worker: Worker
    secret: str
    environmental: bool
