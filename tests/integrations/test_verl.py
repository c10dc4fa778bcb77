"""The example's agent loop on verl's own base class and tokenization, with a server that answers
from a script.
"""

# pyright: reportMissingImports=false
# verl is not among the tools' own requirements.

import asyncio
import importlib
from types import SimpleNamespace
from typing import Any

import pytest

agent_loop = pytest.importorskip(
    "verl.experimental.agent_loop.agent_loop", reason="verl is not installed"
)

from episodes import WRONG, correct, problem_file  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from tiny_models import make_byte_tokenizer, reply  # noqa: E402

from kevin_env.judge import ScriptedPool  # noqa: E402

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Server:
    """Answers each request with the next text."""

    def __init__(self, tokenizer: Any, texts: list[str]) -> None:
        self.tokenizer, self.texts = tokenizer, texts

    async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: Any) -> Any:
        ids = [*self.tokenizer.encode(self.texts.pop(0)), self.tokenizer.eos_token_id]
        return SimpleNamespace(token_ids=ids, log_probs=None)


def test_the_loop_gives_one_chat_with_the_first_turns_return(tmp_path, monkeypatch) -> None:
    example = importlib.import_module("verl_agent_loop")
    monkeypatch.setattr(example, "process_pool", lambda: ScriptedPool([WRONG, correct(2.0), WRONG]))
    tokenizer = make_byte_tokenizer(["<|im_start|>"], CHATML, "<|im_end|>")
    texts = [reply("wrong"), "Hm.", reply("fast"), reply("other")]
    config = OmegaConf.create(
        {
            "actor_rollout_ref": {"rollout": {"prompt_length": 9999, "response_length": 9999}},
            "data": {},
        }
    )
    wrap = agent_loop.DictConfigWrap

    async def play() -> Any:
        loop = example.KevinLoop(
            wrap(config), Server(tokenizer, list(texts)), tokenizer, None, None, wrap(config.data)
        )
        return await loop.run({}, problem=problem_file(tmp_path).path, raw_prompt=[])

    output = asyncio.run(play())
    assert output.reward_score == pytest.approx(0.16 * 2.3)
    assert output.extra_fields["turn_scores"] == [0.0, 0.0, 2.3, 0.0]
    said = [
        token for token, own in zip(output.response_ids, output.response_mask, strict=True) if own
    ]
    assert tokenizer.decode(said) == "".join(f"{text}<|im_end|>" for text in texts)
    chat = tokenizer.decode([*output.prompt_ids, *output.response_ids])
    assert "Doubles x." in tokenizer.decode(output.prompt_ids) and chat.count("512 of 1024") == 1
