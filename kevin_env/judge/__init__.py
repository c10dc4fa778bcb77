"""The trusted side: inputs, expected outputs, clock and verdict.

`docs/threat-model.md` describes the processes, what each trusts, and how errors are attributed.
Importing this package takes no torch: the client talks to judge processes through
`kevin_env.pools`.
"""

from kevin_env.judge.api import (
    DeviceInfo,
    Facts,
    JudgeError,
    Judgement,
    JudgePool,
    Options,
    Submission,
)

__all__ = [
    "DeviceInfo",
    "Facts",
    "JudgeError",
    "JudgePool",
    "Judgement",
    "Options",
    "Submission",
]
