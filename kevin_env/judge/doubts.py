"""Times that are too good: which are doubted, and what is made of them once they have been looked at again.

Two limits, of which only the first decides by itself. The *byte floor* (`kevin_env.judge.floor`): whoever was faster
than the memory can be read that matters, twice, gets no speedup. The *roofline* (`kevin_env.roofline`) is a yardstick:
a kernel with better algebra than the reference may be above it, so that it only raises the question. The ceilings are
measured again, and the higher ones count; then the submission is timed again; then a far smaller case. The time of
work that is done grows with it: one that stays the same gets no speedup, one that grows is paid, with a flag.
"""

from kevin_env.judge.flags import flag
from kevin_env.judge.floor import Floor
from kevin_env.outcome import Correct
from kevin_env.roofline import ABOVE

SAME = 0.9
"""Share of a call's time from which on a call of a smaller case has taken as long."""
CLEARLY = 0.5
"""Share of the reference's time that the smaller case may take at most for the comparison to tell anything."""
SHORTEST = 50e-6
"""Calls that are shorter have next to no work, and tell nothing of growth."""


def doubted(outcome: Correct, floor: Floor | None) -> bool:
    """Whether a speedup rests on a time that no call can take, or that lies above the roofline."""
    seconds, held = counted_seconds(outcome), outcome.roofline
    if seconds is None or outcome.submission_seconds is None:
        return False
    above = held is not None and held.fraction * outcome.submission_seconds / seconds > ABOVE
    return above or (floor is not None and floor.rules_out(seconds))


def counted_seconds(outcome: Correct) -> float | None:
    """The time of a call that the speedup which counts stands for: of a noisy one the longest within its interval."""
    if outcome.speedup is None:
        return None
    if outcome.kind == "timed" or not outcome.speedup_interval or outcome.reference_seconds is None:
        return outcome.submission_seconds
    return outcome.reference_seconds / outcome.speedup_interval[0]


def believed(outcome: Correct, floor: Floor | None, flags: list[str]) -> Correct:
    """The outcome, without a speedup and with a flag where no call can have been so quick."""
    seconds = counted_seconds(outcome)
    if seconds is None or floor is None or not floor.rules_out(seconds):
        return outcome
    text = f"a call was timed at {seconds * 1e6:.3g} us, twice, but {floor}"
    flags.append(flag("below_floor", text))
    return without_speedup(outcome, f"all outputs are right; {text}: no speedup is reported")


def without_speedup(outcome: Correct, message: str) -> Correct:
    """The outcome of a time that is not believed."""
    untold = {"kind": "too_noisy", "message": message, "speedup": None, "speedup_interval": None, "roofline": None}
    return outcome.model_copy(update=untold)


def grows(outcome: Correct, smaller: Correct) -> bool:
    """Whether calls of a smaller case took less, or that cannot be told.

    It can be told where calls are not too short and the reference, timed beside them, took clearly less.
    """
    whole, part = outcome.submission_seconds, smaller.submission_seconds
    if whole is None or whole < SHORTEST or _share(outcome.reference_seconds, smaller.reference_seconds) > CLEARLY:
        return True
    return _share(whole, part) < SAME


def _share(whole: float | None, part: float | None) -> float:
    """What share of a time another one is; 0 where one is not known."""
    return part / whole if whole and part else 0.0


def explained(outcome: Correct, smaller: tuple[str, Correct] | None, flags: list[str]) -> Correct:
    """The outcome of a call that is above its roofline, with a flag; without a speedup where its time does not grow.

    Args:
        outcome: With its roofline.
        smaller: The name of a far smaller case and what was measured of it; None where there is none.
        flags: Gets the flag.
    """
    assert outcome.roofline is not None
    text = f"{outcome.roofline.fraction:.3g} times as fast as the reference's own work at this device's ceilings"
    if smaller is None or grows(outcome, smaller[1]):
        flags.append(flag("above_roofline", text))
        return outcome
    part, whole = ((each.submission_seconds or 0.0) * 1e6 for each in (smaller[1], outcome))
    text += f", and the far smaller case `{smaller[0]}` takes {part:.3g} us, this one {whole:.3g} us"
    flags.append(flag("does_not_grow", text))
    return without_speedup(outcome, f"all outputs are right; the time is {text}: no speedup is reported")
