"""The clock of a CPU: calls of the reference and the submission alternate."""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kevin_env.judge.api import JudgeError, Pace
from kevin_env.judge.handshake.handshake import Answer, Drawn, Handshake, Player
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.lane.trial import Rejected, Trial
from kevin_env.judge.timing import estimates
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.timing.estimates import Pair, Speedup
from kevin_env.judge.workers.baselines import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.worker import Worker, awake
from kevin_env.outcome import Correct

TIMED = "own"
"""The distribution of timed inputs: the time of some kernels depends on the values."""
STOCK = 3
"""Input sets of the baselines, used in turn so that none is cached when it is used again."""
WINDOWS = 3
"""Calls of each side per turn, of which the shortest counts: disturbances only lengthen one.

A submission whose calls are long, and much longer than the reference's, is called once.
"""
LONG = 0.05
"""Seconds of a long call."""
STUDY = 8
"""Factor on the most pairs and seconds if a precision is requested."""
SLOW = 10
"""A submission that is certainly slower by this factor is not measured more precisely."""


def time_on_cpu(trial: Trial) -> Correct:
    """Times a submission next to the reference, and verifies every timed call.

    Each turn calls the reference, the submission and a model that does nothing, whose time is
    subtracted: it is what a call costs beyond the model's work. All three processes are stopped,
    and each runs only while it is called.

    Raises:
        Rejected: if a call fails or is wrong.
        JudgeError: if a process of the judge fails.
    """
    try:
        return _timed_beside(trial, _Baselines.prepared(trial))
    except JudgeError:
        trial.bench.baselines.close()  # what they hold may be what fails
        raise


def _timed_beside(trial: Trial, sides: "_Baselines") -> Correct:
    bench, draw = trial.bench, random.SystemRandom()
    began, pace = time.monotonic(), bench.pace
    slow = trial.seconds > LONG and trial.much_slower
    order = ["reference", "null"] * WINDOWS + ["own"] * (1 if slow else WINDOWS)
    others = [each for each in trial.properties.distributions if each != TIMED] or [TIMED]
    untimed = draw.randrange(pace.pairs[0])
    turns = list[dict[str, float]]()
    with _stopped([trial.worker, sides.reference.worker, sides.null.worker]):
        while True:
            if len(turns) == untimed:  # hidden among timed ones, which therefore all look alike
                _compare(
                    trial, [(drawn := trial.draw(draw.choice(others)), trial.call(drawn, True))]
                )
            seconds: dict[str, list[float]] = {"reference": [], "null": [], "own": []}
            sets, answers = [trial.draw(TIMED) for name in order if name == "own"], []
            for name in draw.sample(order, len(order)):
                if name == "own":
                    answers.append((drawn := sets.pop(), trial.call(drawn, timed=True)))
                    seconds[name].append(answers[-1][1].seconds)
                else:
                    seconds[name].append(sides.timed(name))
            _compare(trial, answers)
            turns.append({name: min(each) for name, each in seconds.items()})
            nulls = [turn["null"] for turn in turns]
            overhead, least = statistics.median(nulls), estimates.resolution_of(nulls)
            pairs = [
                Pair(*(max(turn[side] - overhead, least) for side in ("reference", "own")))
                for turn in turns
            ]
            speedup = estimates.speedup_of(pairs)
            if _enough(speedup, len(turns), time.monotonic() - began, pace, trial):
                break
    return outcome_of(estimates.widened_on_cpu(speedup, overhead, least, estimates.BETWEEN["cpu"]))


def outcome_of(speedup: Speedup) -> Correct:
    """The outcome for a speedup whose interval covers other judgements too."""
    text = f"{speedup.ratio:.3g}x the reference's speed"
    if speedup.noisy:
        text = f"the time was noisy: about {text}, {speedup.low:.2g}x to {speedup.high:.2g}x"
    return Correct(
        kind="too_noisy" if speedup.noisy else "timed",
        message=f"all outputs are right; {text}",
        speedup=speedup.ratio,
        speedup_interval=(speedup.low, speedup.high),
        reference_seconds=speedup.reference,
        submission_seconds=speedup.submission,
        max_unseen_gain=0.0,
        queued=False,
    )


def _enough(speedup: Speedup, pairs: int, seconds: float, pace: Pace, trial: Trial) -> bool:
    """Whether no further pair is needed."""
    requested = trial.options.precision
    times = STUDY if requested else 1
    least, most = pace.pairs[0], times * pace.pairs[1]
    if pairs >= most or speedup.high < 1 / SLOW:
        return pairs >= min(least, 2)
    precise = pairs >= least and speedup.spread <= (requested or pace.precision)
    late = seconds > times * pace.seconds
    return precise or (pairs >= min(least, estimates.LEAST) and late)


def _compare(trial: Trial, calls: Sequence[tuple[Drawn, Answer]]) -> None:
    """Compares the answers to timed calls."""
    for drawn, answer in calls:
        if (wrong := trial.wrong_with(answer, drawn)) is not None:
            raise Rejected(wrong)


@dataclass
class _Baselines:
    """The reference and the null model in the case of a trial.

    Their memory is not shared with the submission, which could make the reference fail.
    """

    handshake: Handshake
    reference: Player
    null: Player
    stock: list[Drawn]

    @classmethod
    def prepared(cls, trial: Trial) -> "_Baselines":
        """Constructs both and calls them, which trusted code does without fresh inputs."""
        bench, case, options = trial.bench, trial.case, trial.options
        code = source_of(trial.problem, case.name)
        key = f"{trial.problem.sha256}/{case.name}/{options.baseline}"
        reference = bench.baselines.loaded(key, code, "Model")
        null = bench.baselines.loaded("null", null_code(), "ModelNew")
        stock = [trial.draw(TIMED) for _ in range(STOCK)]
        outputs = trial.outbox_bytes
        with as_judge_error():
            compiled = options.baseline == "compile"
            trial.construct(reference, BASELINE_SECONDS, compiled=compiled)
            construct_null(null, on_gpu=False)
            handshake = trial.open_handshake(max(each.image.end for each in stock), outputs)
            players = [
                handshake.admit(worker, BASELINE_SECONDS, trusted=True)
                for worker in (reference, null)
            ]
            for player in players * bench.pace.warm_ups:
                handshake.call(player, stock[0], BASELINE_SECONDS)
        return cls(handshake, players[0], players[1], stock)

    def timed(self, name: str) -> float:
        """Seconds of one call of `reference` or `null`."""
        player = self.reference if name == "reference" else self.null
        self.stock.append(drawn := self.stock.pop(0))
        with as_judge_error():
            player.worker.settle()
            with awake(player.worker):
                return self.handshake.call(player, drawn, BASELINE_SECONDS).seconds


@contextmanager
def _stopped(workers: list[Worker]) -> Iterator[None]:
    """Stops all of them, so that none disturbs another; each is woken for its calls."""
    try:
        for worker in workers:
            worker.freeze(True, wait=False)
        yield
    finally:
        for worker in workers:
            worker.freeze(False, wait=False)
