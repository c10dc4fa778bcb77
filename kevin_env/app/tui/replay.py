"""`kevin-env replay` on a terminal: a list of episodes, and one or two of them turn by turn."""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.replay.library import Library
from kevin_env.app.replay.panes import facts
from kevin_env.app.replay.pieces import DIM, ends, fit, join, text
from kevin_env.app.replay.query import Listing
from kevin_env.app.replay.rows import Row
from kevin_env.app.screen import best_at
from kevin_env.app.tui.app import KevinApp
from kevin_env.app.tui.episode import EPISODE_KEYS, EpisodeScreen, EpisodeView
from kevin_env.app.tui.listing import MARKS_HELP, ListScreen
from kevin_env.app.tui.widgets import Rows
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine

_SLICE, _PAUSE = 0.03, 0.01
"""Seconds of reading at a time, and of the pause for key presses after it."""
_FIRST = 0.05
"""Seconds of reading before the first screen; five times more if a fifth of the file was read."""
_REDRAW, _GROWTH = 0.2, 1.2
"""The list is redrawn after that many seconds, or longer: when it has grown by that factor."""
_FOLLOW = 0.5
"""Seconds between checks of the files that are followed."""


class ViewScreen(EpisodeScreen):
    """One episode, or two side by side."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,backspace", "app.list", "back"),
        Binding("right,l", "turn(1)", "turn", key_display="←→", tooltip="next turn"),
        Binding("left,h", "turn(-1)", "previous turn", show=False),
        Binding("0,circumflex_accent", "turn(-1000000000)", "first turn", show=False),
        Binding("dollar_sign", "turn(1000000000)", "last turn", show=False),
        *EPISODE_KEYS,
        Binding("b", "best", "best", tooltip="best turn"),
        Binding("e", "next_error", "error", tooltip="next turn that failed"),
        Binding("n", "found(1)", "next match", show=False),
        Binding("N", "found(-1)", "previous match", show=False),
        Binding("t", "timeline", "show or hide the turns", show=False),
        Binding("colon", "ask_turn", "go to a turn", show=False),
        Binding("L,right_square_bracket", "episode(1)", "next trajectory", show=False),
        Binding("H,left_square_bracket", "episode(-1)", "previous trajectory", show=False),
        Binding("m", "app.mark", "mark this trajectory", show=False),
        Binding("c", "app.compare", "compare with the marked one", show=False),
        Binding("o", "other_side", "other side of a comparison", show=False),
        Binding("f", "app.follow", "follow the file", show=False),
        Binding("escape", "escape", "clear the search, or back", show=False),
    ]
    help_sections = (("Marks of a turn", MARKS_HELP),)
    app: "ReplayApp"  # type: ignore[assignment]

    def __init__(self, rows: Sequence[Row], episodes: Sequence[Trajectory], at: int | None) -> None:
        super().__init__()
        self.rows = list(rows)
        longest = max(1, *(len(each.turns) for each in episodes)) if len(rows) == 2 else 0
        self.views = [
            EpisodeView(each, best_at(each.turns) if at is None else at, paired=longest)
            for each in episodes
        ]
        self._focus = 0
        if len(rows) == 2:
            self.set(base="other")

    @property
    def view(self) -> EpisodeView:
        return self.views[self._focus]

    @property
    def current(self) -> Row:
        return self.rows[self._focus]

    def on_episode_view_moved(self) -> None:
        """A diff from the other episode changes with either."""
        self.draw()

    def draw(self) -> None:
        if not self.query("#facts"):
            return
        for view, other in zip(self.views, reversed(self.views), strict=True):
            if len(self.views) == 2 and view.look.other is not other.turn:
                view.set(other=other.turn)
        if len(self.views) == 2:
            title = join(*(fit(self._heading(each), self.size.width // 2) for each in self.rows))
        else:
            title = self._title()
        self.query_one("#title", Static).update(title)
        self.query_one("#facts", Static).update(ends(*facts(self.view.episode), self.size.width))

    def _heading(self, row: Row) -> Text:
        sign, style = ("▶", "bold") if row is self.current else (" ", DIM)
        return text(f"{sign} {row.problem}  {row.model}  {row.episode_id[:8]}", style)

    def _title(self) -> Text:
        row, listing = self.current, self.app.listing
        when = row.created[:16].replace("T", " ")
        left = join((f" {row.problem}", "bold"), (f"  {self.app.name_of_file}  {when}", DIM))
        place = f"{listing.place(row, 0) + 1:,}/{len(listing.shown):,} " * (not self.app.lone)
        right = "following  " * self.app.following + place or " "
        return ends(left, text(right, DIM), self.size.width)

    def renew(self) -> None:
        """Shows what has been recorded since."""
        rows = {row.key: row for row in self.app.library.rows}
        self.rows = [rows.get(row.key, row) for row in self.rows]
        for view, row in zip(self.views, self.rows, strict=True):
            episode = self.app.library.episode(row)
            if isinstance(episode, Trajectory) and episode != view.episode:
                view.show(episode)
        self.draw()

    def action_escape(self) -> None:
        if not self.forget():
            self.app.action_list()

    def action_next_error(self) -> None:
        later = enumerate(self.view.episode.turns[self.view.at + 1 :], self.view.at + 1)
        at = next((at for at, turn in later if turn.category != "correct"), None)
        self.app.say("no further failure") if at is None else self.view.go_to(at)

    def action_ask_turn(self) -> None:
        self.ask("go to turn", "", lambda words: self.with_turn(words, self.view.go_to))

    def action_episode(self, by: int) -> None:
        listing = self.app.listing
        at = listing.place(self.current, 0) + by
        if len(self.views) == 2:
            self.app.say("comparing; q goes back to the list")
        elif not 0 <= at < len(listing.shown):
            self.app.say("there is no further trajectory")
        else:
            self.app.open(listing.shown[at], like=self.view)

    def action_other_side(self) -> None:
        self._focus = (self._focus + 1) % len(self.views)
        self.draw()


class ReplayApp(KevinApp[None]):
    """Shows a library, filtered by `words` and, if set, by the episode id `episode`."""

    TITLE = "kevin-env replay"

    def __init__(
        self, library: Library, follow: bool = False, words: str = "", episode: str = ""
    ) -> None:
        super().__init__()
        self.library, self.following = library, follow
        self.name_of_file = library.path.name + "/" * library.path.is_dir()
        self.listing = Listing(library, f"{words} id:{episode}".strip() if episode else words)
        self.marked: Row | None = None
        self._drawn = 0.0, 0
        self._busy = True
        self._list = ListScreen()

    @property
    def whole(self) -> bool:
        """Whether all that there is has been read and filtered."""
        return self.library.progress >= 1 and self.listing.progress >= 1

    @property
    def lone(self) -> bool:
        """Whether there is only one trajectory."""
        return len(self.library.finished) + len(self.library.running) == 1

    def on_load(self) -> None:
        """Reads a little before the first drawing."""
        self.library.advance(_FIRST)
        if 0.2 < self.library.progress < 1:
            self.library.advance(5 * _FIRST)
        self.listing.advance(_FIRST)
        self.listing.arrange()

    def get_default_screen(self) -> ListScreen:
        return self._list

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Opens the episode if there is only one to choose from."""
        if self.whole and len(self.listing.shown) == 1:
            self.open(self.listing.shown[0])
        self.screen.call_after_refresh(self._read_on)  # drawing comes first
        self.set_interval(_FOLLOW, self._follow)

    def open(self, *rows: Row, like: EpisodeView | None = None) -> None:
        """Shows an episode, or two side by side, in place of what is open."""
        read = [self.library.episode(row) for row in rows]
        episodes = [each for each in read if isinstance(each, Trajectory)]
        if bad := [each for each in read if isinstance(each, BadLine)]:
            # when it is the only one, the screen may not be there yet
            self.screen.call_after_refresh(self.say, str(bad[0]), wrong=True)
            return
        running = self.following and len(rows) == 1 and episodes[0].stop_reason is None
        at = max(len(episodes[0].turns) - 1, 0) if running else None
        screen = ViewScreen(rows, episodes, at)
        if like is not None:
            screen.views[0].shown, screen.views[0].look = like.shown, like.look
        if isinstance(self.screen, ViewScreen):
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    @property
    def current(self) -> Row | None:
        """The trajectory that keys act on."""
        screen = self.screen
        return screen.current if isinstance(screen, ListScreen | ViewScreen) else None

    def action_compare(self) -> None:
        """Shows the marked episode beside the current one."""
        row = self.current
        if row is None or self.marked is None:
            self.say("mark a trajectory with m first")
        elif row.key == self.marked.key:
            self.say("this is the marked one; choose another")
        else:
            self.open(self.marked, row)

    def action_list(self) -> None:
        """Returns to the list; quits if there is only one trajectory."""
        row = self.current
        if self.lone:
            self.exit()
        else:
            self.pop_screen()
            self._list.draw(self.listing.place(row, self._list.scrolled.cursor))

    def action_mark(self) -> None:
        row = self.current
        off = row is None or (self.marked is not None and self.marked.key == row.key)
        self.marked = None if off else row
        self.relist()
        self.say("no mark" if off else "marked; c on another trajectory compares the two")

    def action_filter(self, words: str) -> None:
        self.listing.filter(words)
        self.listing.advance(_SLICE)
        self.relist()

    def relist(self, at: int | None = None) -> None:
        """Draws the list with the cursor on row `at`, by default on the same trajectory."""
        self._drawn = time.monotonic(), self.listing.tested
        if not self._list.query(Rows):  # a timer may come before the table is there, or after
            self.listing.arrange()
            return
        row, cursor = self._list.current, self._list.scrolled.cursor
        self.listing.arrange()
        if at is None:
            at = 0 if cursor == 0 and self.listing.sort == "newest" else None
        self._list.draw(self.listing.place(row, cursor) if at is None else at)

    def action_follow(self) -> None:
        self.following = not self.following
        self.say("following: new turns appear" if self.following else "no longer following")
        self.screen.draw() if isinstance(self.screen, ViewScreen) else self.relist()

    def _read_on(self) -> None:
        """Reads and filters for a moment."""
        reads, (at, count) = self.library.advance(_SLICE), self._drawn
        was_busy, self._busy = self._busy, self.listing.advance(_SLICE) or reads
        grown = self.listing.tested > _GROWTH * count and time.monotonic() > at + _REDRAW
        if grown or (was_busy and not self._busy):
            self.relist()
        self.set_timer(_PAUSE if self._busy else _REDRAW, self._read_on)

    def _follow(self) -> None:
        if not self.following or not self.library.refresh():
            return
        self.library.advance(_SLICE)
        self.listing.advance(_SLICE)
        self.relist()
        if isinstance(self.screen, ViewScreen):
            self.screen.renew()
