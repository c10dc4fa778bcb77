"""A few entries of another distribution, within the input's structure, at secret places among those
that are timed.

A submission that is right only for what the problem's `get_inputs` draws could look which
distribution it was given and take a shortcut where the clock runs. With a handful of other entries
in between, each of them checked, it would have to look at all.
"""

import math
from collections.abc import Collection, Sequence

import torch

from kevin_env.judge.compare.verify import widened
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS, within
from kevin_env.judge.inputs.structure import Structure

ENTRIES = 64
SHARE = 64
"""At most one entry in this many is planted."""
NEEDS = "signed"
"""The distribution whose values are planted; where the problem does not admit it, nothing is."""
TOLD = f"{DISTRIBUTIONS['own']}, with up to {ENTRIES} entries replaced by normal values of the same RMS"


def planted(distribution: str, admitted: Collection[str]) -> bool:
    """Whether inputs of a distribution get such entries, in a case where these distributions are
    `admitted`.
    """
    return distribution == "own" and NEEDS in admitted


def plant(tensors: list[torch.Tensor], structures: Sequence[Structure], seed: int) -> None:
    """Overwrites some entries of each floating-point tensor, in place, by normal ones with its root
    mean square.

    Zeros stay, and so do tensors whose entries depend on one another. The tensors are dense, in
    whatever order. Nothing waits for the device.
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
