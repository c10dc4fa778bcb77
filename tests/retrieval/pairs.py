"""References in several spellings, and pairs and indexes made of them."""

from pathlib import Path

from kevin_env.problem import Problem
from kevin_env.retrieval.embedders import TokenHashEmbedder
from kevin_env.retrieval.index import Index, Retriever, build, keep, save
from kevin_env.retrieval.operations import Pair

TASK = '''"""Softmax of a scaled linear layer."""

import torch
import torch.nn as nn

batch_size = 128
CASES = {"cpu": {"batch_size": 8}}


class Model(nn.Module):
    """Scales, then takes the softmax."""

    def __init__(self, in_features, out_features, scale=2.0):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        x = self.linear(x) * self.scale  # scaled
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(batch_size, 64)]


def get_init_inputs():
    return [64, 32]
'''

RENAMED = """import torch
import torch.nn as nn

B = 128


class ScaledHead(nn.Module):
    def __init__(this, width, classes, temperature=2.0):
        super().__init__()
        this.projection = nn.Linear(width, classes)
        this.temperature = temperature

    def forward(this, tokens):
        logits = this.projection(tokens) * this.temperature
        return torch.softmax(logits, dim=1)


def get_inputs():
    return [torch.randn(B, 64)]


def get_init_inputs():
    return [64, 32]
"""

REFORMATTED = """from torch import nn
import torch.nn.functional as F
import torch

class Model(nn.Module):

  # other layout, other statements, another spelling of each operation

  def __init__(self,
               in_features: int,
               out_features: int,
               scale: float = 2.0):
    super(Model, self).__init__()
    self.linear = nn.Linear(in_features,
                            out_features)
    self.scale = scale
    self.softmax = nn.Softmax(dim=1)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    return self.softmax(
        torch.mul(
            self.linear(x),
            self.scale))

def get_inputs(): return [torch.randn(128, 64)]
def get_init_inputs(): return [64, 32]
"""

OTHER_CONSTANTS = (
    TASK.replace("128", "4096")
    .replace("64, 32", "1000, 10")
    .replace("2.0", "0.125")
    .replace("dim=1", "dim=-1")
)

COPIES = {
    "exact": TASK,
    "renamed": RENAMED,
    "reformatted": REFORMATTED,
    "other constants": OTHER_CONSTANTS,
}


def module(body: str, name: str = "Model", setup: str = "pass") -> str:
    """A reference whose `forward` takes x and y."""
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
        f"class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {setup}\n\n"
        f"    def forward(self, x, y):\n        {body}\n\n\n"
        "def get_inputs():\n    return [torch.rand(4, 4), torch.rand(4, 4)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )


def pair(name: int, reference: str, language: str = "triton", **fields) -> Pair:
    """A pair whose kernel can be told by its name."""
    given = {
        "id": f"kernelbook:{name}",
        "origin": "kernelbook",
        "kernel": f"# kernel {name}\n",
    } | fields
    return Pair.model_validate(given | {"language": language, "reference": reference})


def problem(source: str = TASK, **fields) -> Problem:
    return Problem.model_validate({"id": "task", "source": source, "name": "task"} | fields)


def index_of(pairs: list[Pair]) -> Index:
    return build(keep(pairs).pairs, TokenHashEmbedder())


def retriever_of(pairs: list[Pair]) -> Retriever:
    return Retriever(index_of(pairs), TokenHashEmbedder())


def saved(pairs: list[Pair], folder: Path) -> str:
    save(index_of(pairs), folder)
    return str(folder)
