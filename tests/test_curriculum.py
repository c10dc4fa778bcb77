"""A curriculum goes from stage to stage by success rate; its draws follow from seed and state
alone.
"""

import pickle
import threading
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from episodes import WRONG, correct

from kevin_env.curriculum import Curriculum, CurriculumState, MixedDifficulty
from kevin_env.difficulty import measured
from kevin_env.outcome import Correct
from kevin_env.problem import Problem
from kevin_env.selection import find_problems

NOISY = Correct(message="Correct.", kind="too_noisy")
TOYS = [
    Problem(id=f"{level}{name}", source="", name=name, level=level)
    for level in (3, 1, 2)
    for name in "abcd"
]


def make(**arguments) -> Curriculum:
    return Curriculum(TOYS, **{"window": 4, "promote_at": 0.5, "review": 0.0, **arguments})


def ids(problems: list[Problem]) -> list[str]:
    return [problem.id for problem in problems]


def test_the_next_level_begins_at_the_success_rate_over_a_full_window() -> None:
    plan = make()
    assert [{problem.level for problem in stage} for stage in plan.stages] == [{1}, {2}, {3}]
    assert plan.success_rate is None
    for success in (True, True, True):
        plan.record("1a", success)
    assert (plan.stage, plan.success_rate) == (0, 1.0)
    plan.record("1b", False)
    assert (plan.stage, plan.success_rate) == (1, None)
    for success in (True, False, False, False, False, True, False):
        plan.record("2a", success)
        assert plan.stage == 1
    plan.record("2c", True)
    assert plan.stage == 2
    for _ in range(20):
        plan.record("3a", True)
    assert plan.stage == 2 and plan.success_rate == 1.0


def test_only_the_stages_own_episodes_lead_on() -> None:
    plan = make()
    for _ in range(10):
        plan.record("2a", True)
        plan.record("3a", True)
    assert (plan.stage, plan.success_rate) == (0, None)
    assert plan.state.solved == {"2a": 10, "3a": 10}


@pytest.mark.parametrize(
    ("least_speedup", "result", "success"),
    [
        (0.0, WRONG, False),
        (0.0, [WRONG, NOISY, WRONG], True),
        (0.0, [], False),
        (1.5, [WRONG, correct(1.4), NOISY], False),
        (1.5, [NOISY.model_copy(update={"speedup": 2.0, "speedup_interval": (1.1, 3.0)})], False),
        (1.5, [correct(1.6), WRONG], True),
        (1.5, True, True),
        (1.5, np.float64(1.9) >= 1.8, True),  # as from the scores of `make_vec`
    ],
)
def test_what_counts_as_a_success(least_speedup: float, result, success: bool) -> None:
    plan = make(least_speedup=least_speedup)
    assert plan.record(TOYS[4], result) is success
    assert plan.state.tried == {"1a": 1} and plan.state.solved == {"1a": int(success)}


def test_a_score_and_a_stranger_are_refused() -> None:
    plan = make()
    for other in (0.3, 1, np.float64(1.3), "correct", [True]):
        with pytest.raises(TypeError, match="give True or False, or the outcomes of the turns"):
            plan.record("1a", other)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="'9z' is not in this curriculum"):
        plan.record("9z", True)
    assert plan.state.tried == {}


def test_each_problem_of_a_stage_comes_once_before_any_comes_again() -> None:
    plan = make(review=0.3)
    first, second = ids(plan.sample(4)), ids(plan.sample(4))
    assert sorted(first) == sorted(second) == ["1a", "1b", "1c", "1d"]
    assert len({tuple(ids(make(seed=seed).sample(4))) for seed in range(20)}) > 10
    for _ in range(4):
        plan.record("1a", True)
    own = [id for id in ids(plan.sample(60)) if id.startswith("2")]
    assert all(
        sorted(own[at : at + 4]) == ["2a", "2b", "2c", "2d"]
        for at in range(0, len(own) // 4 * 4, 4)
    )


def test_the_review_comes_from_all_stages_before() -> None:
    plan = make(review=0.25)
    for id in ("1a", "2a"):
        for _ in range(4):
            plan.record(id, True)
    levels = Counter(problem.level for problem in plan.sample(4000))
    assert levels[1] + levels[2] == pytest.approx(1000, abs=100)
    assert levels[1] == pytest.approx(levels[2], abs=100)
    alone = make(review=0.0)
    for _ in range(4):
        alone.record("1a", True)
    assert {problem.level for problem in alone.sample(200)} == {2}


def test_it_goes_on_from_its_state_as_if_it_had_not_stopped() -> None:
    plan, other = make(review=0.5, seed=3), make(review=0.5, seed=3)
    for number in range(6):
        plan.record(plan.sample(3)[0], number % 2 == 0)
    text = plan.state.model_dump_json()
    other.restore(CurriculumState.model_validate_json(text))
    assert other.state == plan.state
    for _ in range(5):
        assert ids(plan.sample(7)) == ids(other.sample(7))
        assert plan.record("2a", True) is other.record("2a", True)
        assert (plan.stage, plan.success_rate) == (other.stage, other.success_rate)
    assert plan.stage == 2
    with pytest.raises(ValueError, match="other problems or stages"):
        Curriculum(TOYS[:8]).restore(plan.state)


def test_it_may_be_sent_to_another_process() -> None:
    plan, mixed = make(), MixedDifficulty(TOYS, bands=2, seed=3)
    plan.record(plan.sample()[0], True)
    for source in (plan, mixed):
        other = pickle.loads(pickle.dumps(source))
        assert ids(other.sample(5)) == ids(source.sample(5))


def test_bands_follow_the_measured_difficulty() -> None:
    plan = Curriculum("train", by="difficulty", bands=4)
    assert {each.id for stage in plan.stages for each in stage} == {
        each.id for each in find_problems("train")
    }
    bands = [
        [figures.difficulty for each in stage if (figures := measured(each))]
        for stage in plan.stages
    ]
    sizes = [len(stage) for stage in plan.stages]
    assert max(sizes) - min(sizes) <= 1
    for easier, harder in pairwise(bands):
        assert max(easier) <= min(harder)
    unknown = Problem(id="unknown", source="", name="unknown")
    mixed = Curriculum([unknown, "L10_6_PBKDF2", "L1_23_Softmax"], by="difficulty", bands=3)
    assert [ids(list(stage)) for stage in mixed.stages] == [
        ["L10_6_PBKDF2"],
        ["L1_23_Softmax"],
        ["unknown"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"promote_at": 1.5}, "between 0 and 1"),
        ({"review": -0.1}, "between 0 and 1"),
        ({"by": "size"}, "it may be 'level' or 'difficulty'"),
        ({"by": "difficulty", "bands": 13}, "number of problems, 12"),
    ],
)
def test_bad_arguments_are_one_clear_line(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        make(**arguments)
    assert "\n" not in str(caught.value)


def test_many_threads_lose_no_record_and_no_draw() -> None:
    plan = make(window=10_000)

    def work() -> None:
        for _ in range(200):
            plan.record(plan.sample()[0], True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = plan.state
    assert (state.drawn, state.dealt, len(state.recent)) == (1600, 1600, 1600)
    assert state.tried == dict.fromkeys(("1a", "1b", "1c", "1d"), 400)


def band_of(mixed: MixedDifficulty, problem: Problem) -> int:
    return next(number for number, band in enumerate(mixed.bands) if problem in band)


def test_every_batch_has_all_difficulties() -> None:
    mixed = MixedDifficulty("train", bands=4)
    for easier, harder in pairwise([[measured(each) for each in band] for band in mixed.bands]):
        assert max(each.difficulty for each in easier if each) <= min(
            each.difficulty for each in harder if each
        )
    batches = [mixed.sample(8) for _ in range(3)]
    for batch in batches:
        assert Counter(band_of(mixed, problem) for problem in batch) == dict.fromkeys(range(4), 2)
    first = [[band_of(mixed, batch[at]) for batch in batches] for at in range(4)]
    assert len(set(map(tuple, first))) > 1  # no band is always the first
    assert ids(batches[0]) == ids(MixedDifficulty("train", bands=4).sample(8)) != ids(batches[1])
    assert ids(batches[2]) == ids(MixedDifficulty("train", bands=4, drawn=16).sample(8))


def test_a_level_is_drawn_from_without_what_is_held_out() -> None:
    held_out = {problem.id for problem in find_problems("held_out")}
    for source in (
        MixedDifficulty("L1", bands=2),
        Curriculum("L1"),
        Curriculum(["L1", "L2"], by="difficulty"),
    ):
        stages = source.bands if isinstance(source, MixedDifficulty) else source.stages
        found = {problem.id for stage in stages for problem in stage}
        assert found and not found & held_out
    assert ids(list(Curriculum(["L1_23_Softmax"]).stages[0])) == ["L1_23_Softmax"]
