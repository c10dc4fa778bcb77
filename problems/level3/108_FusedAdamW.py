"""One step of AdamW on one flat parameter vector. Three outputs.

    m' = beta1 * m + (1 - beta1) * g
    v' = beta2 * v + (1 - beta2) * g^2
    p' = p - lr * weight_decay * p - lr * (m' / (1 - beta1^step)) / (sqrt(v' / (1 - beta2^step)) + eps)

p (param), g (grad), m (exp_avg), v (exp_avg_sq) and the three results are (num_parameters,), float32, contiguous; no
entry of v is negative. `forward` takes (param, grad, exp_avg, exp_avg_sq) and returns (p', m', v') in new memory: the
inputs are not modified. The constructor takes lr, beta1, beta2, eps, weight_decay and step, an int >= 1: plain
numbers. num_parameters, step, lr and beta2 vary between cases, the others do not. eps is larger than usual, so that
it matters.
"""

import math

import torch
import torch.nn as nn

num_parameters = 2**26
lr = 3e-3
beta1 = 0.9
beta2 = 0.999
eps = 1e-3
weight_decay = 0.1
step = 1000

CASES: dict[str, dict] = {
    "cpu": {"num_parameters": 1_000_000, "step": 10},
    "odd": {"num_parameters": 100_003, "step": 1, "lr": 1e-3},
    "small": {"num_parameters": 50, "step": 100_000, "beta2": 0.95},
}
TAGS: tuple[str, ...] = ("elementwise", "fused")

# The second moment cannot be negative.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int):
        super().__init__()
        self.lr, self.beta1, self.beta2, self.eps, self.weight_decay = lr, beta1, beta2, eps, weight_decay
        self.step = step

    def forward(
        self, param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        m = self.beta1 * exp_avg + (1 - self.beta1) * grad
        v = self.beta2 * exp_avg_sq + (1 - self.beta2) * grad.square()
        root = v.sqrt() / math.sqrt(1 - self.beta2**self.step) + self.eps
        decayed = param * (1 - self.lr * self.weight_decay)
        return decayed - self.lr / (1 - self.beta1**self.step) * m / root, m, v


def get_inputs() -> list[torch.Tensor]:
    param, grad, exp_avg = (torch.randn(num_parameters) for _ in range(3))
    return [0.05 * param, 0.1 * grad, 0.03 * exp_avg, 0.01 * (0.1 + torch.rand(num_parameters))]


def get_init_inputs() -> list:
    return [lr, beta1, beta2, eps, weight_decay, step]
