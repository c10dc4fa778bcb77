"""Two versions of a kernel, line by line."""

import difflib
import functools
from dataclasses import dataclass
from typing import Literal

from kevin_env.app.replay.code import lines_of
from kevin_env.app.replay.state import Base, View
from kevin_env.record import Turn

CONTEXT = 3
"""Equal lines that are shown round a change."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. Numbers count from 1; a line that is on one side only has no number on
    the other.
    """

    tag: Literal[" ", "-", "+", "gap"]
    old: int | None = None
    new: int | None = None
    text: str = ""
    """The line; of a gap, how many equal lines are left out."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of a diff in two columns; None where a side has none."""

    old: DiffLine | None
    new: DiffLine | None


@functools.lru_cache(maxsize=64)
def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    """What changes from one text to the other, with a little of what does not; empty when nothing
    changes.
    """
    before, after = lines_of(old), lines_of(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    done: list[DiffLine] = []
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if skipped := group[0][1] - end:
            done.append(_gap(skipped))
        for tag, a, b, c, d in group:
            if tag == "equal":
                done += [DiffLine(" ", a + n + 1, c + n + 1, before[a + n]) for n in range(b - a)]
            else:
                done += [DiffLine("-", n + 1, None, before[n]) for n in range(a, b)]
                done += [DiffLine("+", None, n + 1, after[n]) for n in range(c, d)]
        end = group[-1][2]
    if done and len(before) > end:
        done.append(_gap(len(before) - end))
    return tuple(done)


def counts(lines: tuple[DiffLine, ...]) -> tuple[int, int]:
    """How many lines were added, and how many removed."""
    return sum(line.tag == "+" for line in lines), sum(line.tag == "-" for line in lines)


def in_pairs(lines: tuple[DiffLine, ...]) -> tuple[Pair, ...]:
    """A diff for two columns: lines that replace each other stand side by side."""
    done: list[Pair] = []
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in (*lines, None):
        if line is not None and line.tag == "-" and not added:
            removed.append(line)
        elif line is not None and line.tag == "+":
            added.append(line)
        else:
            done += _side_by_side(removed, added)
            removed, added = ([line], []) if line is not None and line.tag == "-" else ([], [])
            if line is not None and line.tag != "-":
                done.append(Pair(line, line))
    return tuple(done)


def base_of(view: View, base: Base, other: View | None) -> tuple[str, Turn | None]:
    """What a turn is compared with: its name, and the turn; None when there is no such turn."""
    turns = view.episode.turns
    if base == "other" and other is not None:
        return "the other trajectory", other.turn
    if isinstance(base, int):
        return f"turn {base}", next((turn for turn in turns if turn.turn == base), None)
    earlier = [turn for turn in turns[: view.at] if turn.submission]
    if base == "best":
        timed = [turn for turn in earlier if turn.speedup is not None]
        return "best before", max(timed, key=lambda turn: turn.speedup or 0.0, default=None)
    return "previous", earlier[-1] if earlier else None


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", text=f"{lines} equal line{'s' if lines > 1 else ''}")


def _side_by_side(removed: list[DiffLine], added: list[DiffLine]) -> list[Pair]:
    length = max(len(removed), len(added))
    padded = [[*lines, *[None] * (length - len(lines))] for lines in (removed, added)]
    return [Pair(old, new) for old, new in zip(*padded, strict=True)]
