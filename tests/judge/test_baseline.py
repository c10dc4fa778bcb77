"""A kernel as the baseline: verified once, and what speedups, prompts and records refer to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from judges import QUICK, ScriptedClock

from kevin_env.episode import Episode
from kevin_env.feedback import render_task
from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import KernelFile, Problem, ProblemError, list_problems, parse_problem
from kevin_env.record import Trajectory
from kevin_env.settings import Settings

SOURCE = '''"""Doubles x."""
import torch

N = 2000
CASES = {"cpu": {"N": 1200}, "odd": {"N": 7}}
BASELINE = "slow.py"


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(N, N)]


def get_init_inputs():
    return []
'''
SLOW = '''"""Doubling many times."""
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(240):
            y = x * FACTOR
        return y
'''
RIGHT = SLOW.replace("range(240)", "range(1)").replace("FACTOR", "2")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    (tmp_path / "slow.py").write_text(SLOW.replace("FACTOR", "2"))
    (tmp_path / "7_Double.py").write_text(SOURCE)
    return parse_problem(tmp_path / "7_Double.py")


def played(pool: LocalPool, problem: Problem, **settings: object) -> Trajectory:
    chosen = Settings.of({"device": "cpu", "rules": "open", "max_turns": 1, **settings})
    episode = Episode(problem, pool, chosen)
    episode.start()
    episode.submit(f"```python\n{RIGHT}\n```")
    return episode.trajectory


def test_the_speedup_is_over_the_file_and_named_by_it(
    pool: LocalPool, problem: Problem, tmp_path: Path
) -> None:
    over_file = played(pool, problem, baseline=str(tmp_path / "slow.py"))
    (turn,) = over_file.turns
    assert turn.speedup is not None and turn.speedup > 8
    assert "Speedup over Doubling many times: " in turn.feedback
    assert "the baseline (Doubling many times)" in turn.outcome.message
    prompt = turn.messages[0].content
    assert "the time of a known implementation (Doubling many times) divided by" in prompt
    assert "BASELINE" not in prompt and "slow.py" not in prompt
    (tmp_path / "slow.py").unlink()  # the record holds its text
    again = Settings.of(over_file.config)
    assert again.baseline == KernelFile(
        name="Doubling many times", code=SLOW.replace("FACTOR", "2")
    )
    assert Options.model_validate_json(again.options().model_dump_json()).baseline == again.baseline
    (turn,) = played(pool, problem).turns
    assert turn.speedup is not None
    assert "Speedup over PyTorch eager" in turn.feedback


def test_a_problems_own_baseline_counts_on_a_gpu(problem: Problem) -> None:
    facts = ScriptedPool([], device=SCRIPTED_GPU).describe(problem, Options()).result()
    task = render_task(problem, facts, Settings())
    assert "the time of a known implementation (Doubling many times) divided by" in task
    assert "the reference's time (PyTorch eager)" in render_task(
        problem, facts, Settings(baseline="eager")
    )


def test_a_wrong_baseline_is_refused_and_a_right_one_verified_once(
    a_judge: Callable[..., Judge], problem: Problem, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clock = ScriptedClock({"cpu": Correct(kind="timed", message="right", speedup=2.0)})
    judge = a_judge(QUICK, clock)

    def judged(factor: int) -> None:
        baseline = KernelFile(name="Doubling", code=SLOW.replace("FACTOR", str(factor)))
        options = Options(device="cpu", baseline=baseline)
        judge.judge(problem, Submission(code=RIGHT), options, lambda _: None)

    for factor in (2, 2):
        judged(factor)
    assert clock.cases == ["cpu"] * 3
    with pytest.raises(
        ProblemError, match="baseline 'Doubling' is not accepted: correctness/values"
    ):
        judged(3)


def test_a_wrong_baseline_is_refused_before_there_is_a_reply(
    pool: LocalPool, problem: Problem
) -> None:
    baseline = KernelFile(name="Tripling", code=SLOW.replace("FACTOR", "3"))
    asked = pool.describe(problem, Options(device="cpu", baseline=baseline))
    with pytest.raises(ProblemError, match="baseline 'Tripling' is not accepted"):
        asked.result(100)
    pool.describe(problem, Options(device="cpu")).result(100)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def ModelNew(): pass", "does not define ModelNew"),
        ("class ModelNew(:", "cannot read kernel"),
        (None, "cannot read kernel"),
    ],
)
def test_a_file_that_is_no_baseline_is_one_clear_line(
    tmp_path: Path, code: str | None, said: str
) -> None:
    path = tmp_path / "slow.py"
    if code is not None:
        path.write_text(code)
    (tmp_path / "7_Double.py").write_text(SOURCE)
    with pytest.raises(ProblemError, match=said):
        parse_problem(tmp_path / "7_Double.py")
    with pytest.raises(ValueError, match=said) as raised:
        Settings.of({"baseline": str(path)})
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match=r"give auto, eager, compile or a \.py file"):
        Settings.of({"baseline": "fast"})


WITH_BASELINE = [problem for problem in list_problems() if problem.baseline]


def test_at_least_ten_problems_have_a_baseline() -> None:
    assert len(WITH_BASELINE) >= 10


@pytest.mark.full
@pytest.mark.parametrize("problem", WITH_BASELINE, ids=lambda each: each.id)
def test_shipped_baselines_are_right(untimed_judge: Judge, problem: Problem) -> None:
    """On a CPU: what they call there; their fast paths need a GPU."""
    assert problem.baseline is not None
    submission, options = Submission(code=problem.baseline.code), Options(device="cpu")
    outcome = untimed_judge.judge(problem, submission, options, lambda _: None).outcome
    assert outcome.category == "correct", outcome
