"""A run on disk: `config.toml`, `trajectories.jsonl` and what still runs beside it,
`baselines.json`, and the results.

One evaluation at a time writes to a folder, which a lock holds for it; whoever only reads needs
none.
"""

import contextlib
import csv
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import EvalConfig, read_config
from kevin_env.judge.api import DeviceInfo, JudgePool, Options, Submission
from kevin_env.outcome import Frozen, Printable, interval_of, speedup_of
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem
from kevin_env.record import Trajectory, Turn
from kevin_env.recorder import BadLine, Recorder, read_trajectories
from kevin_env.settings import Settings


class Compared(Frozen):
    """T_compile / T_eager of a problem's reference: a speedup against eager times this is one
    against torch.compile.
    """

    sha256: str
    """Of the problem."""
    ratio: float | None
    """None when it could not be told; `why` says so."""
    interval: tuple[float, float] | None = None
    """95 %."""
    why: Printable = ""
    device: DeviceInfo


_COMPARED = TypeAdapter(dict[str, Compared])
_NO_TEXTS: dict[str, Any] = {
    "messages": (),
    "reply": "",
    "reasoning": None,
    "summary": "",
    "feedback": "",
    "log": "",
}


class RunFolder:
    """The folder of one evaluation.

    Args:
        path: it need not be there yet.
    """

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
        """Keeps other evaluations out, until the block ends or the process does, however it does.

        Raises:
            BadInput: if another one is writing here, or nobody can.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise BadInput(f"cannot write to {self.path}: {error.strerror}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                said = "wait for it, end it, or give another --out"
                raise BadInput(
                    f"another kevin-env eval is writing to {self.path}: {said}"
                ) from None
            yield

    def config(self) -> EvalConfig:
        """What was configured, with this folder as `out`.

        Raises:
            BadInput: if there is no run here, or its configuration cannot be read.
        """
        if not self.config_file.exists():
            raise BadInput(f"{self.path} is no run folder: it has no config.toml")
        return read_config(self.config_file, flags={"out": str(self.path)})

    def write_config(self, config: EvalConfig) -> None:
        """Keeps a configuration."""
        self._replace(self.config_file, config.toml())

    def trajectories(self, on_bad_line: Callable[[BadLine], None]) -> list[Trajectory]:
        """Every episode, without the texts of its turns: those that ended, in the order in which
        they did, then others.

        None where nothing was begun. See `read_episodes`.
        """
        return (
            read_episodes(self.trajectories_file, on_bad_line)
            if self.trajectories_file.exists()
            else []
        )

    def compared(self) -> dict[str, Compared]:
        """What is known of torch.compile, by problem id.

        Raises:
            BadInput: if the file cannot be read.
        """
        if not self.baselines_file.exists():
            return {}
        try:
            return _COMPARED.validate_json(self.baselines_file.read_bytes())
        except (OSError, ValidationError) as error:
            raise BadInput(
                f"cannot read {self.baselines_file}; delete it to have it made anew"
            ) from error

    def write_compared(self, compared: Mapping[str, Compared]) -> None:
        """Keeps what is known of torch.compile."""
        self._replace(
            self.baselines_file, _COMPARED.dump_json(dict(compared), indent=2).decode() + "\n"
        )

    def write_metrics(self, metrics: BaseModel, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keeps the figures, and a line of them for each problem."""
        self._replace(self.metrics_file, metrics.model_dump_json(indent=2) + "\n")
        with (
            self._scratch(self.summary_file) as scratch,
            scratch.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, list(rows[0]) if rows else [])
            writer.writeheader()
            writer.writerows(rows)

    def _replace(self, path: Path, text: str) -> None:
        with self._scratch(path) as scratch:
            scratch.write_text(text, encoding="utf-8")

    @contextlib.contextmanager
    def _scratch(self, path: Path) -> Iterator[Path]:
        """A file to write to; it takes the place of `path` at once and whole."""
        self.path.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f"{path.name}.tmp")
        yield scratch
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        scratch.replace(path)


def read_episodes(file: Path, on_bad_line: Callable[[BadLine], None]) -> list[Trajectory]:
    """Every episode of a trajectory file, without the texts of its turns. Of several with the same
    id the last counts.

    Args:
        file: the trajectory file.
        on_bad_line: is told of each line that cannot be read. One that is half-written was cut off
            by a kill.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    found: dict[str, Trajectory] = {}
    for each in read_trajectories(file):
        if isinstance(each, Trajectory):
            found[each.episode_id] = without_texts(each)
        elif not each.reason.startswith("half-written"):
            on_bad_line(each)
    return list(found.values())


def without_texts(trajectory: Trajectory) -> Trajectory:
    """The episode without what is only for reading: a run's chats do not fit in memory, its figures
    do.
    """
    turns = tuple(map(_without_texts, trajectory.turns))
    problem = trajectory.problem.model_copy(update={"source": ""})
    return trajectory.model_copy(update={"turns": turns, "problem": problem})


def _without_texts(turn: Turn) -> Turn:
    return turn.model_copy(update=_NO_TEXTS)


def compare(problem: Problem, settings: Settings, pool: JudgePool) -> Compared:
    """Measures one problem.

    Raises:
        ProblemError: if its reference fails.
        JudgeError: if the judge fails.
    """
    options = Options(
        device=settings.device, baseline="compile", inputs=settings.inputs, call_timeout=settings.call_timeout,
        build_timeout=settings.build_timeout, retry_noisy=True,
    )  # fmt: skip
    submission = Submission(code=as_submission(problem.source))
    judgement = pool.submit(problem, submission, options).result()
    outcome = judgement.outcome
    ratio = speedup_of(outcome)
    return Compared(
        sha256=problem.sha256,
        ratio=ratio,
        interval=interval_of(outcome),
        why="" if ratio else f"{outcome.category}/{outcome.kind}: {outcome.message}",
        device=judgement.device,
    )
