"""Observations on a judgement that a person should look at: a name that programs can count, and a sentence.

A flag is one text, `name: sentence`, in records, reports and `judge --json`.
"""

from typing import Literal, get_args

FlagName = Literal[
    "above_roofline", "does_not_grow", "below_floor", "record_contradicted", "profile_differs", "low_coverage",
    "burst_bounded", "gated_only",
]  # fmt: skip
"""What was odd:

- `above_roofline`: faster, twice, than the reference's own work at this device's ceilings. Algebra may explain it.
- `does_not_grow`: besides, as slow where the reference has far less to do. No speedup is told.
- `below_floor`: faster, twice, than the memory can be read that matters. No speedup is told.
- `record_contradicted`: no torch was recorded, but a profile shows hardly any time in the submission's own kernels.
- `profile_differs`: a call that was profiled took longer on the device than the timed ones in all. No coverage is told.
- `low_coverage`: of older records only, the same under any rules.
- `burst_bounded`, `gated_only`: of older records only, about calls that were timed in a row.
"""


def flag(name: FlagName, text: str) -> str:
    """The flag as it is recorded."""
    return f"{name}: {text}"


def flag_name(flag: str) -> str:
    """The name of a recorded flag; empty where there is none of ours, as in records from before flags had names."""
    name = flag.partition(": ")[0]
    return name if name in get_args(FlagName) else ""
