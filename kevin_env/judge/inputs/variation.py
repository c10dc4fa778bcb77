"""Changes weights as a constructor draws them, in place, so that they show more faults."""

from collections.abc import Callable, Sequence

import torch

from kevin_env.judge.compare.values import pieces

LEANING = 0x9000
"""The highest bits that bfloat16, and TF32 and float16, lack.

They are set in positive weights and cleared in negative ones, so that rounding to any of these
formats raises every weight. Errors of random sign average out in long sums, these do not.
"""
NARROWED = 0xFFFF
"""The bits that bfloat16 lacks. A weight with none of them set is not changed."""


def vary(parameters: Sequence[torch.Tensor], seed: int) -> None:
    """Adds noise to parameters of few distinct values; a single number keeps its sign."""
    if not parameters:
        return
    generator = torch.Generator(parameters[0].device).manual_seed(seed)
    few = torch.stack([_has_two_values(each) for each in parameters]).tolist()

    def noise(draw: Callable[..., torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        return 0.1 * draw(like.shape, dtype=like.dtype, device=like.device, generator=generator)

    for parameter in (each for each, has in zip(parameters, few, strict=True) if has):
        if parameter.numel() == 1:
            parameter.mul_(1 + noise(torch.rand, parameter))
            parameter.add_(noise(torch.rand, parameter) * (parameter == 0))
        else:
            parameter.add_(noise(torch.randn, parameter))


def lean(parameter: torch.Tensor) -> None:
    """Sets or clears the lowest bits of a float32 parameter (`LEANING`), in place."""
    for (bits,) in pieces(parameter.view(torch.int32)):
        leaning = torch.where(bits < 0, bits & ~LEANING, bits | LEANING)
        bits.copy_(torch.where((bits & NARROWED) == 0, bits, leaning))


def _has_two_values(tensor: torch.Tensor) -> torch.Tensor:
    """Whether it has at most two distinct values. Does not wait for the device."""
    flat = tensor.flatten()
    other = flat.gather(0, (flat != flat[0]).to(torch.uint8).argmax(keepdim=True))
    return ((flat == flat[0]) | (flat == other)).all()
