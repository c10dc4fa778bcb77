"""A real OpenAI-compatible server: `transformers serve` with a tiny model. It proves the way there
and back.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from episodes import problem_file
from tiny_model import make_tiny_model

from kevin_env.episode import Episode
from kevin_env.policies import OpenAIPolicy, PolicyError, for_sample
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import Message
from kevin_env.settings import Settings

NEEDED = ("transformers", "fastapi", "uvicorn")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        bool(MISSING), reason=f"pip install 'transformers[serving]' brings {', '.join(MISSING)}"
    ),
]
CHAT = (Message(role="user", content="Write a kernel."),)
SECONDS_TO_START = 200


@dataclass(frozen=True)
class Served:
    model: str
    url: str

    def policy(self, **parameters: float) -> OpenAIPolicy:
        return OpenAIPolicy(self.model, self.url, **parameters)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    model = make_tiny_model(tmp_path_factory.mktemp("served"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("transformers"), "serve", model]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (model / "log").open("wb") as log:
        process = subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, model / "log")
        yield Served(str(model), f"http://127.0.0.1:{port}/v1")
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-4000:]}")


def test_it_answers_plainly_and_in_pieces(served: Served) -> None:
    heard: list[str] = []
    policy = served.policy(max_tokens=24, temperature=0.0)
    plain, streamed = policy.reply(CHAT), policy.reply(CHAT, heard.append)
    for reply in (plain, streamed):
        assert reply.content
        assert reply.usage and reply.usage.prompt_tokens and reply.usage.completion_tokens
        assert reply.truncated == (reply.usage.completion_tokens == 24)
    assert len(heard) > 1
    assert "".join(heard) == streamed.content


def test_its_seeds_make_samples_that_can_be_had_again(served: Served) -> None:
    policy = served.policy(max_tokens=8, temperature=1.0, seed=5)
    first, again = (
        [for_sample(policy, number).reply(CHAT).content for number in range(3)] for _ in "ab"
    )
    assert first == again
    assert len(set(first)) == 3


def test_a_model_that_it_does_not_have_is_one_clear_line(served: Served) -> None:
    with pytest.raises(PolicyError, match="HTTP 400") as caught:
        OpenAIPolicy("other", served.url).reply(CHAT)
    assert "\n" not in str(caught.value)
    with pytest.raises(PolicyError, match=r"usually ends in /v1"):
        OpenAIPolicy(served.model, served.url.removesuffix("/v1")).reply(CHAT)


def test_an_episode_is_played_with_it(served: Served, tmp_path: Path) -> None:
    policy = served.policy(max_tokens=8)
    with closing(ScriptedPool([])) as pool:
        episode = Episode(problem_file(tmp_path), pool, Settings(max_turns=2), model=policy.name)
        episode.start()
        while not episode.done:
            episode.submit(policy.reply(episode.messages, lambda text: None))
    assert [turn.category for turn in episode.turns] == ["format", "format"]
    assert all(turn.usage and turn.usage.completion_tokens for turn in episode.turns)
