"""Whether a submission has the device memory that it must be given, or others hold it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from kevin_env.judge.bench import Bench
from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.handshake.gate import Player
from kevin_env.judge.job import Stopwatch
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.errors import Failed
from kevin_env.judge.workers.pauses import asleep, ended_on_trouble
from kevin_env.judge.workers.worker import Worker

PATIENCE = 10.0
"""Seconds. With five judges on one H200, whose submissions come and go within two, one of a hundred
that were judged alone met most of the memory taken.
"""
LOOK = 1.0
"""Seconds between two looks, which ask the driver."""
FAIR = 3
"""How many times what right answers and weights take a submission must have room for, before it is
blamed: its last outputs, which it is told to keep until there are new ones, these, and as much for
itself.
"""


def stays_crowded(bench: Bench, worker: Worker) -> bool:
    """Whether a device is crowded beside a candidate that is judged alone, also when others had
    time.

    Idle partners of this judge give back what they keep. Hold no lease.
    """
    if not bench.crowded(worker):
        return False
    bench.partners.rest()
    end = time.monotonic() + PATIENCE
    while bench.crowded(worker):
        if time.monotonic() > end:
            return True
        time.sleep(LOOK)
    return False


def is_crowded(bench: Bench, worker: Worker) -> bool:
    """Whether a device is crowded, asked while nobody is timed. Hold no lease."""
    with bench.lease.shared():
        return bench.crowded(worker)


@contextmanager
def leased(trial: Trial, watch: Stopwatch, alone: bool = False) -> Iterator[Callable[..., None]]:
    """Holds the lease, and gives what lets others have it. The submission stands still while it
    waits.

    That takes what is to be done while the lease is not held.
    """
    lease = trial.bench.lease
    with ExitStack() as held:

        def take(meanwhile: Callable[[], None] = lambda: None, wait: bool = True) -> None:
            with watch("queue"), asleep(trial.worker, wait):
                held.close()
                meanwhile()
                held.enter_context(lease.exclusive() if alone else lease.shared())

        take(wait=False)
        with ended_where_it_fails(trial), watch("load"):
            yield take


@contextmanager
def ended_where_it_fails(trial: Trial) -> Iterator[None]:
    """As `ended_on_trouble`; who runs out of memory is looked at before, while it still has what it
    had.
    """
    with ended_on_trouble(trial.worker):
        try:
            yield
        except Failed as failed:
            if failed.failure.kind == "out_of_memory":
                trial.crowded = trial.crowded or cramped(trial)
            raise


def cramped(trial: Trial) -> bool:
    """Whether a submission has less of the device than it must be given. Hold the lease, or the
    device alone.

    What it holds counts as its own, also what it has freed and the judge still maps: whoever hoards
    is not short.
    """
    if trial.bench.device.type == "cpu":
        return False
    mapped = sum(
        each.mappings.size for each in trial.kept if isinstance(each, Player) and not each.ours
    )
    own = max(trial.bench.held(trial.worker), mapped)
    weights = sum(tensor.nbytes for tensor in trial.case.model.state_dict().values())
    fair = CONTEXT + FAIR * (trial.gate.answer_bytes + weights)
    return torch.cuda.mem_get_info(trial.bench.device)[0] + own < fair
