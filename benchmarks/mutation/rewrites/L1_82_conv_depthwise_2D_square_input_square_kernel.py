import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Tap by tap over a padded map."""

    def __init__(
        self,
        in_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        bias: bool = False,
    ):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, in_channels, kernel_size, groups=in_channels, bias=bias
        )
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k, s, p = self.kernel_size, self.stride, self.padding
        padded = F.pad(x, (p, p, p, p))
        height = (padded.shape[2] - k) // s + 1
        width = (padded.shape[3] - k) // s + 1
        y = torch.zeros(x.shape[0], x.shape[1], height, width, dtype=x.dtype)
        for r in range(0, k):
            for c in range(0, k):
                taps = padded[
                    :, :, r : r + (height - 1) * s + 1 : s, c : c + (width - 1) * s + 1 : s
                ]
                y += taps * self.conv2d.weight[:, 0, r, c][:, None, None]
        return y
