"""Training samples from trajectories, one per turn, with their advantages.

A turn is trained on its own prompt with its own return. Trainers that sum the rewards of a
trajectory give all of its turns one advantage: scores (0, 0, 1.3, 0) and (1.3, 0, 0, 0) are then
the same.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Literal

from pydantic import Field

from kevin_env.outcome import Category, Frozen
from kevin_env.record import Message, Trajectory, Turn
from kevin_env.score import discounted_returns
from kevin_env.settings import Settings

Baseline = Literal["flat", "flat_std", "leave_one_out", "grpo"]
"""The baseline that a return is compared with.

- `flat_std`: the mean over all m x n turns of its group, divided by their standard deviation
  (Kevin, arXiv 2507.11948, 4: m trajectories of n turns). `flat`: the same without the division (as
  Dr. GRPO, arXiv 2503.20783).
- `leave_one_out`: the mean of the group's other returns at the same turn (TRLOO, arXiv 2602.05885).
- `grpo`: the mean of the group's returns at the same turn, divided by their standard deviation
  (arXiv 2402.03300).
"""

_EPSILON = 1e-4
"""Added to a standard deviation, as TRL does."""

_CUT_OFF = (None, "interrupted", "pruned", "model_error", "judge_error")
"""Stop reasons that the policy did not cause; None while it runs."""


class TurnSample(Frozen):
    """One turn as a training sample."""

    episode_id: str
    group: str
    """The same for samples with comparable returns: see `group_of`."""
    problem: str
    model: str
    turn: int
    """From 1."""
    prompt: tuple[Message, ...]
    """The chat exactly as sent."""
    reply: str
    reasoning: str | None
    by_person: bool
    """A person wrote the reply instead of the model."""
    category: Category
    kind: str
    speedup: float | None
    score: float
    turn_return: float = Field(serialization_alias="return")
    """The discounted return from this turn on."""


def samples_of(episode: Trajectory, batch: str = "") -> tuple[TurnSample, ...]:
    """The samples of one episode, finished or not, one per turn in order.

    Args:
        episode: the recorded episode.
        batch: see `group_of`.
    """
    group, returns = group_of(episode, batch), returns_of(episode)
    return tuple(
        _sample(episode, group, turn, value)
        for turn, value in zip(episode.turns, returns, strict=True)
    )


def training_samples(episodes: Iterable[Trajectory], batch: str = "") -> tuple[TurnSample, ...]:
    """The samples of many episodes.

    Excludes episodes that were cut off (running, interrupted, pruned, ended by an error), since
    their returns are incomplete, and those in which a person took a turn. A turn shared by forks
    appears once, with the mean of its returns. Of several episodes with one ID, the last counts.

    Args:
        episodes: in any order.
        batch: see `group_of`.
    """
    known = {episode.episode_id: episode for episode in episodes}
    shared: dict[tuple[str, Turn], list[TurnSample]] = {}
    for episode in known.values():
        if episode.stop_reason not in _CUT_OFF and not any(
            turn.by_person for turn in episode.turns
        ):
            family = _family(episode, known)
            for turn, sample in zip(episode.turns, samples_of(episode, batch), strict=True):
                shared.setdefault((family, turn), []).append(sample)
    return tuple(_merged(each) for each in shared.values())


def group_of(episode: Trajectory, batch: str = "") -> str:
    """The group of an episode: problem version, policy, settings, kind of device, and `batch`.

    Args:
        episode: the episode.
        batch: distinguishes what the policy's name does not, such as the steps of a training run.
    """
    settings = {name: value for name, value in episode.config.items() if name != "device"}
    hardware = episode.hardware.name if episode.hardware else ""
    key = json.dumps(
        [episode.problem.sha256, episode.model, settings, hardware, batch], sort_keys=True
    )
    return f"{episode.problem.id}/{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def advantages(samples: Sequence[TurnSample], baseline: Baseline = "flat_std") -> tuple[float, ...]:
    """One advantage per sample, in order; 0 for a sample with nothing to compare it with.

    Args:
        samples: of any number of groups. Trajectories may have different numbers of turns.
        baseline: see `Baseline`; Kevin's by default.

    Raises:
        ValueError: if there is no such baseline.
    """
    result = [0.0] * len(samples)
    for cell in _cells(samples, baseline):
        compared = _COMPARISONS[baseline]([samples[at].turn_return for at in cell])
        for at, advantage in zip(cell, compared, strict=True):
            result[at] = advantage
    return tuple(result)


def informative(
    samples: Sequence[TurnSample], baseline: Baseline = "flat_std"
) -> tuple[TurnSample, ...]:
    """The samples without those whose return equals all returns that it is compared with.

    These are the returns of turns: trajectories with equal sums of scores can differ in them.

    Args:
        samples: as for `advantages`.
        baseline: the baseline to compare with.

    Raises:
        ValueError: if the baseline is unknown.
    """
    kept = {at for cell in _cells(samples, baseline) for at in cell}
    return tuple(sample for at, sample in enumerate(samples) if at in kept)


def settings_of(episode: Trajectory) -> Settings:
    """The settings of an episode, with defaults for those missing from the record."""
    names = ("gamma", "returns", "bound", "pay_repeats", "tokenizer")
    known = {"pay_repeats": True} | {
        name: episode.config[name] for name in names if name in episode.config
    }
    try:
        return Settings.of(known)
    except ValueError:
        return Settings()


def returns_of(episode: Trajectory) -> tuple[float, ...]:
    """The recorded returns, one per turn; of an unfinished episode, those so far."""
    if len(episode.returns) == len(episode.turns):
        return episode.returns
    settings = settings_of(episode)
    return discounted_returns(
        [turn.score for turn in episode.turns], settings.gamma, settings.returns
    )


def _sample(episode: Trajectory, group: str, turn: Turn, value: float) -> TurnSample:
    return TurnSample(
        episode_id=episode.episode_id,
        group=group,
        problem=episode.problem.id,
        model=episode.model,
        turn=turn.turn,
        prompt=turn.messages,
        reply=turn.reply,
        reasoning=turn.reasoning,
        by_person=turn.by_person,
        category=turn.category,
        kind=turn.kind,
        speedup=turn.speedup,
        score=turn.score,
        turn_return=value,
    )


def _merged(samples: Sequence[TurnSample]) -> TurnSample:
    return samples[0].model_copy(
        update={"turn_return": fmean(sample.turn_return for sample in samples)}
    )


def _family(episode: Trajectory, known: dict[str, Trajectory]) -> str:
    """The ID of its oldest known ancestor."""
    name, seen = episode.episode_id, set[str]()
    while name in known and name not in seen and (parent := known[name].parent):
        seen.add(name)
        name = parent
    return name


def _cells(samples: Sequence[TurnSample], baseline: Baseline) -> list[list[int]]:
    """Indices of samples that are compared with each other, unless all their returns are equal."""
    if baseline not in _COMPARISONS:
        raise ValueError(f"baseline {baseline!r} is unknown; give one of {', '.join(_COMPARISONS)}")
    by_turn = baseline in ("leave_one_out", "grpo")
    cells: dict[tuple[str, int], list[int]] = {}
    for at, sample in enumerate(samples):
        cells.setdefault((sample.group, sample.turn if by_turn else 0), []).append(at)
    return [
        cell for cell in cells.values() if not _constant([samples[at].turn_return for at in cell])
    ]


def _constant(values: Sequence[float]) -> bool:
    return math.isclose(min(values), max(values), rel_tol=1e-9, abs_tol=1e-12)


def _centred(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value - mean for value in values]


def _scaled(values: Sequence[float]) -> list[float]:
    divisor = stdev(values) + _EPSILON
    return [value / divisor for value in _centred(values)]


def _left_out(values: Sequence[float]) -> list[float]:
    """G_i - mean of G_j over j != i = N / (N - 1) (G_i - mean G)."""
    factor = len(values) / (len(values) - 1)
    return [factor * value for value in _centred(values)]


_COMPARISONS: dict[Baseline, Callable[[Sequence[float]], list[float]]] = {
    "flat": _centred,
    "flat_std": _scaled,
    "leave_one_out": _left_out,
    "grpo": _scaled,
}
