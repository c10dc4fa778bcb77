"""What is reported of a run, as frozen values: JSON without NaN, every estimate with its interval."""

from typing import Literal

from pydantic import Field

from kevin_env.outcome import Frozen

THRESHOLDS = ("0.5", "1", "1.2", "1.5", "2", "3")
"""The speedups p of fast_p, as they are written."""

Baseline = Literal["eager", "compile"]
BASELINES: tuple[Baseline, ...] = ("eager", "compile")


class Prices(Frozen):
    """What a million tokens cost, in one currency."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    """Reasoning tokens are among these, as endpoints count them."""
    cached: float | None = Field(default=None, ge=0)
    """Of prompt tokens that came from a cache; as `prompt` when left out."""


class Figure(Frozen):
    """The mean over problems of one number each, with its 95 % bootstrap interval over problems."""

    value: float
    low: float | None = None
    high: float | None = None
    """None for a single problem: it does not tell how far another one would be off."""
    n: int
    """Problems that have the number."""


class Curve(Frozen):
    """One number of the samples of a problem: their mean, and the best of k of them."""

    avg: Figure
    """avg@k for any k: the expected mean of k samples is the mean of all."""
    best: dict[int, Figure]
    """best@k by k, unbiased; pass@k for what is 0 or 1. Problems with fewer than k samples are left
    out of it.
    """


class Speed(Frozen):
    """How fast trajectories were against one baseline. A trajectory counts by its fastest correct
    kernel, 0 without.
    """

    speedup: Curve
    fast: dict[str, Curve]
    """fast_p by p, the share with a speedup of p or more."""
    geomean_solved: Figure | None
    """Geometric mean of the speedups of solved ones alone, as KernelBench reports it; None when
    none is solved.
    """


class TurnSpeed(Frozen):
    """How fast kernels were against one baseline, 0 for those that were not correct."""

    speedup: Figure
    fast: dict[str, Figure]


class Rates(Frozen):
    """Shares of turns."""

    format: Figure
    """A submission was found in the reply."""
    compile: Figure
    """It was built."""
    correct: Figure
    """It was correct."""
    hack: Figure
    """It broke the rules, or ended as `early_done` or `protocol`."""


class AtTurn(Frozen):
    """One turn of all trajectories that got there, and the best of it and of all before it."""

    turn: int
    """From 1."""
    turns: int
    """How many there were; one that forks share is one."""
    rates: Rates
    score: Figure
    discounted_return: Figure | None
    """None where only trajectories that a search pruned got so far."""
    speed: dict[Baseline, TurnSpeed]
    """Without a baseline against which no problem can be told; so `best_speed`."""
    best_correct: Figure
    """Share of trajectories that were correct by then."""
    best_speed: dict[Baseline, TurnSpeed]
    """Of the fastest correct kernel by then."""


class Change(Frozen):
    """From the first turn to the last, as shares of trajectories."""

    first_correct: Figure
    last_correct: Figure
    improved: Figure
    """Wrong first, correct last."""
    regressed: Figure
    """Correct first, wrong last."""
    net: Figure
    """Improved less regressed."""


class Spent(Frozen):
    """What a trajectory took on average. What forks share is counted once. None where no turn told
    it.
    """

    prompt_tokens: Figure | None = None
    completion_tokens: Figure | None = None
    reasoning_tokens: Figure | None = None
    cached_tokens: Figure | None = None
    cost: Figure | None = None
    """In the currency of the prices; without prices what the endpoint told."""
    device_seconds: Figure
    """Time on the device: verifying and timing."""
    judge_seconds: Figure
    """All stages of the judge, queueing included."""


class Totals(Frozen):
    """The sums of what `Spent` has the means of."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    device_seconds: float
    judge_seconds: float


class Counts(Frozen):
    """What the figures are of, and what is missing from them."""

    problems: int
    trajectories: int
    """Samples of all problems. Of forks the leaves count: an episode that others go on from is part
    of them.
    """
    turns: int
    """One that forks share is one."""
    untold: int
    """Trajectories that are correct with no time that could be told: correct, and 0 in every
    speedup.
    """
    stops: dict[str, int]
    """Trajectories by what ended them; `running` for those that were cut off, which count by the
    turns they have.
    """
    without: dict[Baseline, int]
    """Problems left out of the figures against a baseline, since its time relative to the recorded
    one is not known.
    """
    truncated: int
    """Turns whose reply was cut off by a token limit."""
    by_person: int
    """Turns whose reply a person wrote, in the place of the model."""
    without_usage: int
    """Turns of which no tokens were told."""
    kinds: dict[str, int]
    """Turns by `category/kind`."""


class GroupMetrics(Frozen):
    """All figures of a group of problems: of all, or of a level."""

    counts: Counts
    rates: Rates
    correct: Curve
    """Trajectories with a correct kernel; `best` is pass@k."""
    speed: dict[Baseline, Speed]
    """Without a baseline against which no problem can be told."""
    by_turn: tuple[AtTurn, ...]
    change: Change
    score: Figure
    """Of a turn."""
    discounted_return: Figure
    """Of a turn; one that forks share has a return in each of them."""
    first_return: Figure
    """Of the first turn: what a whole trajectory returns."""
    spent: Spent
    totals: Totals


class ProblemSpeed(Frozen):
    """How fast the samples of one problem were against one baseline."""

    best: float
    avg: float
    fast: dict[str, float]
    """Share of samples with a speedup of p or more, by p."""
    log_solved: float | None
    """Mean natural logarithm of the speedups above 0; None without any."""


class ProblemMetrics(Frozen):
    """The numbers of one problem. The figures of a group are means of these.

    Speedups are 0 for samples without a correct kernel. What is None is not known.
    """

    problem: str
    level: int | None
    samples: int
    turns: int
    untold: int
    format_rate: float
    """Shares of turns; 0 where the model answered nothing at all."""
    compile_rate: float
    correct_rate: float
    hack_rate: float
    correct: float
    """Share of samples with a correct kernel; likewise the following four."""
    first_correct: float
    last_correct: float
    improved: float
    regressed: float
    speed: dict[Baseline, ProblemSpeed | None]
    best_turn: int | None
    """The turn that the fastest kernel came in, from 1; None without one."""
    best_sample: int | None
    """Which sample that was; None also where samples are not numbered."""
    score: float
    """Mean over turns, as `discounted_return`."""
    discounted_return: float
    first_return: float
    totals: Totals


class RunMetrics(Frozen):
    """All figures of a run: of all its problems, of each level, and the numbers of each problem."""

    overall: GroupMetrics
    levels: dict[int, GroupMetrics]
    """By level; problems without one are in `overall` alone."""
    problems: tuple[ProblemMetrics, ...]
    """In the order of level and id."""
    seed: int
    """Of the bootstrap."""
    resamples: int
