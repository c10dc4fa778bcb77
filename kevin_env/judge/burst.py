"""Bursts: several inputs handed over at once, one call's time from a part of them that begins and ends alike.

They tell to about a per cent what a gated call tells to about ten microseconds. Where they can be they are queued: all
is launched before the inputs are there. Else a call that is shorter than its launch is told as long as that. They show
several inputs at once, which might be computed together: that is why gated calls decide. And where that part begins and
ends is claimed: that is why whole windows of bursts bound it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kevin_env.judge import timing
from kevin_env.judge.answer import overlapping
from kevin_env.judge.contest import ALONE, MEMORY, Contest
from kevin_env.judge.flags import flag
from kevin_env.judge.pairs import LEAD, PAIRS, marks, take_pairs
from kevin_env.judge.queued import take_queued
from kevin_env.judge.timing import Pair, Speedup

LONG = 16
"""Input sets of a burst of short calls; never fewer than make the L2 cold."""
LEAST = 8
LEAST_PART, LEAST_SECONDS = 2, 0.75e-3
"""With fewer than `LEAST` sets the part that is timed has at least so many calls, which take so long."""
MOST = 64
PART_SECONDS = 1e-3
"""What the part that is timed need not exceed. On an H200 three kernels of 67 to 334 us, queued, varied no more with
0.4 ms (by 0.2 to 0.5 %); but what windows vary by, and others who keep the processors busy, show the more then."""
LONGEST_CALL = 4e-3
"""Above this the gate's own error is too small to be worth a burst. A reference that takes longer is timed by gated
calls alone, and bursts of the null kernel stand for its own where they show what is the same on both sides."""
VERIFY_SECONDS = 8.0
"""What a slow reference may take for all calls of the fewest bursts: each of them is compared."""
LIGHT_WEIGHTS = 0.05
"""Weights up to this share of the inputs do not matter for a cold cache; larger ones that are read often stay warm."""


@dataclass(frozen=True)
class Bursts:
    """What bursts tell of one call.

    Attributes:
        calls: Times of one call of each side; of a slow reference gated.
        bounds: The submission's from whole windows; higher, and no work moved out of the part that is timed helps.
        size: Calls in a burst.
        reference: One call of the reference; None where the null kernel stood for it.
        beyond: What windows may be beyond calls without a fault of the submission's, in seconds.
        queued: Whether no launch of the submission's is in them.
    """

    calls: list[Pair]
    bounds: list[Pair]
    size: int
    reference: float | None
    beyond: float = timing.LAUNCH_ALLOWANCE
    queued: bool = False

    def allowed(self, contest: Contest) -> float:
        """How far below the shortest queued or else gated call of a contest they are believed, in seconds."""
        if contest.seen.queued is not None:
            return timing.QUEUED_ALLOWANCE
        if self.reference is None:
            return timing.GATED_ALLOWANCE
        return timing.allowance(contest.seen.shortest_reference, self.reference)

    def least(self, contest: Contest) -> float:
        """The shortest call of the submission that is believed, in seconds."""
        call, bound = (timing.speedup_of(pairs).submission for pairs in (self.calls, self.bounds))
        shortest = contest.seen.shortest if contest.seen.queued is None else contest.seen.queued
        return timing.least_call(call, bound, self.beyond / self.size, shortest, self.allowed(contest))


def take_bursts(contest: Contest, gated: Speedup, flags: list[str]) -> Bursts | None:
    """Bursts of both sides, or None where they are of no use. Inside `contest.still`.

    Args:
        contest: The contest that gave `gated`.
        gated: The speedup from gated calls.
        flags: Gets a sentence when bursts were tried and cannot be used as they are.

    Raises:
        Wrong, Trouble, JudgeError: as in `Contest.gated`.
    """
    slow = _is_slow(gated)
    if gated.submission > LONGEST_CALL or (slow and gated.spread <= timing.STEADY):
        return None
    take_queued(contest)
    size = _size(contest, gated)
    if size is None:
        return None
    open_wide(contest, size, still=True)
    partner = contest.null if slow else contest.reference  # at the gate where all are now
    bursts, queued = take_pairs(contest, partner, size)
    if bursts is None:
        flags.append(flag("gated_only", "outputs of several calls share memory or move, so gated calls were timed"))
        return None
    calls = timing.burst_calls(bursts, size - LEAD)
    bounds = timing.burst_bounds(bursts, calls, size)
    sides = contest.trial.worker in queued, partner.worker in queued
    beyond = timing.beyond_windows(*sides, by_null=slow) + timing.window_noise(bursts, calls, size)
    if slow:
        calls = timing.beside([pair.reference for pair in contest.seen.pairs], calls)
    found = Bursts(calls, bounds, size, None if slow else timing.speedup_of(calls).reference, beyond, sides[0])
    if contest.seen.queued is not None and found.least(contest) > timing.speedup_of(calls).submission:
        take_queued(contest)  # who is not believed is looked at longer
    return found


def first_look(contest: Contest) -> Speedup:
    """A round of gated calls: a short one where bursts will probably tell the time. Errors as `Contest.gated`.

    Also where others held the memory for them, and calls can be queued: with the device alone there is more of it.
    """
    if contest.foreseen == 1 and contest.trial.worker not in contest.words:
        return contest.gated()
    few = contest.gated(few=True)
    return contest.gated() if _is_slow(few) else few


def demand(contest: Contest) -> tuple[int, int]:
    """How many input sets will probably be needed, before any call was timed: of the submission, and of one burst.

    The latter is 1 where bursts will be of no use.
    """
    enough = _enough(contest.lately.guess)
    found = _bounds(contest, min(LEAST, enough), MEMORY)
    if found is None:
        return contest.windows(few=False), 1
    size = min(max(found[0], enough), found[1])
    return contest.windows(few=True) + PAIRS[0] * size, size


def may_have_bursts(contest: Contest) -> bool:
    """Whether bursts can be of use where there is memory for them, which others may hold at the moment."""
    trial = contest.trial
    if trial.bench.device.type != "cuda" or trial.case.stochastic:
        return False
    weights = sum(t.nbytes for t in trial.case.model.state_dict().values())
    return not LIGHT_WEIGHTS * max(1, contest.supply.each) < weights < 2 * trial.bench.info.l2


def lacks_memory(contest: Contest) -> bool:
    """Whether bursts would be of use and have too little memory, and this device has enough if others hold none."""
    bench = contest.trial.bench
    if bench.room is None or contest.lately.guess > LONGEST_CALL:
        return False
    least = min(LEAST, _enough(contest.lately.guess))
    return _bounds(contest, least, ALONE) is None and _bounds(contest, least, ALONE, bench.room) is not None


def open_wide(contest: Contest, size: int, still: bool) -> None:
    """Takes all to a gate for so many input sets, unless theirs is; `still` as in `Contest.move`."""
    gate, sets = contest.trial.gate, contest.supply.stock(size)
    if sets[-1].image.end > gate.inbox.size:
        contest.move(contest.trial.open_gate(sets, gate.answer_bytes, outbox=gate.outbox.size), still)


def rehearse(contest: Contest, size: int) -> Iterator[None]:
    """A burst of each side that is not timed, so that later ones find memory, and mapped. Outside `still`.

    Yields:
        After each; others may have the device.

    Raises:
        Wrong, Trouble, JudgeError: as in `Contest.gated`.
    """
    contest.rehearse(contest.reference, size)
    yield
    sets = contest.supply.take(size)
    answer = contest.trial.run(sets, marks(size))
    if not overlapping(answer.calls):
        contest.unverified.keep(answer, sets)
        contest.unverified.compare()
    yield


def _is_slow(gated: Speedup) -> bool:
    """Whether the null kernel's bursts stand for those of the reference."""
    return gated.reference > LONGEST_CALL


def _size(contest: Contest, gated: Speedup) -> int | None:
    """How many input sets a burst rotates through, so that none is in the L2 when it is read."""
    # the shortest call, not their median: whoever makes most calls longer would have shorter bursts
    shortest = min(contest.seen.shortest, contest.seen.queued or math.inf)
    shorter = min(max(shortest, timing.RESOLUTION), gated.reference)
    found = _bounds(contest, min(LEAST, LEAD + max(LEAST_PART, math.ceil(LEAST_SECONDS / shorter))), ALONE)
    if found is None:
        return None
    least, most = found
    if _is_slow(gated):
        most = min(most, int(VERIFY_SECONDS / PAIRS[0] / gated.reference))
    size = min(most, max(least, _enough(shorter)))
    return size if size >= least else None


def _enough(call: float) -> int:
    """How many input sets a burst of calls of this length needs to be told well, where memory allows."""
    return LEAD + max(LEAST_PART, min(LONG - LEAD, math.ceil(PART_SECONDS / call)))


def _bounds(contest: Contest, least: int, share: float, room: int | None = None) -> tuple[int, int] | None:
    """The fewest input sets of a burst, `least` or more, and the most in a share of `room`; None where that is too few.

    Also where they can be of no use. Without `room`, of the memory that is free.
    """
    if not may_have_bursts(contest):
        return None
    cold = -(-2 * contest.trial.bench.info.l2 // max(1, contest.supply.each)) + LEAD
    least, fitting = max(least, cold), contest.fitting(copies=3, share=share, room=room)
    return (least, fitting) if least <= min(fitting, MOST) else None
