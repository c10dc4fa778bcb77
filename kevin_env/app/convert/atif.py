"""ATIF, the trajectory format of harbor (ATIF-v1.6), and back without loss.

ATIF has no rewards and forbids fields of one's own, apart from `extra`. So what it has no place for
is there, under `kevin_env`: of the document all of the episode but its turns, of a step all of the
turn but what the step says.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from kevin_env.app.replay.reward import returns_of
from kevin_env.record import Trajectory, Turn

VERSION = "ATIF-v1.6"
_OURS = "kevin_env"
_IN_STEP = {"reply", "reasoning", "feedback"}


def to_atif(episode: Trajectory) -> dict[str, Any]:
    """An episode as an ATIF document: what was sent first, then a step a turn, with its feedback as
    observation.
    """
    first = episode.turns[0].messages if episode.turns else ()
    steps = [
        {"source": "system" if m.role == "system" else "user", "message": m.content} for m in first
    ]
    steps = steps or [{"source": "user", "message": episode.problem.id}]
    steps += [_step(turn, episode.model) for turn in episode.turns]
    ours = episode.model_dump(mode="json", exclude={"turns"}) | {"returns": returns_of(episode)}
    ours["returns_recorded"] = len(episode.returns) == len(episode.turns)
    return {
        "schema_version": VERSION,
        "session_id": episode.episode_id,
        "agent": {"name": "kevin-env", "version": _version(), "model_name": episode.model or None},
        "steps": [{"step_id": number} | step for number, step in enumerate(steps, start=1)],
        "final_metrics": _totals(episode),
        "extra": {_OURS: ours},
    }


def from_atif(document: Any) -> Trajectory:
    """The episode of a document that `to_atif` made.

    Raises:
        ValueError: in one line, if it is none. ATIF of others has no verdicts on kernels, so there
            is nothing to show.
    """
    if not isinstance(document, dict) or not str(document.get("schema_version", "")).startswith(
        "ATIF"
    ):
        raise ValueError("is not ATIF")
    ours = (document.get("extra") or {}).get(_OURS)
    if not isinstance(ours, dict):
        raise ValueError("is ATIF without verdicts on kernels: kevin-env did not write it")
    turns = [_turn(step) for step in document.get("steps", []) if step.get("source") == "agent"]
    recorded = ours.pop("returns_recorded", True)
    return Trajectory.model_validate(
        ours | {"turns": turns} | ({} if recorded else {"returns": ()}), extra="ignore"
    )


def _step(turn: Turn, model: str) -> dict[str, Any]:
    usage = turn.usage
    metrics = (
        {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost,
        }
        if usage
        else None
    )
    step = {
        "source": "agent",
        "model_name": model or None,
        "message": turn.reply,
        "reasoning_content": turn.reasoning,
        "observation": {"results": [{"content": turn.feedback}]},
        "metrics": metrics,
        "extra": {_OURS: turn.model_dump(mode="json", exclude=_IN_STEP)},
    }
    return {name: value for name, value in step.items() if value is not None}


def _turn(step: dict[str, Any]) -> Turn:
    ours = (step.get("extra") or {}).get(_OURS)
    if not isinstance(ours, dict):
        raise ValueError(f"step {step.get('step_id')} has no verdict of ours")
    results = (step.get("observation") or {}).get("results") or [{}]
    said = {"reply": step.get("message"), "reasoning": step.get("reasoning_content")}
    return Turn.model_validate(
        ours | said | {"feedback": results[0].get("content")}, extra="ignore"
    )


def _totals(episode: Trajectory) -> dict[str, Any]:
    usages = [turn.usage for turn in episode.turns if turn.usage]
    counted = {
        "total_prompt_tokens": [usage.prompt_tokens for usage in usages],
        "total_completion_tokens": [usage.completion_tokens for usage in usages],
        "total_cached_tokens": [usage.cached_tokens for usage in usages],
        "total_cost_usd": [usage.cost for usage in usages],
    }
    totals = {
        name: sum(v for v in values if v is not None)
        for name, values in counted.items()
        if any(values)
    }
    return totals | {"total_steps": len(episode.turns)}


def _version() -> str:
    try:
        return version("kevin-env")
    except PackageNotFoundError:
        return "unknown"
