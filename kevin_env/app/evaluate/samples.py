"""Trajectories put in order for counting: problems, their samples, and every turn that was played,
once.

Episodes that were forked share turns, which were asked and judged once and are counted once.
Samples are the leaves of the tree: episodes that no other goes on from, without those that a search
pruned.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from kevin_env.advantage import returns_of
from kevin_env.app.evaluate.figures import Baseline
from kevin_env.outcome import speedup_of
from kevin_env.record import Trajectory, Turn
from kevin_env.score import at_bound

Factors = Mapping[Baseline, float | None]
"""What a recorded speedup is multiplied by to be one against a baseline; None where that is not
known.
"""

_ANSWERED = ("refused", "context_length")
"""What ends an episode before its first turn and is the model's doing all the same."""
_CUT_OFF = (None, "interrupted", "model_error", "judge_error")


@dataclass(frozen=True)
class Played:
    """One turn, once for all episodes that share it."""

    number: int
    """From 1."""
    turn: Turn
    factors: Factors

    @cached_property
    def correct(self) -> bool:
        """Whether its kernel was correct."""
        return self.turn.category == "correct"

    @cached_property
    def recorded(self) -> float:
        """The recorded speedup, of a noisy one the lower end of its interval; 0 where none was
        told.
        """
        return speedup_of(at_bound(self.turn.outcome)) or 0.0

    def speedup(self, baseline: Baseline) -> float | None:
        """As `recorded`, against a baseline; None if it cannot be told."""
        factor = self.factors[baseline]
        return None if factor is None else factor * self.recorded


@dataclass(frozen=True)
class Sample:
    """One trajectory of a problem, or one that a search went on from or pruned."""

    trajectory: Trajectory
    played: tuple[Played, ...]
    returns: tuple[float, ...]
    factors: Factors

    @property
    def correct(self) -> bool:
        """Whether any kernel was correct."""
        return self.correct_by(len(self.played))

    @property
    def untold(self) -> bool:
        """Whether a kernel was correct and no time could be told."""
        return self.correct and self.best_turn is None

    @property
    def best_turn(self) -> int | None:
        """The turn, from 1, of the fastest correct kernel, the first of equals; None without a
        time.
        """
        return self._so_far.index(self.fastest()) + 1 if self.fastest() else None

    def lasts(self, turn: int) -> bool:
        """Whether it has a turn of that number."""
        return len(self.played) >= turn

    def correct_by(self, turn: int) -> bool:
        """Whether any kernel up to that turn was correct."""
        return any(each.correct for each in self.played[:turn])

    def fastest(self, by: int | None = None) -> float:
        """The recorded speedup of the fastest correct kernel (of the first `by` turns), 0 without
        one.
        """
        return max(self._so_far[:by], default=0.0)

    @cached_property
    def _so_far(self) -> list[float]:
        """What is the fastest after each turn."""
        return list(accumulate((each.recorded for each in self.played), max))

    def speedup(self, baseline: Baseline, by: int | None = None) -> float | None:
        """As `fastest`, against a baseline; None if it cannot be told."""
        factor = self.factors[baseline]
        return None if factor is None else factor * self.fastest(by)


@dataclass(frozen=True)
class Attempts:
    """All that was tried on one problem."""

    problem: str
    level: int | None
    samples: tuple[Sample, ...]
    episodes: tuple[Sample, ...]
    """The samples and all that they came from or took the place of."""
    turns: tuple[Played, ...]
    """Every turn once."""

    def at(self, turn: int) -> list[Played]:
        """The turns of that number."""
        return [each for each in self.turns if each.number == turn]

    def paths(self, turn: int) -> list[Sample]:
        """What stood after that turn: an episode for each different path that long, and the samples
        that ended before.

        Without forks these are the samples.
        """
        long = {id(each.played[turn - 1]): each for each in self.episodes if each.lasts(turn)}
        return [*long.values(), *(each for each in self.samples if not each.lasts(turn))]


def whole(values: Iterable[float | None]) -> list[float] | None:
    """The values; None if there is none or any is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if known and len(known) == len(found) else None


def gather(trajectories: Iterable[Trajectory], ratios: Mapping[str, float]) -> list[Attempts]:
    """Trajectories by problem, in the order of level and id.

    Args:
        trajectories: in the order of their file. Of several with the same id the last counts. One
            without a turn counts as a sample if the model refused or the prompt had no room. One
            that was cut off gives way to a later one that has its number.
        ratios: T_compile / T_eager by problem id.
    """
    problems: dict[str, dict[str, Trajectory]] = {}
    for each in trajectories:
        if each.turns or each.stop_reason in _ANSWERED:
            problems.setdefault(each.problem.id, {})[each.episode_id] = each
    found = [_attempts(each, ratios.get(name)) for name, each in problems.items()]
    return sorted(
        found,
        key=lambda each: (math.inf if each.level is None else each.level, _natural(each.problem)),
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
    """The episodes that are samples, in the order of their numbers."""
    pairs = (
        (episodes[each.parent], each)
        for each in episodes.values()
        if each.parent and each.parent in episodes
    )
    continued = {
        one.episode_id for one, other in pairs if _common(one.turns, other.turns) == len(one.turns)
    }
    ends = [each for each in episodes.values() if each.episode_id not in continued]
    # A search that was cut off right after pruning has nothing else to show; nor has a file that
    # links in circles.
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
    """How many turns both begin with."""
    differ = (
        at for at, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs
    )
    return next(differ, min(len(one), len(other)))


def _factors(episode: Trajectory, ratio: float | None) -> Factors:
    if episode.config.get("baseline") == "compile":
        return {"eager": 1 / ratio if ratio else None, "compile": 1.0}
    return {"eager": 1.0, "compile": ratio}


def _natural(text: str) -> list[object]:
    """What sorts `L1_3` before `L1_23`: texts and numbers in turn, numbers by their length first."""
    return [
        (len(part), part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", text))
    ]
