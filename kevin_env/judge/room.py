"""Whether strangers hold a device's memory, once they have had time to give it back."""

import time

from kevin_env.judge.bench import Bench
from kevin_env.judge.worker import Worker

PATIENCE = 10.0
"""Seconds. With five judges on one H200, whose submissions come and go within two, one of a hundred that were judged
alone met most of the memory taken."""
LOOK = 1.0
"""Seconds between two looks, which ask the driver."""


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
