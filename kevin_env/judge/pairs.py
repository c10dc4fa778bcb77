"""Pairs of bursts, one of each side, taken until they tell enough."""

from collections.abc import Collection, Mapping

from kevin_env.judge import timing
from kevin_env.judge.answer import overlapping
from kevin_env.judge.contest import Contest
from kevin_env.judge.gate import Player
from kevin_env.judge.timing import Burst
from kevin_env.judge.word import Word
from kevin_env.judge.worker import Worker

LEAD = 2
"""Calls before the part that is timed. The process has just been woken, and the device had another's work: what that
takes varies by some 40 us on an H200. The first mark is some 14 us later than others, too."""
PAIRS = (6, 9, 13)
"""Pairs of bursts: the fewest whose extremes are a 95 % interval of their median, what calm ones need, and the most."""
STEADY, FAIR = 0.03, 0.1
"""An interval narrower than this needs no further pairs; and after as many as calm ones need."""
GROWING, LATE = 4, 1
"""Pairs that may not count: the first ones grow the allocators. As many of them may not have been queued in time."""


def take_pairs(
    contest: Contest, partner: Player, size: int
) -> tuple[list[tuple[Burst, Burst]] | None, Collection[Worker]]:
    """Pairs of a partner's and the submission's, and whose were queued; None when they cannot be verified or timed.

    Inside `contest.still`, at a gate that is wide enough; errors as `Contest.gated`. The partner's are queued wherever
    they can be, so that no submission decides what the reference's launches count.
    """
    own, words = contest.trial.player, dict(contest.words)
    if contest.seen.queued is None:
        words.pop(own.worker, None)
    with contest.trial.bench.lease.contexts():
        while True:
            if partner.worker not in words:  # else the submission's launches alone would not count
                words.clear()
            try:
                pairs = _pairs(contest, (partner, own), size, words)
            except _NotQueued as late:
                del words[late.worker]
                continue
            if pairs and partner is contest.reference and partner.worker in words and _stalls(contest, pairs, size):
                words.clear()
                continue
            return pairs, words


def marks(size: int) -> tuple[int, ...]:
    """After each call of the lead, and at the end of the part that is timed."""
    return *range(1, LEAD + 1), size


def _pairs(
    contest: Contest, sides: tuple[Player, Player], size: int, words: Mapping[Worker, Word]
) -> list[tuple[Burst, Burst]] | None:
    """As `take_pairs`; those are queued who have a word."""
    found: list[tuple[Burst, Burst]] = []
    late = 0
    for _ in range(PAIRS[2] + GROWING):
        try:
            first, second = [_burst(contest, player, size, words.get(player.worker)) for player in sides]
        except _Overlap:
            return None
        except _NotQueued:
            late += 1
            if late > LATE:
                raise
            continue
        if first is not None and second is not None:
            found.append((first, second))
        if len(found) == PAIRS[2] or _tell_enough(found, size):
            return found
    return found if len(found) >= PAIRS[0] else None


def _stalls(contest: Contest, pairs: list[tuple[Burst, Burst]], size: int) -> bool:
    """Whether a queued reference takes longer than with its launch, as kernels on streams that wait for others do."""
    call = timing.speedup_of(timing.burst_calls(pairs, size - LEAD)).reference
    seen = contest.seen
    return call > seen.shortest_reference + seen.blur + timing.QUEUED_ALLOWANCE


def _tell_enough(found: list[tuple[Burst, Burst]], size: int) -> bool:
    """Whether further pairs would hardly tell more."""
    if len(found) < PAIRS[0]:
        return False
    spread = timing.speedup_of(timing.burst_calls(found, size - LEAD)).spread
    return spread <= (STEADY if len(found) < PAIRS[1] else FAIR)


class _Overlap(Exception):
    """Only the last output of a burst is left to be seen, so the others cannot be verified."""


class _NotQueued(Exception):
    """Not all of a burst was launched before its inputs were there: it waits for them, or fills the device's queue."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker


def _burst(contest: Contest, player: Player, size: int, word: Word | None) -> Burst | None:
    """A burst of one side; None when memory had to be mapped inside its window."""
    own = player is contest.trial.player
    sets = contest.supply.take(size) if own else contest.supply.stock(size)
    (answer,) = contest.passes(player, [sets], marks(size), word)
    if own and overlapping(answer.calls):
        raise _Overlap
    if own:
        contest.unverified.add(answer, sets)
    if word is not None and not answer.queued:
        raise _NotQueued(player.worker)
    return Burst(answer.parts[LEAD], answer.seconds) if answer.steady else None
