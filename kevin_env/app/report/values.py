"""What a report says, as frozen values. Text of models in them is clean, and not escaped for any
format.
"""

from typing import Literal

from kevin_env.app.evaluate.figures import Baseline, GroupMetrics, Totals
from kevin_env.outcome import Category, Frozen


class Grid(Frozen):
    """A table of plain text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sections: tuple[int, ...] = ()
    """Rows that a line comes after."""


class Bin(Frozen):
    """Trajectories whose fastest correct kernel has a speedup of `low` or more and less than
    `high`.
    """

    low: float | None
    """None for those without a timed kernel."""
    high: float | None
    """None for the last one, which has no end."""
    count: int


class Kind(Frozen):
    """How often turns ended in one way."""

    category: Category
    kind: str
    turns: int
    hack: bool


class Place(Frozen):
    """Where a trajectory is shown."""

    page: str
    """Address of the page that holds it, relative to the report; empty for the report itself."""
    id: str


class Hack(Frozen):
    """A turn that counts in the hack rate, and a trajectory that has it."""

    problem: str
    sample: int | None
    turn: int
    """From 1."""
    category: Category
    kind: str
    message: str
    place: Place


class Mark(Frozen):
    """A timed turn on the roofline's plane. Figures as in `kevin_env.roofline.Roofline`."""

    problem: str
    turn: int
    """From 1."""
    place: Place
    intensity: float
    """FLOPs for each byte."""
    rate: float
    bandwidth: float
    fraction: float
    bound: Literal["memory", "compute"]


class RooflinePlot(Frozen):
    """What the device was seen to reach, and the timed turns below it."""

    marks: tuple[Mark, ...]
    """At least one."""
    memory: tuple[float, float]
    """Bytes a second: the lowest and the highest ceiling of all turns; they depend on what is read
    and written.
    """
    compute: tuple[float, float]
    """FLOPs a second, likewise; they depend on the arithmetic."""
    left_out: int
    """Timed turns that have no place there, since they only move data, or that are too many."""


class Line(Frozen):
    """One trajectory, as a link to it shows it."""

    place: Place
    sample: int | None
    marks: str
    """A character a turn, see `kevin_env.app.replay.rows.MARKS`."""
    best: float | None
    """The speedup of its fastest kernel as it was recorded."""
    best_turn: int | None
    """From 1."""
    stop: str
    counts: bool
    """False for what a search went on from or gave up, and for what was played again."""


class ProblemLine(Frozen):
    """One problem with its trajectories. Numbers as in `ProblemMetrics`; None where they are not
    known.
    """

    problem: str
    level: int | None
    samples: int
    turns: int
    correct: float
    best: float | None
    avg: float | None
    fast: float | None
    """Share of samples with a speedup of 1 or more."""
    hack_rate: float
    score: float
    roofline: float | None
    """The largest fraction of the device's roofline that a turn reached."""
    totals: Totals
    top: Line
    """The fastest trajectory, the first where none has a speedup."""
    lines: tuple[Line, ...]
    pages: tuple[str, ...]
    """Where its trajectories are, when not in the report itself."""
    more: int
    """Trajectories that have no line here, and are in its pages."""


class Report(Frozen):
    """Everything."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """Models, devices, settings and dates."""
    baseline: Baseline
    """What speedups are against, where one has to be chosen."""
    k: int
    """The largest k that every problem has samples for."""
    overall: GroupMetrics
    levels: dict[int, GroupMetrics]
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    bins: tuple[Bin, ...]
    roofline: RooflinePlot | None
    """None where no turn was held against one."""
    flags: tuple[tuple[str, int], ...]
    """Names of flags, each with the turns that have it."""
    kinds: tuple[Kind, ...]
    """In the order of stages, the most frequent of each first."""
    hacks: tuple[Hack, ...]
    more_hacks: int
    """Those that are not among `hacks`."""
    problems: tuple[ProblemLine, ...]
