"""What the panes of a turn hold, without a screen."""

import pytest
from trajectories import BROKEN, RIGHT, STORY, timed, trajectory, turn

from kevin_env.app.replay.describe import error_lines, return_sum, score_sum
from kevin_env.app.replay.diffs import counts, diff_lines, in_pairs
from kevin_env.app.replay.panes import facts, pane_lines
from kevin_env.app.replay.pieces import DARK, Look
from kevin_env.judge.api import Submission
from kevin_env.judge.verdict import FLAGS, flag
from kevin_env.outcome import CompileError, Threads
from kevin_env.record import Trajectory, Turn
from kevin_env.roofline import Ceilings, Work, roofline_of


def pane(episode: Trajectory, at: int, name: str, look: Look | None = None) -> list[str]:
    lines = pane_lines(episode, at, name, look or Look(100))  # type: ignore[arg-type]
    return [line.plain.rstrip() for line in lines]


def code(number: int, text: str) -> Turn:
    return turn(number, submission=Submission(code=text))


def test_scores_and_returns_are_written_out() -> None:
    assert score_sum(RIGHT, STORY) == "0.3 correct + 2.000 speedup = 2.300"
    assert score_sum(BROKEN, STORY) == "0.000  (compile: nothing is paid)"
    low = trajectory(
        timed(1, 2.0).model_copy(update={"score": 2.1, "full_score": 2.1}),
        config={"gamma": 0.4, "bound": "lower"},
    )
    assert score_sum(low.turns[0], low) == "0.3 correct + 1.800 paid speedup = 2.100"
    odd = trajectory(timed(1, 2.0), config={"score": "mine.score"})
    assert score_sum(odd.turns[0], odd) == "2.300  (score mine.score)"
    again = RIGHT.model_copy(update={"turn": 3, "score": 0.0})
    once = trajectory(RIGHT, again)
    assert [score_sum(each, once)[:5] for each in once.turns] == ["0.3 c", "2.300"]
    assert score_sum(again, once) == "2.300 - 2.300 paid before = 0.000"
    sums = trajectory(turn(1), RIGHT, BROKEN)
    assert return_sum(sums, 0) == "0.000 + 0.4 * 2.300 + 0.4^2 * 0.000 = 0.920"
    most = trajectory(turn(1), RIGHT, config={"gamma": 0.5, "returns": "max"})
    assert return_sum(most, 0) == "max(0.000, 0.5 * 2.300) = 1.150"


def test_where_triton_was_interpreted_the_head_says_so_and_a_flag_says_what_it_means() -> None:
    flags = (flag("interpreted", FLAGS["interpreted"]),)
    slow = trajectory(timed(1, 0.00079).model_copy(update={"flags": flags}))
    assert facts(slow)[1].plain.strip() == "best 0.00079x (turn 1, in Triton's interpreter)"
    assert "its speed means nothing" in " ".join(pane(slow, 0, "feedback"))


def test_a_time_against_the_roofline_is_among_the_timings() -> None:
    work = Work(read=1 << 26, written=1 << 26, products={}, operations=1 << 24)
    held = roofline_of(work, Ceilings(reading=4e12, copying=4e12, rates={"fp32": 50e12}), 1e-4)
    outcome = RIGHT.outcome.model_copy(
        update={"roofline": held, "threads": Threads(busy=1.04, of=8)}
    )
    shown = pane(trajectory(RIGHT.model_copy(update={"outcome": outcome})), 0, "numbers")
    for line in (
        "roofline    33.6% of 33.6 us, bound by memory",
        "bandwidth   1.34 TB/s of 4 TB/s, 134 MB",
        "rate        168 GFLOP/s of 50 TFLOP/s, 16.8 MFLOP",
        "threads     1.0 of 8 busy",
    ):
        assert line in shown, line
    plain = pane(trajectory(RIGHT), 0, "numbers")
    assert not [line for line in plain if line.startswith(("roofline", "threads"))]


def test_error_lines() -> None:
    assert error_lines("a\nb\n", CompileError(kind="syntax", message="m", line=2)) == (2,)
    assert error_lines(BROKEN.submission.code, BROKEN.outcome) == (5,)  # type: ignore[union-attr]
    several = CompileError(kind="compiler", message="m", line=1, details="int x = foo;\nint y = 2;")
    assert error_lines("int x = foo;\nint y = 2;\n", several) == (1, 2)


@pytest.mark.full
@pytest.mark.timeout(60)
def test_a_pane_of_a_huge_kernel_comes_soon() -> None:
    huge = trajectory(
        turn(1, submission=Submission(code="x = 1  # y\n" * 20_000), outcome=BROKEN.outcome)
    )
    assert len(pane(huge, 0, "kernel")) >= 20_000


def test_a_diff_marks_what_changed_within_a_line() -> None:
    lines = diff_lines("a = 1\nint tile = 16;\n", "a = 1\nint tile = 32;\nb = 2\n")
    assert [(each.tag, each.old, each.new, each.changed) for each in lines] == [
        (" ", 1, 1, ()),
        ("-", 2, None, ((11, 13),)),
        ("+", None, 2, ((11, 13),)),
        ("+", None, 3, ()),
    ]
    unlike = diff_lines("alpha beta gamma", "1 + 2")
    assert [each.changed for each in unlike] == [(), ()]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "loop", ["x = x\n", "a\nb\nc\n", "y = [1, 2, 3, 4, 5] + [6]  # and so on\n"]
)
def test_a_diff_of_a_model_in_a_loop_comes_soon(loop: str) -> None:
    """Lines that both have thousands of times once made each of them be compared with each."""
    one, other = (f"import torch\n{loop * times}end = 1\n" for times in (10_000, 12_000))
    assert counts(diff_lines(one, other)) == (2_000 * loop.count("\n"), 0)
    changed = other.replace("o", "q").replace("=", ":=").replace("a", "z")
    assert counts(diff_lines(one, changed))[0] >= 12_000


def test_a_diff_is_drawn_as_code_on_a_tint() -> None:
    episode = trajectory(code(1, "x = 16\n"), code(2, "x = 32\ny = 1\n"))
    look = Look(40, tints=DARK)
    _, _, old, new, more = pane_lines(episode, 1, "diff", look)
    assert [each.cell_len for each in (old, new, more)] == [40, 40, 40]
    backgrounds = [{str(span.style) for span in each.spans} for each in (old, new)]
    assert f"on {DARK[1]}" in backgrounds[0] and f"on {DARK[3]}" in backgrounds[0]
    assert f"on {DARK[0]}" in backgrounds[1] and f"on {DARK[2]}" in backgrounds[1]
    plain = pane_lines(episode, 1, "diff", Look(40))
    assert not [span for line in plain for span in line.spans if "on #" in str(span.style)]
    assert "bold underline" in {str(span.style) for span in plain[3].spans}


def test_a_diff_in_two_columns_puts_replacements_side_by_side() -> None:
    lines = diff_lines("a\nb\nc\n", "a\nB\nB2\nc\n")
    assert [tuple(each and each.text for each in pair) for pair in in_pairs(lines)] == [
        ("a", "a"),
        ("b", "B"),
        (None, "B2"),
        ("c", "c"),
    ]
    two = pane(
        trajectory(code(1, "x = 16\n"), code(2, "x = 32\n")), 1, "diff", Look(80, side_by_side=True)
    )
    assert [part.split() for part in two[2].split("│")] == [
        ["1", "-", "x", "=", "16"],
        ["1", "+", "x", "=", "32"],
    ]
