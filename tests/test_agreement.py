"""Category, score and feedback of every way to end a turn agree."""

import pytest
from episodes import every_outcome

from kevin_env.feedback import render_feedback
from kevin_env.outcome import HACK_KINDS, OUTCOME, Outcome, is_hack
from kevin_env.score import kevin

OUTCOMES = every_outcome()


def test_nothing_is_left_out() -> None:
    assert len({(o.category, o.kind) for o in OUTCOMES}) == len(OUTCOMES)
    assert {o.category for o in OUTCOMES} == {
        "format", "rules", "compile", "runtime", "correctness", "correct",
    }  # fmt: skip
    assert {o.kind for o in OUTCOMES} >= HACK_KINDS


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda o: f"{o.category}-{o.kind}")
def test_category_score_and_feedback_agree(outcome: Outcome) -> None:
    right = outcome.category == "correct"
    feedback = render_feedback(outcome)
    assert (kevin(outcome) > 0) == right
    assert (outcome.message in feedback) == (outcome.kind != "timed")
    assert ("correct" in feedback.lower() and "incorrect" not in feedback.lower()) == right
    assert not (right and is_hack(outcome))
    assert OUTCOME.validate_json(outcome.model_dump_json()) == outcome
