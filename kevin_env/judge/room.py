"""Whether a submission has the device memory that it must be given, or others hold it."""

import time

import torch

from kevin_env.judge.bench import Bench
from kevin_env.judge.capacity import CONTEXT
from kevin_env.judge.trial import Trial
from kevin_env.judge.worker import Worker

PATIENCE = 10.0
"""Seconds. With five judges on one H200, whose submissions come and go within two, one of a hundred that were judged
alone met most of the memory taken."""
LOOK = 1.0
"""Seconds between two looks, which ask the driver."""
FAIR = 2
"""How many times what right answers and weights take a submission must have room for, before it is blamed."""


def stays_crowded(bench: Bench, worker: Worker) -> bool:
    """Whether a device is crowded beside a candidate that is judged alone, also when others had time.

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


def cramped(trial: Trial) -> bool:
    """Whether a submission that has just failed had less of the device than it must be given.

    What it holds itself counts as its own, so that whoever hoards memory is not short of it.
    """
    if trial.bench.device.type == "cpu" or trial.place.step == "build":
        return False
    weights = sum(tensor.nbytes for tensor in trial.case.model.state_dict().values())
    had = torch.cuda.mem_get_info(trial.bench.device)[0] + trial.bench.held(trial.worker)
    return had < CONTEXT + FAIR * (trial.gate.answer_bytes + weights)
