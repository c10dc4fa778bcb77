"""The formats: chats, training samples, CSV, ATIF and Inspect logs.

ATIF-v1.6, harbor's trajectory format, has no rewards and forbids additional fields except in
`extra`: of the document the problem, settings and returns, of a step the verdict and the score.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import Any, TextIO

from kevin_env.advantage import returns_of, samples_of
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.describe import STAGES
from kevin_env.record import Trajectory, Turn, best_speedup

_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
COLUMNS = (
    "episode_id", "problem", "level", "model", "turn", "category", "kind",
    "speedup", "speedup_low", "speedup_high", "score", "return", "stop_reason", "message",
    *(f"seconds_{stage}" for stage in STAGES),
    *_TOKENS,
)  # fmt: skip


def chat(episode: Trajectory) -> dict[str, Any]:
    """The episode as one chat: the first prompt, then replies and feedback.

    Later prompts may have been shortened (`context`); `turn_samples` has each prompt as sent.
    """
    messages: list[dict[str, str]] = []
    for turn in episode.turns:
        if not messages:
            messages += [message.model_dump() for message in turn.messages]
        messages += [
            {"role": "assistant", "content": turn.reply},
            {"role": "user", "content": turn.feedback},
        ]
    return {"messages": messages[:-1]}  # the last feedback has no reply


def turn_samples(episode: Trajectory) -> Iterator[dict[str, Any]]:
    """A training sample per turn: prompt as sent, reply, reasoning, score and return."""
    return (sample.model_dump(mode="json", by_alias=True) for sample in samples_of(episode))


def write_csv(episodes: Iterable[Trajectory], stream: TextIO) -> None:
    """Writes a header and a row per turn. Text is `inert`."""
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
            **{name: tokens.get(name) for name in _TOKENS},
        }


def inert(text: str) -> str:
    """Untrusted text for a cell: clean, with an apostrophe before what would be a formula."""
    text = clean(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


VERSION = "ATIF-v1.6"
_OURS = "kevin_env"
_OF_STEP = {"turn", "outcome", "category", "kind", "speedup", "speedup_interval", "score"}
_METRICS = {
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "cost_usd": "cost",
}
"""Fields of `Usage` by what ATIF calls them."""


def to_atif(episode: Trajectory) -> dict[str, Any]:
    """An episode as an ATIF document: the first prompt, then a step per turn with its feedback."""
    first = episode.turns[0].messages if episode.turns else ()
    steps = [
        {"source": "system" if m.role == "system" else "user", "message": m.content} for m in first
    ]
    steps = steps or [{"source": "user", "message": episode.problem.id}]
    steps += [_step(turn, episode.model) for turn in episode.turns]
    ours = episode.model_dump(mode="json", exclude={"turns"}) | {"returns": returns_of(episode)}
    return {
        "schema_version": VERSION,
        "session_id": episode.episode_id,
        "agent": {"name": "kevin-env", "version": _version(), "model_name": episode.model or None},
        "steps": [{"step_id": number} | step for number, step in enumerate(steps, start=1)],
        "final_metrics": _totals(episode),
        "extra": {_OURS: ours},
    }


def _step(turn: Turn, model: str) -> dict[str, Any]:
    used = turn.usage
    metrics = {name: getattr(used, field) for name, field in _METRICS.items()} if used else None
    step = {
        "source": "agent",
        "model_name": model or None,
        "message": turn.reply,
        "reasoning_content": turn.reasoning,
        "observation": {"results": [{"content": turn.feedback}]},
        "metrics": metrics,
        "extra": {_OURS: turn.model_dump(mode="json", include=_OF_STEP)},
    }
    return {name: value for name, value in step.items() if value is not None}


def _totals(episode: Trajectory) -> dict[str, Any]:
    totals: dict[str, Any] = {}
    for name, field in _METRICS.items():
        values = [getattr(turn.usage, field) for turn in episode.turns if turn.usage]
        if any(values):
            totals[f"total_{name}"] = sum(filter(None, values))
    return totals | {"total_steps": len(episode.turns)}


def _version() -> str:
    try:
        return version("kevin-env")
    except PackageNotFoundError:
        return "unknown"


LOG_VERSION = 2


def write_inspect(episodes: Iterable[Trajectory], stream: TextIO) -> None:
    """Writes an Inspect log, a sample per episode. Inspect requires names that end in `.json`."""
    read = list(episodes)
    models = sorted({episode.model or "unknown" for episode in read})
    epochs: Counter[str] = Counter()
    samples: list[dict[str, Any]] = []
    for episode in read:
        epochs[episode.problem.id] += 1
        samples.append(_sample(episode, epochs[episode.problem.id]))
    problems = sorted(epochs)
    log = {
        "version": LOG_VERSION,
        "status": "success",
        "eval": {
            "created": read[0].created,
            "task": "kevin-env",
            "dataset": {
                "name": "kevin-env",
                "samples": len(problems),
                "sample_ids": problems,
                "shuffled": False,
            },
            "model": models[0] if len(models) == 1 else "several",
            "config": {"epochs": max(epochs.values())},
            "metadata": {"models": models},
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [_mean(name, samples) for name in samples[0]["scores"]],
        },
        "samples": samples,
    }
    json.dump(log, stream, allow_nan=False)
    stream.write("\n")


def _mean(name: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A score over all samples."""
    value = fmean(sample["scores"][name]["value"] for sample in samples)
    return {
        "name": name,
        "scorer": "kevin-env",
        "metrics": {"mean": {"name": "mean", "value": value}},
    }


def _sample(episode: Trajectory, epoch: int) -> dict[str, Any]:
    messages = chat(episode)["messages"] if episode.turns else []
    model, last = episode.model or "unknown", episode.turns[-1] if episode.turns else None
    return {
        "id": episode.problem.id,
        "epoch": epoch,
        "uuid": episode.episode_id,
        "input": [message.model_dump() for message in episode.turns[0].messages]
        if last
        else episode.problem.id,
        "target": "",
        "messages": messages,
        "output": {
            "model": model,
            "choices": [_choice(last.reply, last.truncated)] if last else [],
        },
        "scores": _scores(episode),
        "metadata": episode.model_dump(
            mode="json", include={"episode_id", "config", "hardware", "stop_reason", "model"}
        ),
    }


def _choice(reply: str, truncated: bool) -> dict[str, Any]:
    return {
        "message": {"role": "assistant", "content": reply},
        "stop_reason": "max_tokens" if truncated else "stop",
    }


def _scores(episode: Trajectory) -> dict[str, Any]:
    """First return, largest speedup (0 without one), and whether any kernel was correct."""
    returns = returns_of(episode)
    turns = [
        turn.model_dump(mode="json", include={"turn", "category", "kind", "speedup", "score"})
        for turn in episode.turns
    ]
    return {
        "return": {
            "value": returns[0] if returns else 0.0,
            "metadata": {"returns": returns, "turns": turns},
        },
        "best_speedup": {"value": best_speedup(episode.turns)},
        "correct": {"value": any(turn.category == "correct" for turn in episode.turns)},
    }
