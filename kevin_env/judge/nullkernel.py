"""The kernel that does nothing for a known time: its calls tell what the gate costs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch

from kevin_env.candidate import null as model
from kevin_env.candidate import tree
from kevin_env.judge.device import event_seconds
from kevin_env.judge.partners import PARTNER_SECONDS, ours
from kevin_env.judge.pauses import awake
from kevin_env.judge.trial import Trial
from kevin_env.judge.worker import Worker

HOLD = 120_000
"""Clock cycles, some 60 us, for which the null kernel keeps a GPU. As in any call of some length, its claim is written
meanwhile; after a kernel that ends at once that would be time of the gate's, and taken away from everybody."""
HOLDS = 5
"""How often the judge times that kernel itself; one that is longer once, as what it varies by is as long."""

LONG_CALL, LONGEST_HOLD = 1e-3, 20e-3
"""Where all calls take longer than this it keeps a GPU as long, up to so many seconds: after a long wait a look costs
some 0.1 ms more on an H200."""


def null_code() -> str:
    """The source of its model."""
    return Path(str(model.__file__)).read_text(encoding="utf-8")


def held(cycles: int, times: int) -> float:
    """Seconds for which the null kernel keeps this GPU, the median of so many times after one that does not count."""
    return event_seconds(lambda: torch.cuda._sleep(cycles), times)  # pyright: ignore[reportPrivateUsage]


def construct_null(trial: Trial, null: Worker, cycles: int) -> None:
    """Gives the null model a GPU to keep for so many cycles, and outputs like the reference's: looking costs the same.

    On a CPU it has none. Outputs are copied to the outbox there; taken away as part of the gate, the copy would be paid
    to whoever gets around it.
    """
    outputs, cycles = (trial.outputs, cycles) if trial.bench.device.type == "cuda" else ([], 0)
    init = tree.take_apart([[list(t.shape) for t in outputs], [t.dtype for t in outputs], cycles])[0]
    null.ask(
        "construct", PARTNER_SECONDS, init=init, tensors=[], state={}, parameters=[], seed=0,
        compiled=False, precision="ieee",
    )  # fmt: skip


def held_as_long(trial: Trial, null: Worker, seconds: float, short: float) -> AbstractContextManager[float]:
    """Has the null kernel, which stands still, keep a GPU for so long, if that is long, else `short`. Seconds."""
    seconds = min(seconds, LONGEST_HOLD)
    if trial.bench.device.type == "cpu" or seconds <= LONG_CALL:
        return nullcontext(short)
    return _held_longer(trial, null, seconds / short)


@contextmanager
def _held_longer(trial: Trial, null: Worker, times: float) -> Iterator[float]:
    """Has the null kernel, which stands still, keep a GPU so many times as long, and gives for how many seconds."""
    cycles = int(HOLD * times)
    with ours(), awake(null):
        construct_null(trial, null, cycles)
    yield held(cycles, 1)
    with ours(), awake(null):  # where this is not reached, whoever is judged next constructs it
        construct_null(trial, null, HOLD)
