"""What happens to an episode while it is played."""

from dataclasses import dataclass

from kevin_env.judge.api import Stage
from kevin_env.record import Message, Trajectory


@dataclass(frozen=True, slots=True)
class Started:
    """There is an episode: a new one, a resumed one, or one in which a turn is taken again."""

    episode: Trajectory
    messages: tuple[Message, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The chat has been sent."""

    messages: tuple[Message, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Heard:
    """More of the reply has come."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """More of the reasoning has come."""

    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The endpoint failed, and is asked again at a time."""

    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply is whole and goes to the judge."""

    content: str
    at: float


@dataclass(frozen=True, slots=True)
class StageBegan:
    """The judgement has got to another stage."""

    stage: Stage
    at: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A turn is over; the messages are those of the next one."""

    episode: Trajectory
    messages: tuple[Message, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no reply, or no judgement. The turn has not happened."""

    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The episode was ended before its last turn."""

    episode: Trajectory


Event = (
    Started | Asked | Heard | Thought | Retrying | Replied | StageBegan | Judged | Failed | Ended
)
