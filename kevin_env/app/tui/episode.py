"""The turns of one episode, and the panes of the selected turn."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from kevin_env.advantage import returns_of
from kevin_env.app.errors import one_line
from kevin_env.app.replay.code import lines_of
from kevin_env.app.replay.describe import PANES, Pane
from kevin_env.app.replay.panes import about_lines, pane_lines
from kevin_env.app.replay.pieces import Base, Look, text
from kevin_env.app.replay.tables import turn_columns, turn_row
from kevin_env.app.screen import best_at
from kevin_env.app.tui.app import SCROLLING, AskScreen, KevinApp, Scrolling
from kevin_env.app.tui.widgets import Lines, Rows
from kevin_env.app.writing import write_text
from kevin_env.record import Trajectory, Turn, best_turn

_FRAME = 4
"""Columns of the table of turns outside its cells: mark, gap and scrollbar."""
_SIDE = (62, 76)
"""Minimum and maximum width of the turns beside the pane."""
WIDE = 132
"""Least width of a screen with the turns beside the pane."""


@dataclass(frozen=True)
class Now:
    """The running turn, shown below the finished ones."""

    cells: Mapping[str, Text]
    """Its row of the table."""
    title: str
    make: Callable[[int], Sequence[Text]]
    """Its lines, for a width."""


class EpisodeView(Horizontal):
    """An episode at one of its turns.

    Args:
        episode: with the turns so far.
        at: index of the first turn shown; the number of turns means the running one.
        now: the running turn, if any.
        paired: of an episode beside another one, the number of turns of the longer.
    """

    DEFAULT_CSS = """
    EpisodeView #about { height: 1fr; padding: 0 1; }
    EpisodeView #tabs { height: 1; background: $boost; link-style: none; link-style-hover: bold; }
    EpisodeView #main { border-left: vkey $panel; }
    EpisodeView.-narrow { layout: vertical; }
    EpisodeView.-narrow #side { width: 1fr; height: auto; max-height: 40%; }
    EpisodeView.-narrow #main { border-left: none; }
    EpisodeView.-narrow #about { display: none; }
    EpisodeView.-paired { border-left: vkey $panel; }
    EpisodeView.-plain #side { display: none; }
    """

    class Moved(Message):
        """Another turn is shown."""

    def __init__(
        self, episode: Trajectory, at: int, now: Now | None = None, paired: int = 0
    ) -> None:
        super().__init__(classes="-narrow -paired" if paired else None)
        self.episode, self.at, self.now, self.paired = episode, at, now, paired
        self.shown: Pane = "kernel"
        self.look = Look(0)
        """How panes are drawn, apart from their width."""

    def compose(self) -> ComposeResult:
        with Vertical(id="side"):
            yield Rows(id="turns")
            yield Lines(id="about")
        with Vertical(id="main"):
            yield Static(id="tabs")
            yield Lines(id="pane")

    @property
    def turn(self) -> Turn | None:
        """The selected turn; None for the running one."""
        turns = self.episode.turns
        return turns[self.at] if self.at < len(turns) else None

    @property
    def pane(self) -> Lines:
        return self.query_one("#pane", Lines)

    @property
    def last(self) -> int:
        """The last turn that can be shown, from 0."""
        return max(len(self.episode.turns) - (self.now is None), 0)

    def on_mount(self) -> None:
        self.update()

    def on_resize(self) -> None:
        self.set_class(self.size.width < WIDE or self.paired > 0, "-narrow")
        self._table()
        self._tabs()

    def go_to(self, at: int) -> None:
        """Selects the turn with this index, or the nearest."""
        self.at = min(max(at, 0), self.last)
        self.update()
        self.post_message(self.Moved())

    def set(self, keep: bool = False, pane: Pane | None = None, **look: Any) -> None:
        """Shows another pane, or the pane with another look, from the top unless `keep`."""
        self.shown, self.look = pane or self.shown, replace(self.look, **look)
        self.update(keep)

    def show(self, episode: Trajectory, now: Now | None = None) -> None:
        """Shows new turns of the episode; if the last turn was selected, it stays so."""
        followed = self.at >= self.last
        same = self.at < len(self.episode.turns)
        self.episode, self.now = episode, now
        at = self.last if followed else min(self.at, self.last)
        moved, self.at = at != self.at, at
        self.update(keep=not moved and same == (at < len(episode.turns)))

    def update(self, keep: bool = False) -> None:
        """Redraws everything; `keep` preserves the scroll position."""
        if not self.query("#pane"):  # a timer may fire before the parts are composed
            return
        self._table()
        self._tabs()
        turn, at = self.turn, self.at
        about = (lambda width: about_lines(self.episode, at, width)) if turn else lambda width: ()
        self.query_one("#about", Lines).show(about)
        if turn is None and self.now is not None:
            self.pane.show(self.now.make, keep=keep)
            return
        pane = self.shown
        gutter = _gutter(turn, pane) if not self.look.wrap else 0
        self.pane.show(
            lambda width: pane_lines(self.episode, at, pane, self._look(width)), gutter, keep
        )

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.go_to(event.row)

    @property
    def _side(self) -> int:
        return min(max(self.size.width - 80, _SIDE[0]), _SIDE[1])

    def _look(self, width: int) -> Look:
        return replace(self.look, width=width, tints=getattr(self.app, "tints", None))

    def _table(self) -> None:
        rows, turns = self.query_one(Rows), self.episode.turns
        narrow = self.has_class("-narrow")
        width = self.size.width if narrow else self._side
        self.query_one("#side").styles.width = None if narrow else width
        rows.cursor = self.at
        count = len(turns) + (self.now is not None)
        rows.styles.height = max(count, self.paired) + 1 if narrow else min(count + 1, 24)
        returns, best = returns_of(self.episode), best_turn(turns)
        most = max((turn.speedup or 0.0 for turn in turns), default=0.0) or 1.0
        columns = turn_columns(turns, width - _FRAME, self.episode.model)

        def cells(at: int) -> Mapping[str, Text]:
            if at >= len(turns):
                return self.now.cells if self.now else {}
            return turn_row(turns[at], returns[at], turns[at] is best, most, self.episode.model)

        rows.show(columns, count, cells)

    def _tabs(self) -> None:
        tabs = self.query_one("#tabs", Static)
        if self.turn is None and self.now is not None:
            tabs.update(text(f" {self.now.title}", "bold"))
            return
        width = self.size.width - (0 if self.has_class("-narrow") else self._side)
        long = width >= sum(len(name) + 3 for name in PANES)
        line = Text(no_wrap=True)
        for number, name in enumerate(PANES, start=1):
            chosen = name == self.shown
            style = Style(bold=chosen, reverse=chosen) + Style.from_meta(
                {"@click": f"screen.pane({number})"}
            )
            words = f"{number} {name}" if long or chosen else str(number)
            line.append(" ").append(words, style)
        tabs.update(line)


def _gutter(turn: Turn | None, pane: Pane) -> int:
    """Columns of line numbers, which do not scroll sideways."""
    if turn is None or turn.submission is None:
        return 0
    if pane == "kernel":
        return max(len(str(len(lines_of(turn.submission.code)))), 3) + 4
    return 12 if pane == "diff" else 0


_NUMBERS = range(len(PANES))
_TOGGLES = {
    "wrap": ("long lines are wrapped", "long lines go on to the right: > and < scroll"),
    "reasoning": ("the reasoning is shown", "the reasoning is hidden"),
    "side_by_side": ("the diff has two columns", "the diff has one column"),
}
"""What is said when a toggle is switched on, and off."""
EPISODE_KEYS: tuple[BindingType, ...] = (
    *SCROLLING,
    Binding("tab", "next_pane(1)", "pane", tooltip="next pane"),
    Binding("shift+tab", "next_pane(-1)", "previous pane", show=False),
    *(Binding(str(n + 1), f"pane({n + 1})", "pane by number", show=False) for n in _NUMBERS),
    Binding("d", "base", "diff", tooltip="diff; again: from the best turn"),
    Binding("D", "ask_base", "diff from a turn", show=False),
    Binding("slash", "search", "search", tooltip="search in the pane"),
    Binding("y", "copy", "copy", tooltip="copy the kernel or pane"),
    Binding("x", "save", "save", tooltip="save the kernel to a file"),
    Binding("s", "toggle('side_by_side')", "diff in two columns", show=False),
    Binding("w", "toggle('wrap')", "wrap lines on or off", show=False),
    Binding("r", "toggle('reasoning')", "reasoning on or off", show=False),
    Binding("greater_than_sign", "sideways(8)", "scroll right if not wrapped", show=False),
    Binding("less_than_sign", "sideways(-8)", "scroll left if not wrapped", show=False),
)


class EpisodeScreen(Scrolling, AskScreen):
    """A screen with one or two episodes; keys act on `view`."""

    views: Sequence[EpisodeView]
    bases: ClassVar[tuple[Base, ...]] = ("previous", "best")
    app: KevinApp[Any]  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._words = ""

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Static(classes="bar", id="facts")
        with Horizontal():
            yield from self.views
        yield from self.foot()

    def draw(self) -> None:
        """Draws title and facts."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    @property
    def view(self) -> EpisodeView:
        """The episode that keys act on."""
        return self.views[0]

    @property
    def scrolled(self) -> Lines:
        return self.view.pane

    def forget(self) -> bool:
        """Clears the search; returns whether there was one."""
        there, self._words = bool(self._words), ""
        self.view.pane.find("")
        return there

    def with_turn(self, words: str, then: Callable[[int], None]) -> None:
        """Calls `then` with the index of the turn with that number."""
        numbers = [str(turn.turn) for turn in self.view.episode.turns]
        if words == "$" and numbers:
            then(len(numbers) - 1)
        elif words in numbers:
            then(numbers.index(words))
        elif words:
            self.app.say(f"there is no turn {words}", wrong=True)

    def action_ask_base(self) -> None:

        def compare(at: int) -> None:
            self.set(pane="diff", base=self.view.episode.turns[at].turn)

        self.ask("diff from turn", "", lambda words: self.with_turn(words, compare))

    def action_search(self) -> None:
        self.ask("search", self._words, self._search)

    def _search(self, words: str) -> None:
        self._words = words
        self.action_found(1)

    def action_found(self, by: int) -> None:
        found = self.view.pane.find(self._words, by)
        if not self._words:
            self.app.say("nothing to search for; / asks for it")
        elif found is None:
            self.app.say(f"{self._words!r} is not in this pane", wrong=True)
        else:
            self.app.say(f"{found[0]} of {found[1]} lines with {self._words!r}")

    def action_copy(self) -> None:
        turn, pane = self.view.turn, self.view.shown
        if turn is not None and pane == "kernel" and turn.submission is not None:
            self.app.copy(turn.submission.code, f"the kernel of turn {turn.turn}")
        else:
            lines = self.view.pane.lines
            what = "what is shown" if turn is None else f"the {pane}"
            self.app.copy("\n".join(line.plain.rstrip() for line in lines), what)

    def action_save(self) -> None:
        turn = self.view.turn
        if turn is None or turn.submission is None:
            self.app.say("there is no kernel to save here", wrong=True)
            return
        code = turn.submission.code
        problem = re.sub(r"[^A-Za-z0-9_-]", "_", self.view.episode.problem.id)
        name = f"{problem}_turn{turn.turn}.py"
        self.ask("save the kernel as", name, lambda words: self._save(words, code))

    def _save(self, words: str, code: str) -> None:
        path = Path(words).expanduser()
        if not words:
            return
        if path.exists():
            self.app.say(f"{path} already exists; give another name", wrong=True)
            return
        try:
            write_text(path, code)
        except OSError as error:
            self.app.say(one_line(error), wrong=True)
        else:
            self.app.say(f"saved as {path}")

    def action_turn(self, by: int) -> None:
        self.view.go_to(self.view.at + by)

    def action_best(self) -> None:
        self.view.go_to(best_at(self.view.episode.turns))

    def action_pane(self, number: int) -> None:
        """Another pane, from 1."""
        self.set(pane=PANES[(number - 1) % len(PANES)])

    def action_next_pane(self, by: int) -> None:
        self.action_pane(PANES.index(self.view.shown) + 1 + by)

    def action_base(self) -> None:
        """Opens the diff; in the diff, switches to the next base."""
        if self.view.shown != "diff":
            self.set(pane="diff")
            return
        known = (*self.bases, "other") if len(self.views) == 2 else self.bases
        base = self.view.look.base
        at = known.index(base) + 1 if base in known else 0
        self.set(base=known[at % len(known)])

    def action_toggle(self, name: str) -> None:
        on = not getattr(self.view.look, name)
        self.set(keep=True, **{name: on})
        self.app.say(_TOGGLES[name][not on])

    def action_sideways(self, by: int) -> None:
        pane = self.view.pane
        pane.scroll_to(x=pane.scroll_offset.x + by, animate=False)

    def action_timeline(self) -> None:
        for view in self.views:
            view.toggle_class("-plain")

    def set(self, keep: bool = False, **changes: Any) -> None:
        """As `EpisodeView.set`, of all views."""
        for view in self.views:
            view.set(keep, **changes)
