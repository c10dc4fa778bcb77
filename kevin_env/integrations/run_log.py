"""What `kevin-env eval` shows in TensorBoard: each episode when it has ended, and the figures of
the run.

The steps are the episodes of the run that have ended, in the order of its trajectory file, counted
from 1. That order never changes, so that a run which is taken up goes on where it stopped, also
after a kill between an episode and its point.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.search import AGAIN
from kevin_env.integrations.tensorboard import TensorBoardLogger
from kevin_env.record import Trajectory
from kevin_env.recorder import read_line

FOLDER = "tensorboard"
"""Of a run folder."""

_NOT_ENDED = frozenset({*AGAIN, "pruned"})


class RunLog:
    """Follows the trajectory file of a run. May be called from several threads.

    An episode is a batch of its own, as `TensorBoardLogger.log_batch` has them. Those that are to
    be taken up again wait until they are, those that a beam dropped are left out.

    Args:
        trajectories: the file; event files go into the folder `tensorboard` beside it.
        episodes: how many there will be.

    Raises:
        ImportError: if TensorBoard is not installed.
        OSError: if the folder cannot be written, as from every method.
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
        """Episodes of the lines that were added. One that is being written is left for the next
        time.
        """
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
