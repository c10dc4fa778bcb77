"""The MCP tools, through OpenEnv's client of them, its WebSocket and its HTTP route."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("openenv")

import requests
from episodes import REPLY, another, correct
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from openenv_server import Endless, fits, serving, socket_to, until

from kevin_env.integrations.openenv import KernelAction
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.pools.scripted import ScriptedPool

TOOLS = {"list_problems", "get_problem", "submit_kernel"}


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    with closing(ScriptedPool(lambda *_: correct(2.0))) as pool:
        yield pool


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(url: str, method: str, **params: Any) -> dict[str, Any]:
    return requests.post(f"{url}/mcp", json=rpc(method, **params)).json()


def test_tools_and_gym_api_play_one_episode(pool: ScriptedPool) -> None:
    with serving(pool) as url, MCPToolClient(base_url=url).sync() as env:
        tools = {tool.name: tool for tool in env.list_tools()}
        assert tools.keys() == TOOLS
        assert tools["submit_kernel"].input_schema["required"] == ["code"]
        env.reset(problem_id="L1_23_Softmax")
        task = env.call_tool("get_problem")
        assert task["problem_id"] == "L1_23_Softmax" and "class Model(" in task["reference_code"]
        assert "ModelNew" in task["messages"][-1]["content"] and task["turn"] == 0
        judged = env.call_tool("submit_kernel", code=another(1))
        assert (judged["category"], judged["speedup"], judged["reward"]) == ("correct", 2.0, 2.3)
        assert "messages" not in judged and not judged["done"]
        stepped = env.step(KernelAction(code=another(2)))
        assert (stepped.observation.turn, stepped.reward) == (2, 2.3)
        with pytest.raises(RuntimeError, match="the problem of this episode is L1_23_Softmax"):
            env.call_tool("get_problem", problem_id="L1_26_GELU_")


def test_an_agent_needs_no_reset(pool: ScriptedPool, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(pool) as url, MCPToolClient(base_url=url).sync() as env:
        with pytest.raises(RuntimeError, match="get_problem"):
            env.call_tool("submit_kernel", code=REPLY)
        rows = env.call_tool("list_problems", split="L5")
        assert all(row["id"].startswith("L5_") for row in rows)
        task = env.call_tool("get_problem", problem_id=rows[0]["id"])
        assert task["problem_id"] == rows[0]["id"]
        turns = [env.call_tool("submit_kernel", code=another(turn)) for turn in range(4)]
        assert [turn["done"] for turn in turns] == [False, False, False, True]
        with pytest.raises(RuntimeError, match="ended after turn 4"):
            env.call_tool("submit_kernel", code=REPLY)
    assert capfd.readouterr().err == ""  # errors are the client's


def test_tools_can_be_called_by_steps(pool: ScriptedPool) -> None:
    with serving(pool) as url, GenericEnvClient(base_url=url).sync() as env:
        env.reset(problem_id="L1_23_Softmax")
        listed = env.step({"type": "list_tools"}).observation["tools"]
        assert {tool["name"] for tool in listed} == TOOLS
        call = {"type": "call_tool", "tool_name": "submit_kernel", "arguments": {"code": REPLY}}
        judged = [env.step(call) for _ in range(4)][-1]
        assert (judged.reward, judged.done) == (0.0, True)  # the same code is paid once
        error = env.step({**call, "arguments": {}}).observation["error"]
        assert "code" in error["message"]


def test_a_websocket_of_tools_is_a_session(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=1)) as url:
        with socket_to(url, "mcp") as client:

            def call(name: str, **arguments: Any) -> Any:
                client.send(json.dumps(rpc("tools/call", name=name, arguments=arguments)))
                return json.loads(client.recv(timeout=20))["result"]["structured_content"]

            assert call("get_problem", problem_id="L1_26_GELU_")["turn"] == 0
            assert call("submit_kernel", code=REPLY)["turn"] == 1
            assert not fits(url)
        until(lambda: fits(url))


def test_a_session_by_http_lives_as_long_as_its_websocket(pool: ScriptedPool) -> None:
    limits = ServerLimits(sessions=1, attach_timeout=1.0, idle_timeout=0.5)
    with serving(pool, limits) as url:
        session = post(url, "openenv/session/create")["result"]["session_id"]
        client = socket_to(url, f"ws?session_id={session}")
        time.sleep(2)
        call = {"name": "get_problem", "arguments": {}, "session_id": session}
        assert post(url, "tools/call", **call)["result"]["data"]["turn"] == 0
        assert not fits(url)
        client.socket.close()  # without a word of farewell
        until(lambda: fits(url))
        assert "Unknown session_id" in post(url, "tools/call", **call)["error"]["message"]


def test_a_session_by_http_that_nobody_attaches_to_ends(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=1, attach_timeout=0.5)) as url:
        assert "session_id" in post(url, "openenv/session/create")["result"]
        assert not fits(url)
        until(lambda: fits(url))


def test_judging_is_cancelled_when_the_client_of_a_websocket_goes_away() -> None:
    with closing(Endless()) as pool, serving(pool, ServerLimits(sessions=1)) as url:
        client = socket_to(url, "mcp")
        for name, arguments in (("get_problem", {}), ("submit_kernel", {"code": REPLY})):
            client.send(json.dumps(rpc("tools/call", name=name, arguments=arguments)))
        until(lambda: pool.judging)
        client.socket.close()  # without a word of farewell
        until(pool.judging[0].cancelled)
        until(lambda: fits(url))


def test_judging_is_cancelled_when_the_websocket_of_a_session_by_http_goes_away() -> None:
    limits = ServerLimits(sessions=1, attach_timeout=1.0)
    with closing(Endless()) as pool, serving(pool, limits) as url:
        session = post(url, "openenv/session/create")["result"]["session_id"]
        client = socket_to(url, f"ws?session_id={session}")
        call: dict[str, Any] = {"session_id": session, "arguments": {}}
        post(url, "tools/call", name="get_problem", **call)
        call["arguments"] = {"code": REPLY}
        submitting = Thread(
            target=post, args=(url, "tools/call"), kwargs={"name": "submit_kernel", **call}
        )
        submitting.start()
        until(lambda: pool.judging)
        client.socket.close()  # without a word of farewell
        until(pool.judging[0].cancelled)
        submitting.join(20)
        until(lambda: fits(url))


def test_a_request_without_a_session_leaves_nothing(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=1)) as url:
        tools = post(url, "tools/list")["result"]["tools"]
        assert {tool["name"] for tool in tools} == TOOLS
        answer = post(url, "tools/call", name="submit_kernel", arguments={"code": REPLY})
        assert "get_problem" in answer["error"]["message"]
        assert requests.post(f"{url}/mcp", data="{").json()["error"]["code"] == -32700
        assert fits(url)
