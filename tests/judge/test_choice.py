"""Which devices a choice means, and who gets the next piece of work."""

import pytest
from pydantic import ValidationError

from kevin_env.judge.api import device_names
from kevin_env.judge.pool import REST, Balance
from kevin_env.settings import Settings

BOTH = ("cuda:0", "cuda:1")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("cpu", ("cpu",)),
        ("cuda", ("cuda:0",)),
        ("cuda:3", ("cuda:3",)),
        ("cuda:0,1", BOTH),
        ("cuda:2,0,2", ("cuda:2", "cuda:0")),
        ("gpu", ("gpu",)),
    ],
)
def test_a_choice_means_devices(choice: str, names: tuple[str, ...]) -> None:
    assert device_names(choice) == names


def test_auto_is_the_first_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_names("auto") == ("cpu",)


@pytest.mark.parametrize("choice", ["cuda:", "cuda:0,", "cuda:a", "cuda:0,cpu", "gpu", "cpu:1", ""])
def test_settings_refuse_what_is_no_choice(choice: str) -> None:
    with pytest.raises(ValidationError, match="device"):
        Settings(device=choice)


def test_work_goes_to_whoever_has_least() -> None:
    balance = Balance()
    taken = [balance.take(BOTH, f"problem {i}") for i in range(6)]
    assert taken.count("cuda:0") == taken.count("cuda:1") == 3
    balance.done("cuda:1")
    balance.done("cuda:1")
    assert balance.take(BOTH, "another") == balance.take(BOTH, "one more") == "cuda:1"


def test_a_problem_stays_where_it_is_known_while_nobody_has_less() -> None:
    balance = Balance()
    assert balance.take(BOTH, "first") == "cuda:0"
    assert balance.take(BOTH, "second") == "cuda:1"
    balance.done("cuda:0")
    balance.done("cuda:1")
    assert balance.take(BOTH, "second") == "cuda:1"
    balance.done("cuda:1")
    assert balance.take(BOTH, "first") == "cuda:0"
    assert balance.take(BOTH, "first") == "cuda:1", "it is not worth waiting for"


def test_a_device_whose_judge_fails_rests_while_there_is_another() -> None:
    now = [0.0]
    balance = Balance(clock=lambda: now[0])
    assert balance.take(BOTH, "first") == "cuda:0"
    balance.done("cuda:0", failed=True)
    assert [balance.take(BOTH, f"{n}") for n in range(3)] == ["cuda:1"] * 3
    assert balance.take(("cuda:0",), "alone") == "cuda:0"
    balance.done("cuda:0")
    now[0] = REST
    assert balance.take(BOTH, "later") == "cuda:0"


def test_a_device_that_fails_again_rests_longer_but_many_failures_at_once_are_one() -> None:
    now = [0.0]
    balance = Balance(clock=lambda: now[0])
    for expected in (REST, 2 * REST, 4 * REST):
        for _ in range(5):
            balance.take(("cuda:0",), "any")
            balance.done("cuda:0", failed=True)
        now[0] += expected - 1
        assert balance.take(BOTH, "any") == "cuda:1"
        balance.done("cuda:1")
        now[0] += 1
    assert balance.take(BOTH, "any") == "cuda:0"
    balance.done("cuda:0")
    balance.take(("cuda:0",), "any")
    balance.done("cuda:0", failed=True)
    now[0] += REST
    assert balance.take(BOTH, "any") == "cuda:0"
