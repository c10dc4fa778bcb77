import threading
import warnings
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from episodes import KERNEL, OTHER_SETTINGS, REPLY, SOURCE, WRONG, another, correct, problem_file
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import kevin_env  # noqa: F401  (registers Kevin-v0)
from kevin_env.curriculum import Curriculum
from kevin_env.env import KevinEnv
from kevin_env.judge import JudgeError, Options
from kevin_env.judge.api import Facts
from kevin_env.outcome import CompileError
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem, ProblemError, list_problems
from kevin_env.selection import find_problems
from kevin_env.vector import KevinVectorEnv


def problem(name: str = "double") -> Problem:
    return Problem(id=name, source=SOURCE, name=name, statement="Doubles x.")


def make(script, chosen=None, **keywords) -> KevinEnv:
    env = gym.make(
        "Kevin-v0", problem=chosen or problem(), pool=ScriptedPool(script), **keywords
    ).unwrapped
    assert isinstance(env, KevinEnv)
    return env


def test_gymnasiums_checker_has_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make([], [problem("a"), problem("b")]))


def test_an_episode_through_gymnasium() -> None:
    env = make([WRONG, correct(2.0)], max_turns=2, gamma=0.5)
    prompt, info = env.reset(seed=0)
    assert prompt == info["messages"][-1]["content"] and info["messages"][-1]["role"] == "user"
    assert set(info) == {"messages", "problem", "sample"}
    prompt, score, terminated, truncated, info = env.step(REPLY)
    assert (score, terminated, truncated) == (0.0, False, False)
    assert set(info) == {"messages", "outcome", "turn", "seconds", "returns"}
    assert prompt == info["messages"][-1]["content"]
    assert (info["outcome"], info["turn"].turn, info["seconds"]) == (WRONG, 1, info["turn"].seconds)
    _, score, terminated, truncated, info = env.step(another(2))
    assert (score, terminated, truncated) == (pytest.approx(2.3), True, False)
    assert type(terminated) is bool and type(truncated) is bool and type(score) is float
    assert info["returns"] == pytest.approx((0.5 * 2.3, 2.3))
    assert [turn.score for turn in info["trajectory"].turns] == pytest.approx([0.0, 2.3])
    assert info["trajectory"].stop_reason == "max_turns"


def test_a_step_that_is_not_due_needs_a_reset() -> None:
    env = make([WRONG], max_turns=1)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.step(REPLY)
    env.reset()
    env.step(REPLY)
    with pytest.raises(ResetNeeded, match=r"ended after turn 1; call reset\(\)"):
        env.step(REPLY)
    env.reset()
    with pytest.raises(InvalidAction, match="not int"):
        env.step(3)  # pyright: ignore[reportArgumentType]


class Unreliable(ScriptedPool):
    """Fails the first `describe`."""

    failed = False

    def describe(self, problem: Problem, options: Options) -> Future[Facts]:
        if self.failed:
            return super().describe(problem, options)
        self.failed = True
        future: Future[Facts] = Future()
        future.set_exception(JudgeError("the judge process is gone"))
        return future


def test_after_a_reset_that_failed_another_one_helps() -> None:
    env = gym.make("Kevin-v0", problem=problem(), pool=Unreliable([WRONG]))
    with pytest.raises(JudgeError):
        env.reset()
    with pytest.raises(ResetNeeded, match=r"call reset\(\) again"):
        env.step(REPLY)
    env.reset()
    assert env.step(REPLY)[1:3] == (0.0, False)
    envs = gym.make_vec("Kevin-v0", 2, problem=problem(), pool=Unreliable([WRONG] * 2))
    with pytest.raises(JudgeError):
        envs.reset()
    with pytest.raises(ResetNeeded):
        envs.step([REPLY, REPLY])
    envs.reset()
    assert list(envs.step([REPLY, REPLY])[1]) == [0.0, 0.0]


def test_after_a_reset_that_failed_the_episode_before_is_not_stepped() -> None:
    env = make([WRONG] * 2)
    env.reset()
    with pytest.raises(ProblemError):
        env.reset(options={"problem": "L1_999_None"})
    with pytest.raises(ResetNeeded, match="the last reset\\(\\) failed"):
        env.step(REPLY)


def test_an_episode_that_a_wrapper_ends_has_its_returns() -> None:
    script = [correct(2.0), WRONG]
    env = gym.make("Kevin-v0", problem=problem(), pool=ScriptedPool(script), max_episode_steps=1)
    env.reset()
    _, score, terminated, truncated, info = env.step(REPLY)
    assert (terminated, truncated) == (False, True) and info["returns"] == (score,)


def test_a_curriculum_is_told_of_an_episode_that_a_wrapper_ended() -> None:
    plan = curriculum()
    pool = ScriptedPool([correct(2.0), WRONG])
    env = gym.make("Kevin-v0", problem=plan, pool=pool, max_episode_steps=1)
    for _ in range(2):
        env.reset()
        env.step(REPLY)
    env.reset()
    assert plan.state.recent == (True, False)


def test_a_step_belongs_to_the_episode_in_which_it_began() -> None:
    env = make([correct(2.0), WRONG], problem(), max_turns=1)
    env.reset()
    begun = env.begin_step(REPLY)
    env.reset()
    _, score, terminated, _, info = env.end_step(begun)
    assert terminated and info["returns"] == (score,)
    assert len(info["trajectory"].turns) == 1 and env.episode and not env.episode.turns


@pytest.mark.parametrize("reply", [REPLY, "no code"])
def test_nothing_is_stepped_after_close(reply: str) -> None:
    env = make([WRONG])
    env.reset()
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.step(reply)
    with pytest.raises(ClosedEnvironmentError):
        env.reset()


def test_text_may_be_any_unicode() -> None:
    env = make([WRONG.model_copy(update={"message": "µ ┃ 😀"})])
    reply = f"😀 µ ┃ \0 \ud800\n{REPLY}"
    prompt, _ = env.reset()
    assert prompt in env.observation_space and reply in env.action_space
    prompt, _, _, _, info = env.step(reply)
    assert prompt in env.observation_space
    assert "😀" in info["turn"].reply and "😀" in prompt
    assert env.episode and env.episode.trajectory.model_dump_json()


def test_the_seed_chooses_the_problem_and_options_overrule_it() -> None:
    env = make([], [problem(name) for name in "abcdefgh"])

    def chosen(**arguments) -> str:
        env.reset(**arguments)
        assert env.episode
        return env.episode.problem.id

    first = [chosen(seed=5), chosen(), chosen()]
    assert [chosen(seed=5), chosen(), chosen()] == first
    assert len({chosen(seed=seed) for seed in range(30)}) == 8
    assert chosen(options={"problem": problem("other")}) == "other"
    assert chosen() in "abcdefgh"
    with pytest.raises(
        ValueError, match="unknown reset option 'problm'; the only one is 'problem'"
    ):
        env.reset(options={"problm": "x"})


def test_a_reset_tells_problem_level_and_sample() -> None:
    env = make([WRONG], [problem("a"), problem("b").model_copy(update={"level": 2})])
    told = [
        env.reset(options={"problem": each})[1]
        for each in ("L1_26_GELU_", problem("a"), "L1_26_GELU_")
    ]
    assert [(info["problem"], info.get("level"), info["sample"]) for info in told] == [
        ("L1_26_GELU_", 1, 0), ("a", None, 0), ("L1_26_GELU_", 1, 1),
    ]  # fmt: skip
    assert env.episode and env.episode.trajectory.sample == 1
    assert "problem" not in env.step(REPLY)[4]


def test_the_default_draws_no_held_out_problem() -> None:
    env = KevinEnv(pool=ScriptedPool([]))
    assert (
        env.problems == find_problems("train") == KevinEnv("train", pool=ScriptedPool([])).problems
    )


def curriculum(**arguments) -> Curriculum:
    """Three levels of two problems each; two successes in a row lead on."""
    levels = [
        problem(f"{level}{name}").model_copy(update={"level": level})
        for level in (1, 2, 3)
        for name in "ab"
    ]
    return Curriculum(levels, **{"window": 2, "promote_at": 1.0, "review": 0.0, **arguments})


def test_a_curriculum_chooses_and_is_told_of_episodes_that_ended() -> None:
    plan = curriculum()
    env = make([WRONG, correct(2.0), WRONG, WRONG, correct(1.0), WRONG, WRONG], plan, max_turns=2)
    for stage, replies in ((0, 2), (0, 2), (0, 2), (0, 1)):  # right, wrong, right, cut off
        env.reset()
        assert env.episode and env.episode.problem in plan.stages[stage]
        for number in range(replies):
            env.step(another(number))
    assert plan.state.recent == (False, True)
    assert (plan.state.drawn, sum(plan.state.tried.values()), sum(plan.state.solved.values())) == (
        4,
        3,
        2,
    )
    plan.record(plan.stages[0][0], True)
    env.reset()
    assert plan.stage == 1 and env.episode.problem in plan.stages[1]


def test_problems_are_found_by_id_level_path_and_list(tmp_path) -> None:
    file = problem_file(tmp_path)
    assert find_problems(file.path) == (file,)
    assert find_problems([file, file.path, Path(file.path)]) == (file, file, file)
    assert [p.id for p in find_problems("L1_23_Softmax")] == ["L1_23_Softmax"]
    assert {p.level for p in find_problems("L1")} == {1}
    train, held_out = find_problems("train"), find_problems("held_out")
    assert sorted(p.id for p in train + held_out) == sorted(p.id for p in list_problems())
    assert find_problems("held_out:L2") == tuple(p for p in held_out if p.level == 2)
    with pytest.raises(
        ProblemError, match=r"unknown problem 'L1_23_Softmx'; did you mean L1_23_Softmax"
    ):
        find_problems("L1_23_Softmx")
    for empty in ("L99", "train:L99", []):
        with pytest.raises(ProblemError, match="no problems in"):
            find_problems(empty)


def test_every_keyword_reaches_the_episode() -> None:
    pool = ScriptedPool([WRONG, WRONG], SCRIPTED_GPU)  # of the kernel that it starts from, too
    env = KevinEnv(problem(), pool=pool, **OTHER_SETTINGS)
    env.reset()
    env.step(f"```python\n{KERNEL}```")
    assert env.episode
    config = env.episode.trajectory.config
    assert config["start"]["code"] == Path(OTHER_SETTINGS["start"]).read_text()
    assert config == OTHER_SETTINGS | {"start": config["start"]}
    assert isinstance(env.episode.pool, ScriptedPool)
    options = env.episode.pool.submissions[0][2].model_dump()
    shared = OTHER_SETTINGS.keys() & options.keys()
    assert {"device", "rules", "call_timeout", "require_sandbox"} <= shared
    assert all(options[name] == OTHER_SETTINGS[name] for name in shared)
    assert not options["retry_noisy"] and options["secret"]


def test_a_judge_failure_is_raised_and_the_reply_may_be_given_again() -> None:
    env = make([JudgeError("the device is gone"), WRONG])
    env.reset()
    with pytest.raises(JudgeError):
        env.step(REPLY)
    assert env.episode and env.episode.turns == ()
    assert env.step(REPLY)[-1]["turn"].turn == 1


def test_the_turns_are_rendered_as_plain_text(capsys) -> None:
    message = "[/bad] [red]x[/red]"
    env = make([WRONG.model_copy(update={"message": message}), correct(2.0)], render_mode="ansi")
    env.reset()
    for number in range(2):
        env.step(another(number))
    table = env.render()
    assert (
        table
        and message in table
        and "correctness/values" in table
        and "2.00x" in table
        and "2.30" in table
    )
    assert "\x1b" not in table
    assert capsys.readouterr().out == ""
    human = make([correct(2.0)], render_mode="human")
    human.reset()
    human.step(REPLY)
    assert "2.00x" in capsys.readouterr().out
    assert human.render() is None


def test_a_pool_is_closed_by_its_owner_only() -> None:
    pool = ScriptedPool([])
    env = KevinEnv(problem(), pool=pool)
    env.reset()
    env.close()
    env.close()
    assert not pool.closed
    with pytest.raises(ClosedEnvironmentError):
        env.reset()


REPLIES = [another(i) for i in range(4)]
"""Four replies whose code differs, so that the judge can tell them apart."""

ANSWERS = [WRONG, correct(2.0), CompileError(message="No.", kind="compiler"), correct(3.0)]


def by_content(_, submission):
    return next(answer for i, answer in enumerate(ANSWERS) if f"num_warps={i})" in submission.code)


def vector(script=by_content, num_envs: int = 4, **keywords):
    keywords = {"problem": problem(), "max_turns": 2} | keywords
    return gym.make_vec("Kevin-v0", num_envs=num_envs, pool=ScriptedPool(script), **keywords)


def test_conversations_side_by_side_are_not_mixed_up() -> None:
    together = threading.Barrier(4)

    def all_at_once(asked, submission):
        together.wait(timeout=30)
        return by_content(asked, submission)

    envs = vector(all_at_once)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    prompts, info = envs.reset(seed=1)
    assert len(prompts) == 4 and prompts in envs.observation_space
    prompts, scores, terminated, truncated, info = envs.step(tuple(REPLIES))
    assert list(scores) == pytest.approx([0.0, 2.3, 0.0, 3.3])
    assert [scores.dtype, terminated.dtype, truncated.dtype] == [np.float64, np.bool_, np.bool_]
    assert list(info["outcome"]) == ANSWERS
    for i, (prompt, messages) in enumerate(zip(prompts, info["messages"], strict=True)):
        assert prompt == messages[-1]["content"]
        text = "\n".join(message["content"] for message in messages)
        assert [n for n in range(4) if f"num_warps={n})" in text] == [i]
    _, _, terminated, truncated, info = envs.step(REPLIES[::-1])
    assert terminated.all() and not truncated.any()
    assert list(info["outcome"]) == ANSWERS[::-1]
    assert info["returns"][1] == pytest.approx((2.3, 0.0))
    assert info["trajectory"][3].turns[0].outcome == ANSWERS[3]
    envs.close()
    envs.close()


def test_attributes_and_methods_of_each_can_be_had() -> None:
    envs: Any = vector(num_envs=2)
    envs.reset()
    assert [episode.turns for episode in envs.get_attr("episode")] == [(), ()]
    assert envs.call("has_wrapper_attr", "episode") == (True, True)
    with pytest.raises(AttributeError, match="nonsense"):
        envs.call("nonsense")
    envs.close()


def test_those_that_ended_are_reset_and_the_others_go_on() -> None:
    envs = vector(stop_on="correct")
    envs.reset()
    _, _, terminated, truncated, _ = envs.step(REPLIES)
    assert list(terminated) == [False, True, False, True]
    with pytest.raises(ResetNeeded, match=r"episodes \[1, 3\] have ended; reset\(options="):
        envs.step(REPLIES)
    options = {"reset_mask": terminated | truncated}
    prompts, info = envs.reset(options=options)
    assert options.keys() == {"reset_mask"}  # for the wrappers, which read it after us
    assert list(info["_messages"]) == [False, True, False, True] and len(prompts) == 4
    _, _, _, _, info = envs.step(REPLIES)
    assert [turn.turn for turn in info["turn"]] == [2, 1, 2, 1]
    for mask in (np.zeros(4, bool), np.ones(3, bool), np.arange(4)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})


def test_seeds_and_problems_one_for_each() -> None:
    envs = vector(problem=[problem(name) for name in "abcdefgh"])

    def chosen(**arguments):
        envs.reset(**arguments)
        return [env.episode.problem.id for env in envs.unwrapped.envs]  # pyright: ignore[reportAttributeAccessIssue]

    assert chosen(seed=3) == chosen(seed=[3, 4, 5, 6])
    assert chosen(seed=3) != chosen(seed=4)
    assert chosen(options={"problem": problem("x")}) == ["x"] * 4
    assert chosen(options={"problem": [problem(name) for name in "wxyz"]}) == list("wxyz")
    with pytest.raises(ValueError, match="4 seeds are needed"):
        chosen(seed=[1])
    with pytest.raises(ValueError, match="4 problems are needed"):
        chosen(options={"problem": [problem()]})
    with pytest.raises(ValueError, match="4 actions are needed"):
        envs.step(REPLIES[:3])


def test_same_step_autoreset_begins_anew_at_once() -> None:
    envs = vector(num_envs=2, max_turns=1, autoreset_mode="SameStep")
    first, _ = envs.reset()
    prompts, _, terminated, _, info = envs.step(REPLIES[:2])
    assert terminated.all() and prompts == first
    assert list(info["final_info"]["outcome"]) == ANSWERS[:2]
    assert [text != start for text, start in zip(info["final_obs"], first, strict=True)] == [
        True,
        True,
    ]
    assert "outcome" not in info
    assert list(envs.step(REPLIES[2:])[1]) == pytest.approx([0.0, 3.3])


@pytest.mark.parametrize("ends", ["begin_reset", "end_reset"])
def test_turns_are_kept_if_the_next_episode_cannot_begin(ends: str) -> None:
    envs = vector(num_envs=2, max_turns=1, autoreset_mode="SameStep")
    envs.reset()

    def fails(**_: object) -> None:
        raise ProblemError("the next one fails")

    first = cast(KevinVectorEnv, envs.unwrapped).envs[0]
    setattr(first, ends, fails)
    prompts, scores, ended, _, info = envs.step([REPLIES[1], REPLIES[3]])
    assert ended.all() and scores.all() and prompts[0] == "" != prompts[1]
    assert list(info["final_info"]["outcome"]) == [ANSWERS[1], ANSWERS[3]]
    with pytest.raises(ProblemError, match="the next one fails"):
        envs.step(REPLIES[:2])
    delattr(first, ends)
    envs.reset(options={"reset_mask": np.array([True, False])})
    envs.step(REPLIES[:2])


def test_an_unknown_option_of_a_reset_ends_no_episode() -> None:
    envs = vector(num_envs=2)
    envs.reset()
    with pytest.raises(ValueError, match="known are 'problem' and 'reset_mask'"):
        envs.reset(options={"reset_maks": [True, True]})
    envs.step(REPLIES[:2])


def test_conversations_about_one_problem_are_numbered_together() -> None:
    mixed = [problem("a"), problem("b").model_copy(update={"level": 2})]
    envs = vector(num_envs=3, max_turns=1, autoreset_mode="SameStep", problem=problem("a"))
    _, info = envs.reset()
    assert (list(info["problem"]), list(info["sample"])) == (["a"] * 3, [0, 1, 2])
    assert list(envs.step(REPLIES[:3])[4]["sample"]) == [3, 4, 5]
    _, info = envs.reset(options={"problem": [*mixed, problem("a")]})
    assert (list(info["sample"]), list(info["level"]), list(info["_level"])) == (
        [6, 0, 7],
        [0, 2, 0],
        [False, True, False],
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"max_episode_steps": 3}, "give max_turns"),
        ({"autoreset_mode": "NextStep"}, "next-step autoreset wastes a reply"),
        ({"num_envs": 0}, "num_envs is 0; give an integer of at least 1"),
    ],
)
def test_what_a_vector_cannot_be_is_refused(bad, message) -> None:
    with pytest.raises(ValueError, match=message):
        vector(**bad)


def test_a_judge_failure_of_one_is_raised_after_all_have_answered() -> None:
    answers = {0: WRONG, 1: JudgeError("the device is gone")}
    plan = curriculum()
    envs = vector(
        lambda _, s: answers[0 if "num_warps=0)" in s.code else 1],
        num_envs=2, problem=plan, max_turns=1,
    )  # fmt: skip
    envs.reset()
    with pytest.raises(JudgeError):
        envs.step(REPLIES[1::-1])
    assert sum(plan.state.tried.values()) == 1
    envs.reset()
    envs.step([REPLIES[0]] * 2)


def test_what_has_no_length_is_refused() -> None:
    envs = vector(num_envs=2)
    with pytest.raises(ValueError, match="2 seeds are needed"):
        envs.reset(seed=cast(int, 1.5))
    envs.reset()
    for actions in (None, (each for each in REPLIES[:2])):
        with pytest.raises(ValueError, match="2 actions are needed"):
            envs.step(cast(list[str], actions))


def test_of_a_vector_nobody_steps_if_one_action_is_no_text() -> None:
    envs = vector(num_envs=3)
    envs.reset(seed=cast(int, np.int64(3)))
    with pytest.raises(InvalidAction):
        envs.step(["no code", None, "no code"])
    assert [len(env.episode.turns) for env in cast(Any, envs).envs] == [0, 0, 0]
    envs.close()


@pytest.mark.parametrize("problem", [None, 3, "", [None], {"id": "L1_23_Softmax"}])
def test_what_names_no_problem_is_told_what_does(problem: Any) -> None:
    with pytest.raises(ProblemError, match="give an id such as 'L1_23_Softmax'"):
        gym.make("Kevin-v0", problem=problem)
