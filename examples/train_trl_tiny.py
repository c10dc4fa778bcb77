"""GRPO on a policy of a few thousand weights, with scores from real judgements: a training run that
fits on any machine.

python examples/train_trl_tiny.py [--device cpu] [--steps 8]

The policy answers with one word, and every word is a whole reply: a kernel that is right, one that
is right and slow, one that is wrong, and one that breaks the rules. It learns which to give. Needs
TRL: pip install '.[trl]'
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kevin_env.integrations.trl import TurnRollouts, turn_return
from kevin_env.judge.api import gpu_present
from kevin_env.pools.local import LocalPool
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

PROBLEM = "L1_23_Softmax"
SOLUTIONS = Path(__file__).parent.parent / "problems" / "solutions"
PAD, END = "<pad>", "<end>"
CHAT = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
FORBIDDEN = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
"""


def words(on_gpu: bool) -> list[str]:
    """The replies that the policy can give."""
    right = (SOLUTIONS / f"{PROBLEM}.{'triton' if on_gpu else 'cpp'}.py").read_text()
    slow = [right.replace("num_warps=warps", "num_warps=1")] if on_gpu else []
    wrong = right.replace("return y", "return x")
    return [f"```python\n{code}```\n" for code in (right, *slow, wrong, FORBIDDEN)]


def make_tokenizer(words: Sequence[str], chat_template: str = CHAT) -> Any:
    """A tokenizer that knows `PAD`, `END` and `words`, each as one token; everything else is
    unknown.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([PAD, END, *words, "<unknown>"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)
    fast.chat_template = chat_template
    return fast


def make_model(tokenizer: Any, seed: int = 0) -> Any:
    """A model with random weights, for which all words are about equally likely."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            max_position_embeddings=32768,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )


def main() -> None:
    from trl import GRPOConfig, GRPOTrainer

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="auto", help="where kernels are judged")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=8, help="in a group")
    parser.add_argument("--record", help="a trajectory file to write")
    arguments = parser.parse_args()
    # It knows only a few kernels, so it must repeat some.
    settings = Settings(max_turns=2, device=arguments.device, pay_repeats=True)
    recorder = Recorder(arguments.record) if arguments.record else None
    tokenizer = make_tokenizer(words(on_gpu=arguments.device != "cpu" and gpu_present()))
    size = arguments.episodes * settings.max_turns
    with tempfile.TemporaryDirectory() as folder, LocalPool() as pool:
        rollouts = TurnRollouts(PROBLEM, pool=pool, settings=settings, recorder=recorder)
        config = GRPOConfig(
            output_dir=folder,
            max_steps=arguments.steps,
            num_generations=size,
            per_device_train_batch_size=size,
            max_completion_length=1,
            learning_rate=0.05,
            lr_scheduler_type="constant",
            loss_type="dr_grpo",
            scale_rewards="none",
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            gradient_checkpointing=False,
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            make_model(tokenizer),
            turn_return,
            config,
            train_dataset=rollouts.dataset(),
            rollout_func=rollouts,
            processing_class=tokenizer,
        )
        trainer.train()
        for row in trainer.state.log_history[:-1]:
            print(
                f"step {row['step']}: score {row['kevin/score']:.3f}, "
                f"correct {row['kevin/correct']:.0%}"
            )


if __name__ == "__main__":
    main()
