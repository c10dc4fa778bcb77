"""Turns and trajectories as values, and the file they are kept in.

A trajectory file has one JSON object a line per finished episode. The running episode is in `FILE.partial.jsonl`, one
line a turn, flushed, so that a kill loses at most the running turn; at its end the whole line is appended to FILE
under a lock.
"""

from typing import Any, Literal

from pydantic import Field

from kevin_env.judge.api import DeviceInfo, Seconds, Submission
from kevin_env.outcome import Frozen, Outcome

SCHEMA = "kevin-trajectory/1"

Role = Literal["system", "user", "assistant"]
StopReason = Literal["max_turns", "stop_on", "interrupted", "context_length", "refused", "model_error", "judge_error"]


class Message(Frozen):
    """One chat message as sent to a model."""

    role: Role
    content: str


class Usage(Frozen):
    """Tokens and money that one reply took, as the endpoint told; None where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class Reply(Frozen):
    """What a policy answered. `content` is what counts; `reasoning` came apart from it."""

    content: str
    reasoning: str | None = None
    truncated: bool = False
    """The model was cut off by a token limit."""
    usage: Usage | None = None


class Turn(Frozen):
    """One turn, whole: what was sent, what came back, how it was judged and what the policy is told of it."""

    turn: int
    """From 1."""
    messages: tuple[Message, ...]
    """The chat exactly as sent for this turn."""
    reply: str
    reasoning: str | None = None
    truncated: bool = False
    summary: str = ""
    """The reply's own few sentences on what it changed, without code and reasoning."""
    submission: Submission | None = None
    """None when the reply held none."""
    outcome: Outcome
    score: float
    feedback: str
    seconds: Seconds = Seconds()
    log: str = ""
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    secret: str | None = None
    """What this turn's inputs were drawn from; None when nothing was judged."""


class ProblemRef(Frozen):
    """Which problem an episode was about; the hash tells two versions apart."""

    id: str
    sha256: str
    level: int | None = None
    name: str = ""
    path: str = ""
    source: str = ""


class Trajectory(Frozen):
    """One episode, finished or not."""

    format: str = Field(default=SCHEMA, alias="schema")
    episode_id: str
    created: str
    """ISO 8601 with time zone."""
    problem: ProblemRef
    config: dict[str, Any]
    """The episode's settings, resolved."""
    model: str
    hardware: DeviceInfo | None = None
    turns: tuple[Turn, ...] = ()
    returns: tuple[float, ...] = ()
    stop_reason: StopReason | None = None
    """None while it runs."""
    secret: str | None = None
