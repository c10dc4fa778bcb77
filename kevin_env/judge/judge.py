"""The judge of one device: builds, checks and times a submission, and gives the verdict."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import torch

from kevin_env.judge.api import JudgeError, Judgement, OnStage, Options, Pace, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import StallWatch, inform, resolve
from kevin_env.judge.job import Cancellation, Job, Stopwatch, other_inputs
from kevin_env.judge.ready import Interrupted
from kevin_env.judge.rejected import NoContext, Rejected, Unplayed
from kevin_env.judge.timing.cpu_clock import time_on_cpu
from kevin_env.judge.timing.gpu_clock import GpuClock
from kevin_env.judge.timing.session import Crowded
from kevin_env.judge.trial import TIMED, Trial
from kevin_env.judge.verdict import flags_of, hoarding, without_paths
from kevin_env.judge.workers.errors import BaselineOutOfMemory, OwnProcessKilled
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import asleep
from kevin_env.outcome import Correct, Outcome
from kevin_env.problem import Problem
from kevin_env.profile.look import Look, with_profile

Clock = Callable[[Trial], Correct]
"""Times a submission that is right on every input set. Raises what `time_on_cpu` does."""


class _Caused(Exception):
    """A submission failed for a cause that may be outside: it was killed, or lacked memory."""


AGAIN = (
    _Caused, Crowded, NoContext, OwnProcessKilled, BaselineOutOfMemory, torch.OutOfMemoryError,
)  # fmt: skip
"""After these a submission is judged again, on other inputs."""
SEEN = ("correctness", "rules")
"""Categories of verdicts that the judge sees in answers and records, whoever gave them."""
RETRIES = 2
"""How often a noisy time is measured again."""


class Judge:
    """Judges submissions on one device; safe to use from many threads.

    Args:
        device: `cpu` or `cuda:0`.
        server: A fork server for candidates that is already running.
        pace: How many calls a verdict takes; by default the entry of `PACES` for the device.
        clock: Times a submission; by default next to the reference. Tests pass a scripted one.
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
        self._stalls = StallWatch()
        self._clock = clock or (GpuClock(self.bench) if self.device.type == "cuda" else time_on_cpu)

    def judge(
        self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage,
        cancellation: Cancellation | None = None,
    ) -> Judgement:  # fmt: skip
        """Judges one submission.

        Raises:
            ProblemError: if the reference fails.
            JudgeError: if the judge fails, or is cancelled.
        """
        watch, secret = Stopwatch(on_stage), options.secret or secrets.token_hex(16)
        problem = problem.judged_as(options)
        job = Job(problem, submission, options, watch, cancellation or Cancellation())
        with ExitStack() as slot:
            with watch("queue"):
                self.bench.slots.take()
            slot.callback(self.bench.slots.give_back)
            judgement, early = None, False
            try:
                judgement = self._judged(job, secret)
            except AGAIN as error:
                early = isinstance(error, NoContext)
            if judgement is None:  # not before the error is gone: its frames hold tensors
                judgement = self._judged(job, other_inputs(secret), last=True, early=early)
            job.cancellation.require_wanted()
            if options.profile != "none" or options.sanitize:
                with watch("profile"):
                    look = Look(self.bench, problem, submission.code, options)
                    profile = look.at(judgement.outcome)
                judgement = with_profile(judgement, profile, options.rules)
            return judgement.model_copy(update={"seconds": watch.seconds()})

    def _judged(self, job: Job, secret: str, last: bool = False, early: bool = False) -> Judgement:
        """Judges once, from the first line of the submission's code to the end of its process.

        Args:
            job: What is judged.
            secret: What its inputs are drawn from.
            last: Whether it is the last try, which has a GPU for itself.
            early: Whether it gets its context before its code, which may prevent that.

        Raises:
            AGAIN: if something else may have caused its failure, unless this is the last try.
        """
        own = last or job.options.replay == "never"
        while True:
            try:
                return self._attempt(job, secret, last, early, own)
            except Interrupted:  # before it saw any input
                continue
            except Unplayed:
                own, secret = True, other_inputs(secret)

    def _attempt(self, job: Job, secret: str, last: bool, early: bool, own: bool) -> Judgement:
        """As `_judged`; with `own`, in a process of its own even if it was recorded.

        Raises:
            Interrupted: if it was ended for another submission.
            Unplayed: if its recording was played, and failed otherwise than by wrong answers.
        """
        bench, watch, options = self.bench, job.watch, job.options
        job.cancellation.require_wanted()
        with ExitStack() as ended:
            with watch("queue"):
                candidates = bench.candidates_for(job.submission.code)
                worker = ended.enter_context(candidates.candidate())
            job.cancellation.ends(worker)
            sandbox = candidates.sandbox(worker)
            job.require_protection_by(sandbox)
            trial = Trial(bench, job.problem, options, secret, worker, alone=last)
            ended.callback(trial.close)
            try:
                with watch("queue"):  # what is not known of a problem is found in the lane
                    cases = trial.cases
                if early:
                    trial.create_context()
                with watch("build"):
                    trial.build(job.submission.code)
                with ExitStack() as lane:
                    self._enter(trial, lane, watch, own)
                    for case in cases:
                        with watch("load"):
                            trial.enter(case)
                        with watch("verify"):
                            for distribution in trial.planned(timed=case is cases[-1]):
                                trial.screen(distribution)
                                if trial.seen_enough:
                                    break
                            trial.check_rules()
                    with watch("time"):
                        outcome = self._clock(trial)
                        for _ in range(0 if trial.interpreted else RETRIES * options.retry_noisy):
                            if outcome.kind == "timed":
                                break
                            outcome = self._clock(trial)
                    with watch("load"), asleep(trial.worker):
                        draw, rooflines = partial(trial.draw, TIMED), bench.problems.rooflines
                        if not trial.interpreted:
                            outcome = rooflines.added(outcome, job.problem.sha256, trial.case, draw)
            except Rejected as rejected:
                if trial.played and rejected.outcome.category not in SEEN:
                    raise Unplayed from rejected
                if not last and (rejected.killed or _lacked(rejected.outcome)):
                    raise _Caused from rejected
                if _lacked(rejected.outcome) and bench.lacks_memory():
                    raise JudgeError("other programs hold this GPU's memory") from rejected
                outcome = rejected.outcome
            except (torch.OutOfMemoryError, BaselineOutOfMemory):
                if not last or not bench.hoards(worker):
                    raise
                outcome = hoarding(None)
            return Judgement(
                outcome=outcome, seconds=watch.seconds(), device=self.info, sandbox=sandbox,
                secret=secret, log=without_paths(worker.log, str(worker.folder)),
                flags=flags_of(outcome, trial.interpreted),
                run="replayed" if trial.played else "own process",
                unrecorded=trial.recording if isinstance(trial.recording, str) else "",
            )  # fmt: skip

    def _enter(self, trial: Trial, lane: ExitStack, watch: Stopwatch, own: bool) -> None:
        """Gives a submission its context and its memory, and enters the lane.

        On a GPU both come before the lane, unless the submission is to be alone there. One that was
        recorded needs neither.
        """
        bench, worker = self.bench, trial.worker
        if bench.replayer is not None and trial.playable and not own:
            worker.dismiss()
            with watch("queue"):
                lane.enter_context(bench.lane.entered())
            lane.callback(bench.replayer.clear)
            with watch("load"):
                trial.open_recorded(bench.replayer)
            return
        if trial.alone and isinstance(self._clock, GpuClock):
            with watch("queue"), asleep(worker, wait=False):
                lane.enter_context(bench.lane.entered())
                lane.enter_context(bench.ready.closed())
                self._clock.close()  # the memory that it holds may be what is lacking
                torch.cuda.empty_cache()
            lane.callback(worker.dismiss)
            with watch("load"):
                trial.open()
            return
        with ExitStack() as ready:
            with watch("queue"):
                ready.enter_context(bench.ready.place(worker, trial.memory))
            with watch("load"):
                trial.open()
            with watch("queue"), asleep(worker, wait=False):
                lane.enter_context(bench.lane.entered())
        if self.device.type == "cuda":
            lane.callback(worker.dismiss)

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


def _lacked(outcome: Outcome) -> bool:
    """Whether the submission lacked memory, which others on a GPU may have held."""
    return outcome.category == "runtime" and outcome.kind == "out_of_memory"
