"""What of the turns so far appears in the next prompt.

As in Kevin (arXiv 2507.11948), a prompt is one user message: the task, then of each earlier turn its kernel, its
summary and its feedback, never its reasoning. Which turns, a `ContextPolicy` decides.
"""

import dataclasses
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kevin_env.examples import choose_pairs
from kevin_env.feedback import (
    KEVIN_SCORING,
    PastTurn,
    TaskSettings,
    render_history,
    render_system,
    render_task,
)
from kevin_env.judge.api import DeviceInfo, Facts
from kevin_env.problem import Problem
from kevin_env.record import Message, Turn
from kevin_env.settings import Settings

DEFAULT_BUDGET = 32_768
"""Tokens of a whole prompt. Kevin had 8,192; here the task and eight turns of 3,000 tokens fit."""

TokenCounter = Callable[[str], int]
"""How many tokens a text takes."""

_HEADINGS = 64
"""Tokens that the history's own words take at most: once for all of it, and again for each turn."""

_OTHER_SCORING = "A turn is scored by its outcome: whether the output is right on every input set, and how fast it is."


def count_characters(text: str) -> int:
    """Tokens by the rule of thumb of four characters each, for when the model's tokenizer is not at hand."""
    return -(-len(text) // 4)


@dataclass(frozen=True)
class Room:
    """How many tokens are left for earlier turns, and how many a turn takes."""

    tokens: int
    cost: Callable[[Turn], int]

    def fit(self, candidates: Iterable[Turn]) -> tuple[Turn, ...]:
        """The candidates, the most wanted first, until one does not fit; in the order in which they were played."""
        taken: list[Turn] = []
        left = self.tokens
        for turn in candidates:
            left -= self.cost(turn)
            if left < 0:
                break
            taken.append(turn)
        return tuple(sorted(taken, key=lambda turn: turn.turn))


class ContextPolicy(Protocol):
    """Chooses the turns that a prompt shows."""

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """Those of `turns` to show, in order. `room.fit` keeps to the budget."""
        ...


@dataclass(frozen=True)
class Kevin:
    """All turns; the oldest are dropped when they are too long together."""

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """See `ContextPolicy`."""
        return room.fit(reversed(turns))


@dataclass(frozen=True)
class Full:
    """All turns, however long."""

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """See `ContextPolicy`."""
        return turns


@dataclass(frozen=True)
class LastN:
    """The last `n` turns, as far as they fit."""

    n: int = 3

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """See `ContextPolicy`."""
        return room.fit(reversed(turns[-self.n :]))


@dataclass(frozen=True)
class TopW:
    """The `w` turns with the best scores, the later of equals, as far as they fit (Dr. Kernel, arXiv 2602.05885)."""

    w: int = 4

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """See `ContextPolicy`."""
        return room.fit(heapq.nlargest(self.w, turns, key=_merit))


@dataclass(frozen=True)
class BestLast:
    """The last turn and the best one, as far as they fit."""

    def select(self, turns: Sequence[Turn], room: Room) -> Sequence[Turn]:
        """See `ContextPolicy`."""
        best = max(turns, key=_merit)
        return room.fit(turns[-1:] if best is turns[-1] else (turns[-1], best))


_PLAIN: dict[str, Callable[[], ContextPolicy]] = {"kevin": Kevin, "full": Full, "best_last": BestLast}
_COUNTED: dict[str, Callable[[int], ContextPolicy]] = {"last_n": LastN, "top_w": TopW}
_DEFAULTS: dict[str, ContextPolicy] = {"last_n": LastN(), "top_w": TopW()}


def resolve_context(context: str | ContextPolicy) -> ContextPolicy:
    """The policy of that name (`kevin`, `full`, `last_n:3`, `top_w:4`, `best_last`), or the policy itself.

    Raises:
        ValueError: if no policy has that name, or its number is not 1 or more.
    """
    if not isinstance(context, str):
        return context
    name, colon, number = context.partition(":")
    if name in _PLAIN and not colon:
        return _PLAIN[name]()
    if name in _COUNTED and not colon:
        return _DEFAULTS[name]
    if name in _COUNTED and number.isascii() and number.isdigit() and int(number) > 0:
        return _COUNTED[name](int(number))
    if name in _COUNTED:
        raise ValueError(f"context {context!r}: give a number of turns from 1 up, as in '{name}:3'")
    raise ValueError(f"unknown context {context!r}: give one of {', '.join([*_PLAIN, *(f'{n}:N' for n in _COUNTED)])}")


def resolve_language(
    language: Literal["auto", "cuda", "triton", "cpp"], device: DeviceInfo
) -> Literal["cuda", "triton", "cpp"]:
    """What `auto` asks for on a device: Triton on a GPU, C++ without."""
    if language != "auto":
        return language
    return "triton" if device.device.startswith("cuda") else "cpp"


def build_messages(
    problem: Problem,
    facts: Facts,
    turns: Sequence[Turn],
    settings: Settings,
    *,
    policy: ContextPolicy | None = None,
    budget: int = DEFAULT_BUDGET,
    count: TokenCounter = count_characters,
) -> tuple[Message, ...]:
    """The chat to send for the next turn: a system message if `prompts/system.j2` has one, and one user message.

    Args:
        problem: what is to be solved.
        facts: what the judge told of it.
        turns: those played so far, in order. Examples are shown only before the first.
        settings: how the episode is played.
        policy: which turns to show, instead of the one that `settings.context` names.
        budget: tokens that the whole prompt may take. A task that takes more is sent all the same, without history
            and without examples but the one of the form.
        count: counts tokens; each text is counted by itself.

    Raises:
        RetrievalError: if examples are to be retrieved and cannot be.
    """
    system = render_system()
    task = _task_settings(facts, settings, example=settings.examples != "zero" and not turns)
    content = render_task(problem, facts, task)
    left = budget - count(content) - count(system) - _HEADINGS
    if turns:
        room = Room(left, lambda turn: _HEADINGS + count("".join(_shown(turn))))
        kept = (policy or resolve_context(settings.context)).select(turns, room)
        history = [PastTurn(turn.turn, *_shown(turn)) for turn in kept]
        content += "\n" + render_history(history, len(turns) - len(kept), len(turns) + 1, settings.max_turns)
    elif pairs := choose_pairs(problem, task.language, settings, left, lambda text: _HEADINGS + count(text)):
        content = render_task(problem, facts, dataclasses.replace(task, pairs=pairs))
    user = Message(role="user", content=content.strip())
    return (Message(role="system", content=system), user) if system else (user,)


def with_remark(messages: tuple[Message, ...], remark: str) -> tuple[Message, ...]:
    """The chat with a person's remark at the end of its last message."""
    *before, last = messages
    content = f"{last.content}\n\n# A remark before you answer\n\n{remark.strip()}"
    return (*before, Message(role=last.role, content=content))


def _task_settings(facts: Facts, settings: Settings, example: bool) -> TaskSettings:
    return TaskSettings(
        language=resolve_language(settings.language, facts.device),
        max_turns=settings.max_turns,
        rules=settings.rules,
        baseline=settings.baseline,
        scoring=KEVIN_SCORING if settings.score == "kevin" else _OTHER_SCORING,
        example=example,
    )


def _shown(turn: Turn) -> tuple[str, str, str]:
    """Code, summary and feedback."""
    return (turn.submission.code if turn.submission else "", turn.summary, turn.feedback)


def _merit(turn: Turn) -> tuple[float, int]:
    return turn.score, turn.turn
