"""A judge server and its client, on the loopback interface."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from serving import CODE, OPTIONS, PROBLEM, RIGHT, Held, Serve, Unending, body_of, put, wait_until
from stub_server import Answer
from stub_server import serve as serve_stub

from kevin_env.env import KevinEnv
from kevin_env.integrations import judge_server
from kevin_env.judge import JudgeError, Submission
from kevin_env.outcome import RuntimeFailure
from kevin_env.pools.http import HttpPool, connect
from kevin_env.pools.scripted import SCRIPTED_CPU, ScriptedPool
from kevin_env.problem import ProblemError

WRONG = RuntimeFailure(kind="exception", message="no")


def test_verdicts_facts_and_stages_arrive(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT, WRONG]))
    stages = list[str]()
    assert client.describe(PROBLEM, OPTIONS).result(20).device == SCRIPTED_CPU
    judged = client.submit(PROBLEM, CODE, OPTIONS, stages.append).result(20)
    assert judged.outcome == RIGHT and judged.device == SCRIPTED_CPU
    assert client.submit(PROBLEM, CODE, OPTIONS).result(20).outcome == WRONG


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"] * 2
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for each in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(each)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        pool = HttpPool(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=0.5)
        with pytest.raises(JudgeError, match="no judge server answers"):
            pool.device()
        thread.join(10)


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


def test_cancelling_ends_the_judgement(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kevin_env.pools.http.POLL_SECONDS", 0.2)
    pool = Unending([])
    client, _ = serve(pool)
    future = client.submit(PROBLEM, CODE, OPTIONS)
    wait_until(lambda: len(pool.begun) == 1)
    assert future.cancel()
    wait_until(lambda: pool.begun[0].cancelled())


def test_a_server_that_has_restarted_gets_its_requests_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers that it does not know them."""
    monkeypatch.setattr("kevin_env.pools.http.POLL_SECONDS", 0.2)
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


def test_a_closed_pool_asks_no_server(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT]))
    client.close()
    for asked in (lambda: client.device("cpu"), client.submit(PROBLEM, CODE, OPTIONS).result):
        with pytest.raises(JudgeError, match=r"^the pool is closed$"):
            asked()


def test_closing_fails_what_is_open(serve: Serve) -> None:
    held = Held()
    client, _ = serve(ScriptedPool(held))
    future = client.submit(PROBLEM, CODE, OPTIONS)
    assert held.running.acquire(timeout=10)
    client.close()
    with pytest.raises(JudgeError, match="the pool is closed"):
        future.result(1)
    held.go.set()


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8001", "ftp://host", "http://", "http://host?x=1", "http://host#a",
        "http://my host:1", "http://host:abc", "http://host:81111", "http://host:-1", "http://[::1",
        "http://host:1\n",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="give a URL such as http"):
        connect(url)


def test_secrets_are_in_no_error() -> None:
    with pytest.raises(ValueError, match="set KEVIN_ENV_JUDGE_TOKEN to its token") as refused:
        connect("http://user:pw@host:8001")
    assert "pw" not in str(refused.value)
    for token in ("s3cret\nvalue", "s3cret\x00", "s3cret日本"):
        with pytest.raises(ValueError, match="must consist of printable ASCII") as refused:
            HttpPool("http://host:8001", token)
        assert "s3cret" not in str(refused.value)


def test_white_space_around_a_token_does_not_count(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([RIGHT]), token="secret", given="secret\n")
    assert client.submit(PROBLEM, CODE, OPTIONS).result(20)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(raw=b"<html>log in</html>"), Answer(raw=b"[1]"), Answer(raw=b"{}"),
        Answer(raw=b"<html>no</html>", status=404), Answer(raw=b'{"detail":"Not Found"}', status=404),
    ],
)  # fmt: skip
def test_what_is_no_judge_server_is_named_at_once(answer: Answer) -> None:
    with other_server(answer) as url, HttpPool(url) as client:
        future = client.submit(PROBLEM, CODE, OPTIONS)
        with pytest.raises(JudgeError, match=rf"^{url} is not a judge server"):
            future.result(20)


@contextmanager
def other_server(answer: Answer) -> Iterator[str]:
    """A server that gives one answer to every request; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answer.raw or b""
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


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
    with pytest.raises(JudgeError, match=r"\(422\): malformed.*must have the same version"):
        client._ask("PUT", "requests/a", {"problem": {}, "options": {}})


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
        with (
            HttpPool(first.url, "secret") as client,
            pytest.raises(JudgeError, match="not a judge server"),
        ):
            client.device()
        assert (first.listed_for, other.listed_for) == (["Bearer secret"], [])


def test_hundreds_of_submissions_are_judged_once_each(serve: Serve) -> None:
    pool = ScriptedPool(lambda problem, submission: RIGHT, workers=8)
    client, _ = serve(pool, at_once=64)
    futures = [client.submit(PROBLEM, Submission(code=str(n)), OPTIONS) for n in range(200)]
    assert not wait_for(futures, 60).not_done
    assert all(future.result().outcome == RIGHT for future in futures)
    assert sorted(each.code for _, each, _ in pool.submissions) == sorted(map(str, range(200)))
