"""Line diffs of two versions of a kernel, and how they are drawn."""

import difflib
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.style import Style
from rich.text import Text

from kevin_env.app.replay.code import code_lines, lines_of
from kevin_env.app.replay.pieces import (
    DIM,
    Base,
    Look,
    colored,
    fit,
    join,
    paragraph,
    text,
    wrapped,
)
from kevin_env.record import Turn, best_turn
from kevin_env.render import speedup_text

CONTEXT = 3
"""Context lines around a change."""
ALIKE = 0.4
"""How similar two lines must be for the changes within them to be marked."""

_DIGITS = 4
_TWO_COLUMNS = 60
"""Least width of a diff in two columns."""
_SIGNS = {" ": "", "-": "bold red", "+": "bold green"}


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


def base_of(
    turns: Sequence[Turn], at: int, base: Base, other: Turn | None = None
) -> tuple[str, Turn | None]:
    """The base of the diff at index `at`: its name, and its turn if there is one."""
    if base == "other" and other is not None:
        return "the other trajectory", other
    if isinstance(base, int):
        return "", next((turn for turn in turns if turn.turn == base), None)
    earlier = [turn for turn in turns[:at] if turn.submission]
    if base == "best":
        return "best before", best_turn(earlier)
    return "previous", earlier[-1] if earlier else None


def diff_pane(turns: Sequence[Turn], at: int, look: Look) -> list[Text]:
    """The diff from another turn's kernel to that of the turn at index `at`."""
    name, before = base_of(turns, at, look.base, look.other)
    turn = turns[at]
    if turn.submission is None:
        return [text("this turn has no submission", DIM)]
    if before is None or before.submission is None:
        said = f"{name or 'that turn'} has no submission; d chooses another, D a turn"
        words = f"nothing to compare with: {said}"
        return paragraph(words, look.width, DIM)
    lines = diff_lines(before.submission.code, turn.submission.code)
    title = [_title(name, before, turn, lines), Text()]
    if not lines:
        return [*title, text("the two are the same", DIM)]
    paint = _Painter(before.submission.code, turn.submission.code, look)
    two = look.side_by_side and look.width >= _TWO_COLUMNS
    return [*title, *(paint.two(lines) if two else paint.one(lines))]


def _title(name: str, before: Turn, turn: Turn, lines: Sequence[DiffLine]) -> Text:
    added, removed = counts(lines)
    return join(
        (f"{name}: turn {before.turn} ".removeprefix(": "), "bold"),
        (f"{before.category} {speedup_text(before.speedup)}".rstrip(), DIM),
        (f"  →  turn {turn.turn} ", "bold"),
        (f"{turn.category} {speedup_text(turn.speedup)}".rstrip(), DIM),
        (f"   +{added}", "green"),
        (f" -{removed}", "red"),
    )


class _Painter:
    """Draws the lines of one diff as code; added and removed lines are tinted."""

    def __init__(self, old: str, new: str, look: Look) -> None:
        self._old, self._new, self._look = code_lines(old), code_lines(new), look

    def one(self, lines: Sequence[DiffLine]) -> list[Text]:
        """One column."""
        done: list[Text] = []
        for line in lines:
            if line.tag == "gap":
                done.append(_gap_text(line, self._look.width))
            else:
                numbers = f"{line.old or '':>{_DIGITS}} {line.new or '':>{_DIGITS}} "
                done += self._drawn(line, numbers, self._look.width, self._look.wrap)
        return done

    def two(self, lines: Sequence[DiffLine]) -> list[Text]:
        """Two columns, old and new."""
        half = (self._look.width - 3) // 2
        done: list[Text] = []
        for old, new in in_pairs(lines):
            if old is not None and old.tag == "gap":
                done.append(_gap_text(old, self._look.width))
                continue
            left = self._drawn(old, f"{old.old or '':>{_DIGITS}} ", half) if old else []
            right = self._drawn(new, f"{new.new or '':>{_DIGITS}} ", half) if new else []
            for n in range(max(len(left), len(right))):
                a, b = (side[n] if n < len(side) else Text(" " * half) for side in (left, right))
                done.append(join(a, (" │ ", DIM), b))
        return done

    def _drawn(self, line: DiffLine, numbers: str, width: int, wrap: bool = True) -> list[Text]:
        """A line with its numbers and sign, wrapped and tinted to the full width."""
        head = join((numbers, DIM), (f"{line.tag} ", _SIGNS[line.tag]))
        whole = join(head, self._body(line))
        hang = " " * (len(numbers) + 2)
        parts = wrapped(whole, width, hang) if wrap else [whole]
        tint = self._tint(line.tag)
        if tint:
            for part in parts:
                part.pad_right(max(width - part.cell_len, 0))
                part.stylize_before(tint)
            return parts
        return [fit(part, width) for part in parts] if wrap else parts

    def _body(self, line: DiffLine) -> Text:
        """The line as code with its changes marked."""
        code, number = (self._old, line.old) if line.tag == "-" else (self._new, line.new)
        at = (number or 1) - 1
        body = colored(code[at]) if at < len(code) else text(line.text)
        style = self._tint(line.tag, strong=True) or Style(bold=True, underline=True)
        for start, end in line.changed:
            body.stylize(style, start, end)
        return body

    def _tint(self, tag: str, strong: bool = False) -> Style | None:
        tints = self._look.tints
        if tints is None or tag not in "+-":
            return None
        return Style(bgcolor=tints[("+-".index(tag)) + 2 * strong])


def _gap_text(line: DiffLine, width: int) -> Text:
    return fit(text(f"{'':>{2 * _DIGITS + 2}}⋯ {line.text}", DIM), width)


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", text=f"{lines} equal line{'s' if lines > 1 else ''}")


def _replaced(before: list[str], after: list[str], a: int, c: int) -> list[DiffLine]:
    """Removed and added lines; similar pairs are compared word by word."""
    old = [DiffLine("-", a + n + 1, None, line) for n, line in enumerate(before)]
    new = [DiffLine("+", None, c + n + 1, line) for n, line in enumerate(after)]
    for n, (one, other) in enumerate(zip(old, new, strict=False)):
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
