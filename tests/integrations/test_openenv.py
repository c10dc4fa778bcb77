"""The environment as an OpenEnv client sees it: the framework's own server and clients, over a
loopback port.
"""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv")

import requests
from docs_code import code_block
from episodes import KERNEL, REPLY, SOURCE, WRONG, another, correct, problem_file
from openenv.core.generic_client import GenericEnvClient
from openenv_server import serving
from pydantic import BaseModel, ConfigDict

from kevin_env.integrations.openenv import KernelAction, KevinAction, KevinEnv, kernrl_env
from kevin_env.integrations.openenv.server.tasks import ResetRequest, ServerLimits, Tasks
from kevin_env.judge import JudgeError, ScriptedPool
from kevin_env.outcome import CompileError
from kevin_env.problem import list_problems
from kevin_env.score import discounted_returns
from kevin_env.selection import find_problems, split

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
        assert (first.reward, first.done) == (None, False)
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
        result = client.reset(problem_id="L1_23_Softmax")
        result = client.step(KernelAction(code=KERNEL.replace("class ModelNew", "class Model")))
        assert result.observation.correctness_pass and result.observation.speedup == 1.0
        assert client.state().best_speedup == 1.0 and not client.state().solved


def test_scores_and_returns_are_of_each_turn_and_clipped(url: str) -> None:
    with KevinEnv(base_url=url) as env:
        env.reset(problem_id="L1_26_GELU_")
        results = [env.step(KevinAction(code=another(number))) for number in (8, 50, 2, 7)]
    rewards = [result.reward for result in results]
    assert rewards == [0.0, 10.3, 2.3, 0.0]
    assert results[1].observation.speedup == 50.0
    assert [result.done for result in results] == [False, False, False, True]
    last = results[-1].observation
    assert last.turn_scores == rewards and last.reward_range == (0.0, 10.3)
    assert last.returns == pytest.approx(discounted_returns([0.0, 10.3, 2.3, 0.0], 0.4))
    assert results[1].observation.returns == pytest.approx([4.12, 10.3])


def test_a_seed_draws_the_problem_and_an_id_is_kept(url: str) -> None:
    with KevinEnv(base_url=url) as env:
        drawn = [env.reset(seed=seed).observation.problem_id for seed in (3, 4, 3, 5, 6)]
        assert drawn[0] == drawn[2] and len(set(drawn)) > 2
        assert env.reset(seed=0, episode_id="mine: 1").observation.turn == 0
        env.step(KevinAction(code=REPLY))
        assert (env.state().episode_id, env.state().step_count) == ("mine: 1", 1)
        env.reset(seed=0)
        assert env.state().episode_id not in (None, "mine: 1") and env.state().step_count == 0
        level = {env.reset(seed=seed, split="L5").observation.problem_id for seed in range(6)}
        assert len(level) > 1 and all(id.startswith("L5_") for id in level)


def test_held_out_problems_are_drawn_only_from_their_split() -> None:
    problems, source = list_problems(), random.Random(0)
    tasks, held_out = (
        Tasks(problems, split(problems)),
        {each.id for each in find_problems("held_out")},
    )

    def drawn(**asked: Any) -> set[str]:
        return {tasks.choose(ResetRequest(**asked), source).id for _ in range(400)}

    assert not (drawn() | drawn(split="all") | drawn(split="L1")) & held_out
    assert drawn(split="held_out") == held_out
    assert tasks.choose(ResetRequest(problem_id="L1_23_Softmax"), source).id in held_out
    number = [problem.id for problem in find_problems("L1")].index("L1_23_Softmax")
    assert tasks.choose(ResetRequest(split="L1", index=number), source).id in held_out
    only = Tasks(find_problems("held_out"), split(problems))
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
        "unknown problem": {"problem_id": file.path},
    }
    with KevinEnv(base_url=url) as env:
        env.reset(problem_id="L1_23_Softmax")
        env.step(KevinAction(code=REPLY))
        for words, options in refused.items():
            with pytest.raises(RuntimeError, match=words):
                env.reset(**options)
        assert env.state().step_count == 1  # the episode goes on


def test_calls_out_of_order_are_told(url: str) -> None:
    with KevinEnv(base_url=url) as env:
        with pytest.raises(RuntimeError, match="send reset first"):
            env.step(KevinAction(code=REPLY))
        assert env.state().episode_id is None
        env.reset(seed=0)
        while not env.step(KevinAction(code=REPLY)).done:
            pass
        with pytest.raises(RuntimeError, match="ended after turn 4"):
            env.step(KevinAction(code=REPLY))
    answer = requests.post(f"{url}/step", json={"action": {"code": REPLY}})
    assert answer.status_code == 409 and "/ws" in answer.json()["detail"]
    assert requests.post(f"{url}/reset", json={"problem_id": "L1_23"}).status_code == 400


def test_a_judge_that_fails_takes_no_turn(url: str) -> None:
    with KevinEnv(base_url=url) as env:
        env.reset(seed=0)
        with pytest.raises(RuntimeError, match="the judge is out"):
            env.step(KevinAction(code=another(9)))
        assert env.state().step_count == 0
        assert env.step(KevinAction(code=another(2))).observation.turn == 1


def test_tasks_are_listed_by_split(url: str) -> None:
    splits = {each["name"]: each["type"] for each in requests.get(f"{url}/kevin_env/splits").json()}
    assert (
        splits["train"] == "train"
        and splits["held_out"] == "test"
        and {"all", "L1", "L10"} <= splits.keys()
    )

    def ask(what: str, **words: Any) -> Any:
        return requests.post(f"{url}/kevin_env/{what}", json=words)

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
    with KevinEnv(base_url=url) as env:
        assert env.reset(split="held_out", index=2).observation.problem_id == one["id"]


def test_only_what_is_served_can_be_had(tmp_path: Path) -> None:
    own = problem_file(tmp_path)
    with (
        closing(ScriptedPool(answer)) as pool,
        serving(pool, problems=[own]) as url,
        KevinEnv(base_url=url) as env,
    ):
        assert env.reset().observation.reference_code == SOURCE
        with pytest.raises(RuntimeError, match="unknown problem 'L1_23_Softmax'"):
            env.reset(problem_id="L1_23_Softmax")
        assert [each["name"] for each in requests.get(f"{url}/kevin_env/splits").json()] == ["all"]


def test_a_step_that_takes_too_long_has_not_happened() -> None:
    free = threading.Event()

    def slow(problem: Any, submission: Any) -> Any:
        free.wait(20)
        return correct(2.0)

    limits = ServerLimits(step_timeout=0.3, idle_timeout=77)
    with (
        closing(ScriptedPool(slow)) as pool,
        serving(pool, limits) as url,
        KevinEnv(base_url=url) as env,
    ):
        told = env.reset(seed=0).observation
        assert (told.step_timeout_s, told.idle_timeout_s) == (0.3, 77)
        with pytest.raises(
            RuntimeError, match=r"not judged within 0\.3 s; the same action may be sent again"
        ):
            env.step(KevinAction(code=REPLY))
        assert (env.state().step_count, env.state().step_timeout_s) == (0, 0.3)
        free.set()
        assert env.step(KevinAction(code=REPLY)).observation.turn == 1
        assert len(pool.submissions) == 2


def test_a_pool_can_be_made_to_require_the_sandbox() -> None:
    from kevin_env.integrations.openenv.server.app import RequireSandbox
    from kevin_env.judge.api import Options, Submission
    from kevin_env.problem import load_problem

    problem = load_problem("L1_23_Softmax")
    with closing(ScriptedPool([correct(1.0)])) as pool:
        strict = RequireSandbox(pool)
        judged: Future[Any] = strict.submit(problem, Submission(code=KERNEL), Options())
        assert judged.result().outcome == correct(1.0)
        assert strict.describe(problem, Options()).result().device == pool.device
        strict.close()
        assert pool.submissions[0][2].require_sandbox and not pool.closed


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


def test_the_samples_of_the_page_are_prompts_as_sent_with_their_returns(url: str) -> None:
    replies = iter([another(8), another(2), REPLY, another(3)] * 2)
    names: dict[str, Any] = {"KevinAction": KevinAction, "my_model": lambda messages: next(replies)}
    exec(code_block("openenv.md", "def samples("), names)
    with KevinEnv(base_url=url) as env:
        found = list(names["samples"](env, "train", 2))
    assert len(found) == 8
    scores = [0.0, 2.3, 1.3, 3.3]
    assert [value for _, value in found] == pytest.approx([*discounted_returns(scores, 0.4)] * 2)
    assert found[0][0][0] == found[4][0][0], "the episodes of a group begin with the same prompt"
    assert "512 of 1024 elements differ." in found[1][0][0][-1]["content"]
    assert [reply for (_, reply), _ in found[:2]] == [another(8), another(2)]
