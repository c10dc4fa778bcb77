"""A local model in this process, with transformers (`pip install 'kevin-env[local]'`)."""

import contextlib
import copy
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kevin_env.policies.base import ContextOverflow, OnText, PolicyError, chat_of
from kevin_env.policies.thinking import VisibleText
from kevin_env.reasoning import mark_at_end
from kevin_env.record import Message, Reply, Usage

if TYPE_CHECKING:
    import torch

DEFAULT_NEW_TOKENS = 16_384
"""Most tokens of a reply, if the model's context has room for them."""

_LONGEST_REASON = 300
_NO_LIMIT = 10**9
"""Tokenizers without a context limit report more than this."""


class TransformersPolicy:
    """A chat model in this process. Thread-safe; it answers one chat at a time.

    Python code of the model is not run. On the judge's GPU, the model takes memory from kernels and
    disturbs measurements, which the judge repeats: use another GPU if there is one.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        device: such as `"cpu"` or `"cuda:1"`; `"auto"` is a GPU if there is one.
        dtype: such as `"bfloat16"`; `"auto"` is that of the weights.
        temperature: 0 takes the likeliest token; by default as in the model's generation config.
        top_p: nucleus sampling probability; likewise.
        max_new_tokens: limit of a reply in tokens.
        seed: makes replies reproducible. `for_sample` gives each sample its own.

    Raises:
        PolicyError: if transformers is not installed, or the model cannot be loaded or has no chat
            template.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        temperature: float | None = None,
        top_p: float | None = None,
        max_new_tokens: int = DEFAULT_NEW_TOKENS,
        seed: int | None = None,
    ) -> None:
        self.name = f"local:{model}"
        self._tokenizer, self._model = _load(model, device, dtype)
        self._config = _sampling(self._model, self._tokenizer, temperature, top_p)
        self._limit = _context_length(self._model, self._tokenizer)
        self._most, self._seed = max_new_tokens, seed
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"TransformersPolicy({self.name.removeprefix('local:')!r} on {self._model.device})"

    def for_sample(self, sample: int) -> Self:
        """The same loaded model for one of several samples, from 0, with its own seed if any."""
        other = copy.copy(self)
        other._seed = None if self._seed is None else self._seed + sample
        return other

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """Generates the reply.

        Raises:
            ContextOverflow: if the chat leaves no room for a token.
            PolicyError: if the model's template cannot take the chat, or memory runs out.
        """
        prompt = self._prompt(messages)
        opened = mark_at_end(prompt)  # some templates begin the reasoning
        visible = VisibleText(on_text, thinking=bool(opened)) if on_text else None
        with self._lock:  # the tokenizer is not thread-safe either
            text, usage, cut = self._generate(prompt, visible)
        if visible:
            visible.end()
        return Reply(content=opened + text, truncated=cut, usage=usage)

    def _prompt(self, messages: Sequence[Message]) -> str:
        from jinja2 import TemplateError

        chat = chat_of(messages)
        try:
            return self._tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            raise PolicyError(
                f"the chat template of {self.name} cannot take this chat: {error}"
            ) from error

    def _generate(self, prompt: str, visible: VisibleText | None) -> tuple[str, Usage, bool]:
        """The answer, the tokens that it took, and whether it was cut off."""
        import torch

        inputs = self._tokenizer(prompt, add_special_tokens=False, return_tensors="pt").to(
            self._model.device
        )
        prompt_tokens = inputs["input_ids"].shape[1]
        most = min(self._most, self._limit - prompt_tokens)
        if most < 1:
            raise ContextOverflow(
                f"the chat has {prompt_tokens} tokens; the context of {self.name} has {self._limit}"
            )
        config = copy.deepcopy(self._config)
        config.max_new_tokens = most
        streamer = _streamer(self._tokenizer, visible) if visible else None
        try:
            with _seeded(self._seed, self._model.device):
                output = self._model.generate(**inputs, generation_config=config, streamer=streamer)
        except torch.OutOfMemoryError as error:
            raise PolicyError(
                f"{self._model.device} has too little memory for {prompt_tokens} tokens and a reply"
            ) from error
        tokens = output[0, prompt_tokens:].tolist()
        cut = len(tokens) == most and tokens[-1] not in _ends(config)
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=len(tokens))
        return self._tokenizer.decode(tokens, skip_special_tokens=True), usage, cut


def _load(model: str, device: str, dtype: str) -> tuple[Any, Any]:
    """Tokenizer and model, ready to answer.

    Raises:
        PolicyError: if they cannot be loaded.
    """
    path = os.fspath(Path(model).expanduser())
    if model.startswith((".", "~", os.sep)) and not Path(path).is_dir():
        raise PolicyError(
            f"{model} is not a folder; give a model's folder, or its name on the Hugging Face Hub"
        )
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise PolicyError(
            "a local model needs transformers: pip install 'kevin-env[local]'"
        ) from error
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path, dtype=dtype, trust_remote_code=False
        )
        loaded = loaded.to(device).eval()
    except Exception as error:  # wrong files, the network and the device can raise anything
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        raise PolicyError(f"cannot load {model} on {device}: {reason}") from error
    if not tokenizer.chat_template:
        raise PolicyError(f"{model} has no chat template; take a model that was trained to chat")
    return tokenizer, loaded


def _sampling(model: Any, tokenizer: Any, temperature: float | None, top_p: float | None) -> Any:
    """The model's generation config with the requested changes."""
    config = copy.deepcopy(model.generation_config)
    if config.eos_token_id is None:
        config.eos_token_id = tokenizer.eos_token_id
    fillers = (config.pad_token_id, tokenizer.pad_token_id, *_ends(config))
    config.pad_token_id = next((token for token in fillers if token is not None), None)
    if temperature == 0:
        config.do_sample, config.temperature, config.top_p, config.top_k = False, None, None, None
        return config
    if temperature is not None:
        config.do_sample, config.temperature = True, temperature
    if top_p is not None:
        config.do_sample, config.top_p = True, top_p
    return config


def _context_length(model: Any, tokenizer: Any) -> int:
    """Limit of prompt and reply in tokens; a very large number if unknown."""
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return limit or min(tokenizer.model_max_length, _NO_LIMIT)


def _ends(config: Any) -> set[int]:
    """The tokens that end a reply."""
    ends = config.eos_token_id
    return set(ends) if isinstance(ends, list) else {ends} - {None}


@contextlib.contextmanager
def _seeded(seed: int | None, device: "torch.device") -> Iterator[None]:
    """Seeds torch's random numbers in the block and restores their state afterwards."""
    import torch

    if seed is None:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _streamer(tokenizer: Any, visible: VisibleText) -> Any:
    from transformers import TextStreamer

    class Streamer(TextStreamer):
        """Passes on words as soon as they are complete."""

        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            visible.feed(text)

    return Streamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
