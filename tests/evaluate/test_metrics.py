"""Figures computed by hand, and those of KernelBench's score tests."""

import math
import random

import pytest
from episodes import WRONG
from trajectories import timed, trajectory, turn

from kevin_env.app.evaluate.figures import Figure, GroupMetrics, Prices, RunMetrics
from kevin_env.app.evaluate.metrics import measure
from kevin_env.judge.api import Seconds
from kevin_env.outcome import CompileError, Correct, Incorrect, RulesViolation, RuntimeFailure
from kevin_env.record import ProblemRef, Trajectory, Turn, Usage
from kevin_env.score import discounted_returns

BROKEN = CompileError(kind="syntax", message="It does not parse.")
CRASHED = RuntimeFailure(kind="exception", message="It raised.")
FORBIDDEN = RulesViolation(kind="torch_compute", message="It lets torch compute.")
NOISY = Correct(kind="too_noisy", message="Correct.")
UNWRITTEN = Incorrect(kind="not_written", message="It wrote nothing.", input_set="main/own")
EARLY = Incorrect(kind="early_done", message="It was not done.", input_set="main/own")


def played(problem: str, number: int | None, *turns: Turn, **more) -> Trajectory:
    """A trajectory of a problem such as `L1_3`."""
    turns = tuple(each.model_copy(update={"turn": at}) for at, each in enumerate(turns, start=1))
    level = int(problem[1]) if problem.startswith("L") else None
    values = {
        "id": f"{problem}/{number}",
        "problem": ProblemRef(id=problem, sha256="0", level=level),
        "sample": number,
        "returns": discounted_returns([each.score for each in turns]),
    }
    return trajectory(*turns, **(values | more))


def ended(outcome, **more) -> Turn:
    return turn(1, outcome=outcome, **more)


def fast(speedup: float, **more) -> Turn:
    return timed(1, speedup).model_copy(update=more)


A = [
    played("L1_1", 0, ended(BROKEN), ended(WRONG), fast(2.0)),
    played("L1_1", 1, fast(0.8), fast(1.2), ended(CRASHED)),
]
B = [
    played("L1_2", 0, turn(1), ended(FORBIDDEN), ended(NOISY, score=0.3)),
    played("L1_2", 1, ended(WRONG), ended(WRONG), ended(WRONG)),
]
C = [
    played("L2_3", 0, fast(1.0), fast(3.0), fast(1.5)),
    played("L2_3", 1, fast(0.5), ended(UNWRITTEN), ended(EARLY)),
]
RUN = [*A, *B, *C]


@pytest.fixture(scope="module")
def run() -> RunMetrics:
    return measure(RUN, ratios={"L1_1": 0.5, "L1_2": 0.8})


@pytest.fixture(scope="module")
def overall(run: RunMetrics) -> GroupMetrics:
    return run.overall


def about(figure: Figure | None):
    """The figure's value, to be compared with what it must be."""
    assert figure is not None
    return pytest.approx(figure.value)


def test_counts(overall: GroupMetrics) -> None:
    counts = overall.counts
    assert (counts.problems, counts.trajectories, counts.turns) == (3, 6, 18)
    assert counts.untimed == 1  # B's first is correct, and too noisy to tell
    assert counts.without == {"eager": 0, "compile": 1, "own": 3}
    assert counts.without_usage == 18
    assert counts.stops == {"max_turns": 6}
    assert counts.kinds["correct/timed"] == 7
    assert sum(counts.kinds.values()) == 18


def test_rates_of_turns(overall: GroupMetrics) -> None:
    # Per problem, of 6 turns: A, B, C.
    assert about(overall.rates.format) == (6 + 5 + 6) / 18
    # Not built: A's syntax error, B's missing code and broken rule.
    assert about(overall.rates.compile) == (5 + 4 + 6) / 18
    assert about(overall.rates.correct) == (3 + 1 + 4) / 18
    assert (
        about(overall.rates.hack) == (0 + 1 + 2) / 18
    )  # B broke a rule, C not_written, early_done


def test_correct_and_pass_at_k(overall: GroupMetrics) -> None:
    # Samples with a correct kernel: 2 of 2, 1 of 2, 2 of 2.
    assert about(overall.correct.avg) == (1 + 1 / 2 + 1) / 3
    assert about(overall.correct.best[1]) == 5 / 6
    assert about(overall.correct.best[2]) == 1
    assert list(overall.correct.best) == [1, 2]


def test_speedup_against_eager(overall: GroupMetrics) -> None:
    # Fastest correct: A 2.0, 1.2; B 0 (not told), 0 (none); C 3.0, 0.5.
    speedup = overall.speed["eager"].speedup
    assert about(speedup.avg) == (1.6 + 0 + 1.75) / 3
    assert about(speedup.best[1]) == (1.6 + 0 + 1.75) / 3
    assert about(speedup.best[2]) == (2.0 + 0 + 3.0) / 3


@pytest.mark.parametrize(
    ("p", "avg", "best"),
    [
        ("0.5", (2 + 0 + 2) / 6, 2 / 3),  # C's 0.5 is 0.5 or more
        ("1", (2 + 0 + 1) / 6, 2 / 3),
        ("1.2", (2 + 0 + 1) / 6, 2 / 3),  # A's 1.2 counts
        ("1.5", (1 + 0 + 1) / 6, 2 / 3),
        ("2", (1 + 0 + 1) / 6, 2 / 3),
        ("3", (0 + 0 + 1) / 6, 1 / 3),
    ],
)
def test_fast_p(overall: GroupMetrics, p: str, avg: float, best: float) -> None:
    curve = overall.speed["eager"].fast[p]
    assert about(curve.avg) == avg
    assert about(curve.best[2]) == best


def test_speedup_against_compile(overall: GroupMetrics) -> None:
    # A: 2.0 * 0.5, 1.2 * 0.5; B: 0, 0; C has no ratio and is left out.
    speed = overall.speed["compile"]
    assert about(speed.speedup.avg) == (0.8 + 0) / 2
    assert about(speed.speedup.best[2]) == (1.0 + 0) / 2
    assert about(speed.fast["1"].avg) == (1 / 2 + 0) / 2
    assert speed.speedup.avg.n == 2
    assert overall.speed["eager"].speedup.avg.n == 3


def test_geometric_mean_over_solved_ones(overall: GroupMetrics) -> None:
    # Logarithms: mean of A's 2.0 and 1.2, mean of C's 3.0 and 0.5; B has none.
    geomean = overall.speed["eager"].geomean_solved
    assert geomean is not None
    assert about(geomean) == (2.0 * 1.2 * 3.0 * 0.5) ** (1 / 4)
    assert geomean.n == 2


def test_turn_one(overall: GroupMetrics) -> None:
    first = overall.by_turn[0]
    assert (first.turn, first.turns) == (1, 6)
    assert about(first.rates.format) == (2 + 1 + 2) / 6
    assert about(first.rates.compile) == (1 + 1 + 2) / 6
    assert about(first.rates.correct) == (1 + 0 + 2) / 6
    assert about(first.rates.hack) == 0
    assert about(first.score) == (0 + 1.1 + 0 + 0 + 1.3 + 0.8) / 6
    # A: 0, 0.8; B: 0, 0; C: 1.0, 0.5.
    assert about(first.speed["eager"].speedup) == (0.4 + 0 + 0.75) / 3
    assert about(first.speed["eager"].fast["1"]) == (0 + 0 + 1 / 2) / 3
    assert about(first.speed["compile"].speedup) == (0.2 + 0) / 2


def test_turn_two_and_the_best_by_then(overall: GroupMetrics) -> None:
    second = overall.by_turn[1]
    assert about(second.rates.correct) == (1 + 0 + 1) / 6
    assert about(second.rates.hack) == (0 + 1 + 1) / 6
    assert about(second.speed["eager"].speedup) == (0.6 + 0 + 1.5) / 3
    # By then A: wrong, 1.2; B: wrong, wrong; C: 3.0, 0.5 (from its first turn).
    assert about(second.best_correct) == (1 + 0 + 2) / 6
    assert about(second.best_speed["eager"].speedup) == (0.6 + 0 + 1.75) / 3
    assert about(second.best_speed["eager"].fast["3"]) == (0 + 0 + 1 / 2) / 3
    assert about(second.best_speed["compile"].speedup) == (0.3 + 0) / 2


def test_the_best_by_the_last_turn_is_the_trajectory(overall: GroupMetrics) -> None:
    last = overall.by_turn[-1]
    assert last.turn == 3
    assert last.best_correct == overall.correct.avg
    assert last.best_speed["eager"].speedup == overall.speed["eager"].speedup.avg
    assert last.best_speed["compile"].fast["1"] == overall.speed["compile"].fast["1"].avg


def test_change_from_first_to_last_turn(overall: GroupMetrics) -> None:
    change = overall.change
    assert about(change.first_correct) == (1 + 0 + 2) / 6  # A's second, both of C
    assert about(change.last_correct) == (1 + 1 + 1) / 6  # the first of each
    assert about(change.improved) == (1 + 1 + 0) / 6  # A's and B's first
    assert about(change.regressed) == (1 + 0 + 1) / 6  # A's and C's second
    assert about(change.net) == 0


def test_scores_and_returns(overall: GroupMetrics) -> None:
    # Scores: A 0 0 2.3 | 1.1 1.5 0; B 0 0 0.3 | 0 0 0; C 1.3 3.3 1.8 | 0.8 0 0.
    assert about(overall.score) == (4.9 + 0.3 + 7.2) / 18
    # gamma 0.4: A 0.368 0.92 2.3 | 1.7 1.5 0; B 0.048 0.12 0.3 | 0 0 0; C 2.908 4.02 1.8 | 0.8 0 0.
    assert about(overall.discounted_return) == (6.788 + 0.468 + 9.528) / 18
    assert about(overall.by_turn[1].discounted_return) == (0.92 + 1.5 + 0.12 + 0 + 4.02 + 0) / 6


def test_recorded_returns_count_and_not_ours() -> None:
    told = measure([played("L1_1", 0, fast(1.0), returns=(7.5,))])
    assert told.overall.discounted_return.value == 7.5


def test_levels_are_runs_of_their_own(run: RunMetrics) -> None:
    assert list(run.levels) == [1, 2]
    assert run.levels[1] == measure([*A, *B], ratios={"L1_1": 0.5, "L1_2": 0.8}).overall
    assert run.levels[2] == measure(C).overall


def test_a_problem_without_a_level_counts_overall() -> None:
    run = measure([*A, played("mine", 0, fast(1.0))])
    assert list(run.levels) == [1]
    assert run.overall.counts.problems == 2


def test_a_baseline_without_ratios_is_left_out() -> None:
    overall = measure(RUN).overall
    assert list(overall.speed) == ["eager"]
    assert list(overall.by_turn[0].best_speed) == ["eager"]
    assert overall.counts.without == {"eager": 0, "compile": 3, "own": 3}


def test_recorded_against_compile() -> None:
    config = {"gamma": 0.4, "baseline": "compile"}
    known = played("L1_1", 0, fast(1.5), config=config)
    unknown = played("L1_2", 0, fast(2.0), config=config)
    overall = measure([known, unknown], ratios={"L1_1": 0.5}).overall
    assert about(overall.speed["compile"].speedup.avg) == (1.5 + 2.0) / 2
    # T_eager / T = (T_compile / T) / (T_compile / T_eager) = 1.5 / 0.5.
    assert about(overall.speed["eager"].speedup.avg) == 3.0
    assert overall.counts.without == {"eager": 1, "compile": 0, "own": 2}


def test_a_speedup_over_a_kernel_is_over_nothing_else() -> None:
    config = {"gamma": 0.4, "baseline": {"name": "Flash", "code": "class ModelNew: ..."}}
    overall = measure([played("L1_1", 0, fast(1.5), config=config)], ratios={"L1_1": 0.5}).overall
    assert list(overall.speed) == ["own"]
    assert about(overall.speed["own"].speedup.avg) == 1.5


def test_numbers_of_a_problem(run: RunMetrics) -> None:
    a, b, c = run.problems
    assert [each.problem for each in run.problems] == ["L1_1", "L1_2", "L2_3"]
    assert (a.samples, a.turns, a.best_sample, a.best_turn) == (2, 6, 0, 3)
    assert a.speed["eager"] is not None
    assert (a.speed["eager"].best, a.speed["eager"].avg) == (2.0, pytest.approx(1.6))
    assert (b.untimed, b.best_sample, b.best_turn, b.correct) == (1, None, None, 0.5)
    later = [played("L1_1", 0, fast(1.0)), played("L1_1", 1, ended(WRONG), fast(1.5))]
    [second] = measure(later).problems
    assert (second.best_sample, second.best_turn) == (1, 2)
    assert c.speed["compile"] is None
    assert (c.best_sample, c.best_turn) == (0, 2)


def test_problems_are_in_the_order_of_level_and_number() -> None:
    levels = {"L2_1": 2, "mine": None, "L1_23": 1, "L1_3": 1, "L10_1": 10}
    refs = [ProblemRef(id=name, sha256="0", level=level) for name, level in levels.items()]
    run = measure([trajectory(fast(1.0), id=ref.id, problem=ref) for ref in refs])
    assert [each.problem for each in run.problems] == ["L1_3", "L1_23", "L2_1", "L10_1", "mine"]


def test_the_order_of_trajectories_does_not_matter(run: RunMetrics) -> None:
    mixed = list(RUN)
    random.Random(0).shuffle(mixed)
    assert measure(mixed, ratios={"L1_1": 0.5, "L1_2": 0.8}) == run


def test_intervals_are_the_same_every_time(overall: GroupMetrics) -> None:
    figure = overall.correct.avg
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.value < figure.high
    assert measure(RUN).overall.correct == overall.correct
    single = measure(A).overall.correct.avg
    assert (single.low, single.high, single.n) == (None, None, 1)


def test_metrics_come_back_from_json(run: RunMetrics) -> None:
    text = run.model_dump_json()
    assert "NaN" not in text and "Infinity" not in text
    assert RunMetrics.model_validate_json(text) == run


def test_problems_with_fewer_samples_are_left_out_of_large_k() -> None:
    overall = measure([*A, B[0]]).overall
    assert overall.correct.best[1].n == 2
    assert overall.correct.best[2].n == 1


def test_numbers_of_tokens_money_and_time() -> None:
    def spending(prompt: int, completion: int, **more) -> Turn:
        usage = Usage(prompt_tokens=prompt, completion_tokens=completion, **more)
        seconds = Seconds(queue=1.0, build=2.0, load=0.5, verify=0.25, time=0.125)
        return ended(WRONG, usage=usage, seconds=seconds)

    run = [
        played("L1_1", 0, spending(1000, 100, cached_tokens=400), spending(2000, 200)),
        played("L1_1", 1, spending(1000, 300), ended(WRONG)),
        played("L1_2", 0, spending(500, 50, reasoning_tokens=30)),
    ]
    overall = measure(run, prices=Prices(prompt=2.0, completion=10.0, cached=0.5)).overall
    assert overall.totals.prompt_tokens == 4500
    assert overall.totals.completion_tokens == 650
    assert (overall.totals.cached_tokens, overall.totals.reasoning_tokens) == (400, 30)
    # 1e-6 * ((600 * 2 + 400 * 0.5 + 100 * 10) + (4000 + 2000) + (2000 + 3000) + (1000 + 500))
    assert overall.totals.cost == pytest.approx((2400 + 6000 + 5000 + 1500) / 1e6)
    assert overall.totals.judge_seconds == pytest.approx(4 * 2.875)
    assert overall.counts.without_usage == 1


def test_cost_without_prices_is_what_the_endpoint_told() -> None:
    costs = (ended(WRONG, usage=Usage(cost=cost)) for cost in (0.25, 0.5))
    told = played("L1_1", 0, *costs)
    assert measure([told]).overall.totals.cost == 0.75
    assert measure([told], prices=Prices(prompt=1, completion=1)).overall.totals.cost is None
    assert measure(A).overall.totals.cost is None


def test_trajectories_of_different_length() -> None:
    # The first stopped at its first correct kernel, and counts in the best up to turn 2.
    run = [
        played("L1_1", 0, fast(2.0), stop_reason="stop_on"),
        played("L1_1", 1, ended(WRONG), fast(1.0)),
    ]
    second = measure(run).overall.by_turn[1]
    assert second.turns == 1
    assert about(second.rates.correct) == 1
    assert about(second.best_correct) == 1
    assert about(second.best_speed["eager"].speedup) == (2.0 + 1.0) / 2


def test_what_the_model_refused_counts_and_what_we_broke_does_not() -> None:
    refused = played("L1_1", 1, stop_reason="refused")
    broken = [
        played("L1_1", at, stop_reason=why)
        for at, why in enumerate(("model_error", "judge_error", None), 2)
    ]
    overall = measure([A[0], refused, *broken]).overall
    assert overall.counts.trajectories == 2
    assert overall.counts.stops == {"max_turns": 1, "refused": 1}
    assert about(overall.correct.avg) == 1 / 2
    assert about(overall.rates.format) == 1  # of the turns that there are


def test_a_model_that_refuses_everything_has_figures_of_zero() -> None:
    refused = [played("L1_1", at, stop_reason="refused", model="no") for at in range(2)]
    overall = measure(refused).overall
    assert overall.counts.stops == {"refused": 2}
    assert (about(overall.correct.avg), about(overall.speed["eager"].speedup.avg)) == (0, 0)
    assert overall.by_turn == ()
    assert measure([*A, *refused]).models.keys() == {"m", "no"}


def test_unfinished_trajectories_count_by_what_they_have() -> None:
    overall = measure([played("L1_1", 0, fast(2.0), stop_reason=None)]).overall
    assert overall.counts.stops == {"running": 1}
    assert about(overall.correct.avg) == 1


@pytest.mark.parametrize(
    ("trajectories", "more", "said"),
    [
        ([], {}, "nothing to measure"),
        ([played("L1_1", 0, stop_reason="model_error")], {}, "nothing to measure"),
        (A, {"ratios": {"L1_1": 0.0}}, "ratio of L1_1 is 0.0"),
        (A, {"ratios": {"L1_1": math.nan}}, "ratio of L1_1 is nan"),
        (A, {"ratios": {"L1_1": math.inf}}, "ratio of L1_1 is inf"),
    ],
)
def test_bad_input(trajectories: list[Trajectory], more: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measure(trajectories, **more)


# Two trajectories of two turns, both pruned; one continues in two forks.
FIRST = ended(WRONG, usage=Usage(prompt_tokens=1))
TRUNK = played("L1_1", 0, FIRST, fast(2.0), stop_reason="pruned", id="trunk")
PRUNED = played("L1_1", 1, ended(CRASHED), ended(WRONG), stop_reason="pruned", id="pruned")
FORKS = [
    played("L1_1", 0, *TRUNK.turns, fast(3.0), id="fork0", parent="trunk"),
    played("L1_1", 1, *TRUNK.turns, ended(WRONG), id="fork1", parent="trunk"),
]


@pytest.fixture(scope="module")
def tree() -> GroupMetrics:
    return measure([TRUNK, PRUNED, *FORKS]).overall


def test_samples_of_a_tree_are_its_leaves(tree: GroupMetrics) -> None:
    assert tree.counts.trajectories == 2
    assert about(tree.correct.avg) == 1  # both forks have the trunk's correct turn
    assert about(tree.speed["eager"].speedup.avg) == (3.0 + 2.0) / 2


def test_turns_of_a_tree_are_counted_once(tree: GroupMetrics) -> None:
    assert tree.counts.turns == 2 + 2 + 1 + 1
    assert tree.totals.prompt_tokens == 1
    assert about(tree.rates.correct) == 2 / 6
    assert [each.turns for each in tree.by_turn] == [2, 2, 2]


def test_best_by_turn_of_a_tree_is_of_what_stood_then(tree: GroupMetrics) -> None:
    # After two turns: the trunk with 2.0 and the pruned one with nothing, not the trunk twice.
    assert about(tree.by_turn[1].best_speed["eager"].speedup) == (2.0 + 0) / 2
    assert about(tree.by_turn[2].best_speed["eager"].speedup) == (3.0 + 2.0) / 2


def test_a_trunk_that_goes_on_itself_is_a_leaf() -> None:
    trunk = played("L1_1", 0, ended(WRONG), fast(2.0), fast(4.0), id="trunk")
    fork = played("L1_1", 1, *trunk.turns[:2], ended(WRONG), id="fork", parent="trunk")
    overall = measure([trunk, fork]).overall
    assert (overall.counts.trajectories, overall.counts.turns) == (2, 4)
    assert about(overall.speed["eager"].speedup.avg) == (4.0 + 2.0) / 2


@pytest.mark.parametrize(("number", "stop"), [(0, "model_error"), (None, "interrupted")])
def test_a_continued_episode_is_one_sample(number: int | None, stop: str) -> None:
    first = played("L1_1", number, fast(2.0), stop_reason=stop, id="first")
    again = played("L1_1", number, *first.turns, ended(WRONG), id="again", parent="first")
    counts = measure([first, again]).overall.counts
    assert (counts.trajectories, counts.turns) == (1, 2)


def test_a_sample_that_was_cut_off_gives_way_to_the_next_try() -> None:
    failed = played("L1_1", 0, ended(WRONG), stop_reason="judge_error", id="failed")
    again = played("L1_1", 0, fast(2.0), id="again")
    overall = measure([failed, again]).overall
    assert overall.counts.trajectories == 1
    assert about(overall.correct.avg) == 1
    assert overall.counts.turns == 2  # both were played


@pytest.mark.parametrize("number", [0, None])
def test_finished_samples_with_the_same_number_all_count(number: int | None) -> None:
    run = [played("L1_1", number, fast(1.0), id=name) for name in ("one", "other")]
    assert measure(run).overall.counts.trajectories == 2


def test_of_cut_off_samples_with_the_same_number_the_last_counts() -> None:
    run = [
        played("L1_1", 0, *turns, id=str(len(turns)), stop_reason=None)
        for turns in ([ended(WRONG)], [fast(1.0)] * 2)
    ]
    overall = measure(run).overall
    assert overall.counts.trajectories == 1
    assert about(overall.correct.avg) == 1


def test_equal_turns_of_different_samples_are_two_turns() -> None:
    # The same reply of two samples was asked for twice.
    run = [played("L1_1", 0, turn(1)), played("L1_1", 1, turn(1))]
    assert measure(run).overall.counts.turns == 2


def test_parents_in_a_circle_are_read_all_the_same() -> None:
    run = [
        played("L1_1", 0, fast(1.0), id="a", parent="b"),
        played("L1_1", 1, fast(1.0), id="b", parent="a"),
    ]
    assert measure(run).overall.correct.avg.value == 1


KERNELBENCH = [
    # correct, reference seconds, kernel seconds, geometric mean of correct ones, fast_1, fast_0.5
    ([1, 0, 1, 1, 0], [0.1, 0.15, 0.2, 0.05, 0.3], [0.2, 0.15, 0.3, 0.01, 0.2], 1.185631101, 0.2, 0.4),
    ([1, 1, 1, 1, 0], [0.24, 0.31, 100, 1e-4, 0.3], [0.3, 0.3, 200, 1e-4, 0.3], 0.801816719, 0.2, 0.6),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "reference", "kernel", "geomean", "fast1", "fast05"), KERNELBENCH
)
def test_kernelbench_fixtures(right, reference, kernel, geomean, fast1, fast05) -> None:
    """KernelBench's score tests (commit 423217d): five problems, one sample each.

    Its fast_p counts speedups above p, Kevin's and ours those of at least p. The fixtures have one
    speedup of exactly 0.5 each, and the second has one of exactly 1: one problem of five each.
    """
    rows = list(zip(right, reference, kernel, strict=True))
    run = [
        played(f"L1_{at}", 0, fast(slow / quick) if good else ended(WRONG))
        for at, (good, slow, quick) in enumerate(rows, start=1)
    ]
    speed = measure(run).overall.speed["eager"]
    assert speed.geomean_solved is not None
    assert speed.geomean_solved.value == pytest.approx(geomean, abs=1e-7)
    exactly = {
        p: sum(good and slow / quick == p for good, slow, quick in rows) / 5 for p in (0.5, 1.0)
    }
    assert about(speed.fast["1"].avg) == fast1 + exactly[1.0]
    assert about(speed.fast["0.5"].avg) == fast05 + exactly[0.5]


def test_kernelbench_fixture_without_a_correct_kernel() -> None:
    # KernelBench says 0 for the geometric mean of nothing; we say that there is none.
    speed = measure([played(f"L1_{at}", 0, ended(WRONG)) for at in range(5)]).overall.speed["eager"]
    assert speed.geomean_solved is None
    assert speed.fast["0.5"].avg.value == 0


def test_a_speedup_with_a_wide_interval_counts_by_its_median() -> None:
    noisy = NOISY.model_copy(update={"speedup": 2.5, "speedup_interval": (1.0, 4.0)})
    told = measure([played("L1_1", 0, fast(0.9), ended(noisy))])
    (speed,) = (problem.speed["eager"] for problem in told.problems)
    assert speed is not None and (speed.best, speed.fast["1"], speed.fast["2"]) == (2.5, 1.0, 1.0)
    assert told.overall.counts.untimed == 0 and told.overall.counts.kinds["correct/too_noisy"] == 1
