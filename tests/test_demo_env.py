"""An episode from end to end, with real judges: Gymnasium, the judge, the record, and the record
judged again.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from typer.testing import CliRunner

import kevin_env  # noqa: F401  (registers Kevin-v0)
from kevin_env.cli import app
from kevin_env.outcome import Correct, Incorrect, speedup_of
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.recorder import Recorder
from kevin_env.score import at_bound

NO_CODE = "I would start by looking at the memory traffic."
WRONG = """The tanh form is near enough.
```python
import torch
import torch.nn.functional as F

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh")
```
"""
RIGHT = WRONG.replace(', approximate="tanh"', "").replace(
    "The tanh form is near enough.", "Now the exact form."
)


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    """Judges at their usual pace: quick ones look at two distributions, which may hide an error."""
    with LocalPool() as judges:
        yield judges


@pytest.mark.full
@pytest.mark.usefixtures("one_pool")
def test_three_turns_are_judged_recorded_and_judged_again(pool: LocalPool, tmp_path: Path) -> None:
    problem = tmp_path / "gelu.py"
    problem.write_text(
        load_problem("L1_26_GELU_").source.replace('256, "dim": 8000', '64, "dim": 1000')
    )
    env = gym.make(
        "Kevin-v0", problem=str(problem), device="cpu", rules="open", max_turns=3, pool=pool
    )
    prompt, info = env.reset(seed=0)
    assert "erf" in prompt and info["messages"][-1]["content"] == prompt

    prompt, score, terminated, truncated, info = env.step(NO_CODE)
    assert (score, terminated, truncated) == (0.0, False, False)
    assert info["outcome"].category == "format" and info["outcome"].kind == "no_code"

    prompt, score, terminated, truncated, info = env.step(WRONG)
    wrong = info["outcome"]
    assert (
        isinstance(wrong, Incorrect)
        and wrong.kind == "values"
        and (score, terminated) == (0.0, False)
    )
    assert wrong.differences[0].got in prompt and info["seconds"].verify > 0

    prompt, score, terminated, truncated, info = env.step(RIGHT)
    right = info["outcome"]
    assert isinstance(right, Correct) and (terminated, truncated) == (True, False)
    assert score == pytest.approx(0.3 + (speedup_of(at_bound(right)) or 0.0))
    score = float(score)
    assert info["returns"] == pytest.approx((0.16 * score, 0.4 * score, score))

    trajectory = info["trajectory"]
    assert [turn.category for turn in trajectory.turns] == ["format", "correctness", "correct"]
    assert trajectory.turns[1].secret != trajectory.turns[2].secret
    path = tmp_path / "trajectories.jsonl"
    Recorder(path).finish(trajectory)
    words = ["judge", str(path), "--json", "--turn"]
    none, again = (json.loads(CliRunner().invoke(app, [*words, turn]).stdout) for turn in "12")
    assert none["category"] == "format"
    found = (again["category"], again["kind"], again["message"])
    assert found == ("correctness", "values", wrong.message)
