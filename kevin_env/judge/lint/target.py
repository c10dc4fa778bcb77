"""What answers are compared with: input sets of a case, and the comparison of a verdict.

Elements are addressed by index, so no flat copy of a whole tensor is made; means and spreads are
computed in float64 without a float64 copy.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from kevin_env.candidate import tree
from kevin_env.judge.compare.check import alike, oracles_of
from kevin_env.judge.compare.chunked import all_finite, most_of, pieces, spread_of
from kevin_env.judge.compare.tolerance import budget
from kevin_env.judge.compare.values import wrong_elements
from kevin_env.judge.inputs.reference import Case, seed_from

Elements = Callable[[slice], torch.Tensor]
"""Gives some elements of a tensor as one row. The slice has start, stop and step in range."""
SAMPLE = 1 << 16
"""Elements that are looked at before all of them are."""


def elements(tensor: torch.Tensor, part: slice) -> torch.Tensor:
    """Those elements of a tensor of any strides, in one row: a view where they lie in order."""
    if tensor.is_contiguous():
        return tensor.view(-1)[part]
    left = torch.arange(part.start, max(part.start, part.stop), part.step, device=tensor.device)
    places = torch.zeros_like(left)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if stride:
            places += left % size * stride
        left //= size
    span = 1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return _gathered(tensor.as_strided((span,), (1,)), places)


def sample_of(count: int) -> slice:
    """About `SAMPLE` of so many elements, evenly spread; all where they are few."""
    return slice(0, count, max(1, -(-count // SAMPLE)))


def parts_of(tensor: torch.Tensor) -> Iterator[slice]:
    """Slices that cover a tensor's elements, each at most one piece; first a sample of them."""
    count, most = tensor.numel(), most_of(tensor)
    if count > SAMPLE:
        yield sample_of(count)
    for start in range(0, count, most):
        yield slice(start, min(start + most, count), 1)


def _gathered(row: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    if row.element_size() > 1:
        return row[places]
    return row.view(torch.uint8)[places].view(
        row.dtype
    )  # fp8 cannot be indexed by a tensor everywhere


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """As complex128 or float64, in which every dtype has all operators; for pieces of a tensor."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def mean_of(tensor: torch.Tensor) -> torch.Tensor:
    """Of all elements, which are at least one: float64 or complex128, without a dimension."""
    total = wide(tensor.new_zeros(()))
    for (piece,) in pieces(tensor):
        total += wide(piece).sum()
    return total / tensor.numel()


def means_along(
    tensor: torch.Tensor, axis: int, cast: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The means along one axis, which is left out.

    Args:
        tensor: Not empty.
        axis: Of it.
        cast: Brings means, which it is given in float64 or complex128, to the dtype of the tensor.
    """
    found = torch.empty_like(tensor.select(axis, 0), memory_format=torch.contiguous_format)
    length = tensor.shape[axis]
    for means, rows in pieces(found, tensor.movedim(axis, -1), each=length):
        total = wide(torch.zeros_like(means))
        for part in rows.split(max(1, most_of(tensor) // means.numel()), -1):
            total += wide(part).sum(-1)
        means.copy_(cast(total / length))
    return found


def spread_of_all(tensor: torch.Tensor) -> float:
    """The standard deviation (n - 1) of floats or complex numbers; NaN if one is not finite."""
    parts = (
        torch.view_as_real(tensor.resolve_conj()).unbind(-1) if tensor.is_complex() else (tensor,)
    )
    found = [spread_of(part) for part in parts]
    return math.hypot(*(spread if count == tensor.numel() else math.nan for count, spread in found))


SECRET = "lint"
"""What the inputs of a lint are drawn from: it is to say the same tomorrow."""


class Target:
    """One output that answers are held against, as `verify.compare` does it.

    Args:
        reference: What the reference gives.
        oracle: The same from float64 arithmetic, where it can be had.
        allowed: The budget.
    """

    def __init__(
        self, reference: torch.Tensor, oracle: torch.Tensor | None, allowed: float
    ) -> None:
        self._reference = reference
        self._exact = reference if oracle is None else oracle
        self._allowed = allowed

    def accepts(self, answer: torch.Tensor) -> bool:
        """Whether the comparison lets an answer pass."""
        alike = answer.shape == self._reference.shape and answer.dtype == self._reference.dtype
        return alike and self.accepts_elements(partial(elements, answer))

    def accepts_elements(self, answer: Elements) -> bool:
        """`accepts` for the elements of an answer of the right shape and dtype.

        Reads no more of them than needed.
        """
        return all(self._right(answer, part) for part in parts_of(self._reference))

    def varying(self) -> float:
        """The share of sampled elements that are further from their median than the tolerance."""
        reference, exact = _real(self._reference), _real(self._exact)
        every = slice(0, reference.numel(), max(1, reference.numel() // SAMPLE))
        sample = elements(reference, every)
        median = sample[sample.double().argsort()[sample.numel() // 2]]
        return float(
            self._wrong(median.expand(sample.shape), sample, elements(exact, every)).double().mean()
        )

    def _right(self, answer: Elements, part: slice) -> bool:
        given, wanted, exact = (
            answer(part),
            elements(self._reference, part),
            elements(self._exact, part),
        )
        return not bool(self._wrong(_real(given), _real(wanted), _real(exact)).any())

    def _wrong(
        self, value: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor
    ) -> torch.Tensor:
        if not value.is_floating_point():
            return value != wanted
        eps = torch.finfo(value.dtype).eps
        return wrong_elements(value.double(), wanted.double(), exact.double(), self._allowed, eps)


@dataclass(frozen=True)
class InputSet:
    """One input set of a case and what the reference gives for it.

    Attributes:
        tensors: The inputs.
        outputs: The reference's outputs.
        paths: Where each output lies; empty text for a single one.
        oracles: Each output from float64 arithmetic, where it can be had.
        allowed: The budget of each, found with the weights that the reference had.
    """

    skeleton: tree.Skeleton
    tensors: list[torch.Tensor]
    outputs: list[torch.Tensor]
    paths: list[str]
    oracles: list[torch.Tensor | None]
    allowed: list[float]

    @classmethod
    def draw(cls, case: Case, distribution: str, number: int) -> "InputSet":
        """The `number`-th input set of a distribution.

        Raises:
            ProblemError: when the reference fails.
        """
        skeleton, tensors = inputs_of(case, distribution, number)
        expected = case.expect(skeleton, tensors, seed_from(SECRET, "call", number))
        shape, outputs = tree.take_apart(expected.output)
        paths = [path for path, leaf in tree.leaves(shape) if "t" in leaf]
        oracles = oracles_of(expected, outputs)
        allowed = [
            budget(
                output,
                oracle,
                case.tolerance,
                case.precision,
                lambda i=i: alike(expected.plain, outputs)[i],
            )
            for i, (output, oracle) in enumerate(zip(outputs, oracles, strict=True))
        ]
        return cls(skeleton, tensors, outputs, paths, oracles, allowed)

    @property
    def finite(self) -> bool:
        """Whether the reference is finite on it."""
        return all_finite(self.outputs)

    def again(self, case: Case) -> list[torch.Tensor]:
        """The reference's outputs from another run, with another seed for draws in its call."""
        return tree.take_apart(case.answer(self.skeleton, self.tensors, 1))[1]

    def targets(self) -> Iterator[tuple[int, str, Target]]:
        """Number, place and target of every output that has elements."""
        for i, (output, path) in enumerate(zip(self.outputs, self.paths, strict=True)):
            if output.numel():
                yield i, path, Target(output, self.oracles[i], self.allowed[i])


def inputs_of(
    case: Case, distribution: str, number: int
) -> tuple[tree.Skeleton, list[torch.Tensor]]:
    """Structure and tensors of the `number`-th input set of a distribution."""
    return case.draw_inputs(distribution, seed_from(SECRET, case.name, distribution, number))


def outputs_of(case: Case, distribution: str, number: int) -> list[torch.Tensor]:
    """What the reference gives for that input set, without its oracle."""
    return tree.take_apart(
        case.answer(*inputs_of(case, distribution, number), seed_from(SECRET, "call", number))
    )[1]


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
