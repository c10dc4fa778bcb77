"""One iteration of the conjugate gradient method for A x = b with a dense matrix. Four outputs.

    Ap = A p,    alpha = rsold / (p . Ap)
    x_new = x + alpha * p,    r_new = r - alpha * Ap
    rsnew = r_new . r_new,    p_new = r_new + rsnew / rsold * p

A is (matrix_size, matrix_size), symmetric and positive definite; x (the solution so far), r (its residual) and p (the
search direction) are (matrix_size,); rsold is a scalar of shape (), r . r up to rounding. `forward` returns the tuple
(x_new, r_new, p_new, rsnew), rsnew of shape (). All are float32 and contiguous. matrix_size varies between cases. There
are no parameters.
Differs from kernrl: a larger matrix, built without an orthogonalisation, and an independent direction.
"""

import torch
import torch.nn as nn

matrix_size = 16384

CASES: dict[str, dict] = {
    "cpu": {"matrix_size": 2048},
    "odd": {"matrix_size": 509},
    "small": {"matrix_size": 48},
}
TAGS: tuple[str, ...] = ("matmul", "fused")

# Redrawn matrices would not be positive definite: p . Ap could be anything, also next to zero.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(
        self, A: torch.Tensor, x: torch.Tensor, r: torch.Tensor, p: torch.Tensor, rsold: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        Ap = A @ p
        alpha = rsold / torch.dot(p, Ap)
        r_new = r - alpha * Ap
        rsnew = torch.dot(r_new, r_new)
        return x + alpha * p, r_new, r_new + rsnew / rsold * p, rsnew


def get_inputs() -> list[torch.Tensor]:
    # the eigenvalues of the symmetric random part lie between -1.4 and 1.4
    A = torch.randn(matrix_size, matrix_size) / (2 * matrix_size**0.5)
    A = A + A.T
    A.diagonal().add_(2.5)
    x, r, p = torch.randn(3, matrix_size).unbind()
    return [A, x, r, p, torch.dot(r, r)]


def get_init_inputs() -> list:
    return []
