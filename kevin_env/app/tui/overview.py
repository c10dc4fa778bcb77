"""What the screens of many episodes have in common: facts, a table, and the latest events."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevin_env.app.replay.pieces import Column, fit, join
from kevin_env.app.tui.app import SCROLLING, AskScreen, Scrolling
from kevin_env.app.tui.widgets import Cells, Lines, Rows


@dataclass(frozen=True)
class Overview:
    """What is shown of many episodes, for some width."""

    title: Text
    facts: Sequence[Text]
    """Lines between the title and the table."""
    columns: Sequence[Column]
    count: int
    """Rows of the table."""
    cells: Callable[[int], Cells]
    news: Sequence[Text]
    """The latest events, the newest first."""


class OverviewScreen(Scrolling, AskScreen):
    """Shows an overview, again and again."""

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
    def overview(self, width: int) -> Overview:
        """What is known now."""

    @property
    def scrolled(self) -> Rows:
        return self.query_one(Rows)

    def compose(self) -> ComposeResult:
        yield Static(classes="title", id="title")
        yield Static(id="facts")
        yield Rows()
        yield Lines()
        yield from self.foot()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        now = self.overview(self.size.width)
        self.query_one("#title", Static).update(now.title)
        self.query_one("#facts", Static).update(Text("\n").join(now.facts))
        rows = self.scrolled
        rows.styles.height = now.count + 1
        rows.show(now.columns, now.count, now.cells)
        news = lambda width: [fit(join(" ", line), width) for line in now.news]  # noqa: E731
        self.query_one(Lines).show(news, keep=True)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.scrolled.move_to(event.row)
        if event.opened:
            self.action_open()

    def action_open(self) -> None:
        """Opens the chosen row, where there is something to open."""
