"""What a report of the sandbox says was tried."""

from collections.abc import Callable
from functools import partial
from typing import Any

from judges import Lent

from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.protection import find_held, sandbox_of
from kevin_env.judge.workers.worker import Worker


class Moderate(Lent):
    """A fork server whose candidates use too much of nothing, so that none is killed for it."""

    def fork(self, order: dict[str, Any], fds: tuple[int, ...]) -> None:
        super().fork(order | {"attempt": "little"}, fds)


def test_limits_hold_only_if_a_candidate_is_killed_for_its_excess(
    servers: Callable[[LevelName], ForkServer],
) -> None:
    held = find_held(partial(Worker, Moderate(servers("root")), "cpu"), seconds=0.1)
    assert "limits" not in held and "network" in held


def test_a_protection_has_to_hold_each_time() -> None:
    told = sandbox_of({"network", "limits"}, {"network", "processes"})
    assert told.model_dump() == {
        "network": "enforced", "filesystem": "missing", "limits": "missing", "processes": "missing"
    }  # fmt: skip
