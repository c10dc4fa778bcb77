"""`kevin-env replay` on a terminal: a list of episodes, and one or two of them turn by turn."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.replay.library import Library
from kevin_env.app.replay.panes import facts
from kevin_env.app.replay.pieces import DIM, ends, join, paragraph, text
from kevin_env.app.replay.query import HELP, SORTS, Listing
from kevin_env.app.replay.rows import MARKS, NOISY, Row
from kevin_env.app.replay.tables import list_cells, list_columns
from kevin_env.app.screen import best_at
from kevin_env.app.tui.app import SCROLLING, KevinApp, Pairs, TableScreen, TextScreen
from kevin_env.app.tui.episode import EPISODE_KEYS, EpisodeScreen, EpisodeView
from kevin_env.app.tui.widgets import Rows
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine

_SLICE, _PAUSE = 0.03, 0.01
"""Seconds that reading goes on for, and that it then leaves for keys."""
_FIRST = 0.05
"""Seconds of reading before the first screen. A file of which a fifth was read is read whole."""
_REDRAW = 0.2
"""Seconds between two drawings of the list while it grows."""
_FOLLOW = 0.5
"""Seconds between two looks at files that are followed."""
_MARKS: Pairs = (
    *((mark, name) for name, mark in MARKS.items()),
    (NOISY, "correct, time too noisy"),
)


class ListScreen(TableScreen):
    """The list of episodes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "quit"),
        Binding("enter,l,right", "open", "open", key_display="enter"),
        Binding("slash", "filter", "filter"),
        Binding("s", "sort(1)", "sort", tooltip="sort by the next column"),
        Binding("S", "sort(-1)", "sort by the previous column", show=False),
        Binding("r", "reverse", "reverse", tooltip="reverse the order"),
        Binding("m", "mark", "mark", tooltip="mark to compare"),
        Binding("c", "compare", "compare", tooltip="compare with the marked one"),
        Binding("f", "app.follow", "follow", tooltip="follow the file"),
        Binding("exclamation_mark", "bad", "unreadable lines", show=False),
        *SCROLLING,
        Binding("colon", "number", "go to a number", show=False),
        Binding("escape", "clear", "clear the filter", show=False),
    ]
    help_sections = (("Words of a filter", HELP), ("Marks of a turn", _MARKS))
    app: "ReplayApp"  # type: ignore[assignment]

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Rows(id="list")
        yield Static(classes="bar", id="summary")
        yield from self.foot()

    def on_mount(self) -> None:
        self.draw(0)

    def on_resize(self) -> None:
        self.draw(self.scrolled.cursor)

    @property
    def current(self) -> Row | None:
        shown = self.app.listing.shown
        at = self.scrolled.cursor
        return self.app.listing.rows[shown[at]] if at < len(shown) else None

    def draw(self, at: int) -> None:
        listing, app = self.app.listing, self.app
        columns = list_columns(listing.rows, listing.shown, self.size.width - 3)
        self.scrolled.cursor = at

        def cells(row: int) -> dict[str, Text]:
            number = listing.shown[row]
            return list_cells(listing.rows[number], number, columns)

        def mark(row: int) -> str:
            marked = app.marked
            there = marked and listing.rows[listing.shown[row]].key == marked.key
            return "●" if there else ""

        self.scrolled.show(columns, len(listing.shown), cells, mark)
        self.query_one("#title", Static).update(self._title())
        self.draw_summary()

    def draw_summary(self) -> None:
        listing = self.app.listing
        order = f"{listing.sort}{' reversed' * listing.reverse}"
        left = join((" sorted by ", DIM), order)
        if listing.words:
            left = join(left, ("  filter ", DIM), listing.words)
        if listing.query.trouble:
            left = join(left, (f"  {listing.query.trouble}", "yellow"))
        if not listing.shown:
            left = join(left, (f"  {self._nothing()}", "yellow"))
        if self.app.marked:
            left = join(left, ("  marked ", DIM), self.app.marked.problem)
        place = f"{self.scrolled.cursor + 1:,}/{len(listing.shown):,} " if listing.shown else ""
        self.query_one("#summary", Static).update(ends(left, text(place, DIM), self.size.width))

    def _title(self) -> Text:
        listing, library = self.app.listing, self.app.library
        many = f"{len(listing.rows):,}"
        if listing.words:
            many = f"{len(listing.shown):,} of {many}"
        parts = [f"{many} trajectories" if len(listing.rows) != 1 else "1 trajectory"]
        if library.progress < 1:
            parts.append(f"reading {library.progress:.0%}")
        elif listing.query.text and listing.searched < len(listing.rows):
            parts.append(f"searching {listing.searched / len(listing.rows):.0%}")
        if library.bad:
            parts.append(f"{len(library.bad)} unreadable")
        if self.app.following:
            parts.append("following")
        left = join((" kevin-env replay  ", "bold"), (self.app.name_of_file, DIM))
        return ends(left, text("  ".join(parts) + " ", DIM), self.size.width)

    def _nothing(self) -> str:
        if self.app.listing.words:
            return "nothing passes the filter; esc clears it"
        return "reading ..." if self.app.library.progress < 1 else "no trajectory yet"

    def action_scroll(self, by: int) -> None:
        super().action_scroll(by)
        self.draw_summary()

    def action_number(self) -> None:
        self.ask("go to number", "", self._go_to)

    def _go_to(self, words: str) -> None:
        if words.isdecimal():
            self.action_scroll(int(words) - 1 - self.scrolled.cursor)
        elif words:
            self.app.say(f"{words!r} is no number", wrong=True)

    def action_open(self) -> None:
        if self.current:
            self.app.open(self.current)

    def action_filter(self) -> None:
        self.ask("filter", self.app.listing.words, self.app.filter, self.app.filter)

    def action_clear(self) -> None:
        self.app.filter("")

    def action_sort(self, by: int) -> None:
        at = SORTS.index(self.app.listing.sort) + by
        self.app.relist(self.app.listing.changed(sort=SORTS[at % len(SORTS)], reverse=False), 0)

    def action_reverse(self) -> None:
        self.app.relist(self.app.listing.changed(reverse=not self.app.listing.reverse))

    def action_mark(self) -> None:
        self.app.mark(self.current)
        self.draw(self.scrolled.cursor)

    def action_compare(self) -> None:
        self.app.compare(self.current)

    def action_bad(self) -> None:
        bad = self.app.library.bad

        def lines(width: int) -> list[Text]:
            words = [f"{each.path.name} line {each.line}: {each.reason}" for each in bad]
            done = [line for each in words for line in paragraph(each, width)]
            return done or [text("every line could be read", DIM)]

        self.app.push_screen(TextScreen(f"unreadable lines: {len(bad)}", lines))


class ViewScreen(EpisodeScreen):
    """One episode, or two side by side."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,backspace", "back", "back"),
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
        Binding("m", "mark", "mark this trajectory", show=False),
        Binding("c", "compare", "compare with the marked one", show=False),
        Binding("o", "other_side", "other side of a comparison", show=False),
        Binding("f", "app.follow", "follow the file", show=False),
        Binding("escape", "escape", "clear the search, or back", show=False),
    ]
    help_sections = (("Marks of a turn", _MARKS),)
    app: "ReplayApp"  # type: ignore[assignment]

    def __init__(self, rows: Sequence[Row], episodes: Sequence[Trajectory], at: int | None) -> None:
        super().__init__()
        self.rows = list(rows)
        self.views = [
            EpisodeView(each, best_at(each.turns) if at is None else at, paired=len(rows) == 2)
            for each in episodes
        ]
        self._focus = 0

    @property
    def view(self) -> EpisodeView:
        return self.views[self._focus]

    def on_mount(self) -> None:
        if len(self.views) == 2:
            self.set(base="other")
        self.draw()

    def on_episode_view_moved(self) -> None:
        """A diff from the other episode changes with either."""
        self.draw()

    def draw(self) -> None:
        if not self.query("#facts"):
            return
        for view, other in zip(self.views, reversed(self.views), strict=True):
            if len(self.views) == 2 and view.look.other is not other.turn:
                view.set(other=other.turn)
        width, row = self.size.width, self.rows[self._focus]
        listing = self.app.listing
        place = f"{listing.place(row, 0) + 1:,}/{len(listing.shown):,} "
        signs = ["following"] * self.app.following
        right = text("  ".join([*signs, place * (len(listing.rows) > 1)]) or " ", DIM)
        if len(self.views) == 2:
            names = [f"{each.problem}  {each.model}  {each.episode_id[:8]}" for each in self.rows]
            parts = [
                ends(text(f"{'▶' if n == self._focus else ' '} {name}", style), Text(), width // 2)
                for n, name in enumerate(names)
                for style in ["bold" if n == self._focus else DIM]
            ]
            self.query_one("#title", Static).update(join(*parts))
        else:
            when = row.created[:16].replace("T", " ")
            left = join((f" {row.problem}", "bold"), (f"  {self.app.name_of_file}  {when}", DIM))
            self.query_one("#title", Static).update(ends(left, right, width))
        self.query_one("#facts", Static).update(ends(*facts(self.view.episode), width))

    def renew(self, rows: Sequence[Row], episodes: Sequence[Trajectory | BadLine]) -> None:
        """The episodes have been read again."""
        self.rows = list(rows)
        for view, episode in zip(self.views, episodes, strict=True):
            if isinstance(episode, Trajectory) and episode != view.episode:
                view.show(episode)
        self.draw()

    def action_back(self) -> None:
        """To the list, or out where there is nothing else."""
        if len(self.app.listing.rows) == 1:
            self.app.exit()
        else:
            self.app.to_list(self.rows[self._focus])

    def action_escape(self) -> None:
        if not self.forget():
            self.action_back()

    def action_next_error(self) -> None:
        later = enumerate(self.view.episode.turns[self.view.at + 1 :], self.view.at + 1)
        at = next((at for at, turn in later if turn.category != "correct"), None)
        self.app.say("no further failure") if at is None else self.view.go_to(at)

    def action_ask_turn(self) -> None:
        self.ask("go to turn", "", lambda words: self.with_turn(words, self.view.go_to))

    def action_episode(self, by: int) -> None:
        if len(self.views) == 2:
            self.app.say("comparing; q goes back to the list")
            return
        listing = self.app.listing
        at = listing.place(self.rows[0], 0) + by
        if not 0 <= at < len(listing.shown):
            self.app.say("there is no further trajectory")
            return
        self.app.open(listing.rows[listing.shown[at]], like=self.view)

    def action_mark(self) -> None:
        self.app.mark(self.rows[self._focus])

    def action_compare(self) -> None:
        self.app.compare(self.rows[self._focus])

    def action_other_side(self) -> None:
        self._focus = (self._focus + 1) % len(self.views)
        self.draw()


class ReplayApp(KevinApp[None]):
    """Shows a library, filtered by `words`.

    It begins with the trajectory whose id starts with `episode`, if that is given.
    """

    TITLE = "kevin-env replay"

    def __init__(
        self, library: Library, follow: bool = False, words: str = "", episode: str = ""
    ) -> None:
        super().__init__()
        self.library, self.following = library, follow
        self.name_of_file = _title(library.path)
        words = f"{words} id:{episode}".strip() if episode else words
        self.listing = Listing().filtered(words)
        self.marked: Row | None = None
        self._list = ListScreen()
        self._grew = self._looked = 0.0

    def on_load(self) -> None:
        """Reads a little before the first drawing."""
        self.library.advance(_FIRST)
        if 0.2 < self.library.progress < 1:
            self.library.advance(5 * _FIRST)

    def get_default_screen(self) -> ListScreen:
        self.listing = self.listing.grown(self.library.rows)
        return self._list

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Opens the newest episode of a file that has been read whole."""
        whole = self.library.progress >= 1
        alone = len(self.listing.shown) == 1 or not self.listing.words
        if whole and self.listing.shown and alone and not self.listing.query.text:
            self.open(self.listing.rows[self.listing.shown[0]])
        self.screen.call_after_refresh(self._read_on)  # drawing comes first

    def open(self, *rows: Row, like: EpisodeView | None = None) -> None:
        """Shows an episode, or two side by side, in place of what is open."""
        episodes: list[Trajectory] = []
        for row in rows:
            read = self.library.episode(row)
            if isinstance(read, BadLine):
                self.say(str(read), wrong=True)
                return
            episodes.append(read)
        running = self.following and len(rows) == 1 and episodes[0].stop_reason is None
        at = max(len(episodes[0].turns) - 1, 0) if running else None
        screen = ViewScreen(rows, episodes, at)
        if like is not None:
            screen.views[0].shown, screen.views[0].look = like.shown, like.look
        if isinstance(self.screen, ViewScreen):
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def compare(self, row: Row | None) -> None:
        """Shows the marked episode beside another one."""
        if row is None or self.marked is None:
            self.say("mark a trajectory with m first")
        elif row.key == self.marked.key:
            self.say("this is the marked one; choose another")
        else:
            self.open(self.marked, row)

    def to_list(self, row: Row) -> None:
        self.pop_screen()
        self._list.draw(self.listing.place(row, self._list.scrolled.cursor))

    def mark(self, row: Row | None) -> None:
        off = row is None or (self.marked is not None and self.marked.key == row.key)
        self.marked = None if off else row
        self.say("no mark" if off else "marked; c on another trajectory compares the two")

    def filter(self, words: str) -> None:
        self.relist(self.listing.filtered(words))

    def relist(self, listing: Listing, at: int | None = None) -> None:
        """Shows another list; the cursor stays on its row unless `at` is given."""
        row, cursor = self._list.current, self._list.scrolled.cursor
        self.listing = listing
        if at is None:
            at = 0 if cursor == 0 and listing.sort == "newest" else listing.place(row, cursor)
        self._list.draw(at)

    def action_follow(self) -> None:
        self.following = not self.following
        self.say("following: new turns appear" if self.following else "no longer following")
        self.screen.draw() if isinstance(self.screen, ViewScreen) else self.relist(self.listing)

    def _read_on(self) -> None:
        """Reads, searches and follows for a moment."""
        busy = self.library.advance(_SLICE) or self._search()
        now = time.monotonic()
        grown = len(self.listing.rows) != len(self.library.rows) if not busy else True
        if grown and (not busy or now - self._grew > _REDRAW):
            self._grew = now
            self.relist(self.listing.grown(self.library.rows))
        if self.following and now - self._looked > _FOLLOW:
            self._looked = now
            self._follow()
        self.set_timer(_PAUSE if busy else _REDRAW, self._read_on)

    def _search(self) -> bool:
        listing = self.listing
        if not listing.query.text or listing.searched >= len(listing.rows):
            return False
        hits, searched = self.library.search(listing.query.text, listing.searched, _SLICE)
        self.relist(listing.changed(hits=listing.hits | hits, searched=searched))
        return True

    def _follow(self) -> None:
        if not self.library.refresh():
            return
        self.library.advance(_SLICE)
        self.relist(self.listing.grown(self.library.rows))
        if isinstance(self.screen, ViewScreen):
            rows = {row.key: row for row in self.library.rows}
            again = [rows.get(row.key, row) for row in self.screen.rows]
            self.screen.renew(again, [self.library.episode(row) for row in again])


def _title(path: Path) -> str:
    return f"{path.name}/" if path.is_dir() else path.name
