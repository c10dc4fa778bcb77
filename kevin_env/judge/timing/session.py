"""The submission, the reference and a null model, ready to be timed side by side on the case of one
trial.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import SystemRandom

from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.gate import Drawn, Gate, Player
from kevin_env.judge.inputs.overrides import source_of
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.timing.supply import Supply
from kevin_env.judge.timing.unverified import Unverified
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.baselines import PARTNER_SECONDS, Partner, ours
from kevin_env.judge.workers.pauses import asleep, awake


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
