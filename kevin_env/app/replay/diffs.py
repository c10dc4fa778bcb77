"""Line diffs of two versions of a kernel."""

import difflib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kevin_env.app.replay.code import lines_of

CONTEXT = 3
"""Context lines around a change."""
ALIKE = 0.4
"""How similar two lines must be for the changes within them to be marked."""

EQUAL_PAIRS = 100_000
"""Above so many pairs of equal lines, as of a model in a loop, frequent lines anchor no match."""
MARKED = 200
"""Pairs of lines that replace each other, from the first, whose words are compared."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. Numbers count from 1; a line on one side only has no other number."""

    tag: Literal[" ", "-", "+", "gap"]
    old: int | None = None
    new: int | None = None
    text: str = ""
    """The line; for a gap, the number of equal lines left out."""
    changed: tuple[tuple[int, int], ...] = ()
    """Where in the line it differs from the line that it replaces or is replaced by."""


Pair = tuple[DiffLine | None, DiffLine | None]
"""One line of a diff in two columns; None where a side has none."""


@functools.lru_cache(maxsize=64)
def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    """The changes from one text to the other with context; empty if the texts are equal."""
    before, after = lines_of(old), lines_of(new)
    often = Counter(before)
    looped = sum(often[line] for line in after) > EQUAL_PAIRS
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=looped)
    done: list[DiffLine] = []
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if skipped := group[0][1] - end:
            done.append(_gap(skipped))
        for tag, a, b, c, d in group:
            if tag == "equal":
                done += [DiffLine(" ", a + n + 1, c + n + 1, before[a + n]) for n in range(b - a)]
            else:
                done += _replaced(before[a:b], after[c:d], a, c)
        end = group[-1][2]
    if done and len(before) > end:
        done.append(_gap(len(before) - end))
    return tuple(done)


def counts(lines: Sequence[DiffLine]) -> tuple[int, int]:
    """The numbers of added and removed lines."""
    return sum(line.tag == "+" for line in lines), sum(line.tag == "-" for line in lines)


def in_pairs(lines: Sequence[DiffLine]) -> tuple[Pair, ...]:
    """A diff in two columns: lines that replace each other are side by side."""
    done: list[Pair] = []
    for _, group in itertools.groupby(lines, lambda line: line.tag in ("-", "+")):
        run = list(group)
        left = [line for line in run if line.tag != "+"]
        right = [line for line in run if line.tag != "-"]
        done += itertools.zip_longest(left, right)
    return tuple(done)


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", text=f"{lines} equal line{'s' if lines > 1 else ''}")


def _replaced(before: list[str], after: list[str], a: int, c: int) -> list[DiffLine]:
    """Removed and added lines; similar pairs are compared word by word."""
    old = [DiffLine("-", a + n + 1, None, line) for n, line in enumerate(before)]
    new = [DiffLine("+", None, c + n + 1, line) for n, line in enumerate(after)]
    for n, (one, other) in enumerate(zip(old[:MARKED], new, strict=False)):
        went, came = _within(one.text, other.text)
        old[n], new[n] = replace(one, changed=went), replace(other, changed=came)
    return old + new


def _within(old: str, new: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """The words in which two lines differ; none if the lines are not similar."""
    a, b = (re.findall(r"\w+|\s+|[^\w\s]", line) for line in (old, new))
    if max(len(a), len(b)) > 400 or _likeness(a, b) < ALIKE:
        return (), ()
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    went: list[tuple[int, int]] = []
    came: list[tuple[int, int]] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        for words, first, last, spans in ((a, i, j, went), (b, k, m, came)):
            if tag != "equal" and last > first:
                start = sum(map(len, words[:first]))
                spans.append((start, start + sum(map(len, words[first:last]))))
    return tuple(went), tuple(came)


def _likeness(a: list[str], b: list[str]) -> float:
    """The similarity of two lines, 0 to 1, ignoring spaces."""
    words = ([word for word in line if not word.isspace()] for line in (a, b))
    return difflib.SequenceMatcher(None, *words, autojunk=False).ratio()
