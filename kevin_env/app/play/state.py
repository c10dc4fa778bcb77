"""What the screen of one episode shows, as frozen values."""

from dataclasses import dataclass
from typing import Literal

from kevin_env.app.replay.panes import Pane
from kevin_env.app.replay.state import USUAL, Size
from kevin_env.judge.api import Stage
from kevin_env.record import Message, Trajectory, Turn

Phase = Literal["starting", "waiting", "replying", "judging", "ended"]
"""Where the episode is. `waiting`: for the person, before a turn."""
Asking = Literal["remark", "again"]
"""What is being typed at the foot of the screen."""


@dataclass(frozen=True, slots=True)
class Typing:
    """A line being typed, and what for."""

    what: Asking
    text: str = ""


@dataclass(frozen=True, slots=True)
class Want:
    """What whoever runs the screen is asked to do: have a turn taken, open the editor, take a turn
    again.
    """

    what: Literal["turn", "edit", "again"]
    turn: int = 0
    """Which one to take again, from 1."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is on the screen. Times are seconds of one clock."""

    episode: Trajectory
    """As far as it has got."""
    human: bool = False
    """The person is the policy."""
    size: Size = USUAL
    phase: Phase = "starting"
    since: float = 0.0
    """When the phase began."""
    now: float = 0.0
    messages: tuple[Message, ...] = ()
    """The chat of the running turn, or of the next one."""
    reply: str = ""
    """The running turn's, as far as it has come."""
    stages: tuple[tuple[Stage, float], ...] = ()
    """Each stage of the running judgement with the time at which it began; one may come again."""
    step: bool = False
    """Whether to wait before each turn."""
    edit_next: bool = False
    """Whether to open the editor before the next turn."""
    remark: str = ""
    """What the model is told with the next turn."""
    typing: Typing | None = None
    at: int | None = None
    """Which turn is looked at, from 0; None: what goes on now."""
    pane: Pane = "kernel"
    """What of it."""
    prompt: bool = False
    """Whether the chat of the running turn is shown in place of its reply."""
    scroll: int = 0
    help: bool = False
    notice: str = ""
    trouble: str = ""
    """Why there is no turn."""
    leaving: bool = False
    """Whether leaving was asked for once."""
    wanted: Want | None = None
    done: bool = False

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those that have been judged."""
        return self.episode.turns

    @property
    def running(self) -> bool:
        """Whether a turn is being taken."""
        return self.phase in ("replying", "judging")

    @property
    def number(self) -> int:
        """The turn that runs or comes next, from 1; after the end the last one."""
        return len(self.turns) + (self.phase != "ended")

    @property
    def shown(self) -> Turn | None:
        """The turn that is looked at; without a choice the last one."""
        return self.turns[-1 if self.at is None else self.at] if self.turns else None


def spent(stages: tuple[tuple[Stage, float], ...], now: float) -> dict[Stage, float]:
    """Seconds of each stage so far, in the order in which they first began."""
    seconds: dict[Stage, float] = {}
    for (stage, start), end in zip(
        stages, [*(start for _, start in stages[1:]), now], strict=False
    ):
        seconds[stage] = seconds.get(stage, 0.0) + max(end - start, 0.0)
    return seconds
