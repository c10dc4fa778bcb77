"""A local model in this process plays two turns, without a network.

python examples/local_model.py [FOLDER_OR_HUB_NAME]

Without an argument it makes a tiny model with random weights first. It writes gibberish, never a
kernel, but is used like a real one. Needs transformers: pip install '.[local]'
"""

import argparse
import tempfile
from pathlib import Path

from kevin_env.episode import Episode
from kevin_env.policies import TransformersPolicy
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.settings import Settings

CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tiny_model(folder: Path) -> None:
    """Saves a model of some 100,000 random weights, with a tokenizer and a chat template."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        [Path(__file__).read_text()],
        trainers.BpeTrainer(
            vocab_size=512, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = CHATML
    config = Qwen3Config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=16384,
        pad_token_id=0,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config)
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", nargs="?", help="a folder, or a name at the Hub")
    given = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder, LocalPool() as pool:
        model = given or folder
        if model == folder:
            make_tiny_model(Path(folder))
        policy = TransformersPolicy(model, seed=0, max_new_tokens=64 if model == folder else 8192)
        problem = load_problem("L1_26_GELU_")
        episode = Episode(problem, pool, Settings(max_turns=2, device="cpu"), model=policy.name)
        episode.start()
        while not episode.done:
            turn = episode.submit(policy.reply(episode.messages))
            print(
                f"{turn.category}/{turn.kind}: {turn.outcome.message} "
                f"({len(turn.reply)} characters)"
            )


if __name__ == "__main__":
    main()
