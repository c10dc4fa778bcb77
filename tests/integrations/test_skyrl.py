"""SkyRL-gym's own registry and loop over the environment, with a scripted judge."""

import re
from typing import Any

import pytest

skyrl_gym = pytest.importorskip(
    "skyrl_gym", reason="SkyRL-gym is not installed: pip install 'kevin-env[skyrl]'"
)

from episodes import WRONG, correct, problem_file  # noqa: E402
from skyrl_gym.envs.registration import deregister  # noqa: E402
from skyrl_gym.metrics import aggregate_for_environment  # noqa: E402
from tiny_models import reply  # noqa: E402

from kevin_env.episode import EpisodeError  # noqa: E402
from kevin_env.judge import JudgeError  # noqa: E402
from kevin_env.pools.scripted import ScriptedPool  # noqa: E402
from kevin_env.problem import ProblemError  # noqa: E402
from kevin_env.settings import Settings  # noqa: E402


def judged(problem: Any, submission: Any) -> Any:
    (name,) = re.findall(r"def (\w+)\(x, out", submission.code)
    return correct(2.0) if name == "fast" else WRONG


@pytest.fixture(autouse=True)
def _registered():
    settings = Settings(max_turns=9, gamma=0.9, hints=True)
    skyrl_gym.register("kevin", "kevin_env.integrations.skyrl:KernelEnv", {"settings": settings})
    yield
    deregister("kevin")


def made(folder, pool: ScriptedPool | None = None, env_config: Any = None, **row: Any) -> Any:
    row = {"problem": problem_file(folder).path, **row}
    return skyrl_gym.make(
        "kevin", env_config=env_config or {}, extras=row, pool=pool or ScriptedPool(judged)
    )


def test_an_episode_from_first_to_last_turn(tmp_path) -> None:
    env = made(tmp_path, env_config={"max_turns": 7, "gamma": 0.5}, max_turns=3)
    chat, _ = env.init([{"role": "user", "content": "from the data set"}])
    assert [message["role"] for message in chat] == ["user"] and "Doubles x." in chat[0]["content"]
    assert env.get_metrics() == {"turns": 0}
    first = env.step(reply("wrong"))
    assert (first["reward"], first["done"], first["metadata"]["kind"]) == (0.0, False, "values")
    (told,) = first["observations"]
    assert (
        told["role"] == "user"
        and "512 of 1024" in told["content"]
        and "Turns left: 2." in told["content"]
    )
    second = env.step(f"<think>{reply('wrong')}</think>{reply('fast')}")
    assert (second["reward"], second["done"]) == (2.3, False)
    last = env.step("I give up.")
    assert (last["reward"], last["done"], last["observations"]) == (0.0, True, [])
    assert env._episode.settings == Settings(max_turns=3, gamma=0.5, hints=True)
    with pytest.raises(EpisodeError, match="ended after turn 3"):
        env.step(reply("fast"))
    metrics = env.get_metrics()
    assert metrics == {
        "turns": 3, "solved": True, "best_score": 2.3, "best_speedup": 2.0, "return": 0.5 * 2.3,
    }  # fmt: skip
    assert (
        aggregate_for_environment("kevin", [metrics, {"turns": 1, "solved": False}])["solved"]
        == 0.5
    )


def test_a_judge_that_fails_twice_is_an_error_and_no_score(tmp_path) -> None:
    failure = JudgeError("the device is gone")
    env = made(tmp_path, ScriptedPool([failure, correct(2.0), failure, failure]))
    env.init([])
    assert env.step(reply("fast"))["reward"] == 2.3
    with pytest.raises(JudgeError):
        env.step(reply("other"))


def test_bad_rows_and_settings_say_what_is_wrong(tmp_path) -> None:
    with pytest.raises(
        ProblemError, match="unknown problem 'L1_23_Softmux'; did you mean L1_23_Softmax"
    ):
        made(tmp_path, problem="L1_23_Softmux")
    with pytest.raises(ProblemError, match="no column 'problem'"):
        skyrl_gym.make("kevin", env_config={}, extras={}, pool=ScriptedPool([]))
    with pytest.raises(ValueError, match="unknown setting 'turns'"):
        made(tmp_path, env_config={"turns": 3})
