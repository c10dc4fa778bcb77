"""A model with known work: on a GPU it streams some memory, on a CPU it does nothing."""

import torch


class ModelNew:
    """Adds one to a buffer.

    Args:
        size: Of the buffer, in bytes; 0 for a single number.
        device: Of the buffer; torch's default otherwise.
    """

    def __init__(self, size: int, device: torch.device | None = None) -> None:
        self.source = torch.zeros(max(1, size // 4), device=device)
        self.target = torch.zeros_like(self.source)

    def __call__(self, *inputs: object) -> torch.Tensor:
        """Launches the kernel and returns the first number."""
        torch.add(self.source, 1, out=self.target)
        return self.target[:1]
