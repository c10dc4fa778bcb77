"""Judges that are soon through: few calls a verdict, and one fork server for all that start in one
process.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kevin_env.judge.api import Pace
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.outcome import Correct

if TYPE_CHECKING:  # these take torch
    from kevin_env.judge.trial import Trial
    from kevin_env.judge.workers.worker import Worker

SECRET = "the-judges-own-secret-b07d1c"
"""In the environment of every fork server, where no submission may read it."""
QUICK = Pace(pairs=(1, 1), seconds=0.0, warm_ups=1, sets=2, sets_of_others=1)
"""For tests of all but what screening finds and how exact times are."""


class Lent(ForkServer):
    """A fork server that whoever has it does not end.

    Args:
        server: The fork server.
        level: The best sandbox level to try for its candidates; by default the server's.
    """

    def __init__(self, server: ForkServer, level: LevelName | None = None) -> None:
        self._server = server
        self._process = server._process
        self._more = {} if level is None else {"level": level}

    @property
    def alive(self) -> bool:
        return self._server.alive

    def warm(self, capability: str) -> None:
        self._server.warm(capability)

    def fork(self, order: dict[str, Any], fds: tuple[int, ...]) -> None:
        self._server.fork(order | self._more, fds)

    def close(self) -> None:
        pass


class ScriptedClock:
    """A judge's clock that times nothing: the script says what it gives for each case.

    Attributes:
        cases: The names of those that it was to time, in order.
        worker: The submission that it was to time last.
    """

    def __init__(self, script: Mapping[str, Correct]) -> None:
        self.script = script
        self.cases: list[str] = []
        self.worker: Worker

    def __call__(self, trial: "Trial") -> Correct:
        self.cases.append(trial.case.name)
        self.worker = trial.worker
        return self.script[trial.case.name]
