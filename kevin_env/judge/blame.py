"""Whose doing the end of a submission is. Pure."""

from kevin_env.outcome import Outcome

RETRIED_ALONE = ("out_of_memory", "timeout")
"""Ends that a neighbour on the device can cause; they are verdicts only when they happen alone. So are a limit, since
that of device memory follows from what is free, and a SIGKILL, which the kernel gives to somebody when the machine's
memory is used up."""
LEAST_FREE = 0.4
"""Share of a GPU's memory that is free beside a submission, unless others hold it: the judge and its own processes
need less than the rest."""


def may_be_others_doing(outcome: Outcome, shot: bool, limited: bool, beside: bool) -> bool:
    """Whether a submission's end may be the doing of others, or of the machine.

    Args:
        outcome: Its verdict so far.
        shot: Whether its process was killed by nobody who says so.
        limited: Whether it was killed for a limit.
        beside: Whether others were under way when it began, or when it ended.
    """
    if outcome.category not in ("compile", "runtime"):
        return False
    return shot or (beside and (outcome.kind in RETRIED_ALONE or limited))


def lacked_what_others_hold(outcome: Outcome, limited: bool, free: int, memory: int | None) -> bool:
    """Whether a submission that was alone may have lacked memory that somebody holds of whom this judge knows nothing.

    Args:
        outcome: Its verdict so far.
        limited: Whether it was killed for a limit, which follows from what is free.
        free: Bytes that are free on its device without it.
        memory: Bytes that its GPU has; None on a CPU.
    """
    if memory is None or outcome.category not in ("compile", "runtime"):
        return False
    return (outcome.kind == "out_of_memory" or limited) and free < LEAST_FREE * memory
