"""Observations on a judgement that a person should look at: a name that programs can count, and a
sentence.

A flag is one text, `name: sentence`, in records, reports and `judge --json`.
"""

from typing import Literal, get_args

from kevin_env.outcome import Correct, Outcome

FlagName = Literal[
    "above_roofline", "does_not_grow", "below_floor", "record_contradicted", "profile_differs", "low_coverage",
    "burst_bounded", "gated_only",
]  # fmt: skip
"""What was odd:

- `above_roofline`: faster than the reference's own work at this device's ceilings. Better algebra
  may explain it.
- `record_contradicted`: no torch was recorded, but a profile shows hardly any time in the
  submission's own kernels.
- `profile_differs`: a call that was profiled took longer on the device than the timed ones in all.
  No coverage is told.
- `does_not_grow`, `below_floor`, `low_coverage`, `burst_bounded`, `gated_only`: only in older
  records.
"""


def flag(name: FlagName, text: str) -> str:
    """The flag as it is recorded."""
    return f"{name}: {text}"


def roofline_flags(outcome: Outcome) -> tuple[str, ...]:
    """A flag where a time is above the roofline."""
    held = outcome.roofline if isinstance(outcome, Correct) else None
    if held is None or not held.above:
        return ()
    text = (
        f"{held.fraction:.3g} times as fast as the reference's own work at this device's ceilings"
    )
    return (flag("above_roofline", text),)


def flag_name(flag: str) -> str:
    """The name of a recorded flag; empty where there is none of ours, as in records from before
    flags had names.
    """
    name = flag.partition(": ")[0]
    return name if name in get_args(FlagName) else ""
