"""How many calls of a submission a verdict takes, and for how long they are timed."""

from kevin_env.frozen import Frozen

STUDY = 8
"""How many times as many pairs, and as many seconds, there are at most where a precision was asked
for.
"""


class Pace(Frozen):
    """How thoroughly a judge screens and times. The defaults of each kind of device are in `PACES`.

    A judge with fewer calls gives verdicts sooner, misses more wrong answers, and its times vary
    more. A recorded turn has the same inputs again only at the pace at which it was judged.
    """

    pairs: tuple[int, int]
    """The fewest and the most pairs of measurements, one of each side: calls on a CPU, chains of
    calls on a GPU.
    """
    seconds: float
    """After so long no further pair begins, unless a precision was asked for: then after `STUDY`
    times as long.
    """
    precision: float = 0.02
    """No further pair is needed once the interval of the speedup is no wider than this on either
    side.
    """
    warm_ups: int = 2
    """Calls of the reference and of the null model before the first that is timed."""
    sets: int = 5
    """Input sets on which the timed case is screened: each distribution once, then any of them.
    Fewer than there are distributions will do where other cases meet all of them, and among the
    timed inputs there are some of each.
    """
    sets_of_others: int = 4
    """Input sets of every other case, each of another distribution. With fewer than there are
    distributions, one that only fails for other shapes on one of them, such as a softmax that
    overflows there, passes every other time.
    """


PACES = {
    "cpu": Pace(pairs=(7, 25), seconds=1.0, precision=0.1),
    "cuda": Pace(pairs=(1, 8), seconds=0.25, sets=2),
}
"""By kind of device."""
