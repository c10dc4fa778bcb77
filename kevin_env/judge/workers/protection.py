"""Which protections the sandbox of a judge gives, shown by candidates that try to break them."""

from collections.abc import Collection
from typing import get_args

from kevin_env.judge.api import Level, Sandbox
from kevin_env.judge.sandbox.attempts import EXCESS_SECONDS, Excess, Protection
from kevin_env.judge.workers.errors import CandidateError, Ended
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker

MEMORY = 256 << 20
"""Bytes that a candidate may use which tries to use more."""


def find_held(
    server: ForkServer, device: str, seconds: float = EXCESS_SECONDS
) -> frozenset[Protection]:
    """The protections that withstand everything that a candidate of this server can try.

    Args:
        server: Starts the candidates.
        device: `cpu` or `cuda:0`.
        seconds: In which a candidate that uses too much has to be killed.

    Raises:
        JudgeError: if a candidate does not start.
    """
    worker = Worker(server, device, MEMORY, attempt="everything")
    worker.close()
    ends = [_is_ended(server, device, excess, seconds) for excess in get_args(Excess)]
    return frozenset(worker.held) - ({"limits"} if not all(ends) else set())


def sandbox_of(*held: Collection[Protection]) -> Sandbox:
    """The report of a candidate: enforced is what held each time."""

    def level(protection: Protection) -> Level:
        return "enforced" if all(protection in once for once in held) else "missing"

    return Sandbox(
        network=level("network"), filesystem=level("filesystem"),
        limits=level("limits"), processes=level("processes"),
    )  # fmt: skip


def _is_ended(server: ForkServer, device: str, excess: Excess, seconds: float) -> bool:
    worker = Worker(server, device, MEMORY, attempt=excess)
    try:
        worker.answer(seconds)
    except Ended as end:
        return end.limit is not None
    except CandidateError:
        return False
    finally:
        worker.close()
    return False
