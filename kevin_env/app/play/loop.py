"""Reads keys, draws the screen, and has things done that the person wants: the only part that does
any of these.
"""

import time
from dataclasses import replace

from rich.console import Console

from kevin_env.app.play.editor import draft_of, reply_of
from kevin_env.app.play.events import Event, Judged, Noticed, Resized, Ticked
from kevin_env.app.play.keys import reduce
from kevin_env.app.play.screens import render
from kevin_env.app.play.session import Session
from kevin_env.app.play.state import State
from kevin_env.app.replay.terminal import Terminal
from kevin_env.policies.human import edited
from kevin_env.record import Trajectory

_PERIOD = 0.05
"""Seconds between two looks at what has happened, when no key is pressed."""
_TICK = 0.1
"""Seconds between two screens on which only a clock has gone on."""


class PlayScreen:
    """A screen for an episode that is played.

    Args:
        session: the episode; not begun.
        human: whether the person is the policy.
    """

    def __init__(self, session: Session, human: bool = False) -> None:
        self._session = session
        now = time.monotonic()
        self._state = State(session.episode.trajectory, human=human, since=now, now=now)
        self._drawn: State | None = None
        self._draft = ""
        """What was last written in the editor and has not become a turn."""

    def run(self, console: Console) -> Trajectory:
        """Runs until the person leaves, and gives the episode, which has ended then.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        self._session.begin()
        while not self._state.done:
            gone = True
            with Terminal(console) as terminal:
                self._watch(terminal)
                gone = False
            if gone:
                break
            if not self._state.done:
                self._edit()
        return self._session.finish()

    def _watch(self, terminal: Terminal) -> None:
        """Until the person leaves, or wants the terminal for the editor."""
        self._drawn = None
        while not self._state.done:
            for event in self._session.poll():
                self._draft = "" if isinstance(event, Judged) else self._draft
                self._happened(event)
            self._look(terminal)
            if self._state.wanted is not None:
                if self._state.wanted.what == "edit":
                    return
                self._obey()
            for key in terminal.keys(_PERIOD):
                self._happened(key)

    def _happened(self, event: Event | str) -> None:
        self._state = reduce(self._state, event)

    def _look(self, terminal: Terminal) -> None:
        """Brings the screen up to date."""
        if terminal.size != self._state.size:
            terminal.forget()
            self._happened(Resized(terminal.size))
        now = time.monotonic()
        if (
            self._state.running or self._state.phase == "starting"
        ) and now - self._state.now > _TICK:
            self._happened(Ticked(now))
        if self._state is not self._drawn:
            terminal.draw(render(self._state, self._state.size))
            self._drawn = self._state

    def _obey(self) -> None:
        want, self._state = self._state.wanted, replace(self._state, wanted=None)
        if want is not None and want.what == "turn":
            self._session.ask(self._state.remark)
        elif want is not None:
            self._session.again(want.turn)

    def _edit(self) -> None:
        """Opens the editor; what was changed is submitted."""
        self._state = replace(self._state, wanted=None)
        episode = self._session.episode
        draft = draft_of(episode.problem, self._state.turns, self._state.at)
        try:
            text = edited(self._draft or draft)
        except OSError as error:
            self._happened(Noticed(str(error)))
            return
        if text.strip() in ("", draft.strip()):
            self._draft = ""
            self._happened(Noticed("nothing was changed, so nothing is submitted"))
            return
        self._draft = text
        self._session.answer(reply_of(text))
