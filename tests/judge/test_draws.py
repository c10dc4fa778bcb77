"""What is drawn for a submission, and answers that change from call to call."""

import pytest

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Incorrect
from kevin_env.problem import Problem, ProblemError

SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""


def judged(judge: Judge, source: str, code: str) -> Judgement:
    options = Options(device="cpu", inputs="shipped")
    problem = Problem(id="drawn", name="drawn", source=source)
    return judge.judge(problem, Submission(code=code), options, lambda _: None)


def test_an_answer_that_is_wrong_in_every_other_call_is_nondeterministic(judge: Judge) -> None:
    code = SOURCE.replace("Model(", "ModelNew(").replace(
        "        return",
        "        self.calls = getattr(self, 'calls', 0) + 1\n        return (self.calls % 2) *",
    )
    outcome = judged(judge, SOURCE, code).outcome
    assert isinstance(outcome, Incorrect) and outcome.kind == "nondeterministic"
    assert outcome.message.endswith("; a second call on the same inputs was correct")


def test_inputs_that_grow_are_the_problems_error(judge: Judge) -> None:
    """They have room to vary a little."""
    grows = (
        SOURCE.replace("randn(64, 64)", "randn(next(ROWS), 64)")
        + "ROWS = iter(range(8192, 1 << 20, 8192))"
    )
    with pytest.raises(ProblemError) as caught:
        judged(judge, grows, SOURCE.replace("Model(", "ModelNew("))
    assert str(caught.value) == "drawn: get_inputs draws inputs of other sizes than before"


def test_the_seed_of_a_random_call_does_not_tell_its_inputs(judge: Judge) -> None:
    random = SOURCE.replace("return torch.softmax(x, dim=1)", "return x + torch.rand_like(x)")
    code = random.replace("Model(", "ModelNew(").replace(
        "        return",
        "        seed = torch.initial_seed()\n"
        "        torch.manual_seed(seed)\n"
        "        print('GUESSED' if torch.equal(torch.randn(64, 64), x) else 'called')\n"
        "        torch.manual_seed(seed)\n"
        "        return",
    )
    judgement = judged(judge, random, code)
    assert judgement.outcome.category == "correct", judgement.outcome
    assert "called" in judgement.log and "GUESSED" not in judgement.log
