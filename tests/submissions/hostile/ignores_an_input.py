"""Never looks at the targets: takes class 0 to be right in every row.

problem: L1_95_CrossEntropyLoss
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (torch.logsumexp(predictions, dim=1) - predictions[:, 0]).mean()
