"""The submission, the reference and a null model, ready to be timed side by side in one case."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import SystemRandom

from kevin_env.judge.device import free_memory
from kevin_env.judge.handshake.handshake import Answer, Drawn, Player
from kevin_env.judge.rejected import Rejected
from kevin_env.judge.trial import TIMED, Trial
from kevin_env.judge.workers.errors import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.worker import asleep

AT_ONCE_SHARE = 0.1
"""Share of the free memory for the input sets of a chain."""
WAITING_SHARE = 0.2
"""Share of the free memory for answers that wait to be compared."""
STOCK = 3
"""Input sets of the baselines, used in turn so that none is cached when it is used again."""


class InputSupply:
    """Timed input sets of one session.

    They lie in the judge's memory and are secret until they are written to the inbox. The device
    draws them while the processes queue the calls.

    Args:
        trial: Draws them.

    Attributes:
        fitting: How many sets fit at once, with the outputs of their calls; at least 1.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        each = trial.sizes.inputs + trial.outbox_bytes
        budget = int(AT_ONCE_SHARE * free_memory(trial.bench.device))
        self.fitting = max(1, budget // max(1, each))
        self._stock = [trial.draw(TIMED) for _ in range(STOCK if self.fitting > STOCK else 1)]
        self._used = 0

    def take(self, count: int) -> list[Drawn]:
        """Fresh sets."""
        return [self._trial.draw(TIMED) for _ in range(count)]

    def untimed(self) -> Drawn:
        """A set of another distribution, if there is any, to hide among timed ones.

        A submission that is only right for timed inputs therefore has to inspect all of them.
        """
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
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._most = int(WAITING_SHARE * free_memory(trial.bench.device))
        self._waiting: deque[tuple[Answer, Drawn]] = deque()

    def add(self, answer: Answer, drawn: Drawn) -> None:
        """Adds an answer; compares them if too many bytes wait. Raises as `compare`."""
        self._waiting.append((answer, drawn))
        if sum(drawn.image.end + answer.bytes for answer, drawn in self._waiting) > self._most:
            self.compare()

    def compare(self) -> None:
        """Compares all that wait.

        Raises:
            Rejected: at the first one that is wrong; the others are dropped.
        """
        while self._waiting:
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

    def warm(self) -> None:
        """Calls the baselines."""
        new = (self.reference, self.null) if self.null.first else (self.reference,)
        for player in new * self.trial.bench.pace.warm_ups:
            sets = self.sets_of(player, 1)
            self.trial.trim()
            with as_judge_error(), asleep(self.trial.worker):
                player.home.call(player, sets[0], BASELINE_SECONDS)

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
