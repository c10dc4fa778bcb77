"""What broken kernels leave in an otherwise right output: mutants of outputs, not of code."""

import random
from collections.abc import Callable, Iterator
from functools import partial

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import POISON

from .jury import Mutant
from .samples import Sample

TILE = 16
RUN = 32
"""Sides of a wrong tile of a matrix, and length of a wrong run of a vector."""
Change = Callable[[torch.Tensor, Sample, int, random.Random], None]
"""Changes one output in place, given the sample, the output's number and where to take chances
from.
"""


def value_mutants(sample: Sample) -> Iterator[Mutant]:
    """Every change that makes sense for the outputs of a problem, of which `sample` is one of the
    timed case.
    """
    for i, output in enumerate(sample.outputs):
        where = f" of output {i}" if len(sample.outputs) > 1 else ""
        for kind, name, change in _changes(output):
            yield Mutant(
                "value",
                kind,
                f"{name}{where}",
                partial(_changed, name=name, number=i, change=change),
            )
    for i, tensor in enumerate(sample.tensors):
        for axis in range(tensor.dim()):
            for part in ("last", "first"):
                name = f"{part} slice of axis {axis} of input {i} not read"
                yield Mutant(
                    "value",
                    "missing from a reduction",
                    name,
                    partial(_unread, i=i, axis=axis, part=part),
                )
    for name, _ in sample.case.model.named_parameters():
        yield Mutant("value", "missing weight", f"{name} not used", partial(_without, name=name))


def _changed(sample: Sample, name: str, number: int, change: Change) -> object:
    outputs = [output.clone(memory_format=torch.contiguous_format) for output in sample.outputs]
    change(outputs[number], sample, number, random.Random(f"{name}/{number}/{sample.number}"))
    return tree.unflatten(sample.shape, outputs)


def _unread(sample: Sample, i: int, axis: int, part: str) -> object:
    tensors = [tensor.clone() for tensor in sample.tensors]
    tensors[i].select(axis, -1 if part == "last" else 0).zero_()
    return sample.answer(tensors)


def _without(sample: Sample, name: str) -> object:
    parameter = sample.case.model.get_parameter(name)
    kept = parameter.detach().clone()
    try:
        parameter.detach().zero_()
        return sample.answer()
    finally:
        parameter.detach().copy_(kept)


def _changes(output: torch.Tensor) -> Iterator[tuple[str, str, Change]]:
    yield from _single(output)
    if output.numel() == 1:
        return
    for share, what in ((0.0, "last element"), (1 / 64, "last 64th"), (0.25, "last quarter")):
        for fill in ("zero", "stale", "poison"):
            yield "dropped tail", f"{what} {fill}", partial(_tail, share=share, fill=fill)
    for fill in ("zero", "neighbour", "transposed", "other seed"):
        yield "wrong tile", f"one tile {fill}", partial(_tile, fill=fill)
    yield "race", "one tile of the previous call", partial(_tile, fill="previous")
    yield "race", "second half of the previous call", partial(_tail, share=0.5, fill="previous")
    for axis in range(output.dim()):
        yield "shift", f"rolled by one along axis {axis}", partial(_rolled, axis=axis)
        yield "shift", f"two slices of axis {axis} exchanged", partial(_exchanged, axis=axis)


def _single(output: torch.Tensor) -> Iterator[tuple[str, str, Change]]:
    if output.is_floating_point() or output.is_complex():
        for share in (0.1, 0.01, 0.001):
            yield (
                "one wrong element",
                f"one element off by {share:g} of the spread",
                partial(_off, share=share),
            )
        yield "one wrong element", "one sign", partial(_one, fill="negated")
        yield "not finite", "one NaN", partial(_one, fill="nan")
        yield "not finite", "one infinity", partial(_one, fill="inf")
    elif output.dtype != torch.bool:
        yield "one wrong element", "one element off by one", partial(_one, fill="one more")
    yield "one wrong element", "one element stale", partial(_one, fill="stale")
    yield "one wrong element", "one element zero", partial(_one, fill="zero")


def _tail(
    output: torch.Tensor,
    sample: Sample,
    number: int,
    chance: random.Random,
    share: float,
    fill: str,
) -> None:
    count = max(1, int(share * output.numel()))
    _fill(
        output.view(-1)[-count:], fill, lambda source: source.reshape(-1)[-count:], sample, number
    )


def _tile(
    output: torch.Tensor, sample: Sample, number: int, chance: random.Random, fill: str
) -> None:
    """A tile of the last two axes, at a random place and no larger than half of each, so that it
    has a neighbour.
    """
    place: list[int | slice] = [chance.randrange(size) for size in output.shape[:-2]]
    neighbour = list(place)
    sides = [min(TILE if output.dim() > 1 else RUN, -(-size // 2)) for size in output.shape[-2:]]
    for size, side in zip(output.shape[-2:], sides, strict=True):
        start = chance.randrange(size - side + 1)
        beside = start + side if start + 2 * side <= size else max(0, start - side)
        place.append(slice(start, start + side))
        neighbour.append(slice(beside, beside + side))
    tile = output[tuple(place)]
    if fill == "neighbour":
        tile.copy_(output[tuple(neighbour)].clone())
    elif fill == "transposed":
        tile.copy_(tile.flip(-1) if tile.dim() < 2 or sides[0] != sides[1] else tile.mT.clone())
    else:
        _fill(tile, fill, lambda source: source[tuple(place)], sample, number)


def _fill(
    target: torch.Tensor,
    fill: str,
    cut: Callable[[torch.Tensor], torch.Tensor],
    sample: Sample,
    number: int,
) -> None:
    if fill == "zero":
        target.zero_()
    elif fill == "poison":
        target.copy_(
            torch.full((target.element_size(),), POISON, dtype=torch.uint8).view(target.dtype)
        )
    else:
        source = (sample.previous if fill == "previous" else sample.other)[number]
        if source.shape == sample.outputs[number].shape:
            target.copy_(cut(source))


def _rolled(
    output: torch.Tensor, sample: Sample, number: int, chance: random.Random, axis: int
) -> None:
    output.copy_(output.roll(1, axis))


def _exchanged(
    output: torch.Tensor, sample: Sample, number: int, chance: random.Random, axis: int
) -> None:
    size = output.shape[axis]
    first = chance.randrange(size)
    second = (first + 1) % size
    kept = output.select(axis, first).clone()
    output.select(axis, first).copy_(output.select(axis, second).clone())
    output.select(axis, second).copy_(kept)


def _off(
    output: torch.Tensor, sample: Sample, number: int, chance: random.Random, share: float
) -> None:
    wide = output.to(torch.complex128 if output.is_complex() else torch.float64)
    spread = float(wide.std()) if output.numel() > 1 else float(wide.abs())
    flat = output.view(-1)
    flat[chance.randrange(flat.numel())] += share * spread


def _one(
    output: torch.Tensor, sample: Sample, number: int, chance: random.Random, fill: str
) -> None:
    flat = output.view(-1)
    at = chance.randrange(flat.numel())
    if fill == "negated":
        flat[at] = -flat[at]
    elif fill == "one more":
        flat[at] += 1
    elif fill in ("nan", "inf"):
        flat[at] = float(fill)
    else:
        _fill(
            flat[at : at + 1], fill, lambda source: source.reshape(-1)[at : at + 1], sample, number
        )
