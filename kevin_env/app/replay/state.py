"""What the screen shows, as frozen values, and what happens to them apart from keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

from kevin_env.app.replay.query import EVERYTHING, Query, Sort, chosen
from kevin_env.app.replay.rows import Row
from kevin_env.record import Trajectory, Turn
from kevin_env.recorder import BadLine

Screen = Literal["list", "view", "bad"]
Pane = Literal["kernel", "diff", "feedback", "prompt", "reply", "timings", "reward"]
PANES: tuple[Pane, ...] = get_args(Pane)
Base = Literal["previous", "best", "other"] | int
"""What a diff starts from: the turn before, the fastest turn before, the other trajectory, or a
turn by its number.
"""
Asking = Literal["filter", "search", "row", "turn", "base"]
"""What is being typed at the foot of the screen."""

PERIODS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
"""Seconds that auto-play stays on a turn, from slow to fast."""


class Size(NamedTuple):
    """Of the screen, in characters."""

    columns: int
    rows: int


USUAL = Size(80, 24)


@dataclass(frozen=True, slots=True)
class Listing:
    """The list of trajectories."""

    rows: tuple[Row, ...] = ()
    shown: Sequence[int] = ()
    """Numbers into `rows`, filtered and in order."""
    at: int = 0
    """Where the cursor is in `shown`."""
    words: str = ""
    query: Query = EVERYTHING
    hits: frozenset[int] = frozenset()
    """Numbers of the rows whose record holds the query's text, as far as `searched`."""
    searched: int = 0
    sort: Sort = "file"
    reverse: bool = False
    marked: Row | None = None
    """What the next one is compared with."""
    bad: tuple[BadLine, ...] = ()
    progress: float = 1.0

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.shown[self.at]] if 0 <= self.at < len(self.shown) else None


@dataclass(frozen=True, slots=True)
class View:
    """One trajectory, at one of its turns."""

    row: Row
    episode: Trajectory
    at: int = 0
    """The turn, from 0."""
    scroll: int = 0
    """Lines of the pane above the screen."""
    shift: int = 0
    """Characters of the pane left of the screen, when lines are not wrapped."""

    @property
    def turn(self) -> Turn | None:
        """The turn that is shown; None while there is none."""
        return self.episode.turns[self.at] if self.at < len(self.episode.turns) else None


@dataclass(frozen=True, slots=True)
class Typing:
    """A line being typed, and what for."""

    what: Asking
    text: str = ""
    before: str = ""
    """What stood there; it comes back when the line is left."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is on the screen.

    `wanted` asks whoever runs the screen to open episodes, and to hand them over with `opened`.
    """

    title: str
    size: Size = USUAL
    screen: Screen = "list"
    listing: Listing = field(default_factory=Listing)
    views: tuple[View, ...] = ()
    """One, or two side by side."""
    focus: int = 0
    pane: Pane = "kernel"
    base: Base = "previous"
    wrap: bool = True
    reasoning: bool = True
    timeline: bool = True
    side_by_side: bool = False
    help: bool = False
    help_scroll: int = 0
    typing: Typing | None = None
    search: str = ""
    hit: int = -1
    """The line of the pane that was found last."""
    playing: bool = False
    speed: int = 2
    """Index into `PERIODS`."""
    follow: bool = False
    notice: str = ""
    wanted: tuple[Row, ...] = ()
    done: bool = False

    @property
    def view(self) -> View:
        """The trajectory that keys act on."""
        return self.views[self.focus]

    def with_view(self, **changes: object) -> "State":
        """With the trajectory that keys act on changed."""
        views = list(self.views)
        views[self.focus] = replace(self.view, **changes)  # type: ignore[arg-type]
        return replace(self, views=tuple(views))

    def with_listing(self, **changes: object) -> "State":
        """With the list changed, and what it shows chosen anew; the cursor stays on its row."""
        current = self.listing.current
        new = replace(self.listing, **changes)  # type: ignore[arg-type]
        shown = chosen(new.rows, new.query, new.sort, new.reverse, new.hits)
        at = min(new.at, max(len(shown) - 1, 0))
        if current is not None and not _is_at(new, shown, at, current):
            at = next((i for i, n in enumerate(shown) if new.rows[n].key == current.key), at)
        return replace(self, listing=replace(new, shown=shown, at=at))


def grown(state: State, rows: tuple[Row, ...], bad: tuple[BadLine, ...], progress: float) -> State:
    """More has been read. Hits are numbers of rows, so they are looked for again when rows went or
    moved.
    """
    same = (
        len(rows) >= len(state.listing.rows)
        and rows[: len(state.listing.rows)] == state.listing.rows
    )
    again = (
        {} if same or not state.listing.query.text else {"hits": frozenset[int](), "searched": 0}
    )
    return state.with_listing(rows=rows, bad=bad, progress=progress, **again)


def found(state: State, text: str, hits: frozenset[int], searched: int) -> State:
    """The library has looked for the filter's text in more rows."""
    if text != state.listing.query.text:
        return state
    return state.with_listing(hits=state.listing.hits | hits, searched=searched)


def opened(state: State, episodes: Sequence[Trajectory | BadLine]) -> State:
    """What was wanted is here: one to look at, or two to compare."""
    state, rows = replace(state, wanted=()), state.wanted
    bad = next((each for each in episodes if isinstance(each, BadLine)), None)
    if bad is not None:
        return replace(state, notice=str(bad))
    read = [each for each in episodes if isinstance(each, Trajectory)]
    views = [
        View(row, each, _first_turn(state, each, len(read)))
        for row, each in zip(rows, read, strict=True)
    ]
    pane = state.pane if state.screen == "view" else "kernel"
    base: Base = "other" if len(views) == 2 else "previous"
    return replace(
        state, screen="view", views=tuple(views), focus=0, pane=pane, base=base, playing=False
    )


def _first_turn(state: State, episode: Trajectory, many: int) -> int:
    """Where one begins to look: at the start, at the end of what still runs, and at the best when
    comparing.
    """
    if many > 1:
        return best_turn(episode)
    return max(len(episode.turns) - 1, 0) if state.follow and episode.stop_reason is None else 0


def renewed(state: State, episodes: Sequence[Trajectory | BadLine]) -> State:
    """The episodes on the screen have been read again. Who looked at the last turn looks at the new
    last one.
    """
    views: list[View] = []
    for view, episode in zip(state.views, episodes, strict=True):
        if isinstance(episode, BadLine) or len(episode.turns) == len(view.episode.turns):
            views.append(view if isinstance(episode, BadLine) else replace(view, episode=episode))
            continue
        last = len(episode.turns) - 1
        at_end = view.at >= len(view.episode.turns) - 1
        views.append(
            replace(
                view,
                episode=episode,
                at=last if at_end else view.at,
                scroll=0 if at_end else view.scroll,
            )
        )
    return replace(state, views=tuple(views))


def resized(state: State, size: Size) -> State:
    """The terminal has another size."""
    return replace(state, size=size)


def best_turn(episode: Trajectory) -> int:
    """Where the fastest turn is, from 0; the last correct one when none was timed, else the last."""
    turns = episode.turns
    timed = [(turn.speedup, -n) for n, turn in enumerate(turns) if turn.speedup is not None]
    if timed:
        return -max(timed)[1]
    right = [n for n, turn in enumerate(turns) if turn.category == "correct"]
    return right[-1] if right else max(len(turns) - 1, 0)


def _is_at(listing: Listing, shown: Sequence[int], at: int, row: Row) -> bool:
    return at < len(shown) and listing.rows[shown[at]].key == row.key
