"""The environment as an OpenEnv client sees it: the framework's own server and clients, over a
loopback port.
"""

import json
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv")

import requests
from episodes import KERNEL, REPLY, WRONG, another, correct, problem_file
from openenv.core.generic_client import GenericEnvClient
from openenv_server import serving
from pydantic import BaseModel, ConfigDict
from stub_server import Answer, serve
from tiny_model import load_example

from kevin_env.integrations.openenv import KernelAction, KernelEnv, kernrl_env
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.integrations.openenv.server.tasks import ResetRequest, Tasks
from kevin_env.judge import JudgeError
from kevin_env.outcome import CompileError
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import list_problems, shown_source
from kevin_env.score import discounted_returns
from kevin_env.selection import find_problems, split
from kevin_env.settings import Settings

LINK = CompileError(kind="link", message="No such library.", details="ld: cannot find -lfast")


def answer(problem: Any, submission: Any) -> Any:
    """What the code asks for: `num_warps` is its speedup, 7 fails to link, 8 is wrong, with 9 the
    judge fails.
    """
    number = int(submission.code.partition("num_warps=")[2].partition(")")[0] or 1)
    return {7: LINK, 8: WRONG, 9: JudgeError("the judge is out")}.get(number) or correct(
        float(number)
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with closing(ScriptedPool(answer)) as pool, serving(pool) as url:
        yield url


def test_the_fields_of_kernrl_and_ours_on_the_wire(url: str) -> None:
    with GenericEnvClient(base_url=url).sync() as env:
        first = env.reset(problem_id="L1_23_Softmax")
        assert (first.reward, first.done) == (0.0, False)
        told = first.observation
        assert (
            told["problem_id"] == "L1_23_Softmax" and told["turn"] == 0 and told["max_turns"] == 4
        )
        assert "class Model(" in told["reference_code"] and "Softmax" in told["problem_description"]
        assert told["gpu_info"] == "scripted CPU (cpu)"
        assert (
            told["messages"][-1]["role"] == "user" and "ModelNew" in told["messages"][-1]["content"]
        )
        assert (told["category"], told["correctness_pass"], told["feedback"]) == (None, None, "")
        assert told["compilation_success"]

        broken = env.step({"code": another(7)}).observation
        assert (broken["category"], broken["kind"], broken["compilation_success"]) == (
            "compile",
            "link",
            False,
        )
        assert broken["compilation_error"] == "No such library.\nld: cannot find -lfast"
        assert broken["correctness_pass"] is None and "cannot find -lfast" in broken["feedback"]
        assert broken["feedback"] in broken["messages"][-1]["content"]

        wrong = env.step({"code": another(8)}).observation
        assert (wrong["compilation_success"], wrong["compilation_error"]) == (True, None)
        assert (wrong["correctness_pass"], wrong["max_diff"], wrong["speedup"]) == (
            False,
            None,
            None,
        )

        right = env.step({"code": another(2)})
        assert (right.observation["correctness_pass"], right.observation["speedup"]) == (True, 2.0)
        assert right.observation["speedup_interval"] == [1.8, 2.2]
        assert (right.reward, right.done, right.observation["turn"]) == (2.3, False, 3)
        assert right.observation["metadata"] == {"step": 3, "solved": True}
        state = env.state()
        assert {
            "problem_id": "L1_23_Softmax",
            "turn": 3,
            "max_turns": 4,
            "step_count": 3,
        }.items() <= state.items()
        assert (state["best_speedup"], state["solved"]) == (2.0, True)


class Theirs(BaseModel):
    """What kernrl's own client makes of an observation: the names and types of its fields."""

    model_config = ConfigDict(strict=True)

    problem_id: str
    problem_description: str
    reference_code: str
    gpu_info: str
    turn: int
    max_turns: int
    feedback: str
    compilation_success: bool
    compilation_error: str | None
    correctness_pass: bool | None
    max_diff: float | None
    speedup: float | None
    metadata: dict[str, Any]


def test_kernrls_own_client_can_read_what_comes(url: str) -> None:
    with GenericEnvClient(base_url=url).sync() as env:
        Theirs.model_validate(env.reset(seed=0).observation)
        for number in (1, 7, 8):
            Theirs.model_validate(env.step({"code": another(number)}).observation)
        theirs = {
            "episode_id": str, "step_count": int, "problem_id": str, "turn": int, "max_turns": int,
        }  # fmt: skip
        theirs |= {"best_speedup": float, "solved": bool}
        state = env.state()
        assert {name: type(state[name]) for name in theirs} == theirs


def test_code_written_for_kernrl_runs_with_one_import_changed(url: str) -> None:
    with kernrl_env(base_url=url) as client:
        result = client.reset(problem_id="23_Softmax")
        assert result.observation.problem_id == "L1_23_Softmax"
        result = client.step(KernelAction(code=KERNEL.replace("class ModelNew", "class Model")))
        assert result.observation.correctness_pass and result.observation.speedup == 1.0
        assert client.state().best_speedup == 1.0 and not client.state().solved


def test_rewards_and_the_end_of_an_episode_can_be_those_of_kernrl() -> None:
    settings = Settings(score="kernrl", max_turns=10, stop_on=1.05, rules="open", pay_repeats=True)
    outcomes = [correct(0.5), correct(0.25), WRONG, correct(1.5)]
    with (
        closing(ScriptedPool(outcomes)) as pool,
        serving(pool, settings=settings) as url,
        kernrl_env(base_url=url) as env,
    ):
        env.reset(problem_id="L1_23_Softmax")
        steps = [env.step(KernelAction(code=another(turn))) for turn in range(4)]
    assert [step.reward for step in steps] == pytest.approx([-0.25, -0.375, -0.25, 0.5])
    assert [step.done for step in steps] == [False, False, False, True]


def test_scores_and_returns_are_of_each_turn_and_clipped(url: str) -> None:
    with KernelEnv(base_url=url) as env:
        env.reset(problem_id="L1_26_GELU_")
        results = [env.step(KernelAction(code=another(number))) for number in (8, 50, 2, 7)]
    rewards = [result.reward for result in results]
    assert rewards == [0.0, 10.3, 2.3, 0.0]
    assert results[1].observation.speedup == 50.0
    assert [result.done for result in results] == [False, False, False, True]
    last = results[-1].observation
    assert last.turn_scores == rewards and last.reward_range == (0.0, 10.3)
    assert last.returns == pytest.approx(discounted_returns([0.0, 10.3, 2.3, 0.0], 0.4))
    assert results[1].observation.returns == pytest.approx([4.12, 10.3])


def test_a_seed_draws_the_problem_and_an_id_is_kept(url: str) -> None:
    with KernelEnv(base_url=url) as env:
        drawn = [env.reset(seed=seed).observation.problem_id for seed in (3, 4, 3, 5, 6)]
        assert drawn[0] == drawn[2] and len(set(drawn)) > 2
        assert env.reset(seed=0, episode_id="mine: 1").observation.turn == 0
        env.step(KernelAction(code=REPLY))
        assert (env.state().episode_id, env.state().step_count) == ("mine: 1", 1)
        env.reset(seed=0)
        assert env.state().episode_id not in (None, "mine: 1") and env.state().step_count == 0
        level = {env.reset(seed=seed, split="L5").observation.problem_id for seed in range(6)}
        assert len(level) > 1 and all(id.startswith("L5_") for id in level)


def test_held_out_problems_are_drawn_only_from_their_split() -> None:
    tasks, source = Tasks(list_problems()), random.Random(0)
    held_out = {each.id for each in find_problems("held_out")}

    def drawn(**asked: Any) -> set[str]:
        return {tasks.choose(ResetRequest(**asked), source).id for _ in range(400)}

    assert not (drawn() | drawn(split="all") | drawn(split="L1")) & held_out
    assert drawn(split="held_out") == held_out
    assert tasks.choose(ResetRequest(problem_id="L1_23_Softmax"), source).id in held_out
    number = [problem.id for problem in find_problems("L1")].index("L1_23_Softmax")
    assert tasks.choose(ResetRequest(split="L1", index=number), source).id in held_out
    only = Tasks(find_problems("held_out"))
    assert only.choose(ResetRequest(), source).id in held_out


def test_nothing_that_is_asked_for_is_passed_over_in_silence(url: str, tmp_path: Path) -> None:
    file = problem_file(tmp_path)
    refused: dict[str, dict[str, Any]] = {
        "unknown reset option 'gamma'; there are seed, episode_id": {"gamma": 1},
        "reset option seed: Input should be greater than or equal to 0": {"seed": -1},
        "reset option episode_id: String should match pattern": {"episode_id": "a\x1b[2J"},
        "reset option index: Input should be a valid integer": {"split": "L1", "index": "three"},
        "split L3 has": {"split": "L3", "index": 99},
        "unknown split 'test'; there are all, train, held_out, L1": {"split": "test"},
        "an index needs a split": {"index": 1},
        "not both": {"problem_id": "L1_23_Softmax", "split": "L1"},
        "did you mean L1_23_Softmax": {"problem_id": "L1_23_softmax"},
        "did you mean L1_2_Standard_matrix_multiplication_, L1_23": {"problem_id": "L1_2"},
        "unknown problem": {"problem_id": file.path},
    }
    with KernelEnv(base_url=url) as env:
        env.reset(problem_id="L1_23_Softmax")
        env.step(KernelAction(code=REPLY))
        for words, options in refused.items():
            with pytest.raises(RuntimeError, match=words):
                env.reset(**options)
        assert env.state().episode_id is None  # a failed reset ends the episode before
        with pytest.raises(RuntimeError, match="send reset first"):
            env.step(KernelAction(code=REPLY))
        assert env.reset(problem_id="L1_23_Softmax").observation.turn == 0


def test_calls_out_of_order_are_told(url: str) -> None:
    with KernelEnv(base_url=url) as env:
        with pytest.raises(RuntimeError, match="send reset first"):
            env.step(KernelAction(code=REPLY))
        assert env.state().episode_id is None
        env.reset(seed=0)
        while not env.step(KernelAction(code=REPLY)).done:
            pass
        with pytest.raises(RuntimeError, match="ended after turn 4"):
            env.step(KernelAction(code=REPLY))
    answer = requests.post(f"{url}/step", json={"action": {"code": REPLY}})
    assert answer.status_code == 409 and "/ws" in answer.json()["detail"]
    assert requests.post(f"{url}/reset", json={"problem_id": "L1_2"}).status_code == 400


def test_a_judge_that_fails_takes_no_turn(url: str) -> None:
    with KernelEnv(base_url=url) as env:
        env.reset(seed=0)
        with pytest.raises(RuntimeError, match="the judge is out"):
            env.step(KernelAction(code=another(9)))
        assert env.state().step_count == 0
        assert env.step(KernelAction(code=another(2))).observation.turn == 1


def test_tasks_are_listed_by_split(url: str) -> None:
    splits = {
        each["name"]: each["type"] for each in requests.get(f"{url}/kernel_env/splits").json()
    }
    assert (
        splits["train"] == "train"
        and splits["held_out"] == "test"
        and {"all", "L1", "L10"} <= splits.keys()
    )

    def ask(what: str, **words: Any) -> Any:
        return requests.post(f"{url}/kernel_env/{what}", json=words)

    sides = split(list_problems())
    for side in ("train", "held_out"):
        tasks = ask("tasks", split=side).json()["tasks"]
        assert [task["id"] for task in tasks] == [
            id for id, which in sides.items() if which == side
        ]
        assert ask("num_tasks", split=side).json()["num_tasks"] == len(tasks)
    assert ask("task_range", split="held_out", start=2, stop=4).json()["tasks"] == tasks[2:4]
    one = ask("task", split="held_out", index=2).json()["task"]
    assert one == tasks[2]
    assert ask("task", split="held_out", index=-1).status_code == 400
    assert ask("tasks", split="nonsense").status_code == 400
    with KernelEnv(base_url=url) as env:
        assert env.reset(split="held_out", index=2).observation.problem_id == one["id"]


def test_only_what_is_served_can_be_had(tmp_path: Path) -> None:
    own = problem_file(tmp_path)
    with (
        closing(ScriptedPool(answer)) as pool,
        serving(pool, problems=[own]) as url,
        KernelEnv(base_url=url) as env,
    ):
        assert env.reset().observation.reference_code == shown_source(own)
        with pytest.raises(RuntimeError, match="unknown problem 'L1_23_Softmax'"):
            env.reset(problem_id="L1_23_Softmax")
        splits = [each["name"] for each in requests.get(f"{url}/kernel_env/splits").json()]
        assert splits == ["all", "train"]  # which the tool `list_problems` lists by default


def test_a_step_that_takes_too_long_has_not_happened() -> None:
    free = threading.Event()

    def slow(problem: Any, submission: Any) -> Any:
        free.wait(20)
        return correct(2.0)

    limits = ServerLimits(step_timeout=1.5, idle_timeout=77)
    with (
        closing(ScriptedPool(slow)) as pool,
        serving(pool, limits) as url,
        KernelEnv(base_url=url) as env,
    ):
        told = env.reset(seed=0).observation
        assert (told.step_timeout_s, told.idle_timeout_s) == (1.5, 77)
        with pytest.raises(
            RuntimeError, match=r"not judged within 1\.5 s; send the same code again"
        ):
            env.step(KernelAction(code=REPLY))
        assert (env.state().step_count, env.state().step_timeout_s) == (0, 1.5)
        free.set()
        assert env.step(KernelAction(code=REPLY)).observation.turn == 1
        assert len(pool.submissions) == 2


def test_the_web_interface_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_WEB_INTERFACE", "true")
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    with closing(ScriptedPool(answer)) as pool, serving(pool) as url:
        assert requests.get(f"{url}/web/").status_code == 200
        assert (
            requests.post(f"{url}/web/reset", json={"problem_id": "L1_23_Softmax"}).status_code
            == 200
        )
        step = requests.post(f"{url}/web/step", json={"action": {"code": another(2)}}).json()
        assert (step["reward"], step["observation"]["speedup"]) == (2.3, 2.0)
        arguments = {"code": another(3)}
        action = {"type": "call_tool", "tool_name": "submit_kernel", "arguments": arguments}
        step = requests.post(f"{url}/web/step", json={"action": action}).json()
        assert (step["reward"], step["observation"]["result"]["data"]["turn"]) == (3.3, 2)


def completion(**message: Any) -> Answer:
    """A response of a chat endpoint that does not stream."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return Answer(raw=json.dumps(body).encode())


def call(name: str, **arguments: Any) -> Answer:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return completion(
        content=None, tool_calls=[{"id": name, "type": "function", "function": function}]
    )


@pytest.fixture
def example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> Callable[..., list[str]]:
    """Runs the example against a server, with what a model answers; returns the printed lines."""

    def run(answers: list[Answer], *words: str) -> list[str]:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with serve(*answers) as stub:
            argv = ["openenv_client.py", "m", "--base-url", stub.url, "--server", url, *words]
            monkeypatch.setattr(sys, "argv", argv)
            load_example("openenv_client").main()
        return capsys.readouterr().out.splitlines()

    return run


def test_the_example_plays_by_messages(example: Callable[..., list[str]]) -> None:
    replies = [another(8), another(2), REPLY, another(3)]
    returns = discounted_returns([0.0, 2.3, 1.3, 3.3], 0.4)
    expected = [f"turn {turn}: return {value:.2f}" for turn, value in enumerate(returns, 1)]
    assert example([completion(content=reply) for reply in replies]) == expected


def test_the_example_plays_by_tools(example: Callable[..., list[str]]) -> None:
    answers = [
        call("get_problem"),
        call("submit_kernel", code=another(8)),
        call("submit_kernel"),  # without code, which costs no turn
        call("submit_kernel", code=another(2)),
        completion(content="Done."),
    ]
    assert example(answers, "--tools") == [
        "turn 1: correctness, score 0.00",
        "turn 2: correct, score 2.30",
    ]
