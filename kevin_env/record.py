"""Turns and trajectories as values; `kevin_env.recorder` reads and writes their file."""

import contextlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, ConfigDict, Field, computed_field, model_validator

from kevin_env.judge.api import DeviceInfo, Run, Seconds, Submission
from kevin_env.judge.verdict import flag_name
from kevin_env.meaning import meaning_of
from kevin_env.outcome import Category, Frozen, Outcome, Profile, interval_of, speedup_of
from kevin_env.problem import Problem, ProblemError, load_problem
from kevin_env.reasoning import split_reasoning
from kevin_env.score import at_bound

SCHEMA = "kevin-trajectory/1"

Role = Literal["system", "user", "assistant"]
StopReason = Literal[
    "max_turns",
    "stop_on",
    "time_limit",
    "agent_ended",
    "interrupted",
    "context_length",
    "refused",
    "model_error",
    "judge_error",
    "pruned",
]
"""Why an episode ended. `time_limit`: the time of an agent, which `agent_ended` did not use up.
`pruned`: a search continued from another sample.
"""

Confinement = Literal["confined", "unconfined"]
"""Whether a coding agent was kept from the judge and the record."""


def _encodable(text: str) -> str:
    """`text` with a question mark for each lone surrogate, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


Encodable = Annotated[str, AfterValidator(_encodable)]
"""Text without lone surrogates, so that it can be written as UTF-8."""


class Message(Frozen):
    """One chat message as sent to a model."""

    role: Role
    content: Encodable


class Usage(Frozen):
    """Tokens and cost of one reply, as reported by the endpoint; None if not reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class Reply(Frozen):
    """A policy's reply. Reasoning that is marked in its text moves from `content` to `reasoning`.

    A reply that ends within its reasoning was cut off, whatever the endpoint reports.
    """

    content: Encodable
    reasoning: Encodable | None = None
    truncated: bool = False
    """The model was cut off by a token limit."""
    usage: Usage | None = None
    by_person: bool = False
    """A person wrote it instead of the episode's model."""
    file: bool = False
    """`content` is the text of a Python file. A turn records it as a code block."""

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data)
        content = fields.get("content")
        if not isinstance(content, str) or fields.get("file"):
            return fields
        answer, thoughts, unfinished = split_reasoning(content)
        if answer == content:
            return fields
        reasoning = "\n\n".join(filter(None, (fields.get("reasoning"), thoughts.strip())))
        return fields | {
            "content": answer.lstrip("\n"), "reasoning": reasoning or None,
            "truncated": fields.get("truncated", False) or unfinished,
        }  # fmt: skip


class Turn(Frozen):
    """One turn: the chat, the reply, its outcome and the feedback on it.

    `category`, `kind`, `speedup` and `speedup_interval` follow from the outcome. They are written
    for readers that filter records, and not read back.
    """

    model_config = ConfigDict(extra="ignore")

    turn: int
    """From 1."""
    messages: tuple[Message, ...]
    """The chat exactly as sent for this turn."""
    reply: Encodable
    reasoning: Encodable | None = None
    truncated: bool = False
    summary: Encodable = ""
    """The reply's summary of its changes, without code and reasoning."""
    submission: Submission | None = None
    """None if the reply had none."""
    outcome: Outcome
    score: float
    """What the turn was paid."""
    full_score: float = 0.0
    """Its score by itself, of which earlier turns may have been paid a part; by default `score`."""
    feedback: Encodable
    seconds: Seconds = Seconds()
    log: Encodable = ""
    flags: tuple[str, ...] = ()
    profile: Profile | None = None
    """The profile, if requested."""
    usage: Usage | None = None
    by_person: bool = False
    """A person wrote the reply instead of the episode's model."""
    secret: str | None = None
    """The secret that the turn's inputs were derived from; None if nothing was judged."""
    run: Run | None = None
    """How the submission ran; None if nothing was judged, or in older records."""

    @model_validator(mode="before")
    @classmethod
    def _paid_in_full(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        given = cast("Mapping[str, Any]", values)
        return {"full_score": given["score"], **given} if "score" in given else given

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter ran the kernel, so that its speed means nothing."""
        return any(flag_name(each) == "interpreted" for each in self.flags)

    def as_reply(self) -> Reply:
        """The policy's reply."""
        return Reply(
            content=self.reply,
            reasoning=self.reasoning,
            truncated=self.truncated,
            usage=self.usage,
            by_person=self.by_person,
        )

    @computed_field
    @property
    def category(self) -> Category:
        """The outcome's category."""
        return self.outcome.category

    @computed_field
    @property
    def kind(self) -> str:
        """The outcome's kind."""
        return self.outcome.kind

    @computed_field
    @property
    def speedup(self) -> float | None:
        """The median of the measured speedups, None for an outcome that has none."""
        return speedup_of(self.outcome)

    @computed_field
    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """95 % confidence interval of the speedup."""
        return interval_of(self.outcome)

    @property
    def paid_speedup(self) -> float | None:
        """The speedup that a score pays by default (`kevin_env.score.at_bound`)."""
        return speedup_of(at_bound(self.outcome))

    @cached_property
    def meaning(self) -> bytes | None:
        """Hash of what the code says (`kevin_env.meaning`); None without code."""
        return meaning_of(self.submission.code) if self.submission else None


def best_turn(turns: Sequence[Turn]) -> Turn | None:
    """The turn with the largest speedup, the first of equals; None if none was timed."""
    timed = [turn for turn in turns if turn.speedup is not None]
    return max(timed, key=lambda turn: turn.speedup or 0.0, default=None)


def best_speedup(turns: Sequence[Turn]) -> float:
    """The largest speedup; 0 if none was timed."""
    best = best_turn(turns)
    return best.speedup or 0.0 if best else 0.0


class ProblemRef(Frozen):
    """The problem of an episode; the hash identifies its version."""

    id: str
    sha256: str
    level: int | None = None
    name: str = ""
    path: str = ""
    source: str = ""

    @classmethod
    def of(cls, problem: Problem) -> "ProblemRef":
        """The reference to a problem, its source included."""
        return cls(**{name: getattr(problem, name) for name in cls.model_fields})

    def load(self) -> Problem:
        """The recorded problem, from its file or its ID.

        Raises:
            ProblemError: if neither has the recorded source any more.
        """
        why = "its ID and path are gone"
        for name in filter(None, (self.path, self.id)):
            with contextlib.suppress(ProblemError):
                problem = load_problem(name)
                if problem.sha256 == self.sha256:
                    return problem.model_copy(
                        update={"id": self.id}
                    )  # the path alone does not identify the problem
                why = "its source has changed since"
        raise ProblemError(
            f"problem {self.id} is not available as recorded: {why}; restore it from the record"
        )


class Trajectory(Frozen):
    """One episode, finished or not."""

    model_config = ConfigDict(serialize_by_alias=True)

    format: str = Field(default=SCHEMA, alias="schema")
    episode_id: str
    created: str
    """ISO 8601 with time zone."""
    problem: ProblemRef
    config: dict[str, Any]
    """The episode's settings, resolved."""
    model: str
    base_url: str | None = None
    """Address of the model's endpoint, as `policies.openai.public_url` gives it; else None."""
    agent: Confinement | None = None
    """How a coding agent ran that `kevin-env agent` started."""
    final: Outcome | None = None
    """The verdict on the best kernel of an agent, judged once more after the episode."""
    hardware: DeviceInfo | None = None
    turns: tuple[Turn, ...] = ()
    returns: tuple[float, ...] = ()
    stop_reason: StopReason | None = None
    """None while it runs."""
    sample: int | None = None
    """Number of this sample of its problem, from 0. The last trajectory with a number counts."""
    parent: str | None = None
    """The `episode_id` that it was forked or resumed from; its first turns are the parent's."""
    secret: str | None = None

    @property
    def player(self) -> str:
        """The model, and whether it was an agent that nothing kept from the judge."""
        unconfined = " (unconfined)" if self.agent == "unconfined" else ""
        return f"{self.model or 'not recorded'}{unconfined}"
