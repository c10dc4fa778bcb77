"""The figures of a run as frozen values. JSON without NaN; every estimate has its interval."""

from typing import Literal

from pydantic import Field

from kevin_env.outcome import Frozen

THRESHOLDS = ("0.5", "1", "1.2", "1.5", "2", "3")
"""Speedups p of fast_p, as keys."""

Baseline = Literal["eager", "compile", "own"]
"""What speedups are over: the reference, eager or compiled, or a kernel that was the baseline."""
AGAINST: dict[Baseline, str] = {
    "eager": "eager", "compile": "torch.compile", "own": "the baseline kernel",
}  # fmt: skip
BASELINES: tuple[Baseline, ...] = ("eager", "compile", "own")


class Prices(Frozen):
    """Prices of a million tokens, in one currency."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    """Includes reasoning tokens, as endpoints count them."""
    cached: float | None = Field(default=None, ge=0)
    """Cached prompt tokens; by default the price of `prompt`."""


class Figure(Frozen):
    """The mean over problems of one number each, with its 95 % bootstrap interval."""

    value: float
    low: float | None = None
    high: float | None = None
    """None for a single problem."""
    n: int
    """Problems that have the number."""


class Curve(Frozen):
    """The mean and the best of k of one number per sample."""

    avg: Figure
    """avg@k, which is the same for every k."""
    best: dict[int, Figure]
    """Unbiased best@k by k; pass@k for numbers that are 0 or 1. Leaves out problems with fewer than
    k samples.
    """


class Speed(Frozen):
    """Speedups of trajectories over one baseline: of the fastest correct kernel, or 0."""

    speedup: Curve
    fast: dict[str, Curve]
    """fast_p by p: the share with a speedup of at least p."""
    geomean_solved: Figure | None = None
    """Geometric mean of the speedups of solved trajectories, as KernelBench reports it; None if
    none is solved.
    """


class TurnSpeed(Frozen):
    """Speedups of kernels over one baseline, 0 for incorrect ones."""

    speedup: Figure
    fast: dict[str, Figure]
    geomean_solved: Figure | None = None
    """Geometric mean over correct kernels; None if there is none."""


class Rates(Frozen):
    """Shares of turns."""

    format: Figure
    """The reply held a submission."""
    compile: Figure
    """The submission was built."""
    correct: Figure
    """The submission was correct."""
    hack: Figure
    """See `kevin_env.outcome.is_hack`."""


class AtTurn(Frozen):
    """One turn of all trajectories that reached it, and the best up to it."""

    turn: int
    """From 1."""
    turns: int
    """Distinct turns with this number; forks share the turns before the fork."""
    rates: Rates
    score: Figure
    discounted_return: Figure | None = None
    """None if only pruned trajectories reached this turn."""
    speed: dict[Baseline, TurnSpeed]
    """Without baselines that no problem has a ratio for, as in `best_speed`."""
    best_correct: Figure
    """Share of trajectories with a correct kernel up to this turn."""
    best_speed: dict[Baseline, TurnSpeed]
    """Of the fastest correct kernel up to this turn."""


class Change(Frozen):
    """First turn against last turn, as shares of trajectories."""

    first_correct: Figure
    last_correct: Figure
    improved: Figure
    """Wrong first, correct last."""
    regressed: Figure
    """Correct first, wrong last."""
    net: Figure
    """Improved minus regressed."""


class Totals(Frozen):
    """Sums over turns; shared turns of forks count once. None where no turn has the number."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    """In the currency of the prices; without prices, as the endpoint reported it."""
    device_seconds: float
    """Verification and timing."""
    judge_seconds: float
    """All stages of the judge without the queue, which a run's own submissions fill."""


class Counts(Frozen):
    """What the figures cover, and what they lack."""

    problems: int
    trajectories: int
    """Samples of all problems; of forked episodes the leaves."""
    turns: int
    """Shared turns of forks count once."""
    untimed: int
    """Correct trajectories without a measured time. Their speedup counts as 0."""
    stops: dict[str, int]
    """Trajectories by stop reason; `running` for unfinished ones, which count by their turns."""
    without: dict[Baseline, int]
    """Problems without a ratio between this baseline and the recorded one, left out of its
    figures.
    """
    truncated: int
    """Turns whose reply hit a token limit."""
    by_person: int
    """Turns played by a person instead of the model."""
    without_usage: int
    """Turns without token counts."""
    kinds: dict[str, int]
    """Turns by `category/kind`."""


class GroupMetrics(Frozen):
    """The figures of all problems, or of a level."""

    counts: Counts
    rates: Rates
    correct: Curve
    """Share of trajectories with a correct kernel; `best` is pass@k."""
    speed: dict[Baseline, Speed]
    """Without baselines that no problem has a ratio for."""
    by_turn: tuple[AtTurn, ...]
    change: Change
    score: Figure
    """Per turn."""
    discounted_return: Figure
    """Per turn; a shared turn has a return in each fork."""
    totals: Totals


class ProblemSpeed(Frozen):
    """Speedups of the samples of one problem over one baseline."""

    best: float
    avg: float
    fast: dict[str, float]
    """Share of samples with a speedup of at least p, by p."""
    log_solved: float | None
    """Mean natural logarithm of the positive speedups; None if there is none."""


class ProblemMetrics(Frozen):
    """The numbers of one problem, whose means are the figures of a group.

    Speedups are 0 for samples without a correct kernel. None means unknown.
    """

    problem: str
    level: int | None
    samples: int
    turns: int
    untimed: int
    format_rate: float
    """This and the next three: shares of turns, 0 without turns."""
    compile_rate: float
    correct_rate: float
    hack_rate: float
    correct: float
    """This and the next four: shares of samples."""
    first_correct: float
    last_correct: float
    improved: float
    regressed: float
    speed: dict[Baseline, ProblemSpeed | None]
    best_turn: int | None
    """Turn of the fastest kernel, from 1; None without a timed kernel."""
    best_sample: int | None
    """Sample of the fastest kernel; None also where samples have no numbers."""
    score: float
    """Mean over turns, like `discounted_return`."""
    discounted_return: float
    totals: Totals


class RunMetrics(Frozen):
    """All figures of a run: overall, by level and by problem."""

    overall: GroupMetrics
    levels: dict[int, GroupMetrics]
    """Problems without a level are in `overall` only."""
    models: dict[str, GroupMetrics]
    """By `Trajectory.player`, each as a run of its own; empty for fewer than two."""
    languages: dict[str, GroupMetrics]
    """The same by the language that prompts ask for; `auto` is that of the device."""
    problems: tuple[ProblemMetrics, ...]
    """By level and id."""
    seed: int
    """Of the bootstrap."""
    resamples: int
