"""A judge server whose clients are many, gone, greedy or hostile."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from serving import (
    CODE,
    OPTIONS,
    PROBLEM,
    RIGHT,
    Held,
    Serve,
    Unending,
    address_of,
    body_of,
    put,
    sent,
    wait_until,
)
from starlette.testclient import TestClient

from kevin_env.integrations.judge_server import Requests, connections, make_app
from kevin_env.integrations.judge_server import requests as queue
from kevin_env.judge import Submission
from kevin_env.pools.http import HttpPool
from kevin_env.pools.scripted import ScriptedPool

SERVER = """
import resource
from kevin_env.integrations.judge_server import Requests, listen, make_app, make_server
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.pools.scripted import SCRIPTED_CPU

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
others = [open("/dev/null") for _ in range({others})]
pool = ScriptedPool([])
pool.device = lambda name: SCRIPTED_CPU
with listen("127.0.0.1", 0) as sock:
    print(sock.getsockname()[1], flush=True)
    requests = Requests(pool)
    make_server(make_app(requests, "secret"), requests.stop).run(sockets=[sock])
"""
HEAD = b"PUT /v1/requests/a HTTP/1.1\r\nHost: 127.0.0.1\r\n"
TOKEN = b"Authorization: Bearer secret\r\n"
FLOOD = (
    b"",
    HEAD + b"X: ",
    HEAD + b"Content-Length: 9\r\n\r\n",
    HEAD + TOKEN + b"Content-Length: 9\r\n\r\n{",
    b"nonsense\r\n\r\n",
)


@pytest.fixture
def server_of(tmp_path: Any) -> Iterator[Any]:
    """Serves in a process with 256 descriptors, some of which are taken; returns its port."""
    started = list[subprocess.Popen[str]]()

    def start(others: int) -> int:
        with (tmp_path / "log").open("w") as log:
            command = [sys.executable, "-c", SERVER.format(others=others)]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True))
        assert started[0].stdout is not None
        return int(started[0].stdout.readline())

    yield start
    for each in started:
        each.kill()
        each.wait()


def flood(port: int) -> list[socket.socket]:
    held = list[socket.socket]()
    for number in range(400):
        held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        with suppress(OSError):  # the server has closed it already
            held[-1].sendall(FLOOD[number % len(FLOOD)])
    return held


def test_connections_without_a_request_keep_no_client_out(server_of: Any, tmp_path: Any) -> None:
    port = server_of(others=0)
    held = flood(port)
    assert status_of(port) == 200
    for each in held:
        each.close()
    assert status_of(port) == 200
    assert (tmp_path / "log").read_text() == ""


def status_of(port: int) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    client.request("GET", "/v1/device", headers={"Authorization": "Bearer secret"})
    return client.getresponse().status


def test_a_lack_of_descriptors_does_not_flood_the_log(server_of: Any, tmp_path: Any) -> None:
    port = server_of(others=200)
    held = flood(port)
    log = tmp_path / "log"
    wait_until(lambda: "Too many open files" in log.read_text())
    time.sleep(1.5)  # how much is logged in this time is what is tested
    for each in held:
        each.close()
    assert len(log.read_text()) < 10_000


@pytest.mark.parametrize("part", [
    b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
], ids=["nothing", "head", "body", "idle"])  # fmt: skip
def test_a_connection_without_a_complete_request_is_closed(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    client, _ = serve(ScriptedPool([]))
    host, port = address_of(client).split(":")
    with socket.create_connection((host, int(port)), timeout=3) as sock:
        sock.sendall(part)
        with suppress(ConnectionResetError):
            while sock.recv(1 << 16):
                pass


def test_an_answer_has_a_limit_of_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    client, _ = serve(Unending([]))
    assert put(client, body_of()) == 202
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        sent(client, "GET", "/v1/requests/a?wait=10")


def test_a_server_that_stops_answers_its_polls_at_once(serve: Serve) -> None:
    """So that their clients wait for the next server, and nothing is cancelled."""

    async def polled() -> list[Any]:
        pool: Any = Unending([])
        requests = Requests(pool)
        requests.begin("a", json.loads(body_of()), 1)
        forever = asyncio.Event().wait
        polls = [asyncio.ensure_future(requests.answer("a", 9, 60, forever)) for _ in range(2)]
        await asyncio.sleep(0.1)
        requests.stop()
        late = requests.answer("a", 9, 60, forever)
        return await asyncio.wait_for(asyncio.gather(*polls, late), 5)

    assert asyncio.run(polled()) == [{"stages": []}] * 3


def test_clients_take_turns(serve: Serve) -> None:
    held = Held()
    client, _ = serve(ScriptedPool(held), at_once=1)
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        assert put(client, body_of(name), name, Kevin_Client=name[0]) == 202
    for number in range(1, 8):
        wait_until(lambda number=number: len(held.ran) == number)
        held.more.release()
    assert held.ran == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_each_pool_is_a_client(serve: Serve) -> None:
    held = Held()
    client, requests = serve(ScriptedPool(held), at_once=1)
    many = [client.submit(PROBLEM, Submission(code="many"), OPTIONS) for _ in range(5)]
    wait_until(lambda: requests.waiting == 4)
    with HttpPool(client.url) as other:
        single = other.submit(PROBLEM, CODE, OPTIONS)
        wait_until(lambda: requests.waiting == 5)
        for _ in range(3):
            held.more.release()
        assert single.result(20).outcome == RIGHT
    assert sum(each.done() for each in many) <= 2
    held.go.set()


def test_facts_do_not_wait_for_the_judgements_of_their_client(serve: Serve) -> None:
    held = Held()
    client, requests = serve(ScriptedPool(held), at_once=1)
    futures = [client.submit(PROBLEM, CODE, OPTIONS) for _ in range(4)]
    wait_until(lambda: requests.waiting == 3)
    facts = client.describe(PROBLEM, OPTIONS)
    wait_until(lambda: requests.waiting == 4)
    for _ in range(2):
        held.more.release()
    assert facts.result(20).cases
    assert not all(each.done() for each in futures)
    held.go.set()


def test_a_full_queue_has_room_for_others_and_is_tried_again_when_it_says(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kevin_env.integrations.judge_server.app.RETRY_SECONDS", 2)
    held, waits = Held(), list[float | None]()
    client, requests = serve(ScriptedPool(held), at_once=1, queue_bytes=4 * 3000)

    class Closed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return super().wait(timeout)

    client._closed = Closed()
    futures = [client.submit(PROBLEM, Submission(code=str(n)), OPTIONS) for n in range(6)]
    wait_until(lambda: requests.tally.refused > 0)
    assert put(client, body_of("other"), "other", Kevin_Client="other") == 202
    held.go.set()
    assert all(each.result(20).outcome == RIGHT for each in futures)
    assert set(waits) == {2.0}


def test_clients_are_bounded(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "CLIENTS", 1)
    client, _ = serve(Unending([]), at_once=1)
    statuses = [put(client, body_of(), str(n), Kevin_Client=name) for n, name in enumerate("abbc")]
    assert statuses == [202, 202, 202, 429]
    assert put(client, body_of(), "x", Kevin_Client="x" * 65) == 422
    assert put(client, body_of(), "x", Kevin_Client="a b") == 422


def hang_up(client: HttpPool, requests: Requests) -> None:
    """Polls, and closes the connection while the server holds the poll."""
    connection = http.client.HTTPConnection(address_of(client), timeout=20)
    connection.request("GET", "/v1/requests/a?wait=20")
    wait_until(lambda: requests._entries["a"].polls == 1)
    connection.close()
    wait_until(lambda: requests._entries["a"].polls == 0)


def test_the_places_of_a_dead_client_are_soon_free(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "BROKEN_SECONDS", 1.0)
    pool = Unending([])
    client, requests = serve(pool, at_once=1)
    assert put(client, body_of()) == 202 and put(client, body_of(), "next") == 202
    hang_up(client, requests)
    wait_until(lambda: len(pool.begun) == 2)
    assert pool.begun[0].cancelled()


def test_a_client_that_polls_again_loses_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "BROKEN_SECONDS", 2.0)
    pool = Unending([])
    client, requests = serve(pool)
    assert put(client, body_of()) == 202
    hang_up(client, requests)
    assert sent(client, "GET", "/v1/requests/a?wait=3")[0] == 200
    assert not pool.begun[0].cancelled()


def test_a_client_that_no_longer_polls_is_forgotten(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "FORGET_SECONDS", 0.3)
    pool = Unending([])
    client, _ = serve(pool)
    assert put(client, body_of()) == 202
    wait_until(lambda: pool.begun[0].cancelled())
    assert sent(client, "GET", "/v1/requests/a")[0] == 404


@pytest.mark.parametrize("body", [
    *(body_of("private", build_timeout=value) for value in (-1, 0, float("nan"), 1e308)),
    *(body_of("private", call_timeout=value) for value in (-1, 0, float("nan"), 1e308)),
    body_of("private", timing_precision=-1.0), body_of("private", do="rm"), body_of("private", do="lint"),
    body_of("private", unknown="private"), b'{"problem": "private"}', b'["private"]', b'{"private',
    b'{"do": ' + b"[" * 100_000,
])  # fmt: skip
def test_malformed_requests_are_refused_and_not_repeated(serve: Serve, body: bytes) -> None:
    pool = ScriptedPool([])
    client, _ = serve(pool)
    status, text, _ = sent(client, "PUT", "/v1/requests/a", body)
    assert status == 422 and text.startswith('{"detail":"malformed: ')
    assert "private" not in text and len(text) < 500
    assert pool.submissions == []


def test_a_query_is_not_repeated(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([]))
    status, text, _ = sent(client, "GET", "/v1/requests/a?seen=private")
    assert status == 422 and "seen" in text and "private" not in text


def test_health_and_metrics(serve: Serve) -> None:
    pool = ScriptedPool([RIGHT])
    client, requests = serve(pool)
    client.submit(PROBLEM, CODE, OPTIONS).result(20)
    status, text, _ = sent(client, "GET", "/healthz")
    assert (status, text) == (200, '{"waiting":0,"in_flight":0}')
    app = make_app(requests, starts={"cuda:0": 2})
    lines = TestClient(app, "http://127.0.0.1").get("/metrics").text.splitlines()
    for line in (
        "kevin_env_waiting 0.0", "kevin_env_in_flight 0.0", "kevin_env_refused_total 0.0",
        'kevin_env_judgements_total{ending="correct"} 1.0',
        'kevin_env_stage_seconds_sum{stage="build"} 0.5',
        'kevin_env_stage_seconds_count{stage="build"} 1.0',
        'kevin_env_judge_starts_total{device="cuda:0"} 2.0',
    ):  # fmt: skip
        assert line in lines


@pytest.mark.parametrize(("peer", "path", "status"), [
    ("127.0.0.1", "/healthz", 200), ("::1", "/metrics", 200), ("127.0.0.1", "/v1/device", 401),
    ("10.0.0.1", "/healthz", 401), ("10.0.0.1", "/metrics", 401),
])  # fmt: skip
def test_health_and_metrics_need_a_token_from_elsewhere(peer: str, path: str, status: int) -> None:
    app = make_app(Requests(ScriptedPool([])), "secret", ("*",))
    client = TestClient(app, client=(peer, 50000))
    assert client.get(path).status_code == status
    if path != "/v1/device":
        assert client.get(path, headers={"Authorization": "Bearer secret"}).status_code == 200


def test_a_client_of_a_proxy_needs_a_token(serve: Serve) -> None:
    client, _ = serve(ScriptedPool([]), token="secret")
    assert sent(client, "GET", "/healthz")[0] == 200
    assert sent(client, "GET", "/healthz", X_Forwarded_For="10.0.0.1")[0] == 401


def test_metrics_without_their_package_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    answer = TestClient(make_app(Requests(ScriptedPool([]))), "http://127.0.0.1").get("/metrics")
    assert answer.status_code == 501
    assert answer.text == "pip install 'kevin-env[prometheus]'\n"
