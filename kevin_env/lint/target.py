"""What answers are compared with: input sets of a case, and the comparison of a verdict."""

import math
from dataclasses import dataclass
from functools import partial

import torch

from kevin_env.candidate import tree
from kevin_env.judge.compare.outputs import alike, in_float64, wrong_integers
from kevin_env.judge.compare.tolerance import outside, parts, tolerance_of, with_plain_sums
from kevin_env.judge.compare.values import (
    counts_of,
    is_rounded,
    pieces,
    real,
    same_infinities,
    spread_of,
)
from kevin_env.judge.inputs.reference import Case, Expected, seed_from

SECRET = "lint"
"""What the inputs of a lint are drawn from: it is to say the same tomorrow."""
SAMPLE = 1 << 16
"""Elements of which the median is taken."""


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """As complex128 or float64, in which every dtype has all operators; for pieces of a tensor."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def spread_of_all(tensor: torch.Tensor) -> float:
    """The standard deviation (n - 1) of floats or complex numbers; NaN if one is not finite."""
    parts = real(tensor).unbind(-1) if tensor.is_complex() else (tensor,)
    found = (spread_of(part) for part in parts)
    return math.hypot(*(each if count == tensor.numel() else math.nan for count, _, each in found))


@dataclass(frozen=True)
class Target:
    """One output that answers are compared with as in `values.compare`.

    Attributes:
        index: Its number.
        path: Where it lies; empty text for a single one.
        oracle: The reference in float64 arithmetic, if available.
        allowed: The budget.
        share: The share of it that each element has; None if all have all of it.
        integers: What its integers are (`outputs.INTEGERS`).
        tolerance: The problem's TOLERANCE.
        other: How many of its integers differ in float64 arithmetic.
    """

    index: int
    path: str
    reference: torch.Tensor
    oracle: torch.Tensor | None
    allowed: float
    share: torch.Tensor | None = None
    integers: str = "exact"
    tolerance: float = 1.0
    other: int = 0

    def accepts(self, answer: torch.Tensor) -> bool:
        """Whether the comparison lets an answer pass. Reads no more of it than needed."""
        if answer.shape != self.reference.shape or answer.dtype != self.reference.dtype:
            return False
        if self.integers != "exact" and not is_rounded(self.reference):
            return wrong_integers(answer, self.reference, self.integers, self.tolerance) is None
        tensors = parts(answer, self.reference, self.oracle, self.share)
        return not any(bool(self._wrong(*piece).any()) for piece in pieces(*tensors))

    def varying(self) -> float:
        """The share of sampled elements that are further from their median than the tolerance."""
        step = max(1, real(self.reference).numel() // SAMPLE)
        tensors = parts(self.reference, self.reference, self.oracle, self.share)
        _, wanted, *others = (each.flatten()[::step] for each in tensors)
        median = wanted[wanted.double().argsort()[wanted.numel() // 2]]
        return float(self._wrong(median.expand(wanted.shape), wanted, *others).double().mean())

    def _wrong(self, *piece: torch.Tensor) -> torch.Tensor:
        return outside(self.allowed, self.reference.dtype)(*piece)


@dataclass(frozen=True)
class InputSet:
    """One input set of a case and what the reference gives for it.

    Attributes:
        tensors: The inputs.
        outputs: The reference's outputs.
        targets: Those that have elements, found with the weights that the reference had.
    """

    skeleton: tree.Skeleton
    tensors: list[torch.Tensor]
    outputs: list[torch.Tensor]
    targets: list[Target]

    @classmethod
    def draw(cls, case: Case, distribution: str, number: int) -> "InputSet":
        """The `number`-th input set of a distribution.

        Raises:
            ProblemError: when the reference fails.
        """
        skeleton, tensors = inputs_of(case, distribution, number)
        expected = case.expect(skeleton, tensors, seed_from(SECRET, "call", number))
        shape, outputs = tree.flatten(expected.output)
        paths = [path for path, leaf in tree.leaves(shape) if "t" in leaf]
        oracles = in_float64(expected.oracle, outputs)
        targets: list[Target] = []
        for i, (reference, oracle) in enumerate(zip(outputs, oracles, strict=True)):
            if reference.numel():
                plain = partial(_plain, expected, outputs, i)
                tolerance, share = tolerance_of(reference, oracle, case.tolerance, case.precision)
                allowed = with_plain_sums(tolerance, reference, plain, share).worst
                targets.append(
                    Target(
                        i, paths[i], reference, oracle, allowed, share, case.integers,
                        case.tolerance, _other(expected, outputs, i),
                    )
                )  # fmt: skip
        return cls(skeleton, tensors, outputs, targets)

    @property
    def finite(self) -> bool:
        """Whether the reference is finite on it, or infinite where it is in float64, too."""
        exact = {target.index: target.oracle for target in self.targets}
        return all(same_infinities(out, exact.get(i)) for i, out in enumerate(self.outputs))

    def again(self, case: Case) -> list[torch.Tensor]:
        """The reference's outputs from another run, with another seed for draws in its call."""
        return tree.flatten(case.answer(self.skeleton, self.tensors, 1))[1]


def inputs_of(
    case: Case, distribution: str, number: int
) -> tuple[tree.Skeleton, list[torch.Tensor]]:
    """Structure and tensors of the `number`-th input set of a distribution."""
    return case.draw_inputs(distribution, seed_from(SECRET, case.name, distribution, number))


def outputs_of(case: Case, distribution: str, number: int) -> list[torch.Tensor]:
    """What the reference gives for that input set, without its oracle."""
    return tree.flatten(
        case.answer(*inputs_of(case, distribution, number), seed_from(SECRET, "call", number))
    )[1]


def _other(expected: Expected, outputs: list[torch.Tensor], i: int) -> int:
    if is_rounded(outputs[i]) or (exact := alike(expected.oracle, outputs)[i]) is None:
        return 0
    return sum(counts_of(lambda a, b: a != b, outputs[i], exact))


def _plain(
    expected: Expected, outputs: list[torch.Tensor], i: int, draw: int
) -> torch.Tensor | None:
    return alike(expected.plain(draw), outputs)[i]
