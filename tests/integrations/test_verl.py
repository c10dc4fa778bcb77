"""The example's configuration as verl reads it, and its agent loop on verl's own base class and
tokenization, with a server that answers from a script.
"""

# pyright: reportMissingImports=false
# verl is not among the tools' own requirements.

import asyncio
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

agent_loop = pytest.importorskip(
    "verl.experimental.agent_loop.agent_loop", reason="verl is not installed"
)

from episodes import WRONG, correct, problem_file  # noqa: E402
from hydra import compose, initialize_config_dir  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402
from tiny_models import ROOT, make_byte_tokenizer, reply  # noqa: E402
from verl.utils.config import omega_conf_to_dataclass, validate_config  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset  # noqa: E402

from kevin_env.app.dataset import export_problems  # noqa: E402
from kevin_env.pools.scripted import ScriptedPool  # noqa: E402

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
        return SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids))


@pytest.fixture
def tokenizer() -> Any:
    return make_byte_tokenizer(["<|im_start|>"], CHATML, "<|im_end|>")


def read_example(*overrides: str) -> Any:
    with initialize_config_dir(str(ROOT / "examples"), version_base=None):
        return compose("train_verl", list(overrides))


def played(folder: Path, tokenizer: Any, pool: ScriptedPool, texts: list[str], config: Any) -> Any:
    example = importlib.import_module("verl_agent_loop")
    wrap = agent_loop.DictConfigWrap

    async def play() -> Any:
        loop = example.KevinLoop(
            wrap(config), Server(tokenizer, list(texts)), tokenizer, None, None, wrap(config.data), pool=pool
        )  # fmt: skip
        return await loop.run({}, problem=problem_file(folder).path, raw_prompt=[])

    return asyncio.run(play())


def test_verl_takes_the_configuration() -> None:
    config = read_example("trainer.n_gpus_per_node=4")
    validate_config(config, use_reference_policy=False, use_critic=False)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert (rollout.prompt_length, rollout.response_length, rollout.n) == (8192, 32768, 16)
    agents: Any = OmegaConf.load(ROOT / rollout.agent.agent_loop_config_path)
    (agent,) = agents
    module, name = agent._target_.split(".")
    assert agent.name == "kevin" and hasattr(importlib.import_module(module), name)


def test_verl_reads_the_exported_problems(tmp_path, tokenizer) -> None:
    export_problems(["L1"], tmp_path / "kevin.parquet")
    config = read_example()
    with open_dict(config):
        config.data.cache_dir = str(tmp_path)
    row = RLHFDataset(str(tmp_path / "kevin.parquet"), tokenizer, config.data)[0]
    assert (row["agent_name"], row["problem"]) == ("kevin", row["raw_prompt"][0]["content"])


def test_the_loop_gives_one_chat_with_the_first_turns_return(tmp_path, tokenizer) -> None:
    texts = [reply("wrong"), "Hm.", reply("fast"), reply("other")]
    output = played(
        tmp_path, tokenizer, ScriptedPool([WRONG, correct(2.0), WRONG]), texts, read_example()
    )
    assert output.reward_score == pytest.approx(0.16 * 2.3)
    assert output.extra_fields["turn_scores"] == [0.0, 0.0, 2.3, 0.0]
    said = [
        token for token, own in zip(output.response_ids, output.response_mask, strict=True) if own
    ]
    assert tokenizer.decode(said) == "".join(f"{text}<|im_end|>" for text in texts)
    assert output.response_logprobs == [-0.5 * own for own in output.response_mask]
    chat = tokenizer.decode([*output.prompt_ids, *output.response_ids])
    assert "Doubles x." in tokenizer.decode(output.prompt_ids) and chat.count("512 of 1024") == 1


def test_a_prompt_that_verl_would_cut_is_an_error(tmp_path, tokenizer) -> None:
    config = read_example("data.max_prompt_length=512")
    with pytest.raises(ValueError, match=r"7_Double.* does not fit data.max_prompt_length.* 512"):
        played(tmp_path, tokenizer, ScriptedPool([]), [], config)
