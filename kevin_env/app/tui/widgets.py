"""Lines and tables of any length, of which only what is on the screen is drawn."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from kevin_env.app.replay.pieces import Column, heading, table_line

Cells = Mapping[str, Text]
_CACHED = 4096
"""Lines measured for the width of a page, and rows cached by a table."""


class Lines(ScrollView, can_focus=False):
    """Lines that scroll; the mouse selects in them."""

    DEFAULT_CSS = """
    Lines { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; scrollbar-gutter: stable; }
    """
    COMPONENT_CLASSES = {"lines--found", "lines--hit"}  # noqa: RUF012  # read by Textual
    DEFAULT_CSS += """
    Lines > .lines--found { background: $warning-muted; }
    Lines > .lines--hit { background: $warning; color: $background; }
    Lines:nocolor > .lines--found, Lines:nocolor > .lines--hit { text-style: reverse; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Text] = ()
        self._make: Callable[[int], Sequence[Text]] = lambda width: ()
        self._gutter = 0
        self._words, self._hit = "", -1

    def show(
        self, make: Callable[[int], Sequence[Text]], gutter: int = 0, keep: bool = False
    ) -> None:
        """Shows the lines that `make` returns for a width.

        Args:
            make: the lines; called again when the width changes.
            gutter: columns that stay in place when the rest is scrolled sideways.
            keep: whether to keep the scroll position.
        """
        self._make, self._gutter = make, gutter
        self._remake()
        if not keep:
            self.scroll_to(0, 0, animate=False)

    def find(self, words: str, by: int = 1) -> tuple[int, int] | None:
        """Goes to the next line that contains the words, or to the previous one if `by` is -1.

        Returns:
            The number of the hit (from 1) and of all hits, or None without any.
        """
        hits = [n for n, line in enumerate(self.lines) if words.lower() in line.plain.lower()]
        at = self._hit if words == self._words and self._hit in hits else self.scroll_offset.y - 1
        self._words = words
        if not words or not hits:
            self._hit = -1
            self.refresh()
            return None
        after = [n for n in hits if (n > at if by > 0 else n < at)]
        self._hit = (after or hits)[0 if by > 0 else -1]
        column = self.lines[self._hit].plain.lower().index(words.lower())
        beyond = max(column + len(words) - self.scrollable_content_region.width + 2, 0)
        self.scroll_to(beyond, self._hit - 2, animate=False)
        self.refresh()
        return hits.index(self._hit) + 1, len(hits)

    def on_resize(self) -> None:
        self._remake()

    def render_line(self, y: int) -> Strip:
        x, top = self.scroll_offset
        width, style = self.size.width, self.rich_style
        if top + y >= len(self.lines):
            return Strip.blank(width, style)
        strip = Strip(self._marked(top + y).render(self.app.console)).apply_style(style)
        if x and self._gutter:
            fixed, rest = strip.crop(0, self._gutter), strip.crop(self._gutter + x)
            strip = Strip.join([fixed, rest]).crop_extend(0, width, style)
        else:
            strip = strip.crop_extend(x, x + width, style)
        return strip.apply_offsets(x, top + y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(line.plain.rstrip() for line in self.lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def _remake(self) -> None:
        width = self.scrollable_content_region.width
        self.lines = self._make(width) if width else ()  # there is no layout yet
        widest = max((line.cell_len for line in self.lines[:_CACHED]), default=0)
        self.virtual_size = Size(widest, len(self.lines))
        self.refresh()

    def _marked(self, number: int) -> Text:
        """A line with its search hits and selection highlighted."""
        line, plain = self.lines[number].copy(), self.lines[number].plain.lower()
        name = "lines--hit" if number == self._hit else "lines--found"
        at = plain.find(self._words.lower()) if self._words else -1
        while at >= 0:
            line.stylize(self.get_component_rich_style(name), at, at + len(self._words))
            at = plain.find(self._words.lower(), at + 1)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(number)) is not None:
            start, end = span
            style = self.screen.get_component_rich_style("screen--selection")
            line.stylize(style, start, len(line) if end == -1 else end)
        return line


class Rows(ScrollView, can_focus=False):
    """A table with a fixed heading and one selected row."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"rows--cursor", "rows--mark"}  # noqa: RUF012  # read by Textual
    DEFAULT_CSS = """
    Rows { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    Rows > .rows--cursor { background: $primary-muted; text-style: bold; }
    Rows:nocolor > .rows--cursor { text-style: reverse; }
    Rows > .rows--mark { color: $accent; }
    """

    @dataclass
    class Chosen(Message):
        """A row was clicked, or with `opened` the selected one, or one twice."""

        row: int
        opened: bool

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor, self.count = 0, 0
        self._columns: Sequence[Column] = ()
        self._line: Callable[[int], Text] = lambda row: Text()
        self._mark: Callable[[int], str] = lambda row: ""

    def show(
        self,
        columns: Sequence[Column],
        count: int,
        cells: Callable[[int], Cells],
        mark: Callable[[int], str] = lambda row: "",
    ) -> None:
        """Shows `count` rows.

        Args:
            columns: the columns, with their widths.
            count: how many rows there are.
            cells: the cells of a row by column name.
            mark: a character in front of a row.
        """
        self._columns, self.count, self._mark = columns, count, mark
        self._line = functools.lru_cache(_CACHED)(lambda row: table_line(columns, cells(row)))
        self.virtual_size = Size(0, count + 1)
        self.move_to(self.cursor)

    def move_to(self, row: int) -> None:
        """Selects a row, or the nearest one."""
        self.cursor = min(max(row, 0), max(self.count - 1, 0))
        on_screen = max(self.size.height - 1, 1)
        top = min(max(self.scroll_offset.y, self.cursor - on_screen + 1), self.cursor)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        self.move_to(self.cursor)

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y - 1
        if event.y > 0 and row < self.count:
            self.post_message(self.Chosen(row, opened=event.chain > 1 or row == self.cursor))

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.rich_style
        row = self.scroll_offset.y + y - 1
        if y == 0:
            line = Text("  ").append_text(heading(self._columns))
        elif row < self.count:
            chosen = row == self.cursor
            mark = self._mark(row) or ("▌" if chosen else " ")
            line = Text.assemble((mark, self.get_component_rich_style("rows--mark", partial=True)))
            line.append(" ").append_text(self._line(row))
            if chosen:
                style += self.get_component_rich_style("rows--cursor", partial=True)
        else:
            return Strip.blank(width, style)
        return Strip(line.render(self.app.console)).apply_style(style).crop_extend(0, width, style)
