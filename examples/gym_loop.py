"""A Gymnasium loop with a scripted policy on the CPU: a wrong answer, then a right one.

python examples/gym_loop.py
"""

import gymnasium as gym

import kevin_env  # noqa: F401  registers Kevin-v0

KERNEL = """
```python
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return {}
```
"""
REPLIES = [KERNEL.format("torch.relu(x)"), KERNEL.format("torch.nn.functional.gelu(x)")]


def main() -> None:
    env = gym.make(
        "Kevin-v0", problem="L1_26_GELU_", device="cpu", rules="open", max_turns=len(REPLIES)
    )
    _, info = env.reset(seed=0)
    for reply in REPLIES:
        _, score, terminated, _, info = env.step(reply)
        outcome = info["outcome"]
        print(f"{outcome.category}/{outcome.kind}: {outcome.message} (score {score:.2f})")
        if terminated:
            print("returns", [round(r, 2) for r in info["returns"]])
    env.close()


if __name__ == "__main__":
    main()
