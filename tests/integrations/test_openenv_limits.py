"""What unknown clients may take, and that nothing of a session is left when it is over."""

import gc
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("openenv")

import requests
from episodes import REPLY, correct
from openenv_server import Endless, fits, serving, socket_to, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from kevin_env.episode import Episode, EpisodeError
from kevin_env.integrations.openenv import KernelAction, KernelEnv
from kevin_env.integrations.openenv.server.environment import KernelEnvironment
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.integrations.openenv.server.tasks import Tasks
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import list_problems
from kevin_env.settings import Settings


@pytest.fixture
def pool() -> Iterator[ScriptedPool]:
    with closing(ScriptedPool(lambda *_: correct(1.0))) as pool:
        yield pool


def episodes() -> int:
    gc.collect()
    return sum(type(each) is Episode for each in gc.get_referrers(Episode))


def tell(client: ClientConnection, type: str, **data: Any) -> dict[str, Any]:
    client.send(json.dumps({"type": type, "data": data}))
    return json.loads(client.recv(timeout=20))


def test_one_session_too_many_is_told_so_and_the_others_go_on(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=2)) as url:
        with KernelEnv(base_url=url) as one, KernelEnv(base_url=url) as two:
            for env in (one, two):
                env.reset(seed=0)
            with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
                KernelEnv(base_url=url).reset(seed=2)
            assert (
                one.step(KernelAction(code=REPLY)).reward
                == 1.3
                == two.step(KernelAction(code=REPLY)).reward
            )
        until(lambda: fits(url))


def test_a_session_that_goes_away_frees_its_episode(pool: ScriptedPool) -> None:
    before = episodes()
    with serving(pool, ServerLimits(sessions=1)) as url:
        client = socket_to(url)
        tell(client, "reset", seed=0)
        assert tell(client, "step", code=REPLY)["data"]["reward"] == 1.3
        assert episodes() == before + 1 and not fits(url)
        client.socket.close()  # without a word of farewell
        until(lambda: fits(url))
        until(lambda: episodes() == before)


def test_what_is_judged_for_a_session_that_goes_away_is_cancelled(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = episodes()
    with closing(Endless()) as pool, serving(pool, ServerLimits(sessions=1)) as url:
        for leave in (ClientConnection.close, lambda client: client.socket.close()):
            client = socket_to(url)
            tell(client, "reset", seed=0)
            client.send(json.dumps({"type": "step", "data": {"code": REPLY}}))
            until(lambda: pool.judging)
            leave(client)
            judging = pool.judging.pop()
            until(judging.cancelled)
            del judging  # it knows whom to tell
            until(lambda: fits(url))
            until(lambda: episodes() == before)
    assert capfd.readouterr().err == ""


def test_a_server_that_is_stopped_waits_for_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    judging, free = threading.Event(), threading.Event()

    def slow(*_: Any) -> Any:
        judging.set()
        free.wait(20)
        return correct(1.0)

    with closing(ScriptedPool(slow)) as pool, serving(pool, before_stop=free.set) as url:
        client = socket_to(url)
        tell(client, "reset", seed=0)
        client.send(json.dumps({"type": "step", "data": {"code": REPLY}}))
        assert judging.wait(20)
    client.close()
    assert capfd.readouterr().err == ""  # else it tells of tasks that it had to cancel


def test_a_session_that_was_ended_begins_nothing_any_more(pool: ScriptedPool) -> None:
    environment = KernelEnvironment(pool, Tasks(list_problems(1)), Settings(), ServerLimits())
    environment.reset(seed=0)
    assert environment.state.problem_id is not None
    environment.close()
    assert environment.state.problem_id is None
    for call in (
        lambda: environment.reset(seed=0),
        lambda: environment.step(KernelAction(code=REPLY)),
    ):
        with pytest.raises(EpisodeError, match="this session has ended; connect again"):
            call()


def test_a_silent_session_is_ended(pool: ScriptedPool) -> None:
    before = episodes()
    with serving(pool, ServerLimits(idle_timeout=1.0)) as url:
        with socket_to(url) as client:
            tell(client, "reset", seed=0)
            start = time.monotonic()
            with pytest.raises(ConnectionClosed):
                client.recv(timeout=60)
            assert time.monotonic() - start >= 0.9
        until(lambda: episodes() == before)
        with KernelEnv(base_url=url) as env:
            env.reset(seed=0)
            until(lambda: episodes() == before)
            with pytest.raises(RuntimeError, match="send reset first"):
                env.step(KernelAction(code=REPLY))


@pytest.mark.parametrize("path", ["ws?session_id=", "mcp?session_id=x", "mcp"])
def test_no_name_of_a_session_excuses_silence(pool: ScriptedPool, path: str) -> None:
    with (
        serving(pool, ServerLimits(idle_timeout=0.5)) as url,
        socket_to(url, path) as client,
        pytest.raises(ConnectionClosed),
    ):
        client.recv(timeout=20)


def test_the_time_of_a_step_is_no_silence() -> None:
    def slow(*_: Any) -> Any:
        time.sleep(1.2)
        return correct(1.0)

    limits = ServerLimits(idle_timeout=0.6)
    with (
        closing(ScriptedPool(slow)) as pool,
        serving(pool, limits) as url,
        KernelEnv(base_url=url) as env,
    ):
        env.reset(seed=0)
        assert env.step(KernelAction(code=REPLY)).observation.turn == 1


def test_pages_of_other_origins_are_refused(pool: ScriptedPool) -> None:
    def ours(url: str, origin: str) -> ClientConnection:
        place = f"{url.replace('http', 'ws')}/ws"
        return connect(place, proxy=None, legacy=True, origin=Origin(origin))

    with serving(pool) as url:
        for origin in ("http://elsewhere.example", "null", url.replace("127.0.0.1", "localhost")):
            with pytest.raises(InvalidStatus, match="403"):
                ours(url, origin)
            answer = requests.post(f"{url}/mcp", data="{}", headers={"Origin": origin})
            assert answer.status_code == 403
        with ours(url, url) as client:
            assert tell(client, "reset", seed=0)["type"] == "observation"


def test_messages_have_a_size(pool: ScriptedPool) -> None:
    with serving(pool, ServerLimits(sessions=2, message_bytes=4096)) as url:
        with socket_to(url) as client:
            tell(client, "reset", seed=0)
            with pytest.raises(ConnectionClosed):
                tell(client, "step", code="x" * 5000)
            assert client.close_code == 1009
        body = json.dumps({"action": {"code": "x" * 5000}}).encode()
        for path in ("step", "reset", "kernel_env/tasks"):
            assert requests.post(f"{url}/{path}", data=body).status_code == 413
            assert (
                requests.post(f"{url}/{path}", data=iter([body[:3000], body[3000:]])).status_code
                == 413
            )
        assert fits(url)


def test_an_action_that_is_too_large_has_its_reason_on_both_sides(
    pool: ScriptedPool, caplog: pytest.LogCaptureFixture
) -> None:
    large = KernelAction(code="é" * 3000)  # six bytes each, as JSON
    with serving(pool, ServerLimits(message_bytes=16384)) as url:
        with KernelEnv(base_url=url) as env:
            assert env.reset(seed=0).observation.message_bytes == 16384
            with pytest.raises(ValueError, match=r"18,0\d\d bytes, and the server takes 16,384"):
                env.step(large)
            assert env.step(KernelAction(code=REPLY)).reward == 1.3, "the session goes on"
        assert not caplog.records
        with KernelEnv(base_url=url) as env, pytest.raises(RuntimeError, match="larger than"):
            env.step(large)  # before it is known what the server takes
        until(lambda: "more than 16384 bytes in one message" in caplog.text)


@pytest.mark.parametrize("words", ["{", "[" * 2000, '{"type": "jump"}'])
def test_nonsense_harms_nobody_else(pool: ScriptedPool, words: str) -> None:
    with serving(pool, ServerLimits(sessions=2)) as url, KernelEnv(base_url=url) as env:
        env.reset(seed=0)
        with socket_to(url) as client:
            client.send(words)
            assert json.loads(client.recv(timeout=20))["type"] == "error"
        assert env.step(KernelAction(code=REPLY)).reward == 1.3
        until(lambda: fits(url))
