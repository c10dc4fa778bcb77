"""The figures of a run as tables for a terminal and as rows of `summary.csv`."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kevin_env.app.convert.formats import inert
from kevin_env.app.evaluate.figures import (
    AGAINST,
    BASELINES,
    THRESHOLDS,
    Baseline,
    Curve,
    Figure,
    GroupMetrics,
    ProblemMetrics,
    Rates,
    RunMetrics,
)
from kevin_env.app.replay.code import clean
from kevin_env.app.screen import counted
from kevin_env.outcome import HACK_KINDS
from kevin_env.render import figure_text

_SPENT = {
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "  cached",
    "completion_tokens": "completion tokens",
    "reasoning_tokens": "  reasoning",
    "cost": "cost",
    "device_seconds": "device seconds",
    "judge_seconds": "judge seconds",
}
_INTERVAL = re.compile(r" \[.*\]$")


def show_metrics(console: Console, metrics: RunMetrics) -> None:
    """Prints the figures of a run.

    A table that is too wide is shown without intervals, and without its last columns if it still
    is: no figure is cut off.
    """
    overall = metrics.overall
    counts = overall.counts
    trajectories = (counts.trajectories, "trajectory")
    sizes = ((counts.problems, "problem"), trajectories, (counts.turns, "turn"))
    console.print(", ".join(counted(number, name) for number, name in sizes), style="bold")
    console.print()
    for table in metric_tables(metrics):
        if _width(console, table) > console.width:
            table = _narrower(table, len(table.columns))
        while _width(console, table) > console.width and len(table.columns) > 2:
            table = _narrower(table, len(table.columns) - 1)
        console.print(table)
        console.print()
    for note in notes(overall):
        console.print(note, style="bright_black")


def metric_tables(metrics: RunMetrics) -> list[Table]:
    """The figures of a run. Headings and cells are plain text."""
    overall = metrics.overall
    return [
        _trajectories(overall),
        _groups(metrics),
        _curve(overall),
        _turns(overall),
        _spent(overall),
    ]


def summary_row(row: ProblemMetrics) -> dict[str, Any]:
    """The row of `summary.csv` of one problem; None means unknown."""
    plain = row.model_dump(exclude={"speed", "totals"}) | {"problem": inert(row.problem)}
    for baseline in BASELINES:
        speed = row.speed[baseline]
        plain[f"best_speedup_{baseline}"] = speed and speed.best
        plain[f"avg_speedup_{baseline}"] = speed and speed.avg
        plain |= {f"fast_{p}_{baseline}": speed and speed.fast[p] for p in THRESHOLDS}
    return plain | row.totals.model_dump()


def _trajectories(group: GroupMetrics) -> Table:
    k = largest_k(group.correct)
    table = plain_table("Trajectories", "", f"avg@{k}", f"best@{k}")

    def add(name: str, curve: Curve, write: Callable[[Figure | None], str]) -> None:
        table.add_row(name, write(curve.avg), write(curve.best.get(k)))

    add("correct", group.correct, _percent)
    for baseline, speed in group.speed.items():
        table.add_section()
        add(f"speedup over {AGAINST[baseline]}", speed.speedup, _times)
        for p, curve in speed.fast.items():
            add(f"  fast_{p}", curve, _percent)
        table.add_row("  geomean, solved only", _times(speed.geomean_solved), "")
    return table


def _curve(group: GroupMetrics) -> Table:
    headings = (f"best@k over {AGAINST[baseline]}" for baseline in group.speed)
    table = plain_table("Best of k", "k", "pass@k", *headings)
    for k in group.correct.best:
        if k & (k - 1) == 0 or k == max(group.correct.best):
            bests = (_times(speed.speedup.best.get(k)) for speed in group.speed.values())
            table.add_row(str(k), _percent(group.correct.best[k]), *bests)
    return table


def _turns(group: GroupMetrics) -> Table:
    baseline = first_baseline(group)
    headings = ("turn", *Rates.model_fields, "speedup")
    best_so_far = ("correct\nso far", "speedup\nso far", "fast_1\nso far")
    table = plain_table(f"Turns, speedup over {AGAINST[baseline]}", *headings, *best_so_far)
    for each in group.by_turn:
        now, best = each.speed.get(baseline), each.best_speed.get(baseline)
        table.add_row(
            str(each.turn),
            *(_percent(rate) for _, rate in each.rates),
            _times(now and now.speedup),
            _percent(each.best_correct),
            _times(best and best.speedup),
            _percent(best and best.fast["1"]),
        )
    table.add_section()
    table.add_row("all", *(_percent(rate) for _, rate in group.rates), "", "", "", "")
    return table


def _groups(metrics: RunMetrics) -> Table:
    """One row for the run, each model, language and level, and the best up to each turn."""
    overall = metrics.overall
    baseline = first_baseline(overall)
    headings = ("problems", "correct", f"pass@{largest_k(overall.correct)}")
    speeds = ("fast_1", "fast_2", "mean", "geomean", "hack")
    table = plain_table(f"Groups, speedup over {AGAINST[baseline]}", "", *headings, *speeds)
    levels = {f"level {level}": group for level, group in metrics.levels.items()}
    several = levels if len(levels) > 1 else {}
    for groups in ({"all": overall}, metrics.models, metrics.languages, several):
        for name, group in groups.items():
            speed, k = group.speed.get(baseline), largest_k(overall.correct)
            fast = {p: speed and speed.fast[p].avg for p in ("1", "2")}
            table.add_row(
                Text(clean(name)),
                str(group.counts.problems),
                _percent(group.correct.avg),
                _percent(group.correct.best.get(k)),
                *(_percent(fast[p]) for p in fast),
                _times(speed and speed.speedup.avg),
                _times(speed and speed.geomean_solved),
                _percent(group.rates.hack),
            )
        table.add_section()
    for each in overall.by_turn:
        best = each.best_speed.get(baseline)
        table.add_row(
            f"by turn {each.turn}",
            str(each.best_correct.n),
            _percent(each.best_correct),
            "",
            *(_percent(best and best.fast[p]) for p in ("1", "2")),
            _times(best and best.speedup),
            _times(best and best.geomean_solved),
            _percent(each.rates.hack),
        )
    return table


def _spent(group: GroupMetrics) -> Table:
    table = plain_table("Spent", "", "per trajectory", "total")
    for name, heading in _SPENT.items():
        total: float | None = getattr(group.totals, name)
        if total is not None:
            digits = 0 if name.endswith("tokens") else 4 if name == "cost" else 1
            each = total / group.counts.trajectories
            table.add_row(heading, f"{each:,.{digits}f}", f"{total:,.{digits}f}")
    return table


def notes(group: GroupMetrics) -> Iterator[str]:
    """Notes on the figures, a line each."""
    change, counts = group.change, group.counts
    moves = {"improved": change.improved, "regressed": change.regressed, "net": change.net}
    yield "correct in the last turn against the first: " + ", ".join(
        f"{name} {_percent(figure)}" for name, figure in moves.items()
    )
    yield f"mean per turn: score {_plain(group.score)}, return {_plain(group.discounted_return)}"
    yield "[..]: 95 % bootstrap interval over problems; problems have equal weight"
    yield (
        "groups: fast_p and mean are of each trajectory's fastest correct kernel, by turn t of "
        "its first t turns, and 0 without one; geomean is over those that have one"
    )
    yield (
        "hack: share of turns (by turn t: of turn t) that ended in the category rules, or as "
        + ", ".join(sorted(HACK_KINDS))
    )
    missing = {
        "correct trajectories without a measured time (speedup 0)": counts.untimed,
        "replies that hit a token limit": counts.truncated,
        "turns played by a person": counts.by_person,
        "turns without token counts": counts.without_usage,
        "trajectories that have not ended": counts.stops.get("running", 0),
        **{
            f"problems without a comparison to {AGAINST[name]}, left out of its speedups": number
            for name, number in counts.without.items()
            if name in group.speed
        },
        **{
            f"trajectories that ended as {why}": number
            for why, number in counts.stops.items()
            if why not in ("max_turns", "stop_on", "running")
        },
    }
    yield from (f"{what}: {number}" for what, number in missing.items() if number)


def plain_table(title: str, *headings: str) -> Table:
    """A table without borders; the first column is at the left, the others at the right."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    return table


def first_baseline(group: GroupMetrics) -> Baseline:
    """The baseline of the tables with only one: eager where it is known."""
    known: list[Baseline] = [each for each in BASELINES if each in group.speed]
    return known[0] if known else "eager"


def largest_k(curve: Curve) -> int:
    """The largest k for which every problem has enough samples."""
    whole = [k for k, figure in curve.best.items() if figure.n == curve.avg.n]
    return max(whole, default=1)


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum


def _narrower(table: Table, columns: int) -> Table:
    """The first columns without intervals."""
    kept = table.columns[:columns]
    narrow = plain_table(str(table.title), *(str(column.header) for column in kept))
    cells = zip(*(column.cells for column in kept), strict=True)
    for row, each in zip(table.rows, cells, strict=True):
        narrow.add_row(
            *(_INTERVAL.sub("", str(cell)) for cell in each), end_section=row.end_section
        )
    return narrow


def _percent(figure: Figure | None) -> str:
    return _cell(figure, lambda value: f"{100 * value:.1f}", "%")


def _times(figure: Figure | None) -> str:
    return _cell(figure, figure_text, "x")


def _plain(figure: Figure) -> str:
    return _cell(figure, lambda value: f"{value:.2f}", "")


def _cell(figure: Figure | None, write: Callable[[float], str], unit: str) -> str:
    """Such as `83.3% [66.7, 100.0]`; empty without a figure."""
    if figure is None:
        return ""
    value = write(figure.value) + unit
    if figure.low is None or figure.high is None:
        return value
    return f"{value} [{write(figure.low)}, {write(figure.high)}]"
