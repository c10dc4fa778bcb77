"""Trivial answers, and which of them a verdict would accept.

Each answer uses only what a lazy submission could have at hand, or less than the whole expected
output. A problem that accepts one of them teaches it.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from kevin_env.judge.api import PACES
from kevin_env.judge.compare.values import is_rounded, mapped, pieces, size_of
from kevin_env.judge.inputs.cases import distributions_of, plan, usable_distributions
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.lint.target import SECRET, InputSet, outputs_of, spread_of_all, wide

Answer = Callable[[], torch.Tensor | None]
"""Computes an answer: of the output's shape and dtype, if an answer is made from it or from an
input; None if an input cannot be.
"""


def trivial_answers(
    expected: torch.Tensor,
    inputs: list[torch.Tensor],
    other: Answer,
    previous: Answer,
) -> Iterator[tuple[str, Answer]]:
    """Name and maker of every trivial answer that makes sense for an output, the cheapest first.

    An answer that is the expected output by its form (the mean of one element, the signs of signs,
    a symmetric matrix transposed) says nothing and is left out.

    Args:
        expected: The reference's output; not empty.
        inputs: The tensors among its arguments.
        other: Its output for inputs from another seed.
        previous: Its output for the input set before.
    """
    yield "zeros", lambda: expected.new_zeros(()).expand_as(expected)
    yield "ones", lambda: expected.new_ones(()).expand_as(expected)
    for i, tensor in enumerate(inputs):
        yield f"input {i}", functools.partial(_fitted, tensor, expected)
    if expected.numel() > 1:
        yield (
            "the first element everywhere",
            lambda: expected[(0,) * expected.dim()].expand_as(expected),
        )
        yield "the mean", functools.partial(_mean, expected, tuple(range(expected.dim())))
        if expected.dim() > 1:
            for axis, length in enumerate(expected.shape):
                if length > 1:
                    yield f"the mean of axis {axis}", functools.partial(_mean, expected, axis)
        yield "the output's first half and zeros", lambda: _half_then(expected, torch.zeros_like)
        yield "the output's first half twice", lambda: _half_then(expected, torch.clone)
    square = expected.dim() > 1 and expected.shape[-1] == expected.shape[-2] > 1
    if square and not _symmetric(expected):
        yield "the output transposed", lambda: expected.mT
    if not all(torch.equal(wide(_signs(each)), wide(each)) for (each,) in pieces(expected)):
        yield "the output's signs", lambda: mapped(_signs, expected.dtype, expected)
    yield "the previous output", previous
    yield "another seed's output", other


def _fitted(tensor: torch.Tensor, expected: torch.Tensor) -> torch.Tensor | None:
    """A tensor in place of the output: its first elements, or broadcast; None if it has too few."""
    if tensor.numel() >= expected.numel():
        first = tensor.flatten()[: expected.numel()]
        return _cast(first, expected.dtype).view(expected.shape)
    try:
        return _cast(tensor, expected.dtype).expand(expected.shape)
    except RuntimeError:
        return None


def _mean(expected: torch.Tensor, axes: int | tuple[int, ...]) -> torch.Tensor:
    means = wide(expected).mean(axes, keepdim=True)
    return _cast(means, expected.dtype).expand(expected.shape)


def _half_then(
    expected: torch.Tensor, rest: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The first half of the elements, in the order of their indices, and the rest made from it."""
    first = expected.flatten()[: -(-expected.numel() // 2)]
    again = rest(first[: expected.numel() - len(first)])
    return torch.cat((first, again)).view(expected.shape)


def _signs(values: torch.Tensor) -> torch.Tensor:
    return _cast(torch.sgn(wide(values)), values.dtype)


def _symmetric(expected: torch.Tensor) -> bool:
    """Whether its matrices are symmetric up to rounding, not just within a tolerance."""
    if not is_rounded(expected):
        return torch.equal(expected, expected.mT)
    share = min(64 * torch.finfo(expected.dtype).eps, 0.02)
    off = size_of(
        lambda one, other: (wide(one) - wide(other)).abs().nan_to_num(0.0), expected, expected.mT
    )
    return off.largest <= share * spread_of_all(expected)


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """In another dtype; what does not fit an integer may become any."""
    if tensor.is_complex() and not dtype.is_complex:
        tensor = tensor.real
    if tensor.is_floating_point() and not (dtype.is_floating_point or dtype.is_complex):
        return mapped(lambda piece: piece.double().nan_to_num(0.0, 0.0, 0.0).round(), dtype, tensor)
    return tensor.to(dtype)


OWN_SETS = 4
"""Further input sets of the problem's own distribution."""
OTHER = 1000
"""What is added to an input set's number for the one from another seed."""
Outputs = Callable[[], list[torch.Tensor]]
"""The outputs of an input set, computed on the first call."""


@dataclass(frozen=True)
class Survivors:
    """Answers by name and output, over the input sets so far."""

    seen: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Those that made sense for some input set and were right on each of these."""
        return tuple(sorted(self.seen - self.rejected))

    @property
    def none_left(self) -> bool:
        """Whether answers were tried and all of them were rejected."""
        return bool(self.seen) and not self.names


def outlive_first(case: Case, first: InputSet) -> Survivors:
    """The answers that are right on the first input set of the timed case.

    Raises:
        ProblemError: if the reference fails.
    """
    other = functools.cache(functools.partial(outputs_of, case, "own", OTHER))
    return _outlive(Survivors(), first, other, other)


def accepted_answers(case: Case, start: Survivors) -> tuple[Survivors, Survivors]:
    """The answers accepted in the timed case: on all distributions, and on the problem's own alone.

    `start` are those that are right on its first input set.

    Raises:
        ProblemError: if the reference fails.
    """
    first = functools.partial(outputs_of, case, "own", 0)
    further = [name for name in distributions_of(case) if name != "own"]
    own = ["own"] * OWN_SETS
    return _outlive_all(case, start, further, first), _outlive_all(case, start, own, first)


def accepted_elsewhere(cases: Iterable[Case], before: Survivors, further: bool) -> Survivors:
    """The answers that are accepted in other cases as well, if `further` on all distributions.

    Raises:
        ProblemError: if the reference fails.
    """
    for case in cases:
        if before.none_left:
            break
        seed = seed_from(SECRET, case.name, "weights")
        case.draw_weights(seed)
        names = usable_distributions(case, seed) if further else ["own"]
        before = _outlive_all(
            case, before, plan(names, False, SECRET, case.name, PACES[case.device.type]), None
        )
    return before


def _outlive_all(
    case: Case, before: Survivors, names: Sequence[str], previous: Outputs | None
) -> Survivors:
    """The answers left after input sets of these distributions, where the reference is finite.

    Its previous output is computed again when requested, which is rare.
    """
    for number, name in enumerate(names, start=1):
        if before.none_left:
            break
        drawn = InputSet.draw(case, name, number)
        if drawn.finite:
            other = functools.cache(functools.partial(outputs_of, case, name, number + OTHER))
            before = _outlive(before, drawn, other, previous or other)
            previous = functools.partial(outputs_of, case, name, number)
            del other
        del drawn  # before the next one
    return before


def _outlive(before: Survivors, drawn: InputSet, other: Outputs, previous: Outputs) -> Survivors:
    """The answers that are right on another input set as well. Rejected ones are not retried."""
    seen, rejected = set(before.seen), set(before.rejected)
    for target in drawn.targets:
        answers = trivial_answers(
            target.reference,
            drawn.tensors,
            lambda i=target.index: other()[i],
            lambda i=target.index: previous()[i],
        )
        for name, answer in answers:
            label = f"{name} as output {target.path}" if target.path else name
            seen.add(label)
            if label not in rejected and ((made := answer()) is None or not target.accepts(made)):
                rejected.add(label)
            made = None  # before the next one
    return Survivors(frozenset(seen), frozenset(rejected))
