"""The judge of one device: build, screen, time, verdict. The only broad boundary on the trusted
side is in `server`.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from kevin_env.judge.api import JudgeError, Judgement, OnStage, Options, Pace, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.crowding import ended_where_it_fails, is_crowded, leased, stays_crowded
from kevin_env.judge.device import inform, resolve
from kevin_env.judge.job import Asked, Cancellation, Stopwatch
from kevin_env.judge.probe.look import Look, with_profile
from kevin_env.judge.timing.measure import ahead, measure
from kevin_env.judge.timing.session import TIMED, Contest, Unverified, Wrong, lent
from kevin_env.judge.trial import Trial
from kevin_env.judge.verdict import (
    hoarding,
    may_be_others_doing,
    roofline_flags,
    verdict,
    without_paths,
)
from kevin_env.judge.workers.baselines import NoRoom
from kevin_env.judge.workers.errors import Trouble
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.pauses import asleep
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct, Incorrect, Outcome, RulesViolation
from kevin_env.problem import Problem

Clock = Callable[[Trial, Unverified, Stopwatch], Correct]
"""What times a trial. Errors as `measure`."""


RETRIES = 2
"""How often a noisy time is taken again."""
YIELD = 0.02
"""Seconds in which whoever waits for a place takes it."""


class Judge:
    """Judges submissions on one device; safe to use from many threads.

    Args:
        device: `cpu` or `cuda:0`.
        server: Where candidates are forked from, when it has been started already.
        pace: How many calls a verdict takes; by default what `PACES` has for the kind of device.
        clock: Times a screened submission, whose timed answers it adds to those that are still to
            be compared; by default under the exclusive lease, beside the reference. A scripted one
            is for tests of what follows.

    Raises:
        JudgeError: when the device is not there.
    """

    def __init__(
        self,
        device: str,
        server: ForkServer | None = None,
        pace: Pace | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.device = resolve(device)
        if self.device.type == "cuda":
            self.enter_thread()
            torch.zeros(1, device=self.device)
        self.info = inform(self.device)
        self.bench = Bench(self.device, self.info, server, pace)
        self._slots = threading.Semaphore(self.bench.capacity.slots)
        self._on_device = threading.Semaphore(self.bench.capacity.on_device)
        self._gathering = threading.Semaphore()
        """Held while one takes its places: of two that each had some, neither would get the rest.
        """
        self._clock = clock or self._timed

    def judge(
        self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage,
        cancellation: Cancellation | None = None,
    ) -> Judgement:  # fmt: skip
        """The verdict on one submission.

        Raises:
            ProblemError: when the reference fails.
            JudgeError: when the judge does, or when it is cancelled.
        """
        asked = Asked(
            problem, submission, options, Stopwatch(on_stage), cancellation or Cancellation()
        )
        with asked.watch.waiting_for(self._slots):
            judgement = self._judge(asked, alone=False)
            asked.cancellation.require_wanted()
            return self._looked_into(judgement, asked)

    def enter_thread(self) -> None:
        """Makes the judge's device the current one in the calling thread; to be called in each that
        judges.
        """
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    def trouble(self) -> str | None:
        """Why nothing can be judged in this process any more: its CUDA context is lost. None while
        it can.
        """
        if self.device.type == "cuda":
            try:
                torch.cuda.mem_get_info(self.device)
            except (
                RuntimeError
            ) as error:  # a kernel of a reference failed: the error stays until the process ends
                return str(error).partition("\n")[0]
        return None

    def close(self) -> None:
        """Ends every process."""
        self.bench.close()

    def _judge(self, asked: Asked, alone: bool) -> Judgement:
        worker, watch, options = self._taken(asked), asked.watch, asked.options
        trial = Trial(
            self.bench,
            asked.problem,
            options,
            options.secret or secrets.token_hex(16),
            worker,
            not alone,
        )
        outcome, ends = None, (False, False)
        beside = not self.bench.lease.idle()
        with self.bench.lease.in_use(), ExitStack() as places:
            try:
                asked.require_protection_by(worker)
                outcome = self._outcome(trial, asked.submission.code, watch, alone, places)
                ends = worker.shot, worker.limited  # before it is stopped, which may find it gone
            except (
                torch.OutOfMemoryError,
                NoRoom,
            ):  # the judge's own: a neighbour may hold what it lacks
                if alone:
                    raise
            finally:
                with watch("queue"):  # the submission is dead before anything is said of it
                    trial.end()
        lacked = ends[1] or (outcome is not None and outcome.kind == "out_of_memory")
        beside = (
            beside
            or not self.bench.lease.idle()
            or trial.crowded
            or (lacked and is_crowded(self.bench, worker))
        )
        if outcome is None or (not alone and may_be_others_doing(outcome, *ends, beside)):
            asked = asked.on_other_inputs(trial.secret)
            del trial  # its models and their float64 copies make room
            return self._judge(asked, alone=True)
        if trial.crowded and (outcome.kind == "out_of_memory" or self.bench.overdrew(worker)):
            raise JudgeError(
                "the submission lacked device memory that others hold: free it, or judge elsewhere"
            )
        return Judgement(
            outcome=outcome, seconds=watch.seconds(), device=self.info, sandbox=worker.sandbox, secret=trial.secret,
            log=without_paths(worker.log, str(worker.folder)), flags=roofline_flags(outcome),
        )  # fmt: skip

    def _taken(self, asked: Asked) -> Worker:
        """A candidate that has run nothing. One that does not start may lack what others on the
        device hold.
        """
        asked.cancellation.require_wanted()
        with asked.watch("queue"), ExitStack() as held:
            try:
                worker = self.bench.take()
            except JudgeError:
                self._take_places(held, asked.watch, self.bench.capacity.on_device)
                worker = self.bench.take()
        asked.cancellation.ends(worker)
        return worker

    def _looked_into(self, judgement: Judgement, asked: Asked) -> Judgement:
        """The judgement with what was asked for besides it, found in fresh candidates."""
        if asked.options.profile == "none" and not asked.options.sanitize:
            return judgement
        with asked.watch("profile"), self.bench.lease.in_use():
            profile = Look(self.bench, asked.problem, asked.submission.code, asked.options).at(
                judgement.outcome
            )
        judgement = with_profile(judgement, profile, asked.options.rules)
        return judgement.model_copy(update={"seconds": asked.watch.seconds()})

    def _outcome(
        self, trial: Trial, code: str, watch: Stopwatch, alone: bool, places: ExitStack
    ) -> Outcome:
        try:
            with watch("build"):
                trial.build(code)
            self._make_room(trial, watch, alone, places)
            return self._screened(trial, watch, alone) or self._time(trial, watch)
        except Trouble as trouble:
            return verdict(trouble, trial.place, str(trial.worker.folder), trial.worker.fault_line)
        except (torch.OutOfMemoryError, NoRoom):
            if alone and self.bench.hoards(trial.worker):
                return hoarding(trial.place.input_set)
            raise

    def _make_room(self, trial: Trial, watch: Stopwatch, alone: bool, places: ExitStack) -> None:
        """Takes its places on the device, until what was held for it is given back. It stands still
        while it waits.
        """
        with watch("queue"), asleep(trial.worker, wait=False):
            every = self.bench.capacity.on_device
            count = every if alone else self.bench.places(trial.problem)
            self._take_places(places, watch, count)
            trial.crowded = alone and stays_crowded(self.bench, trial.worker)
        if alone or count == every:  # its limit followed from what others had left
            self.bench.watched(trial.worker, held=self.bench.held(trial.worker))

    def _take_places(self, held: ExitStack, watch: Stopwatch, count: int) -> None:
        """So many places on the device, first come, first served; with all of them, no other's
        memory is on it.
        """
        with watch.waiting_for(self._gathering):
            for _ in range(count):
                held.enter_context(watch.waiting_for(self._on_device))
        if 1 < count == self.bench.capacity.on_device:
            self.bench.clear()

    def _screened(
        self, trial: Trial, watch: Stopwatch, alone: bool
    ) -> Incorrect | RulesViolation | None:
        """Screens a submission; lets those be timed in between who wait for it, and has it stand
        still meanwhile.
        """
        with ExitStack() as long, leased(trial, watch, alone) as give_way:

            def pause() -> None:
                """Called again and again during a call that takes long."""
                if self.device.type == "cuda":  # where a kernel would go on
                    long.enter_context(self.bench.lease.long_call())
                else:
                    give_way(self._let_others_go_first)

            for wrong in trial.screening(
                lambda: watch("verify"), (lambda: None) if alone else pause
            ):
                long.close()
                if wrong is not None:
                    return wrong
                if not alone and self.bench.lease.wanted():
                    give_way()
        return None

    def _let_others_go_first(self) -> None:
        """Gives its places to whoever waits for one, until those are through. Hold no lease."""
        for places in (self._on_device, self._slots):
            places.release()
        time.sleep(YIELD)  # else it would take them again before those who wait wake up
        for places in (self._slots, self._on_device):
            places.acquire()

    def _time(self, trial: Trial, watch: Stopwatch) -> Outcome:
        """The outcome of a screened submission, with its roofline."""
        try:
            with self._measured(trial, watch) as outcome:
                self.bench.dismiss(trial.worker)  # it ends while what it answered is compared
        except Wrong as wrong:
            return wrong.outcome
        with watch("load"), asleep(trial.worker):
            draw = partial(trial.draw, TIMED)
            return self.bench.rooflines.added(outcome, trial.problem.sha256, trial.case, draw)

    def _begin_again(self, trial: Trial, watch: Stopwatch) -> None:
        """Constructs the submission anew in the same case."""
        with leased(trial, watch):
            trial.enter(trial.case)

    @contextmanager
    def _measured(self, trial: Trial, watch: Stopwatch) -> Iterator[Correct]:
        """Times a screened submission, and in the end compares all that it answered. Errors as
        `measure`.

        Up to `RETRIES` times again while the time is noisy, where that was asked for; the last time
        counts.
        """
        for left in reversed(range(1 + RETRIES * trial.options.retry_noisy)):
            unverified = Unverified(trial)
            try:
                outcome = self._clock(trial, unverified, watch)
                if outcome.kind == "timed" or not left:
                    yield outcome
                    return
            finally:  # also of one that failed: before that it may have answered wrongly
                with asleep(trial.worker, wait=False):
                    unverified.compare_beside_others(self.bench.lease, watch)
            self._begin_again(trial, watch)

    def _timed(self, trial: Trial, unverified: Unverified, watch: Stopwatch) -> Correct:
        """What `_measured` gives, of answers that are still to be compared. Errors as there."""
        with ExitStack() as held:
            with asleep(trial.worker, wait=False):
                held.enter_context(watch.waiting_for(self.bench.contests))
                with watch("load"):
                    partners = lent(trial, held)
            with leased(trial, watch) as give_way:
                contest = Contest.prepare(trial, partners, unverified)
                for _ in contest.warm(ahead(contest)):
                    if self.bench.lease.wanted():
                        give_way()
            with watch("queue"), asleep(trial.worker, wait=False):
                held.enter_context(self.bench.lease.exclusive())
                held.enter_context(self.bench.timing)
            with watch("time"), ended_where_it_fails(trial):
                return measure(contest)
