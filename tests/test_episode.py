import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from episodes import REPLY, WRONG, another, correct, noisy, problem_file

from kevin_env.episode import Episode, EpisodeError
from kevin_env.outcome import Correct
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.record import Reply, Trajectory
from kevin_env.recorder import Recorder, partial_path, read_trajectories
from kevin_env.settings import Settings
from kevin_env.turn import turn_secret


@pytest.fixture
def problem(tmp_path):
    return problem_file(tmp_path)


def started(problem, script, recorder=None, **settings) -> Episode:
    episode = Episode(
        problem, ScriptedPool(script), Settings.of(settings), recorder=recorder, model="m"
    )
    episode.start()
    return episode


def test_an_episode_from_start_to_end(problem) -> None:
    episode = Episode(problem, ScriptedPool([WRONG, correct(2.0)]), Settings(max_turns=2))
    first = episode.start()
    assert first[-1].role == "user" and "Doubles x." in first[-1].content
    assert episode.messages == first
    turn = episode.submit(REPLY)
    assert (turn.turn, turn.messages, turn.outcome) == (1, first, WRONG)
    assert not episode.done
    assert any(turn.feedback.strip() in message.content for message in episode.messages)
    last = episode.submit(Reply(content=another(2), reasoning="Hm."))
    thoughts = "Hm.\n\nDouble it."
    assert (episode.done, episode.stop_reason, last.reasoning) == (True, "max_turns", thoughts)
    assert episode.returns == pytest.approx((0.4 * 2.3, 2.3))
    assert episode.trajectory.turns == episode.turns


def test_the_same_code_again_has_the_result_that_it_had(problem) -> None:
    episode = started(problem, [correct(2.0), correct(3.0)], max_turns=4)
    first = episode.submit(REPLY)
    again = episode.submit(REPLY.replace("import triton\n", "import triton  # once more\n\n"))
    assert (again.outcome, again.secret) == (first.outcome, first.secret)
    assert (first.score, again.score) == (2.3, 0.0)  # paid once
    assert (
        "This is the code of turn 1, so" in again.feedback and "code of turn" not in first.feedback
    )
    assert episode.submit(another(2)).outcome == correct(3.0)
    assert episode.submit(another(2)).turn == 4


def test_repeats_are_paid_where_that_is_asked_for(problem) -> None:
    episode = started(problem, [correct(2.0)], max_turns=2, pay_repeats=True)
    assert [episode.submit(REPLY).score for _ in range(2)] == [2.3, 2.3]


def test_the_lower_end_of_the_interval_is_paid_when_asked_for(problem) -> None:
    outcome = correct(2.0).model_copy(update={"speedup_interval": (1.7, 2.4)})
    for bound, score in (("median", 2.3), ("lower", 2.0)):
        turn = started(problem, [outcome], max_turns=2, bound=bound).submit(REPLY)
        assert (turn.score, turn.speedup) == (pytest.approx(score), 2.0)
    unbelieved = Correct(message="Correct.", kind="too_noisy")
    assert started(problem, [unbelieved], max_turns=2, bound="lower").submit(REPLY).score == 0.3


def test_a_noisy_time_is_measured_again_unless_it_is_to_be_paid_at_once(problem) -> None:
    for settings, retried in (({}, True), ({"noisy": "lower"}, False)):
        episode = started(problem, [noisy(2.0, 0.8)], max_turns=2, **settings)
        assert episode.submit(REPLY).score == pytest.approx(0.3 + 1.25 * 0.8)
        assert isinstance(episode.pool, ScriptedPool)
        assert episode.pool.submissions[0][2].retry_noisy is retried


@pytest.mark.parametrize(
    ("settings", "best"),
    [({"score": "milestones", "baseline": "compile"}, 3.0), ({"score": "kevin"}, 1.7)],
)
def test_code_that_is_measured_again_is_paid_what_its_best_measurement_pays(
    problem, settings, best
) -> None:
    script = [noisy(1.3, 0.8), noisy(1.3, 0.7), correct(1.4)]
    episode = started(problem, script, max_turns=4, **settings)
    scores = [episode.submit(REPLY).score for _ in range(4)]
    assert sum(scores) == pytest.approx(best)
    assert scores[1::2] == [0.0, 0.0] and scores[0] == pytest.approx(best - scores[2])


def test_an_improvement_alone_is_paid_when_asked_for(problem) -> None:
    script = [WRONG, correct(1.0), correct(0.5), WRONG, correct(1.6)]
    episode = started(problem, script, max_turns=6, pay="improvement")
    turns = [episode.submit(another(number)) for number in range(5)]
    assert [turn.score for turn in turns] == pytest.approx([0.0, 1.3, 0.0, 0.0, 0.6])
    assert [turn.full_score for turn in turns] == pytest.approx([0.0, 1.3, 0.8, 0.0, 1.9])
    assert "Score: 0.6 (1.9 minus the 1.3 already scored)." in turns[-1].feedback
    nothing = "Score: 0 (0.8, not above an earlier score). Best so far: 1.3 (turn 2)."
    assert nothing in turns[2].feedback
    assert (
        "earns the amount by which its score beats your best score so far"
        in episode.messages[-1].content
    )
    failed = started(problem, [WRONG, WRONG], max_turns=2, pay="improvement", score="kernrl")
    assert [failed.submit(another(number)).score for number in range(2)] == [-0.25, -0.25]


def test_an_episode_that_has_ended_asks_for_nothing(problem) -> None:
    episode = started(problem, [correct(2.0)], max_turns=3, stop_on="correct")
    episode.submit(REPLY)
    assert episode.done and "The episode is over." in episode.messages[-1].content[-30:]


def test_a_repeated_submission_is_explained(problem) -> None:
    episode = started(problem, [noisy(1.3, 0.6), correct(1.2)], max_turns=3)
    said = [episode.submit(REPLY).feedback for _ in range(3)]
    assert "(95 % interval 0.600x to 2.60x, so 0.750x counts)" in said[0]
    assert (
        "This is the code of turn 1, measured again; its score is 1.5 minus the 1.05 "
        "already scored." in said[1]
    )
    assert "Score: 0.45." in said[1]
    again = (
        "This is the code of turn 1, so it has the same result; its score is 1.5, not above an "
        "earlier score."
    )
    assert again in said[2] and "Score: 0." in said[2]
    assert not any("esubmit" in text or "again to" in text for text in said)


@pytest.mark.parametrize(
    ("stop_on", "bound", "outcomes", "turns"),
    [
        ("correct", "median", [WRONG, Correct(message="Correct.", kind="too_noisy")], 2),
        (2.0, "median", [correct(1.9), Correct(message="", kind="too_noisy"), correct(2.0)], 3),
        (2.0, "median", [noisy(9.0, 1.5), noisy(9.0, 1.7)], 2),
        (2.0, "lower", [correct(2.1), correct(2.3)], 2),
    ],
)
def test_stop_on_ends_it_early(problem, stop_on, bound, outcomes, turns) -> None:
    episode = started(problem, outcomes, stop_on=stop_on, bound=bound, max_turns=9)
    while not episode.done:
        episode.submit(another(len(episode.turns)))
    assert (len(episode.turns), episode.stop_reason) == (turns, "stop_on")


def test_calls_out_of_order_say_what_to_do(problem) -> None:
    episode = Episode(problem, ScriptedPool([WRONG] * 9), Settings(max_turns=1))
    with pytest.raises(EpisodeError, match=r"call start\(\) first"):
        episode.submit(REPLY)
    episode.start()
    with pytest.raises(EpisodeError, match="started already"):
        episode.start()
    episode.submit(REPLY)
    with pytest.raises(EpisodeError, match=r"ended after turn 1 \(max_turns\); start a new one"):
        episode.submit(REPLY)
    with pytest.raises(EpisodeError, match="ended"):
        episode.fork()


def test_one_turn_at_a_time(problem) -> None:
    hold = Event()

    def answer(*_):
        hold.wait(60)
        return WRONG

    episode = started(problem, answer)
    future = episode.submit_later(REPLY)
    with pytest.raises(EpisodeError, match="turn 1 is still being judged"):
        episode.submit(REPLY)
    hold.set()
    assert future.result().turn == 1
    assert len(episode.turns) == 1


def test_of_many_threads_one_takes_the_turn(problem) -> None:
    hold, start = Event(), Barrier(8)
    episode = started(problem, lambda *_: hold.wait(60) and WRONG)
    interval = sys.getswitchinterval()

    def submit(number):
        start.wait()
        try:
            return episode.submit_later(another(number))
        except EpisodeError as error:
            assert "turn 1 is still being judged" in str(error)
            return None

    sys.setswitchinterval(1e-6)  # threads take turns in the middle of everything
    try:
        with ThreadPoolExecutor(8) as threads:
            futures = [each for each in threads.map(submit, range(8)) if each is not None]
    finally:
        sys.setswitchinterval(interval)
        hold.set()
    assert [each.result().turn for each in futures] == [1] and len(episode.turns) == 1


def test_every_turn_has_a_secret_of_its_own_that_no_seed_tells(problem) -> None:
    episodes = [started(problem, [WRONG] * 2, max_turns=2) for _ in range(2)]
    for episode in episodes:
        for number in range(2):
            episode.submit(another(number))
    secrets = [turn.secret for episode in episodes for turn in episode.turns]
    assert len(set(secrets)) == 4
    assert all(secret and len(bytes.fromhex(secret)) == 16 for secret in secrets)
    for episode in episodes:
        assert episode.trajectory.secret
        assert [turn.secret for turn in episode.turns] == [
            turn_secret(episode.trajectory.secret, n) for n in (1, 2)
        ]


@pytest.mark.parametrize(("device", "language"), [(None, "cpp"), (SCRIPTED_GPU, "triton")])
def test_the_language_follows_the_device(problem, device, language) -> None:
    pool = ScriptedPool([WRONG], device) if device else ScriptedPool([WRONG])
    episode = Episode(problem, pool)
    text = episode.start()[-1].content
    assert episode.trajectory.config["language"] == language
    assert ("Triton" in text) == (language == "triton")
    assert Episode(problem, pool, Settings(language="cuda")).trajectory.config["language"] == "cuda"


def test_a_fork_goes_its_own_way(problem, tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    episode = started(problem, [WRONG, WRONG, correct(2.0)], Recorder(file), max_turns=2)
    episode.submit(REPLY)
    other = episode.fork()
    assert other.messages == episode.messages
    episode.submit(another(2))
    other.submit(another(2))
    assert [len(each.turns) for each in (episode, other)] == [2, 2]
    assert episode.turns[0] == other.turns[0]
    assert (episode.turns[1].score, other.turns[1].score) == (0.0, pytest.approx(2.3))
    assert episode.episode_id != other.episode_id
    assert episode.turns[1].secret != other.turns[1].secret
    assert list(read_trajectories(file)) == [episode.trajectory, other.trajectory]


def test_samples_and_what_they_came_from_are_recorded(problem, tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    pool = ScriptedPool([WRONG] * 9)
    first = Episode(problem, pool, Settings(max_turns=2), recorder=Recorder(file), sample=3)
    assert (first.trajectory.sample, first.trajectory.parent) == (3, None)
    first.start()
    first.submit(REPLY)
    with pytest.raises(ValueError, match="turns is -1"):
        first.fork(turns=-1)
    second, third = first.fork(sample=4), first.fork()
    assert (second.trajectory.sample, second.trajectory.parent) == (4, first.episode_id)
    assert (third.trajectory.sample, third.trajectory.parent) == (None, first.episode_id)
    cut = {
        each.episode_id: each for each in read_trajectories(file) if isinstance(each, Trajectory)
    }
    again = Episode.resume(cut[second.episode_id], pool)
    assert (again.episode_id, again.sample, again.parent) == (
        second.episode_id,
        4,
        first.episode_id,
    )
    taken_up = Episode.resume(second.finish("judge_error"), pool)
    assert (taken_up.sample, taken_up.parent) == (
        4,
        second.episode_id,
    ) and taken_up.episode_id != second.episode_id


def test_a_recorded_episode_is_resumed_where_it_was_cut_off(problem, tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    before = started(problem, [WRONG], Recorder(file), max_turns=2, gamma=0.8)
    before.submit(REPLY)
    (cut,) = read_trajectories(file)
    assert isinstance(cut, Trajectory) and cut.stop_reason is None
    after = Episode.resume(cut, ScriptedPool([correct(3.0)]), recorder=Recorder(file))
    assert after.start() == before.messages
    after.submit(another(2))
    (whole,) = read_trajectories(file)
    assert isinstance(whole, Trajectory)
    assert (whole.episode_id, whole.stop_reason, whole.model) == (
        before.episode_id,
        "max_turns",
        "m",
    )
    assert whole.returns == pytest.approx((0.8 * 3.3, 3.3))
    assert not partial_path(file).exists()


def test_an_older_record_is_resumed_with_its_settings_under_their_new_names(problem) -> None:
    episode = started(problem, [WRONG], timing_precision=0.05)
    older = {**episode.trajectory.config, "precision": 0.05}
    del older["timing_precision"]
    cut = episode.trajectory.model_copy(update={"config": older})
    assert Episode.resume(cut, ScriptedPool([])).settings.timing_precision == 0.05


def test_one_that_was_cut_off_after_its_last_turn_ends_on_resuming(problem, tmp_path) -> None:
    episode = started(problem, [WRONG], max_turns=1)
    episode.submit(REPLY)
    cut = episode.trajectory.model_copy(update={"stop_reason": None})
    file = tmp_path / "run.jsonl"
    resumed = Episode.resume(cut, ScriptedPool([]), recorder=Recorder(file))
    resumed.start()
    assert resumed.done
    assert [
        each.stop_reason for each in read_trajectories(file) if isinstance(each, Trajectory)
    ] == ["max_turns"]


def test_one_that_was_finished_early_goes_on_under_a_new_id(problem) -> None:
    episode = started(problem, [WRONG])
    episode.submit(REPLY)
    stopped = episode.finish("interrupted")
    assert (stopped.stop_reason, episode.finish("model_error")) == ("interrupted", stopped)
    assert Episode.resume(stopped, ScriptedPool([])).episode_id != stopped.episode_id


@pytest.mark.parametrize("reply", [None, b"x", {"content": "x"}])
def test_a_reply_is_text(problem, reply: Any) -> None:
    with pytest.raises(TypeError, match="a reply is a str or a Reply, not"):
        started(problem, [WRONG]).submit(reply)


def test_what_cannot_be_resumed_is_refused(problem) -> None:
    episode = started(problem, [WRONG], max_turns=1)
    episode.submit(REPLY)
    with pytest.raises(EpisodeError, match="nothing to resume"):
        Episode.resume(episode.trajectory, ScriptedPool([]))
    mine = started(problem, [WRONG], score=lambda _: 1.0).trajectory
    assert "lambda" in mine.config["score"]
    with pytest.raises(ValueError, match=r"unknown score .*lambda.*pass settings= with it"):
        Episode.resume(mine, ScriptedPool([]))
    assert Episode.resume(mine, ScriptedPool([]), settings=Settings(score=lambda _: 1.0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gamma": 2}, "setting gamma=2: .* less than or equal to 1"),
        ({"glue": 1}, "setting glue=1: .* less than 1"),
        ({"glue": -0.1}, r"setting glue=-0\.1: .* greater than or equal to 0"),
        ({"score": "fast"}, "setting score='fast': unknown score 'fast': give one of kevin"),
        ({"call_timeout": 1201}, "setting call_timeout=1201: .* less than or equal to 1200"),
        ({"build_timeout": 1e308}, "setting build_timeout=1e.308: .* less than or equal to 3600"),
        ({"build_timeout": float("nan")}, "setting build_timeout=nan: .* number"),
        ({"stop_on": True}, "setting stop_on=True: .*give 'correct', a speedup, or None"),
        ({"stop_on": "fast"}, "setting stop_on='fast': .* 'correct' or a valid number"),
        ({"templates": "kevin"}, "templates='kevin': Input should be 'default' or 'kevin-paper'"),
        ({"examples": "two"}, "examples='two': give zero, one, few, retrieved"),
        ({"context": "some"}, "setting context='some': .*context"),
        ({"gama": 0.8}, r"unknown setting 'gama'; did you mean gamma\?$"),
        ({"turns": 3}, r"unknown setting 'turns'; did you mean max_turns\?$"),
        ({"precision": 0.01}, r"unknown setting 'precision'; did you mean timing_precision\?$"),
        ({"qqqqq": 1}, "unknown setting 'qqqqq'; there are max_turns, gamma"),
        ({"max_turns": 0}, "setting max_turns=0: .* greater than or equal to 1"),
        ({"rules": "none"}, "setting rules='none': Input should be "),
        ({"inputs": "own"}, "setting inputs='own': Input should be "),
        ({"device": "gpu"}, "setting device='gpu': give 'auto', 'cpu', 'cuda', 'cuda:1' or "),
    ],
)
def test_bad_settings_are_one_clear_line(values, message) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Settings.of(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"language": "cuda"}, {"templates": "kevin-paper"}])
def test_cuda_kernels_are_refused_on_a_cpu_before_a_model_is_asked(problem, settings) -> None:
    with pytest.raises(ValueError, match="language='cuda' needs a GPU, and this device is cpu"):
        started(problem, [], **settings)
    assert Episode(problem, ScriptedPool([], SCRIPTED_GPU), Settings.of(settings)).start()
