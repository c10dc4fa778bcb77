"""Which earlier turns a prompt shows."""

import pytest
from trajectories import turn

from kevin_env.history import resolve_context

SCORES = (0.0, 1.5, 0.3, 1.5, 0.0, 0.3)
TURNS = [turn(number, score=score) for number, score in enumerate(SCORES, 1)]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("kevin", [6, 4, 5, 3, 2, 1]), ("full", [6, 4, 5, 3, 2, 1]), ("last_n", [6, 5, 4]),
        ("last_n:1", [6]), ("last_n:9", [6, 5, 4, 3, 2, 1]), ("top_w", [4, 2, 6, 3]),
        ("top_w:1", [4]), ("top_w:3", [4, 2, 6]), ("best_last", [6, 4]),
    ],
)  # fmt: skip
def test_which_turns_a_policy_shows_the_most_wanted_first(name, numbers):
    assert [each.turn for each in resolve_context(name).order(TURNS)] == numbers


@pytest.mark.parametrize(
    "name",
    ["", "all", "last_n:", "last_n:0", "last_n:-1", "last_n:x", "top_w:²", "full:3", "Kevin"],
)
def test_unknown_names_are_one_clear_line(name):
    with pytest.raises(ValueError, match="context") as error:
        resolve_context(name)
    assert "\n" not in str(error.value) and repr(name) in str(error.value)
