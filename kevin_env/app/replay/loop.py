"""Reads keys, draws screens, and reads on in between: the only part that does any of these."""

import time
from pathlib import Path

from rich.console import Console

from kevin_env.app.replay.keys import reduce
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.screens import render
from kevin_env.app.replay.state import PERIODS, State, found, grown, opened, renewed, resized
from kevin_env.app.replay.terminal import Terminal
from kevin_env.app.replay.typing_keys import filtered

_SLICE = 0.03
"""Seconds that reading goes on for before keys are looked at again."""
_REDRAW = 0.2
"""Seconds between two screens while reading goes on, and between two looks at the size of the
terminal.
"""
_FOLLOW = 0.5
"""Seconds between two looks at files that are followed."""


class Replay:
    """A screen for a library.

    Args:
        library: what there is to look at.
        follow: whether to watch the files from the start.
        words: the filter to begin with.
        episode: how the id of the trajectory begins that is shown first; the list when empty.
    """

    def __init__(
        self, library: Library, follow: bool = False, words: str = "", episode: str = ""
    ) -> None:
        self._library = library
        words = f"{words} id:{episode}".strip() if episode else words
        self._state = filtered(State(title=_title(library.path), follow=follow), words)
        self._looked = self._turned = self._grew = time.monotonic()
        self._at_first = True
        self._drawn: State | None = None

    def run(self, console: Console) -> None:
        """Runs until the person leaves."""
        with Terminal(console) as terminal:
            self._library.advance(_SLICE)
            self._grow()
            while not self._state.done:
                self._fit(terminal)
                self._draw(terminal)
                busy = self._read_on()
                for key in terminal.keys(0.0 if busy else self._patience()):
                    self._press(key)
                self._tick()

    def _fit(self, terminal: Terminal) -> None:
        if terminal.size != self._state.size:
            terminal.forget()
            self._state = resized(self._state, terminal.size)

    def _draw(self, terminal: Terminal) -> None:
        if self._state is not self._drawn:
            terminal.draw(render(self._state, self._state.size))
            self._drawn = self._state

    def _press(self, key: str) -> None:
        self._state = reduce(self._state, key)
        if key in ("a", "tick"):
            self._turned = time.monotonic()
        self._open()

    def _open(self) -> None:
        if self._state.wanted:
            self._state = opened(
                self._state, [self._library.episode(row) for row in self._state.wanted]
            )

    def _read_on(self) -> bool:
        """Reads, searches and follows for a moment. Whether there is more to do at once."""
        busy = self._library.advance(_SLICE) or self._search()
        done = not busy and self._state.listing.progress != self._library.progress
        if done or (busy and time.monotonic() - self._grew > _REDRAW):
            self._grow()
        if self._state.follow and time.monotonic() - self._looked > _FOLLOW:
            self._follow()
        return busy

    def _grow(self) -> None:
        """Shows what has been read. Where there is only one trajectory, it is shown."""
        self._grew = time.monotonic()
        self._state = grown(
            self._state, self._library.rows, self._library.bad, self._library.progress
        )
        if self._at_first and self._library.progress >= 1:
            self._at_first = False
            if (
                len(self._state.listing.shown) == 1
                and self._state.screen == "list"
                and self._state.typing is None
            ):
                self._press("enter")

    def _search(self) -> bool:
        listing = self._state.listing
        if not listing.query.text or listing.searched >= len(listing.rows):
            return False
        hits, searched = self._library.search(listing.query.text, listing.searched, _SLICE)
        self._state = found(self._state, listing.query.text, hits, searched)
        return True

    def _follow(self) -> None:
        self._looked = time.monotonic()
        if not self._library.refresh():
            return
        self._library.advance(_SLICE)
        self._grow()
        if self._state.views:
            rows = {row.key: row for row in self._library.rows}
            again = [rows.get(view.row.key, view.row) for view in self._state.views]
            self._state = renewed(self._state, [self._library.episode(row) for row in again])

    def _tick(self) -> None:
        if self._state.playing and time.monotonic() - self._turned >= PERIODS[self._state.speed]:
            self._press("tick")

    def _patience(self) -> float:
        """How long to wait for a key."""
        if not self._state.playing:
            return _REDRAW
        return min(_REDRAW, self._turned + PERIODS[self._state.speed] - time.monotonic())


def _title(path: Path) -> str:
    return f"{path.name}/" if path.is_dir() else path.name
