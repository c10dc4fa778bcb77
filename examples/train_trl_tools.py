"""GRPO by TRL where the policy plays by calls of the tool `submit_kernel`: one growing chat and one
reward per episode, the return of its first turn.

python examples/train_trl_tools.py Qwen/Qwen3-8B

TRL runs the tools of its rollouts one after the other, so kernels are judged one at a time;
train_trl.py judges all of a batch concurrently. Needs pip install '.[trl]' 'trl[vllm]'
"""

import argparse

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from kevin_env.integrations.trl import KernelEnvironment
from kevin_env.selection import find_problems

EPISODES, PROBLEMS = 16, 4
"""Episodes of a problem, and problems, in a batch."""
CONFIG = {
    "output_dir": "trained",
    "num_generations": EPISODES,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": EPISODES * PROBLEMS,  # one gradient step a batch
    "max_completion_length": 32768,  # of all turns, with their feedback
    "max_tool_calling_iterations": 4,
    "max_steps": 80,
    "loss_type": "dr_grpo",
    "learning_rate": 2e-6,
    "bf16": True,
    "use_vllm": True,
}


def rows(problems: str = "train") -> Dataset:
    empty = [{"role": "user", "content": ""}]  # the task takes its place
    return Dataset.from_list(
        [{"prompt": empty, "problem": problem.id} for problem in find_problems(problems)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    GRPOTrainer(
        parser.parse_args().model,
        args=GRPOConfig(**CONFIG),
        train_dataset=rows(),
        environment_factory=KernelEnvironment,
    ).train()


if __name__ == "__main__":
    main()
