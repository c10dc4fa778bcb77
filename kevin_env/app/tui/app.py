"""What all screens share: help, notices, an input line, the palette and themes."""

import functools
import os
import signal
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rich.table import Table
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from textual.app import App, ComposeResult, ReturnType, SystemCommand
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Footer, Input, Static

from kevin_env.app.replay.pieces import DARK, DIM, LIGHT, Tints, text
from kevin_env.app.screen import wait_for_hang_up

Pairs = Sequence[tuple[str, str]]
_NOTICE = 4.0
"""Seconds for which a notice is shown."""
_ROOMY = 110
"""Least width of a screen with spaced keys at the foot."""

SCROLLING: tuple[BindingType, ...] = (
    Binding("j,down", "scroll(1)", "down", show=False),
    Binding("k,up", "scroll(-1)", "up", show=False),
    Binding("pagedown,space,ctrl+f", "scroll_pages(0.9)", "page down", show=False),
    Binding("pageup,ctrl+b", "scroll_pages(-0.9)", "page up", show=False),
    Binding("ctrl+d", "scroll_pages(0.5)", "half a page down", show=False),
    Binding("ctrl+u", "scroll_pages(-0.5)", "half a page up", show=False),
    Binding("g,home", "scroll(-1000000000)", "top", show=False),
    Binding("G,end", "scroll(1000000000)", "end", show=False),
)


class Scrolling:
    """A screen whose keys `SCROLLING` act on one of its parts."""

    @property
    @abstractmethod
    def scrolled(self) -> Widget:
        """That part."""

    def action_scroll(self, by: int) -> None:
        """Scrolls by lines, or moves the cursor by rows."""
        self.scrolled.scroll_relative(y=by, animate=False)

    def action_scroll_pages(self, share: float) -> None:
        """As `action_scroll`, by a share of the part's height."""
        self.action_scroll(int(self.scrolled.size.height * share))


def _terminal_theme(back: str, text: str, *colors: str) -> TerminalTheme:
    """The named colors under a theme; every one has a contrast of at least 4.5 on its ground."""
    rgb = [Color.parse(f"#{each}").rgb for each in (back, text, *colors)]
    return TerminalTheme(rgb[0], rgb[1], rgb[2:10], [rgb[10], *rgb[3:10]])


_DARK = _terminal_theme(
    "121212", "e0e0e0",
    "000000", "ff6b68", "7bd88f", "f0c674", "81a2f0", "d59bf6", "7fd3e6", "e0e0e0", "8d96a5",
)  # fmt: skip
_LIGHT = _terminal_theme(
    "e0e0e0", "1f1f1f",
    "000000", "a82020", "14652b", "6e4b00", "1d3f9c", "7a2a9c", "0a5a72", "1f1f1f", "565d69",
)  # fmt: skip


class KevinApp(App[ReturnType]):
    """An application with our keys and colors."""

    ENABLE_COMMAND_PALETTE = True
    CSS = """
    .bar { height: 1; width: 1fr; }
    .title { height: 1; background: $panel; }
    #ask, #notice { height: 1; display: none; dock: bottom; background: $boost; }
    #ask Static { width: auto; text-style: bold; }
    #ask Input { width: 1fr; border: none; height: 1; padding: 0; background: $boost; }
    .-asking #ask, .-noticing #notice { display: block; }
    .-asking Footer, .-noticing Footer { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", key_display="?", tooltip="these keys"),
        Binding("Q", "quit", "quit from anywhere", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
    ]
    FOOT = True
    """Whether the keys are shown at the foot."""

    def __init__(self) -> None:
        plain = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=plain)
        self._error: Exception | None = None
        self.ansi_theme_dark, self.ansi_theme_light = _DARK, _LIGHT
        if plain:
            self.theme = "ansi-dark"
        elif "TEXTUAL_THEME" not in os.environ and _is_light(os.environ.get("COLORFGBG", "")):
            self.theme = "textual-light"

    def on_mount(self) -> None:
        """Exits when its terminal closes: Textual would go on without one, at full load."""
        if not self.is_headless:  # which is known only once the driver runs
            threading.Thread(target=self._wait_for_hang_up, daemon=True).start()

    def _wait_for_hang_up(self) -> None:
        wait_for_hang_up(sys.__stdin__ or sys.stdin)
        if self.is_running:  # turns are on disk, and writing to the screen may block for ever
            os._exit(128 + signal.SIGHUP)

    def fail(self, error: Exception) -> None:
        self._error = error
        self.exit()

    def run_or_raise(self) -> None:
        """Runs until the user quits; raises the error passed to `fail`, if any.

        Raises:
            SystemExit: if it crashes, which Textual reports.
        """
        self.run()
        if self._error is not None:
            raise self._error
        if self.return_code:
            raise SystemExit(self.return_code)

    @property
    def tints(self) -> Tints | None:
        """Backgrounds of diffs under the chosen theme; none without colors."""
        if self.no_color:
            return None
        return DARK if self.current_theme.dark else LIGHT

    def say(self, words: str, wrong: bool = False) -> None:
        """Shows a notice for some seconds."""
        if words and isinstance(self.screen, AskScreen):
            self.screen.notice(text(f" {words}", "bold red" if wrong else "bold yellow"))

    def copy(self, words: str, what: str) -> None:
        """Puts text on the clipboard, as far as the terminal supports that."""
        self.copy_to_clipboard(words)
        self.say(f"copied {what}, {len(words):,} characters")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for words, (keys, action) in _keys(screen).items():
            yield SystemCommand(words, f"key {keys}", action)
        yield SystemCommand("theme", "change the colors", self.action_change_theme)

    def action_help_quit(self) -> None:
        """Ctrl-C quits, unless text is selected."""
        self.exit()

    def action_help(self) -> None:
        self.push_screen(help_screen(self.screen))


def _is_light(colors: str) -> bool:
    """Whether $COLORFGBG names a light background."""
    return colors.rpartition(";")[2] in ("7", "15")


class _Line(Input):
    """An input line that Escape closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "screen.leave_ask", "close the line", show=False),
    ]


class AskScreen(Screen[Any], inherit_bindings=False):
    """A screen with an input line at its foot."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,super+c", "screen.copy_text", show=False),
    ]
    help_sections: ClassVar[Sequence[tuple[str, Pairs]]] = ()
    """Further sections of the help, below the keys."""

    def __init__(self) -> None:
        super().__init__()
        self._done: Callable[[str], None] = lambda words: None
        self._changed: Callable[[str], None] | None = None
        self._before = ""
        self._notice: Timer | None = None

    def foot(self) -> ComposeResult:
        with Horizontal(id="ask"):
            yield Static()
            yield _Line(compact=True, max_length=2000, select_on_focus=False)
        yield Static(id="notice")
        if self.app.FOOT:  # type: ignore[attr-defined]
            yield Footer(compact=True, show_command_palette=False)

    def on_resize(self) -> None:
        """Spaces the keys where there is room."""
        for foot in self.query(Footer):
            foot.compact = self.size.width < _ROOMY

    def notice(self, words: Text) -> None:
        """Shows a line in place of the keys for some seconds."""
        self.query_one("#notice", Static).update(words)
        self.add_class("-noticing")
        self._notice.stop() if self._notice else None
        self._notice = self.set_timer(_NOTICE, lambda: self.remove_class("-noticing"))

    def ask(
        self,
        what: str,
        words: str,
        done: Callable[[str], None],
        changed: Callable[[str], None] | None = None,
    ) -> None:
        """Opens the input line with a label and a text.

        `done` is called with the text that was entered; `changed` with each change, and with the
        initial text on Escape.
        """
        self._done, self._changed, self._before = done, changed, words
        line = self.query_one(Input)
        self.remove_class("-noticing")
        self.add_class("-asking")
        self.query_one("#ask Static", Static).update(text(f" {what}: "))
        with line.prevent(Input.Changed):
            line.value = words
        line.cursor_position = len(words)
        line.focus()

    @property
    def asking(self) -> bool:
        return self.has_class("-asking")

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._changed and self.asking:
            self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close()
        self._done(event.value.strip())

    def action_leave_ask(self) -> None:
        self._close()
        if self._changed:
            self._changed(self._before)

    def _close(self) -> None:
        self.remove_class("-asking")
        self.set_focus(None)


class TextScreen(Scrolling, ModalScreen[None]):
    """A page of text over another screen."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen #box {
        width: 90%; max-width: 110; height: 90%; padding: 0 1;
        border: round $primary; background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "app.pop_screen", "close", show=False),
        *SCROLLING,
    ]

    def __init__(self, title: str, content: Text | Table) -> None:
        super().__init__()
        self._title, self._content = title, content

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box") as box:
            box.border_title, box.border_subtitle = self._title, "q closes"
            yield Static(self._content)

    @property
    def scrolled(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)


def _keys(screen: Screen[Any]) -> dict[str, tuple[str, Callable[[], object]]]:
    """The keys of each binding and what they do, by its description."""
    keys: dict[str, tuple[str, Callable[[], object]]] = {}
    for node, binding, enabled, _ in screen.active_bindings.values():
        words = binding.tooltip or binding.description
        if enabled and words and binding.action != "command_palette":
            shown = screen.app.get_key_display(replace(binding, key_display=None))
            known = f"{keys[words][0]} " if words in keys else ""
            action = functools.partial(screen.app.run_action, binding.action, node)
            keys[words] = known + shown, action
    return keys


def help_screen(screen: Screen[Any]) -> TextScreen:
    """The keys of a screen from its bindings, and further sections."""
    pairs = [(keys, words) for words, (keys, _) in _keys(screen).items()]
    pairs += [("^p", "all commands, and themes"), ("^c", "copy the selection, or quit")]
    table = Table.grid(padding=(0, 2))
    for title, each in (("Keys", pairs), *getattr(screen, "help_sections", ())):
        table.add_row(Text(title, "bold"))
        for key, words in each:
            table.add_row(Text(f"  {key}", "cyan"), Text(words, DIM))
        table.add_row()
    return TextScreen("help", table)
