"""What waits until nothing is under way."""

import threading

import pytest

from kevin_env.judge.workers.baselines import Idle

SHORT, LONG = 0.05, 60.0


class Called:
    """Notes each call; `seen` waits for one."""

    def __init__(self) -> None:
        self.count = 0
        self._event = threading.Event()

    def __call__(self) -> None:
        self.count += 1
        self._event.set()

    def seen(self, seconds: float) -> bool:
        return self._event.wait(seconds)


def test_it_comes_once_after_the_last_that_was_under_way() -> None:
    then = Called()
    idle = Idle(SHORT, then)
    with idle:
        with idle:
            pass
        assert not then.seen(6 * SHORT)
    assert then.seen(10) and not threading.Event().wait(4 * SHORT) and then.count == 1


def test_what_begins_in_time_puts_it_off() -> None:
    then = Called()
    idle = Idle(LONG, then)
    with idle:
        pass
    first = idle._timer
    assert first is not None and first.is_alive()
    with idle:
        first.join(10)
        assert not first.is_alive() and idle._timer is None
    assert then.count == 0
    idle.close()


@pytest.mark.parametrize("before", [True, False])
def test_nothing_comes_once_it_is_closed(before: bool) -> None:
    then = Called()
    idle = Idle(SHORT, then)
    with idle:
        if before:
            idle.close()
    idle.close()
    assert not then.seen(6 * SHORT)
