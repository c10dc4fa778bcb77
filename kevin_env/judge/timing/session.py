"""The submission, the reference and a null model, ready to be timed side by side on the case of one
trial.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import SystemRandom

from kevin_env.judge.device import finish, share_of_free
from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.gate import Drawn, Gate, Player
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.job import Stopwatch
from kevin_env.judge.lease import Lease
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.baselines import PARTNER_SECONDS, Partner, ours
from kevin_env.judge.workers.pauses import asleep, awake
from kevin_env.outcome import Incorrect

TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""


AHEAD_SHARE = {"cuda": 0.1, "cpu": 0.05}
"""Of the memory that is free, by device: what may be drawn ahead, and what may wait for its
comparison. Two contests, and others' screening, share a GPU.
"""


STOCK = 3
"""Sets of the partners, which run trusted code: theirs need not be fresh. They come one after the
other, so that none is in a cache when it comes again.
"""


class Supply:
    """Input sets for the submission and for its partners.

    Args:
        trial: Draws them.
        budget: Bytes that may be drawn ahead; by default a share of the memory that is free now.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        device = trial.bench.device
        self._budget = share_of_free(AHEAD_SHARE, device) if budget is None else budget
        self._ready: deque[Drawn] = deque()
        self._others: deque[Drawn] = deque()
        self._stock = [trial.draw(TIMED)]
        self._handed = 0
        if self.fitting > STOCK:
            self._stock += [trial.draw(TIMED) for _ in range(1, STOCK)]

    @property
    def fitting(self) -> int:
        """How many sets the budget holds, with the outputs of their calls; at least 1."""
        each = self._stock[0].image.end + sum(tensor.nbytes for tensor in self._trial.outputs)
        return max(1, self._budget // max(1, each))

    def fill(self, count: int) -> None:
        """Draws so many ahead, or as many as there is room for, and one of another distribution."""
        if not self._others:
            self._others.append(self._other())
        while len(self._ready) < min(count, self.fitting):
            self._ready.append(self._trial.draw(TIMED))
        finish(self._trial.bench.device)

    def take(self, count: int) -> list[Drawn]:
        """So many sets that nobody has seen; those that are missing are drawn now."""
        ahead = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        return ahead + [self._trial.draw(TIMED) for _ in range(count - len(ahead))]

    def other(self) -> Drawn:
        """One of another distribution, where the problem has any, which stands among timed ones and
        is not timed.

        So whoever is right for timed inputs alone has to look at them.
        """
        return self._others.popleft() if self._others else self._other()

    def _other(self) -> Drawn:
        others = [each for each in self._trial.distributions if each != TIMED] or [TIMED]
        return self._trial.draw(SystemRandom().choice(others))

    def stock(self, count: int) -> list[Drawn]:
        """So many sets of the partners' that come next."""
        chosen = [
            self._stock[(self._handed + number) % len(self._stock)] for number in range(count)
        ]
        self._handed += count
        return chosen


WAITING_SHARE = {"cuda": 0.2, "cpu": 0.05}
"""Of the memory that is free, by device: what may wait. What does not fit is compared while nobody
else has it.
"""


STAY = 0.02
"""Seconds for which answers are compared before others are let go first: as long as some calls that
are screened. With one answer at a time, a submission would be told of only after dozens of others
had been timed.
"""


class Wrong(Exception):
    """A timed call gave a wrong answer."""

    def __init__(self, outcome: Incorrect) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Unverified:
    """Answers of one submission that are still to be compared.

    Args:
        trial: Of the submission; its case stays the same until all is compared.
        budget: Bytes that may wait; by default a share of the memory that is free now.
    """

    def __init__(self, trial: Trial, budget: int | None = None) -> None:
        self._trial = trial
        self._budget = (
            share_of_free(WAITING_SHARE, trial.bench.device) if budget is None else budget
        )
        self._waiting: deque[tuple[Answer, Drawn]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def held(self) -> int:
        """Bytes of the inputs and outputs that wait."""
        return sum(drawn.image.end + answer.bytes for answer, drawn in self._waiting)

    def add(self, answer: Answer, drawn: Drawn) -> None:
        """Has an answer compared later; where too much waits, compares what waits longest.

        Raises:
            Wrong: when one that is compared now is wrong.
        """
        self._waiting.append((answer, drawn))
        while self.held > self._budget:
            self.compare(until=lambda: True)

    def compare(self, until: Callable[[], bool] = lambda: False) -> None:
        """Compares one answer after the other, until something holds after one of them or none is
        left.

        Raises:
            Wrong: at the first one that is wrong; the others are let go of.
        """
        while self._waiting:
            answer, drawn = self._waiting.popleft()
            wrong = self._trial.check(answer, drawn)
            if wrong is not None:
                self._waiting.clear()
                raise Wrong(wrong)
            if until():
                return

    def compare_beside_others(self, lease: Lease, watch: Stopwatch) -> None:
        """Compares all under the shared lease; now and then those are let go first who want the
        device alone.

        Raises:
            Wrong: as `compare`.
        """
        while self._waiting:
            with ExitStack() as held:
                with watch("queue"):
                    held.enter_context(lease.shared())
                with watch("verify"):
                    end = time.monotonic() + STAY
                    self.compare(until=partial(_is_due, lease, end))


def _is_due(lease: Lease, end: float) -> bool:
    """Whether others are to be let go first."""
    return time.monotonic() >= end and lease.wanted()


def lent(trial: Trial, until: ExitStack) -> tuple[Partner, Partner]:
    """Processes for the reference and the null model, until a stack is closed. Hold
    `bench.contests` and no lease.
    """
    lend = trial.bench.partners.lent
    reference = until.enter_context(
        lend(f"{trial.problem.sha256}/{trial.case.name}/{trial.options.baseline}")
    )
    return reference, until.enter_context(lend("null"))


@dataclass
class Contest:
    """Three players at the gate of one trial.

    Attributes:
        trial: A trial that has been screened; its player is the submission.
        reference, null: The partners, which run trusted code: their inputs need not be fresh.
        unverified: Takes the submission's answers, which are all to be compared before anything is
            told.
        supply: Gives timed inputs.
        apart: The partners' gate. On a CPU it is another one: a submission that is woken while it
            should stand still could write to what it shares with a reference, which then fails, and
            that is the judge's failure.
        draw: Draws the order in which they are called.
    """

    trial: Trial
    reference: Player
    null: Player
    unverified: Unverified
    supply: Supply
    apart: Gate
    draw: SystemRandom = field(default_factory=SystemRandom)

    @classmethod
    def prepare(
        cls, trial: Trial, partners: tuple[Partner, Partner], unverified: Unverified
    ) -> "Contest":
        """Loads and constructs the models of partners. Hold `bench.contests` and the shared lease."""
        reference, null = (partner.worker for partner in partners)
        compiled, on_gpu = trial.options.baseline == "compile", trial.bench.device.type == "cuda"
        trial.bench.partners.rest_now()
        partners[0].load(source_of(trial.problem, trial.case.name), "Model")
        partners[1].load(null_code(), "ModelNew")
        supply = Supply(trial)
        with ours():
            trial.construct(reference, PARTNER_SECONDS, compiled)
            construct_null(null, on_gpu)
            apart = (
                trial.gate
                if on_gpu
                else trial.open_gate(supply.stock(1)[0].image.end, trial.gate.answer_bytes)
            )
            players = [trial.admit(worker, apart, PARTNER_SECONDS) for worker in (reference, null)]
        return cls(trial, players[0], players[1], unverified, supply, apart)

    def warm(self, ahead: int) -> Iterator[None]:
        """Calls the partners a few times, and draws so many input sets; others may have the device
        in between.
        """
        for player in (self.reference, self.null) * self.trial.bench.pace.warm_ups:
            sets = self.supply.stock(1)
            self.trial.trim()
            with ours(), asleep(self.trial.worker):
                self.apart.call(player, sets[0], PARTNER_SECONDS)
            yield
        self.supply.fill(ahead)
        yield

    @contextmanager
    def still(self) -> Iterator[None]:
        """All three stand still, except while one is called: none disturbs another, all wake up
        alike.
        """
        everyone = (self.trial.worker, self.reference.worker, self.null.worker)
        try:
            for worker in everyone:
                worker.attend(True)
                worker.freeze(True, wait=False)
            self.require_still()
            yield
        finally:
            for worker in everyone:
                worker.attend(False)
                worker.freeze(False, wait=False)

    def require_still(self) -> None:
        """Waits until all three stand still; `awake` does not.

        Raises:
            Trouble: when the submission is gone.
            JudgeError: when a partner is.
        """
        self.trial.worker.settle()
        with ours():
            for partner in (self.reference, self.null):
                partner.worker.settle()

    def sets_of(self, player: Player, count: int) -> list[Drawn]:
        """Inputs for so many calls: of the submission such as nobody has seen."""
        return self.supply.take(count) if player is self.trial.player else self.supply.stock(count)

    def call(self, player: Player, drawn: Drawn | None = None) -> Answer:
        """One timed call on a CPU, inside `still`. The submission's goes to `unverified`.

        Args:
            player: Whose.
            drawn: Its inputs; by default timed ones.

        Raises:
            Wrong: when a timed call is wrong and is compared now already.
            Trouble: when the submission fails.
            JudgeError: when a partner does.
        """
        drawn = drawn or self.sets_of(player, 1)[0]
        self.require_still()
        if player is not self.trial.player:
            with ours(), awake(player.worker):
                return self.apart.call(player, drawn, PARTNER_SECONDS)
        with awake(player.worker):
            answer = self.trial.run(drawn)
        self.unverified.add(answer, drawn)
        return answer
