import torch
import torch.nn as nn

BLOCK = 4096


class Model(nn.Module):
    """Online maximum and sum over blocks of the vocabulary, then the gradient block by block."""

    def forward(
        self, logits: torch.Tensor, targets: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = logits.shape
        most = torch.full((rows, 1), float("-inf"), dtype=logits.dtype)
        total = torch.zeros(rows, 1, dtype=logits.dtype)
        for start in range(0, columns, BLOCK):
            part = logits[:, start : start + BLOCK]
            higher = torch.maximum(most, part.amax(dim=1, keepdim=True))
            total = total * torch.exp(most - higher) + torch.exp(part - higher).sum(
                dim=1, keepdim=True
            )
            most = higher
        chosen = logits.gather(1, targets[:, None])
        loss = (torch.log(total) + most - chosen).sum() / rows
        grad = torch.empty_like(logits)
        for start in range(0, columns, BLOCK):
            part = torch.exp(logits[:, start : start + BLOCK] - most) / total
            hit = torch.arange(start, start + part.shape[1]) == targets[:, None]
            grad[:, start : start + BLOCK] = (part - hit.to(part.dtype)) / rows
        return loss, grad
