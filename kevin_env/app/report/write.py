"""Reads a run and writes its report."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.evaluation import Recorded, read_recorded
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.samples import gather
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.page import page
from kevin_env.app.replay.rows import Row
from kevin_env.app.report.markdown import report_markdown
from kevin_env.app.report.page import report_page
from kevin_env.app.report.summary import summarise
from kevin_env.app.writing import write_text
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine


@dataclass(frozen=True)
class Room:
    """How much goes into one page."""

    episodes: int = 300
    bytes: int = 30_000_000
    """Of their records."""

    def holds(self, rows: Sequence[Row]) -> bool:
        """Whether these episodes fit."""
        return len(rows) <= self.episodes and sum(row.place.size for row in rows) <= self.bytes


SINGLE = Room()
"""A run with no more than this is one page. A larger one has its trajectories beside it, in pages
for each problem that hold no more than this, in the folder `<name of the report>_trajectories`.
"""


@dataclass(frozen=True)
class Run:
    """A run that has been read: what its figures come from, and where each of its episodes is
    recorded.
    """

    path: Path
    recorded: Recorded
    metrics: RunMetrics
    library: Library
    problems: tuple[tuple[str, tuple[Row, ...]], ...]
    """The episodes that count or that others came from, by problem."""

    @property
    def title(self) -> str:
        """Its name."""
        return self.path.resolve().name

    def episodes(self, rows: Sequence[Row]) -> Iterator[Trajectory]:
        """The episodes of these rows, whole.

        Raises:
            BadInput: if one cannot be read any more.
        """
        for row in rows:
            read = self.library.episode(row)
            if isinstance(read, BadLine):
                raise BadInput(f"{read}; it changed while it was read, try again")
            yield read


def read_run(path: Path, on_bad_line: Callable[[BadLine], None]) -> Run:
    """Reads a run folder, a trajectory file, or all in a folder.

    Raises:
        BadInput: if there is nothing to report.
    """
    recorded = read_recorded(path, None, on_bad_line)
    metrics = recorded.measured()
    if metrics is None:
        raise BadInput(f"{path} holds no trajectory with a turn")
    folder = RunFolder(path)
    library = Library(folder.trajectories_file if folder.config_file.exists() else path)
    for _ in range(2):  # again, for what ended while it was read
        while library.advance(1.0):
            pass
        library.refresh()
    # Of several with the same id the last counts.
    rows = {(row.problem, row.episode_id): row for row in library.rows}
    problems = (
        (
            each.problem,
            tuple(rows[each.problem, sample.trajectory.episode_id] for sample in each.episodes),
        )
        for each in gather(recorded.episodes, recorded.ratios)
    )
    return Run(path, recorded, metrics, library, tuple(problems))


def default_file(path: Path) -> Path:
    """Where the report of a run goes when nobody says: into its folder, or beside its file."""
    return (
        path / "report.html"
        if path.is_dir()
        else path.with_name(f"{path.name.removesuffix('.jsonl')}.report.html")
    )


def write_report(
    run: Run, out: Path, on_page: Callable[[int, int], None], room: Room = SINGLE
) -> Path:
    """Writes the report of a run.

    Args:
        run: the run.
        out: `.html`, or `.md` for its tables alone.
        on_page: is told of each page beside it how many are written, of how many.
        room: how much goes into a page.

    Raises:
        BadInput: if it cannot be written.
    """
    if out.suffix not in (".html", ".md"):
        raise BadInput(f"cannot write a report to {out}: its name must end in .html or .md")
    if out.suffix == ".md":
        write_text(out, report_markdown(summarise(run.title, run.recorded, run.metrics, {})))
        return out
    rows = [row for _, each in run.problems for row in each]
    if room.holds(rows):
        report = summarise(run.title, run.recorded, run.metrics, {})
        write_text(out, report_page(report, run.episodes(rows)))
        return out
    beside = _pages_beside(run, out, room)
    folder = out.with_name(f"{out.stem}_trajectories")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write {folder}: {error.strerror}") from error
    for number, (name, each) in enumerate(beside, start=1):
        text = page(f"{run.title}: {each[0].problem}", run.episodes(each), f"../{quote(out.name)}")
        write_text(folder / name, text)
        on_page(number, len(beside))
    pages = {
        (row.problem, row.episode_id): f"{quote(folder.name)}/{name}"
        for name, each in beside
        for row in each
    }
    write_text(out, report_page(summarise(run.title, run.recorded, run.metrics, pages)))
    return out


def _pages_beside(run: Run, out: Path, room: Room) -> list[tuple[str, list[Row]]]:
    """The names of the pages beside a report, each with what it shows."""
    found: list[tuple[str, list[Row]]] = []
    for number, (problem, rows) in enumerate(run.problems, start=1):
        for part, each in enumerate(_parts(rows, room), start=1):
            name = re.sub(r"[^A-Za-z0-9_-]+", "-", problem)[:60]
            found.append((f"{number:03}-{name}{f'.{part}' if part > 1 else ''}.html", each))
    return found


def _parts(rows: Sequence[Row], room: Room) -> Iterator[list[Row]]:
    """The rows in as many parts as there must be."""
    part: list[Row] = []
    for row in rows:
        if part and not room.holds([*part, row]):
            yield part
            part = []
        part.append(row)
    yield part
