"""Stream compaction: the elements of a vector that reach a threshold, in their order, without gaps. Two outputs.

    count = number of i with input[i] >= threshold
    output[k] = input[i_k] for k < count, where i_0 < i_1 < ... are those i;    output[k] = 0 for k >= count

input and output are (array_size,), float32, contiguous; count is an int64 scalar, of shape (). `forward` returns the
tuple (output, count). The constructor takes threshold, which is 0.5 in every case; some elements are equal to it, and
are kept. array_size varies between cases. There are no parameters.
Differs from kernrl: the output has the input's length, filled up with zeros, so that shapes do not depend on values;
signed elements on a grid that has the threshold on it, of which two in three are kept; a longer vector.
"""

import torch
import torch.nn as nn

array_size = 2**27
threshold = 0.5

CASES: dict[str, dict] = {
    "cpu": {"array_size": 2_000_000},
    "odd": {"array_size": 1_000_003},
    "small": {"array_size": 1000},
}
TAGS: tuple[str, ...] = ("scan", "irregular")


class Model(nn.Module):
    def __init__(self, threshold: float = 0.5):
        super().__init__()
        self.threshold = threshold

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keep = input >= self.threshold
        place = torch.where(keep, torch.cumsum(keep, 0) - 1, len(input))  # what is dropped goes behind the end
        output = input.new_zeros(len(input) + 1).scatter_(0, place, input * keep)
        return output[:-1].clone(), keep.sum()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(array_size).mul_(2**10).round_().div_(2**10).add_(1)]


def get_init_inputs() -> list:
    return [threshold]
