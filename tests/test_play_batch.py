"""Samples that are played side by side."""

import io
import re
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import REPLY, WRONG, another, correct, problem_file, recorded
from rich.console import Console
from trajectories import RIGHT, timed, trajectory, turn

from kevin_env.app.errors import BadInput
from kevin_env.app.play.batch import Batch, BatchRun, batch_of, best_of, picture, progress_text
from kevin_env.app.play.live import Ended, Judged
from kevin_env.app.play.opening import last_episodes, open_episode
from kevin_env.app.play.session import Session
from kevin_env.app.replay.pieces import clock
from kevin_env.episode import Episode
from kevin_env.policies import Policy, Refused, ScriptedPolicy
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

OPEN: Any = {"stop_reason": None, "config": {"max_turns": 4, "gamma": 0.4}}


def three() -> Batch:
    """Samples after 20 seconds and three new turns."""
    first = trajectory(turn(1), **OPEN)
    batch = replace(batch_of([first, trajectory(**OPEN), trajectory(**OPEN)], 0.0), now=20.0)
    for at, episode in enumerate((trajectory(turn(1), RIGHT, **OPEN), trajectory(timed(1, 1.0), timed(2, 3.0), **OPEN))):  # fmt: skip
        batch = batch.after(Judged(episode, (), 10.0), at)
    return batch


def test_a_batch_knows_its_best_and_the_time_left() -> None:
    batch = three()
    assert (batch.taken, batch.planned) == (4, 12)
    assert progress_text(batch) == "4 of 12 turns, 0:20 elapsed, 9.0 a minute, about 0:53 left"
    assert best_of(batch) == "best 3.00x (sample 1, turn 2)"
    assert [(at, turn.turn) for at, turn in batch.news] == [(0, 2), (1, 1), (1, 2)]
    started = batch_of([trajectory(**OPEN)], 0.0)
    assert progress_text(started) == "0 of 4 turns, 0:00 elapsed"
    over = batch.after(Ended(trajectory(turn(1))), 0)
    assert over.planned == 9 and not over.over
    assert [clock(each) for each in (7, 67, 7205)] == ["0:07", "1:07", "2:00:05"]


def test_a_screen_has_every_sample_and_the_latest_turns() -> None:
    shown = picture(three(), 80, 24).plain
    assert "3 samples of 4 turns" in shown and "best 3.00x (sample 1, turn 2)" in shown
    assert "4 of 12 turns, 0:20 elapsed" in shown and "sample 1   turn 2" in shown
    assert len(picture(three(), 30, 6).plain.splitlines()) == 6


def sessions(
    problem: Problem, pool: ScriptedPool, file: Path, policies: list[Policy], turns: int
) -> list[Session]:
    settings, recorder = Settings(max_turns=turns), Recorder(file)
    return [
        Session(
            Episode(problem, pool, settings, recorder=recorder, model=policy.name, sample=number),
            policy,
        )
        for number, policy in enumerate(policies)
    ]


def told(played: list[Session]) -> tuple[tuple[Trajectory, ...], str]:
    text = io.StringIO()
    console = Console(file=text, width=120, markup=False, highlight=False)
    batch = BatchRun(played)
    ended = batch.play(console)
    batch.summary(console)
    return ended, text.getvalue()


def test_many_samples_are_played_over_one_pool(tmp_path: Path) -> None:
    scripts: list[Policy] = [
        ScriptedPolicy([another(9 * n + t) for t in range(2)]) for n in range(3)
    ]
    scripts.append(ScriptedPolicy([REPLY, Refused("[red]no\x1b[2J")]))
    speeds = iter(range(1, 9))
    with closing(ScriptedPool(lambda problem, submission: correct(float(next(speeds))))) as pool:
        ended, text = told(sessions(problem_file(tmp_path), pool, tmp_path / "t.jsonl", scripts, 2))
    assert [(each.sample, len(each.turns), each.stop_reason) for each in ended] == [
        (0, 2, "max_turns"), (1, 2, "max_turns"), (2, 2, "max_turns"), (3, 1, "refused"),
    ]  # fmt: skip
    assert sorted(recorded(tmp_path / "t.jsonl"), key=lambda each: each.sample or 0) == list(ended)
    assert len(re.findall(r"sample \d   turn \d   correct/timed", text)) == 7
    assert "7.00x [6.30, 7.70]" in text
    assert "sample 3: no reply: [red]no\n" in text
    assert "sample 3: 1 turn, best " in text
    assert re.search(r"best 7\.00x \(sample \d, turn \d\); 7 of 7 turns, ", text)


def test_no_sample_waits_for_more_than_one_turn_of_each_other(tmp_path: Path) -> None:
    order: list[str] = []

    def judge(problem: Problem, submission: Any) -> Any:
        order.append(re.findall(r"num_warps=(\d+)", submission.code)[0])
        time.sleep(0.02)
        return WRONG

    scripts: list[Policy] = [
        ScriptedPolicy([another(10 * n + t) for t in range(1, 5)]) for n in range(1, 5)
    ]
    with closing(ScriptedPool(judge, workers=1)) as pool:
        told(sessions(problem_file(tmp_path), pool, tmp_path / "t.jsonl", scripts, 4))
    assert len(order) == 16
    for at, number in enumerate(order):
        before = [sum(each[0] == str(n) for each in order[:at]) for n in range(1, 5)]
        assert before[int(number[0]) - 1] <= min(before) + 1, order


def test_ctrl_c_keeps_what_is_finished_and_all_go_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.jsonl"
    scripts: list[Policy] = [
        ScriptedPolicy([another(9 * n + t) for t in range(3)]) for n in range(3)
    ]
    with closing(ScriptedPool(lambda problem, submission: correct(2.0))) as pool:
        played = sessions(problem_file(tmp_path), pool, file, scripts, 3)
        real = time.sleep

        def sleep(seconds: float) -> None:
            if sum(len(each.episode.turns) for each in played) >= 4:
                raise KeyboardInterrupt
            real(0.001)

        monkeypatch.setattr("kevin_env.app.play.batch.time.sleep", sleep)
        first, text = told(played)
        monkeypatch.undo()
        assert "every finished turn is kept" in text
        assert {each.stop_reason for each in first} <= {"interrupted", "max_turns"}
        starts = last_episodes(file, print)
        assert [each.sample for each in starts] == [
            each.sample for each in first if each.stop_reason == "interrupted"
        ]
        recorder = Recorder(file)
        again = [
            open_episode(each, pool, Settings(), recorder, ScriptedPolicy([])) for each in starts
        ]
        more = [
            Session(each, ScriptedPolicy([another(100 + t) for t in range(3)])) for each in again
        ]
        second, _ = told(more)
    assert {(each.stop_reason, len(each.turns)) for each in second} == {("max_turns", 3)}
    for new in second:
        old = first[new.sample or 0]
        assert new.turns[: len(old.turns)] == old.turns
        assert new.parent == old.episode_id
    with pytest.raises(BadInput, match="all 3 samples"):
        last_episodes(file, print)


def test_the_last_samples_of_a_file_are_taken_up_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    recorder = Recorder(file)

    def write(id: str, sample: int | None, reason: Any, day: int, **more: Any) -> None:
        values = {
            "created": f"2026-01-{day:02}T00:00:00+00:00",
            "config": {"max_turns": 4},
            "stop_reason": reason,
        }
        recorder.finish(trajectory(RIGHT, id=id, sample=sample, **(values | more)))

    write("alone", None, "interrupted", 1)
    write("other model", 7, "interrupted", 2, model="qwen")
    write("old", 0, "interrupted", 3)
    write("whole", 1, "max_turns", 3)
    write("new", 0, "refused", 4)
    write("third", 2, "interrupted", 4)
    assert [each.episode_id for each in last_episodes(file, print)] == ["new", "third"]
    write("single", None, "interrupted", 5)
    assert [each.episode_id for each in last_episodes(file, print)] == ["single"]


def test_samples_that_were_killed_go_on_under_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with closing(ScriptedPool(lambda problem, submission: correct(2.0))) as pool:
        problem = problem_file(tmp_path)
        killed = [
            Episode(problem, pool, Settings(max_turns=2), recorder=Recorder(file), sample=n)
            for n in range(2)
        ]
        for episode in killed:
            episode.start()
        killed[1].submit(REPLY)
        again = [
            open_episode(each, pool, Settings(), Recorder(file), ScriptedPolicy([]))
            for each in last_episodes(file, print)
        ]
        ended, _ = told(
            [Session(each, ScriptedPolicy([another(n) for n in range(2)])) for each in again]
        )
    assert [(each.episode_id, len(each.turns)) for each in ended] == [
        (each.episode_id, 2) for each in killed
    ]
    assert recorded(file) == sorted(ended, key=recorded(file).index)
