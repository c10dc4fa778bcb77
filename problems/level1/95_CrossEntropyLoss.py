"""Cross entropy between rows of scores and one correct class each, averaged over the batch.

    loss = 1 / batch_size * sum over b of (log(sum over c of exp(predictions[b, c])) - predictions[b, targets[b]])

predictions is (batch_size, num_classes), float32; targets is (batch_size,), int64, every entry in [0, num_classes);
both are contiguous. loss is a float32 scalar, of shape (). Scores may be large, so the logarithm of the sum must be
taken in a form that does not overflow. batch_size and num_classes vary between cases. There are no parameters.
Differs from KernelBench: scores are signed and wider, so that the classes of a row differ; there are more classes.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 32768
num_classes = 8192
input_shape = (num_classes,)

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2000, "num_classes": 1000},
    "odd": {"batch_size": 127, "num_classes": 1021},
    "single": {"batch_size": 1, "num_classes": 4096},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 311, "num_classes": 1543}}
BASELINE = "../baselines/cross_entropy.py"
TAGS: tuple[str, ...] = ("loss",)


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(predictions, targets)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, *input_shape), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs() -> list:
    return []
