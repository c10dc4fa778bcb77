"""Bursts: several inputs handed over at once, one call's time from the difference of a long and a short burst.

They tell to about a per cent what a gated call tells to about ten microseconds. Their clock runs from the word, when
all inputs are visible already, to the claim: that is why gated calls decide.
"""

import torch

from kevin_env.candidate import tree
from kevin_env.judge import timing
from kevin_env.judge.bench import PARTNER_SECONDS, ours
from kevin_env.judge.contest import TIMED, Contest, awake
from kevin_env.judge.gate import Drawn, Gate, Player, overlapping
from kevin_env.judge.timing import Pair, Speedup

SHORT = 2
LONG = 16
"""Input sets of a long burst where memory allows; never fewer than `LEAST`, nor than what makes the L2 cold."""
LEAST = 8
MOST = 64
PAIRS = 7
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
    pairs = _pairs(contest, size)
    if pairs is None:
        flags.append("outputs of several calls share memory, so gated calls were timed")
        return None
    burst = timing.speedup_of(pairs)
    if not timing.burst_counts(gated.submission, burst.submission):
        flags.append("bursts were faster than gated calls by more than the allowance, so gated calls count")
        return None
    return burst


def _size(contest: Contest, gated: Speedup) -> int | None:
    """How many input sets a burst rotates through, so that none is in the L2 when it is read."""
    trial, device = contest.trial, contest.trial.bench.device
    if device.type != "cuda" or trial.case.stochastic or max(gated.submission, gated.reference) > LONGEST_CALL:
        return None
    drawn = trial.draw(TIMED)
    inputs = drawn.image.end
    outputs = sum(t.nbytes for t in tree.take_apart(trial.expect(drawn).output)[1])
    weights = sum(t.nbytes for t in trial.case.model.state_dict().values())
    cold = 2 * trial.bench.info.l2
    if LIGHT_WEIGHTS * inputs < weights < cold:  # small weights that are read often would stay warm
        return None
    free, _ = torch.cuda.mem_get_info(device)
    fitting = int(MEMORY * free / (2 * inputs + 3 * outputs))
    least = max(LEAST, -(-cold // inputs) + SHORT)
    return min(fitting, max(least, LONG)) if least <= min(fitting, MOST) else None


def _pairs(contest: Contest, size: int) -> list[Pair] | None:
    """Paired times of one call each; None when outputs of several calls lie in the same memory."""
    trial = contest.trial
    gate = trial.open_gate(_draw_sets(contest, size), [torch.empty(1, device=trial.bench.device)])
    with ours(), awake(contest.reference.worker):
        reference = trial.admit(contest.reference.worker, gate, PARTNER_SECONDS)
    with awake(trial.worker):
        trial.gate, trial.player = gate, trial.admit(trial.worker, gate, trial.options.call_timeout)
    pairs: list[Pair] = []
    for i in range(PAIRS + 1):
        times = [_call_time(contest, gate, player, size) for player in (reference, trial.player)]
        if times[0] is None or times[1] is None:
            return None
        if i > 0:  # the first one grows the allocators
            pairs.append(Pair(times[0], times[1]))
    return pairs


def _call_time(contest: Contest, gate: Gate, player: Player, size: int) -> float | None:
    windows: list[float] = []
    for count in (size, SHORT):
        sets = _draw_sets(contest, size)
        submitted = player is contest.trial.player
        answer = contest.submission_pass(sets, count) if submitted else contest.partner_pass(player, gate, sets, count)
        if overlapping(answer.calls):  # only the last output is left to be seen, so the others cannot be verified
            return None
        if submitted:
            contest.verify(answer, sets)
        windows.append(answer.called)
    return timing.burst_call(windows[0], windows[1], size, SHORT)


def _draw_sets(contest: Contest, size: int) -> list[Drawn]:
    """Fresh input sets that lie one after the other in the inbox."""
    sets: list[Drawn] = []
    for _ in range(size):
        sets.append(contest.trial.draw(TIMED, sets[-1].image.end if sets else 0))
    return sets
