"""The figures of a run: means over problems, with their intervals.

The numbers of each problem are a tree of mappings, and the figures of a group are the means over
its problems of every leaf. None, or a missing leaf, is a number that a problem does not have.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from kevin_env.app.evaluate.estimators import RESAMPLES, SEED, best_at_k, interval, pass_at_k
from kevin_env.app.evaluate.figures import (
    BASELINES,
    THRESHOLDS,
    AtTurn,
    Baseline,
    Counts,
    Figure,
    GroupMetrics,
    Prices,
    ProblemMetrics,
    ProblemSpeed,
    RunMetrics,
    Totals,
)
from kevin_env.app.evaluate.samples import RATES, Attempts, Played, answered, gather, mean
from kevin_env.feedback import example_language
from kevin_env.record import Trajectory, Usage

Numbers = dict[Any, Any]
"""A tree of the numbers of one problem."""


def measure(
    trajectories: Sequence[Trajectory],
    *,
    ratios: Mapping[str, float] | None = None,
    prices: Prices | None = None,
) -> RunMetrics:
    """All figures of a run. They do not depend on the order of the problems.

    A trajectory is correct if any of its turns is; its speedup is that of its fastest correct
    kernel, 0 without one, and fast_p counts speedups of at least p (Kevin, arXiv 2507.11948,
    section 5). Each figure is a mean over problems of one number per problem, with its 95 %
    percentile bootstrap interval over problems.

    Args:
        trajectories: every sample of every problem, finished or not, in the order of their file;
            `kevin_env.app.evaluate.samples.gather` says which count.
        ratios: T_compile / T_eager of each problem's reference on this device, by problem id. A
            speedup over torch.compile is the speedup over eager times this ratio; problems without
            a ratio are left out of these figures.
        prices: of tokens; by default the cost is as reported by the endpoint.

    Raises:
        ValueError: if no trajectory was answered, or a ratio is not positive.
    """
    for problem, ratio in (ratios or {}).items():
        if not (math.isfinite(ratio) and ratio > 0):
            said = "T_compile / T_eager must be positive and finite"
            raise ValueError(f"the ratio of {problem} is {ratio}; {said}")
    problems = gather(trajectories, ratios or {})
    if not problems:
        raise ValueError("there is nothing to measure: no trajectory has a turn")
    pairs = [(each, _numbers(each)) for each in problems]
    levels = sorted({each.level for each in problems if each.level is not None})
    return RunMetrics(
        overall=_group(pairs, prices),
        levels={
            level: _group([each for each in pairs if each[0].level == level], prices)
            for level in levels
        },
        models=_apart(trajectories, lambda each: each.player, ratios, prices),
        languages=_apart(trajectories, _language, ratios, prices),
        problems=tuple(_problem(*each, prices) for each in pairs),
        seed=SEED,
        resamples=RESAMPLES,
    )


def _apart(
    trajectories: Sequence[Trajectory],
    name: Callable[[Trajectory], str],
    ratios: Mapping[str, float] | None,
    prices: Prices | None,
) -> dict[str, GroupMetrics]:
    """The figures of the trajectories of each name; none for fewer than two names."""
    parts: dict[str, list[Trajectory]] = {}
    for each in trajectories:
        parts.setdefault(name(each), []).append(each)
    known = {each: part for each, part in sorted(parts.items()) if any(map(answered, part))}
    if len(known) < 2:
        return {}
    return {
        each: measure(part, ratios=ratios, prices=prices).overall for each, part in known.items()
    }


def _language(trajectory: Trajectory) -> str:
    """The language that its prompts ask for."""
    asked = str(trajectory.config.get("language", "auto"))
    if asked != "auto" or trajectory.hardware is None:
        return asked
    return example_language("any", trajectory.hardware)


def _numbers(problem: Attempts) -> Numbers:
    """The numbers of one problem whose means are figures, named as in `GroupMetrics`."""
    samples, turns = problem.samples, problem.turns
    ends = [
        (each.played[0].correct, each.played[-1].correct) if each.played else (False, False)
        for each in samples
    ]
    change = {
        "first_correct": mean(first for first, _ in ends),
        "last_correct": mean(last for _, last in ends),
        "improved": mean(last and not first for first, last in ends),
        "regressed": mean(first and not last for first, last in ends),
    }
    return {
        "rates": _rates(turns),
        "correct": _curve([each.correct() for each in samples], _pass_at_k),
        "speed": {name: _speed([each.speedup(name) for each in samples]) for name in BASELINES},
        "change": change | {"net": change["improved"] - change["regressed"]},
        "score": mean(each.turn.score for each in turns),
        "discounted_return": mean(value for each in samples for value in each.returns),
    }


def _numbers_at(problem: Attempts, turn: int) -> Numbers:
    """The numbers of one turn, and of the best turn up to it, named as in `AtTurn`."""
    played = [each for each in problem.turns if each.number == turn]
    paths = problem.paths(turn)
    returns = [each.returns[turn - 1] for each in problem.samples if each.lasts(turn)]
    return {
        "rates": _rates(played) if played else None,
        "score": fmean(each.turn.score for each in played) if played else None,
        "discounted_return": fmean(returns) if returns else None,
        "speed": {name: _fast([each.speedup(name) for each in played]) for name in BASELINES},
        "best_correct": mean(each.correct(turn) for each in paths),
        "best_speed": {
            name: _fast([each.speedup(name, turn) for each in paths]) for name in BASELINES
        },
    }


def _rates(turns: Sequence[Played]) -> Numbers:
    return {name: mean(counts(each.turn) for each in turns) for name, counts in RATES.items()}


def _speed(speedups: Sequence[float | None]) -> Numbers | None:
    """Of one speedup per sample; None if one is unknown."""
    known = [each for each in speedups if each is not None]
    if len(known) < len(speedups):
        return None
    return {
        "speedup": _curve(known, best_at_k),
        "fast": {p: _curve([each >= float(p) for each in known], _pass_at_k) for p in THRESHOLDS},
        "log_solved": _log_solved(known),
    }


def _fast(speedups: Sequence[float | None]) -> Numbers | None:
    """The mean of speedups, and fast_p; None if there are none or one is unknown."""
    known = [each for each in speedups if each is not None]
    if not known or len(known) < len(speedups):
        return None
    fast = {p: mean(each >= float(p) for each in known) for p in THRESHOLDS}
    return {"speedup": fmean(known), "fast": fast, "log_solved": _log_solved(known)}


def _log_solved(speedups: Sequence[float]) -> float | None:
    """Mean natural logarithm of the positive speedups; None if there is none."""
    logarithms = [math.log(each) for each in speedups if each > 0]
    return fmean(logarithms) if logarithms else None


def _curve(values: Sequence[float], best: Callable[[Sequence[float], int], float]) -> Numbers:
    return {
        "avg": fmean(values),
        "best": {k: best(values, k) for k in range(1, len(values) + 1)},
    }


def _pass_at_k(values: Sequence[float], k: int) -> float:
    return pass_at_k(len(values), round(sum(values)), k)


def _group(pairs: Sequence[tuple[Attempts, Numbers]], prices: Prices | None) -> GroupMetrics:
    """All figures of problems that are reported together, at least one."""
    problems = [problem for problem, _ in pairs]
    figures = _with_geomeans(_means([numbers for _, numbers in pairs]))
    numbers = Counter(each.number for problem in problems for each in problem.turns)
    by_turn = [
        AtTurn(
            turn=turn,
            turns=numbers[turn],
            **_with_geomeans(_means([_numbers_at(each, turn) for each in problems])),
        )
        for turn in sorted(numbers)
    ]
    turns = [each for problem in problems for each in problem.turns]
    return GroupMetrics(
        counts=_counts(pairs), by_turn=tuple(by_turn), totals=_totals(turns, prices), **figures
    )


def _means(trees: Sequence[Any]) -> Any:
    """The mean of each number over problems, without those that no problem has."""
    known = [each for each in trees if each is not None]
    if not known:
        return None
    if not isinstance(known[0], dict):
        low, high = interval(trees) or (None, None)
        return Figure(value=fmean(known), low=low, high=high, n=len(known))
    means = {
        name: _means([tree and tree.get(name) for tree in trees])
        for name in dict.fromkeys(name for tree in known for name in tree)
    }
    return {name: mean for name, mean in means.items() if mean is not None}


def _with_geomeans(figures: Numbers) -> Numbers:
    """The figures with geometric means in place of mean logarithms."""
    for name in ("speed", "best_speed"):
        for speed in figures.get(name, {}).values():
            speed["geomean_solved"] = _exp(speed.pop("log_solved", None))
    return figures


def _counts(pairs: Sequence[tuple[Attempts, Numbers]]) -> Counts:
    samples = [each for problem, _ in pairs for each in problem.samples]
    turns = [each.turn for problem, _ in pairs for each in problem.turns]
    return Counts(
        problems=len(pairs),
        trajectories=len(samples),
        turns=len(turns),
        untimed=sum(each.untimed for each in samples),
        stops=_count(each.trajectory.stop_reason or "running" for each in samples),
        without={
            baseline: sum(numbers["speed"][baseline] is None for _, numbers in pairs)
            for baseline in BASELINES
        },
        truncated=sum(turn.truncated for turn in turns),
        by_person=sum(turn.by_person for turn in turns),
        without_usage=sum(turn.usage is None for turn in turns),
        kinds=_count(f"{turn.category}/{turn.kind}" for turn in turns),
    )


def _problem(attempts: Attempts, numbers: Numbers, prices: Prices | None) -> ProblemMetrics:
    samples = attempts.samples
    timed = [each for each in samples if each.best_turn]
    fastest = max(timed, key=lambda each: each.fastest(), default=None)
    speed: dict[Baseline, ProblemSpeed | None] = {
        baseline: found
        and ProblemSpeed(
            best=max(each.speedup(baseline) or 0.0 for each in samples),
            avg=found["speedup"]["avg"],
            fast={p: curve["avg"] for p, curve in found["fast"].items()},
            log_solved=found["log_solved"],
        )
        for baseline, found in numbers["speed"].items()
    }
    change = {name: value for name, value in numbers["change"].items() if name != "net"}
    return ProblemMetrics(
        problem=attempts.problem,
        level=attempts.level,
        samples=len(samples),
        turns=len(attempts.turns),
        untimed=sum(each.untimed for each in samples),
        **{f"{name}_rate": value for name, value in numbers["rates"].items()},
        correct=numbers["correct"]["avg"],
        **change,
        speed=speed,
        best_turn=fastest.best_turn if fastest else None,
        best_sample=fastest.trajectory.sample if fastest else None,
        score=numbers["score"],
        discounted_return=numbers["discounted_return"],
        totals=_totals(attempts.turns, prices),
    )


def _totals(turns: Sequence[Played], prices: Prices | None) -> Totals:
    usages = [each.turn.usage for each in turns if each.turn.usage]
    seconds = [each.turn.seconds for each in turns]
    tokens = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    return Totals(
        **{name: _sum(getattr(usage, name) for usage in usages) for name in tokens},
        cost=_sum(_cost(usage, prices) for usage in usages),
        device_seconds=math.fsum(each.verify + each.time for each in seconds),
        judge_seconds=math.fsum(each.total - each.queue for each in seconds),
    )


def _sum(values: Iterable[float | None]) -> Any:
    """The sum of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


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


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _exp(figure: Figure | None) -> Figure | None:
    """From a mean logarithm to the geometric mean."""
    if figure is None:
        return None
    low, high = (None if end is None else math.exp(end) for end in (figure.low, figure.high))
    return Figure(value=math.exp(figure.value), low=low, high=high, n=figure.n)
