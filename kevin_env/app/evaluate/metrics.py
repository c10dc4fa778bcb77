"""The figures of a run: means over problems, with their intervals."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kevin_env.app.evaluate.estimators import RESAMPLES, Resamples, best_at_k, pass_at_k
from kevin_env.app.evaluate.figures import (
    BASELINES,
    THRESHOLDS,
    AtTurn,
    Baseline,
    Change,
    Counts,
    Curve,
    Figure,
    GroupMetrics,
    Prices,
    ProblemMetrics,
    Rates,
    RunMetrics,
    Speed,
    Totals,
    TurnSpeed,
)
from kevin_env.app.evaluate.samples import (
    RATES,
    Attempts,
    fast_shares,
    gather,
    log_solved,
    mean,
    problem_metrics,
    share,
    whole,
)
from kevin_env.feedback import example_language
from kevin_env.record import Trajectory

SEED = 0
"""Of the bootstrap."""
Row = Sequence[float] | None
"""One number per sample of a problem; None if unknown."""


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
        ValueError: if no trajectory has a turn, or a ratio is not positive.
    """
    ratios = ratios or {}
    _require(ratios)
    problems = gather(trajectories, ratios)
    if not any(each.turns for each in problems):
        raise ValueError("there is nothing to measure: no trajectory has a turn")
    pairs = [(each, problem_metrics(each, prices)) for each in problems]
    levels = sorted({each.level for each in problems if each.level is not None})
    return RunMetrics(
        overall=_Group.of(pairs).metrics(),
        levels={
            level: _Group.of([each for each in pairs if each[0].level == level]).metrics()
            for level in levels
        },
        models=_apart(trajectories, lambda each: each.player, ratios, prices),
        languages=_apart(trajectories, _language, ratios, prices),
        problems=tuple(numbers for _, numbers in pairs),
        seed=SEED,
        resamples=RESAMPLES,
    )


def _apart(
    trajectories: Sequence[Trajectory],
    name: Callable[[Trajectory], str],
    ratios: Mapping[str, float],
    prices: Prices | None,
) -> dict[str, GroupMetrics]:
    """The figures of the trajectories of each name; none for fewer than two names."""
    parts: dict[str, list[Trajectory]] = {}
    for each in trajectories:
        parts.setdefault(name(each), []).append(each)
    known = {each: part for each, part in sorted(parts.items()) if any(one.turns for one in part)}
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


def _require(ratios: Mapping[str, float]) -> None:
    for problem, ratio in ratios.items():
        if not (math.isfinite(ratio) and ratio > 0):
            said = "T_compile / T_eager must be positive and finite"
            raise ValueError(f"the ratio of {problem} is {ratio}; {said}")


class _Means:
    """Means over the problems of one group, with their intervals.

    Args:
        problems: number of problems, at least 1.
        most: the largest k of best@k, and of pass@k.
    """

    def __init__(self, problems: int, most: int) -> None:
        self._resamples = Resamples(problems, SEED)
        self._ks = range(1, most + 1)

    def of(self, values: Iterable[float | None]) -> Figure:
        """The mean of one number per problem, ignoring None. At least one must be known."""
        values = list(values)
        known = [value for value in values if value is not None]
        low, high = self._resamples.interval(values) or (None, None)
        return Figure(value=fmean(known), low=low, high=high, n=len(known))

    def known(self, values: Iterable[float | None]) -> Figure | None:
        """As `of`; None if all are None."""
        values = list(values)
        return None if all(value is None for value in values) else self.of(values)

    def best(self, rows: Sequence[Row]) -> Curve | None:
        """Mean and best@k of one row per problem; None if no row is known."""
        return self._curve(rows, best_at_k)

    def passed(self, rows: Sequence[Row]) -> Curve | None:
        """Mean and pass@k of one row of 0 and 1 per problem; None if no row is known."""
        return self._curve(rows, lambda row, k: pass_at_k(len(row), round(sum(row)), k))

    def turn_speed(self, rows: Sequence[Row]) -> TurnSpeed | None:
        """Mean and fast_p of one row of speedups per problem; None if no row is known."""
        speedup = self.known(fmean(row) if row else None for row in rows)
        if speedup is None:
            return None
        shares = [fast_shares(row) if row else None for row in rows]
        fast = {p: self.known(each[p] if each else None for each in shares) for p in THRESHOLDS}
        solved = self.known(log_solved(row) if row else None for row in rows)
        return TurnSpeed(
            speedup=speedup,
            fast={p: figure for p, figure in fast.items() if figure},
            geomean_solved=_exp(solved) if solved else None,
        )

    def _curve(
        self, rows: Sequence[Row], best: Callable[[Sequence[float], int], float]
    ) -> Curve | None:
        avg = self.known(fmean(row) if row else None for row in rows)
        if avg is None:
            return None
        bests = {
            k: self.known(best(row, k) if row and len(row) >= k else None for row in rows)
            for k in self._ks
        }
        return Curve(avg=avg, best={k: figure for k, figure in bests.items() if figure})


@dataclass(frozen=True)
class _Group:
    """Problems that are reported together, at least one."""

    problems: Sequence[Attempts]
    numbers: Sequence[ProblemMetrics]
    """Of each problem."""
    means: _Means

    @classmethod
    def of(cls, pairs: Sequence[tuple[Attempts, ProblemMetrics]]) -> "_Group":
        problems, numbers = zip(*pairs, strict=True)
        most = max(len(each.samples) for each in problems)
        return cls(problems, numbers, _Means(len(problems), most))

    def metrics(self) -> GroupMetrics:
        """All figures of the group."""
        speeds: dict[Baseline, Speed | None] = {
            baseline: self._speed(baseline) for baseline in BASELINES
        }
        turns = max((played.number for each in self.problems for played in each.turns), default=0)
        return GroupMetrics(
            counts=self._counts(),
            rates=Rates(**{name: self._column(f"{name}_rate") for name in RATES}),
            correct=self._correct(),
            speed={baseline: speed for baseline, speed in speeds.items() if speed},
            by_turn=tuple(self._at(turn) for turn in range(1, turns + 1)),
            change=self._change(),
            score=self._column("score"),
            discounted_return=self._column("discounted_return"),
            totals=_sum([row.totals for row in self.numbers]),
        )

    def _column(self, name: str) -> Figure:
        return self.means.of(getattr(row, name) for row in self.numbers)

    def _counts(self) -> Counts:
        samples = [sample for each in self.problems for sample in each.samples]
        turns = [played.turn for each in self.problems for played in each.turns]
        return Counts(
            problems=len(self.problems),
            trajectories=len(samples),
            turns=len(turns),
            untimed=sum(each.untimed for each in samples),
            stops=_count(each.trajectory.stop_reason or "running" for each in samples),
            without={
                baseline: sum(row.speed[baseline] is None for row in self.numbers)
                for baseline in BASELINES
            },
            truncated=sum(turn.truncated for turn in turns),
            by_person=sum(turn.by_person for turn in turns),
            without_usage=sum(turn.usage is None for turn in turns),
            kinds=_count(f"{turn.category}/{turn.kind}" for turn in turns),
        )

    def _correct(self) -> Curve:
        curve = self.means.passed(
            [[float(sample.correct) for sample in each.samples] for each in self.problems]
        )
        assert curve is not None  # every problem has a sample
        return curve

    def _speed(self, baseline: Baseline) -> Speed | None:
        rows = [
            whole(sample.speedup(baseline) for sample in each.samples) for each in self.problems
        ]
        speedup = self.means.best(rows)
        if speedup is None:
            return None
        hits = {
            p: [row and [float(value >= float(p)) for value in row] for row in rows]
            for p in THRESHOLDS
        }
        fast = {p: self.means.passed(hits[p]) for p in THRESHOLDS}
        numbers = [row.speed[baseline] for row in self.numbers]
        solved = self.means.known(each.log_solved if each else None for each in numbers)
        return Speed(
            speedup=speedup,
            fast={p: curve for p, curve in fast.items() if curve},
            geomean_solved=_exp(solved) if solved else None,
        )

    def _at(self, turn: int) -> AtTurn:
        """The figures of a turn, and of the best turn up to it."""
        means = self.means
        played = [each.at(turn) for each in self.problems]
        paths = [each.paths(turn) for each in self.problems]
        rates = {
            name: means.of(
                share(map(counts, (p.turn for p in row))) if row else None for row in played
            )
            for name, counts in RATES.items()
        }
        returns = [
            [sample.returns[turn - 1] for sample in each.samples if sample.lasts(turn)]
            for each in self.problems
        ]
        return AtTurn(
            turn=turn,
            turns=sum(map(len, played)),
            rates=Rates(**rates),
            score=means.of(mean(p.turn.score for p in row) if row else None for row in played),
            discounted_return=means.known(mean(row) if row else None for row in returns),
            speed=self._speeds(
                lambda name: [whole(p.speedup(name) for p in row) for row in played]
            ),
            best_correct=means.of(share(path.correct_by(turn) for path in row) for row in paths),
            best_speed=self._speeds(
                lambda name: [whole(path.speedup(name, turn) for path in row) for row in paths]
            ),
        )

    def _speeds(self, rows: Callable[[Baseline], list[Row]]) -> dict[Baseline, TurnSpeed]:
        speeds: dict[Baseline, TurnSpeed | None] = {
            baseline: self.means.turn_speed(rows(baseline)) for baseline in BASELINES
        }
        return {baseline: speed for baseline, speed in speeds.items() if speed}

    def _change(self) -> Change:
        return Change(
            first_correct=self._column("first_correct"),
            last_correct=self._column("last_correct"),
            improved=self._column("improved"),
            regressed=self._column("regressed"),
            net=self.means.of(row.improved - row.regressed for row in self.numbers),
        )


def _sum(totals: Sequence[Totals]) -> Totals:
    sums: dict[str, float | None] = {}
    for name in Totals.model_fields:
        known = [value for each in totals if (value := getattr(each, name)) is not None]
        sums[name] = math.fsum(known) if known else None
    return Totals.model_validate(sums)


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _exp(figure: Figure) -> Figure:
    """From a mean logarithm to the geometric mean."""
    low, high = (None if end is None else math.exp(end) for end in (figure.low, figure.high))
    return Figure(value=math.exp(figure.value), low=low, high=high, n=figure.n)
