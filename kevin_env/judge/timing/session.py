"""The submission, the reference and a null model, ready to be timed side by side in one case."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import SystemRandom

from kevin_env.judge.device import finish, share_of_free
from kevin_env.judge.handshake.handshake import Answer, Drawn, Player
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.job import Stopwatch
from kevin_env.judge.lane.trial import Trial
from kevin_env.judge.lease import Lease
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.workers.baselines import BASELINE_SECONDS, Baseline, as_judge_error
from kevin_env.judge.workers.worker import asleep
from kevin_env.outcome import Incorrect

TIMED = "own"
"""The distribution of timed inputs: the time of some kernels depends on the values."""
AHEAD_SHARE = {"cuda": 0.1, "cpu": 0.05}
"""Share of the free memory for input sets drawn ahead.

Two sessions, and the screening of others, may share a GPU.
"""
WAITING_SHARE = {"cuda": 0.2, "cpu": 0.05}
"""Share of the free memory for answers that wait to be compared.

Further answers are compared at once, while the device is held alone.
"""
STOCK = 3
"""Input sets of the baselines, used in turn so that none is cached when it is used again."""
STAY = 0.02
"""Seconds of comparing before waiting threads may have the device first: as long as some calls.

If it were released after each answer, dozens of others would be timed before the comparison ends.
"""


class InputSupply:
    """Timed input sets of one session, drawn while the device is still shared.

    They lie in the judge's memory and are secret until they are written to the inbox. Each is used
    once, and follows from the secret and its number, whenever it is drawn.

    Args:
        run: Draws them.
        budget: Bytes that may be drawn ahead; by default a share of the free memory.
    """

    def __init__(self, run: SubmissionRun | Trial, budget: int | None = None) -> None:
        self._run = run
        device = run.bench.device
        self._budget = share_of_free(AHEAD_SHARE, device) if budget is None else budget
        self._ready: deque[Drawn] = deque()
        self._untimed: deque[Drawn] = deque()
        self._stock = [run.draw(TIMED)]
        self._used = 0
        if self.fitting > STOCK:
            self._stock += [run.draw(TIMED) for _ in range(1, STOCK)]

    @property
    def fitting(self) -> int:
        """How many sets the budget holds, with the outputs of their calls; at least 1."""
        each = self._stock[0].image.end + sum(tensor.nbytes for tensor in self._run.outputs)
        return max(1, self._budget // max(1, each))

    def fill(self, count: int) -> None:
        """Draws up to `count` timed sets, as many as fit, and an untimed one."""
        if not self._untimed:
            self._untimed.append(self._draw_untimed())
        while len(self._ready) < min(count, self.fitting):
            self._ready.append(self._run.draw(TIMED))
        finish(self._run.bench.device)

    def take(self, count: int) -> list[Drawn]:
        """Fresh sets; those that were not drawn ahead are drawn now."""
        ahead = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        return ahead + [self._run.draw(TIMED) for _ in range(count - len(ahead))]

    def untimed(self) -> Drawn:
        """A set of another distribution, if there is any, to hide among timed ones.

        A submission that is only right for timed inputs therefore has to inspect all of them.
        """
        return self._untimed.popleft() if self._untimed else self._draw_untimed()

    def _draw_untimed(self) -> Drawn:
        others = [each for each in self._run.distributions if each != TIMED] or [TIMED]
        return self._run.draw(SystemRandom().choice(others))

    def stock(self, count: int) -> list[Drawn]:
        """The next sets for baselines, which run trusted code and need no fresh ones."""
        numbers = range(self._used, self._used + count)
        self._used += count
        return [self._stock[number % len(self._stock)] for number in numbers]


class WrongAnswer(Exception):
    """A timed call gave a wrong answer."""

    def __init__(self, outcome: Incorrect) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Crowded(Exception):
    """Others on the device may have disturbed a submission, which is judged again without them."""


class UnverifiedAnswers:
    """Timed answers of one submission, compared later, when the device is no longer held alone.

    Inputs and outputs lie in the judge's memory, out of the submission's reach. They are compared
    in the order of the calls, and all of them before anything is reported.

    Args:
        run: The submission; its case stays the same until all are compared.
        budget: Bytes that may wait; by default a share of the free memory.
    """

    def __init__(self, run: SubmissionRun | Trial, budget: int | None = None) -> None:
        self._run = run
        self._budget = share_of_free(WAITING_SHARE, run.bench.device) if budget is None else budget
        self._waiting: deque[tuple[Answer, Drawn]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def held(self) -> int:
        """Bytes of the inputs and outputs that wait."""
        return sum(drawn.image.end + answer.bytes for answer, drawn in self._waiting)

    def add(self, answer: Answer, drawn: Drawn) -> None:
        """Adds an answer; compares the oldest ones if too many bytes wait.

        Raises:
            WrongAnswer: if one that is compared now is wrong.
        """
        self._waiting.append((answer, drawn))
        while self.held > self._budget:
            self.compare(until=lambda: True)

    def compare(self, until: Callable[[], bool] = lambda: False) -> None:
        """Compares answers until `until` holds after one of them, or none is left.

        Raises:
            WrongAnswer: at the first one that is wrong; the others are dropped.
        """
        while self._waiting:
            answer, drawn = self._waiting.popleft()
            wrong = self._run.check(answer, drawn)
            if wrong is not None:
                self._waiting.clear()
                raise WrongAnswer(wrong)
            if until():
                return

    def compare_beside_others(self, lease: Lease, watch: Stopwatch) -> None:
        """Compares all under the shared lease, and gives way to those that want the device alone.

        Raises:
            WrongAnswer: as `compare`.
        """
        while self._waiting:
            with ExitStack() as held:
                with watch("queue"):
                    held.enter_context(lease.shared())
                with watch("verify"):
                    end = time.monotonic() + STAY
                    self.compare(until=partial(_gives_way, lease, end))


def _gives_way(lease: Lease, end: float) -> bool:
    return time.monotonic() >= end and lease.wanted()


def borrow_baselines(run: SubmissionRun, until: ExitStack) -> tuple[Baseline, Baseline]:
    """Processes for the reference and the null model, until a stack is closed.

    Hold `bench.sessions` and no lease.
    """
    lend = run.bench.baselines.lent
    key = f"{run.problem.sha256}/{run.case.name}/{run.options.baseline}"
    reference = until.enter_context(lend(key))
    return reference, until.enter_context(lend("null"))


@dataclass
class TimingSession:
    """Three players in the case of one submission run.

    Attributes:
        run: A run that has been screened; its player is the submission.
        reference, null: The baselines, which run trusted code and need no fresh inputs.
        unverified: Collects the submission's answers, which are compared before anything is
            reported.
        supply: Gives timed inputs.
        draw: Draws the order of calls.
        nothing: Inputs of the null model, which reads none; None: those of the baselines.
        alone: Whether no other submission is ready beside this one.
    """

    run: SubmissionRun | Trial
    reference: Player
    null: Player
    unverified: UnverifiedAnswers
    supply: InputSupply
    nothing: Drawn | None = None
    alone: bool = True
    draw: SystemRandom = field(default_factory=SystemRandom)

    @classmethod
    def prepare(
        cls, run: SubmissionRun, baselines: tuple[Baseline, Baseline], unverified: UnverifiedAnswers
    ) -> "TimingSession":
        """Loads and constructs the baselines. Hold `bench.sessions` and the shared lease."""
        reference, null = (each.worker for each in baselines)
        compiled, on_gpu = run.options.baseline == "compile", run.bench.device.type == "cuda"
        run.bench.baselines.rest_now()
        baselines[0].load(source_of(run.problem, run.case.name), "Model")
        baselines[1].load(null_code(), "ModelNew")
        supply = InputSupply(run)
        with as_judge_error():
            run.construct(reference, BASELINE_SECONDS, compiled)
            construct_null(null, on_gpu)
            players = [
                run.handshake.admit(worker, BASELINE_SECONDS, trusted=True)
                for worker in (reference, null)
            ]
        return cls(run, players[0], players[1], unverified, supply)

    def warm(self, ahead: int) -> Iterator[None]:
        """Calls the baselines and draws `ahead` input sets; yields between the steps."""
        for player in (self.reference, self.null) * self.run.bench.pace.warm_ups:
            sets = self.sets_of(player, 1)
            self.run.trim()
            with as_judge_error(), asleep(self.run.worker):
                player.home.call(player, sets[0], BASELINE_SECONDS)
            yield
        self.supply.fill(ahead)
        yield

    @contextmanager
    def still(self) -> Iterator[None]:
        """Stops all three processes, so that each runs only while its calls are queued.

        Raises:
            CandidateError: if the submission is gone.
            JudgeError: if a baseline is.
        """
        everyone = (self.run.worker, self.reference.worker, self.null.worker)
        try:
            for worker in everyone:
                worker.freeze(True, wait=False)
            self.run.worker.settle()
            with as_judge_error():
                self.reference.worker.settle()
                self.null.worker.settle()
            yield
        finally:
            for worker in everyone:
                worker.freeze(False, wait=False)

    def sets_of(self, player: Player, count: int) -> list[Drawn]:
        """Inputs for `count` calls; fresh ones for the submission."""
        if player is self.null and self.nothing is not None:
            return [self.nothing] * count
        return self.supply.take(count) if player is self.run.player else self.supply.stock(count)
