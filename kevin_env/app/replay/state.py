"""The size of a screen."""

from typing import NamedTuple


class Size(NamedTuple):
    """Of the screen, in characters."""

    columns: int
    rows: int


USUAL = Size(80, 24)
