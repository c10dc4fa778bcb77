"""The folder of a run.

It holds `config.toml`, `trajectories.jsonl` with the unfinished episodes beside it,
`baselines.json`, and the results `metrics.json` and `summary.csv`. One evaluation at a
time can hold its lock and write to it; reading needs no lock.
"""

import contextlib
import csv
import fcntl
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import EvalConfig, read_config
from kevin_env.app.evaluate.figures import Prices, RunMetrics
from kevin_env.app.evaluate.metrics import measure
from kevin_env.app.evaluate.samples import answered, without_texts
from kevin_env.app.evaluate.tables import summary_row
from kevin_env.app.writing import whole, write_text
from kevin_env.judge.api import DeviceInfo
from kevin_env.outcome import Frozen, Printable
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, Recorder, read_trajectories

OnBadLine = Callable[[BadLine], None]


class Compared(Frozen):
    """T_compile / T_eager of a problem's reference, measured by `kevin_env.app.evaluate.run`.

    A speedup over eager times this ratio is the speedup over torch.compile.
    """

    sha256: str
    """Of the problem."""
    ratio: float | None
    """None if it could not be measured; `why` says why."""
    interval: tuple[float, float] | None = None
    """95 % interval of the ratio."""
    why: Printable = ""
    device: DeviceInfo


_COMPARED = TypeAdapter(dict[str, Compared])


@dataclass(frozen=True)
class Recorded:
    """The recorded part of a run."""

    episodes: Sequence[Trajectory]
    """Without the texts of their turns."""
    ratios: Mapping[str, float]
    """T_compile / T_eager by problem id."""
    prices: Prices | None

    def measured(self) -> RunMetrics | None:
        """The figures; None while nothing was answered."""
        if not any(map(answered, self.episodes)):
            return None
        return measure(self.episodes, ratios=self.ratios, prices=self.prices)


class RunFolder:
    """The folder of one evaluation, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.toml"
        self.trajectories_file = path / "trajectories.jsonl"
        self.baselines_file = path / "baselines.json"
        self.metrics_file = path / "metrics.json"
        self.summary_file = path / "summary.csv"
        self.recorder = Recorder(self.trajectories_file)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock until the block or the process ends. Removes a new folder left empty.

        Raises:
            BadInput: if another evaluation holds it.
            OSError: if the folder cannot be written.
        """
        new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                said = "wait for it, stop it, or use another --out"
                raise BadInput(
                    f"another kevin-env eval is writing to {self.path}: {said}"
                ) from None
            try:
                yield
            finally:
                if new and [path.name for path in self.path.glob("*")] == [".lock"]:
                    shutil.rmtree(self.path)

    def config(self) -> EvalConfig:
        """The recorded configuration, with this folder as `out`.

        Raises:
            BadInput: if this is not a run folder, or its configuration cannot be read.
        """
        if not self.config_file.exists():
            raise BadInput(f"{self.path} is not a run folder: it has no config.toml")
        return read_config(self.config_file, flags={"out": str(self.path)})

    def trajectories(self, on_bad_line: OnBadLine) -> list[Trajectory]:
        """As `read_episodes`; empty if no episode was started."""
        file = self.trajectories_file
        return read_episodes(file, on_bad_line) if file.exists() else []

    def compared(self) -> dict[str, Compared]:
        """The comparisons with torch.compile, by problem id.

        Raises:
            BadInput: if the file cannot be read.
        """
        if not self.baselines_file.exists():
            return {}
        try:
            return _COMPARED.validate_json(self.baselines_file.read_bytes())
        except ValidationError as error:
            said = f"cannot read {self.baselines_file}; delete it to have it measured again"
            raise BadInput(said) from error

    def recorded(self, prices: Prices | None, on_bad_line: OnBadLine) -> Recorded:
        """Everything that the figures are computed from.

        Raises:
            BadInput: if a file cannot be read.
        """
        known = self.compared().items()
        ratios = {name: each.ratio for name, each in known if each.ratio is not None}
        return Recorded(self.trajectories(on_bad_line), ratios, prices)

    def write_config(self, config: EvalConfig) -> None:
        """Writes `config.toml`."""
        write_text(self.config_file, config.toml())

    def write_compared(self, compared: Mapping[str, Compared]) -> None:
        """Writes `baselines.json`."""
        text = _COMPARED.dump_json(dict(compared), indent=2).decode()
        write_text(self.baselines_file, text + "\n")

    def write_metrics(self, metrics: RunMetrics) -> None:
        """Writes `metrics.json`, and `summary.csv` with a row per problem."""
        write_text(self.metrics_file, metrics.model_dump_json(indent=2) + "\n")
        rows = [summary_row(each) for each in metrics.problems]
        with (
            whole(self.summary_file) as scratch,
            scratch.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def read_figures(
    path: Path, prices: Prices | None, on_bad_line: OnBadLine
) -> tuple[Recorded, RunMetrics]:
    """Reads a run folder, a trajectory file, or all trajectory files of a folder.

    Args:
        path: the file or folder.
        prices: of tokens; by default those of the run's configuration.
        on_bad_line: called with each unreadable line.

    Raises:
        BadInput: if there is nothing to measure, or a file of a run folder cannot be read.
    """
    folder = RunFolder(path)
    if folder.config_file.exists():
        recorded = folder.recorded(prices or folder.config().prices, on_bad_line)
    else:
        recorded = Recorded(_loose_episodes(path, on_bad_line), {}, prices)
    metrics = recorded.measured()
    if metrics is None:
        raise BadInput(f"{path} holds no trajectory with a turn")
    return recorded, metrics


def read_episodes(file: Path, on_bad_line: OnBadLine) -> list[Trajectory]:
    """All episodes of a trajectory file, without the texts of their turns.

    Finished ones come first, in the order in which they ended. Of several with the same id the
    last counts.

    Args:
        file: the trajectory file.
        on_bad_line: called with each unreadable line, except for a turn that was being written
            when the process was killed.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    found: dict[str, Trajectory] = {}
    for each in read_trajectories(file):
        if isinstance(each, Trajectory):
            found[each.episode_id] = without_texts(each)
        elif each.path == file or not each.reason.startswith("half-written"):
            on_bad_line(each)
    return list(found.values())


def _loose_episodes(path: Path, on_bad_line: OnBadLine) -> list[Trajectory]:
    """Episodes without sample numbers, since no evaluation gave them: equal ones mean nothing."""
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    files = [file for file in files if not file.name.endswith(".partial.jsonl")]
    found = [each for file in files for each in read_episodes(file, on_bad_line)]
    return [each.model_copy(update={"sample": None}) for each in found]
