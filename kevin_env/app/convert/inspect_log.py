"""An Inspect log (`inspect view` reads it): one sample an episode, its scores and its chat."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, TextIO

from kevin_env.app.convert.samples import chat
from kevin_env.app.replay.reward import returns_of
from kevin_env.record import Trajectory

LOG_VERSION = 2


def write_inspect(episodes: Iterable[Trajectory], stream: TextIO) -> None:
    """One log of all episodes, as JSON; Inspect wants the file's name to end in `.json`."""
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
        "samples": samples,
    }
    json.dump(log, stream, allow_nan=False)
    stream.write("\n")


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
    """The return of the first turn, the best speedup (0 for none) and whether any kernel was right;
    turns beside it.
    """
    returns = returns_of(episode)
    turns = [
        turn.model_dump(mode="json", include={"turn", "category", "kind", "speedup", "score"})
        for turn in episode.turns
    ]
    best = max((turn.speedup or 0.0 for turn in episode.turns), default=0.0)
    return {
        "return": {
            "value": returns[0] if returns else 0.0,
            "metadata": {"returns": returns, "turns": turns},
        },
        "best_speedup": {"value": best},
        "correct": {"value": any(turn.category == "correct" for turn in episode.turns)},
    }
