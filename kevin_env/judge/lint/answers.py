"""Trivial answers, and which of them a verdict would accept.

Each answer uses only what a lazy submission could have at hand, or less than the whole expected
output. A problem that accepts one of them teaches it. No answer is materialised: it gives requested
elements only, since outputs may fill a quarter of a device.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from kevin_env.judge.api import PACES
from kevin_env.judge.compare.chunked import is_rounded, pieces, size_of
from kevin_env.judge.inputs.cases import plan, usable_distributions
from kevin_env.judge.inputs.reference import Case, distributions_of, seed_from
from kevin_env.judge.lint.target import (
    SECRET,
    Elements,
    InputSet,
    Target,
    elements,
    mean_of,
    means_along,
    outputs_of,
    parts_of,
    spread_of_all,
    wide,
)


@dataclass(frozen=True)
class Scene:
    """One output of one input set, and what lies around.

    Attributes:
        expected: What the reference gives; not empty.
        inputs: The tensors that it was given.
        other: What it gives for inputs from another seed; asked for only when needed.
        previous: What it gave for the input set before; asked for only when needed.
    """

    expected: torch.Tensor
    inputs: list[torch.Tensor]
    other: Callable[[], torch.Tensor]
    previous: Callable[[], torch.Tensor]


Answer = Callable[[], Elements | None]
"""Prepares an answer whose elements can then be read; None if its form is not the output's."""


def trivial_answers(scene: Scene) -> Iterator[tuple[str, Answer]]:
    """Name and maker of every trivial answer that makes sense for an output, the cheapest first.

    An answer that is the expected output by its form (the mean of one element, the signs of signs,
    a symmetric matrix transposed) says nothing and is left out.
    """
    expected = scene.expected
    yield "zeros", lambda: _constant(expected.new_zeros(()))
    yield "ones", lambda: _constant(torch.ones((), device=expected.device).to(expected.dtype))
    for i, tensor in enumerate(scene.inputs):
        if (fitted := _fitted(tensor, expected)) is not None:
            yield (
                f"input {i}",
                lambda fitted=fitted: lambda part: _cast(elements(fitted, part), expected.dtype),
            )
    if expected.numel() > 1:
        yield from _constants(expected)
        yield "half of it, then zeros", lambda: partial(_half_then_zeros, expected)
        yield "half of it, twice", lambda: partial(_half_twice, expected)
    yield from _distortions(expected)
    yield "the previous output", lambda: _if_alike(scene.previous(), expected)
    yield "another seed's output", lambda: _if_alike(scene.other(), expected)


def _constants(expected: torch.Tensor) -> Iterator[tuple[str, Answer]]:
    dtype = expected.dtype
    yield "the first element everywhere", lambda: _constant(expected[(0,) * expected.dim()])
    yield "the mean", lambda: _constant(_cast(mean_of(expected), dtype))
    if expected.dim() < 2:
        return
    for axis in range(expected.dim()):
        if expected.shape[axis] > 1:
            yield (
                f"the mean of axis {axis}",
                lambda axis=axis: partial(elements, _axis_means(expected, axis)),
            )


def _axis_means(expected: torch.Tensor, axis: int) -> torch.Tensor:
    """For each element the mean along an axis; stored once for all that share it."""
    means = means_along(expected, axis, lambda mean: _cast(mean, expected.dtype))
    return means.unsqueeze(axis).expand(expected.shape)


def _half_then_zeros(expected: torch.Tensor, part: slice) -> torch.Tensor:
    """The first half of the elements, in the order of their indices."""
    values, within = elements(expected, part), len(_first_half(expected, part))
    return torch.cat((values[:within], torch.zeros_like(values[within:])))


def _half_twice(expected: torch.Tensor, part: slice) -> torch.Tensor:
    first = _first_half(expected, part)
    half, start = _half(expected), part.start + len(first) * part.step
    again = (
        slice(start - half, part.stop - half, part.step) if start < part.stop else slice(0, 0, 1)
    )
    return torch.cat(
        (elements(expected, slice(part.start, first.stop, part.step)), elements(expected, again))
    )


def _first_half(expected: torch.Tensor, part: slice) -> range:
    """Which numbers of a part lie in the first half."""
    return range(part.start, max(part.start, min(part.stop, _half(expected))), part.step)


def _half(expected: torch.Tensor) -> int:
    return -(-expected.numel() // 2)


def _distortions(expected: torch.Tensor) -> Iterator[tuple[str, Answer]]:
    if (
        expected.dim() >= 2
        and expected.shape[-1] == expected.shape[-2] > 1
        and not _symmetric(expected)
    ):
        yield "it transposed", lambda: partial(elements, expected.mT)
    if any(_unlike_its_signs(elements(expected, part)) for part in parts_of(expected)):
        yield "its signs", lambda: lambda part: _signs(elements(expected, part))


def _signs(values: torch.Tensor) -> torch.Tensor:
    return _cast(torch.sgn(wide(values)), values.dtype)


def _unlike_its_signs(values: torch.Tensor) -> bool:
    return not torch.equal(wide(_signs(values)), wide(values))


def _fitted(tensor: torch.Tensor, expected: torch.Tensor) -> torch.Tensor | None:
    """A tensor to stand in for the output: a prefix of its elements, or broadcast."""
    if tensor.numel() >= expected.numel():
        return tensor
    try:
        return tensor.expand(expected.shape)
    except RuntimeError:
        return None


def _if_alike(tensor: torch.Tensor, expected: torch.Tensor) -> Elements | None:
    alike = tensor.shape == expected.shape and tensor.dtype == expected.dtype
    return partial(elements, tensor) if alike else None


def _constant(value: torch.Tensor) -> Elements:
    return lambda part: value.expand(len(range(part.start, part.stop, part.step)))


def _symmetric(expected: torch.Tensor) -> bool:
    """Whether its matrices are symmetric up to rounding, not just within a tolerance."""
    if not is_rounded(expected):
        return all(
            torch.equal(wide(one), wide(other)) for one, other in pieces(expected, expected.mT)
        )
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
        tensor = tensor.double().nan_to_num(0.0, 0.0, 0.0).round()
    return tensor.to(dtype)


OWN_SETS = 4
"""Further input sets of the problem's own distribution."""
OTHER = 1000
"""What is added to an input set's number for the one from another seed."""
Outputs = Callable[[], list[torch.Tensor]]
"""The outputs of an input set, found when they are first asked for."""


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

    Args:
        case: The timed case, with its weights drawn.
        first: Its input set number 0 of the distribution `own`.

    Raises:
        ProblemError: if the reference fails.
    """
    other = functools.cache(functools.partial(outputs_of, case, "own", OTHER))
    return _outlive(Survivors(), first, other, other)


def accepted_answers(case: Case, start: Survivors) -> tuple[Survivors, Survivors]:
    """The answers accepted in the timed case: on all distributions, and on the problem's own alone.

    Args:
        case: The timed case, with its weights drawn.
        start: The answers that are right on its first input set.

    Raises:
        ProblemError: if the reference fails.
    """
    first = functools.partial(outputs_of, case, "own", 0)
    further = [name for name in distributions_of(case) if name != "own"]
    own = ["own"] * OWN_SETS
    return _outlive_all(case, start, further, first), _outlive_all(case, start, own, first)


def accepted_elsewhere(cases: Iterable[Case], before: Survivors, further: bool) -> Survivors:
    """The answers that are accepted in the other cases as well.

    Args:
        cases: Those that are not timed.
        before: Answers so far.
        further: Whether distributions other than the problem's own are checked.

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
    """The answers that are right on another input set as well. Rejected ones are not retried.

    Args:
        before: Answers so far.
        drawn: The input set.
        other: The reference's output for a set of the same distribution from another seed.
        previous: Its output for the previous set.
    """
    seen, rejected = set(before.seen), set(before.rejected)
    for i, path, target in drawn.targets():
        scene = Scene(
            drawn.outputs[i], drawn.tensors, lambda i=i: other()[i], lambda i=i: previous()[i]
        )
        for name, answer in trivial_answers(scene):
            label = f"{name} as output {path}" if path else name
            seen.add(label)
            if label not in rejected and not _accepted(answer, target):
                rejected.add(label)
    return Survivors(frozenset(seen), frozenset(rejected))


def _accepted(answer: Answer, target: Target) -> bool:
    made = answer()
    return made is not None and target.accepts_elements(made)
