"""The figures of a group of problems: of all of a run, or of a level."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kevin_env.app.evaluate.figures import (
    BASELINES,
    THRESHOLDS,
    Baseline,
    Change,
    Counts,
    Curve,
    Figure,
    GroupMetrics,
    ProblemMetrics,
    Rates,
    Speed,
    Spent,
    Totals,
)
from kevin_env.app.evaluate.means import Means
from kevin_env.app.evaluate.problems import RATES
from kevin_env.app.evaluate.samples import Attempts, whole
from kevin_env.app.evaluate.turns import at_turn


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
