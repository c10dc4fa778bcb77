"""Groups trajectories by problem and sample, and computes the numbers of each problem.

Forked episodes share turns, each of which was played, and counts, once. Samples are the leaves of
the tree of forks, except for those that a search pruned.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import fmean

from kevin_env.advantage import returns_of
from kevin_env.app.evaluate.figures import (
    BASELINES,
    THRESHOLDS,
    Baseline,
    Prices,
    ProblemMetrics,
    ProblemSpeed,
    Totals,
)
from kevin_env.app.replay.rows import natural
from kevin_env.outcome import is_hack
from kevin_env.record import Trajectory, Turn, Usage, best_turn

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

    @cached_property
    def correct(self) -> bool:
        """Whether its kernel was correct."""
        return self.turn.category == "correct"

    @cached_property
    def recorded(self) -> float:
        """The recorded speedup, 0 without a time."""
        return self.turn.speedup or 0.0

    def speedup(self, baseline: Baseline) -> float | None:
        """The speedup over a baseline; None if the factor is unknown."""
        factor = self.factors[baseline]
        return None if factor is None else factor * self.recorded


@dataclass(frozen=True)
class Sample:
    """One trajectory of a problem: a sample, or an episode that a search continued or pruned."""

    trajectory: Trajectory
    played: tuple[Played, ...]
    returns: tuple[float, ...]
    factors: Factors

    @property
    def correct(self) -> bool:
        """Whether any kernel was correct."""
        return self.correct_by(len(self.played))

    @property
    def untimed(self) -> bool:
        """Whether it is correct without a measured time."""
        return self.correct and self.best_turn is None

    @property
    def best_turn(self) -> int | None:
        """The first turn, from 1, with the fastest correct kernel; None without a time."""
        best = best_turn([each.turn for each in self.played])
        return best and best.turn

    def lasts(self, turn: int) -> bool:
        """Whether it has a turn with this number."""
        return len(self.played) >= turn

    def correct_by(self, turn: int) -> bool:
        """Whether any kernel up to this turn was correct."""
        return any(each.correct for each in self.played[:turn])

    def fastest(self, by: int | None = None) -> float:
        """The largest recorded speedup (of the first `by` turns), 0 without one."""
        return max(self._so_far[:by], default=0.0)

    @cached_property
    def _so_far(self) -> list[float]:
        return list(accumulate((each.recorded for each in self.played), max))

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

    def at(self, turn: int) -> list[Played]:
        """The turns with this number."""
        return [each for each in self.turns if each.number == turn]

    def paths(self, turn: int) -> list[Sample]:
        """The trajectories as of a turn. Without forks these are the samples.

        They are an episode per distinct path of this length, and the samples that ended earlier.
        """
        long = {id(each.played[turn - 1]): each for each in self.episodes if each.lasts(turn)}
        return [*long.values(), *(each for each in self.samples if not each.lasts(turn))]


def whole(values: Iterable[float | None]) -> list[float] | None:
    """The values; None if there are none or any is None."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if known and len(known) == len(found) else None


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
        if each.turns or each.stop_reason in _ANSWERED:
            problems.setdefault(each.problem.id, {})[each.episode_id] = each
    found = [_attempts(each, ratios.get(name)) for name, each in problems.items()]
    return sorted(
        found,
        key=lambda each: (math.inf if each.level is None else each.level, natural(each.problem)),
    )


def problem_metrics(attempts: Attempts, prices: Prices | None) -> ProblemMetrics:
    """The numbers of one problem."""
    samples, turns = attempts.samples, attempts.turns
    timed = [each for each in samples if each.best_turn]
    fastest = max(timed, key=lambda each: each.fastest(), default=None)
    ends = [(_correct_at(each, 0), _correct_at(each, -1)) for each in samples]
    rates = {
        f"{name}_rate": share(counts(each.turn) for each in turns) for name, counts in RATES.items()
    }
    return ProblemMetrics(
        problem=attempts.problem,
        level=attempts.level,
        samples=len(samples),
        turns=len(turns),
        untimed=sum(each.untimed for each in samples),
        **rates,
        correct=share(each.correct for each in samples),
        first_correct=share(first for first, _ in ends),
        last_correct=share(last for _, last in ends),
        improved=share(last and not first for first, last in ends),
        regressed=share(first and not last for first, last in ends),
        speed={baseline: _speed(attempts, baseline) for baseline in BASELINES},
        best_turn=fastest.best_turn if fastest else None,
        best_sample=fastest.trajectory.sample if fastest else None,
        score=mean(each.turn.score for each in turns),
        discounted_return=mean(value for each in samples for value in each.returns),
        totals=_totals(turns, prices),
    )


def fast_shares(speedups: Sequence[float]) -> dict[str, float]:
    """fast_p by p: the share of speedups of at least p."""
    return {p: share(value >= float(p) for value in speedups) for p in THRESHOLDS}


def log_solved(speedups: Iterable[float]) -> float | None:
    """Mean natural logarithm of the positive speedups; None if there is none."""
    logarithms = [math.log(value) for value in speedups if value > 0]
    return fmean(logarithms) if logarithms else None


def share(values: Iterable[bool]) -> float:
    """The share of true values; 0 of none."""
    return mean(values)


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of none."""
    found = list(values)
    return fmean(found) if found else 0.0


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
        return {"eager": None, "compile": None}
    if episode.config.get("baseline") == "compile":
        return {"eager": 1 / ratio if ratio else None, "compile": 1.0}
    return {"eager": 1.0, "compile": ratio}


def _correct_at(sample: Sample, at: int) -> bool:
    return bool(sample.played) and sample.played[at].correct


def _speed(attempts: Attempts, baseline: Baseline) -> ProblemSpeed | None:
    speedups = whole(each.speedup(baseline) for each in attempts.samples)
    if speedups is None:
        return None
    return ProblemSpeed(
        best=max(speedups),
        avg=fmean(speedups),
        fast=fast_shares(speedups),
        log_solved=log_solved(speedups),
    )


def _totals(turns: Sequence[Played], prices: Prices | None) -> Totals:
    usages = [each.turn.usage for each in turns if each.turn.usage]
    costs = [cost for usage in usages if (cost := _cost(usage, prices)) is not None]
    seconds = [each.turn.seconds for each in turns]
    return Totals(
        prompt_tokens=_sum(each.prompt_tokens for each in usages),
        completion_tokens=_sum(each.completion_tokens for each in usages),
        reasoning_tokens=_sum(each.reasoning_tokens for each in usages),
        cached_tokens=_sum(each.cached_tokens for each in usages),
        cost=math.fsum(costs) if costs else None,
        device_seconds=math.fsum(each.verify + each.time for each in seconds),
        judge_seconds=math.fsum(each.total for each in seconds),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _cost(usage: Usage, prices: Prices | None) -> float | None:
    """The cost of one reply by the prices, or as the endpoint reported it; None if unknown."""
    if prices is None:
        return usage.cost
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    prompt, cached = usage.prompt_tokens or 0, usage.cached_tokens or 0
    cached_price = prices.prompt if prices.cached is None else prices.cached
    full = prices.prompt * (prompt - cached) + cached_price * cached
    return (full + prices.completion * (usage.completion_tokens or 0)) / 1_000_000
