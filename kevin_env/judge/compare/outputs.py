"""What is wrong with an output: first its structure, then every value and tensor in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge.compare.pattern import narrower, pattern_of
from kevin_env.judge.compare.tolerance import (
    Tolerance,
    compare_within,
    finite_part,
    mask_of,
    near,
    parts,
    scale_of,
    tolerance_of,
    with_plain_sums,
)
from kevin_env.judge.compare.values import (
    Mismatch,
    counts_of,
    is_rounded,
    of_elements,
    of_form,
    real,
    size_of,
)

Allowed = dict[tuple[str, int], Tolerance]
"""Tolerances used on earlier input sets, by the set's name and the number of the output tensor."""

CLOSE = 0.5
"""An output within this share of an earlier tolerance, for the same case and distribution, is
right.

For any other the oracle is computed, which takes ten times as long.
"""
CLOSE_ULPS = 1.0
"""What each element may be off by beyond that: an output in fp8 is often the next number."""

PLAIN_MOST = 1024.0
"""An error beyond this multiple of the tolerance is wrong without asking for plain accumulators.

A sum of a million terms of one sign is off by 30 times the tolerance.
"""

INTEGERS = ("exact", "rounded", "chosen")
"""What integers of an output are: exact, rounded from floats, or chosen by comparing floats.

Rounded ones may be off by one, chosen ones by anything, in `OTHERWISE` of the elements: there the
rounding of floats decides.
"""
OTHERWISE = 1e-3

Make = Callable[[], Any | None]
"""Computes another output of the reference; None if that is not possible."""
MakePlain = Callable[[int], Any | None]
"""The same, by the number of a draw."""


@dataclass(frozen=True)
class Right:
    """What an output is compared with.

    Attributes:
        output: The reference's output in its own precision, a tree.
        oracle: The same in float64 arithmetic. Only called where it is needed.
        plain: The same with the errors of one accumulator per sum, by the number of a draw, if that
            is possible. Only called where it is needed.
        tolerance: The problem's TOLERANCE.
        precision: `ieee` or `tf32`.
        integers: One of `INTEGERS`.
        device: Of every tensor; None for that of the reference's.
    """

    output: Any
    oracle: Make = lambda: None
    plain: MakePlain | None = None
    tolerance: float = 1.0
    precision: str = "ieee"
    integers: str = "exact"
    device: str | None = None


@dataclass(frozen=True)
class Given:
    """A tensor of an output. Its values are only read if its form is right.

    Attributes:
        layout: None if it is strided.
    """

    device: str
    layout: str | None
    dtype: str
    shape: list[int]
    values: Callable[[], torch.Tensor]


def find_wrong_output(
    right: Right, skeleton: tree.Skeleton, given: Sequence[Given], input_set: str, allowed: Allowed
) -> Mismatch | None:
    """What is wrong with an output, or None.

    Args:
        right: What it is compared with.
        skeleton: Its structure.
        given: Its tensors.
        input_set: The name of the input set in `allowed`.
        allowed: Read and updated.
    """
    expected, references = tree.flatten(right.output)
    ordered = in_order_of(expected, skeleton)
    got, wanted = tree.leaves(ordered), tree.leaves(expected)
    if len(got) != len(wanted):
        return Mismatch("arity", f"expected {described(expected)}, got {described(ordered)}")
    if shape_of(ordered) != shape_of(expected):
        return Mismatch("type", f"expected {described(expected)}, got {described(ordered)}")
    for (path, leaf), (_, value) in zip(wanted, got, strict=True):
        found = None
        if ("t" in leaf) != ("t" in value):
            found = Mismatch("type", f"expected {described(leaf)}, got {described(value)}")
        elif "t" in leaf:
            key, tensor = (input_set, leaf["t"]), given[value["t"]]
            found, met = _wrong_tensor(right, references, leaf["t"], tensor, allowed.get(key))
            if met is not None:
                allowed.setdefault(key, met)
        elif repr(leaf) != repr(value):  # True is not 1
            found = Mismatch("values", f"expected {described(leaf)}, got {described(value)}")
        if found is not None:
            return replace(found, output=path)
    return None


COMPLEX = "0 for the real part of an element, 1 for the imaginary part"


def _wrong_tensor(
    right: Right, references: list[torch.Tensor], place: int, given: Given, known: Tolerance | None
) -> tuple[Mismatch | None, Tolerance | None]:
    """What is wrong with one tensor, and a tolerance that it met if there was none that did."""
    reference = references[place]
    device = right.device or reference.device.type
    if given.device != device:
        text = f"expected a tensor on {device}, got one on {given.device}"
        return Mismatch("device", text), None
    if given.layout is not None:
        return Mismatch("type", f"expected a strided tensor, got layout {given.layout}"), None
    if (found := of_form(given.shape, given.dtype, reference)) is not None:
        return found, None
    tensor = given.values()
    if right.integers != "exact" and not is_rounded(reference):
        return wrong_integers(tensor, reference, right.integers, right.tolerance), None
    if known is not None and _close(tensor, reference, known):
        return None, None
    oracle = None
    if is_rounded(reference):
        oracle = in_float64(right.oracle(), references)[place]
    tolerance, share = tolerance_of(reference, oracle, right.tolerance, right.precision)
    found = compare_within(tensor, reference, oracle, tolerance, share)
    make = right.plain
    if make is not None and found and found.kind == "values" and _may_be_rounding(found):
        plain = lambda draw: alike(make(draw), references)[place]  # noqa: E731
        tolerance = with_plain_sums(tolerance, reference, plain, share)
        found = compare_within(tensor, reference, oracle, tolerance, share)
    if found is None:
        return None, tolerance if reference.is_floating_point() else None
    if found.wrong and tensor.is_complex():
        found = replace(found, message=f"{found.message}; the last index is {COMPLEX}")
    if found.wrong:
        mask = mask_of(found, tolerance, tensor.dtype)
        found = replace(found, pattern=pattern_of(mask, *parts(tensor, reference, oracle, share)))
    if found.kind == "values" and reference.is_floating_point() and reference.numel():
        largest = size_of(finite_part, reference).largest
        if name := narrower(tensor, found.worst_error, largest):
            found = replace(found, message=f"{found.message}; all values are exact in {name}")
    return found, None


def wrong_integers(
    tensor: torch.Tensor, reference: torch.Tensor, integers: str, tolerance: float
) -> Mismatch | None:
    """What is wrong with integers that come from floats; `tolerance` is the problem's."""
    most = int(OTHERWISE * tolerance * reference.numel())
    differ = lambda got, wanted: got != wanted  # noqa: E731
    far = lambda got, wanted: (got.long() - wanted.long()).abs() > 1  # noqa: E731
    if integers == "rounded":
        beyond = of_elements(far, (tensor, reference), 1.0, "are off by more than one")
        if beyond is not None:
            return beyond
    if sum(counts_of(differ, tensor, reference)) <= most:
        return None
    text = f"differ from the expected values, and {most} may"
    return of_elements(differ, (tensor, reference), 0.0, text)


def _close(tensor: torch.Tensor, reference: torch.Tensor, known: Tolerance) -> bool:
    """Whether an output is so close to the reference that no oracle is needed."""
    if known.scale is None:
        return near(tensor, reference, known.at(1.0, CLOSE), ulps=CLOSE_ULPS)
    scale, share, _ = scale_of(real(reference))
    return near(real(tensor), real(reference), known.at(scale, CLOSE), share, CLOSE_ULPS)


def _may_be_rounding(found: Mismatch) -> bool:
    """Whether a wrong output is so near that plain accumulators may explain it."""
    if found.tolerance is None:  # no single element is wrong
        return True
    return (found.worst_error or 0.0) <= PLAIN_MOST * found.tolerance


def in_float64(oracle: Any | None, references: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The tensors of an oracle; None for each that is not float64 of the same shape."""
    double = (torch.float64, torch.complex128)
    return [o if o is not None and o.dtype in double else None for o in alike(oracle, references)]


def alike(output: Any | None, references: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The tensors of another output of the reference; None for each that has another shape."""
    tensors = [] if output is None else tree.flatten(output)[1]
    if len(tensors) != len(references):
        return [None] * len(references)
    return [o if o.shape == r.shape else None for o, r in zip(tensors, references, strict=True)]


SHOWN = 300
"""Longest structure or value that is shown, in characters; a claim may have megabytes."""


def in_order_of(wanted: tree.Skeleton, got: tree.Skeleton) -> tree.Skeleton:
    """`got` with dict entries in the order of `wanted`: dicts are equal in any order."""
    (tag, expected), (kind, value) = next(iter(wanted.items())), next(iter(got.items()))
    sequences = {tag, kind} <= {"list", "tuple"}
    if not (sequences or tag == kind == "dict") or len(expected) != len(value):
        return got
    if sequences:
        return {kind: [in_order_of(a, b) for a, b in zip(expected, value, strict=True)]}
    entries = dict(value)
    if entries.keys() != dict(expected).keys():
        return got
    return {tag: [[key, in_order_of(child, entries[key])] for key, child in expected]}


def shape_of(skeleton: tree.Skeleton) -> Any:
    """The containers of a skeleton, without its leaves.

    A list equals a tuple, since C++ returns a vector as a list.
    """
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return ["sequence", [shape_of(child) for child in value]]
    if tag == "dict":
        return [tag, [[key, shape_of(child)] for key, child in value]]
    return "leaf"


def described(skeleton: tree.Skeleton) -> str:
    """A skeleton in words, shortened."""
    text = _describe(skeleton)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _describe(skeleton: tree.Skeleton) -> str:
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return f"a {tag} of ({', '.join(map(_describe, value))})"
    if tag == "dict":
        return f"a dict with {', '.join(repr(key) for key, _ in value) or 'nothing'}"
    return "a tensor" if tag == "t" else repr(tree.unflatten(skeleton, []))
