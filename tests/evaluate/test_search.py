"""The next step of a search, given the recorded episodes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from trajectories import RIGHT, timed, trajectory, turn

from kevin_env.app.evaluate.search import Past, Plan, Play, Shape, fork, plan
from kevin_env.outcome import Correct
from kevin_env.record import StopReason, Trajectory

BEAM = Shape(samples=4, turns=6, rounds=3, keep=2)


def past(sample: int, *merits: float, stop: StopReason | None = None, id: str = "") -> Past:
    return Past(id or f"{sample}/{len(merits)}", sample, stop, merits)


def test_serially_every_sample_is_played_to_its_end() -> None:
    shape = Shape(samples=4, turns=3)
    running, left = past(1, 1.0), past(2, 1.0, 2.0, stop="judge_error")
    found = plan(shape, [past(0, 1.0, 1.0, 1.0, stop="max_turns"), running, left])
    assert found == Plan((Play(1, 3, running), Play(2, 3, left), Play(3, 3)))
    assert [play.begin for play in found.plays] == [1, 2, 0]


@pytest.mark.parametrize("stop", ["max_turns", "stop_on", "context_length", "refused"])
def test_what_ended_for_good_is_left_alone(stop: StopReason) -> None:
    assert plan(Shape(1, 3), [past(0, 1.0, stop=stop)]) == Plan()


@pytest.mark.parametrize("stop", [None, "judge_error", "model_error", "interrupted"])
def test_what_failed_is_taken_up_again_and_then_counts_no_more(stop: StopReason | None) -> None:
    failed = past(0, 1.0, stop=stop)
    assert plan(Shape(1, 3), [failed]).plays == (Play(0, 3, failed),)
    if stop:
        assert plan(Shape(1, 3), [failed, past(0, 1.0, 1.0, 1.0, stop="max_turns")]) == Plan()


def test_one_that_was_killed_after_its_last_turn_is_ended() -> None:
    whole = past(0, 1.0, 2.0)
    assert plan(Shape(1, 2), [whole]).plays == (Play(0, 2, whole),)


def test_a_beam_waits_until_a_round_is_over() -> None:
    pasts = [past(0, 1.0, 2.0), past(1, 1.0), past(2, -1.0, -1.0)]
    assert plan(BEAM, pasts) == Plan((Play(1, 2, pasts[1]), Play(3, 2)))


def test_the_best_of_a_round_take_the_place_of_the_others() -> None:
    pasts = [past(0, 1.0, -1.0), past(1, -1.0, 3.0), past(2, 0.5, 0.7), past(3, -1.0, -1.0)]
    found = plan(BEAM, pasts)
    assert found.prunes == (pasts[2], pasts[3])
    assert found.plays == (
        Play(0, 4, pasts[0]), Play(1, 4, pasts[1]), Play(2, 4, pasts[1], fork_at=2), Play(3, 4, pasts[0], fork_at=2)
    )  # fmt: skip
    assert [play.begin for play in found.plays] == [2] * 4


def test_correct_without_a_time_is_better_than_wrong_and_of_equals_the_first_goes_on() -> None:
    pasts = [past(0, -1.0, -1.0), past(1, -1.0, -1.0), past(2, 0.0, -1.0), past(3, -1.0, -1.0)]
    assert {each.sample for each in plan(BEAM, pasts).prunes} == {1, 3}


def test_what_has_ended_keeps_its_place_and_nothing_goes_on_from_it() -> None:
    ended = [past(0, 9.0, stop="refused"), past(1, 1.0, 9.0, stop="stop_on")]
    pasts = [*ended, past(2, 1.0, 1.0), past(3, 1.0, 2.0)]
    assert plan(BEAM, pasts) == Plan((Play(2, 4, pasts[2]), Play(3, 4, pasts[3])))
    one_left = [*pasts[:3], past(3, stop="context_length")]
    assert plan(BEAM, one_left) == Plan((Play(2, 4, pasts[2]),))


def test_a_survivor_that_ended_later_was_a_survivor_all_the_same() -> None:
    best = past(0, 3.0, 3.0, stop="context_length")
    pruned = [past(sample, 1.0, 1.0, stop="pruned") for sample in (2, 3)]
    pasts = [best, past(1, 2.0, 2.0), *pruned]
    found = plan(BEAM, pasts)
    assert found.plays == (
        Play(1, 4, pasts[1]), Play(2, 4, best, fork_at=2), Play(3, 4, pasts[1], fork_at=2),
    )  # fmt: skip


def test_merits_are_told_by_outcomes() -> None:
    noisy = turn(1, outcome=Correct(kind="too_noisy", message="Correct."))
    made = Past.of(trajectory(turn(1), noisy, timed(3, 1.5), sample=2))
    assert (made.merits, made.sample, made.stop_reason) == ((-1.0, 0.0, 1.5), 2, "max_turns")
    with pytest.raises(ValueError, match="no sample number"):
        Past.of(trajectory(RIGHT))


def test_a_fork_is_an_unfinished_episode_of_its_own() -> None:
    parent = trajectory(turn(1), timed(2, 1.5), timed(3, 2.0), sample=0, returns=(1.0, 1.0, 1.0))
    child = fork(parent, 2, sample=3)
    assert (child.turns, child.parent, child.sample) == (parent.turns[:2], parent.episode_id, 3)
    assert (child.stop_reason, child.returns) == (None, ())
    assert child.episode_id not in (parent.episode_id, fork(parent, 2, sample=3).episode_id)


@dataclass
class Played:
    """A simulated search, in which a turn's worth depends on its sample, number and ancestors."""

    shape: Shape
    episodes: dict[str, Trajectory] = field(default_factory=dict)
    turns: int = 0

    def past(self) -> Sequence[Past]:
        """In the order of a trajectory file: what has ended, then what runs."""
        ended = [each for each in self.episodes.values() if each.stop_reason]
        running = [each for each in self.episodes.values() if not each.stop_reason]
        return [Past.of(each) for each in (*ended, *running)]

    def put(self, episode: Trajectory) -> None:
        self.episodes.pop(episode.episode_id, None)
        self.episodes[episode.episode_id] = episode

    def go(self, stop: Callable[[], bool]) -> bool:
        """Plays turns until all is done (True), or it is stopped anywhere between two writes."""
        while (now := plan(self.shape, self.past())) != Plan():
            for pruned in now.prunes:
                if stop():
                    return False
                episode = self.episodes[pruned.episode_id]
                self.put(episode.model_copy(update={"stop_reason": "pruned"}))
            for play in now.plays:
                if not self.play(play, stop):
                    return False
        return True

    def play(self, play: Play, stop: Callable[[], bool]) -> bool:
        if play.past is None:
            episode = trajectory(id=f"new {play.sample}", sample=play.sample, stop_reason=None)
        else:
            episode = self.episodes[play.past.episode_id]
            episode = episode if play.fork_at is None else fork(episode, play.fork_at, play.sample)
        if stop():
            return False
        self.put(episode)
        while len(episode.turns) < play.until:
            if stop():
                return False
            number = len(episode.turns) + 1
            seed = f"{play.sample}/{number}/{[each.score for each in episode.turns]}"
            worth = random.Random(seed).random()
            episode = episode.model_copy(update={"turns": (*episode.turns, timed(number, worth))})
            self.turns += 1
            self.put(episode)
        if play.until == self.shape.turns:
            if stop():
                return False
            self.put(episode.model_copy(update={"stop_reason": "max_turns"}))
        return True

    @property
    def result(self) -> list[tuple[int | None, str | None, list[float]]]:
        """Every episode by sample, ending and turns."""
        found = [
            (each.sample, each.stop_reason, [t.score for t in each.turns])
            for each in self.episodes.values()
        ]
        return sorted(found, key=repr)


@pytest.mark.parametrize(
    "shape", [Shape(3, 2), Shape(4, 6, 3, 2), Shape(5, 4, 2, 2), Shape(2, 4, 4, 2)]
)
def test_a_search_that_is_killed_again_and_again_ends_as_an_unbroken_one(shape: Shape) -> None:
    whole = Played(shape)
    assert whole.go(lambda: False)
    assert whole.turns == shape.samples * shape.turns, "as many turns as serially"
    assert [len(turns) for _, stop, turns in whole.result if stop == "max_turns"] == [
        shape.turns
    ] * shape.samples
    pruned = (shape.samples - shape.keep) * (shape.rounds - 1) if shape.rounds > 1 else 0
    assert sum(stop == "pruned" for _, stop, _ in whole.result) == pruned
    dice, kills = random.Random(7), 0
    for _ in range(20):
        broken = Played(shape)
        while not broken.go(lambda: dice.random() < 0.2):
            kills += 1
        assert (broken.result, broken.turns) == (whole.result, whole.turns)
    assert kills > 20
