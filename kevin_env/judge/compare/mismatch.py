"""What is told of an output that is not the reference's."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from kevin_env.judge.compare.chunked import Size, Values, counts_of, first_of, largest_of
from kevin_env.outcome import Difference, Pattern

SHOWN = 5


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with one output tensor: a kind of `Incorrect` and its facts."""

    kind: str
    message: str
    wrong: int | None = None
    total: int | None = None
    worst_error: float | None = None
    tolerance: float | None = None
    differences: tuple[Difference, ...] = ()
    pattern: Pattern | None = None


def of_form(got: torch.Tensor, reference: torch.Tensor) -> Mismatch | None:
    """A wrong shape or dtype."""
    if got.shape != reference.shape:
        return Mismatch("shape", f"expected shape {list(reference.shape)}, got {list(got.shape)}")
    if got.dtype != reference.dtype:
        return Mismatch("dtype", f"expected {_dtype(reference)}, got {_dtype(got)}")
    return None


def of_elements(
    wrong: Values, tensors: tuple[torch.Tensor, ...], allowed: float, what: str, kind: str = "values",
    error: float | None = None,
) -> Mismatch | None:  # fmt: skip
    """Single elements that are wrong, and the first of them; None where there are none.

    Args:
        wrong: Makes a mask of them from pieces of `tensors`.
        tensors: First the submission's output, last what is expected.
        allowed: What each may be off by.
        what: Is the matter with them.
        kind: Of the mismatch.
        error: The largest one, where there is one to tell.
    """
    counts, total = counts_of(wrong, *tensors), tensors[0].numel()
    count = sum(counts)
    if count == 0:
        return None
    shown = _differences(first_of(wrong, counts, SHOWN, *tensors), tensors)
    text = f"{count} of {total} elements ({100 * count / total:.3g} %) {what}"
    return Mismatch(kind, text, count, total, error, allowed, shown)


def of_the_whole(
    errors: Values, tensors: tuple[torch.Tensor, ...], error: Size, allowed: float
) -> Mismatch:
    """Elements of which none is wrong alone, and those that are off most.

    Args:
        errors: Makes the magnitudes of what they are off by from pieces of `tensors`.
        tensors: First the submission's output, last what is expected.
        error: What `errors` are together.
        allowed: The root mean square that they may have.
    """
    text = f"the root mean square error is {error.rms:.3g}, allowed {allowed:.3g}; no single element exceeds its tolerance"
    shown = _differences(largest_of(errors, SHOWN, *tensors), tensors)
    return Mismatch("values", text, None, tensors[0].numel(), error.largest, None, shown)


def _differences(
    places: Iterable[tuple[int, ...]], tensors: tuple[torch.Tensor, ...]
) -> tuple[Difference, ...]:
    got, expected = tensors[0], tensors[-1]
    return tuple(
        Difference(index=at, expected=_number(expected[at]), got=_number(got[at])) for at in places
    )


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
