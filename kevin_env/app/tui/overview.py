"""The common parts of screens with many episodes: facts, a table, and the latest events."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.replay.pieces import Column, fit, join
from kevin_env.app.tui.app import SCROLLING, TableScreen
from kevin_env.app.tui.widgets import Cells, Lines, Rows


class OverviewScreen(TableScreen):
    """An overview that is redrawn periodically."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "stop"),
        *SCROLLING,
    ]
    DEFAULT_CSS = """
    OverviewScreen #facts { height: auto; }
    OverviewScreen Rows { height: auto; max-height: 65%; }
    OverviewScreen Lines { height: 1fr; border-top: solid $panel; }
    """

    @abstractmethod
    def draw(self) -> None:
        """Calls `show` with the current state."""

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Static(id="facts")
        yield Rows()
        yield Lines()
        yield from self.foot()

    def on_resize(self) -> None:
        self.draw()

    def show(
        self,
        title: Text,
        facts: Sequence[Text],
        columns: Sequence[Column],
        count: int,
        cells: Callable[[int], Cells],
        news: Sequence[Text],
    ) -> None:
        """Shows facts below the title, a table of `count` rows, and events, the newest first."""
        self.query_one("#title", Static).update(title)
        self.query_one("#facts", Static).update(Text("\n").join(facts))
        table = self.scrolled
        table.styles.height = count + 1
        table.show(columns, count, cells)
        lines = [join(" ", line) for line in news]
        self.query_one(Lines).show(lambda width: [fit(each, width) for each in lines], keep=True)
