"""The options of the example as SkyRL reads them, and episodes of its generator on an engine that
answers from a script.
"""

# pyright: reportMissingImports=false
# Its pins exclude those of the tools that check types.

import asyncio
import sys
import typing
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("skyrl.train", reason="SkyRL is not installed: pip install skyrl==0.3.0")
if sys.version_info < (3, 12):  # pydantic refuses the other before Python 3.12
    typing.TypedDict = pytest.importorskip("typing_extensions").TypedDict

import skyrl_gym
from episodes import WRONG, correct, problem_file
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.dataset import PromptDataset
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl_gym.envs.registration import deregister
from tiny_model import load_example
from tiny_models import make_byte_tokenizer, reply

from kevin_env.app.dataset import export_problems
from kevin_env.pools.scripted import ScriptedPool

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [reply("wrong"), "Hm.", reply("fast"), reply("other")]


class Engine:
    """Answers each request with the next text."""

    model_name = "scripted"

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.texts, self.prompts = tokenizer, list(TEXTS), []

    async def generate(self, input_batch: Any, model: str | None = None) -> Any:
        self.prompts += input_batch["prompt_token_ids"]
        text = self.texts.pop(0)
        ids = [*self.tokenizer.encode(text), self.tokenizer.eos_token_id]
        return {"responses": [text], "response_ids": [ids], "stop_reasons": ["stop"]}

    async def finish_session(self, session_id: str) -> None:
        pass


@pytest.fixture
def tokenizer() -> Any:
    return make_byte_tokenizer(["<|im_start|>"], CHATML, "<|im_end|>")


def read_example(*overrides: str) -> tuple[Any, Any]:
    example = load_example("train_skyrl")
    return example, SkyRLTrainConfig.from_cli_overrides([*example.OPTIONS, *overrides])


def generated(folder: Any, tokenizer: Any, config: Any) -> tuple[Any, Engine]:
    outcomes = ScriptedPool([WRONG, correct(2.0), WRONG])
    skyrl_gym.register("kevin", "kevin_env.integrations.skyrl:KernelEnv", {"pool": outcomes})
    engine = Engine(tokenizer)
    gym = SimpleNamespace(max_env_workers=0)
    generator = SkyRLGymGenerator(config.generator, gym, engine, tokenizer)  # pyright: ignore
    batch = {
        "prompts": [[{"role": "user", "content": "7_Double"}]],
        "env_classes": ["kevin"],
        "env_extras": [{"problem": problem_file(folder).path}],
    }
    try:
        return asyncio.run(generator.generate(batch, disable_tqdm=True)), engine  # pyright: ignore
    finally:
        deregister("kevin")


def test_skyrl_takes_the_options() -> None:
    example, config = read_example("trainer.policy.model.path=Qwen/Qwen3-4B")
    example.validate_cfg(config)
    generator = config.generator
    assert (config.trainer.policy.model.path, generator.max_turns) == ("Qwen/Qwen3-4B", 4)
    assert (config.trainer.max_prompt_length, generator.max_input_length) == (8192, 32768)


def test_skyrl_reads_the_exported_problems(tmp_path, tokenizer) -> None:
    export_problems(["L1"], tmp_path / "kevin.parquet")
    data = PromptDataset([str(tmp_path / "kevin.parquet")], tokenizer, 8192, num_workers=1)
    prompt, env_class, extras, _ = data[0]
    assert (env_class, extras["problem"]) == ("kevin", prompt[0]["content"])


def test_the_generator_plays_an_episode(tmp_path, tokenizer) -> None:
    output, engine = generated(tmp_path, tokenizer, read_example()[1])
    assert len(engine.prompts) == 4 and "Doubles x." in tokenizer.decode(engine.prompts[0])
    rewards = output["rewards"][0]
    assert [value for value in rewards if value] == [2.3]
    ids, mask = output["response_ids"][0], output["loss_masks"][0]
    said = tokenizer.decode([token for token, own in zip(ids, mask, strict=True) if own])
    assert said == "".join(f"{text}<|im_end|>" for text in TEXTS)
    assert tokenizer.decode(ids).count("512 of 1024") == 1


def test_without_room_for_the_task_skyrl_fails(tmp_path, tokenizer) -> None:
    config = read_example("generator.max_input_length=512", "trainer.max_prompt_length=512")[1]
    with pytest.raises(TypeError):  # if this no longer fails, docs/training.md need not warn
        generated(tmp_path, tokenizer, config)
