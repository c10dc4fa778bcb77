"""Two runs side by side: what changed per problem, per level and overall."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.estimators import RESAMPLES, SEED, interval
from kevin_env.app.evaluate.folder import OnBadLine, Recorded, read_figures
from kevin_env.app.evaluate.samples import Attempts, Sample, gather
from kevin_env.app.evaluate.tables import plain_table
from kevin_env.app.replay.code import clean
from kevin_env.app.report.summary import SETTINGS, grid_of, setting_text, settings_of, several
from kevin_env.app.report.write import markdown_page
from kevin_env.app.screen import counted, show
from kevin_env.app.writing import write_text
from kevin_env.outcome import Frozen

_MEASURES: dict[str, Callable[[Sample], float]] = {
    "correct": lambda sample: float(sample.correct()),
    "speedup": lambda sample: sample.fastest(),
    "fast_1": lambda sample: float(sample.fastest() >= 1),
}
"""Of a sample. The speedup is over the recorded baseline, 0 without a correct kernel."""

_Values = dict[str, dict[str, str]]
"""By setting, its recorded values and what is shown of each."""


class Change(Frozen):
    """The means of two runs, their difference and its 95 % bootstrap interval."""

    before: float
    after: float
    difference: float | None = None
    """None for speedups over different baselines."""
    low: float | None = None
    high: float | None = None
    """None also if there is too little to resample: a problem has one sample, or a level one
    problem.
    """

    @classmethod
    def of(cls, before: float, after: float, ends: tuple[float, float] | None) -> "Change":
        """From the two means, and the ends of the interval if there is one."""
        low, high = ends or (None, None)
        return cls(before=before, after=after, difference=after - before, low=low, high=high)


class Changed(Frozen):
    """What changed in one problem or group of problems."""

    name: str
    problems: int
    changes: dict[str, Change]
    """By measure: `correct`, `speedup`, `fast_1`."""


class Comparison(Frozen):
    """Two runs on the problems that both have."""

    runs: tuple[str, str]
    overall: Changed
    levels: tuple[Changed, ...]
    problems: tuple[Changed, ...]
    left_out: tuple[str, ...]
    """Problems of only one run."""
    other_versions: tuple[str, ...]
    """Problems whose source differs between the runs."""
    unfinished: tuple[int, int]
    """Trajectories of each run that have not ended."""
    settings: dict[str, tuple[str, str]]
    """What differs between the runs on a problem: the values in each, by setting, `device` or
    package.
    """


def compare(paths: tuple[Path, Path], on_bad_line: OnBadLine) -> Comparison:
    """Compares two runs, each a run folder or trajectories.

    The interval of a problem is over its samples, that of a level over its problems, which are
    paired.

    Raises:
        BadInput: if a run cannot be read, or they have no problem in common.
    """
    read = [read_figures(path, None, on_bad_line)[0] for path in paths]
    before, after = (_by_problem(each) for each in read)
    shared = [name for name in before if name in after]
    if not shared:
        raise BadInput(f"{paths[0]} and {paths[1]} have no problem in common")
    problems = [_problem(before[name], after[name]) for name in shared]
    levels = sorted({each.level for each in before.values() if each.level is not None})
    of_level = {
        level: [each for each in problems if before[each.name].level == level] for level in levels
    }
    versions = [{each.problem.id: each.problem.sha256 for each in run.episodes} for run in read]
    return Comparison(
        runs=(str(paths[0]), str(paths[1])),
        overall=_group("overall", problems),
        levels=tuple(_group(f"level {level}", each) for level, each in of_level.items() if each),
        problems=tuple(problems),
        left_out=tuple(sorted(before.keys() ^ after.keys())),
        other_versions=tuple(name for name in shared if versions[0][name] != versions[1][name]),
        unfinished=(_unfinished(read[0]), _unfinished(read[1])),
        settings=_settings([(_values(before[name]), _values(after[name])) for name in shared]),
    )


def _unfinished(run: Recorded) -> int:
    return sum(each.stop_reason is None for each in run.episodes)


def _by_problem(run: Recorded) -> dict[str, Attempts]:
    return {each.problem: each for each in gather(run.episodes, run.ratios)}


def _values(attempts: Attempts) -> _Values:
    configs = [settings_of(sample.trajectory) for sample in attempts.samples]
    found: _Values = {}
    for name in SETTINGS:
        # A speedup without a recorded baseline is over eager, as in `gather`.
        missing = "eager" if name == "baseline" else "not recorded"
        values = [config.get(name, missing) for config in configs]
        found[name] = {str(value): setting_text(value) for value in values}
    devices = [each.trajectory.hardware for each in attempts.samples]
    of_software = [each.versions for each in devices if each]
    for name in {name for versions in of_software for name in versions}:
        found[name] = {each: each for versions in of_software if (each := versions.get(name))}
    return found


def _settings(problems: Sequence[tuple[_Values, _Values]]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    software = {name for before, _ in problems for name in before}.difference(SETTINGS)
    for name in (*SETTINGS, *sorted(software)):
        sides = [(a[name], b[name]) for a, b in problems if name in a and name in b]
        pairs = [(a, b) for a, b in sides if a.keys() != b.keys()]
        if pairs:
            before, after = zip(*pairs, strict=True)
            found[name] = (_shown(before), _shown(after))
    return found


def _shown(values: Sequence[Mapping[str, str]]) -> str:
    return several(text for each in values for text in each.values())


def _problem(before: Attempts, after: Attempts) -> Changed:
    baselines = _values(before)["baseline"] | _values(after)["baseline"]
    changes: dict[str, Change] = {}
    for name, measure in _MEASURES.items():
        sides = [[measure(sample) for sample in each.samples] for each in (before, after)]
        if len(baselines) > 1 and name != "correct":
            changes[name] = Change(before=fmean(sides[0]), after=fmean(sides[1]))
        else:
            changes[name] = Change.of(fmean(sides[0]), fmean(sides[1]), _of_samples(*sides))
    return Changed(name=before.problem, problems=1, changes=changes)


def _of_samples(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the difference of the means of two independent groups of samples."""
    if min(len(before), len(after)) < 2:
        return None
    draw = np.random.default_rng(SEED)
    means = [draw.choice(each, (RESAMPLES, len(each))).mean(1) for each in (before, after)]
    low, high = np.percentile(means[1] - means[0], (2.5, 97.5))
    return float(low), float(high)


def _group(name: str, problems: Sequence[Changed]) -> Changed:
    changes: dict[str, Change] = {}
    for measure in _MEASURES:
        each = [problem.changes[measure] for problem in problems]
        before, after = fmean(one.before for one in each), fmean(one.after for one in each)
        differences = [one.difference for one in each if one.difference is not None]
        if len(differences) < len(each):
            changes[measure] = Change(before=before, after=after)
        else:
            changes[measure] = Change.of(before, after, interval(differences))
    return Changed(name=name, problems=len(problems), changes=changes)


def show_comparison(console: Console, found: Comparison) -> None:
    """Prints a table per measure, and what was left out."""
    for table in _tables(found):
        console.print(table)
        console.print()
    for note in _notes(found):
        show(console, note, "bright_black")


def write_comparison(found: Comparison, out: Path) -> Path:
    """Writes the tables to a Markdown file.

    Raises:
        BadInput: if the name of the file does not end in `.md`.
    """
    if out.suffix != ".md":
        raise BadInput(f"cannot write a comparison to {out}: use a name that ends in .md")
    text = markdown_page(grids=map(grid_of, _tables(found)), notes=_notes(found))
    write_text(out, text)
    return out


def _tables(found: Comparison) -> Iterator[Any]:
    for measure in _MEASURES:
        table = plain_table(measure, "", "A", "B", "B - A [95 %]")
        for number, group in enumerate((found.overall, *found.levels)):
            table.add_row(clean(group.name), *_cells(group.changes, measure))
            if number == len(found.levels):
                table.add_section()
        for problem in found.problems:
            table.add_row(clean(problem.name), *_cells(problem.changes, measure))
        yield table


def _cells(changes: Mapping[str, Change], measure: str) -> Iterator[str]:
    change = changes[measure]
    unit, scale, digits = ("x", 1, 2) if measure == "speedup" else ("%", 100, 1)
    yield from (f"{scale * each:.{digits}f}{unit}" for each in (change.before, change.after))
    said = "" if change.difference is None else f"{scale * change.difference:+.{digits}f}"
    if change.low is not None and change.high is not None:
        said += f" [{scale * change.low:+.{digits}f}, {scale * change.high:+.{digits}f}]"
    yield said


def _notes(found: Comparison) -> Iterator[str]:
    yield f"A: {clean(found.runs[0])}, B: {clean(found.runs[1])}"
    yield (
        "[..]: 95 % bootstrap interval, over the samples of a problem or the problems of a level; "
        "speedups of each sample's fastest correct kernel, 0 without one"
    )
    if found.left_out:
        yield f"only in one of the two: {counted(len(found.left_out), 'problem')}"
    if found.other_versions:
        yield f"of another version in each: {', '.join(map(clean, found.other_versions))}"
    for name, count in zip("AB", found.unfinished, strict=True):
        if count:
            have = "has" if count == 1 else "have"
            yield f"{name}: {counted(count, 'trajectory')} {have} not ended"
    if found.settings:
        pairs = ((name, *each) for name, each in found.settings.items())
        said = (
            # A kernel of the same name with other code, such as a baseline.
            f"{name}: two versions of {a}" if a == b else f"{name}: {a} / {b}"
            for name, a, b in pairs
        )
        yield f"the runs differ in {'; '.join(said)}"
    if any(change.difference is None for change in found.overall.changes.values()):
        yield "no difference is shown for speedups over different baselines"
