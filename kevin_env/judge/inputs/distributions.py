"""The distributions that inputs are drawn from, in addition to that of `get_inputs`.

A value is a random function of the value that `get_inputs` drew: equal entries stay equal, wherever
they are, and zeros stay zero. The rest of an input's structure is imposed on the result.

Among timed inputs, a few entries at secret places come from another distribution. Otherwise a
submission could recognize the inputs of `get_inputs` and take a shortcut while it is timed. Every
answer is checked, so it would have to inspect all entries.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from kevin_env.judge.compare.values import mapped, one_pass, widened
from kevin_env.judge.inputs.structure import Structure

DISTRIBUTIONS = {
    "own": "as `get_inputs` draws them",
    "signed": "standard normal",
    "wide": "normal with std 400, in clusters of width 4 around multiples of 100",
    "offset": "normal with mean 4 and std 1",
    "negative": "as `wide`, all below -100",
}
"""Name and description of each distribution of floating-point inputs.

Each reveals other faults. Narrow arithmetic shows where rounding float32 sums hides it least: where
their partial sums are small, since signs cancel or, for inputs of one sign, since few entries are
not zero. All exponentials of `negative` are zero, which shows a maximum that starts from 0.
"""
BOUNDED = {
    "signed": "around the middle of the range",
    "wide": "near both ends of the range",
    "offset": "in the upper part of the range",
}
"""Where values lie in inputs with a lower and an upper bound."""
SPARSE = "inputs of one sign are mostly zero"
APART, WIDTH = 100.0, 4.0
"""Distance and width of the clusters of `wide`.

The largest numbers of a row share a cluster, so that more than one term of a softmax counts, and
those of most other rows lie in other clusters.
"""
TERMS = 32
"""Terms that are not zero in a product of two sparse inputs, as long as their longest dimension."""


def described(distribution: str, structures: Sequence[Structure]) -> str:
    """A distribution in words, for inputs of these structures."""
    text, drawn = DISTRIBUTIONS[distribution], [each for each in structures if not each.kept]
    if distribution == "own":
        return text
    if distribution == "negative":
        others = not all(map(admits_negative, drawn))
        return text + "; just `wide` where that is out of range" * others
    ends = [sum(map(math.isfinite, each.bounds)) for each in drawn]
    if 1 in ends:
        text += ", as absolute values" + " where inputs have one sign" * (set(ends) != {1})
    if 2 in ends:
        bounded = f"{BOUNDED[distribution]} of inputs that have one"
        text = BOUNDED[distribution] if set(ends) == {2} else f"{text}; {bounded}"
    sparse = [distribution == "signed" and each.one_sided for each in drawn]
    if any(sparse):
        text = f"mostly zero, else {text}" if all(sparse) else f"{text}; {SPARSE}"
    return text


def admits_negative(structure: Structure) -> bool:
    """Whether an input may have values below any bound."""
    return not structure.kept and structure.bounds[0] == -math.inf


def redraw(tensor: torch.Tensor, distribution: str, structure: Structure, key: int) -> torch.Tensor:
    """A tensor that `get_inputs` drew, with values from another distribution; `key` decides them.

    Shape, dtype and structure stay.
    """
    if distribution == "own" or structure.kept:
        return tensor
    sparse = distribution == "signed" and structure.one_sided
    density = min(0.5, math.sqrt(TERMS / max((1, *tensor.shape)))) if sparse else 1.0
    if one_pass(tensor) and tensor.element_size() > 1:  # Triton rounds to fp8 otherwise
        new = _redrawn_on_gpu(tensor, distribution, structure, key, density)
    else:
        new = mapped(
            lambda own: _redrawn(own.float(), distribution, structure, key, density),
            tensor.dtype,
            tensor,
        )
    for d in structure.summing:
        new = (new.float() / new.sum(d, keepdim=True, dtype=torch.float32)).to(new.dtype)
    if structure.descending is not None:
        new = new.sort(dim=-1, descending=structure.descending).values
    return new


def within(values: torch.Tensor, structure: Structure) -> torch.Tensor:
    """Any values, mapped into the range of a structure."""
    low, high = structure.bounds
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) / 2 * (1 + values / (1 + values.abs()))
    if low >= 0:
        return values.abs().clamp(min=low)
    return values.abs().neg().clamp(max=high) if high <= 0 else values


def _redrawn(
    own: torch.Tensor, distribution: str, structure: Structure, key: int, density: float
) -> torch.Tensor:  # fmt: skip
    hashed = _hashed(own, key)
    # 23 bits and a half fit a float32, and are never 0 or 1
    drawn = ((hashed >> 40) & 0x7FFFFF).float().add_(0.5).mul_(2**-22).sub_(1)
    place = Placement.of(distribution, structure)
    drawn = torch.erfinv(drawn).mul_(place.factor)
    if place.clustered:
        centres = drawn.round()
        drawn = drawn.sub_(centres).mul_(WIDTH)  # within half of the width
        if place.below:
            centres = centres.abs().add_(1).neg_()
            drawn = drawn.sub_(2 * WIDTH)
        drawn = drawn.add_(centres, alpha=APART)
    drawn += place.shift
    dropped = (own == 0) | (hashed & 0xFFFF >= density * 0x10000)  # bits that are not used above
    return within(drawn, structure).masked_fill_(dropped, 0)


def _redrawn_on_gpu(
    tensor: torch.Tensor, distribution: str, structure: Structure, key: int, density: float
) -> torch.Tensor:  # fmt: skip
    """As `_redrawn`, of any floating-point dtype."""
    from kevin_env.judge.compare import kernels

    place = Placement.of(distribution, structure)
    drawn = torch.erfinv(kernels.uniform(tensor, key, density)).mul_(place.factor)
    clusters = (APART, WIDTH) if place.clustered else None
    return kernels.placed(drawn, tensor.dtype, clusters, place.below, place.shift, structure.bounds)


@dataclass(frozen=True)
class Placement:
    """Where a distribution has its values.

    Attributes:
        factor: What numbers are multiplied by that have a normal distribution of variance 1/2.
        clustered: Whether they lie in clusters around multiples of `APART`.
        below: Whether the clusters are below 0.
        shift: Is added.
    """

    factor: float
    clustered: bool
    below: bool
    shift: float

    @classmethod
    def of(cls, distribution: str, structure: Structure) -> "Placement":
        """The placement in inputs of a structure; values with two bounds are mapped between them.

        As an offset, 4 would bring all of them near the upper bound, with a squared mean of 1300
        variances.
        """
        bounded = math.inf not in map(abs, structure.bounds)
        wide = distribution in ("wide", "negative")
        return cls(
            factor=math.sqrt(2) * (400 / APART if wide else 1),
            clustered=wide and not bounded,
            below=distribution == "negative" and admits_negative(structure) and not bounded,
            shift=(2.0 if bounded else 4.0) if distribution == "offset" else 0.0,
        )


def _hashed(values: torch.Tensor, key: int) -> torch.Tensor:
    """64 bits per float32 value: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).

    Shifts are arithmetic.
    """
    bits = values.contiguous().view(torch.int32).long()
    bits.add_(key % (1 << 62)).mul_(-0x61C8864680B583EB)
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        bits.bitwise_xor_(bits >> shift).mul_(factor)
    return bits.bitwise_xor_(bits >> 31)


ENTRIES = 64
SHARE = 64
"""At most one in this many entries becomes an outlier."""
NEEDS = "signed"
"""The distribution of outliers; a problem that does not admit it has none."""
TOLD = (
    DISTRIBUTIONS["own"]
    + f", with up to {ENTRIES} entries replaced by normal values of the same RMS"
)


def has_outliers(distribution: str, admitted: Collection[str]) -> bool:
    """Whether inputs of a distribution get outliers in a case that admits these distributions."""
    return distribution == "own" and NEEDS in admitted


def add_outliers(tensors: list[torch.Tensor], structures: Sequence[Structure], seed: int) -> None:
    """Replaces some entries of each floating-point tensor by normal ones of the same RMS, in place.

    Zeros stay, and so do tensors whose entries depend on one another. The tensors are dense, in any
    order. Does not synchronize.
    """
    for i, (tensor, structure) in enumerate(zip(tensors, structures, strict=True)):
        count = min(ENTRIES, tensor.numel() // SHARE)
        if not count or structure.kept or structure.tied:
            continue
        generator = torch.Generator(tensor.device).manual_seed(seed + i)
        flat = tensor.as_strided((tensor.numel(),), (1,))
        places = torch.randint(len(flat), (count,), device=tensor.device, generator=generator)
        wide = widened(flat)
        norm = torch.linalg.vector_norm(wide, dtype=torch.promote_types(wide.dtype, torch.float32))
        values = (
            torch.randn(count, device=tensor.device, generator=generator)
            * norm
            / math.sqrt(len(flat))
        )
        flat[places] = torch.where(wide[places] == 0, 0, within(values, structure)).to(tensor.dtype)
