"""Episodes for trainers and spreadsheets: chats, a training sample a turn, a row a turn."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from kevin_env.advantage import returns_of, samples_of
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.numbers_panes import STAGES
from kevin_env.record import Trajectory

COLUMNS = (
    *(
        "episode_id",
        "problem",
        "level",
        "model",
        "turn",
        "category",
        "kind",
        "speedup",
        "speedup_low",
        "speedup_high",
    ),
    *(
        "score",
        "return",
        "stop_reason",
        "message",
        *(f"seconds_{stage}" for stage in STAGES),
        "prompt_tokens",
    ),
    *("completion_tokens", "reasoning_tokens"),
)


def chat(episode: Trajectory) -> dict[str, Any]:
    """The episode as one growing chat: the first prompt, then replies and feedback in turns.

    What was sent later may have been shortened (`context`); `turn_samples` has every prompt as it
    was sent.
    """
    messages: list[dict[str, str]] = []
    for turn in episode.turns:
        if not messages:
            messages += [message.model_dump() for message in turn.messages]
        messages += [
            {"role": "assistant", "content": turn.reply},
            {"role": "user", "content": turn.feedback},
        ]
    # Nobody answers the last feedback.
    return {"messages": messages[:-1]}


def turn_samples(episode: Trajectory) -> Iterator[dict[str, Any]]:
    """One training sample a turn: the prompt as sent, the reply with its reasoning, its score and
    its return.
    """
    return (sample.model_dump(mode="json", by_alias=True) for sample in samples_of(episode))


def write_csv(episodes: Iterable[Trajectory], stream: TextIO) -> None:
    """A row a turn, with a heading. Text that a spreadsheet would take for a formula begins with an
    apostrophe.
    """
    writer = csv.DictWriter(stream, COLUMNS)
    writer.writeheader()
    for episode in episodes:
        writer.writerows(_rows(episode))


def _rows(episode: Trajectory) -> Iterator[dict[str, Any]]:
    for turn, value in zip(episode.turns, returns_of(episode), strict=True):
        low, high = turn.speedup_interval or (None, None)
        tokens = turn.usage.model_dump() if turn.usage else {}
        yield {
            "episode_id": inert(episode.episode_id),
            "problem": inert(episode.problem.id),
            "level": episode.problem.level,
            "model": inert(episode.model),
            "turn": turn.turn,
            "category": turn.category,
            "kind": turn.kind,
            "speedup": turn.speedup,
            "speedup_low": low,
            "speedup_high": high,
            "score": turn.score,
            "return": value,
            "stop_reason": episode.stop_reason,
            "message": inert(turn.outcome.message),
            **{f"seconds_{stage}": getattr(turn.seconds, stage) for stage in STAGES},
            **{
                name: tokens.get(name)
                for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens")
            },
        }


def inert(text: str) -> str:
    """Untrusted text for a cell: clean, and no formula in a spreadsheet."""
    text = clean(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
