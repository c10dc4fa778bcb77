import itertools
import math

import pytest
from trajectories import BROKEN, RIGHT, timed, trajectory, turn

from kevin_env.advantage import (
    Baseline,
    TurnSample,
    advantages,
    group_of,
    informative,
    samples_of,
    training_samples,
)
from kevin_env.pools.scripted import SCRIPTED_CPU
from kevin_env.record import Message, ProblemRef, StopReason, Trajectory
from kevin_env.score import discounted_returns

BASELINES: tuple[Baseline, ...] = ("flat", "flat_std", "leave_one_out", "grpo")


def scored(*scores: float, id: str = "e1", **more) -> Trajectory:
    return trajectory(
        *(turn(number, score=score) for number, score in enumerate(scores, 1)), id=id, **more
    )


def returned(*returns: tuple[float, ...], group: str = "L1_23_Softmax") -> tuple[TurnSample, ...]:
    """Samples of trajectories that have just these returns."""
    problem = ProblemRef(id=group, sha256="0")
    return training_samples(
        scored(*each, id=f"{group}{number}", problem=problem, returns=each, config={})
        for number, each in enumerate(returns)
    )


def test_a_sample_holds_the_turn_as_it_was() -> None:
    sent = (Message(role="system", content="Be brief."), Message(role="user", content="Go on."))
    episode = trajectory(turn(1), RIGHT, BROKEN.model_copy(update={"messages": sent}))
    first, second, third = samples_of(episode)
    assert third.prompt == sent
    assert (second.reply, second.category, second.kind, second.speedup, second.score) == (
        ("Code.", "correct", "timed", 2.0, 2.3)
    )
    assert (first.reasoning, third.reasoning) == (None, "I think it should be foo.")
    assert [each.turn_return for each in (first, second, third)] == pytest.approx([0.92, 2.3, 0.0])
    assert [
        (each.episode_id, each.problem, each.turn, each.by_person) for each in (first, third)
    ] == ([("e1", "L1_23_Softmax", 1, False), ("e1", "L1_23_Softmax", 3, False)])
    assert first.group == third.group == group_of(episode)
    line = third.model_dump(mode="json", by_alias=True)
    assert (line["return"], line["prompt"][0]) == (0.0, {"role": "system", "content": "Be brief."})


def test_recorded_returns_count_and_missing_ones_are_made() -> None:
    assert [each.turn_return for each in samples_of(scored(1.0, 2.0, returns=(7.0, 8.0)))] == [
        7.0,
        8.0,
    ]
    config = {"gamma": 0.5, "returns": "max"}
    assert [each.turn_return for each in samples_of(scored(1.0, 3.0, config=config))] == [1.5, 3.0]


def test_equal_sums_of_scores_have_their_own_advantages() -> None:
    """Kernel-rl's failure: it sums the rewards of a trajectory, sees a constant group here and
    drops it.
    """
    late, early = scored(0.0, 0.0, 1.3, 0.0), scored(1.3, 0.0, 0.0, 0.0, id="e2")
    samples = training_samples([late, early])
    assert [each.turn_return for each in samples] == pytest.approx(
        [0.208, 0.52, 1.3, 0.0, 1.3, 0.0, 0.0, 0.0]
    )
    assert advantages(samples, "flat") == pytest.approx(
        [-0.208, 0.104, 0.884, -0.416, 0.884, -0.416, -0.416, -0.416]
    )
    assert informative(samples) == samples


def test_kevins_baseline_is_the_mean_of_all_turns_over_their_deviation() -> None:
    samples = returned((1.0, 2.0), (3.0, 6.0))
    assert advantages(samples, "flat") == pytest.approx([-2.0, -1.0, 0.0, 3.0])
    deviation = math.sqrt((4 + 1 + 0 + 9) / 3) + 1e-4
    assert advantages(samples) == advantages(samples, "flat_std")
    assert advantages(samples) == pytest.approx([value / deviation for value in (-2, -1, 0, 3)])


def test_leave_one_out_compares_with_the_others_at_the_same_turn() -> None:
    samples = returned((1.0, 4.0), (2.0, 10.0), (6.0,))
    assert advantages(samples, "leave_one_out") == pytest.approx(
        [1 - (2 + 6) / 2, 4 - 10, 2 - (1 + 6) / 2, 10 - 4, 6 - (1 + 2) / 2]
    )


def test_grpo_divides_by_the_spread_at_the_same_turn() -> None:
    samples = returned((1.0, 4.0), (2.0, 10.0), (6.0,))
    first, second = math.sqrt((4 + 1 + 9) / 2) + 1e-4, math.sqrt(9 + 9) + 1e-4
    assert advantages(samples, "grpo") == pytest.approx(
        [-2 / first, -3 / second, -1 / first, 3 / second, 3 / first]
    )


@pytest.mark.parametrize("baseline", BASELINES)
def test_groups_are_apart_whatever_their_order(baseline: Baseline) -> None:
    one, other = (
        returned((1.0, 2.0), (3.0, 5.0)),
        returned((100.0, 0.0), (50.0, 7.0), group="L2_99"),
    )
    alone = advantages(one, baseline) + advantages(other, baseline)
    mixed = [each for pair in itertools.zip_longest(one, other) for each in pair]
    together = dict(zip(mixed, advantages(mixed, baseline), strict=True))
    assert [together[each] for each in one + other] == pytest.approx(alone)
    assert sum(alone) == pytest.approx(0.0)
    assert any(alone)


@pytest.mark.parametrize("baseline", BASELINES)
def test_nothing_is_learnt_from_a_constant_group(baseline: Baseline) -> None:
    constant = returned((0.3, 0.3), (0.1 + 0.2, 0.3), group="L2_99")
    mixed = (*constant, *returned((1.0, 2.0), (3.0, 5.0)))
    assert advantages(mixed, baseline)[:4] == (0.0,) * 4
    assert informative(mixed, baseline) == mixed[4:]
    assert informative((), baseline) == () == advantages((), baseline)


def test_what_is_constant_depends_on_what_is_compared() -> None:
    samples = returned((1.0, 2.0, 9.0), (1.0, 3.0))
    assert [each.turn_return for each in informative(samples, "flat")] == [1.0, 2.0, 9.0, 1.0, 3.0]
    for baseline in ("leave_one_out", "grpo"):
        assert [each.turn_return for each in informative(samples, baseline)] == [2.0, 3.0]
        assert [bool(value) for value in advantages(samples, baseline)] == [
            False, True, False, False, True,
        ]  # fmt: skip


def test_a_group_is_what_can_be_compared() -> None:
    config = {"score": "kevin", "gamma": 0.4, "device": "cuda:0"}
    base = scored(1.0, config=config)
    same = scored(0.0, id="e2", config=config | {"device": "cuda:3"}, sample=5, secret="s")
    assert group_of(base) == group_of(same)
    assert group_of(base).startswith("L1_23_Softmax/")
    others = (
        scored(1.0, config=config | {"score": "milestones"}),
        scored(1.0, config=config | {"gamma": 0.8}),
        scored(1.0, config=config, model="another"),
        scored(1.0, config=config, problem=ProblemRef(id="L1_23_Softmax", sha256="1")),
        scored(1.0, config=config, problem=ProblemRef(id="L1_24_LogSoftmax", sha256="0")),
        scored(1.0, config=config, hardware=SCRIPTED_CPU.model_copy(update={"name": "another"})),
        scored(1.0, config=config, hardware=None),
    )
    groups = [group_of(each) for each in (base, *others)]
    assert len({*groups, group_of(base, "step 1"), group_of(base, "step 2")}) == len(groups) + 2
    assert {each.group for each in training_samples([base], "step 1")} == {group_of(base, "step 1")}


@pytest.mark.parametrize("reason", [None, "interrupted", "pruned", "model_error", "judge_error"])
def test_an_episode_that_was_cut_off_is_not_trained_on(reason: StopReason | None) -> None:
    cut, whole = scored(1.0, 2.0, stop_reason=reason), scored(3.0, id="e2")
    assert {each.episode_id for each in training_samples([cut, whole])} == {"e2"}
    assert len(samples_of(cut)) == 2


@pytest.mark.parametrize("reason", ["max_turns", "stop_on", "refused", "context_length"])
def test_an_episode_that_its_model_ended_is_trained_on(reason: StopReason) -> None:
    assert len(training_samples([scored(1.0, 2.0, stop_reason=reason)])) == 2


def test_an_episode_that_a_person_took_part_in_is_not_trained_on() -> None:
    helped = trajectory(turn(1), turn(2, by_person=True))
    assert training_samples([helped]) == ()
    assert [each.by_person for each in samples_of(helped)] == [False, True]


def test_of_episodes_with_one_id_the_last_counts() -> None:
    assert [each.turn_return for each in training_samples([scored(1.0), scored(2.0)])] == [2.0]


def forked(*scores: float, id: str, parent: str | None, shared: tuple = ()) -> Trajectory:
    own = tuple(
        turn(number, score=score, reply=id) for number, score in enumerate(scores, len(shared) + 1)
    )
    return trajectory(*shared, *own, id=id, parent=parent)


@pytest.mark.parametrize("root_is_there", [True, False])
def test_a_turn_that_forks_share_stands_once(root_is_there: bool) -> None:
    root = trajectory(timed(1, 0.7), turn(2, score=5.0), id="root")
    left = forked(2.0, id="left", parent="root", shared=root.turns[:1])
    right = forked(0.0, 3.0, id="right", parent="root", shared=root.turns[:1])
    lower = forked(1.0, id="lower", parent="right", shared=right.turns[:2])
    samples = training_samples([lower, right, left, *([root] if root_is_there else [])])
    branches = [
        (1.0, 2.0),
        (1.0, 0.0, 3.0),
        (1.0, 0.0, 1.0),
        *([(1.0, 5.0)] if root_is_there else []),
    ]
    firsts = [discounted_returns(each)[0] for each in branches]
    [first] = [each for each in samples if each.turn == 1]
    assert first.turn_return == pytest.approx(sum(firsts) / len(firsts))
    [second] = [each for each in samples if (each.turn, each.reply) == (2, "right")]
    assert second.turn_return == pytest.approx((0.4 * 3.0 + 0.4 * 1.0) / 2)
    assert len(samples) == 1 + len({"left", "right"}) + 2 + root_is_there


def test_equal_turns_of_independent_episodes_stand_each_for_itself() -> None:
    assert len(training_samples([scored(1.0), scored(1.0, id="e2")])) == 2
    circle = [scored(1.0, id="a", parent="b"), scored(1.0, id="b", parent="a")]
    assert len(training_samples(circle)) == 2
