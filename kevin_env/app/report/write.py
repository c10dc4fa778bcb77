"""Reads a run and writes its report."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.folder import Recorded, RunFolder, read_figures
from kevin_env.app.evaluate.samples import gather
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.markdown import inline
from kevin_env.app.replay.page import asset, document, episodes_data, page
from kevin_env.app.replay.rows import CATEGORIES, NOISY, Row
from kevin_env.app.report.summary import summarise
from kevin_env.app.writing import write_text
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine


@dataclass(frozen=True)
class Room:
    """Limits of one page."""

    episodes: int = 300
    bytes: int = 30_000_000
    """Size of their records."""

    def holds(self, rows: Sequence[Row]) -> bool:
        """Whether these episodes fit into one page."""
        return len(rows) <= self.episodes and sum(row.place.size for row in rows) <= self.bytes


SINGLE = Room()
"""A run within these limits is one page. The trajectories of a larger one are in the folder
`<name of the report>_trajectories`, in pages of one problem that keep the limits.
"""


@dataclass(frozen=True)
class Run:
    """A run: its episodes, their figures, and where each episode is recorded."""

    path: Path
    recorded: Recorded
    metrics: RunMetrics
    library: Library
    problems: tuple[tuple[str, tuple[Row, ...]], ...]
    """The episodes that count or that others continued, by problem."""

    @property
    def title(self) -> str:
        """The run's name."""
        return self.path.resolve().name

    def episodes(self, rows: Sequence[Row]) -> Iterator[Trajectory]:
        """The whole episodes of these rows. Raises BadInput if one can no longer be read."""
        for row in rows:
            read = self.library.episode(row)
            if isinstance(read, BadLine):
                raise BadInput(f"{read}; the file changed meanwhile; try again")
            yield read


def read_run(path: Path, on_bad_line: Callable[[BadLine], None]) -> Run:
    """Reads a run folder, a trajectory file, or all trajectory files of a folder.

    Raises:
        BadInput: if there is nothing to report.
    """
    recorded, metrics = read_figures(path, None, on_bad_line)
    folder = RunFolder(path)
    library = Library(folder.trajectories_file if folder.config_file.exists() else path)
    for _ in range(2):  # twice, for episodes that end meanwhile
        library.advance()
        library.refresh()
    # The last of several with the same id counts.
    rows = {(row.problem, row.episode_id): row for row in library.rows}
    problems: list[tuple[str, tuple[Row, ...]]] = []
    for each in gather(recorded.episodes, recorded.ratios):
        ids = (sample.trajectory.episode_id for sample in each.episodes)
        problems.append((each.problem, tuple(rows[each.problem, name] for name in ids)))
    return Run(path, recorded, metrics, library, tuple(problems))


def default_file(path: Path) -> Path:
    """Where the report of a run goes by default: into its folder, or beside its file."""
    if path.is_dir():
        return path / "report.html"
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.report.html")


def write_report(
    run: Run, out: Path, on_page: Callable[[int, int], None], room: Room = SINGLE
) -> Path:
    """Writes the report of a run: a `.html` file, or a `.md` file with the tables only.

    `on_page` is called after each page of trajectories, with their number so far and in total.
    """
    if out.suffix not in (".html", ".md"):
        raise BadInput(f"cannot write a report to {out}: use a name that ends in .html or .md")
    if out.suffix == ".md":
        report = summarise(run.title, run.recorded, run.metrics, {})
        write_text(out, markdown_page(**report))
        return out
    rows = [row for _, each in run.problems for row in each]
    if room.holds(rows):
        report = summarise(run.title, run.recorded, run.metrics, {})
        write_text(out, _page(report, run.episodes(rows)))
        return out
    beside = _pages_beside(run, out, room)
    folder = out.with_name(f"{out.stem}_trajectories")
    folder.mkdir(exist_ok=True)
    for number, (name, each) in enumerate(beside, start=1):
        text = page(f"{run.title}: {each[0].problem}", run.episodes(each), f"../{quote(out.name)}")
        write_text(folder / name, text)
        on_page(number, len(beside))
    shown = ((f"{quote(folder.name)}/{name}", row) for name, each in beside for row in each)
    pages = {(row.problem, row.episode_id): address for address, row in shown}
    write_text(out, _page(summarise(run.title, run.recorded, run.metrics, pages)))
    return out


def _pages_beside(run: Run, out: Path, room: Room) -> list[tuple[str, list[Row]]]:
    """The names of the pages of trajectories, each with its episodes."""
    found: list[tuple[str, list[Row]]] = []
    for number, (problem, rows) in enumerate(run.problems, start=1):
        for part, each in enumerate(_parts(rows, room), start=1):
            name = re.sub(r"[^A-Za-z0-9_-]+", "-", problem)[:60]
            found.append((f"{number:03}-{name}{f'.{part}' if part > 1 else ''}.html", each))
    return found


def _parts(rows: Sequence[Row], room: Room) -> Iterator[list[Row]]:
    """The rows in parts that fit into a page."""
    part: list[Row] = []
    for row in rows:
        if part and not room.holds([*part, row]):
            yield part
            part = []
        part.append(row)
    yield part


_HERE = "kevin_env.app.report"
_SCRIPTS = ("figures.js", "problems.js", "roofline.js", "report.js")


def _page(report: Mapping[str, Any], episodes: Iterable[Trajectory] = ()) -> str:
    """The HTML page of a report, with the trajectories that are not in other pages."""
    said = {"home": "#report", "report": report, "looks": CATEGORIES | {NOISY: "noisy"}}
    return document(
        f"{report['title']} - kevin-env report",
        episodes_data(report["title"], episodes) | said,
        "".join(asset(_HERE, name) for name in _SCRIPTS),
        asset(_HERE, "report.css"),
    )


def markdown_page(**fields: Any) -> str:
    """A page of Markdown: title, facts, `grids` as by `grid_of`, notes, or all of `summarise`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_HERE, "assets"), trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["inline"] = lambda value: inline(str(value))
    environment.filters["percent"] = lambda value: "" if value is None else f"{value:.1%}"
    return environment.get_template("report.md.j2").render(fields)
