"""One thread at a time asks a tokenizer."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kevin_env.integrations.judging import one_at_a_time, process_pool, token_counter
from kevin_env.pools.scripted import ScriptedPool


def test_what_uses_a_tokenizer_is_never_called_twice_at_once() -> None:
    inside, most = 0, 0
    guard = threading.Lock()

    def encode(text: str) -> list[int]:
        nonlocal inside, most
        with guard:
            inside += 1
            most = max(most, inside)
        time.sleep(0.002)
        with guard:
            inside -= 1
        return [len(word) for word in text.split()]

    count = token_counter(encode)
    with ThreadPoolExecutor(8) as threads:
        counted = [threads.submit(count, "a b c") for _ in range(16)]
        encoded = [threads.submit(one_at_a_time, encode, "a b") for _ in range(16)]
    assert [each.result() for each in counted] == [3] * 16
    assert [each.result() for each in encoded] == [[1, 1]] * 16
    assert most == 1


def test_threads_that_need_the_first_pool_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kevin_env.integrations.judging.connect", slow_connect)
    url = "http://one.example"
    with ThreadPoolExecutor(8) as threads:
        assert len({*map(id, threads.map(process_pool, [url] * 8))}) == 1


def slow_connect(name: str | None) -> ScriptedPool:
    time.sleep(0.05)
    return ScriptedPool([])
