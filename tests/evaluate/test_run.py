"""Whole evaluations: played, killed and resumed, with failing models and judges."""

import _thread
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from episodes import WRONG, correct
from evaluations import (
    by_number,
    coded,
    number_in,
    run,
    start,
    tells_of_a_turn,
    values_of,
    wait_for_turns,
)
from stub_server import Answer, serve

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate import workers
from kevin_env.app.evaluate.config import parse_config
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.players import make_player
from kevin_env.app.evaluate.workers import Pacer, Workers
from kevin_env.judge import JudgeError
from kevin_env.outcome import Correct
from kevin_env.parsing import as_submission
from kevin_env.policies import ContextOverflow, PolicyError, Quit, ScriptedPolicy
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.problem import ProblemError, data_folder, load_problem
from kevin_env.settings import Settings

BEAM = {"samples": 6, "turns": 6, "search": {"kind": "beam", "keep": 2, "rounds": 3}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause before a failed judge is called again."""
    monkeypatch.setattr(workers, "RETRY_SECONDS", (0.0, 0.0))


def always(*replies: Any):
    """Plays the same replies in every episode."""
    return lambda problem, sample, played: ScriptedPolicy(replies[played:])


def test_problems_times_samples_times_turns(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=3, samples=2, turns=3)
    done = run(values)
    assert (done.ended.code, done.stops) == (0, ["max_turns"] * 6)
    assert len({(each.problem.id, each.sample) for each in done.trajectories}) == 6
    for each in done.trajectories:
        at, sample = int(each.problem.id.split("_")[0]) - 1, each.sample or 0
        said = [number_in(turn.submission.code) for turn in each.turns if turn.submission]
        assert said == [(at * 31 + sample * 17 + turn * 7) % 97 + 1 for turn in range(3)]
        assert (each.model, each.parent, len(each.returns)) == ("scripted", None, 3)
    assert done.ended.metrics is not None and done.ended.metrics.overall.counts.trajectories == 6
    assert done.folder.metrics_file.exists()
    assert len(done.folder.summary_file.read_text().splitlines()) == 4
    assert "18/18  " in done.said and "18 of 18 turns" in done.said
    again = run(values)
    assert (again.ended.metrics, again.pool.submissions) == (done.ended.metrics, [])


@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param(BEAM, marks=pytest.mark.full),
        pytest.param({"search": {"kind": "parallel"}}, marks=pytest.mark.full),
    ],
    ids=["serial", "beam", "parallel"],
)
def test_an_evaluation_that_was_killed_goes_on_to_the_same_figures(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    baselines = {"baselines": ["eager", "compile"], "problems": 4}
    first = values_of(tmp_path / "whole", **more, **baselines)
    whole = run(first)
    values = values_of(tmp_path / "killed", **more, **baselines) | {"problem": first["problem"]}
    config = tmp_path / "config.toml"
    config.write_text(tomli_w.dumps(values))
    with start(config, 0.03) as process:
        said = wait_for_turns(process, 13)
        process.kill()
    told = sum(tells_of_a_turn(line) for line in said)
    folder = RunFolder(Path(values["out"]))
    kept = {turn.secret for each in folder.trajectories(lambda line: None) for turn in each.turns}
    judgements = len(whole.pool.submissions)
    assert 13 <= told <= len(kept) < judgements - 4
    assert not folder.metrics_file.exists()
    rest = run(values)
    assert "resuming" in rest.said
    assert len(rest.pool.submissions) == judgements - len(kept), "no finished turn is judged again"
    assert kept < {turn.secret for each in rest.trajectories for turn in each.turns}
    assert rest.ended.metrics == whole.ended.metrics
    assert rest.folder.metrics_file.read_text() == whole.folder.metrics_file.read_text()
    assert rest.stops == whole.stops


def test_one_that_was_killed_after_its_last_turn_is_ended_without_playing(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=1, samples=1)
    whole = run(values)
    (episode,) = whole.trajectories
    whole.folder.trajectories_file.unlink()
    whole.folder.recorder.begin(episode.model_copy(update={"stop_reason": None}))
    rest = run(values)
    assert (rest.stops, rest.pool.submissions) == (["max_turns"], [])
    assert rest.ended.metrics == whole.ended.metrics


def test_ctrl_c_waits_for_turns_that_are_running_and_says_how_to_go_on(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=2, samples=4, turns=3)
    config = tmp_path / "config.toml"
    config.write_text(tomli_w.dumps(values))
    with start(config, 0.2) as process:
        said = wait_for_turns(process, 2)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        rest = process.stdout.read()
    assert process.returncode == 130
    folder = RunFolder(Path(values["out"]))
    assert f"kevin-env eval --resume {folder.path}" in rest.replace("\n", " ")
    told = sum(tells_of_a_turn(line) for line in [*said, *rest.splitlines()])
    found = folder.trajectories(lambda line: None)
    assert sum(len(each.turns) for each in found) == told < 24
    assert {each.stop_reason for each in found} <= {None, "max_turns"}
    assert run(values).stops == ["max_turns"] * 8


@pytest.mark.timeout(45)
def test_a_second_ctrl_c_waits_for_nothing_and_blames_nobody(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(workers, "RETRY_SECONDS", ())
    asked, over = threading.Semaphore(0), threading.Event()

    def judge(problem, submission):
        asked.release()
        over.wait(60)
        raise JudgeError("the pool is closed")

    def interrupt() -> None:
        for _ in range(2):
            asked.acquire()
        for _ in range(2):
            _thread.interrupt_main()
            time.sleep(0.5)

    threading.Thread(target=interrupt, daemon=True).start()
    done = run(values_of(tmp_path, problems=1, samples=2, concurrency=2), judge)
    assert done.ended.code == 130
    assert "Ctrl-C again to discard them" in done.said and "--resume" in done.said
    over.set()
    time.sleep(0.3)
    assert done.stops == ["None", "None"]


def test_ctrl_c_ends_the_pause_before_a_request_is_sent_again(tmp_path: Path) -> None:
    busy = Answer(status=503, body={"error": {"message": "busy"}}, headers={"retry-after": "30"})
    with serve(busy) as stub:
        policy = OpenAIPolicy("m", stub.url, "key", retries=1)
        interrupt = threading.Timer(1.0, _thread.interrupt_main)
        interrupt.start()
        began = time.monotonic()
        values = values_of(tmp_path, problems=1, samples=1)
        done = run(values, player=lambda problem, sample, played: policy)
        interrupt.join()
    assert time.monotonic() - began < 20
    assert "trying again in 30 s: " in done.said and "HTTP 503: busy" in done.said
    assert (done.ended.code, done.stops) == (130, ["None"])  # to be continued


def test_a_model_that_fails_ends_that_episode_only(tmp_path: Path) -> None:
    asked: Counter[int] = Counter()

    def player(problem, sample, played):
        asked[sample] += 1
        if sample == 1:
            return ScriptedPolicy([coded(1), ContextOverflow("4096 tokens")][played:])
        fails = (sample == 2 and asked[2] <= 1) or sample == 3
        second = PolicyError("overloaded") if fails else coded(2)
        return ScriptedPolicy([coded(1), second, coded(4)][played:])

    done = run(values_of(tmp_path, problems=1, samples=4), player=player)
    assert done.ended.code == 1
    assert done.stops == ["context_length"] + ["max_turns"] * 2 + ["model_error"] * 3
    assert asked == {0: 1, 1: 1, 2: 2, 3: 2}, "failures are retried once, an overflow is not"
    assert "ended after 1 turn, context_length: 4096 tokens" in done.said
    assert "failures of the model or the judge: 1" in done.said and "--resume" in done.said
    again = always(coded(1), coded(2), coded(4))
    later = run(values_of(tmp_path, problems=1, samples=4), player=again)
    assert (later.ended.code, len(later.pool.submissions)) == (0, 2)
    third = {each.stop_reason: each for each in later.trajectories if each.sample == 3}
    failed = [each for each in later.trajectories if each.stop_reason == "model_error"]
    assert third["max_turns"].parent in {each.episode_id for each in failed}
    assert later.ended.metrics is not None
    counts = later.ended.metrics.overall.counts
    assert (counts.trajectories, counts.turns) == (4, 10)


def test_a_judge_that_fails_is_asked_again_then_left_to_a_later_run(tmp_path: Path) -> None:
    failures: Counter[int] = Counter()

    def judge(problem, submission):
        number = number_in(submission.code)
        failures[number] += 1
        if (number == 2 and failures[2] <= 2) or number == 4:
            raise JudgeError("the device is gone")
        return by_number(problem, submission)

    values = values_of(tmp_path, problems=1, samples=1)
    done = run(values, judge, always(coded(1), coded(2), coded(4)))
    assert (done.ended.code, done.stops) == (3, ["judge_error", "judge_error"])
    assert failures == {1: 1, 2: 3, 4: 6}
    assert [len(each.turns) for each in done.trajectories] == [2, 2]
    later = run(values, by_number, always(coded(1), coded(2), coded(4)))
    assert (later.ended.code, len(later.pool.submissions)) == (0, 1)
    assert later.ended.metrics is not None and later.ended.metrics.overall.counts.turns == 3


def test_a_judge_that_is_gone_at_the_start_leaves_nothing_behind(
    tmp_path: Path, monkeypatch
) -> None:
    from kevin_env.pools.scripted import ScriptedPool

    def gone(self, problem, options):
        raise JudgeError("no device")

    values = values_of(tmp_path, problems=1, samples=1)
    with monkeypatch.context() as patch:
        patch.setattr(ScriptedPool, "describe", gone)
        done = run(values)
    assert (done.ended.code, done.ended.metrics) == (3, None)
    assert not done.folder.trajectories_file.exists() and "no device" in done.said
    assert run(values).ended.code == 0


def test_an_endpoint_that_is_down_ends_the_run_at_once(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=10, samples=10)
    done = run(values, player=always(*[PolicyError("cannot connect")] * 9))
    assert done.ended.code == 1
    assert "stopped: the model failed 4 times in a row; last error: cannot connect" in done.said
    assert len(done.trajectories) < 12
    assert run(values).stops.count("max_turns") == 100


def test_a_person_who_leaves_ends_the_run(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=3, samples=1, concurrency=1)
    done = run(values, player=always(coded(1), Quit("bye")))
    assert (done.ended.code, done.stops) == (1, ["interrupted"])


def test_a_reference_that_fails_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kevin_env.pools.scripted import ScriptedPool

    describe, asked = ScriptedPool.describe, []

    def failing(self, problem, options):
        asked.append(problem.id)
        if problem.id == "2_Double":
            raise ProblemError("the reference of 2_Double runs out of memory")
        return describe(self, problem, options)

    monkeypatch.setattr(ScriptedPool, "describe", failing)
    done = run(values_of(tmp_path, problems=3, samples=8, concurrency=1))
    assert (done.ended.code, done.stops) == (2, ["max_turns"] * 16)
    assert asked.count("2_Double") == 1
    assert "2_Double cannot be played: the reference of 2_Double runs out of memory" in done.said


def test_two_devices_are_not_mixed(tmp_path: Path) -> None:
    run(values_of(tmp_path, samples=1), device="A")
    more = run(values_of(tmp_path, samples=2), device="B")
    assert "the run began on A, this is B; use another --out" in more.said
    assert (more.ended.code, len(more.trajectories)) == (1, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"turns": 4}, "begun with settings.max_turns = 3, not 4; use another --out"),
        ({"samples": 1}, "begun with samples = 2, not 1"),
        ({"problems": 1}, "begun with problem = .*2_Double.py among others"),
        ({"policy": {"kind": "solutions"}}, "begun with policy.kind = scripted, not solutions"),
    ],
)
def test_another_evaluation_does_not_go_into_the_same_folder(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    run(values_of(tmp_path))
    with pytest.raises(BadInput, match=said):
        run(values_of(tmp_path, **change), player=always())


def test_more_samples_and_problems_may_be_added(tmp_path: Path) -> None:
    run(values_of(tmp_path, problems=1, samples=1))
    more = run(values_of(tmp_path, problems=2, samples=2, concurrency=2))
    assert len(more.pool.submissions) == 4 * 3 - 3
    assert more.folder.config().samples == 2


def test_a_problem_that_has_changed_is_not_mixed_with_what_it_was(tmp_path: Path) -> None:
    values = values_of(tmp_path)
    run(values)
    file = Path(values["problem"][1])
    file.write_text(file.read_text().replace("x * 2", "x * 3"))
    with pytest.raises(BadInput, match="2_Double has changed since"):
        run(values)


def test_a_beam_forks_what_is_fastest(tmp_path: Path) -> None:
    speeds = {0: 1, 1: 9, 2: 2, 3: 3}

    def player(problem, sample, played):
        return ScriptedPolicy([coded(8 * speeds[sample] + turn) for turn in range(played, 4)])

    values = values_of(tmp_path, problems=1, samples=4, turns=4, search={"kind": "beam", "keep": 1})
    done = run(values, lambda problem, submission: correct(number_in(submission.code) / 8), player)
    assert done.stops == ["max_turns"] * 4 + ["pruned"] * 3
    leaves = {each.sample: each for each in done.trajectories if each.stop_reason == "max_turns"}
    best = leaves[1]
    for sample in (0, 2, 3):
        assert leaves[sample].parent == best.episode_id
        assert leaves[sample].turns[:2] == best.turns[:2]
        assert leaves[sample].turns[2:] != best.turns[2:]
        assert len(leaves[sample].returns) == 4
    pruned = [each for each in done.trajectories if each.stop_reason == "pruned"]
    assert all(len(each.returns) == 2 == len(each.turns) for each in pruned)
    assert done.ended.metrics is not None
    counts = done.ended.metrics.overall.counts
    assert (counts.trajectories, counts.turns, len(done.pool.submissions)) == (4, 16, 16)


def test_a_beam_is_not_stuck_by_one_failure(tmp_path: Path) -> None:
    calls: Counter[int] = Counter()

    def player(problem, sample, played):
        calls[sample] += 1
        replies: list[Any] = [coded(10 * sample + turn + 1) for turn in range(4)]
        if sample == 2 and calls[2] == 1:
            replies[1] = PolicyError("overloaded")
        return ScriptedPolicy(replies[played:])

    search = {"kind": "beam", "keep": 2}
    done = run(values_of(tmp_path, problems=1, samples=4, turns=4, search=search), player=player)
    assert done.ended.code == 0
    assert done.stops == ["max_turns"] * 4 + ["model_error"] + ["pruned"] * 2
    assert "sample 2 will be retried: overloaded" in done.said


def test_torch_compile_is_compared_and_kept(tmp_path: Path) -> None:
    values = values_of(tmp_path, problems=2, baselines=["eager", "compile"])
    values["settings"] |= {"require_sandbox": True, "profile": "kernels"}

    def judge(problem, submission):
        if number_in(submission.code) == 0 and problem.id == "2_Double":
            return Correct(kind="too_noisy", message="Too noisy to tell.")
        return by_number(problem, submission)

    done = run(values, judge)
    compared = done.folder.compared()
    assert (compared["1_Double"].ratio, compared["2_Double"].ratio) == (0.8, None)
    assert compared["2_Double"].why == "correct/too_noisy: Too noisy to tell."
    asked = [each for each in done.pool.submissions if not number_in(each[1].code)]
    assert sorted(problem.id for problem, _, _ in asked) == ["1_Double", "2_Double"]
    kept = Settings.of(values["settings"]).options()
    update = {"baseline": "compile", "rules": "open", "retry_noisy": True, "profile": "none"}
    assert all(each == kept.model_copy(update=update) for _, _, each in asked)
    metrics = done.ended.metrics
    assert metrics is not None
    (first, second) = metrics.problems
    eager, compiled = first.speed["eager"], first.speed["compile"]
    assert eager and compiled and compiled.best == pytest.approx(0.8 * eager.best)
    assert second.speed["compile"] is None
    assert run(values, judge).pool.submissions == []


def test_a_reference_becomes_a_submission() -> None:
    source = load_problem("L1_23_Softmax").source
    more = "\nclass Deeper(Model):\n    def f(self): return super(Model, self), 'Model'\n"
    code = as_submission(source + more)
    assert "class ModelNew(" in code and "class Deeper(ModelNew)" in code
    assert "super(ModelNew, self), 'Model'" in code
    assert "class Model(" not in code


def test_solutions_play_one_a_turn_and_the_last_again() -> None:
    least: dict[str, Any] = {"problem": "L1_23_Softmax", "policy": {"kind": "solutions"}}
    on_cpu, config = (
        parse_config(least | {"settings": {"max_turns": 4, "device": device}})
        for device in ("cpu", "cuda")
    )
    problem, folder = load_problem("L1_23_Softmax"), data_folder("problems") / "solutions"
    cuda, triton, cpp = (
        (folder / f"L1_23_Softmax.{word}.py").read_text() for word in ("cuda", "triton", "cpp")
    )

    def codes(config, played):
        policy = make_player(config, [problem])(problem, 0, played)
        replies = [policy.reply([]).content for _ in range(4 - played)]
        return [each.removeprefix("```python\n").removesuffix("```") for each in replies]

    assert codes(config, 0) == [cuda, triton, triton, triton]
    assert codes(config, 1) == [triton] * 3
    assert codes(on_cpu, 2) == [cpp] * 2
    with pytest.raises(BadInput, match="no solution in cpp for L1_26_GELU_; remove"):
        make_player(on_cpu, [problem, load_problem("L1_26_GELU_")])


def test_scripts_lie_in_folders(tmp_path: Path) -> None:
    problem = load_problem("L1_23_Softmax")
    policy = {"kind": "scripted", "replies": str(tmp_path / "replies")}
    values = {"problem": problem.id, "samples": 2, "settings": {"max_turns": 2}, "policy": policy}
    config = parse_config(values)
    with pytest.raises(BadInput, match=r"no folder .*replies"):
        make_player(config, [problem])
    place = tmp_path / "replies" / problem.id
    (place / "1").mkdir(parents=True)
    (place / "1.md").write_text("first")
    (place / "1" / "1.py").write_text("second")
    with pytest.raises(BadInput, match=r"no reply for turn 2, .*2\.md or \.py"):
        make_player(config, [problem])
    (place / "2.py").write_text("third")
    player = make_player(config, [problem])
    assert [player(problem, sample, 0).reply([]).content for sample in (0, 1)] == [
        "first",
        "```python\nsecond\n```",
    ]
    assert player(problem, 0, 1).reply([]).content == "```python\nthird\n```"


def test_each_sample_of_a_seeded_model_has_its_own_seed() -> None:
    policy = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "seed": 5}
    config = parse_config({"problem": "L1", "samples": 2, "policy": policy})
    player, problem = make_player(config, []), load_problem("L1_23_Softmax")
    seeds = [vars(player(problem, sample, 0))["_parameters"]["seed"] for sample in (0, 1, 1)]
    assert seeds == [5, 6, 6]


@pytest.mark.timeout(60)
def test_requests_are_spread_over_the_minute() -> None:
    workers, times = Workers(8), []
    pacer = Pacer(per_minute=60 * 20, workers=workers)

    def request() -> None:
        pacer.wait()
        times.append(time.monotonic())

    start = time.monotonic()
    for _ in range(10):
        workers.put(request, 0)
    workers.wait(lambda: None)
    assert all(at - start >= 0.05 * number for number, at in enumerate(sorted(times)))


def test_as_many_at_a_time_as_asked_for(tmp_path: Path) -> None:
    now, most, lock = [0], [0], threading.Lock()

    def judge(problem, submission):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return WRONG

    run(values_of(tmp_path, problems=2, samples=4, concurrency=3), judge)
    assert most[0] == 3


def test_one_problem_after_the_other(tmp_path: Path) -> None:
    search = {"kind": "beam", "keep": 2}
    values = values_of(tmp_path, problems=3, samples=4, turns=4, concurrency=1, search=search)
    order = [problem.id for problem, _, _ in run(values).pool.submissions]
    assert order == sorted(order)


def test_an_error_of_ours_stops_the_run_and_is_raised(tmp_path: Path) -> None:
    def judge(problem, submission):
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        run(values_of(tmp_path, problems=5), judge)
