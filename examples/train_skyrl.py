"""GRPO with SkyRL 0.3: one growing chat an episode, with a score per turn.

kevin-env export-problems train --out kevin.parquet
python examples/train_skyrl.py [generator.inference_engine.num_engines=4 ...]

Options of SkyRL override those below. Needs pip install '.[skyrl]' 'skyrl[fsdp]'
"""

import sys

import ray
import skyrl_gym
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp, validate_cfg
from skyrl.train.utils import initialize_ray

from kevin_env.settings import Settings

OPTIONS = [
    "data.train_data=['kevin.parquet']",
    "data.val_data=null",
    "environment.env_class=kevin",
    "generator.max_turns=4",
    "generator.batched=false",
    "generator.n_samples_per_prompt=16",
    "trainer.max_prompt_length=8192",
    # Before each reply the whole chat must fit here. By default it is max_prompt_length; if that is
    # shorter than the task, the generator fails.
    "generator.max_input_length=32768",
    "generator.sampling_params.max_generate_length=8192",
    "generator.sampling_params.temperature=0.9",
    "trainer.policy.model.path=Qwen/Qwen3-8B",
    "trainer.policy.optimizer_config.lr=2e-6",
    "trainer.algorithm.advantage_estimator=grpo",
    "trainer.train_batch_size=8",
    "trainer.policy_mini_batch_size=4",
    "trainer.eval_interval=-1",
    "trainer.eval_before_train=false",
    "trainer.logger=console",
]


def register(settings: Settings | None = None) -> None:
    """In the process that plays."""
    skyrl_gym.register(
        "kevin",
        "kevin_env.integrations.skyrl:KernelEnv",
        {"settings": settings or Settings(rules="kernel")},
    )


@ray.remote(num_cpus=1)
def train(config: SkyRLTrainConfig) -> None:
    register()
    BasePPOExp(config).run()


def main() -> None:
    config = SkyRLTrainConfig.from_cli_overrides([*OPTIONS, *sys.argv[1:]])
    validate_cfg(config)
    initialize_ray(config)
    ray.get(train.remote(config))


if __name__ == "__main__":
    main()
