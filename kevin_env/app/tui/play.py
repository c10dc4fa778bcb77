"""`kevin-env play` on a terminal: one episode that is being played."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Footer, Static, TextArea

from kevin_env.app.play.editor import draft_of, reply_of
from kevin_env.app.play.live import (
    Asked,
    Event,
    Failed,
    Judged,
    Live,
    Started,
    happened,
    tokens_text,
)
from kevin_env.app.play.session import Session
from kevin_env.app.replay.code import last_lines
from kevin_env.app.replay.describe import chat_blocks
from kevin_env.app.replay.panes import facts, lines_of_blocks, pane_lines, prose_lines
from kevin_env.app.replay.pieces import DIM, Look, ends, join, paragraph, text
from kevin_env.app.tui.app import KevinApp
from kevin_env.app.tui.episode import EPISODE_KEYS, EpisodeScreen, EpisodeView, Now
from kevin_env.policies.human import edited
from kevin_env.record import Trajectory

_PERIOD = 0.1
"""Seconds between polls for events."""
_UNTIL_THE_END = ("leave", "step", "run_on", "edit", "remark")
_HIDDEN = [
    replace(each, show=False, key=each.key.replace(",space", ""))
    for each in EPISODE_KEYS
    if isinstance(each, Binding)
]
"""The keys of an episode, not shown at the foot: there is room only for those of playing. The space
bar pauses.
"""


class EditScreen(ModalScreen[str | None]):
    """An editor, of Python if `code`; returns the text, or None if it is closed."""

    DEFAULT_CSS = """
    EditScreen { align: center middle; }
    EditScreen TextArea { width: 95%; height: 1fr; margin: 1 0; border: round $primary; }
    EditScreen .-short { height: 10; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "done", "submit", priority=True),
        Binding("ctrl+e", "editor", "open in $EDITOR", priority=True),
        Binding("escape", "dismiss", "leave without submitting", priority=True),
    ]

    def __init__(self, title: str, words: str, code: bool = True) -> None:
        super().__init__()
        self._title, self._words, self._code = title, words, code

    def compose(self) -> ComposeResult:
        area = TextArea(
            self._words,
            show_line_numbers=self._code,
            tab_behavior="indent",
            soft_wrap=not self._code,
        )
        area.border_title = self._title
        area.set_class(not self._code, "-short")
        yield area
        yield Footer(compact=True, show_command_palette=False)

    def action_done(self) -> None:
        self.dismiss(self.query_one(TextArea).text)

    def action_editor(self) -> None:
        area = self.query_one(TextArea)
        try:
            with self.app.suspend():
                try:
                    area.load_text(edited(area.text))
                except OSError as error:  # caught here, since Textual resumes only after no error
                    area.border_subtitle = " ".join(str(error).split())
        except SuspendNotSupported as error:
            area.border_subtitle = str(error)


class PlayScreen(EpisodeScreen):
    """Plays a started episode: a person can pause, edit, remark, and take turns again.

    If `human`, the person is the policy.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "stop"),
        Binding("q", "close", "leave"),
        Binding("left,h", "turn(-1)", "turn", key_display="←→", tooltip="previous turn"),
        Binding("right,l", "turn(1)", "next turn", show=False),
        *_HIDDEN,
        Binding("p", "prompt", "prompt", tooltip="prompt of the running turn"),
        Binding("escape,0", "live", "the running turn", show=False),
        Binding("enter,n", "step", "next", key_display="enter", tooltip="take the next turn"),
        Binding("space", "run_on", "pause", tooltip="pause after the turn, or continue"),
        Binding("e", "edit", "edit", tooltip="write the next kernel yourself"),
        Binding("R", "remark", "remark", tooltip="remark for the next turn"),
        Binding("t", "again", "retake", tooltip="take a turn again"),
    ]
    app: "PlayApp"  # type: ignore[assignment]

    def __init__(self, session: Session, human: bool) -> None:
        self._session, self._human = session, human
        self._step = self._edit_next = self._leaving = self._prompt = False
        self._remark = self._draft = ""
        super().__init__()
        self.live = Live(session.episode.trajectory, since=time.monotonic())
        self.views = [EpisodeView(self.live.episode, len(self.live.turns), now=self._now())]
        self.set(reasoning=False)  # only its length is shown while it is received

    def on_mount(self) -> None:
        self.set_interval(_PERIOD, self._look)
        self.draw()

    def _look(self) -> None:
        try:
            events = self._session.poll()
        except Exception as error:  # raised where the app was started
            self.app.fail(error)
            return
        for event in events:
            self._happened(event)
        if events or self.live.running or self.live.phase == "starting":
            self.draw()

    def _happened(self, event: Event) -> None:
        self.live = happened(self.live, event)
        self.refresh_bindings()
        if isinstance(event, Asked):
            self._remark, self._prompt = "", False
        elif isinstance(event, Failed):
            self._edit_next = False
        elif isinstance(event, Started | Judged):
            self._leaving = False
            if isinstance(event, Judged):
                self._draft = ""
            else:
                self.view.go_to(self.view.last)
            self._go_on()

    def _go_on(self) -> None:
        """Opens the editor, asks the model for the next turn, or waits for the user."""
        if self.live.phase == "ended":
            return
        if self._edit_next:
            self._edit_next = False
            self.action_edit()
        elif not (self._step or self._human):
            self._session.ask(self._remark)

    def how(self) -> str:
        if self.live.phase == "ended" or self._human:
            return ""
        if self._edit_next:
            return "the editor is next"
        words = {"with a remark": self._remark, "pauses after this turn": self._step}
        return ", ".join(each for each, so in words.items() if so)

    def first(self) -> str:
        if self._human:
            return "you are the policy: e opens the editor with the reference in it"
        return "enter asks the model, R gives it a remark first; this is the prompt:"

    def way_on(self) -> str:
        return "enter tries again, e writes the kernel yourself, q stops and keeps the turns"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do nothing after the end are not shown there."""
        ended = self.live.phase == "ended"
        return not ended if action in _UNTIL_THE_END else action != "close" or ended

    def _over(self) -> bool:
        if self.live.phase == "ended":
            self.app.say("the episode has ended; t takes a turn again, q leaves")
        return self.live.phase == "ended"

    def action_run_on(self) -> None:
        """Pauses after the turn, or continues."""
        if self._human:
            self.app.say("you are the policy: e opens the editor")
        elif self.live.phase == "waiting":
            self._step = False
            self._session.ask(self._remark)
        elif not self._over():
            self._step = not self._step
            self.app.say("pauses after this turn" if self._step else "continues by itself")
        self.draw()

    def action_step(self) -> None:
        if self._human:
            self.action_edit()
        elif not self._over() and self.live.phase == "waiting":
            self._session.ask(self._remark)

    def action_remark(self) -> None:
        if self._human:
            self.app.say("you are the policy: remarks are for a model")
        elif not self._over():
            title = "a remark for the next turn"
            self.app.push_screen(EditScreen(title, self._remark, code=False), self._remarked)

    def _remarked(self, words: str | None) -> None:
        if words is not None:
            self._remark = words.strip()
            self.app.say("the model gets the remark with its next turn" if words else "no remark")
            self.draw()

    def action_edit(self) -> None:
        """Opens the editor, if a turn is running after its end."""
        if self._over():
            return
        if self.live.phase != "waiting":
            self._edit_next = not self._edit_next
            after = "the editor opens when this turn has been judged"
            self.app.say(after if self._edit_next else "the editor stays closed")
            self.draw()
            return
        at = self.view.at if self.view.turn is not None else None
        draft = draft_of(self._session.episode.problem, self.live.turns, at)

        def done(words: str | None) -> None:
            if words is None or words.strip() in ("", draft.strip()):
                self._draft = ""
                self.app.say("nothing was changed, so nothing is submitted")
            else:
                self._draft = words
                self._session.answer(reply_of(words))

        self.app.push_screen(EditScreen("the next kernel", self._draft or draft), done)

    def action_again(self) -> None:
        last = 0 if self.live.phase == "starting" else len(self.live.turns) + self.live.running
        if not last:
            self.app.say("no turn has been taken yet")
            return

        def again(words: str) -> None:
            if words.isdecimal() and 1 <= int(words) <= last:
                self._edit_next = False
                self._session.again(int(words))
            elif words:
                self.app.say(f"there is no turn {words}; give one from 1 to {last}", wrong=True)

        self.ask("take again from turn", str(last), again)

    def action_close(self) -> None:
        self.app.exit()

    def action_leave(self) -> None:
        """Quits; a running turn is discarded only at the second press."""
        if self.live.running and not self._leaving:
            self._leaving = True
            self.app.say("q again stops: the running turn is lost, finished ones are kept")
        else:
            self.app.exit()

    def draw(self) -> None:
        if not self.query("#facts"):
            return
        width = self.size.width
        of = self.live.episode.config.get("max_turns", "?")
        number = len(self.live.turns) + (self.live.phase != "ended")
        left = join(
            (f" {self.live.episode.problem.id}", "bold"),
            f"  turn {number} of {of}  ",
            (self.live.doing(time.monotonic()), self._color()),
        )
        self.query_one("#title", Static).update(ends(left, text(f"{self.how()} ", "bold"), width))
        used = tokens_text(self.live.turns)
        found, best = facts(self.live.episode, [used] if used else [])
        self.query_one("#facts", Static).update(ends(found, best, width))
        if self.live.phase != "ended":
            self.view.show(self.live.episode, self._now())
        elif self.view.now is not None or self.view.episode is not self.live.episode:
            self.view.show(self.live.episode)

    def action_live(self) -> None:
        self.forget()
        self._prompt = False
        self.view.go_to(self.view.last)
        self.draw()

    def action_prompt(self) -> None:
        there = self._prompt and self.view.turn is None
        self.view.go_to(self.view.last)
        self._prompt = not there
        self.draw()

    def action_pane(self, number: int) -> None:
        """Shows a pane of the selected turn, or of the last one if none is."""
        if self.view.turn is None:
            if not self.live.turns:
                self.app.say("no turn has been judged yet; p shows the prompt")
                return
            self.view.go_to(len(self.live.turns) - 1)
        super().action_pane(number)

    def action_base(self) -> None:
        """Shows the diff of the selected turn, or of the last one if none is."""
        if self.view.turn is None:
            self.action_pane(2)
        else:
            super().action_base()

    def _color(self) -> str:
        if self.live.trouble or self.live.again:
            return "bold red"
        return {"waiting": "bold yellow", "ended": "bold"}.get(self.live.phase, "cyan")

    def _now(self) -> Now | None:
        live, now = self.live, time.monotonic()
        if live.phase == "ended":
            return None
        stage = live.stages[-1][0] if live.phase == "judging" and live.stages else live.phase
        seconds = f"{max(now - live.since, 0.0):.1f}" if live.running else ""
        cells = {
            "": text("▸", "bold"),
            "turn": text(str(len(live.turns) + 1), "bold"),
            "verdict": text("thinking" if live.reasoning and not live.reply else stage, "cyan"),
            "seconds": text(seconds, "cyan"),
        }
        title = f"turn {len(live.turns) + 1}{': prompt' * self._prompt}"
        return Now(cells, title, self._lines)

    def _lines(self, width: int) -> Sequence[Text]:
        """The lines of the running turn."""
        live, height = self.live, max(self.view.pane.size.height, 1)
        if self._prompt:
            return lines_of_blocks(chat_blocks(live.messages), Look(width))
        if live.running:
            return self._coming(width, height)
        trouble = paragraph(live.trouble, width, "bold red") if live.trouble else []
        trouble += paragraph(self.way_on(), width, "yellow") if live.trouble else []
        if live.phase == "starting":
            return [text("the judge starts, and runs the problem's reference", DIM)]
        if live.turns:
            last = pane_lines(live.episode, len(live.turns) - 1, "feedback", Look(width))
            return [*trouble, *([Text()] if trouble else []), *last]
        return [
            *trouble,
            *paragraph(self.first(), width, DIM),
            Text(),
            *lines_of_blocks(chat_blocks(live.messages), Look(width)),
        ]

    def _coming(self, width: int, height: int) -> list[Text]:
        """The end of the reply, or of the reasoning if that is shown."""
        live = self.live
        if live.reasoning and not live.reply.strip() and self.view.look.reasoning:
            return paragraph(live.reasoning[-height * width :], width, "italic")[-height:]
        if not live.reply.strip():
            words = "r shows the reasoning" if live.reasoning else "nothing received yet"
            return [text(words, DIM)]
        return prose_lines(last_lines(live.reply, height), Look(width))[-height:]


class PlayApp(KevinApp[None]):
    """Plays one episode, not started yet. If `human`, the person is the policy."""

    TITLE = "kevin-env play"

    def __init__(self, session: Session, human: bool = False) -> None:
        super().__init__()
        self._session, self._human = session, human

    def get_default_screen(self) -> PlayScreen:
        self._session.begin()
        return PlayScreen(self._session, self._human)

    def play(self) -> Trajectory:
        """Plays until the user quits; returns the episode, which has ended.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        self.run_or_raise()
        return self._session.finish()
