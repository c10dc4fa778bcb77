"""Exports trajectories to HTML, Markdown, or a screen as SVG or text."""

import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.markdown import markdown
from kevin_env.app.replay.page import page
from kevin_env.app.replay.plain import Choice, chosen, rows_of
from kevin_env.app.replay.rows import Row
from kevin_env.app.writing import write_text
from kevin_env.recorder import BadLine

MOST_BYTES = 300_000_000
"""Limit of the records in one page; browsers fail on much larger pages."""


def export(library: Library, choice: Choice, out: Path, size: str, errors: Console) -> Path:
    """Writes the chosen trajectories in the format of `out`'s extension.

    A screen (`.svg` or `.txt`) has a size such as `140x42`. Unreadable lines are reported on
    `errors`.

    Raises:
        BadInput: if the extension or the size is invalid, no trajectory matches, or `out` cannot be
            written.
    """
    if out.suffix not in (".html", ".md", ".svg", ".txt"):
        raise BadInput(f"cannot export to {out}: its name must end in .html, .md, .svg or .txt")
    if out.suffix == ".html":
        require_room(rows_of(library, choice, errors))
        text = page(library.path.name, chosen(library, choice, errors))
    elif out.suffix == ".md":
        text = "\n".join(map(markdown, chosen(library, choice, errors)))
    else:
        text = _screen(library, choice, _size(size), errors)[out.suffix == ".txt"]
    write_text(out, text)
    return out


def require_room(rows: Sequence[Row]) -> None:
    """Raises BadInput if these episodes do not fit into one page."""
    if sum(row.place.size for row in rows) > MOST_BYTES:
        raise BadInput(
            f"{len(rows)} trajectories are too many for one page; "
            "choose fewer with --filter or --episode"
        )


def _screen(
    library: Library, choice: Choice, size: tuple[int, int], errors: Console
) -> tuple[str, str]:
    """SVG and text of one trajectory at its best turn, or of the list of several."""
    from kevin_env.app.tui.still import still

    rows = rows_of(library, choice, errors)
    if len(rows) > 1 and choice.turn is None:
        return still(library, rows, None, None, size)
    read = library.episode(rows[0])
    if isinstance(read, BadLine):
        raise BadInput(str(read))
    numbers = [turn.turn for turn in read.turns]
    at = numbers.index(choice.turn) if choice.turn in numbers else None
    return still(library, rows, read, at, size)


def _size(words: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,3})x(\d{1,3})", words)
    if not found:
        raise BadInput(f"--size {words!r} is not valid: give columns x rows, such as 140x42")
    return int(found[1]), int(found[2])
