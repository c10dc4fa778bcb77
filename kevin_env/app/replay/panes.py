"""Blocks as lines of a given width."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.style import Style
from rich.text import Text

from kevin_env.app.replay.code import Line, code_lines, fenced, lines_of
from kevin_env.app.replay.describe import (
    Bars,
    Block,
    Code,
    Diff,
    Facts,
    Log,
    Pane,
    Prose,
    Section,
    pane_blocks,
    return_sum,
    score_sum,
)
from kevin_env.app.replay.diffs import DiffLine, counts, in_pairs
from kevin_env.app.replay.pieces import (
    DIM,
    Look,
    bar,
    colored,
    fit,
    join,
    paragraph,
    text,
    wrapped,
)
from kevin_env.app.screen import best_text, ended_text
from kevin_env.record import Trajectory, Turn, best_turn
from kevin_env.render import speedup_text

_NAME = 12
"""Width of the names of facts."""
_DIGITS = 4
"""Width of a line number in a diff."""
_TWO_COLUMNS = 60
"""Least width of a diff in two columns."""
_SIGNS = {" ": "", "-": "bold red", "+": "bold green"}
_STYLES = {"wrong": "magenta", "aside": DIM, "thought": "italic"}


def pane_lines(episode: Trajectory, at: int, pane: Pane, look: Look) -> list[Text]:
    """All lines of a pane, for the turn at index `at`."""
    if at >= len(episode.turns):
        return [text("no turn has been judged yet", DIM)]
    return lines_of_blocks(pane_blocks(episode, at, pane, look.base, look.other), look)


def lines_of_blocks(blocks: Iterable[Block], look: Look) -> list[Text]:
    """Blocks below each other, with a line between sections."""
    done: list[Text] = []
    for block in blocks:
        if done and isinstance(block, Section):
            done.append(Text())
        done += _lines(block, look)
    return done


def _lines(block: Block, look: Look) -> Sequence[Text]:
    match block:
        case Section(title):
            rule = " " + "─" * max(look.width - len(title) - 4, 0)
            return [join(("── ", DIM), (title, "bold"), (rule, DIM))]
        case Prose(words, "thought") if not look.reasoning:
            return [text("hidden: r shows it", DIM)]
        case Prose(words, style):
            return paragraph(words, look.width, _STYLES[style]) if style else prose(words, look)
        case Facts(pairs):
            return [line for name, value in pairs for line in _fact(name, value, look)]
        case Code(code, wrong, note):
            return _numbered(code, wrong, note, look)
        case Diff():
            return _diff(block, look)
        case Log(name, words):
            room = Look(max(look.width - _NAME, 8), look.wrap)
            return _named(
                name, [piece for line in lines_of(words) for piece in _row(text(line), room)]
            )
        case Bars(seconds, total):
            width = max(min(look.width - _NAME - 12, 60), 4)
            rows = [(name, value, bar(value / total, width)) for name, value in seconds]
            return [
                join((f"{name:<{_NAME}}", DIM), f"{value:8.3f}  ", (drawn, "cyan"))
                for name, value, drawn in (*rows, ("total", total, ""))
            ]


def _fact(name: str, value: str, look: Look) -> list[Text]:
    room = max(_NAME, len(name) + 2)
    return _named(name, paragraph(value, max(look.width - room, 8)), room)


def _named(name: str, lines: Iterable[Text], room: int = _NAME) -> list[Text]:
    heads = (f"{name if not number else '':<{room}}" for number in range(1 << 30))
    return [join((head, DIM), line) for head, line in zip(heads, lines, strict=False)]


def facts(episode: Trajectory, more: Sequence[str] = ()) -> tuple[Text, Text]:
    """Model, device and turns of an episode, and its best speedup."""
    of = f" of {episode.config['max_turns']}" if "max_turns" in episode.config else ""
    ended = ended_text(episode.stop_reason) if episode.stop_reason else "running"
    words = [
        episode.model or "no model",
        episode.hardware.name if episode.hardware else "no device yet",
        f"{len(episode.turns)}{of} turns",
        *(more or [ended]),
    ]
    left, best = text(f" {'  ·  '.join(words)}", DIM), best_turn(episode.turns)
    if best is None:
        return left, text("no speedup yet " if not episode.stop_reason else "no speedup ", DIM)
    return left, text(f"{best_text(best)} ", "bold green")


def about_lines(episode: Trajectory, at: int, width: int) -> list[Text]:
    """The text beside a kernel: score and return written out, the summary, the feedback."""
    turn = episode.turns[at]
    said = (
        Prose(f"score {turn.turn} = {score_sum(turn, episode)}"),
        Prose(f"return {turn.turn} = {return_sum(episode, at)}"),
        *([Prose(turn.summary, "aside")] if turn.summary else []),
        *pane_blocks(episode, at, "feedback"),
    )
    return [line for each in said for line in (Text(), *_lines(each, Look(width)))]


@functools.lru_cache(maxsize=32)
def _numbered(code: str, wrong: tuple[int, ...], note: str, look: Look) -> tuple[Text, ...]:
    """Code with line numbers; lines named by an error are marked, the error follows."""
    lines = code_lines(code)
    digits = max(len(str(len(lines))), 3)
    done: list[Text] = []
    for number, line in enumerate(lines, start=1):
        marked = number in wrong
        head = (f"▶{number:>{digits}} ", "bold red") if marked else (f" {number:>{digits}} ", DIM)
        body = colored(line)
        if marked:
            body.stylize("bold")
        done += _row(body, look, join(head, ("│ ", DIM)), " " * (digits + 2) + "│ ")
        if marked and number == wrong[-1]:
            below = paragraph(note, look.width - digits - 4, "red")
            done += (join((" " * (digits + 2) + "╰ ", "red"), each) for each in below)
    return tuple(done)


@functools.lru_cache(maxsize=64)
def prose(words: str, look: Look) -> tuple[Text, ...]:
    """Prose broken between words, fenced code with its colors."""
    return tuple(prose_lines(fenced(words), look))


def prose_lines(lines: Iterable[Line], look: Look) -> list[Text]:
    """As `prose`, of lines that are colored already."""
    return [piece for line in lines for piece in _row(colored(line), look)]


def _row(line: Text, look: Look, head: Text | str = "", hang: str = "") -> list[Text]:
    return wrapped(line, look.width, head, hang) if look.wrap else [join(head, line)]


def _diff(diff: Diff, look: Look) -> list[Text]:
    """A title, and the changed lines as code in one or two columns."""
    added, removed = counts(diff.lines)
    title = [
        join(
            (f"{diff.name}: ".removeprefix(": "), "bold"),
            *_compared(diff.before),
            "  →  ",
            *_compared(diff.after),
            (f"   +{added}", "green"),
            (f" -{removed}", "red"),
        ),
        Text(),
    ]
    if not diff.lines:
        return [*title, text("the two are the same", DIM)]
    two = look.side_by_side and look.width >= _TWO_COLUMNS
    return [*title, *(_two_columns if two else _one_column)(diff, look)]


def _compared(turn: Turn) -> tuple[tuple[str, str], tuple[str, str]]:
    verdict = f"{turn.category} {speedup_text(turn.speedup)}".rstrip()
    return (f"turn {turn.turn} ", "bold"), (verdict, DIM)


def _one_column(diff: Diff, look: Look) -> Iterator[Text]:
    codes = tuple(map(code_lines, diff.codes))
    for line in diff.lines:
        if line.tag == "gap":
            yield _gap(line, look)
        else:
            numbers = f"{line.old or '':>{_DIGITS}} {line.new or '':>{_DIGITS}} "
            yield from _changed(line, codes, numbers, look)


def _two_columns(diff: Diff, look: Look) -> Iterator[Text]:
    """The old lines at the left of the new ones."""
    codes = tuple(map(code_lines, diff.codes))
    half = replace(look, width=(look.width - 3) // 2, wrap=True)
    blank = Text(" " * half.width)
    for old, new in in_pairs(diff.lines):
        if old is not None and old.tag == "gap":
            yield _gap(old, look)
            continue
        left = _changed(old, codes, f"{old.old or '':>{_DIGITS}} ", half) if old else []
        right = _changed(new, codes, f"{new.new or '':>{_DIGITS}} ", half) if new else []
        for one, other in zip_longest(left, right, fillvalue=blank):
            yield join(one, (" │ ", DIM), other)


def _gap(line: DiffLine, look: Look) -> Text:
    return fit(text(f"{'':>{2 * _DIGITS + 2}}⋯ {line.text}", DIM), look.width)


def _changed(
    line: DiffLine, codes: Sequence[Sequence[Line]], numbers: str, look: Look
) -> list[Text]:
    """A line with its numbers and sign, tinted to the full width where it was added or removed."""
    code, number = (codes[0], line.old) if line.tag == "-" else (codes[1], line.new)
    at = (number or 1) - 1
    body = colored(code[at]) if at < len(code) else text(line.text)
    tint = look.tints["+-".index(line.tag) :: 2] if look.tints and line.tag in "+-" else None
    marked = Style(bgcolor=tint[1]) if tint else Style(bold=True, underline=True)
    for start, end in line.changed:
        body.stylize(marked, start, end)
    head = join((numbers, DIM), (f"{line.tag} ", _SIGNS[line.tag]))
    parts = _row(body, look, head, " " * head.cell_len)
    if look.wrap or tint:
        parts = [fit(part, max(part.cell_len, look.width)) for part in parts]
    if tint:
        for part in parts:
            part.stylize_before(Style(bgcolor=tint[0]))
    return parts
