"""The trusted side: inputs, expected outputs, clock and verdict.

What runs where, who trusts whom, and what is an error of whom is written in `docs/threat-model.md`.
Importing this package takes no torch: the client talks to judge processes through
`kevin_env.judge.pool`.
"""

from kevin_env.judge.api import (
    Describer,
    DeviceInfo,
    Facts,
    JudgeError,
    Judgement,
    JudgePool,
    Options,
    Submission,
)
from kevin_env.judge.scripted import ScriptedPool

__all__ = [
    "Describer",
    "DeviceInfo",
    "Facts",
    "JudgeError",
    "JudgePool",
    "Judgement",
    "Options",
    "ScriptedPool",
    "Submission",
]
