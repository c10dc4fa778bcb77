"""The clock of a CPU: calls of the reference and the submission alternate."""

import random
import time
from dataclasses import dataclass, replace

from kevin_env.judge.api import JudgeError
from kevin_env.judge.bench import Bench
from kevin_env.judge.construct import construct
from kevin_env.judge.handshake.handshake import Answer, Drawn, Handshake, Player
from kevin_env.judge.timing.baselines import Partner, timed_code
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.timing.estimates import (
    Pair,
    enough,
    least_spread_of_calls,
    outcome_of,
    speedup_of_calls,
)
from kevin_env.judge.timing.session import STOCK
from kevin_env.judge.trial import TIMED, Rejected, Trial
from kevin_env.judge.workers.errors import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.usage import descendants, run_time
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct, Threads

SIDES = ("reference", "own", "null")
LONG_ENOUGH = 0.5e-3
"""How much longer than the null model's a call must be to count its busy threads."""


class CpuClock:
    """Times submissions on a CPU. Use it in the lane.

    Each turn calls the reference, the submission and a model that does nothing: what a call costs
    beyond the model's work, which is subtracted.

    Args:
        bench: Of the CPU.
    """

    def __init__(self, bench: Bench) -> None:
        self._reference, self._null = (
            Partner(bench.candidates.take_trusted, bench.device, bench.info.l2) for _ in range(2)
        )

    def __call__(self, trial: Trial) -> Correct:
        """Times a submission next to the reference, and verifies every timed call.

        Raises:
            Rejected: if a call fails or is wrong.
            JudgeError: if a process of the judge fails.
        """
        try:
            code = timed_code(trial.problem, trial.case.name, trial.options, on_gpu=False)
            reference, _ = self._reference.load(code.key, code.code, code.entry)
            null, _ = self._null.load("null", null_code(), "ModelNew")
            return time_beside(trial, Beside.prepared(trial, reference, null, code.compiled))
        except JudgeError:
            self._reference.close()  # what they hold may be what fails
            self._null.close()
            raise


def time_beside(trial: Trial, baselines: "Beside") -> Correct:
    """As `CpuClock`, with baselines that are ready."""
    draw, began, pace = random.SystemRandom(), time.monotonic(), trial.bench.pace
    others = [each for each in trial.distributions if each != TIMED] or [TIMED]
    # hidden among timed inputs is a set of another distribution, at the latest after the last
    hidden, place = trial.draw(draw.choice(others)), draw.randrange(pace.pairs[0])
    pairs, nulls = list[Pair](), list[float]()
    while True:
        if len(pairs) == place:
            _compare(trial, hidden, trial.call(hidden, timed=True))
        drawn, seconds, answer = trial.draw(TIMED), dict[str, float](), None
        for name in draw.sample(SIDES, len(SIDES)):
            if name == "own":
                answer = trial.call(drawn, timed=True)
                seconds[name] = answer.seconds
            else:
                seconds[name] = baselines.call(name)
        assert answer is not None
        _compare(trial, drawn, answer)
        pairs.append(Pair(seconds["reference"], seconds["own"]))
        nulls.append(seconds["null"])
        speedup = speedup_of_calls(pairs, nulls)
        reachable = least_spread_of_calls(speedup.reference, speedup.submission)
        seconds_so_far, requested = time.monotonic() - began, trial.options.timing_precision
        if enough(speedup, reachable, len(pairs), seconds_so_far, pace, requested):
            if place >= len(pairs):
                _compare(trial, hidden, trial.call(hidden, timed=True))
            outcome = outcome_of(speedup, trial.baseline)
            return outcome.model_copy(update={"threads": _busy_threads(trial, baselines)})


def _busy_threads(trial: Trial, baselines: "Beside") -> Threads | None:
    """How many threads the submission keeps busy; None if its calls are too short to know.

    What a call takes of both times beyond the model's work is the null model's, and subtracted.
    """
    drawn = trial.draw(TIMED)
    own, null = descendants(trial.worker.pid), descendants(baselines.null.worker.pid)
    processes = list(own), list(null)
    before = [run_time(each) for each in processes]
    answer, nothing = trial.call(drawn, timed=True), baselines.call("null")
    after = [run_time(each) for each in processes]
    _compare(trial, drawn, answer)
    wall = answer.seconds - nothing
    busy = (after[0] - before[0]) - (after[1] - before[1])
    if wall < LONG_ENOUGH or busy <= 0:
        return None
    processors = trial.bench.info.processors
    return Threads(busy=min(busy / wall, processors), of=processors)


def _compare(trial: Trial, drawn: Drawn, answer: Answer) -> None:
    if (wrong := trial.check(answer, drawn)) is not None:
        raise Rejected(wrong)


@dataclass
class Beside:
    """The reference and the null model in the case of a trial.

    Their memory is not shared with the submission, which could make the reference fail.
    """

    handshake: Handshake
    reference: Player
    null: Player
    stock: list[Drawn]

    @classmethod
    def prepared(cls, trial: Trial, reference: Worker, null: Worker, compiled: bool) -> "Beside":
        """Constructs both and calls them, which trusted code does without fresh inputs."""
        stock = [trial.draw(TIMED) for _ in range(STOCK)]
        outputs = trial.outbox_bytes
        with as_judge_error():
            construct(reference, trial.case, trial.secret, BASELINE_SECONDS, compiled=compiled)
            construct_null(null, on_gpu=False)
            inputs = max(each.image.end for each in stock)
            handshake = trial.open_handshake(replace(trial.sizes, inputs=inputs, outputs=outputs))
            players = [
                handshake.admit(worker, BASELINE_SECONDS, trusted=True)
                for worker in (reference, null)
            ]
            for player in players * trial.bench.pace.warm_ups:
                handshake.call(player, stock[0], BASELINE_SECONDS)
        return cls(handshake, players[0], players[1], stock)

    def call(self, name: str) -> float:
        """Seconds of one call of `reference` or `null`."""
        player = self.reference if name == "reference" else self.null
        self.stock.append(drawn := self.stock.pop(0))
        with as_judge_error():
            return self.handshake.call(player, drawn, BASELINE_SECONDS).seconds
