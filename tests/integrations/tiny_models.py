"""What tests of trainers share: replies, tokenizers, and the policy of the examples that learns in
seconds.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from episodes import KERNEL

ROOT = Path(__file__).parents[2]
PROMPTS = ROOT / "prompts"
sys.path.append(str(ROOT / "examples"))
_example = importlib.import_module("train_trl_tiny")
make_model, make_tokenizer = _example.make_model, _example.make_tokenizer
PAD, END, CHAT = _example.PAD, _example.END, _example.CHAT


def reply(name: str) -> str:
    """A reply whose kernel has this name."""
    return f"```python\n{KERNEL.replace('double', name)}```\n"


def make_byte_tokenizer(words: Sequence[str], chat_template: str, end: str) -> Any:
    """A tokenizer that can say everything, `words` each by one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text.read_text() for text in PROMPTS.rglob("*.j2")], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=end)
    fast.add_tokens(list(words))
    fast.chat_template = chat_template
    return fast
