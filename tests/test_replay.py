import io
import json
from pathlib import Path

import pytest
from episodes import correct
from rich.console import Console

from kevin_env.app.errors import BadInput
from kevin_env.app.replay import read_file, replay, replay_json
from kevin_env.judge.api import Seconds, Submission
from kevin_env.judge.scripted import SCRIPTED_CPU
from kevin_env.outcome import CompileError, FormatError
from kevin_env.record import Message, ProblemRef, Trajectory, Turn
from kevin_env.recorder import Recorder

GOLDEN = """\
episode e1
  problem  L1_23_Softmax
  model    m
  device   scripted CPU (cpu)
  created  2026-01-01T00:00:00+00:00
  ended    max_turns

turn 1
I would rather talk.
format/no_code  score 0.00  (0.0 s)
There was no code.

turn 2
    1 | import torch
    2 |
    3 | class ModelNew: ...
correct/timed  2.00x [1.80, 2.20]  score 2.30  (1.5 s)
It was right.

┏━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━┳━━━━━━━━━┓
┃ turn ┃ verdict        ┃ speedup [95 %]     ┃ score ┃ return ┃ seconds ┃
┡━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━╇━━━━━━━━━┩
│ 1    │ format/no_code │                    │  0.00 │   0.92 │     0.0 │
│ 2    │ correct/timed  │ 2.00x [1.80, 2.20] │  2.30 │   2.30 │     1.5 │
└──────┴────────────────┴────────────────────┴───────┴────────┴─────────┘
"""


def turn(number: int, **more) -> Turn:
    values = {
        "turn": number,
        "messages": (Message(role="user", content="Go."),),
        "reply": "I would rather talk.",
        "outcome": FormatError(kind="no_code", message="There was no code."),
        "score": 0.0,
        "feedback": "There was no code.",
    }
    return Turn(**(values | more))


RIGHT = turn(
    2,
    reply="Code.",
    submission=Submission(code="import torch\n\nclass ModelNew: ...\n"),
    outcome=correct(2.0),
    score=2.3,
    feedback="It was right.",
    seconds=Seconds(build=1.5),
)


def trajectory(*turns: Turn, id: str = "e1", **more) -> Trajectory:
    values = {
        "episode_id": id,
        "created": "2026-01-01T00:00:00+00:00",
        "problem": ProblemRef(id="L1_23_Softmax", sha256="0"),
        "config": {"gamma": 0.4},
        "model": "m",
        "hardware": SCRIPTED_CPU,
        "turns": turns,
        "returns": (0.92, 2.3)[: len(turns)],
        "stop_reason": "max_turns",
    }
    return Trajectory(**(values | more))


def printed(trajectories: list[Trajectory], number: int | None = None, **options) -> str:
    page = io.StringIO()
    replay(trajectories, Console(file=page, width=100, markup=False, highlight=False, emoji=False, **options), number)
    return page.getvalue()


def read(path: Path) -> tuple[list[Trajectory], str]:
    errors = io.StringIO()
    return read_file(path, Console(file=errors, markup=False, highlight=False)), errors.getvalue()


def test_an_episode_is_printed() -> None:
    assert printed([trajectory(turn(1), RIGHT)]) == GOLDEN


def test_one_turn_is_printed() -> None:
    shown = printed([trajectory(turn(1), RIGHT)], 2)
    assert "turn 1" not in shown
    assert "class ModelNew" in shown
    with pytest.raises(BadInput, match="the longest episode has 2"):
        printed([trajectory(turn(1), RIGHT)], 3)


def test_json_has_what_the_file_has() -> None:
    episode = trajectory(turn(1), RIGHT)
    assert replay_json([episode]) == [json.loads(episode.model_dump_json())]
    [chosen] = replay_json([episode], 2)
    assert ([each["turn"] for each in chosen["turns"]], chosen["returns"]) == ([2], [2.3])


def test_an_episode_that_was_cut_off_has_its_returns(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(turn(1), RIGHT, stop_reason=None))
    episodes, _ = read(tmp_path / "t.jsonl")
    shown = printed(episodes)
    assert "ended    not yet" in shown
    assert "│   0.92 │" in shown


def test_a_corrupt_line_is_named_and_the_rest_shown(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    whole = trajectory(turn(1)).model_dump_json()
    file.write_text(f'{whole}\n{{"schema": \n{whole.replace("e1", "e2")}\n')
    episodes, errors = read(file)
    assert [each.episode_id for each in episodes] == ["e1", "e2"]
    assert len(errors.splitlines()) == 1
    assert "t.jsonl line 2" in errors


def test_a_file_without_any_episode_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("nonsense\n")
    with pytest.raises(BadInput, match="no trajectory"):
        read(tmp_path / "t.jsonl")
    with pytest.raises(BadInput, match="cannot read"):
        read(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_a_model_wrote_is_inert(terminal: bool) -> None:
    evil = "[red]x[/bad]\x1b[2J\x1b]8;;http://a\x07\x9b5m"
    turns = (
        turn(1, reply=evil, feedback=evil, outcome=CompileError(kind="compiler", message=evil)),
        turn(2, submission=Submission(code=f"# {evil}\n"), feedback=evil),
    )
    shown = printed(
        [trajectory(*turns, model=evil)], force_terminal=terminal, color_system="standard" if terminal else None
    )
    assert "[red]x[/bad]" in shown
    for escape in ("\x1b[2J", "\x1b]", "\x07", "\x9b"):
        assert escape not in shown
