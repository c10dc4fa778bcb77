"""The MCP tools, through OpenEnv's client of them, its WebSocket and its HTTP route."""

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("openenv")

import requests
from episodes import REPLY, WRONG, another, correct
from mcp import ClientSession
from mcp.shared.memory import create_connected_server_and_client_session
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from openenv_server import Endless, fits, serving, socket_to, until

from kevin_env.agents.server import make_server, one_each
from kevin_env.integrations.openenv import KernelAction
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.judge import JudgeError
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import list_problems
from kevin_env.selection import find_problems
from kevin_env.session import AgentSession
from kevin_env.settings import Settings
from kevin_env.tools import TOOLS


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    with closing(ScriptedPool(lambda *_: correct(2.0))) as pool:
        yield pool


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(url: str, method: str, **params: Any) -> dict[str, Any]:
    return requests.post(f"{url}/mcp", json=rpc(method, **params)).json()


def test_the_tools_are_those_of_kevin_env_mcp(pool: ScriptedPool) -> None:
    async def listed(client: ClientSession) -> list[dict[str, Any]]:
        return [tool.model_dump() for tool in (await client.list_tools()).tools]

    def by_name(tools: list[dict[str, Any]]) -> dict[str, Any]:
        said = ("description", "inputSchema", "outputSchema")
        return {tool["name"]: [tool[each] for each in said] for tool in tools}

    with serving(pool) as url:
        found = by_name(post(url, "tools/list")["result"]["tools"])
    assert found.pop("list_problems")
    assert found == by_name(on_the_official_sdk(pool, listed))


def test_results_are_those_of_kevin_env_mcp() -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("submit_kernel", {"code": REPLY}),
        ("get_problem", {"problem_id": "nothing"}),
        ("get_problem", {"problem_id": "L1_26_GELU_"}),
        ("profile_kernel", {}),
        ("submit_kernel", {"code": another(1)}),
        ("submit_kernel", {"code": 7, "score": 9}),
        ("submit_kernel", {"code": another(2)}),
        ("profile_kernel", {"turn": 1}),
        ("profile_kernel", {}),
        ("get_problem", {"problem_id": "L1_23_Softmax"}),
        ("best_so_far", {}),
        ("submit_kernel", {"code": another(3)}),
        ("submit_kernel", {"code": another(4)}),
        ("submit_kernel", {"code": another(5)}),
        ("submit_kernel", {"code": another(5)}),
        ("submit_kernel", {"code": another(6)}),
    ]
    profiled = correct(2.0)
    answers = [WRONG, correct(2.0), profiled, correct(3.0), JudgeError("out"), correct(4.0)]

    async def ours(client: ClientSession) -> list[Any]:
        results = [await client.call_tool(*each) for each in calls]
        return [
            told(each.isError, each.structuredContent, [one.model_dump() for one in each.content])
            for each in results
        ]

    with closing(ScriptedPool(answers)) as pool:
        expected = on_the_official_sdk(pool, ours)
    with closing(ScriptedPool(answers)) as pool, serving(pool) as url:
        session = post(url, "openenv/session/create")["result"]["session_id"]
        found = list[Any]()
        for name, arguments in calls:
            answer = post(url, "tools/call", name=name, arguments=arguments, session_id=session)
            if "error" in answer:
                found.append(answer["error"]["message"])
            else:
                result = answer["result"]
                assert result["data"] == result["structured_content"]
                found.append(told(False, result["structured_content"], result["content"]))
    assert found == expected
    errors = [each for each in found if isinstance(each, str)]
    assert len(errors) == 8 and not any("\n" in each for each in errors)


def told(is_error: bool, structured: Any, content: list[dict[str, Any]]) -> Any:
    """What a client is told; of an error, its text."""
    [text] = [each["text"] for each in content]
    return text if is_error else (structured, text)


def on_the_official_sdk(pool: ScriptedPool, play: Callable[[ClientSession], Any]) -> Any:
    """What a client of `kevin-env mcp` finds in an episode without a limit of time."""
    session = AgentSession(list_problems(), pool, Settings(), math.inf, None)

    async def main() -> Any:
        server = make_server(one_each(lambda: session))
        async with create_connected_server_and_client_session(server) as client:
            return await play(client)

    return asyncio.run(main())


def test_tools_and_gym_api_play_one_episode() -> None:
    answers = [correct(2.0), correct(3.0), correct(3.0), WRONG]
    with (
        closing(ScriptedPool(answers)) as pool,
        serving(pool) as url,
        MCPToolClient(base_url=url).sync() as env,
    ):
        env.reset(problem_id="L1_23_Softmax")
        task = env.call_tool("get_problem")
        assert task["problem_id"] == "L1_23_Softmax" and "class Model(" in task["reference"]
        assert task["turns_left"] == 4 and task["seconds_left"] is None
        judged = env.call_tool("submit_kernel", code=another(1))
        assert (judged["category"], judged["speedup"], judged["turn"]) == ("correct", 2.0, 1)
        stepped = env.step(KernelAction(code=another(2)))
        assert (stepped.observation.turn, stepped.reward) == (2, 3.3)
        assert stepped.observation.turn_scores == [2.3, 3.3]
        assert "num_warps=1" in stepped.observation.messages[-1]["content"]  # the tool's kernel
        best = env.call_tool("best_so_far")
        assert best["best_turn"] == 2 and "num_warps=2" in best["code"]
        assert (
            "Profile of turn 2"
            in env.step(CallToolAction(tool_name="profile_kernel")).observation.result["content"][
                0
            ]["text"]
        )
        with pytest.raises(RuntimeError, match="the problem of this episode is L1_23_Softmax"):
            env.call_tool("get_problem", problem_id="L1_26_GELU_")
        assert env.reset(problem_id="L1_26_GELU_").observation.turn == 0
        assert env.call_tool("best_so_far")["turns"] == []
        assert env.call_tool("submit_kernel", code=another(2))["turn"] == 1


def test_an_agent_needs_no_reset(pool: ScriptedPool, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(pool) as url, MCPToolClient(base_url=url).sync() as env:
        with pytest.raises(RuntimeError, match="get_problem"):
            env.call_tool("submit_kernel", code=REPLY)
        rows = env.call_tool("list_problems", split="L5")
        assert all(row["id"].startswith("L5_") for row in rows)
        assert env.call_tool("list_problems")[0]["split"] == "train"
        for given, said in (
            ({"split": "L99"}, "unknown split 'L99'; there are all, "),
            ({"level": 1}, "failed: list_problems takes split, not 'level'$"),
        ):
            with pytest.raises(RuntimeError, match=said):
                env.call_tool("list_problems", **given)
        task = env.call_tool("get_problem", problem_id=rows[0]["id"])
        assert task["problem_id"] == rows[0]["id"]
        turns = [env.call_tool("submit_kernel", code=another(turn)) for turn in range(4)]
        assert [turn["done"] for turn in turns] == [False, False, False, True]
        with pytest.raises(RuntimeError, match="ended after turn 4"):
            env.call_tool("submit_kernel", code=REPLY)
    assert capfd.readouterr().err == ""  # errors are the client's


def test_no_tool_draws_a_held_out_problem(pool: ScriptedPool) -> None:
    held_out = find_problems("held_out")
    problems = [*held_out, *find_problems("train")[:1]]
    with serving(pool, problems=problems) as url, MCPToolClient(base_url=url).sync() as env:
        assert env.call_tool("get_problem")["problem_id"] == problems[-1].id
    with serving(pool, problems=held_out) as url, MCPToolClient(base_url=url).sync() as env:
        assert env.call_tool("get_problem")["problem_id"] in {each.id for each in held_out}


def test_tools_can_be_called_by_steps() -> None:
    answers = [correct(50.0), correct(2.0), correct(2.0), correct(2.0)]
    with (
        closing(ScriptedPool(answers)) as pool,
        serving(pool) as url,
        GenericEnvClient(base_url=url).sync() as env,
    ):
        env.reset(problem_id="L1_23_Softmax")
        listed = env.step({"type": "list_tools"}).observation["tools"]
        assert {tool["name"] for tool in listed} == {*TOOLS, "list_problems"}

        def call(name: str, **arguments: Any) -> Any:
            return env.step({"type": "call_tool", "tool_name": name, "arguments": arguments})

        first = call("submit_kernel", code=another(0))
        assert (first.reward, first.done) == (10.3, False)  # clipped
        assert first.observation["result"]["structured_content"]["score"] == 50.3
        again = call("submit_kernel", code=another(0))
        assert again.observation["result"] == first.observation["result"]
        assert (again.reward, again.done) == (None, False)  # no turn, so that it is paid once
        assert "code" in call("submit_kernel").observation["error"]["message"]
        for turn in (1, 2, 3):
            last = call("submit_kernel", code=another(turn))
        assert (last.reward, last.done) == (2.3, True)
        after = call("best_so_far")
        assert (after.reward, after.done) == (None, True)


def test_a_tool_that_takes_too_long_has_taken_no_turn() -> None:
    with (
        closing(Endless()) as pool,
        serving(pool, ServerLimits(step_timeout=1.0)) as url,
        MCPToolClient(base_url=url).sync() as env,
    ):
        env.call_tool("get_problem")
        for _ in range(2):
            with pytest.raises(RuntimeError, match="not judged within 1 s; send the same code"):
                env.call_tool("submit_kernel", code=REPLY)
        assert len(pool.judging) == 2 and all(each.cancelled() for each in pool.judging)
        assert env.call_tool("best_so_far")["turns_left"] == 4


def test_a_reset_ends_what_is_judged_of_the_episode_before() -> None:
    with closing(Endless()) as pool, serving(pool) as url, ThreadPoolExecutor() as threads:
        session = post(url, "openenv/session/create")["result"]["session_id"]
        with socket_to(url, f"ws?session_id={session}") as client:
            call: dict[str, Any] = {"session_id": session, "arguments": {}}
            post(url, "tools/call", name="get_problem", **call)
            call |= {"name": "submit_kernel", "arguments": {"code": REPLY}}
            submitting = threads.submit(post, url, "tools/call", **call)
            until(lambda: pool.judging)
            client.send(json.dumps({"type": "reset", "data": {"seed": 0}}))
            assert json.loads(client.recv(timeout=20))["data"]["observation"]["turn"] == 0
            assert "judging was stopped" in submitting.result(20)["error"]["message"]
            assert pool.judging[0].cancelled()


def test_a_websocket_of_tools_is_a_session(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=1)) as url:
        with socket_to(url, "mcp") as client:

            def call(name: str, **arguments: Any) -> Any:
                client.send(json.dumps(rpc("tools/call", name=name, arguments=arguments)))
                return json.loads(client.recv(timeout=20))["result"]["structured_content"]

            assert call("get_problem", problem_id="L1_26_GELU_")["turns_left"] == 4
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
        assert post(url, "tools/call", **call)["result"]["data"]["turns_left"] == 4
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
        assert {tool["name"] for tool in tools} == {*TOOLS, "list_problems"}
        answer = post(url, "tools/call", name="submit_kernel", arguments={"code": REPLY})
        assert "get_problem" in answer["error"]["message"]
        assert requests.post(f"{url}/mcp", data="{").json()["error"]["code"] == -32700
        assert fits(url)
