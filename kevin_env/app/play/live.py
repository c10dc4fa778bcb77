"""Events of an episode that is being played, and its resulting state: frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kevin_env.app.screen import ended_text
from kevin_env.judge.api import Stage
from kevin_env.record import Message, Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Started:
    """An episode has started: a new one, a resumed one, or one that repeats a turn."""

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
    """A piece of the reply was received."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the reasoning was received."""

    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The endpoint failed; the request is repeated at time `at`."""

    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply is complete and is sent to the judge."""

    content: str
    at: float


@dataclass(frozen=True, slots=True)
class StageBegan:
    """A stage of the judgement has started."""

    stage: Stage
    at: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A turn is complete; `messages` are those of the next one."""

    episode: Trajectory
    messages: tuple[Message, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The reply or the judgement failed. The turn is not recorded."""

    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The episode was ended before its last turn."""

    episode: Trajectory


Event = (
    Started | Asked | Heard | Thought | Retrying | Replied | StageBegan | Judged | Failed | Ended
)

Phase = Literal["starting", "waiting", "replying", "judging", "ended"]
"""The state of an episode. `waiting`: before a turn."""
_QUEUED = 1.0
"""Seconds in the queue after which the screen says so."""


@dataclass(frozen=True, slots=True)
class Live:
    """An episode and its running turn. Times are seconds of one clock."""

    episode: Trajectory
    """With the turns so far."""
    phase: Phase = "starting"
    since: float = 0.0
    """When the phase began."""
    messages: tuple[Message, ...] = ()
    """The chat of the running turn, or of the next one."""
    reply: str = ""
    """Received so far in the running turn."""
    reasoning: str = ""
    """Received so far in the running turn."""
    again: tuple[float, str] | None = None
    """When the request is repeated, and why."""
    stages: tuple[tuple[Stage, float], ...] = ()
    """Each stage of the running judgement with its start time; a stage may occur twice."""
    trouble: str = ""
    """Why the last turn failed."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The judged turns."""
        return self.episode.turns

    @property
    def running(self) -> bool:
        """Whether a turn is running."""
        return self.phase in ("replying", "judging")

    @property
    def planned(self) -> int:
        """Total number of turns at its end."""
        taken = len(self.turns)
        return taken if self.phase == "ended" else max(int(self.episode.config["max_turns"]), taken)

    def doing(self, now: float) -> str:
        """The current activity, such as `thinking, 200 characters, 3 s`."""
        seconds = f"{max(now - self.since, 0.0):.0f} s"
        if self.phase == "starting":
            return f"the judge starts, {seconds}"
        if self.phase == "judging":
            return self._judging(now)
        if self.phase == "waiting":
            return "waiting"
        if self.phase == "ended":
            return self.trouble or ended_text(self.episode.stop_reason or "interrupted")
        if self.again is not None:
            return f"{self.again[1]}, trying again in {max(self.again[0] - now, 0.0):.0f} s"
        if self.reply.strip():
            return f"the reply, {len(self.reply):,} characters, {seconds}"
        if self.reasoning:
            return f"thinking, {len(self.reasoning):,} characters, {seconds}"
        return f"waiting for the model, {seconds}"

    def _judging(self, now: float) -> str:
        seconds = spent(self.stages, now)
        if not seconds:
            return "the judge"
        if self.stages[-1][0] == "queue" and seconds["queue"] > _QUEUED:
            return f"waiting for its turn, {seconds['queue']:.0f} s"
        return stages_text(seconds)


def happened(live: Live, event: Event) -> Live:
    """The state after an event."""
    match event:
        case Started(episode, messages, at) | Judged(episode, messages, at):
            phase: Phase = "ended" if episode.stop_reason else "waiting"
            return Live(episode, phase, at, messages)
        case Asked(messages, at):
            return Live(live.episode, "replying", at, messages)
        case Heard(text):
            return replace(live, reply=live.reply + text, again=None)
        case Thought(text):
            return replace(live, reasoning=live.reasoning + text, again=None)
        case Retrying(why, at):
            return replace(live, again=(at, why), reply="", reasoning="")
        case Replied(content, at):
            return replace(
                live, phase="judging", since=at, reply=content, stages=(), trouble="", again=None
            )
        case StageBegan(stage, at):
            return replace(live, stages=(*live.stages, (stage, at)))
        case Failed(message):
            return replace(live, phase="waiting", trouble=message, again=None)
        case Ended(episode):
            return replace(live, episode=episode, phase="ended", stages=(), again=None)


def spent(stages: tuple[tuple[Stage, float], ...], now: float) -> dict[str, float]:
    """Seconds of each stage so far, in the order in which they first began."""
    seconds: dict[str, float] = {}
    for (stage, start), end in zip(
        stages, [*(start for _, start in stages[1:]), now], strict=False
    ):
        seconds[stage] = seconds.get(stage, 0.0) + max(end - start, 0.0)
    return seconds


def stages_text(seconds: Mapping[str, float]) -> str:
    """Such as `build 1.2 s  verify 0.4 s`; stages that took no time are left out."""
    return "  ".join(f"{name} {value:.1f} s" for name, value in seconds.items() if value > 0.05)


def tokens_text(turns: tuple[Turn, ...]) -> str:
    """Tokens and money that the turns took, as far as the endpoint reported them; else empty."""
    used = [turn.usage for turn in turns if turn.usage is not None]
    if not used:
        return ""
    sent, came = (
        sum(getattr(each, name) or 0 for each in used)
        for name in ("prompt_tokens", "completion_tokens")
    )
    cost = sum(each.cost or 0.0 for each in used)
    return f"{sent:,} tokens in, {came:,} out" + (f", ${cost:.4f}" if cost else "")
