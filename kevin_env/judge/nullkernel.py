"""The kernel that does nothing for a known time: its calls tell what the gate costs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
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
"""Where all calls take longer than this it keeps a GPU as long afterwards, up to so many seconds: after a long wait a
look costs some 0.1 ms more on an H200."""
LIKE = 1.5
"""Up to so many times that long, shorter calls are waited for like `HOLD`."""


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


@dataclass
class Hold:
    """For how long the null kernel of one contest keeps a GPU.

    Args:
        trial: Of the contest.
        null: Its process.

    Attributes:
        cycles: Of the device's clock.
    """

    trial: Trial
    null: Worker
    cycles: int = HOLD

    def seconds(self) -> float:
        """Times it, while nobody else uses the device; 0 on a CPU."""
        return held(self.cycles, HOLDS) if self._on_gpu else 0.0

    def fit(self, beyond: float) -> None:
        """Holds about as long as calls whose windows are so many seconds beyond the null kernel's, before any is timed.

        What is done when they are claimed takes the longer the longer the judge has waited: on an H200 some 10 us after
        a third of a millisecond. Short calls are waited for alike, and for long ones there is `as_long`.
        """
        if not self._on_gpu:
            return
        times = 1 + beyond / (short := held(HOLD, 1))
        if LIKE < times <= LONG_CALL / short:
            self.cycles = int(HOLD * times)
            with ours():
                construct_null(self.trial, self.null, self.cycles)

    def as_long(self, seconds: float, short: float) -> AbstractContextManager[float]:
        """Has the null kernel, which stands still, hold for so long, if that is long, else for `short` as it does.

        Also if it is much shorter: a submission that was slow while it was screened would be paid for the longer wait.
        """
        if not self._on_gpu:
            return nullcontext(short)
        seconds = min(max(seconds, short * HOLD / self.cycles), LONGEST_HOLD)
        fits = short <= LIKE * seconds and seconds <= LONG_CALL
        return nullcontext(short) if fits else self._otherwise(seconds / short)

    @contextmanager
    def _otherwise(self, times: float) -> Iterator[float]:
        """Has the null kernel, which stands still, hold so many times as long, and gives for how many seconds."""
        cycles = int(self.cycles * times)
        with ours(), awake(self.null):
            construct_null(self.trial, self.null, cycles)
        yield held(cycles, 1 if times > 1 else HOLDS)
        with ours(), awake(self.null):  # where this is not reached, whoever is judged next constructs it
            construct_null(self.trial, self.null, self.cycles)

    @property
    def _on_gpu(self) -> bool:
        return self.trial.bench.device.type == "cuda"
