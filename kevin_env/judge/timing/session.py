"""The submission, the reference and a null model, ready to be timed side by side in one case."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import SystemRandom

from kevin_env.judge.device import finish, free_memory
from kevin_env.judge.handshake.handshake import Answer, Drawn, Player
from kevin_env.judge.rejected import Rejected
from kevin_env.judge.trial import TIMED, Trial
from kevin_env.judge.workers.errors import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.worker import asleep

AHEAD_SHARE = 0.1
"""Share of the free memory for input sets drawn ahead."""
WAITING_SHARE = 0.2
"""Share of the free memory for answers that wait to be compared; further ones are compared at once.
"""
STOCK = 3
"""Input sets of the baselines, used in turn so that none is cached when it is used again."""


class InputSupply:
    """Timed input sets of one session.

    They lie in the judge's memory and are secret until they are written to the inbox. Each is used
    once, and follows from the secret and its number, whenever it is drawn.

    Args:
        trial: Draws them.
        budget: Bytes that may be drawn ahead; by default a share of the free memory.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        device = trial.bench.device
        self._budget = int(AHEAD_SHARE * free_memory(device)) if budget is None else budget
        self._ready: deque[Drawn] = deque()
        self._untimed: deque[Drawn] = deque()
        self._stock = [trial.draw(TIMED)]
        self._used = 0
        if self.fitting > STOCK:
            self._stock += [trial.draw(TIMED) for _ in range(1, STOCK)]

    @property
    def fitting(self) -> int:
        """How many sets the budget holds, with the outputs of their calls; at least 1."""
        each = self._stock[0].image.end + self._trial.outbox_bytes
        return max(1, self._budget // max(1, each))

    def fill(self, count: int) -> None:
        """Draws up to `count` timed sets, as many as fit, and an untimed one if several do."""
        if not self._untimed and self.fitting > 1:
            self._untimed.append(self._draw_untimed())
        while len(self._ready) < min(count, self.fitting):
            self._ready.append(self._trial.draw(TIMED))
        finish(self._trial.bench.device)

    def take(self, count: int) -> list[Drawn]:
        """Fresh sets; those that were not drawn ahead are drawn now."""
        ahead = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        return ahead + [self._trial.draw(TIMED) for _ in range(count - len(ahead))]

    def untimed(self) -> Drawn:
        """A set of another distribution, if there is any, to hide among timed ones.

        A submission that is only right for timed inputs therefore has to inspect all of them.
        """
        return self._untimed.popleft() if self._untimed else self._draw_untimed()

    def _draw_untimed(self) -> Drawn:
        others = [each for each in self._trial.distributions if each != TIMED] or [TIMED]
        return self._trial.draw(SystemRandom().choice(others))

    def stock(self, count: int) -> list[Drawn]:
        """The next sets for baselines, which run trusted code and need no fresh ones."""
        numbers = range(self._used, self._used + count)
        self._used += count
        return [self._stock[number % len(self._stock)] for number in numbers]


class Crowded(Exception):
    """Others on the device may have disturbed a submission, which is judged again without them."""


class UnverifiedAnswers:
    """Timed answers of one submission, compared once all have been timed.

    Inputs and outputs lie in the judge's memory, out of the submission's reach. They are compared
    in the order of the calls, and all of them before anything is reported.

    Args:
        trial: Of the submission; its case stays the same until all are compared.
        budget: Bytes that may wait; by default a share of the free memory.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        share = int(WAITING_SHARE * free_memory(trial.bench.device))
        self._budget = share if budget is None else budget
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
            Rejected: if one that is compared now is wrong.
        """
        self._waiting.append((answer, drawn))
        while self.held > self._budget:
            self._compare_oldest()

    def compare(self) -> None:
        """Compares all that wait.

        Raises:
            Rejected: at the first one that is wrong; the others are dropped.
        """
        while self._waiting:
            self._compare_oldest()

    def _compare_oldest(self) -> None:
        answer, drawn = self._waiting.popleft()
        wrong = self._trial.check(answer, drawn)
        if wrong is not None:
            self._waiting.clear()
            raise Rejected(wrong)


@dataclass
class TimingSession:
    """Three players in the case of one submission.

    Attributes:
        trial: It has been screened; its player is the submission.
        reference, null: The baselines, which run trusted code and need no fresh inputs.
        unverified: Collects the submission's answers, which are compared before anything is
            reported.
        supply: Gives timed inputs.
        draw: Draws the order of calls.
        nothing: Inputs of the null model, which reads none.
    """

    trial: Trial
    reference: Player
    null: Player
    unverified: UnverifiedAnswers
    supply: InputSupply
    nothing: Drawn
    draw: SystemRandom = field(default_factory=SystemRandom)

    def warm(self, ahead: int) -> None:
        """Calls the baselines and draws `ahead` input sets."""
        new = (self.reference, self.null) if self.null.first else (self.reference,)
        for player in new * self.trial.bench.pace.warm_ups:
            sets = self.sets_of(player, 1)
            self.trial.trim()
            with as_judge_error(), asleep(self.trial.worker):
                player.home.call(player, sets[0], BASELINE_SECONDS)
        self.supply.fill(ahead)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Stops all three processes, so that each runs only while its calls are queued.

        Raises:
            CandidateError: if the submission is gone.
            JudgeError: if a baseline is.
        """
        everyone = (self.trial.worker, self.reference.worker, self.null.worker)
        try:
            for worker in everyone:
                worker.freeze(True, wait=False)
            self.trial.worker.settle()
            with as_judge_error():
                self.reference.worker.settle()
                self.null.worker.settle()
            yield
        finally:
            for worker in everyone:
                worker.freeze(False, wait=False)

    def sets_of(self, player: Player, count: int) -> list[Drawn]:
        """Inputs for `count` calls; fresh ones for the submission.

        The reference gets fresh ones, too, if its host works while it is timed: what libraries
        know of shapes that it takes from values would make it faster.
        """
        if player is self.null:
            return [self.nothing] * count
        fresh = player is self.trial.player or player.host_driven
        return self.supply.take(count) if fresh else self.supply.stock(count)
