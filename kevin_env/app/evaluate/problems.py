"""The numbers of one problem from its samples."""

import math
from collections.abc import Callable, Iterable, Sequence

from kevin_env.app.evaluate.estimators import avg_at_k
from kevin_env.app.evaluate.figures import (
    BASELINES,
    THRESHOLDS,
    Baseline,
    Prices,
    ProblemMetrics,
    ProblemSpeed,
    Totals,
)
from kevin_env.app.evaluate.samples import Attempts, Played, Sample, whole
from kevin_env.outcome import is_hack
from kevin_env.record import Turn, Usage

RATES: dict[str, Callable[[Turn], bool]] = {
    "format": lambda turn: turn.category != "format",
    "compile": lambda turn: turn.category in ("runtime", "correctness", "correct"),
    "correct": lambda turn: turn.category == "correct",
    "hack": lambda turn: is_hack(turn.outcome),
}
"""What each rate of turns counts."""

_MILLION = 1_000_000


def problem_metrics(attempts: Attempts, prices: Prices | None) -> ProblemMetrics:
    """The numbers of one problem."""
    samples, turns = attempts.samples, attempts.turns
    timed = [each for each in samples if each.best_turn]
    fastest = max(timed, key=lambda each: each.fastest(), default=None)
    return ProblemMetrics(
        problem=attempts.problem,
        level=attempts.level,
        samples=len(samples),
        turns=len(turns),
        untold=sum(each.untold for each in samples),
        **{
            f"{name}_rate": share(counts(each.turn) for each in turns)
            for name, counts in RATES.items()
        },
        correct=share(each.correct for each in samples),
        first_correct=share(_correct_at(each, 0) for each in samples),
        last_correct=share(_correct_at(each, -1) for each in samples),
        improved=share(not _correct_at(each, 0) and _correct_at(each, -1) for each in samples),
        regressed=share(_correct_at(each, 0) and not _correct_at(each, -1) for each in samples),
        speed={baseline: _speed(attempts, baseline) for baseline in BASELINES},
        best_turn=fastest.best_turn if fastest else None,
        best_sample=fastest.trajectory.sample if fastest else None,
        score=mean(each.turn.score for each in turns),
        discounted_return=mean(value for each in samples for value in each.returns),
        first_return=mean(each.returns[0] if each.returns else 0.0 for each in samples),
        totals=_totals(turns, prices),
    )


def fast_shares(speedups: Sequence[float]) -> dict[str, float]:
    """fast_p by p: the share of speedups of p or more."""
    return {p: share(value >= float(p) for value in speedups) for p in THRESHOLDS}


def share(values: Iterable[bool]) -> float:
    """The share that is true; 0 of nothing."""
    return mean(map(float, values))


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    found = list(values)
    return avg_at_k(found) if found else 0.0


def _correct_at(sample: Sample, at: int) -> bool:
    return bool(sample.played) and sample.played[at].correct


def _speed(attempts: Attempts, baseline: Baseline) -> ProblemSpeed | None:
    speedups = whole(each.speedup(baseline) for each in attempts.samples)
    if speedups is None:
        return None
    solved = [math.log(value) for value in speedups if value > 0]
    return ProblemSpeed(
        best=max(speedups),
        avg=avg_at_k(speedups),
        fast=fast_shares(speedups),
        log_solved=avg_at_k(solved) if solved else None,
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
    """What one reply cost by the prices, without prices what the endpoint told; None where tokens
    are not told.
    """
    if prices is None:
        return usage.cost
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    prompt, cached = usage.prompt_tokens or 0, usage.cached_tokens or 0
    full = (
        prices.prompt * (prompt - cached)
        + (prices.prompt if prices.cached is None else prices.cached) * cached
    )
    return (full + prices.completion * (usage.completion_tokens or 0)) / _MILLION
