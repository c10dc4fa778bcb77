"""The interface of loggers of a training run or an evaluation, and `EpisodeFollower`.

`TensorBoardLogger` and `WandbLogger` implement it:

    with TensorBoardLogger("runs/kevin") as logger:
        for step, episodes in enumerate(batches):
            logger.log_batch(step, episodes, advantages=..., timing={"train": 12.5},
                             optimizer={"learning_rate": 2e-6})
        logger.log_run(step, measure(held_out))
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.search import AGAIN
from kevin_env.integrations.scalars import batch_distributions, batch_scalars, camel, run_scalars
from kevin_env.record import Trajectory
from kevin_env.recorder import read_line


class RunLogger(ABC):
    """Logs by step. An implementation provides `write` and `close`."""

    @abstractmethod
    def write(
        self, step: int, scalars: Mapping[str, float], distributions: Mapping[str, Sequence[float]]
    ) -> None:
        """Writes numbers, which need not be finite, and values for histograms, by name."""

    @abstractmethod
    def close(self) -> None:
        """Closes the log. Idempotent."""

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
        scalars |= {f"Timing/{camel(name)}": value for name, value in (timing or {}).items()}
        scalars |= {f"Optimizer/{camel(name)}": value for name, value in (optimizer or {}).items()}
        if progress is not None:
            scalars["Progress/CompletionFraction"] = progress
        self.write(step, scalars, batch_distributions(episodes, advantages))

    def log_run(self, step: int, metrics: RunMetrics) -> None:
        """Logs the figures of an evaluation.

        Args:
            step: after how many batches it was run; 0 for a model that is not trained.
            metrics: its figures.
        """
        self.write(step, run_scalars(metrics), {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class EpisodeFollower:
    """Logs the episodes of a trajectory file as they end. Thread-safe.

    Each episode is a batch, as in `RunLogger.log_batch`, whose step is its number in the file, from
    1; the order never changes, so that a resumed run continues. Episodes to be resumed wait, and
    those pruned by a beam search are excluded.

    Args:
        trajectories: the file.
        episodes: expected number of episodes.
        loggers: closed by `close`.
    """

    def __init__(self, trajectories: Path, episodes: int, loggers: Sequence[RunLogger]) -> None:
        self._file, self._episodes, self._loggers = trajectories, episodes, loggers
        self._read = self._lines = self._step = 0
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Logs the episodes that have ended since it was last called."""
        with self._lock:
            for episode in self._new():
                self._step += 1
                for logger in self._loggers if episode.turns else ():
                    logger.log_batch(self._step, [episode], progress=self._step / self._episodes)

    def conclude(self, metrics: RunMetrics) -> None:
        """Logs the figures of all episodes."""
        self.follow()
        with self._lock:
            for logger in self._loggers:
                logger.log_run(self._step, metrics)

    def close(self) -> None:
        """Ends the logs."""
        for logger in self._loggers:
            logger.close()

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
                episode = read_line(self._file, self._lines, line)
                if isinstance(episode, Trajectory) and episode.stop_reason not in _NOT_ENDED:
                    yield episode


_NOT_ENDED = frozenset({*AGAIN, "pruned"})
