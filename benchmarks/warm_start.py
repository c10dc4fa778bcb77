"""A policy that imitates `kernel_mixture`: its tokenizer, its prompts and its training."""

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from kernel_mixture import Kernel, draw_kernel
from resultfile import Results, plain_row

from kevin_env.episode import Episode
from kevin_env.judge.api import Facts, JudgePool, Options
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem, data_folder
from kevin_env.settings import Settings

PAD, END = "<|pad|>", "<|end|>"
CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
WORDS = r"<\|\w+\|>| ?[A-Za-z_][\w.]*| ?\d+|\n *| ?[^\s\w]+|\s+"
"""What a token may span: names with their dots, numbers, indentation, operators."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the policy and of its training."""

    width: int = 1024
    layers: int = 8
    vocabulary: int = 4096
    kernels: int = 400
    """Kernels of each problem."""
    prompt_episodes: int = 16
    """Episodes of each problem whose prompts are used."""
    batch: int = 32
    learning_rate: float = 6e-4
    steps: int = 4000
    """Optimizer steps, unless time is up before."""
    whole_replies: bool = False
    """Whether each kernel of the mixture is one token, so that a toy model can write it."""


class Rehearsal(ScriptedPool):
    """A scripted pool with a real pool's facts, so that prompts are those of the training."""

    def __init__(self, pool: JudgePool) -> None:
        super().__init__(lambda *_: self.kernel.outcome(self.draw))
        self.draw, self.kernel, self._pool = random.Random(2), Kernel("", "none"), pool

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        return self._pool.describe(problem, options)


class WarmStart:
    """Prompts and replies of the mixture, and a policy that learns to imitate it."""

    def __init__(
        self, sizes: Sizes, problems: Mapping[str, Problem], settings: Settings, pool: JudgePool
    ) -> None:
        self._sizes, self._draw = sizes, random.Random(1)
        self._kernels = {
            name: [draw_kernel(name, self._draw) for _ in range(sizes.kernels)] for name in problems
        }
        rehearsal = Rehearsal(pool)
        episodes = [
            (name, Episode(problem, rehearsal, settings))
            for name, problem in problems.items()
            for _ in range(sizes.prompt_episodes)
        ]
        self._chats: defaultdict[str, list[list[Any]]] = defaultdict(list)
        for name, episode in episodes:
            first = [message.model_dump() for message in episode.start()]
            chats = [first]
            while len(chats) < settings.max_turns:
                rehearsal.kernel = self._draw.choice(self._kernels[name])
                episode.submit(rehearsal.kernel.reply)
                chats.append([message.model_dump() for message in episode.messages])
            self._chats[name] += chats
        rehearsal.close()

    def train(self, folder: Path, seconds: float, results: Results) -> None:
        """Trains for `seconds`, and saves policy and tokenizer."""
        tokenizer = self._tokenizer()
        model = make_model(self._sizes, tokenizer).to("cpu" if results.device == "cpu" else "cuda")
        samples = self._samples(tokenizer)
        rate, steps = self._sizes.learning_rate, self._sizes.steps
        optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.1)
        began, losses = time.monotonic(), list[float]()
        while (done := max((time.monotonic() - began) / seconds, len(losses) / steps)) < 1:
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, (len(losses) + 1) * 40 / steps, 1.05 - done)
            losses.append(_imitate(model, optimizer, self._batch(tokenizer, samples)))
            if len(losses) % 50 == 0:
                print(f"warm start: step {len(losses)}, loss {losses[-1]:.3f}", flush=True)
        results.report(
            plain_row("warm start: steps", len(losses)),
            plain_row("warm start: loss", statistics.fmean(losses[-20:]), "nats per token"),
            plain_row("warm start", time.monotonic() - began, "s"),
            plain_row("weights", sum(each.numel() for each in model.parameters())),
            *(
                plain_row(f"tokens of a {name}", statistics.fmean(len(a) for b in some for a in b))
                for name, some in zip(("prompt", "reply"), zip(*samples, strict=True), strict=True)
            ),
        )
        model.save_pretrained(folder.with_suffix(".new"))
        tokenizer.save_pretrained(folder.with_suffix(".new"))
        folder.with_suffix(".new").rename(folder)
        del model, optimizer
        torch.cuda.empty_cache()  # the judge needs memory, too

    def _tokenizer(self) -> Any:
        """Bytes, and frequent pieces of our problems, prompts and solutions and of the mixture."""
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import PreTrainedTokenizerFast

        replies = [each.reply for kernels in self._kernels.values() for each in kernels]
        files = [*data_folder("problems").rglob("*.py"), *data_folder("prompts").rglob("*.j2")]
        chats = [message["content"] for each in self._chats.values() for message in each[-1]]
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(WORDS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self._sizes.vocabulary,
            special_tokens=[PAD, END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        corpus = [*replies, *chats, *(file.read_text() for file in files)]
        tokenizer.train_from_iterator(corpus, trainer)
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token=PAD, eos_token=END,
            clean_up_tokenization_spaces=False, chat_template=CHAT,
        )  # fmt: skip
        if self._sizes.whole_replies:
            fast.add_tokens(replies)
        return fast

    def _samples(self, tokenizer: Any) -> list[tuple[list[list[int]], list[list[int]]]]:
        """Prompts and replies of each problem, as tokens."""

        def prompt(chat: list[Any]) -> list[int]:
            whole = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
            return tokenizer.encode(whole)

        return [
            (
                [prompt(chat) for chat in self._chats[name]],
                [tokenizer.encode(each.reply + END) for each in kernels],
            )
            for name, kernels in self._kernels.items()
        ]

    def _batch(self, tokenizer: Any, samples: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Random prompts with random replies: tokens and labels, padded on the right."""
        rows = list[tuple[list[int], list[int]]]()
        for prompts, replies in self._draw.choices(samples, k=self._sizes.batch):
            prompt, reply = self._draw.choice(prompts), self._draw.choice(replies)
            rows.append((prompt + reply, [-100] * len(prompt) + reply))
        longest = max(len(tokens) for tokens, _ in rows)

        def padded(values: list[list[int]], with_: int) -> torch.Tensor:
            return torch.tensor([each + [with_] * (longest - len(each)) for each in values])

        tokens = padded([tokens for tokens, _ in rows], tokenizer.pad_token_id)
        return tokens, padded([labels for _, labels in rows], -100)


def _imitate(
    model: Any, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, torch.Tensor]
) -> float:
    """One optimizer step; returns the loss before it."""
    tokens, labels = (each.to(model.device) for each in batch)
    with torch.autocast(model.device.type, torch.bfloat16, enabled=model.device.type == "cuda"):
        loss = model(input_ids=tokens, labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def make_model(sizes: Sizes, tokenizer: Any) -> Any:
    """A Llama with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads = max(1, sizes.width // 64)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=sizes.width,
            intermediate_size=sizes.width * 11 // 4,
            num_hidden_layers=sizes.layers,
            num_attention_heads=heads,
            num_key_value_heads=max(1, heads // 4),
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
