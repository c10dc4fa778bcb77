"""Trains a model as Kevin was trained: GRPO over turns, by TRL with vLLM, each batch with easy and
hard problems.

python examples/train_trl.py Qwen/Qwen3-8B [--config FILE] [-o KEY=VALUE] [--steps 40] [--record
episodes.jsonl]

FILE is one of examples/configs, as `kevin-env eval` takes it: its settings, its samples (the
episodes in a group), and how it samples replies, hold for training, too. With single_turn.toml and
retrieved.toml give --max-turns 1.

On several GPUs: accelerate launch --num_processes 4 examples/train_trl.py ... The kernels are
judged on `--judge`; give them a separate GPU that the trainer does not see
(CUDA_VISIBLE_DEVICES holds for both), or they share one with it, and the judge repeats what the
trainer disturbs. Needs pip install '.[trl]' 'trl[vllm]'
"""

import argparse
import os
from pathlib import Path
from typing import Any

from kevin_env.app.evaluate.config import EvalConfig, read_config
from kevin_env.curriculum import MixedDifficulty
from kevin_env.integrations.trl import TurnRollouts, turn_return
from kevin_env.recorder import Recorder

KEVIN = Path(__file__).parent / "configs" / "kevin.toml"
TURNS = 4
"""Kevin's number in training; its evaluation had eight."""
PROMPT_TOKENS = 8_192
REPLY_TOKENS = 16_384


def main() -> None:
    from trl import GRPOConfig, GRPOTrainer

    arguments = parse()
    played = read(arguments)
    recorder = Recorder(arguments.record) if arguments.record else None
    problems = MixedDifficulty(played.problem, bands=4)
    rollouts = TurnRollouts(problems, settings=played.settings, recorder=recorder)
    trainer = GRPOTrainer(
        arguments.model,
        turn_return,
        GRPOConfig(**config(arguments, played)),
        train_dataset=rollouts.dataset(),
        rollout_func=rollouts,
    )
    trainer.train()
    trainer.save_model()


def read(arguments: argparse.Namespace) -> EvalConfig:
    """Settings of the file, with the problems, turns and device of the command line."""
    flags = {
        "problem": arguments.problem,
        "settings.max_turns": arguments.max_turns,
        "settings.device": arguments.judge,
        "settings.context_tokens": PROMPT_TOKENS,
        "policy.model": arguments.model,
    }
    return read_config(arguments.config, arguments.override, flags)


def config(arguments: argparse.Namespace, played: EvalConfig) -> dict[str, Any]:
    """Kevin's numbers (arXiv 2507.11948): 8 problems of 16 episodes of 4 turns a batch, two
    gradient steps on each.
    """
    group = played.samples * played.settings.max_turns
    batch = arguments.groups * group
    reply_tokens = getattr(played.policy, "max_tokens", None) or REPLY_TOKENS
    return {
        "output_dir": arguments.out,
        "max_steps": 2 * arguments.steps,
        "num_generations": group,
        "generation_batch_size": batch,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": batch // 2 // int(os.environ.get("WORLD_SIZE", "1")),
        "max_completion_length": reply_tokens,
        **(
            {"temperature": 0.9}
            | played.policy.model_dump(include={"temperature", "top_p"}, exclude_none=True)
        ),
        "shuffle_dataset": False,  # the mix decides
        "scale_rewards": "group",
        "loss_type": "dr_grpo",
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "learning_rate": 2e-6,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": 0.03,
        "max_grad_norm": 0.05,
        "bf16": True,
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_enable_sleep_mode": True,  # frees its memory for the trainer and the judge
        "vllm_max_model_length": PROMPT_TOKENS + reply_tokens,
        "logging_steps": 1,
        "report_to": arguments.report_to,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument(
        "--config", type=Path, default=KEVIN, help="one of examples/configs, or your own"
    )
    parser.add_argument(
        "-o", dest="override", action="append", default=[], help="such as settings.language=triton"
    )
    parser.add_argument("--problem", default="train")
    parser.add_argument("--max-turns", type=int, default=TURNS, help="of an episode")
    parser.add_argument("--judge", default="auto", help="where kernels are judged, such as cuda:0")
    parser.add_argument("--steps", type=int, default=40, help="batches; each is two gradient steps")
    parser.add_argument("--groups", type=int, default=8, help="problems in a batch")
    parser.add_argument("--record", help="a trajectory file to write")
    parser.add_argument("--report-to", default="none", help="tensorboard, wandb, ...")
    parser.add_argument("--out", default="trained")
    return parser.parse_args()


if __name__ == "__main__":
    main()
