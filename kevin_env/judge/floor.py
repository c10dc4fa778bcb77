"""The least time that a call can take on a GPU: what matters of its inputs has to be read from a cold memory.

Not the roofline (`kevin_env.roofline`), which is what the reference's own work takes at the rates that were measured: a
yardstick that clever kernels may beat. This is what nobody can beat, and the only one of the two that rules a time out.

Only bytes are counted. The reference's operations are no lower bound: algebra, Winograd or Fourier transforms and
tensor cores do with fewer or faster ones. An element of an input matters when the output has a gradient in it; memory
is read in sectors, so one element that matters makes its sector matter.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kevin_env.candidate import tree
from kevin_env.judge.ceilings import CeilingStore
from kevin_env.judge.gate import Drawn
from kevin_env.judge.guards import precision
from kevin_env.judge.lease import Lease
from kevin_env.judge.reference import Case
from kevin_env.judge.work import SECTOR

MARGIN = 0.8
"""Share of the floor below which a time is not believed: a better kernel than ours may come closer to the peak."""
GATE_ERROR = 10e-6


@dataclass(frozen=True)
class Floor:
    """The least time of one call.

    Attributes:
        bytes: Of the inputs that have to be read.
        rate: Bytes a second that the device reads.
    """

    bytes: int
    rate: float

    @property
    def seconds(self) -> float:
        """The least time of one call."""
        return self.bytes / self.rate

    def rules_out(self, seconds: float) -> bool:
        """Whether a call cannot have taken so little, the gate's own error and a better kernel than ours allowed."""
        return seconds + GATE_ERROR < MARGIN * self.seconds

    def __str__(self) -> str:
        return f"{self.bytes / 1e6:.0f} MB have to be read, which takes {self.seconds * 1e6:.0f} us here"


class Floors:
    """The floors of problems on one device, each found once. None on a CPU: what was just written lies in its caches.

    Not safe for threads: hold `Bench.yardsticks`.

    Args:
        device: Of the judge.
        lease: Of that device; held while a floor is found.
        ceilings: Of that device; they say how fast it reads.
    """

    def __init__(self, device: torch.device, lease: Lease, ceilings: CeilingStore) -> None:
        self._device = device
        self._lease = lease
        self._ceilings = ceilings
        self._all: dict[tuple[str, str], int] = {}
        self._that_matter: dict[tuple[str, str], int] = {}

    def under(self, seconds: float, key: str, case: Case, draw: Callable[[], Drawn]) -> Floor | None:
        """The floor of a case where it rules out a call of `seconds`; None on a CPU, and where there is no room for it.

        What matters of the inputs is only found out when a time is too short to read all of them: the gradients of a
        slow reference may take long.

        Args:
            seconds: The time of a call.
            key: Of its problem.
            case: With its weights drawn.
            draw: Gives an input set of it.
        """
        if self._device.type != "cuda":
            return None
        try:
            for known, count in ((self._all, bytes_of), (self._that_matter, bytes_that_matter)):
                floor = Floor(self._known(known, count, key, case, draw), self._ceilings.gpu_reading())
                if not floor.rules_out(seconds):
                    return None
        except torch.OutOfMemoryError:
            return None
        return floor

    def clears(self, seconds: float, key: str, case: Case) -> bool:
        """Whether a call is above the floor by what was found of its problem before. Arguments as there."""
        if self._device.type != "cuda":
            return True
        count = self._all.get((key, case.name))
        return count is not None and not Floor(count, self._ceilings.gpu_reading()).rules_out(seconds)

    def _known(
        self, known: dict[tuple[str, str], int], count: Callable[[Case, Drawn], int], key: str, case: Case,
        draw: Callable[[], Drawn],
    ) -> int:  # fmt: skip
        if (key, case.name) not in known:
            with self._lease.shared():
                known[key, case.name] = count(case, draw())
                torch.cuda.empty_cache()
        return known[key, case.name]


def bytes_of(_: Case, drawn: Drawn) -> int:
    """Bytes of all floating-point inputs: no floor is higher."""
    return sum(-(-t.nbytes // SECTOR) * SECTOR for t in drawn.image.tensors if t.is_floating_point())


def bytes_that_matter(case: Case, drawn: Drawn) -> int:
    """Bytes of floating-point inputs in sectors that the output depends on; 0 where gradients cannot be had.

    Raises:
        torch.OutOfMemoryError: where there is no room for them.
    """
    inputs = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in drawn.image.tensors]
    wanted = [t for t in inputs if t.requires_grad]
    if not wanted or case.stochastic:
        return 0
    try:
        # nobody else draws or sets flags meanwhile; cuDNN's gradient of a large image filter of one channel, a
        # Gaussian blur, took more than a minute on an H200
        with precision(case.precision), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            outputs = tree.take_apart(case.model(*tree.put_together(drawn.skeleton, inputs)))[1]
            sums = [_weighed(t) for t in outputs if t.requires_grad]
            gradients = torch.autograd.grad(sums, wanted, allow_unused=True)
    except torch.OutOfMemoryError:  # others may hold what is missing
        raise
    except Exception:  # a reference need not be differentiable
        return 0
    return sum(_touched(t, gradient) for t, gradient in zip(wanted, gradients, strict=True) if gradient is not None)


def _weighed(output: torch.Tensor) -> torch.Tensor:
    """A sum in which no element's gradient cancels another's."""
    real = torch.view_as_real(output) if output.is_complex() else output
    return (real * torch.rand_like(real)).sum()


def _touched(tensor: torch.Tensor, gradient: torch.Tensor) -> int:
    per_sector = SECTOR // tensor.element_size()
    nonzero = (gradient.contiguous().flatten() != 0).to(torch.float32)
    padded = torch.nn.functional.pad(nonzero, (0, -nonzero.numel() % per_sector))
    return int(padded.view(-1, per_sector).amax(1).sum()) * SECTOR
