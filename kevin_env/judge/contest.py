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
from kevin_env.judge.gate import Answer, Drawn, Gate, Player
from kevin_env.judge.timing import Pair, Speedup
from kevin_env.judge.trial import Trial
from kevin_env.judge.worker import Trouble, Worker
from kevin_env.outcome import Correct, Incorrect

PAIRS = (9, 13)
"""Bounds of the random number of pairs in one round."""
LEAST_PAIRS = 7
ROUNDS = 3
SECONDS = 8.0
"""No further pair begins after this long, once there are `LEAST_PAIRS`."""
WARM_UPS = 3
TIMED = "own"
"""The distribution of timed inputs: how long some kernels take depends on the values."""
REPEATS = {"cpu": 2, "cuda": 1}
"""Windows of each side in a pair, of which the shortest counts: on a CPU others' work only ever lengthens one."""


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
        start = time.monotonic()
        windows: list[dict[str, float]] = []
        for _ in range(ROUNDS):
            for _ in range(random.SystemRandom().randint(*PAIRS)):
                windows.append(self._round())
                if len(windows) >= LEAST_PAIRS and time.monotonic() - start > SECONDS:
                    return _less_gate(windows)
            if _less_gate(windows).spread <= timing.STEADY:
                break
        return _less_gate(windows)

    def submission_pass(self, sets: list[Drawn], count: int) -> Answer:
        """One pass of the submission, to be given to `verify`. Errors as `gated`."""
        with awake(self.trial.worker):
            return self.trial.run(sets, count, TIMED)

    def verify(self, answer: Answer, sets: list[Drawn]) -> None:
        """Compares every output of a pass of the submission.

        Raises:
            Wrong: when one is wrong.
        """
        wrong = self.trial.check(answer, sets, TIMED)
        if wrong is not None:
            raise Wrong(wrong)

    def partner_pass(self, player: Player, gate: Gate, sets: list[Drawn], count: int) -> Answer:
        """One pass of a partner."""
        with ours(), awake(player.worker):
            return gate.call(player, sets, count, PARTNER_SECONDS)

    def _round(self) -> dict[str, float]:
        """One window of each, in random order, all on fresh inputs as the problem draws them."""
        order = ["submission", "reference", "null"]
        random.SystemRandom().shuffle(order)
        repeats = REPEATS[self.trial.bench.device.type]
        return {name: min(self._window(name) for _ in range(repeats)) for name in order}

    def _window(self, name: str) -> float:
        trial = self.trial
        if name != "submission":
            player = self.reference if name == "reference" else self.null
            return self.partner_pass(player, trial.gate, [trial.draw(TIMED)], 1).seconds
        for _ in range(3):  # a window in which new memory had to be mapped says nothing
            sets = [trial.draw(TIMED)]
            answer = self.submission_pass(sets, 1)
            self.verify(answer, sets)
            if answer.steady:
                break
        return answer.seconds


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


def _construct_null(trial: Trial, null: Worker) -> None:
    """Gives the null model outputs like the reference's, so that looking at them costs the same."""
    outputs = tree.take_apart(trial.expect(trial.draw("own")).output)[1]
    init = tree.take_apart([[list(t.shape) for t in outputs], [t.dtype for t in outputs]])[0]
    null.ask(
        "construct", PARTNER_SECONDS, init=init, tensors=[], state={}, parameters=[], seed=0,
        compiled=False, precision="ieee",
    )  # fmt: skip
