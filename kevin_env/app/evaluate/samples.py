"""Groups trajectories by problem and sample.

Forked episodes share turns, each of which was played, and counts, once. Samples are the leaves of
the tree of forks, except for those that a search pruned.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from kevin_env.advantage import returns_of
from kevin_env.app.evaluate.figures import Baseline
from kevin_env.app.replay.rows import natural
from kevin_env.outcome import is_hack
from kevin_env.record import Trajectory, Turn, best_speedup, best_turn

RATES: dict[str, Callable[[Turn], bool]] = {
    "format": lambda turn: turn.category != "format",
    "compile": lambda turn: turn.category in ("runtime", "correctness", "correct"),
    "correct": lambda turn: turn.category == "correct",
    "hack": lambda turn: is_hack(turn.outcome),
}
"""The turns that each rate counts."""

Factors = Mapping[Baseline, float | None]
"""Factors from a recorded speedup to one over each baseline; None if unknown."""

_ANSWERED = ("refused", "context_length", "agent_ended", "time_limit")
"""Stop reasons before the first turn for which the model is responsible."""
_CUT_OFF = (None, "interrupted", "model_error", "judge_error")


@dataclass(frozen=True)
class Played:
    """One turn, shared by all episodes that have it."""

    number: int
    """From 1."""
    turn: Turn
    factors: Factors

    @property
    def correct(self) -> bool:
        """Whether its kernel was correct."""
        return self.turn.category == "correct"

    def speedup(self, baseline: Baseline) -> float | None:
        """The speedup over a baseline, 0 without a time; None if the factor is unknown."""
        factor = self.factors[baseline]
        return None if factor is None else factor * (self.turn.speedup or 0.0)


@dataclass(frozen=True)
class Sample:
    """One trajectory of a problem: a sample, or an episode that a search continued or pruned."""

    trajectory: Trajectory
    played: tuple[Played, ...]
    returns: tuple[float, ...]
    factors: Factors

    @property
    def untimed(self) -> bool:
        """Whether it is correct without a measured time."""
        return self.correct() and self.best_turn is None

    @property
    def best_turn(self) -> int | None:
        """The first turn, from 1, with the fastest correct kernel; None without a time."""
        best = best_turn(self.trajectory.turns)
        return best and best.turn

    def lasts(self, turn: int) -> bool:
        """Whether it has a turn with this number."""
        return len(self.played) >= turn

    def correct(self, by: int | None = None) -> bool:
        """Whether any kernel (of the first `by` turns) was correct."""
        return any(each.correct for each in self.played[:by])

    def fastest(self, by: int | None = None) -> float:
        """The largest recorded speedup (of the first `by` turns), 0 without one."""
        return best_speedup(self.trajectory.turns[:by])

    def speedup(self, baseline: Baseline, by: int | None = None) -> float | None:
        """`fastest` over a baseline; None if the factor is unknown."""
        factor = self.factors[baseline]
        return None if factor is None else factor * self.fastest(by)


@dataclass(frozen=True)
class Attempts:
    """All attempts at one problem."""

    problem: str
    level: int | None
    samples: tuple[Sample, ...]
    episodes: tuple[Sample, ...]
    """The samples, and the episodes that they continue or replaced."""
    turns: tuple[Played, ...]
    """Each turn once."""

    def paths(self, turn: int) -> list[Sample]:
        """The trajectories as of a turn. Without forks these are the samples.

        They are an episode per distinct path of this length, and the samples that ended earlier.
        """
        long = {id(each.played[turn - 1]): each for each in self.episodes if each.lasts(turn)}
        return [*long.values(), *(each for each in self.samples if not each.lasts(turn))]


def mean(values: Iterable[float]) -> float:
    """The mean, or the share of true values; 0 of none."""
    found = list(values)
    return fmean(found) if found else 0.0


def answered(trajectory: Trajectory) -> bool:
    """Whether it has a turn, or has none because of the model."""
    return bool(trajectory.turns) or trajectory.stop_reason in _ANSWERED


def without_texts(trajectory: Trajectory) -> Trajectory:
    """The episode without its texts: the chats of a whole run would not fit in memory."""
    turns = tuple(map(_without_texts, trajectory.turns))
    problem = trajectory.problem.model_copy(update={"source": ""})
    return trajectory.model_copy(update={"turns": turns, "problem": problem})


def _without_texts(turn: Turn) -> Turn:
    texts: dict[str, Any] = dict.fromkeys(("reply", "summary", "feedback", "log"), "")
    return turn.model_copy(update=texts | {"messages": (), "reasoning": None})


def gather(trajectories: Iterable[Trajectory], ratios: Mapping[str, float]) -> list[Attempts]:
    """Trajectories by problem, sorted by level and id.

    A trajectory without turns is a sample only if the model refused or the prompt exceeded its
    context. An unfinished one gives way to any later one with its sample number.

    Args:
        trajectories: in the order of their file. Of several with the same id the last counts.
        ratios: T_compile / T_eager by problem id.
    """
    problems: dict[str, dict[str, Trajectory]] = {}
    for each in trajectories:
        if answered(each):
            problems.setdefault(each.problem.id, {})[each.episode_id] = each
    found = [_attempts(each, ratios.get(name)) for name, each in problems.items()]
    return sorted(
        found,
        key=lambda each: (math.inf if each.level is None else each.level, natural(each.problem)),
    )


def _attempts(episodes: Mapping[str, Trajectory], ratio: float | None) -> Attempts:
    played: dict[tuple[str, int], Played] = {}
    read: dict[str, Sample] = {}
    for name, episode in episodes.items():
        factors = _factors(episode, ratio)
        keys = [(owner, at) for at, owner in enumerate(_owners(episode, episodes), start=1)]
        own = [
            played.setdefault(key, Played(key[1], turn, factors))
            for key, turn in zip(keys, episode.turns, strict=True)
        ]
        read[name] = Sample(episode, tuple(own), returns_of(episode), factors)
    problem = next(iter(episodes.values())).problem
    return Attempts(
        problem=problem.id,
        level=problem.level,
        samples=tuple(read[each.episode_id] for each in _leaves(episodes)),
        episodes=tuple(read.values()),
        turns=tuple(played.values()),
    )


def _owners(episode: Trajectory, episodes: Mapping[str, Trajectory]) -> list[str]:
    """For each turn the id of the episode that played it: the farthest ancestor that has it."""
    owners = [episode.episode_id] * len(episode.turns)
    seen, parent = {episode.episode_id}, episodes.get(episode.parent or "")
    shared = len(owners)
    while parent is not None and parent.episode_id not in seen:
        shared = min(shared, _common(episode.turns, parent.turns))
        owners[:shared] = [parent.episode_id] * shared
        seen.add(parent.episode_id)
        parent = episodes.get(parent.parent or "")
    return owners


def _leaves(episodes: Mapping[str, Trajectory]) -> list[Trajectory]:
    """The episodes that are samples, by sample number."""
    pairs = (
        (episodes[each.parent], each)
        for each in episodes.values()
        if each.parent and each.parent in episodes
    )
    continued = {
        one.episode_id for one, other in pairs if _common(one.turns, other.turns) == len(one.turns)
    }
    ends = [each for each in episodes.values() if each.episode_id not in continued]
    # A search that stopped right after pruning has only pruned leaves, and a file with circular
    # links has no leaves.
    alive = (
        [each for each in ends if each.stop_reason != "pruned"] or ends or list(episodes.values())
    )
    whole = [each for each in alive if each.stop_reason not in _CUT_OFF]
    there = {each.sample for each in whole if each.sample is not None}
    cut_off = (each for each in alive if each.stop_reason in _CUT_OFF and each.sample not in there)
    last = {each.episode_id if each.sample is None else each.sample: each for each in cut_off}
    found = [*whole, *last.values()]
    return sorted(found, key=lambda each: math.inf if each.sample is None else each.sample)


def _common(one: Sequence[Turn], other: Sequence[Turn]) -> int:
    """The length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _factors(episode: Trajectory, ratio: float | None) -> Factors:
    if isinstance(episode.config.get("baseline"), Mapping):  # a kernel: no ratio to it is known
        return {"eager": None, "compile": None, "own": 1.0}
    if episode.config.get("baseline") == "compile":
        return {"eager": 1 / ratio if ratio else None, "compile": 1.0, "own": None}
    return {"eager": 1.0, "compile": ratio, "own": None}
