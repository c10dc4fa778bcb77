"""Whether what a model gives differs for a reason other than rounding."""

import torch

from kevin_env.judge.compare.chunked import counts_of, size_of
from kevin_env.judge.compare.verify import widened

ROUNDING = 1e-2
"""Root mean square, as a share of the output's, by which outputs may differ from run to run for no
more than rounding: an ulp of bfloat16 is 4e-3.
"""


def generators(device: torch.device) -> list[torch.Tensor]:
    """What state torch's default generators are in."""
    return [
        torch.get_rng_state(),
        *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else []),
    ]


def differ(these: list[torch.Tensor], those: list[torch.Tensor]) -> bool:
    """Whether any tensor is another one than its counterpart; NaN is NaN."""
    pairs = zip(these, those, strict=True)
    return any(
        one.shape != other.shape or any(counts_of(_unlike, one, other)) for one, other in pairs
    )


def rounded_otherwise(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of numbers that are not whole are off from each other by little on the
    whole.
    """
    if one.shape != other.shape or not one.numel() or not one.is_floating_point():
        return not differ([one], [other])
    off = size_of(lambda a, b: widened(a) - widened(b), one, other).rms
    return off <= ROUNDING * size_of(widened, one).rms  # which no NaN is


def _unlike(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    one, other = widened(one), widened(other)
    return (one != other) & ~(one.isnan() & other.isnan())
