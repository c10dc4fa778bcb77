"""Kernels written by a person: the initial text of the editor, and its conversion to a reply."""

from collections.abc import Sequence

from kevin_env.feedback import block
from kevin_env.problem import Problem
from kevin_env.record import Reply, Turn

_START = """\
# Write ModelNew here. Save and leave the editor to submit it; leave without a change to go back.
# The reference:
#
{reference}

import torch


class ModelNew(torch.nn.Module):
    def forward(self):
        ...
"""


def draft_of(problem: Problem, turns: Sequence[Turn], at: int | None = None) -> str:
    """The text that the editor starts with: the kernel of turn index `at`, else the last kernel.

    Without a kernel it is the reference as comments above an empty `ModelNew`.
    """
    wanted = [*turns, turns[at]] if at is not None else turns
    last = next((turn.submission for turn in reversed(wanted) if turn.submission is not None), None)
    if last is not None:
        return last.code
    return _START.format(
        reference="\n".join(f"# {line}".rstrip() for line in problem.source.strip().split("\n"))
    )


def reply_of(code: str) -> Reply:
    """A person's code as a reply."""
    return Reply(content=block(code, "python", limit=None) + "\n", by_person=True)
