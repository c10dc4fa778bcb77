"""A model in this process: a real one, tiny and with random weights."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from stub_server import CHAT
from tiny_model import make_tiny_model

pytest.importorskip("transformers")

from kevin_env.app.arguments import read_policy
from kevin_env.app.errors import BadInput
from kevin_env.policies import ContextOverflow, PolicyError, TransformersPolicy, for_sample
from kevin_env.record import Message

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(tiny: Path) -> TransformersPolicy:
    return TransformersPolicy(str(tiny), device="cpu", temperature=1.0, max_new_tokens=12, seed=3)


def changed(tiny: Path, folder: Path, file: str, **fields: Any) -> str:
    """A copy of the model with other settings in one of its JSON files."""
    shutil.copytree(tiny, folder, dirs_exist_ok=True)
    settings = json.loads((folder / file).read_text()) | fields
    (folder / file).write_text(json.dumps(settings))
    return str(folder)


def test_a_seed_makes_replies_reproducible(tiny: Path, model: TransformersPolicy) -> None:
    first = model.reply(CHAT)
    other = [Message(role="user", content="Something else.")]
    assert model.reply(other) != first
    assert model.reply(CHAT) == first == TransformersPolicy(
        str(tiny), device="cpu", temperature=1.0, max_new_tokens=12, seed=3
    ).reply(CHAT)  # fmt: skip
    assert first.usage and (first.usage.completion_tokens, first.truncated) == (12, True)


def test_samples_differ_and_share_the_model(model: TransformersPolicy) -> None:
    samples = [for_sample(model, number).reply(CHAT).content for number in range(3)]
    assert len(set(samples)) == 3
    assert samples == [for_sample(model, number).reply(CHAT).content for number in range(3)]


def test_a_listener_hears_the_answer_as_it_comes(model: TransformersPolicy) -> None:
    pieces: list[int] = []
    for number in range(12):
        heard: list[str] = []
        sample = for_sample(model, number)
        reply = sample.reply(CHAT, heard.append)
        assert reply == sample.reply(CHAT)
        assert "".join(heard) == reply.content
        pieces.append(len(heard))
    assert max(pieces) > 1  # one comes with every blank, of which the model writes few


def test_threads_get_their_own_replies(model: TransformersPolicy) -> None:
    chats = [[Message(role="user", content=f"Kernel {number}.")] for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(model.reply, chats)) == [model.reply(chat) for chat in chats]


def test_a_chat_that_fills_the_context_is_told(tiny: Path, tmp_path: Path) -> None:
    path = changed(tiny, tmp_path, "config.json", max_position_embeddings=100)
    policy = TransformersPolicy(path, device="cpu", max_new_tokens=50, seed=1)
    asked = (short := policy.reply(CHAT)).usage
    assert asked and asked.prompt_tokens and asked.completion_tokens
    assert short.truncated
    assert asked.prompt_tokens + asked.completion_tokens <= 100
    with pytest.raises(ContextOverflow, match="has 100"):
        policy.reply([Message(role="user", content="long " * 100)])


def test_a_reply_that_ends_by_itself_is_whole(tiny: Path, tmp_path: Path) -> None:
    path = changed(tiny, tmp_path, "generation_config.json", eos_token_id=list(range(512)))
    reply = TransformersPolicy(path, device="cpu", max_new_tokens=1).reply(CHAT)
    assert reply.usage and reply.usage.completion_tokens == 1
    assert not reply.truncated


def test_reasoning_that_the_template_opens_is_kept_apart(tiny: Path, tmp_path: Path) -> None:
    path = changed(tiny, tmp_path, "config.json")
    template = tmp_path / "chat_template.jinja"
    template.write_text(template.read_text() + "<think>\n")
    heard: list[str] = []
    reply = TransformersPolicy(path, device="cpu", max_new_tokens=8, seed=1).reply(
        CHAT, heard.append
    )
    assert (reply.content, heard, reply.truncated) == ("", [], True)
    assert reply.reasoning


def test_what_cannot_be_loaded_is_one_clear_line(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    bare = changed(tiny, tmp_path / "bare", "config.json")
    (tmp_path / "bare" / "chat_template.jinja").unlink()
    (tmp_path / "empty").mkdir()
    for path, device, said in (
        (bare, "cpu", "no chat template"),
        (str(tmp_path / "empty"), "cpu", "cannot load"),
        (str(tiny), "cuda:99", "on cuda:99"),
        ("nobody/has-this-model", "cpu", "cannot load nobody/has-this-model"),
    ):
        with pytest.raises(PolicyError, match=said) as caught:
            TransformersPolicy(path, device=device)
        assert "\n" not in str(caught.value)


def test_the_command_line_names_a_local_model(tiny: Path) -> None:
    policy = read_policy(
        f"transformers:{tiny}", max_tokens=4, temperature=0.0, timeout=9.0, seed=None, device="cpu"
    )
    assert isinstance(policy, TransformersPolicy)
    assert policy.name == f"local:{tiny}"
    reply = policy.reply(CHAT)
    assert reply.usage and reply.usage.completion_tokens == 4
    assert read_policy(policy.name, max_tokens=4, temperature=0.0).reply(CHAT) == reply
    with pytest.raises(BadInput, match="cannot load"):
        read_policy(policy.name, device="cuda:99")
