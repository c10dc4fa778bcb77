"""Weights & Biases logs of training loops and evaluations. Needs the extra `wandb`, not torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kevin_env.integrations.run_log import RunLogger


class WandbLogger(RunLogger):
    """Logs to a run of a project. Not thread-safe.

    wandb takes steps in ascending order only: values of an earlier step than the last are dropped.

    Args:
        project: created if missing.
        folder: for local files, in its folder `wandb`.
        resume: whether to continue the last run in `folder`.
        options: more keywords of `wandb.init`, such as `mode="offline"`, `name` and `config`.

    Raises:
        ImportError: if wandb is not installed.
    """

    def __init__(
        self, project: str, *, folder: str | Path = ".", resume: bool = False, **options: Any
    ) -> None:
        self._wandb = require_wandb()
        last = Path(folder, "wandb", "latest-run")
        if resume and last.exists():
            _, _, run = last.resolve().name.partition("run-")  # [offline-]run-DATE_TIME-ID
            options |= {"id": run.partition("-")[2], "resume": "allow"}
        self._run = self._wandb.init(project=project, dir=str(folder), **options)

    def write(
        self, step: int, scalars: Mapping[str, float], distributions: Mapping[str, Sequence[float]]
    ) -> None:
        """See `RunLogger.write`."""
        if step < self._run.step:
            return
        values: dict[str, Any] = {name: float(value) for name, value in scalars.items()}
        values |= {name: self._wandb.Histogram(each) for name, each in distributions.items()}
        self._run.log(values, step=step)

    def close(self) -> None:
        """Ends the run. Idempotent."""
        self._run.finish()


def require_wandb() -> Any:
    """The module `wandb`.

    Raises:
        ImportError: if it is not installed; the message has the remedy.
    """
    try:
        import wandb
    except ImportError as error:
        raise ImportError("wandb is not installed: pip install 'kevin-env[wandb]'") from error
    return wandb
