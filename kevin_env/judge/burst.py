"""Bursts: several inputs handed over at once, one call's time from the difference of a long and a short burst.

They tell to about a per cent what a gated call tells to about ten microseconds. They show several inputs at once,
which might be computed together: that is why gated calls decide. And a longer short burst would make the difference
smaller: that is why whole windows of long bursts bound it.
"""

import torch

from kevin_env.judge import timing
from kevin_env.judge.bench import PARTNER_SECONDS, ours
from kevin_env.judge.contest import TIMED, Contest, awake
from kevin_env.judge.gate import Answer, Drawn, Gate, Player, overlapping
from kevin_env.judge.timing import Burst, Speedup

SHORT = 2
LONG = 16
"""Input sets of a long burst where memory allows; never fewer than `LEAST`, nor than what makes the L2 cold."""
LEAST = 8
MOST = 64
PAIRS = 9
MOST_PAIRS = PAIRS + 4
"""The first ones grow the allocators."""
LONGEST_CALL = 4e-3
"""Above this the gate's own error is too small to be worth a burst."""
MEMORY = 0.25
"""Share of the free device memory that a burst may take."""
LIGHT_WEIGHTS = 0.05
"""Weights up to this share of the inputs do not matter for a cold cache; see `_size`."""


def refine(contest: Contest, gated: Speedup, flags: list[str]) -> Speedup | None:
    """The speedup from bursts, or None where a burst is of no use or does not count. Inside `contest.still`.

    Args:
        contest: The contest that gave `gated`.
        gated: The speedup from gated calls.
        flags: Gets a sentence when bursts were tried and do not count.

    Raises:
        Wrong, Trouble, JudgeError: as in `Contest.gated`.
    """
    size = _size(contest, gated)
    if size is None:
        return None
    bursts = _bursts(contest, size)
    if bursts is None:
        flags.append("outputs of several calls share memory or move, so gated calls were timed")
        return None
    burst = timing.speedup_of(timing.burst_calls(bursts, size, SHORT))
    bound = timing.speedup_of(timing.burst_bounds(bursts, size, SHORT))
    if not timing.burst_counts(bound.submission, burst.submission, timing.LAUNCH_ALLOWANCE / size):
        flags.append("long bursts took more time than their difference from short ones tells, so they were timed whole")
        burst = bound
    if not timing.burst_counts(gated.submission, burst.submission):
        flags.append("bursts were faster than gated calls by more than the allowance, so gated calls count")
        return None
    return burst


def _size(contest: Contest, gated: Speedup) -> int | None:
    """How many input sets a burst rotates through, so that none is in the L2 when it is read."""
    trial, device = contest.trial, contest.trial.bench.device
    if device.type != "cuda" or trial.case.stochastic or max(gated.submission, gated.reference) > LONGEST_CALL:
        return None
    inputs = trial.draw(TIMED).image.end
    outputs = sum(t.nbytes for t in trial.outputs)
    weights = sum(t.nbytes for t in trial.case.model.state_dict().values())
    cold = 2 * trial.bench.info.l2
    if LIGHT_WEIGHTS * inputs < weights < cold:  # small weights that are read often would stay warm
        return None
    free, _ = torch.cuda.mem_get_info(device)
    fitting = int(MEMORY * free / (2 * inputs + 3 * outputs))
    least = max(LEAST, -(-cold // inputs) + SHORT)
    return min(fitting, max(least, LONG)) if least <= min(fitting, MOST) else None


def _bursts(contest: Contest, size: int) -> list[tuple[Burst, Burst]] | None:
    """Pairs of the reference's and the submission's bursts; None when they cannot be verified or timed."""
    trial = contest.trial
    gate = trial.open_gate(_draw_sets(contest, size), trial.gate.answer_bytes, outbox=1)
    with ours(), awake(contest.reference.worker):
        reference = trial.admit(contest.reference.worker, gate, PARTNER_SECONDS)
    with awake(trial.worker):
        trial.gate, trial.player = gate, trial.admit(trial.worker, gate, trial.options.call_timeout)
    found: list[tuple[Burst, Burst]] = []
    try:
        for _ in range(MOST_PAIRS):
            pair = [_burst(contest, gate, player, size) for player in (reference, trial.player)]
            if pair[0] is not None and pair[1] is not None:
                found.append((pair[0], pair[1]))
            if len(found) == PAIRS:
                return found
    except _Overlap:
        pass
    return None


class _Overlap(Exception):
    """Only the last output of a burst is left to be seen, so the others cannot be verified."""


def _burst(contest: Contest, gate: Gate, player: Player, size: int) -> Burst | None:
    """One side's long and short burst; None when memory had to be mapped inside the long one's window."""
    windows: list[Answer] = []
    for count in (size, SHORT):
        sets = _draw_sets(contest, size)  # as many for the short one, so that the device is prepared alike
        (answer,) = contest.passes(player, gate, [sets], count)
        if overlapping(answer.calls):
            raise _Overlap
        if player is contest.trial.player:
            contest.verify(answer, sets)
        windows.append(answer)
    long, short = windows
    return Burst(long.called, short.called, long.seconds) if long.steady else None


def _draw_sets(contest: Contest, size: int) -> list[Drawn]:
    """Fresh input sets that lie one after the other in the inbox."""
    sets: list[Drawn] = []
    for _ in range(size):
        sets.append(contest.trial.draw(TIMED, sets[-1].image.end if sets else 0))
    return sets
