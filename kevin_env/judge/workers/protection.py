"""Which protections the sandbox of a judge gives, shown by candidates that try to break them."""

from collections.abc import Callable, Collection
from typing import get_args

from kevin_env.judge.api import Level, Sandbox
from kevin_env.judge.sandbox.attempts import EXCESS_SECONDS, Excess, Protection
from kevin_env.judge.workers.errors import CandidateError, Ended
from kevin_env.judge.workers.worker import Worker

MEMORY = 256 << 20
"""Bytes that a candidate may use which tries to use more."""


def find_held(
    start: Callable[..., Worker], seconds: float = EXCESS_SECONDS
) -> frozenset[Protection]:
    """The protections that withstand everything that a candidate can try.

    Args:
        start: Starts a candidate with `memory` and `attempt`, as `Worker` does.
        seconds: In which a candidate that uses too much has to be killed.

    Raises:
        JudgeError: if a candidate does not start.
    """
    worker = start(memory=MEMORY, attempt="everything")
    worker.close()
    ends = [_is_ended(start, excess, seconds) for excess in get_args(Excess)]
    return frozenset(worker.held) - ({"limits"} if not all(ends) else set())


def sandbox_of(*held: Collection[Protection]) -> Sandbox:
    """The report of a candidate: enforced is what held each time."""

    def level(protection: Protection) -> Level:
        return "enforced" if all(protection in once for once in held) else "missing"

    return Sandbox(
        network=level("network"), filesystem=level("filesystem"),
        limits=level("limits"), processes=level("processes"),
    )  # fmt: skip


def _is_ended(start: Callable[..., Worker], excess: Excess, seconds: float) -> bool:
    worker = start(memory=MEMORY, attempt=excess)
    try:
        worker.answer(seconds)
    except Ended as end:
        return end.limit is not None
    except CandidateError:
        return False
    finally:
        worker.close()
    return False
