"""The list of episodes of `kevin-env replay`."""

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.replay.code import clean
from kevin_env.app.replay.pieces import DIM, ends, join, text
from kevin_env.app.replay.query import HELP, SORTS
from kevin_env.app.replay.rows import MARKS, NOISY, Row
from kevin_env.app.replay.tables import list_cells, list_columns
from kevin_env.app.screen import counted
from kevin_env.app.tui.app import SCROLLING, AskScreen, Scrolling, TextScreen
from kevin_env.app.tui.widgets import Rows

if TYPE_CHECKING:
    from kevin_env.app.tui.replay import ReplayApp

MARKS_HELP = (*((mark, name) for name, mark in MARKS.items()), (NOISY, "correct, time too noisy"))


class ListScreen(Scrolling, AskScreen):
    """The list of episodes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "quit"),
        Binding("enter,l,right", "open", "open", key_display="enter"),
        Binding("slash", "filter", "filter"),
        Binding("s", "sort(1)", "sort", tooltip="sort by the next column"),
        Binding("S", "sort(-1)", "sort by the previous column", show=False),
        Binding("r", "reverse", "reverse", tooltip="reverse the order"),
        Binding("m", "app.mark", "mark", tooltip="mark to compare"),
        Binding("c", "app.compare", "compare", tooltip="compare with the marked one"),
        Binding("f", "app.follow", "follow", tooltip="follow the file"),
        Binding("exclamation_mark", "bad", "unreadable lines", show=False),
        *SCROLLING,
        Binding("colon", "number", "go to a number", show=False),
        Binding("escape", "app.filter('')", "clear the filter", show=False),
    ]
    help_sections = (("Words of a filter", HELP), ("Marks of a turn", MARKS_HELP))
    app: "ReplayApp"  # type: ignore[assignment]

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Rows(id="list")
        yield Static(classes="bar", id="summary")
        yield from self.foot()

    def on_resize(self) -> None:
        self.draw(self.scrolled.cursor)

    @property
    def scrolled(self) -> Rows:
        return self.query_one(Rows)

    @property
    def current(self) -> Row | None:
        shown, at = self.app.listing.shown, self.scrolled.cursor
        return shown[at] if at < len(shown) else None

    def draw(self, at: int) -> None:
        listing = self.app.listing
        marked = self.app.marked.key if self.app.marked else None
        columns = list_columns(listing.shown, self.size.width - 3)
        self.scrolled.cursor = at
        self.scrolled.show(
            columns,
            len(listing.shown),
            lambda row: list_cells(listing.shown[row], row, columns),
            lambda row: "●" * (listing.shown[row].key == marked),
        )
        self.query_one("#title", Static).update(self._title())
        self.draw_summary()

    def draw_summary(self) -> None:
        listing = self.app.listing
        left = join((" sorted by ", DIM), f"{listing.sort}{' reversed' * listing.reverse}")
        if listing.query.trouble:  # it ends with the names that a filter may use
            left = text(f" {listing.query.trouble}", "yellow")
        elif listing.words:
            left = join(left, ("  filter ", DIM), listing.words)
        if not listing.shown and not listing.query.trouble:
            empty = "no trajectory yet" if self.app.whole else "reading ..."
            empty = "nothing passes the filter; esc clears it" if listing.words else empty
            left = join(left, (f"  {empty}", "yellow"))
        if self.app.marked:
            left = join(left, ("  marked ", DIM), self.app.marked.problem)
        place = f"{self.scrolled.cursor + 1:,}/{len(listing.shown):,} " if listing.shown else ""
        self.query_one("#summary", Static).update(ends(left, text(place, DIM), self.size.width))

    def _title(self) -> Text:
        listing, library = self.app.listing, self.app.library
        count = len(library.finished) + len(library.running)
        passing = f"{len(listing.shown):,} of " if listing.words else ""
        parts = [passing + counted(count, "trajectory")]
        if library.progress < 1:
            parts.append(f"reading {library.progress:.0%}")
        elif listing.progress < 1:
            parts.append(f"searching {listing.progress:.0%}")
        if library.unreadable:
            parts.append(f"{library.unreadable} unreadable")
        if self.app.following:
            parts.append("following")
        left = join((" kevin-env replay  ", "bold"), (self.app.name_of_file, DIM))
        return ends(left, text("  ".join(parts) + " ", DIM), self.size.width)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_scroll(event.row - self.scrolled.cursor)
        if event.opened:
            self.action_open()

    def action_scroll(self, by: int) -> None:
        self.scrolled.move_to(self.scrolled.cursor + by)
        self.draw_summary()

    def action_number(self) -> None:
        self.ask("go to number", "", self._go_to)

    def _go_to(self, words: str) -> None:
        if words.isdecimal():
            self.action_scroll(int(words) - 1 - self.scrolled.cursor)
        elif words:
            self.app.say(f"{words!r} is not a number", wrong=True)

    def action_open(self) -> None:
        if self.current:
            self.app.open(self.current)

    def action_filter(self) -> None:
        self.ask("filter", self.app.listing.words, self.app.action_filter, self.app.action_filter)

    def action_sort(self, by: int) -> None:
        listing = self.app.listing
        at = SORTS.index(listing.sort) + by
        listing.sort, listing.reverse = SORTS[at % len(SORTS)], False
        self.app.relist(0)

    def action_reverse(self) -> None:
        self.app.listing.reverse = not self.app.listing.reverse
        self.app.relist()

    def action_bad(self) -> None:
        bad = self.app.library.bad
        words = "\n".join(f"{each.path.name} line {each.line}: {each.reason}" for each in bad)
        content = Text(clean(words)) if bad else Text("every line could be read", DIM)
        self.app.push_screen(TextScreen(f"unreadable lines: {len(bad)}", content))
