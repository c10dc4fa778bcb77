"""From trajectories to the figures of a run."""

import math
from collections.abc import Mapping, Sequence

from kevin_env.app.evaluate.estimators import RESAMPLES
from kevin_env.app.evaluate.figures import Prices, RunMetrics
from kevin_env.app.evaluate.groups import Group
from kevin_env.app.evaluate.problems import problem_metrics
from kevin_env.app.evaluate.samples import gather
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
