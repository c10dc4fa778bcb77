"""A judge server and its client, on the loopback interface."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import ExitStack
from typing import Any

import pytest
from stub_server import Answer
from stub_server import serve as serve_stub

from kevin_env.env import KevinEnv
from kevin_env.integrations import judge_server
from kevin_env.integrations.judge_server import Requests, listen, make_app, make_server
from kevin_env.judge import JudgeError, Options, ScriptedPool, Submission
from kevin_env.judge.http_pool import HttpPool, connect
from kevin_env.judge.scripted import SCRIPTED_CPU
from kevin_env.outcome import Correct, Outcome, RuntimeFailure
from kevin_env.problem import Problem, ProblemError

PROBLEM = Problem(id="p", name="p", source="x = 1\n")
RIGHT = Correct(kind="timed", message="right", speedup=2.0)
WRONG = RuntimeFailure(kind="exception", message="no")
CODE = Submission(code="x")
OPTIONS = Options(device="cpu")

Serve = Callable[..., tuple[HttpPool, Requests]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serves a pool; returns a client and the server's requests."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:

        def start(
            pool: ScriptedPool, token: str = "", given: str = "", port: int = 0, **more: Any
        ) -> tuple[HttpPool, Requests]:
            requests = Requests(pool, **more)
            sock = stack.enter_context(listen("127.0.0.1", port))
            server = make_server(make_app(requests, token))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(setattr, server, "should_exit", True)
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            client = stack.enter_context(HttpPool(url, given or token, patience=5))
            return client, requests

        yield start


def test_verdicts_facts_and_stages_arrive(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT, WRONG]))
    stages = list[str]()
    assert client.describe(PROBLEM, OPTIONS).result(20).device == SCRIPTED_CPU
    judged = client.submit(PROBLEM, CODE, OPTIONS, stages.append).result(20)
    assert judged.outcome == RIGHT and judged.device == SCRIPTED_CPU
    assert client.submit(PROBLEM, CODE, OPTIONS).result(20).outcome == WRONG


@pytest.mark.parametrize("error", [ProblemError("bad reference"), JudgeError("no memory")])
def test_errors_keep_their_kind(serve: Serve, error: Exception) -> None:
    client, _ = serve(ScriptedPool([error]))
    with pytest.raises(type(error), match=str(error)):
        client.submit(PROBLEM, CODE, OPTIONS).result(20)


def test_a_wrong_token_is_refused_with_what_to_do(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT]), token="secret", given="other")
    with pytest.raises(JudgeError, match="refuses the token: set KEVIN_ENV_JUDGE_TOKEN"):
        client.submit(PROBLEM, CODE, OPTIONS).result(20)
    assert HttpPool(client.url, "secret").submit(PROBLEM, CODE, OPTIONS).result(20)


@pytest.mark.parametrize(("host", "token", "fine"), [
    ("127.0.0.1", "", True), ("localhost", "", True), ("::1", "", True),
    ("0.0.0.0", "", False), ("10.0.0.1", "", False), ("0.0.0.0", "secret", True),
])  # fmt: skip
def test_other_machines_need_a_token(host: str, token: str, fine: bool) -> None:
    if fine:
        judge_server.require_token_for(host, token)
        return
    with pytest.raises(ValueError, match="set KEVIN_ENV_JUDGE_TOKEN to a secret, or listen on"):
        judge_server.require_token_for(host, token)


class Held:
    """A script whose answers wait until they are let go."""

    def __init__(self) -> None:
        self.go, self.running = threading.Event(), threading.Semaphore(0)
        self.ran = list[str]()

    def __call__(self, problem: Problem, submission: Submission) -> Outcome:
        self.ran.append(submission.code)
        self.running.release()
        assert self.go.wait(20)
        return RIGHT


def test_a_busy_server_lets_clients_wait(serve: Serve) -> None:
    held = Held()
    client, _ = serve(ScriptedPool(held), at_once=2)
    futures = [client.submit(PROBLEM, Submission(code=str(n)), OPTIONS) for n in range(5)]
    assert all(held.running.acquire(timeout=10) for _ in range(2))
    assert not held.running.acquire(timeout=1.5)
    held.go.set()
    assert all(future.result(20).outcome == RIGHT for future in futures)
    assert sorted(held.ran) == ["0", "1", "2", "3", "4"]


def test_a_request_that_is_sent_again_starts_nothing_twice(serve: Serve) -> None:
    held = Held()
    client, _ = serve(ScriptedPool(held))
    body = {"do": "judge", "problem": PROBLEM.model_dump(), "options": OPTIONS.model_dump()}
    for _ in range(3):
        assert client._ask("PUT", "requests/a", body | {"submission": CODE.model_dump()})[0] == 202
    held.go.set()
    assert client._ask("GET", "requests/a?wait=20&seen=9")[1]["judgement"]
    assert held.ran == ["x"]


def test_cancelling_ends_the_judgement_and_so_does_a_client_that_is_gone(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kevin_env.judge.http_pool.POLL_SECONDS", 0.2)
    held, pool = Held(), ScriptedPool([])
    begun = list[Future[None]]()

    def submit(*_: object) -> Future[None]:
        begun.append(Future())
        return begun[-1]

    monkeypatch.setattr(pool, "submit", submit)
    client, requests = serve(pool)
    future = client.submit(PROBLEM, CODE, OPTIONS)
    client.submit(PROBLEM, CODE, OPTIONS)
    wait_until(lambda: len(begun) == 2)
    assert future.cancel()
    wait_until(lambda: sum(each.cancelled() for each in begun) == 1)
    client.close()
    requests.drop_abandoned()
    assert not all(each.cancelled() for each in begun), "its client asked a moment ago"
    monkeypatch.setattr(judge_server, "FORGET_SECONDS", 0.0)
    requests.drop_abandoned()
    assert all(each.cancelled() for each in begun)
    held.go.set()


def test_a_server_that_has_restarted_gets_its_requests_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers that it does not know them."""
    monkeypatch.setattr("kevin_env.judge.http_pool.POLL_SECONDS", 0.2)
    held = Held()
    client, requests = serve(ScriptedPool(held))
    future = client.submit(PROBLEM, CODE, OPTIONS)
    wait_until(lambda: bool(requests._entries))
    assert held.running.acquire(timeout=10)
    requests._entries.clear()
    assert held.running.acquire(timeout=10)
    held.go.set()
    assert future.result(20).outcome == RIGHT and held.ran == ["x", "x"]


def test_a_server_that_is_not_there_is_logged_once_and_fails_after_its_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with HttpPool(f"http://127.0.0.1:{port}", patience=1.5) as client:
        future = client.submit(PROBLEM, CODE, OPTIONS)
        with pytest.raises(JudgeError, match="no judge server answers at http"):
            future.result(20)
    (logged,) = (each.message for each in caplog.records)
    assert logged.endswith("; trying again for 1.5 s")


def test_closing_fails_what_is_open(serve: Serve) -> None:
    held = Held()
    client, _ = serve(ScriptedPool(held))
    future = client.submit(PROBLEM, CODE, OPTIONS)
    assert held.running.acquire(timeout=10)
    client.close()
    with pytest.raises(JudgeError, match="the pool is closed"):
        future.result(1)
    held.go.set()


@pytest.mark.parametrize("url", ["127.0.0.1:8001", "ftp://host", "http://", "http://host?x=1"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="give a URL such as http"):
        connect(url)


def test_the_environment_variable_replaces_the_judges_of_this_machine(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = serve(ScriptedPool([RIGHT]))
    monkeypatch.setenv("KEVIN_ENV_POOL", client.url)
    with connect(None) as pool:  # type: ignore[attr-defined]
        assert pool.submit(PROBLEM, CODE, OPTIONS).result(20).outcome == RIGHT


def test_an_environment_plays_over_a_server(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT]))
    env = KevinEnv("L1_23_Softmax", pool=client.url, max_turns=1, rules="open")
    prompt, _ = env.reset()
    _, score, terminated, truncated, _ = env.step(
        "```python\nimport torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x\n```"
    )
    env.close()
    assert "ModelNew" in prompt and score > 0 and (terminated or truncated)


def test_large_and_malformed_requests_are_refused(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT]))
    with pytest.raises(JudgeError, match="too long to be judged"):
        client.submit(PROBLEM, Submission(code="x" * (9 << 20)), OPTIONS).result(20)
    with pytest.raises(JudgeError, match=r"refuses the request \(422\): malformed"):
        client._ask("PUT", "requests/a", {"problem": {}, "options": {}})


def put(client: HttpPool, body: bytes, **headers: str) -> int:
    """The status of a request that is sent without our client."""
    address = client.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        headers |= {"Content-Type": "application/json"}
        connection.request("PUT", "/v1/requests/a", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def body_of(code: str = "x", **options: Any) -> bytes:
    whole = {"do": "judge", "problem": PROBLEM.model_dump(), "options": OPTIONS.model_dump()}
    whole["options"] |= options
    return json.dumps(whole | {"submission": Submission(code=code).model_dump()}).encode()


def test_a_client_of_another_kind_is_limited_too(serve: Serve) -> None:
    pool = ScriptedPool([RIGHT])
    client, _ = serve(pool)
    assert put(client, body_of("x" * (9 << 20))) == 413
    assert put(client, body_of(), Host="evil.example") == 400
    assert pool.submissions == []
    assert put(client, body_of()) == 202


def test_a_server_may_require_a_sandbox_of_every_request(serve: Serve) -> None:
    pool = ScriptedPool([RIGHT] * 2)
    client, _ = serve(pool, require_sandbox=True)
    assert not OPTIONS.require_sandbox
    client.describe(PROBLEM, OPTIONS).result(20)
    client.submit(PROBLEM, CODE, OPTIONS).result(20)
    assert [options.require_sandbox for _, _, options in pool.submissions] == [True]


def test_a_token_does_not_follow_a_redirect() -> None:
    with serve_stub(Answer()) as other, serve_stub(Answer()) as first:
        other.lists_models, first.lists_models = 200, 302
        first.headers = {"Location": other.url}
        with HttpPool(first.url, "secret") as client, pytest.raises(JudgeError, match="302"):
            client.device()
        assert (first.listed_for, other.listed_for) == (["Bearer secret"], [])


def test_hundreds_of_submissions_are_judged_once_each(serve: Serve) -> None:
    pool = ScriptedPool(lambda problem, submission: RIGHT, workers=8)
    client, _ = serve(pool, at_once=64)
    futures = [client.submit(PROBLEM, Submission(code=str(n)), OPTIONS) for n in range(200)]
    assert not wait_for(futures, 60).not_done
    assert all(future.result().outcome == RIGHT for future in futures)
    assert sorted(each.code for _, each, _ in pool.submissions) == sorted(map(str, range(200)))


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
