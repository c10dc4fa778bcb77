"""What a run tells to whoever looks on."""

from typing import Literal, Protocol

from kevin_env.app.evaluate.baselines import Compared
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.record import StopReason, Turn

Waiting = Literal["model", "judge"]


class Watch(Protocol):
    """Is told what happens, from several threads."""

    def waits(self, problem: str, sample: int, whom: Waiting | None) -> None:
        """A sample waits for the model or the judge, or for nobody any more."""
        ...

    def turn(self, problem: str, sample: int, turn: Turn) -> None:
        """A turn has been judged."""
        ...

    def ended(self, problem: str, sample: int, turns: int, reason: StopReason, why: str) -> None:
        """A sample ended with that many turns. `why` is empty unless something failed."""
        ...

    def compared(self, problem: str, compared: Compared) -> None:
        """torch.compile has been compared with eager."""
        ...

    def failed(self, problem: str, why: str) -> None:
        """A problem cannot be played at all."""
        ...

    def trouble(self, message: str) -> None:
        """Something else that a person should know."""
        ...


class Log(Protocol):
    """Keeps what becomes of a run for whoever looks at it elsewhere."""

    def follow(self) -> None:
        """Episodes may have ended. Called from several threads.

        Raises:
            OSError: if it cannot be kept.
        """
        ...

    def conclude(self, metrics: RunMetrics) -> None:
        """The figures of what there is.

        Raises:
            OSError: if they cannot be kept.
        """
        ...
