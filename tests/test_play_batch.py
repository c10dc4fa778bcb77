"""Samples that are played side by side."""

import io
import random
import re
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import REPLY, WRONG, another, correct, problem_file
from rich.console import Console
from trajectories import ESCAPES, EVIL, RIGHT, evil, timed, trajectory, turn

from kevin_env.app.errors import BadInput
from kevin_env.app.play.batch import Batch, batch_of, reduce
from kevin_env.app.play.batch_run import BatchRun
from kevin_env.app.play.batch_screen import render
from kevin_env.app.play.events import (
    Asked,
    Ended,
    Failed,
    Heard,
    Judged,
    Replied,
    Resized,
    StageBegan,
    Started,
    Ticked,
)
from kevin_env.app.play.opening import last_episodes, open_episode
from kevin_env.app.play.session import Session
from kevin_env.app.replay.pieces import clock
from kevin_env.app.replay.state import USUAL, Size
from kevin_env.episode import Episode
from kevin_env.judge import ScriptedPool
from kevin_env.policies import Policy, Refused, ScriptedPolicy
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder, read_trajectories
from kevin_env.settings import Settings

OPEN: Any = {"stop_reason": None, "config": {"max_turns": 4, "gamma": 0.4}}
SCREEN_80 = """\
 L1_23_Softmax  3 samples of 4 turns              best 3.00x (sample 1, turn 2)
 scripted CPU (cpu)  ·  m
 ███████████████                      5 of 12 turns, 0:20 gone, about 0:28 left
────────────────────────────────────────────────────────────────────────────────
 sample  turns     best    at  return  now
      0  ?●       2.00x     2    0.92  turn 3: reply, 5 letters, 2 s
      1  ●●       3.00x     2    3.62  turn 3: verify, 3 s
      2  ?                       0.00  waiting
────────────────────────────────────────────────────────────────────────────────
 sample 2   turn 1   format/no_code           score 0.00  There was no code.
 sample 1   turn 2   correct/timed            score 3.30  3.00x [2.70, 3.30]
"""


def page(batch: Batch, size: Size = USUAL) -> str:
    return "\n".join(line.plain.rstrip() for line in render(batch, size))


def three() -> Batch:
    batch = batch_of(tuple(trajectory(id=f"e{n}", sample=n, **OPEN) for n in range(3)), 100.0)
    for at, turns in enumerate(((turn(1), RIGHT), (timed(1, 2.0), timed(2, 3.0)), (turn(1),))):
        for count in range(1, len(turns) + 1):
            batch = reduce(batch, Judged(trajectory(*turns[:count], **OPEN), ()), at)
    return batch


def test_samples_are_shown_side_by_side() -> None:
    batch = three()
    for at, event in (
        (0, Asked((), 118.0)), (0, Heard("five.")), (1, Replied("x", 117.0)), (1, StageBegan("verify", 119.0)),
    ):  # fmt: skip
        batch = reduce(batch, event, at)
    batch = reduce(batch, Ticked(120.0))
    assert page(batch).splitlines()[:11] == [line.rstrip() for line in SCREEN_80.splitlines()]


def test_the_time_left_is_what_the_turns_took() -> None:
    batch = three()
    assert (batch.taken, batch.planned, batch.left) == (5, 12, 0.0)
    assert reduce(batch, Ticked(110.0)).left == pytest.approx(14.0)
    assert (
        batch_of((trajectory(RIGHT, **OPEN),), 0.0).left is None
    )  # what was there before says nothing
    resumed = reduce(
        batch_of((trajectory(RIGHT, **OPEN),), 0.0), Judged(trajectory(RIGHT, RIGHT, **OPEN), ()), 0
    )
    assert reduce(resumed, Ticked(7.0)).left == pytest.approx(14.0)
    ended = reduce(batch, Ended(trajectory(turn(1), stop_reason="refused")), 2)
    assert ended.planned == 9
    assert [clock(seconds) for seconds in (0, 59.6, 3725)] == ["0:00", "1:00", "1:02:05"]


def test_the_best_of_all_is_known() -> None:
    batch = three()
    assert batch.best is not None
    assert (batch.best[0].number, batch.best[1].turn) == (1, 2)
    assert "none timed yet" in page(batch_of((trajectory(turn(1), **OPEN),), 0.0))


def test_leaving_takes_two_keys_until_all_have_ended() -> None:
    batch = three()
    once = reduce(batch, "q")
    assert not once.done
    assert "q again stops" in page(once)
    assert reduce(once, "q").done
    assert not reduce(reduce(once, "j"), "q").done
    assert reduce(batch, "ctrl-c").done
    for at in range(3):
        batch = reduce(batch, Ended(trajectory(turn(1), stop_reason="interrupted")), at)
    assert batch.over
    assert reduce(batch, "q").done


@pytest.mark.parametrize("size", [Size(1, 1), Size(20, 6), Size(80, 24), Size(160, 45)])
def test_every_screen_fits_and_holds_nothing_hostile(size: Size) -> None:
    batch = batch_of(tuple(trajectory(id=f"e{n}", sample=n, **OPEN) for n in range(40)), 0.0)
    chance = random.Random(size.rows)
    for _ in range(80):
        events = [
            Started(evil().model_copy(update={"stop_reason": None, "config": {"max_turns": 9}}), ()),
            Judged(evil().model_copy(update={"config": {"max_turns": 9}}), ()),
            Asked((), 1.0), Heard(EVIL), Replied(EVIL, 2.0), StageBegan("time", 3.0), Failed(EVIL), Ticked(5.0),
            Resized(size), "j", "k", "pgdn", "pgup", "q", "x",
        ]  # fmt: skip
        batch = replace(reduce(batch, chance.choice(events), chance.randrange(40)), done=False)
        frame = render(batch, size)
        assert [line.cell_len for line in frame] == [size.columns] * size.rows
        assert not any(sign in line.plain for line in frame for sign in ESCAPES)


def sessions(
    problem: Problem, pool: ScriptedPool, file: Path, policies: list[Policy], turns: int
) -> list[Session]:
    settings, recorder = Settings(max_turns=turns), Recorder(file)
    return [
        Session(
            Episode(problem, pool, settings, recorder=recorder, model="m", sample=number), policy
        )
        for number, policy in enumerate(policies)
    ]


def recorded(file: Path) -> list[Trajectory]:
    return [each for each in read_trajectories(file) if isinstance(each, Trajectory)]


def told(played: list[Session]) -> tuple[tuple[Trajectory, ...], str]:
    text = io.StringIO()
    console = Console(file=text, width=120, markup=False, highlight=False)
    batch = BatchRun(played)
    ended = batch.tell(console)
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
    assert "sample 3: 1 turns, best: " in text
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

        monkeypatch.setattr("kevin_env.app.play.batch_run.time.sleep", sleep)
        first, text = told(played)
        monkeypatch.undo()
        assert "every finished turn is kept" in text
        assert {each.stop_reason for each in first} <= {"interrupted", "max_turns"}
        starts = last_episodes(file)
        assert [each.sample for each in starts] == [
            each.sample for each in first if each.stop_reason == "interrupted"
        ]
        recorder = Recorder(file)
        again = [open_episode(each, pool, Settings(), recorder, "m") for each in starts]
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
        last_episodes(file)


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
    assert [each.episode_id for each in last_episodes(file)] == ["new", "third"]
    write("single", None, "interrupted", 5)
    assert [each.episode_id for each in last_episodes(file)] == ["single"]


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
            open_episode(each, pool, Settings(), Recorder(file), "") for each in last_episodes(file)
        ]
        ended, _ = told(
            [Session(each, ScriptedPolicy([another(n) for n in range(2)])) for each in again]
        )
    assert [(each.episode_id, len(each.turns)) for each in ended] == [
        (each.episode_id, 2) for each in killed
    ]
    assert recorded(file) == sorted(ended, key=recorded(file).index)
