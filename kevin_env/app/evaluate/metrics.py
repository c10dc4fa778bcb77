"""From trajectories to the figures of a run."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kevin_env.app.evaluate.estimators import RESAMPLES, Resamples, avg_at_k, best_at_k, pass_at_k
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
    Spent,
    Totals,
    TurnSpeed,
)
from kevin_env.app.evaluate.samples import (
    RATES,
    Attempts,
    fast_shares,
    gather,
    mean,
    problem_metrics,
    share,
    whole,
)
from kevin_env.record import Trajectory

__all__ = ["Prices", "RunMetrics", "measure"]


def measure(
    trajectories: Sequence[Trajectory],
    *,
    ratios: Mapping[str, float] | None = None,
    prices: Prices | None = None,
    ks: Sequence[int] | None = None,
    seed: int = 0,
) -> RunMetrics:
    """All figures of a run. The same trajectories give the same figures, in whatever order their
    problems come.

    A trajectory is correct if any of its turns is; its speedup is that of its fastest correct
    kernel, 0 without one, and fast_p counts those of p or more (Kevin, arXiv 2507.11948, 5). Each
    figure is a mean over problems of one number a problem, with the percentile bootstrap's 95 %
    interval over problems.

    Args:
        trajectories: every sample of every problem, finished or not, in the order of their file.
            What should not count is left out by the caller; `kevin_env.app.evaluate.samples.gather`
            says what never counts.
        ratios: T_compile / T_eager of a problem's reference on this device, by problem id. A
            speedup against torch.compile is the one against eager times this; problems without are
            left out of those figures.
        prices: what tokens cost. Without them the cost is what the endpoint told.
        ks: which k of best@k and pass@k; every k up to the number of samples when left out.
        seed: of the bootstrap.

    Raises:
        ValueError: if no trajectory has a turn, or a ratio or a k is not positive.
    """
    ratios = ratios or {}
    _require(ratios, ks or ())
    problems = gather(trajectories, ratios)
    if not any(each.turns for each in problems):
        raise ValueError("there is nothing to measure: no trajectory has a turn")
    numbers = [problem_metrics(each, prices) for each in problems]
    levels = sorted({each.level for each in problems if each.level is not None})
    pairs = list(zip(problems, numbers, strict=True))
    return RunMetrics(
        overall=Group.of(pairs, ks, seed).metrics(),
        levels={
            level: Group.of([each for each in pairs if each[0].level == level], ks, seed).metrics()
            for level in levels
        },
        problems=tuple(numbers),
        seed=seed,
        resamples=RESAMPLES,
    )


def _require(ratios: Mapping[str, float], ks: Sequence[int]) -> None:
    for problem, ratio in ratios.items():
        if not (math.isfinite(ratio) and ratio > 0):
            raise ValueError(
                f"the ratio of {problem} is {ratio}; T_compile / T_eager is a positive number"
            )
    for k in ks:
        if k < 1:
            raise ValueError(f"k is {k}; of fewer than one sample there is no best")


Row = Sequence[float] | None
"""One number a sample of a problem; None where they are not known."""


class Means:
    """Makes the figures of one group of problems.

    Args:
        problems: how many there are, at least one.
        ks: which k of best@k.
        seed: of the bootstrap.
    """

    def __init__(self, problems: int, ks: Sequence[int], seed: int) -> None:
        self._resamples = Resamples(problems, seed)
        self._ks = ks

    def of(self, values: Iterable[float | None]) -> Figure:
        """Of one number a problem, without those that are None.

        Raises:
            ValueError: if all are.
        """
        values = list(values)
        known = [value for value in values if value is not None]
        low, high = self._resamples.interval(values) or (None, None)
        return Figure(value=avg_at_k(known), low=low, high=high, n=len(known))

    def known(self, values: Iterable[float | None]) -> Figure | None:
        """As `of`; None if all are None."""
        values = list(values)
        return None if all(value is None for value in values) else self.of(values)

    def best(self, rows: Sequence[Row]) -> Curve | None:
        """Mean and best@k of one row a problem; None if no row is known."""
        return self._curve(rows, best_at_k)

    def passed(self, rows: Sequence[Row]) -> Curve | None:
        """Mean and pass@k of one row of 0 and 1 a problem; None if no row is known."""
        return self._curve(rows, lambda row, k: pass_at_k(len(row), round(sum(row)), k))

    def turn_speed(self, rows: Sequence[Row]) -> TurnSpeed | None:
        """Mean and fast_p of one row of speedups a problem; None if no row is known."""
        speedup = self.known(avg_at_k(row) if row else None for row in rows)
        if speedup is None:
            return None
        shares = [fast_shares(row) if row else None for row in rows]
        fast = {p: self.known(each[p] if each else None for each in shares) for p in THRESHOLDS}
        return TurnSpeed(speedup=speedup, fast={p: figure for p, figure in fast.items() if figure})

    def _curve(
        self, rows: Sequence[Row], best: Callable[[Sequence[float], int], float]
    ) -> Curve | None:
        avg = self.known(avg_at_k(row) if row else None for row in rows)
        if avg is None:
            return None
        bests = {
            k: self.known(best(row, k) if row and len(row) >= k else None for row in rows)
            for k in self._ks
        }
        return Curve(avg=avg, best={k: figure for k, figure in bests.items() if figure})


@dataclass(frozen=True)
class Group:
    """Problems that are reported together, at least one."""

    problems: Sequence[Attempts]
    numbers: Sequence[ProblemMetrics]
    """Those of each problem."""
    means: Means

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[Attempts, ProblemMetrics]], ks: Sequence[int] | None, seed: int
    ) -> "Group":
        """The group of these problems with their numbers; `ks` and `seed` as in `measure`."""
        problems, numbers = zip(*pairs, strict=True)
        most = max(len(each.samples) for each in problems)
        return cls(problems, numbers, Means(len(problems), ks or range(1, most + 1), seed))

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
            by_turn=tuple(at_turn(self.problems, self.means, turn) for turn in range(1, turns + 1)),
            change=self._change(),
            score=self._column("score"),
            discounted_return=self._column("discounted_return"),
            first_return=self._column("first_return"),
            spent=self._spent(),
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
            untold=sum(each.untold for each in samples),
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

    def _change(self) -> Change:
        return Change(
            first_correct=self._column("first_correct"),
            last_correct=self._column("last_correct"),
            improved=self._column("improved"),
            regressed=self._column("regressed"),
            net=self.means.of(row.improved - row.regressed for row in self.numbers),
        )

    def _spent(self) -> Spent:
        """Every field of the totals, a sample."""
        shares = {
            name: [
                None if (value := getattr(row.totals, name)) is None else value / row.samples
                for row in self.numbers
            ]
            for name in Totals.model_fields
        }
        return Spent.model_validate(
            {name: self.means.known(values) for name, values in shares.items()}
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
    """The figure of a mean logarithm as one of the geometric mean."""
    low, high = (None if end is None else math.exp(end) for end in (figure.low, figure.high))
    return Figure(value=math.exp(figure.value), low=low, high=high, n=figure.n)


def at_turn(problems: Sequence[Attempts], means: Means, turn: int) -> AtTurn:
    """What happened at a turn that at least one problem has, over those that do; and the best by
    then, over all.
    """
    played = [each.at(turn) for each in problems]
    paths = [each.paths(turn) for each in problems]
    rates = {
        name: means.of(share(counts(each.turn) for each in row) if row else None for row in played)
        for name, counts in RATES.items()
    }
    returns = [
        [sample.returns[turn - 1] for sample in each.samples if sample.lasts(turn)]
        for each in problems
    ]
    return AtTurn(
        turn=turn,
        turns=sum(map(len, played)),
        rates=Rates(**rates),
        score=means.of(mean(each.turn.score for each in row) if row else None for row in played),
        discounted_return=means.known(mean(row) if row else None for row in returns),
        speed=_speeds(
            means,
            {
                name: [whole(each.speedup(name) for each in row) for row in played]
                for name in BASELINES
            },
        ),
        best_correct=means.of(share(path.correct_by(turn) for path in row) for row in paths),
        best_speed=_speeds(
            means,
            {
                name: [whole(path.speedup(name, turn) for path in row) for row in paths]
                for name in BASELINES
            },
        ),
    )


def _speeds(means: Means, rows: dict[Baseline, list[Row]]) -> dict[Baseline, TurnSpeed]:
    speeds: dict[Baseline, TurnSpeed | None] = {
        baseline: means.turn_speed(of) for baseline, of in rows.items()
    }
    return {baseline: speed for baseline, speed in speeds.items() if speed}
