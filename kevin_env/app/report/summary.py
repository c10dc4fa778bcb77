"""From a run's episodes and figures to the contents of its report."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, pairwise

from rich.table import Table

from kevin_env.app.evaluate.figures import Baseline, ProblemMetrics, RunMetrics
from kevin_env.app.evaluate.folder import Recorded
from kevin_env.app.evaluate.samples import Attempts, Played, Sample, gather
from kevin_env.app.evaluate.tables import first_baseline, largest_k, metric_tables, notes
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.rows import MARKS, mark_of
from kevin_env.app.report.values import (
    Bin,
    Grid,
    Hack,
    Kind,
    Line,
    Mark,
    Place,
    ProblemLine,
    Report,
)
from kevin_env.judge.verdict import flag_name
from kevin_env.outcome import Category, held_roofline, is_hack
from kevin_env.record import Trajectory

EDGES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Lower ends of the bins of speedups. They include the p of fast_p."""
MOST_LINES = 24
"""Links per problem in a report whose trajectories are in other pages."""
MOST_HACKS = 500
"""Hacks that are listed."""
MOST_MARKS = 2000
"""Turns in the roofline plot."""

_SETTINGS = ("max_turns", "gamma", "returns", "rules", "language", "baseline", "context")

Pages = Mapping[tuple[str, str], str]
"""Pages of trajectories, by problem and episode id. Others are in the report itself."""


def summarise(title: str, recorded: Recorded, metrics: RunMetrics, pages: Pages) -> Report:
    """The contents of a run's report; `pages` says where its trajectories are shown."""
    problems = gather(recorded.episodes, recorded.ratios)
    baseline = first_baseline(metrics.overall)
    hacks = list(_hacks(problems, pages))
    held = list(_held(problems, pages))
    marks = [each for each in held if each.roofline.intensity and each.roofline.rate][:MOST_MARKS]
    return Report(
        title=clean(title),
        facts=tuple(_facts(recorded.episodes)),
        baseline=baseline,
        k=largest_k(metrics.overall.correct),
        overall=metrics.overall,
        levels=metrics.levels,
        grids=tuple(map(grid_of, metric_tables(metrics))),
        notes=(*notes(metrics.overall), *_left_out(recorded.episodes, problems)),
        bins=_bins([each.speedup(baseline) for problem in problems for each in problem.samples]),
        roofline=tuple(marks),
        roofline_left_out=len(held) - len(marks),
        flags=_flags(problems),
        kinds=_kinds(problems),
        hacks=tuple(hacks[:MOST_HACKS]),
        more_hacks=len(hacks[MOST_HACKS:]),
        problems=tuple(
            _problem_line(each, numbers, baseline, pages)
            for each, numbers in zip(problems, metrics.problems, strict=True)
        ),
    )


def _facts(episodes: Sequence[Trajectory]) -> Iterator[tuple[str, str]]:
    yield "model", _several(each.model or "not recorded" for each in episodes)
    devices = (each.hardware.name if each.hardware else "not recorded" for each in episodes)
    yield "device", _several(devices)
    for name in _SETTINGS:
        if values := _several(str(each.config[name]) for each in episodes if name in each.config):
            yield name, values
    dates = sorted(each.created for each in episodes)
    yield "played", _short(" to ".join(dict.fromkeys(map(_day, (dates[0], dates[-1])))))


def _day(created: str) -> str:
    """Such as 9 Jan 2026."""
    try:
        return f"{datetime.fromisoformat(created):%d %b %Y}".removeprefix("0")
    except ValueError:
        return created


def _several(values: Iterable[str], most: int = 4) -> str:
    """The distinct values, shortened."""
    found = list(dict.fromkeys(values))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return _short(", ".join(found[:most])) + more


def grid_of(table: Table) -> Grid:
    """A terminal table as plain text."""
    return Grid(
        title=str(table.title),
        headings=tuple(" ".join(str(column.header).split()) for column in table.columns),
        rows=tuple(zip(*(map(str, column.cells) for column in table.columns), strict=True)),
        sections=tuple(at for at, row in enumerate(table.rows) if row.end_section),
    )


def _left_out(episodes: Sequence[Trajectory], problems: Sequence[Attempts]) -> Iterator[str]:
    out = len({(each.problem.id, each.episode_id) for each in episodes}) - sum(
        len(each.episodes) for each in problems
    )
    if out:
        yield f"trajectories without a turn, left out: {out}"


def _bins(speedups: Sequence[float | None]) -> tuple[Bin, ...]:
    """A bin of those without a timed kernel, then the range of bins that are not empty."""
    known = [value for value in speedups if value is not None]
    counts = Counter(bisect_right(EDGES, value) - 1 for value in known if value > 0)
    none = Bin(low=None, high=None, count=sum(value <= 0 for value in known))
    ends = [*pairwise(EDGES), (EDGES[-1], None)]
    used = range(min(counts), max(counts) + 1) if counts else range(0)
    return (none, *(Bin(low=ends[at][0], high=ends[at][1], count=counts[at]) for at in used))


def _kinds(problems: Sequence[Attempts]) -> tuple[Kind, ...]:
    turns = [played.turn for each in problems for played in each.turns]
    found: Counter[tuple[Category, str, bool]] = Counter(
        (turn.category, turn.kind, is_hack(turn.outcome)) for turn in turns
    )
    kinds = [
        Kind(category=name, kind=kind, turns=count, hack=hack)
        for (name, kind, hack), count in found.items()
    ]
    order = list(MARKS)
    kinds.sort(key=lambda each: (order.index(each.category), -each.turns, each.kind))
    return tuple(kinds)


def _hacks(problems: Sequence[Attempts], pages: Pages) -> Iterator[Hack]:
    for attempts, sample, played in _each_turn(problems):
        if is_hack(played.turn.outcome):
            yield Hack(
                problem=clean(attempts.problem),
                sample=sample.trajectory.sample,
                turn=played.number,
                category=played.turn.category,
                kind=played.turn.kind,
                message=_short(played.turn.outcome.message),
                place=_place(attempts.problem, sample, pages),
            )


def _held(problems: Sequence[Attempts], pages: Pages) -> Iterator[Mark]:
    for attempts, sample, played in _each_turn(problems):
        if roofline := held_roofline(played.turn.outcome):
            yield Mark(
                problem=clean(attempts.problem),
                turn=played.number,
                place=_place(attempts.problem, sample, pages),
                roofline=roofline,
            )


def _flags(problems: Sequence[Attempts]) -> tuple[tuple[str, int], ...]:
    """Named flags, the most frequent first."""
    turns = (played.turn for _, _, played in _each_turn(problems))
    names = Counter(name for turn in turns for name in set(map(flag_name, turn.flags)) if name)
    return tuple(names.most_common())


def _each_turn(problems: Sequence[Attempts]) -> Iterator[tuple[Attempts, Sample, Played]]:
    """Each turn once, with the first trajectory that has it, samples first."""
    for attempts in problems:
        seen: set[int] = set()
        for sample in _in_order(attempts):
            for played in sample.played:
                if id(played) not in seen:
                    seen.add(id(played))
                    yield attempts, sample, played


def _in_order(attempts: Attempts) -> Iterator[Sample]:
    """The samples, then the other episodes."""
    samples = set(map(id, attempts.samples))
    return chain(attempts.samples, (each for each in attempts.episodes if id(each) not in samples))


def _short(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= 200 else f"{line[:200]} ..."


def _place(problem: str, sample: Sample, pages: Pages) -> Place:
    name = sample.trajectory.episode_id
    return Place(page=pages.get((problem, name), ""), id=clean(name))


def _problem_line(
    attempts: Attempts, numbers: ProblemMetrics, baseline: Baseline, pages: Pages
) -> ProblemLine:
    lines = [_line(attempts, each, baseline, pages) for each in _in_order(attempts)]
    own = tuple(filter(None, dict.fromkeys(line.place.page for line in lines)))
    shown = lines[:MOST_LINES] if own else lines
    held = [held_roofline(played.turn.outcome) for played in attempts.turns]
    return ProblemLine(
        numbers=numbers.model_copy(update={"problem": clean(numbers.problem)}),
        roofline=max((each.fraction for each in held if each), default=None),
        top=max(lines, key=lambda line: line.best or 0.0),
        lines=tuple(shown),
        pages=own,
        more=len(lines) - len(shown),
    )


def _line(attempts: Attempts, sample: Sample, baseline: Baseline, pages: Pages) -> Line:
    return Line(
        place=_place(attempts.problem, sample, pages),
        sample=sample.trajectory.sample,
        marks="".join(mark_of(played.turn) for played in sample.played),
        best=sample.speedup(baseline) or None,
        best_turn=sample.best_turn,
        stop=sample.trajectory.stop_reason or "running",
        counts=any(sample is each for each in attempts.samples),
    )
