"""`kevin-env replay --serve`: what the server gives to whom, and the page that follows it."""

import http.client
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, find_browser, needs_browser
from hostile_texts import harmful
from trajectories import evil, timed, trajectory, write

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.plain import Choice
from kevin_env.app.replay.query import require_query
from kevin_env.app.replay.serve import Changes, Server, serve
from kevin_env.recorder import Recorder

ENDED = trajectory(timed(1, 1.5), id="ended")
RUNNING = trajectory(timed(1, 0.5), id="running", stop_reason=None)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(write(tmp_path / "t.jsonl", ENDED))


def changes(recorder: Recorder, words: str = "") -> Changes:
    return Changes(Library(recorder.path), Choice(require_query(words)))


@pytest.fixture
def server(recorder: Recorder) -> Iterator[Server]:
    with Server(changes(recorder), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: Server, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def ids(found: dict[str, Any]) -> list[str]:
    return [each["id"] for each in found["episodes"].values()]


def test_only_what_has_changed_is_sent(recorder: Recorder) -> None:
    source = changes(recorder)
    first = source.since(0)
    assert ids(first) == ["ended"]
    none = source.since(first["version"])
    assert (none["version"], none["episodes"]) == (first["version"], {})
    recorder.begin(RUNNING)
    began = source.since(first["version"])
    assert ids(began) == ["running"]
    recorder.add("running", timed(2, 2.0))
    found = source.since(began["version"])
    [grown] = found["episodes"].values()
    assert len(grown["turns"]) == 2
    recorder.finish(RUNNING.model_copy(update={"stop_reason": "max_turns"}))
    [ended] = source.since(found["version"])["episodes"].values()
    assert ended["ended"] == "max_turns"
    recorder.path.write_text(f"{ENDED.model_dump_json()}\n")
    shorter = source.since(found["version"])
    assert (len(shorter["order"]), shorter["version"] > found["version"]) == (1, True)
    everything = source.since(17)  # a version of another server
    assert ids(everything) == ["ended"]


def test_only_what_is_chosen_is_sent(recorder: Recorder) -> None:
    recorder.begin(RUNNING)
    assert ids(changes(recorder, "speedup<1").since(0)) == ["running"]


def test_other_sites_get_nothing(server: Server) -> None:
    own = f"127.0.0.1:{server.server_port}"
    for host, status in {
        own: 200,
        own.replace("127.0.0.1", "localhost"): 200,
        "evil.com": 403,
    }.items():
        for path in ("/", "/changes/0"):
            assert (host, get(server, path, Host=host)[0]) == (host, status)
    assert get(server, "/", Host=f"evil.com:{server.server_port}")[0] == 403
    assert {get(server, path)[0] for path in ("/t.jsonl", "/../t.jsonl", "/changes/-1")} == {404}
    assert "default-src 'none'" in get(server, "/")[1]


def test_hostile_text_is_sent_as_data(server: Server, recorder: Recorder) -> None:
    write(recorder.path, evil())
    status, text = get(server, "/changes/0")
    assert (status, harmful(text)) == (200, [])
    assert "<script>alert" not in get(server, "/")[1]


@needs_browser
def test_a_page_follows_the_run(server: Server, recorder: Recorder, tmp_path: Path) -> None:
    with Page(find_browser() or "", tmp_path / "profile", server.url) as shown:
        assert shown.awaited("location.hash") == "#ended/1/kernel"
        recorder.begin(RUNNING)
        count = "document.querySelectorAll('#rows a').length"
        shown.awaited(f"{count} === 2")
        assert shown.value("location.hash") == "#ended/1/kernel"
        shown.press("j")
        recorder.add("running", timed(2, 2.0))
        shown.awaited("location.hash === '#running/2/kernel'")
        assert "version 2" in shown.value("document.querySelector('.code').innerText")
        write(recorder.path, evil())
        shown.awaited(f"{count} === 3")
        shown.press("k")
        shown.press("k")
        assert shown.value("document.querySelectorAll('img, main script').length") == 0
        assert all(each.startswith(server.url) for each in shown.requests)
        assert shown.errors == []


def test_ctrl_c_ends_it_without_a_word(recorder: Recorder) -> None:
    command = [sys.executable, "-m", "kevin_env", "replay", str(recorder.path), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert (process.wait(20), process.stderr.read()) == (0, b"")


def test_a_port_that_is_taken_is_one_clear_error(server: Server, recorder: Recorder) -> None:
    with pytest.raises(BadInput, match=f"cannot serve on port {server.server_port}"):
        serve(Library(recorder.path), Choice(), server.server_port, print)
