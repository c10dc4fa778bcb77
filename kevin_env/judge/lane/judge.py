"""The judge of one device: builds, checks and times a submission, and gives the verdict."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from kevin_env.judge.api import Judgement, OnStage, Options, Pace, Submission
from kevin_env.judge.device import inform, resolve
from kevin_env.judge.job import Cancellation, Job, Stopwatch, other_inputs
from kevin_env.judge.lane.bench import Bench
from kevin_env.judge.lane.clock import TIMED, time_on_cpu
from kevin_env.judge.lane.trial import Rejected, Trial
from kevin_env.judge.verdict import roofline_flags, without_paths
from kevin_env.judge.workers.baselines import OwnProcessKilled
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import asleep
from kevin_env.outcome import Correct
from kevin_env.problem import Problem
from kevin_env.profile.look import Look, with_profile

Clock = Callable[[Trial], Correct]
"""Times a submission that is right on every input set. Raises what `time_on_cpu` does."""
RETRIES = 2
"""How often a noisy time is measured again."""


class Judge:
    """Judges submissions on one device; safe to use from many threads.

    Args:
        device: `cpu`.
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
        self.info = inform(self.device)
        self.bench = Bench(self.device, self.info, server, pace, memory)
        self._clock = clock or time_on_cpu

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
        job = Job(problem, submission, options, watch, cancellation or Cancellation())
        with ExitStack() as slot:
            with watch("queue"):
                self.bench.slots.take()
            slot.callback(self.bench.slots.give_back)
            try:
                judgement = self._judged(job, secret)
            except (_Killed, OwnProcessKilled):
                judgement = self._judged(job, other_inputs(secret), last=True)
            job.cancellation.require_wanted()
            if options.profile != "none" or options.sanitize:
                with watch("profile"):
                    look = Look(self.bench, problem, submission.code, options)
                    profile = look.at(judgement.outcome)
                judgement = with_profile(judgement, profile, options.rules)
            return judgement.model_copy(update={"seconds": watch.seconds()})

    def _judged(self, job: Job, secret: str, last: bool = False) -> Judgement:
        """Judges once, from the first line of the submission's code to the end of its process.

        Raises:
            _Killed: if its process was killed by something outside, unless this is the last try.
        """
        bench, watch, options = self.bench, job.watch, job.options
        job.cancellation.require_wanted()
        with ExitStack() as ended:
            with watch("queue"):
                worker = ended.enter_context(bench.candidates.candidate())
            job.cancellation.ends(worker)
            sandbox = bench.candidates.sandbox(worker)
            job.require_protection_by(sandbox)
            trial = Trial(bench, job.problem, options, secret, worker)
            ended.callback(trial.close)
            try:
                with watch("build"):
                    trial.build(job.submission.code)
                with ExitStack() as lane:
                    with watch("queue"), asleep(worker, wait=False):
                        lane.enter_context(bench.lane.entered())
                    with watch("load"):
                        cases = trial.admit()
                    for case in cases:
                        with watch("load"):
                            trial.enter(case)
                        with watch("verify"):
                            for distribution in trial.planned(timed=case is cases[-1]):
                                trial.check(distribution)
                                if trial.seen_enough:
                                    break
                            trial.check_rules()
                    with watch("time"):
                        outcome = self._clock(trial)
                        for _ in range(RETRIES * options.retry_noisy):
                            if outcome.kind == "timed":
                                break
                            outcome = self._clock(trial)
                with watch("load"), asleep(worker):
                    draw, rooflines = partial(trial.draw, TIMED), bench.problems.rooflines
                    outcome = rooflines.added(outcome, job.problem.sha256, trial.case, draw)
            except Rejected as rejected:
                if rejected.killed and not last:
                    raise _Killed from rejected
                outcome = rejected.outcome
            return Judgement(
                outcome=outcome, seconds=watch.seconds(), device=self.info, sandbox=sandbox,
                secret=secret, log=without_paths(worker.log, str(worker.folder)),
                flags=roofline_flags(outcome),
            )  # fmt: skip

    def enter_thread(self) -> None:
        """Prepares the calling thread to judge."""

    def trouble(self) -> str | None:
        """Why this process can judge nothing else; None if all is well."""
        return None

    def close(self) -> None:
        """Ends every process."""
        self.bench.close()


class _Killed(Exception):
    """The submission's process was killed from outside."""
