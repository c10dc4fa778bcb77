"""Trajectories as files: a page, Markdown, or one screen as a picture or as text."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.markdown import markdown
from kevin_env.app.replay.page import page
from kevin_env.app.replay.plain import Choice, chosen, rows_of
from kevin_env.app.replay.screens import Frame, render
from kevin_env.app.replay.state import Size, State, grown, opened
from kevin_env.app.replay.view_keys import go_to
from kevin_env.app.writing import write_text
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine

MOST_BYTES = 300_000_000
"""Of records in one page: browsers give up on much larger ones."""

# Like rich's own, without the fonts that it has fetched from elsewhere.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">\
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def export(library: Library, choice: Choice, out: Path, size: str, errors: Console) -> Path:
    """Writes what is chosen to `out`, in the way that its ending says.

    Args:
        library: where the trajectories are.
        choice: which of them, and for a screen which turn.
        out: `.html`, `.md`, `.svg` or `.txt`.
        size: of the screen for `.svg` and `.txt`, such as `140x42`.
        errors: lines that cannot be read are named there.

    Raises:
        BadInput: if the ending or the size makes no sense, there is nothing to write, or `out`
            cannot be written.
    """
    if out.suffix not in (".html", ".md", ".svg", ".txt"):
        raise BadInput(f"cannot export to {out}: its name must end in .html, .md, .svg or .txt")
    if out.suffix == ".html":
        text = page(library.path.name, _no_more_than(library, choice, errors))
    elif out.suffix == ".md":
        text = "\n".join(map(markdown, chosen(library, choice, errors)))
    else:
        room = _size(size)
        frame = _screen(library, choice, room, errors)
        text = _svg(frame, room, library.path.name) if out.suffix == ".svg" else _text(frame)
    write_text(out, text)
    return out


def _no_more_than(library: Library, choice: Choice, errors: Console) -> Iterator[Trajectory]:
    rows = rows_of(library, choice, errors)
    if sum(row.place.size for row in rows) > MOST_BYTES:
        raise BadInput(
            f"{len(rows)} trajectories are too much for one page; choose fewer with --filter or --episode"
        )
    return chosen(library, choice, errors)


def _screen(library: Library, choice: Choice, size: Size, errors: Console) -> Frame:
    """The view of the trajectory that is chosen, or the list of several."""
    rows = rows_of(library, choice, errors)
    state = grown(State(title=library.path.name, size=size), tuple(rows), library.bad, 1.0)
    if len(rows) == 1 or choice.turn is not None:
        read = library.episode(rows[0])
        if isinstance(read, BadLine):
            raise BadInput(str(read))
        state = replace(state, wanted=(rows[0],))
        state = opened(state, [read])
        numbers = [turn.turn for turn in read.turns]
        state = go_to(state, numbers.index(choice.turn) if choice.turn in numbers else 0)
    return render(state, size)


def _svg(frame: Frame, size: Size, title: str) -> str:
    console = Console(
        record=True, width=size.columns, file=io.StringIO(), color_system="truecolor", markup=False
    )
    for line in frame:
        console.print(line, no_wrap=True, crop=True, end="\n")
    return console.export_svg(
        title=title, theme=SVG_EXPORT_THEME, code_format=_SVG, unique_id="replay"
    )


def _text(frame: Frame) -> str:
    return "".join(f"{line.plain.rstrip()}\n" for line in frame)


def _size(words: str) -> Size:
    found = re.fullmatch(r"(\d{2,3})x(\d{1,3})", words)
    if not found:
        raise BadInput(f"--size {words!r} is no size; say columns x rows, such as 140x42")
    return Size(int(found[1]), int(found[2]))
