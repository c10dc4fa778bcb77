"""Times of the submission and the reference, taken in turn under the exclusive lease. Every timed call is checked.

Gated calls decide, bursts refine: a burst's figure counts unless it lies below the gated one by more than the
allowance, because a burst shows several inputs at once.
"""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kevin_env.candidate import tree
from kevin_env.judge import timing
from kevin_env.judge.bench import PARTNER_SECONDS, null_code, ours
from kevin_env.judge.floor import Floor
from kevin_env.judge.gate import Answer, Drawn, Gate, Player
from kevin_env.judge.timing import Pair, Speedup
from kevin_env.judge.trial import Trial
from kevin_env.judge.worker import Trouble, Worker
from kevin_env.outcome import Correct, Incorrect

TURNS = {"cpu": (7, 9), "cuda": (5, 7)}
"""Bounds of the random number of turns in one round, by device. A turn gives one pair on a CPU, two on a GPU."""
LEAST_PAIRS = 7
ROUNDS = {"cpu": 2, "cuda": 3}
SECONDS = 4.0
"""No further turn begins after this long, once there are `LEAST_PAIRS`."""
WARM_UPS = 3
TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""
WINDOWS = {"cpu": 2, "cuda": 3}
"""Windows of each side in a turn. On a CPU the shortest counts: others' work only ever lengthens one. On a GPU all but
the first count: a process that has stood still launches slowly once. Among them, at a random place, is one more on any
distribution, which is verified and not timed: nobody knows by counting which inputs come under the clock."""


class Wrong(Exception):
    """A timed call gave a wrong answer."""

    def __init__(self, outcome: Incorrect) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@dataclass
class Contest:
    """Submission, reference and null kernel at the gate of one trial.

    Attributes:
        trial: A trial that has been screened.
        reference, null: The partners.
    """

    trial: Trial
    reference: Player
    null: Player

    @classmethod
    def prepare(cls, trial: Trial) -> "Contest":
        """Starts, constructs and warms the partners. Hold `bench.timing` and the shared lease."""
        bench, compiled = trial.bench, trial.options.baseline == "compile"
        key = f"{trial.problem.sha256}/{trial.case.name}/{trial.options.baseline}"
        with ours():
            reference = bench.partner(key, trial.reference_code(), "Model")
            trial.construct(reference, PARTNER_SECONDS, compiled)
            null = bench.partner("null", null_code(), "ModelNew")
            _construct_null(trial, null)
            players = [trial.admit(worker, trial.gate, PARTNER_SECONDS) for worker in (reference, null)]
        contest = cls(trial, players[0], players[1])
        for player in players:
            for _ in range(WARM_UPS):
                with ours():
                    trial.gate.call(player, [trial.draw(TIMED)], 1, PARTNER_SECONDS)
        return contest

    @contextmanager
    def still(self) -> Iterator[None]:
        """All three stand still, except while one is in its window: none disturbs another, all wake up alike."""
        partners = [self.reference.worker, self.null.worker]
        with ours():
            for partner in partners:
                partner.freeze(True)
        self.trial.worker.freeze(True)
        try:
            yield
        finally:
            for worker in (self.trial.worker, *partners):
                with suppress(Trouble):  # one that is gone has been noticed already
                    worker.freeze(False)

    def gated(self) -> Speedup:
        """The speedup from gated calls: windows less the null kernel's. Inside `still`.

        Raises:
            Wrong: when a timed call is wrong.
            Trouble: when the submission fails.
            JudgeError: when a partner does.
        """
        start, device = time.monotonic(), self.trial.bench.device.type
        windows: list[dict[str, float]] = []
        for _ in range(ROUNDS[device]):
            for _ in range(random.SystemRandom().randint(*TURNS[device])):
                windows += self._turn()
                if len(windows) >= LEAST_PAIRS and time.monotonic() - start > SECONDS:
                    return _less_gate(windows)
            if _less_gate(windows).spread <= timing.STEADY:
                break
        return _less_gate(windows)

    def passes(self, player: Player, gate: Gate, sets: list[list[Drawn]], count: int) -> list[Answer]:
        """One pass of `count` calls after the other, of one player, while the others stand still.

        The submission's answers are to be given to `verify`. Errors as `gated`.
        """
        if player is self.trial.player:
            with awake(player.worker):
                return [self.trial.run(each, count) for each in sets]
        with ours(), awake(player.worker):
            return [gate.call(player, each, count, PARTNER_SECONDS) for each in sets]

    def verify(self, answer: Answer, sets: list[Drawn]) -> None:
        """Compares every output of a pass of the submission.

        Raises:
            Wrong: when one is wrong.
        """
        wrong = self.trial.check(answer, sets)
        if wrong is not None:
            raise Wrong(wrong)

    def _turn(self) -> list[dict[str, float]]:
        """Windows of each, in random order, all on fresh inputs as the problem draws them: one pair or several."""
        players = {"submission": self.trial.player, "reference": self.reference, "null": self.null}
        order = random.SystemRandom().sample(sorted(players), len(players))
        taken = {name: self._windows(players[name]) for name in order}
        return [dict(zip(taken, windows, strict=True)) for windows in zip(*taken.values(), strict=True)]

    def _windows(self, player: Player) -> list[float]:
        device = self.trial.bench.device.type
        for _ in range(3):  # a window in which new memory had to be mapped says nothing
            place = random.SystemRandom().randrange(WINDOWS[device] + 1)
            sets = [[self.trial.draw(TIMED)] for _ in range(WINDOWS[device])]
            sets.insert(place, [self.trial.draw(random.SystemRandom().choice(self.trial.distributions))])
            answers = self.passes(player, self.trial.gate, sets, 1)
            if player is self.trial.player:
                for answer, drawn in zip(answers, sets, strict=True):
                    self.verify(answer, drawn)
            del answers[place]
            counted = answers if device == "cpu" else answers[1:]
            if all(answer.steady for answer in counted):
                break
        seconds = [answer.seconds for answer in counted]
        return [min(seconds)] if device == "cpu" else seconds


def _less_gate(windows: list[dict[str, float]]) -> Speedup:
    """The speedup, with the null kernel's window taken away from both sides."""
    gate = statistics.median(w["null"] for w in windows)
    return timing.speedup_of([Pair(w["reference"] - gate, w["submission"] - gate) for w in windows])


@contextmanager
def awake(worker: Worker) -> Iterator[None]:
    """Lets a process run that stands still otherwise."""
    worker.freeze(False)
    try:
        yield
    finally:
        worker.freeze(True)


def result(speedup: Speedup, from_burst: bool) -> Correct:
    """The outcome that a speedup makes."""
    told = speedup.told
    text = f"{speedup.ratio:.3g}x the reference's speed" if told else "the time was too noisy to tell a speedup"
    return Correct(
        kind="timed" if told else "too_noisy",
        message=f"all outputs are right; {text}",
        speedup=speedup.ratio if told else None,
        speedup_interval=(speedup.low, speedup.high) if told else None,
        reference_seconds=speedup.reference,
        submission_seconds=speedup.submission,
        max_unseen_gain=timing.largest_unseen_gain(speedup.submission, from_burst),
    )


def doubted(outcome: Correct, floor: Floor) -> bool:
    """Whether a speedup rests on a time that no call can take."""
    seconds = outcome.submission_seconds
    return outcome.speedup is not None and seconds is not None and floor.rules_out(seconds)


def believed(outcome: Correct, floor: Floor) -> Correct:
    """The outcome, without a speedup where no call can have been so quick."""
    if not doubted(outcome, floor):
        return outcome
    seconds = outcome.submission_seconds or 0.0
    text = f"all outputs are right; a call was timed at {seconds * 1e6:.3g} us, twice, but {floor}: no speedup is told"
    return outcome.model_copy(update={
        "kind": "too_noisy", "message": text, "speedup": None, "speedup_interval": None,
    })  # fmt: skip


def _construct_null(trial: Trial, null: Worker) -> None:
    """Gives the null model outputs: on a GPU like the reference's, so that looking at them costs the same.

    On a CPU it has none. Outputs are copied to the outbox there; taken away as part of the gate, the copy would be paid
    to whoever gets around it.
    """
    outputs = trial.outputs if trial.bench.device.type == "cuda" else []
    init = tree.take_apart([[list(t.shape) for t in outputs], [t.dtype for t in outputs]])[0]
    null.ask(
        "construct", PARTNER_SECONDS, init=init, tensors=[], state={}, parameters=[], seed=0,
        compiled=False, precision="ieee",
    )  # fmt: skip
