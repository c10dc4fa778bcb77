"""What happens to an episode while a person watches, and what each of it does to the screen's
state.
"""

from dataclasses import dataclass, replace

from kevin_env.app.play.state import State, Want
from kevin_env.app.replay.state import Size
from kevin_env.judge.api import Stage
from kevin_env.record import Message, Trajectory


@dataclass(frozen=True, slots=True)
class Started:
    """There is an episode: a new one, one taken up, or one in which a turn is taken again."""

    episode: Trajectory
    messages: tuple[Message, ...]


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


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no reply, or no judgement. The turn has not happened."""

    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The episode was ended before its last turn."""

    episode: Trajectory


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something to tell the person."""

    message: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has another size."""

    size: Size


Event = (
    Started
    | Asked
    | Heard
    | Replied
    | StageBegan
    | Judged
    | Failed
    | Ended
    | Noticed
    | Ticked
    | Resized
)


def happened(state: State, event: Event) -> State:
    """The state after an event."""
    match event:
        case Started(episode, messages):
            state = replace(
                state, episode=episode, messages=messages, reply="", stages=(), at=None, trouble=""
            )
            return before_a_turn(replace(state, prompt=False, scroll=0))
        case Asked(messages, at):
            state = replace(
                state, phase="replying", messages=messages, since=at, now=at, reply="", stages=()
            )
            return replace(state, remark="", trouble="", at=None, scroll=0)
        case Heard(text):
            return replace(state, reply=state.reply + text)
        case Replied(content, at):
            state = replace(
                state, phase="judging", since=at, now=at, reply=content, stages=(), trouble=""
            )
            return replace(state, at=None, prompt=False, scroll=0)
        case StageBegan(stage, at):
            return replace(state, stages=(*state.stages, (stage, at)))
        case Judged(episode, messages):
            state = replace(
                state,
                episode=episode,
                messages=messages,
                trouble="",
                notice="",
                leaving=False,
                scroll=0,
            )
            return before_a_turn(state)
        case Failed(message):
            return replace(state, phase="waiting", trouble=message, edit_next=False, scroll=0)
        case Ended(episode):
            return before_a_turn(replace(state, episode=episode))
        case Noticed(message):
            return replace(state, notice=message)
        case Ticked(at):
            return replace(state, now=at)
        case Resized(size):
            return replace(state, size=size)


def before_a_turn(state: State) -> State:
    """What comes next: the end, the editor, the person's word, or another turn."""
    if state.episode.stop_reason is not None:
        return replace(state, phase="ended", edit_next=False)
    state = replace(state, phase="waiting")
    if state.edit_next:
        return replace(state, edit_next=False, wanted=Want("edit"))
    return state if state.step or state.human else replace(state, wanted=Want("turn"))
