"""Narrower numbers, emulated: types that a kernel may compute in to be faster."""

from collections.abc import Callable

import torch

Rounding = Callable[[torch.Tensor], torch.Tensor]


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Float32 rounded to the ten bits of mantissa of TF32, ties away from zero; other types as they
    are.
    """
    if x.dtype != torch.float32:
        return x
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def bf16(x: torch.Tensor) -> torch.Tensor:
    """Rounded to bfloat16."""
    return x.to(torch.bfloat16).to(x.dtype)


def fp16(x: torch.Tensor) -> torch.Tensor:
    """Rounded to float16."""
    return x.to(torch.float16).to(x.dtype)


ROUNDINGS: dict[str, Rounding] = {"tf32": tf32, "bf16": bf16, "fp16": fp16}
