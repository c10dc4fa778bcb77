"""How many calls of a submission a verdict takes, and for how long they are timed."""

from kevin_env.frozen import Frozen


class Pace(Frozen):
    """How thoroughly a judge screens and times. The defaults of each kind of device are in `PACES`.

    A judge with fewer calls gives verdicts sooner, misses more wrong answers, and its times vary more. A recorded turn
    has the same inputs again only at the pace at which it was judged.
    """

    turns: tuple[int, int]
    """Bounds of the random number of turns in one round of timed calls. A turn gives one pair of times."""
    seconds: float
    """After so long no further turn begins, once there are enough for an interval; counted from the first round on."""
    windows: int = 4
    """Timed calls of each side in a turn, of which the shortest counts: waking up and other work only lengthen one. The
    submission has one more at a random place, verified and not timed, so that it cannot count which are."""
    warm_ups: int = 3
    """Calls of the reference and of the null kernel before the first that is timed."""
    sets: int = 5
    """Input sets on which the timed case is screened: each distribution once, then any of them."""
    sets_of_others: int = 4
    """Input sets of every other case, each of another distribution. With fewer than there are distributions, one that
    only fails for other shapes on one of them, such as a softmax that overflows there, passes every other time."""


PACES = {"cpu": Pace(turns=(11, 13), seconds=4.0), "cuda": Pace(turns=(7, 9), seconds=4.0)}
"""By kind of device."""
