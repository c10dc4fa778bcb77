"""What all draws of an input have in common: its zeros, its range, its order.

A correct kernel may rely on it, so every distribution keeps it, and the prompt states it. Equal
entries (symmetry, repeated rows) stay equal in every distribution anyway: see `distributions`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kevin_env.judge.compare.values import pieces, widened

FEW = 12
"""With fewer values over all draws nothing is stated, as it may be chance; it is still kept."""
LEAST = 64
"""Least number of values to take both ends of their range as bounds."""
BOUNDED = 4.0
"""Bounded values span fewer standard deviations than this.

Uniform ones span 3.5; normal ones 4.7 for 64 values, 6.5 for 1000.
"""
NEAR_ZERO = 1 / 256
"""Values of one sign that come so close to zero, relative to the largest magnitude, may be zero."""


@dataclass(frozen=True)
class Structure:
    """What draws of one input tensor have in common.

    Attributes:
        forms: Those of `_FORMS`, `floating` and `finite` that hold.
        alike: Dimensions along which all slices are equal.
        summing: Dimensions along which it sums to 1, without negative entries.
        count: Number of values seen.
        low, high: The smallest and the largest of them.
        highest_low, lowest_high: The largest of the draws' smallest values, and the smallest of
            their largest: where they are `low` and `high`, every draw reached that end.
        total, squares: Their sum and the sum of their squares.
        zeros: The smallest share of exact zeros.
    """

    forms: frozenset[str] = frozenset()
    alike: frozenset[int] = frozenset()
    summing: frozenset[int] = frozenset()
    count: int = 0
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    squares: float = 0.0
    zeros: float = 1.0
    highest_low: float = -math.inf
    lowest_high: float = math.inf

    @property
    def kept(self) -> bool:
        """Whether it is left as drawn: whole numbers of any dtype, and values not finite."""
        return not {"floating", "finite"} <= self.forms or "whole numbers" in self.forms

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of the values, infinite without one. A sign is a bound, too."""
        if self.count == 0:
            return -math.inf, math.inf
        mean = self.total / self.count
        spread = math.sqrt(max(0.0, self.squares / self.count - mean * mean))
        bounded = self.count >= LEAST and self.high - self.low < BOUNDED * spread
        if bounded or self._of_unit_interval:
            return self.low, self.high
        return self.low if self.low >= 0 else -math.inf, self.high if self.high <= 0 else math.inf

    @property
    def _of_unit_interval(self) -> bool:
        """Whether they look like probabilities, few of which may be near an end."""
        return 0 <= self.low <= self.high <= 1 < 2 * self.high

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The ends of a range of integers, as far as every draw reached them."""
        if "floating" in self.forms or self.count < FEW:
            return None, None
        reached = self.low == self.highest_low, self.high == self.lowest_high
        low, high = (
            int(end) if held and abs(end) < 2**53 else None
            for end, held in zip((self.low, self.high), reached, strict=True)
        )
        return low, high

    @property
    def descending(self) -> bool | None:
        """How the last dimension is sorted, if it is."""
        if "sorted, rising" in self.forms:
            return False
        return True if "sorted, falling" in self.forms else None

    @property
    def tied(self) -> bool:
        """Whether entries depend on one another."""
        return (
            bool(self.alike or self.summing or "symmetric" in self.forms)
            or self.descending is not None
        )

    @property
    def one_sided(self) -> bool:
        """Whether all entries have one sign and most may be zero."""
        near, far = sorted((abs(self.low), abs(self.high)))
        return (
            self.low * self.high >= 0
            and near <= NEAR_ZERO * far
            and not self.summing
            and self.descending is None
        )

    def stated(self) -> tuple[str, ...]:
        """What the prompt says about it, such as `lower triangular` and `in [0, 1]`."""
        if self.count < FEW:
            return ()
        implied = set() if "floating" in self.forms else {"whole numbers"}
        forms = [form for form in _FORMS if form in self.forms - implied]
        if {"lower triangular", "upper triangular"} <= self.forms:
            forms = ["diagonal", *(form for form in forms if not form.endswith("triangular"))]
        elif (
            self.zeros >= 0.01
            and "whole numbers" not in self.forms
            and not any("triangular" in f for f in forms)
        ):
            forms.append(f"at least {self.zeros:.0%} zeros")
        forms += [f"all slices along dimension {d} are the same" for d in sorted(self.alike)]
        forms += [f"sums to 1 along dimension {d}" for d in sorted(self.summing)]
        return (*forms, *self._range())

    def _range(self) -> list[str]:
        low, high = self.bounds
        if "floating" not in self.forms or (low == -math.inf and high == math.inf):
            return []
        if low == -math.inf or high == math.inf:
            return ["never negative" if high == math.inf else "never positive"]
        if self._of_unit_interval:
            return ["in [0, 1]"]
        if "whole numbers" not in self.forms and high > low:  # draws nearly reach the ends
            step = 10.0 ** (math.floor(math.log10(high - low)) - 1)
            low, high = math.floor(low / step) * step, math.ceil(high / step) * step
        return [f"in [{low:.6g}, {high:.6g}]"]

    def merged(self, other: "Structure") -> "Structure":
        """What holds for the draws of both."""
        return Structure(
            self.forms & other.forms, self.alike & other.alike, self.summing & other.summing,
            self.count + other.count, min(self.low, other.low), max(self.high, other.high),
            self.total + other.total, self.squares + other.squares, min(self.zeros, other.zeros),
            max(self.highest_low, other.highest_low), min(self.lowest_high, other.lowest_high),
        )  # fmt: skip


def look(drawn: torch.Tensor) -> Structure:
    """The structure of a single draw."""
    if drawn.is_complex() or drawn.dtype == torch.bool or drawn.is_meta or not drawn.numel():
        return Structure()
    floating = drawn.is_floating_point()
    tensor = widened(drawn)
    low, high = (float(end) for end in tensor.aminmax())  # NaN where anything is
    if not math.isfinite(high - low):
        return Structure(frozenset({"floating"}))
    rows = torch.stack(
        [torch.stack((p.sum(), p.square().sum(), p.count_nonzero())) for p in _doubles(tensor)]
    )
    total, squares, others = rows.sum(0).tolist()
    forms = {form for form, holds in _FORMS.items() if holds(tensor)}
    forms |= {"floating", "finite"} if floating else {"finite"}
    dims = range(tensor.dim()) if floating else ()
    return Structure(
        frozenset(forms),
        frozenset(d for d in dims if tensor.dim() > 1 and _alike(tensor, d)),
        frozenset(d for d in dims if low >= 0 and _sums_to_one(tensor, d, drawn.dtype)),
        tensor.numel(), low, high, total, squares, 1 - others / tensor.numel(), low, high,
    )  # fmt: skip


def _whole(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point():
        return True
    start = torch.atleast_1d(tensor)[..., :LEAST]
    return torch.equal(start, start.round()) and all(
        torch.equal(piece, piece.round()) for (piece,) in pieces(tensor)
    )


def _doubles(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    return (piece.double() for (piece,) in pieces(tensor))


def _triangular(tensor: torch.Tensor, upper: bool) -> bool:
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2:
        return False
    corner = tensor[..., -1, 0] if upper else tensor[..., 0, -1]
    if bool((corner != 0).any()):
        return False
    other = tensor.tril(-1) if upper else tensor.triu(1)
    return not bool(other.any()) and bool(tensor.any())


def _symmetric(tensor: torch.Tensor) -> bool:
    square = tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1
    return (
        square and torch.equal(tensor[..., 0], tensor[..., 0, :]) and torch.equal(tensor, tensor.mT)
    )


def _sorted(tensor: torch.Tensor, falling: bool) -> bool:
    if tensor.dim() == 0 or tensor.shape[-1] < 3:
        return False
    ahead, behind = (tensor[..., :-1], tensor[..., 1:])[:: -1 if falling else 1]
    most = min(LEAST, ahead.shape[-1])
    start = bool((ahead[..., :most] <= behind[..., :most]).all())
    return (
        start and bool((ahead <= behind).all()) and bool((tensor[..., 0] != tensor[..., -1]).any())
    )


def _permutation(tensor: torch.Tensor) -> bool:
    if (
        tensor.dim() == 0
        or tensor.shape[-1] < 3
        or tensor.min() != 0
        or tensor.max() != tensor.shape[-1] - 1
    ):
        return False
    wanted = torch.arange(tensor.shape[-1], device=tensor.device)
    return bool((tensor.sort(dim=-1).values == wanted).all())


_FORMS: dict[str, Callable[[torch.Tensor], bool]] = {
    "lower triangular": lambda tensor: _triangular(tensor, upper=False),
    "upper triangular": lambda tensor: _triangular(tensor, upper=True),
    "symmetric": _symmetric,
    "whole numbers": _whole,
    "a permutation of 0, 1, ..., n - 1": _permutation,
    "sorted, rising": lambda tensor: _sorted(tensor, falling=False),
    "sorted, falling": lambda tensor: _sorted(tensor, falling=True),
}


def _alike(tensor: torch.Tensor, d: int) -> bool:
    first = tensor.narrow(d, 0, 1)
    return (
        tensor.shape[d] > 1
        and torch.equal(first, tensor.narrow(d, 1, 1))
        and bool((tensor == first).all())
    )


def _sums_to_one(tensor: torch.Tensor, d: int, dtype: torch.dtype) -> bool:
    if tensor.shape[d] < 2:
        return False
    close = max(16 * torch.finfo(dtype).eps, 1e-6)
    some = tensor.movedim(d, -1)[(0,) * (tensor.dim() - 1)]
    return abs(float(some.double().sum()) - 1) <= close and bool(
        ((tensor.sum(d, dtype=torch.float64) - 1).abs() <= close).all()
    )
