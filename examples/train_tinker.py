"""Trains with the Tinker cookbook, with an advantage per turn.

TINKER_API_KEY=... python examples/train_tinker.py

Needs pip install '.[tinker]'
"""

import asyncio

from tinker_cookbook.rl import train

from kevin_env.integrations.tinker import KernelDatasetBuilder, PerTurnReturns

config = train.Config(
    model_name="Qwen/Qwen3-8B",
    recipe_name="kevin",
    log_path="runs/kevin",
    learning_rate=2e-6,
    max_tokens=16384,
    dataset_builder=KernelDatasetBuilder(model_name="Qwen/Qwen3-8B", renderer_name="qwen3"),
    rollout_error_tolerance=PerTurnReturns(),
    remove_constant_reward_groups=True,
)

if __name__ == "__main__":
    asyncio.run(train.main(config))
