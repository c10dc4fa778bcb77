"""Means over problems with their intervals: what every figure of a group is made by."""

from collections.abc import Callable, Iterable, Sequence

from kevin_env.app.evaluate.estimators import Resamples, avg_at_k, best_at_k, pass_at_k
from kevin_env.app.evaluate.figures import THRESHOLDS, Curve, Figure, TurnSpeed
from kevin_env.app.evaluate.problems import fast_shares

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
