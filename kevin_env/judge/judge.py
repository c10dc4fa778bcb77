"""The judge of one device: builds, checks and times a submission, and gives the verdict."""

import hashlib
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import torch

from kevin_env.judge.api import (
    MOST_BUILD_SECONDS,
    JudgeError,
    Judgement,
    OnStage,
    Options,
    Pace,
    Submission,
)
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import StallWatch, inform, resolve
from kevin_env.judge.inputs.facts import KnownCase
from kevin_env.judge.job import Cancellation, Job, Stopwatch, other_inputs
from kevin_env.judge.precompile import Recording
from kevin_env.judge.ready import Interrupted
from kevin_env.judge.rejected import NoContext, Rejected, Unplayed
from kevin_env.judge.screening import screen
from kevin_env.judge.timing.cpu_clock import CpuClock
from kevin_env.judge.timing.gpu_clock import GpuClock
from kevin_env.judge.timing.session import Crowded
from kevin_env.judge.trial import TIMED, Trial
from kevin_env.judge.verdict import flag_name, flags_of, hoarding, without_paths
from kevin_env.judge.workers.errors import (
    BASELINE_SECONDS,
    BaselineOutOfMemory,
    CandidateError,
    OwnProcessKilled,
)
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker, asleep
from kevin_env.outcome import Correct, Frozen, Outcome, withheld
from kevin_env.problem import KernelFile, Problem, ProblemError, baseline_of
from kevin_env.profile.look import Look, with_profile

Clock = Callable[[Trial], Correct]
"""Times a submission that is right on every input set. Raises what `CpuClock` does."""


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


class VerifiedBaseline(Frozen):
    """A baseline that was accepted on this device."""

    outcome: Correct


class HeldOut:
    """The held-out cases of a trial: nothing that a submission saw there is ever reported.

    It sees them after all others, so that nothing of them can be in what it did or said before.
    """

    def __init__(self, trial: Trial, worker: Worker) -> None:
        self._trial, self._worker = trial, worker
        self._log: str | None = None

    @property
    def log(self) -> str:
        """What the submission printed before it saw one."""
        return self._worker.log if self._log is None else self._log

    def record(self) -> None:
        """Records them, if the other cases have been recorded.

        Otherwise the process must not know them yet, so that what their shapes need is compiled in
        their first calls, in the lane.

        Raises:
            Unplayed: if they cannot be. The process knows them by then, and is used no further.
        """
        trial, hidden = self._trial, self._cases()
        if not hidden or not trial.playable:
            return
        self._log = self._worker.log
        try:
            further = trial.recorded(hidden, trial.options.build_timeout)
        except CandidateError as error:
            raise Unplayed("a held-out case could not be recorded") from error
        assert isinstance(trial.recording, Recording)
        if isinstance(further, str) or not further.holds(hidden):
            raise Unplayed("a held-out case could not be recorded")
        trial.recording = trial.recording.with_cases(further)

    def check(self) -> None:
        """Calls the submission in them.

        Raises:
            Rejected: with an outcome that says no more than its kind.
        """
        trial, hidden = self._trial, self._cases()
        if not hidden:
            return
        self._log = self.log
        try:
            for known in hidden:
                trial.enter(known)
                screen(trial, timed=False)
                trial.check_rules()
        except Rejected as rejected:
            told = withheld(rejected.outcome, trial.problem.hidden)
            raise Rejected(told, rejected.killed) from rejected

    def _cases(self) -> tuple[KnownCase, ...]:
        return self._trial.bench.facts_of(self._trial.problem).hidden


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
        if self.device.type == "cuda":
            from kevin_env.judge.compare import kernels

            threading.Thread(target=kernels.prepare, args=(self.device,), name="kernels").start()
        self._stalls, self._verifying = StallWatch(), threading.Lock()
        own = GpuClock if self.device.type == "cuda" else CpuClock
        self._clock = clock or own(self.bench)

    def judge(
        self, problem: Problem, submission: Submission, options: Options, on_stage: OnStage,
        cancellation: Cancellation | None = None,
    ) -> Judgement:  # fmt: skip
        """Judges one submission.

        Raises:
            ProblemError: if the reference fails.
            JudgeError: if the judge fails, or is cancelled.
        """
        problem = problem.judged_as(options)
        self.verify_baseline(problem, options)
        watch, secret = Stopwatch(on_stage), options.secret or secrets.token_hex(16)
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

    def verify_baseline(self, problem: Problem, options: Options) -> None:
        """Verifies a kernel that is the baseline, as a submission and once per device.

        It may take as long as tuning does.

        Raises:
            ProblemError: if it is not right, or runs in Triton's interpreter.
            JudgeError: if the judge fails.
        """
        baseline = baseline_of(options, problem, self.device.type == "cuda")
        if not isinstance(baseline, KernelFile):
            return

        def find() -> VerifiedBaseline:
            as_submission = Options(
                device=options.device, inputs=options.inputs, dtype=options.dtype,
                backward=options.backward, build_timeout=MOST_BUILD_SECONDS,
                require_sandbox=options.require_sandbox, call_timeout=BASELINE_SECONDS,
            )  # fmt: skip
            submission = Submission(code=baseline.code)
            judgement = self.judge(problem, submission, as_submission, lambda _: None)
            outcome, name = judgement.outcome, f"{problem.id}: its baseline {baseline.name!r}"
            if outcome.category != "correct":
                told = f"{outcome.category}/{outcome.kind}: {outcome.message}"
                raise ProblemError(f"{name} is not accepted: {told}")
            if any(flag_name(each) == "interpreted" for each in judgement.flags):
                raise ProblemError(f"{name} runs in Triton's interpreter here; choose another")
            return VerifiedBaseline(outcome=outcome)

        code = hashlib.sha256(baseline.code.encode()).hexdigest()[:16]
        kind, held = f"baseline-{options.inputs}-{code}", lambda: self._verifying
        self.bench.facts.kept(kind, problem, VerifiedBaseline, find, held)

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
            held_out = HeldOut(trial, worker)
            ended.callback(trial.close)
            try:
                with watch("queue"):  # what is not known of a problem is found in the lane
                    cases = trial.cases
                if early:
                    trial.create_context()
                with watch("build"):
                    trial.build(job.submission.code)
                    if not own:
                        held_out.record()
                with ExitStack() as lane:
                    self._enter(trial, lane, watch, own)
                    for case in cases:
                        with watch("load"):
                            trial.enter(case)
                        with watch("verify"):
                            screen(trial, timed=case is cases[-1])
                            trial.check_rules()
                    with watch("time"):
                        outcome = self._clock(trial)
                        for _ in range(0 if trial.interpreted else RETRIES * options.retry_noisy):
                            if outcome.kind == "timed":
                                break
                            outcome = self._clock(trial)
                    with watch("load"), asleep(trial.worker):
                        draw, rooflines = partial(trial.draw, TIMED), bench.rooflines
                        if not trial.interpreted:
                            outcome = rooflines.added(outcome, job.problem.sha256, trial.case, draw)
                    with watch("verify"):
                        held_out.check()
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
                secret=secret, log=without_paths(held_out.log, str(worker.folder)),
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
