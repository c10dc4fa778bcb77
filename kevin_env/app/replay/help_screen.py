"""The page that `?` shows."""

from dataclasses import replace

from rich.text import Text

from kevin_env.app.replay.pieces import DIM, join, paragraph, rule, text
from kevin_env.app.replay.query import HELP
from kevin_env.app.replay.rows import MARKS
from kevin_env.app.replay.state import Size, State
from kevin_env.app.screen import COLOURS

_LIST = (
    (
        "j k  ↑ ↓",
        "down, up; space pgdn pgup ctrl-d ctrl-u by pages, g G to the ends, : to a number",
    ),
    ("enter  l  →", "open"),
    ("/", "filter; esc clears it"),
    ("s S  r", "sort by the next or previous column, reverse the order"),
    ("m  c", "mark a trajectory, compare the marked one with this one"),
    ("f  !", "follow the file as it grows; the lines that cannot be read"),
)
_VIEW = (
    ("h l  ← →", "previous, next turn; 0 $ first, last; b fastest; : to a number"),
    ("e  i", "next failure, next improvement"),
    ("H L  [ ]", "previous, next trajectory of the list"),
    ("j k  ↑ ↓", "scroll; space pgdn pgup ctrl-d ctrl-u by pages, g G to the ends, < > sideways"),
    ("1 - 7  tab", "kernel, diff, feedback, prompt, reply, timings, reward"),
    ("d  D", "diff from the previous turn or the best before; from any turn"),
    ("s  w  r  t", "diff in two columns, wrap lines, show reasoning, show the timeline"),
    ("/  n  N", "search in the pane, next, previous"),
    ("a  + -", "auto-play, faster, slower"),
    ("m  c  o", "mark, compare with the marked one, to the other side"),
    ("q  esc", "back; Q quits from anywhere"),
)


def help_lines(state: State, size: Size) -> list[Text]:
    """The page, from the line that it is scrolled to."""
    lines = [
        *_part("In the list", _LIST, size.columns),
        *_part("In a trajectory", _VIEW, size.columns),
        *_part("Words of a filter", HELP, size.columns),
        text(" Marks of a turn", "bold"),
        join(
            "   ",
            *(
                part
                for name, mark in MARKS.items()
                for part in ((mark, COLOURS[name]), f" {name}   ")
            ),
        ),
        Text(),
    ]
    return [
        text(" kevin-env replay: keys", "bold"),
        rule(size.columns),
        *lines[state.help_scroll :],
    ]


def last_scroll(state: State) -> int:
    """How far the page can be scrolled."""
    lines = help_lines(replace(state, help_scroll=0), state.size)
    return max(len(lines) - (state.size.rows - 1), 0)


def _part(title: str, pairs: tuple[tuple[str, str], ...], columns: int) -> list[Text]:
    width = max(len(key) for key, _ in pairs) + 2
    lines: list[Text] = []
    for key, words in pairs:
        for number, line in enumerate(paragraph(words, columns - width - 4, DIM)):
            lines.append(join("   ", (f"{'' if number else key:<{width}}", "cyan"), line))
    return [text(f" {title}", "bold"), *lines, Text()]
