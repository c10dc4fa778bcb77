"""Blocks as lines of a given width."""

import functools
from collections.abc import Iterable, Sequence

from rich.text import Text

from kevin_env.app.replay.code import Line, code_lines, fenced, lines_of
from kevin_env.app.replay.describe import (
    Bars,
    Block,
    Code,
    Facts,
    Log,
    Pane,
    Prose,
    Section,
    pane_blocks,
    return_sum,
    score_sum,
)
from kevin_env.app.replay.diffs import diff_pane
from kevin_env.app.replay.pieces import DIM, Look, bar, colored, join, paragraph, text, wrapped
from kevin_env.record import Trajectory, best_turn
from kevin_env.render import speedup_text

_NAME = 12
"""Width of the names of facts."""
_STYLES = {"wrong": "magenta", "aside": DIM, "thought": "italic"}


def pane_lines(episode: Trajectory, at: int, pane: Pane, look: Look) -> list[Text]:
    """All lines of a pane, for the turn at index `at`."""
    if at >= len(episode.turns):
        return [text("no turn has been judged yet", DIM)]
    if pane == "diff":
        return diff_pane(episode.turns, at, look)
    return lines_of_blocks(pane_blocks(episode, at, pane), look)


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
        case Log(name, words):
            room = Look(max(look.width - _NAME, 8), look.wrap)
            found = [piece for line in lines_of(words) for piece in _row(text(line), room, "")]
            return _named(name, found)
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
    ended = f"ended: {episode.stop_reason}" if episode.stop_reason else "running"
    words = [
        episode.model or "no model",
        episode.hardware.name if episode.hardware else "no device yet",
        f"{len(episode.turns)}{of} turns",
        *(more or [ended]),
    ]
    left, best = text(f" {'  ·  '.join(words)}", DIM), best_turn(episode.turns)
    if best is None:
        return left, text("no speedup yet " if not episode.stop_reason else "no speedup ", DIM)
    where = f" (turn {best.turn}{', noisy' * (best.kind == 'too_noisy')}) "
    return left, join(("best ", DIM), (speedup_text(best.speedup), "bold green"), (where, DIM))


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
        gutter = join(head, ("│ ", DIM))
        body = colored(line)
        if marked:
            body.stylize("bold")
        done += _row(join(gutter, body), look, " " * (digits + 2) + "│ ")
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
    done: list[Text] = []
    for line in lines:
        plain = len(line) == 1 and line[0][0] == ""
        if look.wrap and plain:
            done += paragraph(line[0][1], look.width)
        else:
            done += _row(colored(line), look, "")
    return done


def _row(line: Text, look: Look, hang: str) -> list[Text]:
    return wrapped(line, look.width, hang) if look.wrap else [line]
