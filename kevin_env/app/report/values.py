"""The contents of a report as frozen values. Untrusted text in them is clean, but not escaped."""

from kevin_env.app.evaluate.figures import Baseline, GroupMetrics, ProblemMetrics
from kevin_env.outcome import Category, Frozen
from kevin_env.roofline import Roofline


class Grid(Frozen):
    """A table of plain text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sections: tuple[int, ...] = ()
    """Indices of rows that are followed by a rule."""


class Bin(Frozen):
    """Trajectories whose best speedup is at least `low` and less than `high`."""

    low: float | None
    """None: trajectories without a timed kernel."""
    high: float | None
    """None: no upper end."""
    count: int


class Kind(Frozen):
    """The number of turns with one outcome."""

    category: Category
    kind: str
    turns: int
    hack: bool


class Place(Frozen):
    """A link to a trajectory."""

    page: str
    """Address relative to the report; empty: in the report itself."""
    id: str


class Hack(Frozen):
    """A turn that counts in the hack rate, with a trajectory that has it."""

    problem: str
    sample: int | None
    turn: int
    """From 1."""
    category: Category
    kind: str
    message: str
    place: Place


class Mark(Frozen):
    """A timed turn in the roofline plot."""

    problem: str
    turn: int
    """From 1."""
    place: Place
    roofline: Roofline


class Line(Frozen):
    """A link to a trajectory, with its summary."""

    place: Place
    sample: int | None
    marks: str
    """A character per turn, see `kevin_env.app.replay.rows.mark_of`."""
    best: float | None
    """The largest speedup over the report's baseline."""
    best_turn: int | None
    """From 1."""
    stop: str
    counts: bool
    """False for episodes that a search continued or pruned, and for those that were replaced."""


class ProblemLine(Frozen):
    """One problem with its trajectories."""

    numbers: ProblemMetrics
    roofline: float | None
    """The largest fraction of the roofline that a turn reached; None if unknown."""
    top: Line
    """The fastest trajectory, or the first one if none was timed."""
    lines: tuple[Line, ...]
    pages: tuple[str, ...]
    """Pages with its trajectories; none if they are in the report itself."""
    more: int
    """Trajectories without a line here."""


class Report(Frozen):
    """The whole report."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """Models, devices, settings and dates."""
    baseline: Baseline
    """The baseline of tables and charts with only one."""
    k: int
    """The largest k for which every problem has enough samples."""
    overall: GroupMetrics
    levels: dict[int, GroupMetrics]
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    bins: tuple[Bin, ...]
    roofline: tuple[Mark, ...]
    roofline_left_out: int
    """Timed turns without FLOPs, or beyond the limit of the plot."""
    flags: tuple[tuple[str, int], ...]
    """Names of flags with their numbers of turns."""
    kinds: tuple[Kind, ...]
    """By stage, then by frequency."""
    hacks: tuple[Hack, ...]
    more_hacks: int
    """Hacks that `hacks` leaves out."""
    problems: tuple[ProblemLine, ...]
