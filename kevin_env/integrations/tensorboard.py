"""TensorBoard logs of training loops and evaluations. Needs the extra `tensorboard`, not torch.

with TensorBoardLogger("runs/kevin") as logger:
    for step, episodes in enumerate(batches):
        logger.log_batch(step, episodes, advantages=..., timing={"train": 12.5},
                         optimizer={"learning_rate": 2e-6})
    logger.log_run(step, measure(held_out))
"""

import math
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.search import AGAIN
from kevin_env.integrations.scalars import batch_distributions, batch_scalars, run_scalars
from kevin_env.record import Trajectory
from kevin_env.recorder import read_line


class TensorBoardLogger:
    """Writes event files; each call is flushed to disk. Not thread-safe.

    Args:
        folder: created if missing; existing logs stay.
        resume: whether to skip values whose step is already in the event files.

    Raises:
        ImportError: if TensorBoard is not installed.
        OSError: if the folder cannot be written, also from every method.
    """

    def __init__(self, folder: str | Path, *, resume: bool = False) -> None:
        writer = require_tensorboard()
        self._logged = _logged(Path(folder)) if resume else {}
        self._writer = writer(str(folder))

    def log_batch(
        self,
        step: int,
        episodes: Sequence[Trajectory],
        *,
        advantages: Sequence[float] = (),
        timing: Mapping[str, float] | None = None,
        optimizer: Mapping[str, float] | None = None,
        progress: float | None = None,
    ) -> None:
        """Logs one batch of a training loop, with the names of `kevin_env.integrations.scalars`.

        Args:
            step: number of the batch.
            episodes: the episodes, at least one of them with a turn.
            advantages: one per training sample, as the training loop computed them.
            timing: more seconds by name, such as `rollout` and `train`.
            optimizer: values of the optimizer by name, such as `learning_rate`.
            progress: finished share of the training, 0 to 1.

        Raises:
            ValueError: if no episode has a turn.
        """
        scalars = batch_scalars(episodes, advantages)
        scalars |= {f"Timing/{_camel(name)}": value for name, value in (timing or {}).items()}
        scalars |= {f"Optimizer/{_camel(name)}": value for name, value in (optimizer or {}).items()}
        if progress is not None:
            scalars["Progress/CompletionFraction"] = progress
        self._write(step, scalars, batch_distributions(episodes, advantages))

    def log_run(self, step: int, metrics: RunMetrics) -> None:
        """Logs the figures of an evaluation.

        Args:
            step: after how many batches it was run; 0 for a model that is not trained.
            metrics: its figures.
        """
        self._write(step, run_scalars(metrics), {})

    def close(self) -> None:
        """Ends the event file. Closing twice is fine."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(
        self, step: int, scalars: Mapping[str, float], distributions: Mapping[str, Sequence[float]]
    ) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        event: Any = Event(wall_time=time.time(), step=step)
        logged = self._logged.get(step, frozenset())
        for name, value in scalars.items():
            if name not in logged:
                event.summary.MergeFrom(scalar_pb(name, float(value)))
        for name, values in distributions.items():
            if name not in logged:
                # A histogram of what is not finite is an error; its mean and extremes above show
                # it.
                event.summary.MergeFrom(
                    histogram_pb(name, [value for value in values if math.isfinite(value)])
                )
        if event.summary.value:
            self._writer.add_event(event)
            self._writer.flush()


def require_tensorboard() -> Any:
    """The class that writes event files.

    Raises:
        ImportError: if TensorBoard is not installed; the message has the remedy.
    """
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ImportError(
            "TensorBoard is not installed: pip install 'kevin-env[tensorboard]'"
        ) from error
    return EventFileWriter


def _logged(folder: Path) -> dict[int, set[str]]:
    """The names with a value, by step, without half-written records at the end of a file."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    names: defaultdict[int, set[str]] = defaultdict(set)
    for file in sorted(folder.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(file)).Load():
            names[event.step].update(value.tag for value in event.summary.value)
    return dict(names)


def _camel(name: str) -> str:
    """`learning_rate` as `LearningRate`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_\s]+", name))


FOLDER = "tensorboard"
"""Of a run folder."""

_NOT_ENDED = frozenset({*AGAIN, "pruned"})


class RunLog:
    """Follows the trajectory file of a run. Thread-safe.

    Each episode is a batch, as in `TensorBoardLogger.log_batch`, whose step is its number in the
    file, from 1; the order never changes, so that a resumed run continues. Episodes to be resumed
    wait, and those that a beam search pruned are left out.

    Args:
        trajectories: the file; event files go to the folder `tensorboard` next to it.
        episodes: expected number of episodes.

    Raises:
        ImportError: if TensorBoard is not installed.
        OSError: if the folder cannot be written, also from every method.
    """

    def __init__(self, trajectories: Path, episodes: int) -> None:
        self._file, self._episodes = trajectories, episodes
        self._logger = TensorBoardLogger(trajectories.parent / FOLDER, resume=True)
        self._read = self._lines = self._step = 0
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Logs the episodes that have ended since it was last called."""
        with self._lock:
            for episode in self._new():
                self._step += 1
                if episode.turns:
                    self._logger.log_batch(
                        self._step, [episode], progress=self._step / self._episodes
                    )

    def conclude(self, metrics: RunMetrics) -> None:
        """Logs the figures of all that there is."""
        self.follow()
        with self._lock:
            self._logger.log_run(self._step, metrics)

    def close(self) -> None:
        """Ends the event file."""
        self._logger.close()

    def _new(self) -> Iterator[Trajectory]:
        """Episodes of new lines; a half-written line waits for the next call."""
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                self._lines += 1
                found = read_line(self._file, self._lines, line)
                if isinstance(found, Trajectory) and found.stop_reason not in _NOT_ENDED:
                    yield found
