"""Cross entropy of rows of logits over a large vocabulary, and its gradient with respect to the logits. Two outputs.

    loss = 1 / num_tokens * sum over t of (log(sum over c of exp(logits[t, c])) - logits[t, targets[t]])
    grad[t, c] = (exp(logits[t, c]) / sum over k of exp(logits[t, k]) - [c = targets[t]]) / num_tokens

where [.] is 1 if true, else 0. logits and grad are (num_tokens, vocab_size), float32; targets is (num_tokens,), int64,
every entry in [0, vocab_size); loss is a float32 scalar, of shape (); all contiguous. Logits may be large, so the
maximum of a row must be subtracted before the exponential. `forward` takes (logits, targets) and returns (loss,
grad). Both sizes vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_tokens = 2048
vocab_size = 50257

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 40, "vocab_size": 32000},
    "odd": {"num_tokens": 61, "vocab_size": 3001},
    "single": {"num_tokens": 1, "vocab_size": 128256},
}
BASELINE = "../baselines/cross_entropy_with_gradient.py"
TAGS: tuple[str, ...] = ("loss", "backward", "fused")


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.arange(logits.shape[0], device=logits.device)
        grad = torch.softmax(logits, dim=1)
        grad[rows, targets] -= 1
        return F.cross_entropy(logits, targets), grad / logits.shape[0]


def get_inputs() -> list[torch.Tensor]:
    return [1.5 * torch.randn(num_tokens, vocab_size), torch.randint(0, vocab_size, (num_tokens,))]


def get_init_inputs() -> list:
    return []
