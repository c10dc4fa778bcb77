"""The example's server and configuration on NeMo-Gym's own server and agent, with a scripted model
and judge.
"""

# pyright: reportMissingImports=false
# It is not on the package index: `make integration-nemo_gym NEMO_GYM=CHECKOUT`.

import asyncio
import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("resources_servers.gymnasium", reason="NeMo-Gym is not installed")

from episodes import REPLY, WRONG, another, correct, problem_file
from fastapi.testclient import TestClient
from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.config_types import maybe_get_server_instance_config
from nemo_gym.server_utils import ServerClient
from omegaconf import OmegaConf
from responses_api_agents.gymnasium_agent.app import (
    GymnasiumAgent,
    GymnasiumAgentConfig,
    GymnasiumAgentRunRequest,
)
from tiny_model import EXAMPLES, load_example

from kevin_env.pools.scripted import ScriptedPool

CONFIG: Any = OmegaConf.load(EXAMPLES / "nemo_gym.yaml")
PLACE = {"host": "", "port": 0, "name": "kevin"}


def answer(text: str) -> dict[str, Any]:
    """A response of a model with the Responses API."""
    content = [{"annotations": [], "text": text, "type": "output_text"}]
    message = {"id": "m", "content": content, "role": "assistant", "status": "completed", "type": "message"}  # fmt: skip
    return {
        "id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def test_nemo_gym_takes_the_configuration() -> None:
    for name, given in CONFIG.items():
        config, error = maybe_get_server_instance_config(name, given)
        assert config is not None, error


def test_the_agent_plays_an_episode(tmp_path) -> None:
    example = load_example("nemo_gym_app")
    outcomes = ScriptedPool([WRONG, correct(2.0)])

    class Server(example.KevinServer):
        def pool(self) -> Any:
            return outcomes

    config = BaseResourcesServerConfig(entrypoint="app.py", **PLACE)
    http = TestClient(Server(config=config, server_client=MagicMock(spec=ServerClient)).setup_webserver())  # fmt: skip
    texts, asked = [REPLY, "Hm.", another(2), "Hm."], []

    async def post(server_name: str, url_path: str, json: Any, **more: Any) -> Any:
        if server_name == "kevin":
            return response(http.post(url_path, json=json).raise_for_status().json())
        asked.append(json.input)
        return response(answer(texts.pop(0)))

    client = MagicMock(spec=ServerClient)
    client.post = post
    client.global_config_dict = {"observability_enabled": False}
    given = OmegaConf.to_container(CONFIG.kevin_agent.responses_api_agents.gymnasium_agent)
    agent = GymnasiumAgent(config=GymnasiumAgentConfig(**given | PLACE), server_client=client)  # pyright: ignore
    row = {"responses_create_params": {"input": []}, "problem": problem_file(tmp_path).path}
    body = GymnasiumAgentRunRequest(**row)
    result = asyncio.run(agent.run(SimpleNamespace(cookies={}), body))
    assert (result.reward, result.terminated, texts) == (2.3, True, [])
    assert "Doubles x." in asked[0][0].content and "512 of 1024" in asked[1][-1].content


def response(payload: Any) -> Any:
    async def read() -> bytes:
        return json.dumps(payload).encode()

    return SimpleNamespace(ok=True, cookies={}, read=read)
