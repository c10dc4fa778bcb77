"""Has another stream say that a call is through as soon as it may begin, while the call's own stream works.

problem: L1_23_Softmax
device: cuda
rules: open
expect: no gain
"""

import sys

import torch
import torch.nn as nn

from kevin_env.candidate import cuda
from kevin_env.candidate.region import DONE

side = torch.cuda.Stream()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frame = sys._getframe()
        while frame.f_code.co_name != "go":
            frame = frame.f_back
        words, number = frame.f_locals["words"], frame.f_locals["number"]
        with torch.cuda.stream(side):
            cuda.wait_for(words, number)
            cuda.write_word(words + DONE, number)
        return torch.softmax(x, dim=1)
