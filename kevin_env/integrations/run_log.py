"""The interface of what records a training run by batch, such as `TensorBoardLogger`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kevin_env.record import Trajectory


class BatchLog(Protocol):
    """Gets the episodes of every batch."""

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
        ...
