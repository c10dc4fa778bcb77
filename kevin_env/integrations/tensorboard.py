"""TensorBoard logs of training loops and evaluations. Needs the extra `tensorboard`, not torch."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kevin_env.integrations.run_log import RunLogger


class TensorBoardLogger(RunLogger):
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

    def write(
        self, step: int, scalars: Mapping[str, float], distributions: Mapping[str, Sequence[float]]
    ) -> None:
        """See `RunLogger.write`."""
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
                event.summary.MergeFrom(histogram_pb(name, list(values)))
        if event.summary.value:
            self._writer.add_event(event)
            self._writer.flush()

    def close(self) -> None:
        """Closes the event file. Idempotent."""
        self._writer.close()


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
