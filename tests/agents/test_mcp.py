"""MCP clients of the official SDK play episodes: over stdio and HTTP with a real judge, and against
a scripted one whatever they may do wrong.
"""

import asyncio
import os
import subprocess
import sys
import threading
import urllib.error
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cpp_kernels import FASTER_KERNEL, RIGHT_KERNEL, WRONG_KERNEL
from episodes import WRONG, another_file, correct, problem_file, recorded
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, TextContent
from serving import served
from typer.testing import CliRunner

from kevin_env.agents import check
from kevin_env.agents import server as agents
from kevin_env.cli import app
from kevin_env.integrations.judge_server import listen
from kevin_env.judge.api import JudgeError, Judgement, OnStage, Options, Submission
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem
from kevin_env.recorder import Recorder
from kevin_env.session import AgentSession
from kevin_env.settings import Settings
from kevin_env.tools import TOOLS


async def call(client: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.isError and result.structuredContent, result
    return result.structuredContent


async def refused(client: ClientSession, tool: str, **arguments: Any) -> str:
    """The one line of an error."""
    result = await client.call_tool(tool, arguments)
    assert result.isError
    text = said(result)
    assert "\n" not in text and len(text) < 400
    return text


def said(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def over_http(url: str, token: str = "") -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx.AsyncClient(headers=headers, timeout=200, trust_env=False) as http,
        streamable_http_client(url, http_client=http) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing, timedelta(seconds=200)) as client,
    ):
        await client.initialize()
        yield client


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The URL of an application that is served while the block runs."""
    server = agents.make_http_server(app)
    with listen("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}{agents.PATH}"
        finally:
            server.should_exit = True
            thread.join(30)


class Table:
    """Sessions over a scripted pool, each with its file."""

    def __init__(self, folder: Path, pool: Any, problems: list[Problem], **more: Any) -> None:
        self.folder, self.pool, self.problems, self.more = folder, pool, problems, more
        self.opened: list[AgentSession] = []

    def server(self) -> Any:
        return agents.make_server(agents.one_each(self._open))

    def _open(self) -> AgentSession:
        turns, seconds = self.more.get("turns", 3), self.more.get("seconds", 600.0)
        recorder = Recorder(self.folder / f"{len(self.opened)}.jsonl")
        settings = Settings(max_turns=turns)
        session = AgentSession(self.problems, self.pool, settings, seconds, recorder)
        self.opened.append(session)
        return session


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return problem_file(tmp_path)


def play(table: Table, steps: Callable[[ClientSession], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with create_connected_server_and_client_session(table.server()) as client:
            await steps(client)

    asyncio.run(main())


class Slow(ScriptedPool):
    """Its verdicts come when they are set."""

    def __init__(self) -> None:
        super().__init__([])
        self.judging: list[Future[Judgement]] = []
        self.asked = threading.Event()

    def submit(
        self,
        problem: Problem,
        submission: Submission,
        options: Options,
        on_stage: OnStage | None = None,
    ) -> Future[Judgement]:
        if on_stage:
            on_stage("time")
        self.judging.append(Future())
        self.asked.set()
        return self.judging[-1]

    def verdict(self, problem: Problem) -> Judgement:
        """Some verdict, as a scripted pool makes it."""
        with_answer = ScriptedPool([correct(2.0)])
        submission: Any = None
        return with_answer.submit(problem, submission, Settings().options()).result()


@pytest.mark.parametrize("transport", ["stdio", pytest.param("http", marks=pytest.mark.full)])
def test_a_client_plays_three_turns_on_a_cpu(
    transport: str, tmp_path: Path, problem: Problem, pool: LocalPool
) -> None:
    out, reports = tmp_path / "out", list[str | None]()
    words = [
        "mcp",
        "--problem",
        problem.path,
        "--device",
        "cpu",
        "--max-turns",
        "3",
        "--out",
        str(out),
    ]

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message)

    async def steps(client: ClientSession) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        task = await call(client, "get_problem")
        assert "class Model(" in task["reference"] and "Doubles x." in task["task"]
        assert "fenced code block" not in task["task"]
        wrong = await client.call_tool(
            "submit_kernel", {"code": WRONG_KERNEL}, progress_callback=hear
        )
        assert wrong.structuredContent and wrong.structuredContent["category"] == "correctness"
        assert wrong.structuredContent["feedback"] in said(wrong)
        right = await call(client, "submit_kernel", code=RIGHT_KERNEL)
        assert (right["category"], right["turns_left"], right["best_turn"]) == ("correct", 1, 2)
        profile = await client.call_tool("profile_kernel", {})
        assert "Profile of turn 2" in said(profile) and not profile.isError
        faster = await call(client, "submit_kernel", code=FASTER_KERNEL)
        assert faster["speedup"] > right["speedup"] and faster["done"]
        best = await call(client, "best_so_far")
        assert best["code"] == FASTER_KERNEL and best["best_turn"] == 3
        assert "episode has ended" in await refused(client, "submit_kernel", code=RIGHT_KERNEL)

    async def main(url: str) -> None:
        environment = {**os.environ, "KEVIN_ENV_POOL": url}
        program = [sys.executable, "-m", "kevin_env", *words]
        if transport == "stdio":
            parameters = StdioServerParameters(
                command=program[0], args=program[1:], env=environment
            )
            async with (
                stdio_client(parameters) as (incoming, outgoing),
                ClientSession(incoming, outgoing, timedelta(seconds=200)) as client,
            ):
                await client.initialize()
                await steps(client)
            return
        with subprocess.Popen(
            [*program, "--http", "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr
                where = process.stderr.readline().split()[2].rstrip(";")
                async with over_http(where) as client:
                    await steps(client)
            finally:
                process.terminate()

    with served(pool) as (judges, _):
        asyncio.run(main(judges.url))
    [file] = out.glob("*.jsonl")
    [episode] = recorded(file)
    assert [turn.category for turn in episode.turns] == ["correctness", "correct", "correct"]
    assert (episode.stop_reason, episode.model) == ("max_turns", "mcp")
    assert episode.turns[2].messages[0].content.startswith("Write a faster version")
    assert set(reports) <= {"waiting for the judge", "judging"} and reports


def test_bad_input_is_one_error_and_takes_no_turn(tmp_path: Path, problem: Problem) -> None:
    async def steps(client: ClientSession) -> None:
        assert "get_problem first" in await refused(client, "submit_kernel", code="x")
        assert "unknown problem 'nothing'" in await refused(
            client, "get_problem", problem_id="nothing"
        )
        other = problem_file(tmp_path, "8_Other")
        assert "unknown problem" in await refused(client, "get_problem", problem_id=other.path)
        await call(client, "get_problem", problem_id="Double")
        assert "unknown tool 'grade'" in await refused(client, "grade")
        assert "the argument `code` is missing; it takes `code`" in await refused(
            client, "submit_kernel"
        )
        assert "valid string" in await refused(client, "submit_kernel", code=["x"] * 9999)
        assert "`code` is longer than 1,048,576 characters" in await refused(
            client, "submit_kernel", code="x" * (1 + (1 << 20))
        )
        assert "there is no argument `score`" in await refused(
            client, "submit_kernel", code="x", score=9
        )
        assert "there is no turn 7 yet" in await refused(client, "profile_kernel", turn=7)
        assert "no turn has a correct" in await refused(client, "profile_kernel")
        assert "judge is broken" in await refused(client, "submit_kernel", code=another_file(1))
        assert (await call(client, "best_so_far"))["turns_left"] == 3
        assert (await call(client, "submit_kernel", code=another_file(1)))["turn"] == 1

    answers = [JudgeError("the judge is broken"), correct(2.0)]
    play(Table(tmp_path, ScriptedPool(answers), [problem]), steps)


def test_what_is_submitted_is_a_file(tmp_path: Path, problem: Problem) -> None:
    """A fence in it is text, and an error is that of the file."""
    broken = f"""r'''Version 1:\n```python\n{another_file(1)}```\n'''\ndef f(:\n    pass\n"""

    async def steps(client: ClientSession) -> None:
        await call(client, "get_problem", problem_id="Double")
        for code, kind, told in (
            (broken, "compile/syntax", "line"), ("", "format/no_model", "The file defines no"),
        ):  # fmt: skip
            verdict = await call(client, "submit_kernel", code=code)
            assert "{category}/{kind}".format(**verdict) == kind and told in verdict["feedback"]

    pool = ScriptedPool([])
    play(Table(tmp_path, pool, [problem]), steps)
    assert pool.submissions == []


def test_a_session_that_has_ended_makes_room(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "SESSIONS", 1)
    table = Table(tmp_path, ScriptedPool([]), [problem])
    with serving(agents.make_app(table.server())) as url:
        for _ in range(3):
            headers, task = check.start(url, "", "Double")
            assert task["problem_id"] == problem.id
            with pytest.raises(urllib.error.HTTPError, match="503"):
                check.start(url, "", "Double")
            check.end(url, headers)
        with pytest.raises(ValueError, match="unknown problem"):
            check.start(url, "", "Nothing")
        check.end(url, check.start(url, "", "Double")[0])


def test_the_server_holds_the_limit_of_time(tmp_path: Path, problem: Problem) -> None:
    async def steps(client: ClientSession) -> None:
        await call(client, "get_problem")
        while not (best := await call(client, "best_so_far"))["done"]:
            pass
        assert (best["turns_left"], best["seconds_left"]) == (0, 0)
        assert "time limit" in await refused(client, "submit_kernel", code=another_file(2))
        assert "time limit" in await refused(client, "profile_kernel")

    pool = ScriptedPool([])
    play(Table(tmp_path, pool, [problem], seconds=0.5), steps)
    assert pool.submissions == []


def test_a_request_that_breaks_off_loses_nothing(tmp_path: Path, problem: Problem) -> None:
    pool = Slow()

    async def steps(client: ClientSession) -> None:
        await call(client, "get_problem")
        asking = asyncio.ensure_future(client.call_tool("submit_kernel", {"code": another_file(1)}))
        await asyncio.to_thread(pool.asked.wait, 30)
        asking.cancel()
        assert "still being judged" in await refused(client, "submit_kernel", code=another_file(2))
        heard: asyncio.Queue[str | None] = asyncio.Queue()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.put_nowait(message)

        again = asyncio.ensure_future(
            client.call_tool("submit_kernel", {"code": another_file(1)}, progress_callback=hear)
        )
        assert await heard.get() == "judging"  # `time` would tell that the values are right
        pool.judging[0].set_result(pool.verdict(problem))
        verdict = (await again).structuredContent
        assert verdict is not None
        assert (verdict["turn"], verdict["turns_left"], verdict["speedup"]) == (1, 2, 2.0)
        assert await call(client, "submit_kernel", code=another_file(1)) | {"seconds_left": 0} == (
            verdict | {"seconds_left": 0}
        )
        assert len(pool.judging) == 1

    play(Table(tmp_path, pool, [problem]), steps)


def test_a_client_that_goes_away_frees_the_judge_and_keeps_its_turns(
    tmp_path: Path, problem: Problem
) -> None:
    pool = Slow()

    async def steps(client: ClientSession) -> None:
        await call(client, "get_problem")
        asking = asyncio.ensure_future(call(client, "submit_kernel", code=another_file(1)))
        await asyncio.to_thread(pool.asked.wait, 30)
        pool.judging[0].set_result(pool.verdict(problem))
        await asking
        pool.asked.clear()
        asking = asyncio.ensure_future(client.call_tool("submit_kernel", {"code": another_file(2)}))
        await asyncio.to_thread(pool.asked.wait, 30)
        asking.cancel()

    play(Table(tmp_path, pool, [problem]), steps)
    assert pool.judging[1].cancelled()
    [episode] = recorded(tmp_path / "0.jsonl")
    assert (len(episode.turns), episode.stop_reason) == (1, "interrupted")


def test_the_best_speedup_is_that_of_its_turn_and_not_what_is_paid(
    tmp_path: Path, problem: Problem
) -> None:
    noisy = correct(4.0).model_copy(update={"kind": "too_noisy", "speedup_interval": (1.0, 16.0)})

    async def steps(client: ClientSession) -> None:
        await call(client, "get_problem")
        verdict = await call(client, "submit_kernel", code=another_file(1))
        assert verdict["speedup"] == verdict["best_speedup"] == 4.0

    play(Table(tmp_path, ScriptedPool([noisy]), [problem]), steps)


def test_two_clients_do_not_see_each_other(tmp_path: Path, problem: Problem) -> None:
    table = Table(tmp_path, ScriptedPool([correct(2.0), WRONG]), [problem])

    async def main(url: str) -> None:
        async with over_http(url) as one, over_http(url) as other:
            await call(one, "get_problem")
            await call(one, "submit_kernel", code=another_file(1))
            assert "get_problem first" in await refused(other, "best_so_far")
            await call(other, "get_problem")
            assert (await call(other, "best_so_far"))["turns"] == []
            await call(other, "submit_kernel", code=another_file(1))
            assert (await call(one, "best_so_far"))["best_speedup"] == 2.0

    with serving(agents.make_app(table.server())) as url:
        asyncio.run(main(url))
    endings = [recorded(tmp_path / f"{number}.jsonl")[0] for number in (0, 1)]
    assert sorted(each.turns[0].category for each in endings) == ["correct", "correctness"]


def test_http_needs_its_token_and_no_web_page_gets_in(tmp_path: Path, problem: Problem) -> None:
    table = Table(tmp_path, ScriptedPool([]), [problem])
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }  # fmt: skip

    def status(url: str, **headers: str) -> int:
        return httpx.post(url, json=hello, headers=accept | headers, trust_env=False).status_code

    with serving(agents.make_app(table.server(), "secret")) as url:
        assert (status(url), status(url, Authorization="Bearer guess")) == (401, 401)
        assert status(url, Authorization="Bearer secret") == 200
    with serving(agents.make_app(table.server())) as url:
        assert status(url) == 200
        assert status(url, Origin="http://evil.example") == 403
        assert status(url, Host="evil.example") == 421


def test_an_address_of_the_network_needs_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEVIN_ENV_MCP_TOKEN", raising=False)
    words = ["mcp", "--http", "--host", "0.0.0.0", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and "set KEVIN_ENV_MCP_TOKEN" in done.stderr
