import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from trajectories import BROKEN, RIGHT, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.library import Library
from kevin_env.app.replay.plain import Choice, chosen, only_one, print_diff, print_episodes
from kevin_env.app.replay.query import require_query
from kevin_env.cli import app
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder

GOLDEN = """\
episode e1
  problem  L1_23_Softmax
  model    m
  device   scripted CPU (cpu)
  created  2026-01-01T00:00:00+00:00
  ended    max_turns

turn 1
no submission: There was no code.
I would rather talk.
format/no_code  score 0.00  (0.0 s)
There was no code.

turn 2
   1 │ import torch
   2 │
   3 │ class ModelNew: ...
correct/timed  2.00x [1.80, 2.20]  score 2.30  (1.5 s)
It was right.

┏━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━┳━━━━━━━━━┓
┃ turn ┃ verdict        ┃ speedup [95 %]     ┃ score ┃ return ┃ seconds ┃
┡━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━╇━━━━━━━━━┩
│ 1    │ format/no_code │                    │  0.00 │   0.92 │     0.0 │
│ 2    │ correct/timed  │ 2.00x [1.80, 2.20] │  2.30 │   2.30 │     1.5 │
└──────┴────────────────┴────────────────────┴───────┴────────┴─────────┘
"""


def console(**options: Any) -> tuple[Console, io.StringIO]:
    page = io.StringIO()
    return Console(
        file=page, width=100, markup=False, highlight=False, emoji=False, **options
    ), page


def read(path: Path, choice: Choice | None = None) -> tuple[list[Trajectory], str]:
    errors, said = console()
    return list(chosen(Library(path), choice or Choice(), errors)), said.getvalue()


def printed(path: Path, choice: Choice | None = None, **options: Any) -> str:
    screen, page = console(**options)
    print_episodes(read(path, choice)[0], screen)
    return page.getvalue()


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "t.jsonl", trajectory(turn(1), RIGHT, returns=(0.92, 2.3)))


def test_an_episode_is_printed(file: Path) -> None:
    assert printed(file) == GOLDEN
    assert run("replay", str(file))[1] == GOLDEN


def test_one_turn_is_printed(file: Path) -> None:
    shown = printed(file, Choice(turn=2))
    assert "turn 1" not in shown
    assert "class ModelNew" in shown
    with pytest.raises(BadInput, match="the longest episode has 2"):
        printed(file, Choice(turn=3))


def test_json_has_what_the_file_has(file: Path) -> None:
    write(file, trajectory(RIGHT, id="e2"))
    whole = json.loads(run("replay", str(file), "--json")[1])
    assert whole == [json.loads(line) for line in file.read_text().splitlines()]
    [first, _] = json.loads(run("replay", str(file), "--json", "--turn", "2")[1])
    assert ([each["turn"] for each in first["turns"]], first["returns"]) == ([2], [2.3])


def test_a_file_of_which_nothing_can_be_read_is_one_clear_error(tmp_path: Path) -> None:
    good = trajectory(turn(1), RIGHT).model_dump_json()
    (file := tmp_path / "t.jsonl").write_text(
        good.replace('"score":', '"score":NaN,"was":', 1) + "\n"
    )
    for words in (["--plain"], ["--json"]):
        code, _, errors = run("replay", str(file), *words)
        assert code == 2 and "t.jsonl has no readable trajectory" in errors
    code, _, errors = run("replay", str(file), "--plain", "--turn", "9")
    assert code == 2 and "there is no turn 9; the longest episode has 2" in errors


def test_an_episode_that_was_cut_off_has_its_returns(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(turn(1), RIGHT, stop_reason=None))
    shown = printed(tmp_path / "t.jsonl")
    assert "ended    not yet" in shown
    assert "│   0.92 │" in shown


def test_episodes_are_chosen(file: Path) -> None:
    write(
        file,
        trajectory(timed(1, 3.0), id="fast", model="qwen"),
        trajectory(BROKEN, id="bad", model="qwen"),
    )
    ids = lambda **choice: [each.episode_id for each in read(file, Choice(**choice))[0]]  # noqa: E731
    assert ids(query=require_query("speedup>2.5")) == ["fast"]
    assert ids(query=require_query("qwen -category:compile")) == ["fast"]
    assert ids(query=require_query("text:IDENTIFIER")) == ["bad"]
    assert ids(episode="e1") == ["e1"]
    with pytest.raises(BadInput, match="no trajectory of the 3"):
        ids(query=require_query("speedup>9"))
    with pytest.raises(BadInput, match="unknown"):
        require_query("sped>9")


def test_episodes_come_while_the_file_is_still_read(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", *(trajectory(RIGHT, id=f"e{n}") for n in range(400)))
    library = Library(file)
    library.advance(0.0)
    first = next(iter(chosen(library, Choice(), console()[0])))
    assert first.episode_id == "e0"
    assert [each.episode_id for each in read(file)[0]] == [f"e{n}" for n in range(400)]


def test_a_diff_is_printed(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", trajectory(timed(1, 1.0), timed(2, 2.0), timed(3, 3.0)))
    code, shown, _ = run("replay", str(file), "--diff", "1,3")
    assert code == 0
    assert shown.splitlines()[0] == "turn 1 correct 1.00x  →  turn 3 correct 3.00x   +1 -1"
    assert "   2      - # version 1" in shown
    assert "        2 + # version 3" in shown
    assert run("replay", str(file), "--diff", "1,7")[::2] == (
        2,
        "kevin-env: there is no turn 7; the episode has 3\n",
    )
    write(file, trajectory(timed(1, 1.0), id="other"))
    code, _, said = run("replay", str(file), "--diff", "1,1")
    assert (code, "choose one with --episode" in said) == (2, True)
    assert run("replay", str(file), "--diff", "1,1", "--episode", "oth")[0] == 0
    assert "give two turns" in run("replay", str(file), "--diff", "1")[2]


def test_one_is_asked_for_and_given(file: Path) -> None:
    assert only_one(Library(file), Choice(), console()[0]).episode_id == "e1"
    screen, page = console(force_terminal=True, color_system="standard")
    with pytest.raises(BadInput, match="no turn 9"):
        print_diff(read(file)[0][0], (1, 9), screen)
    assert page.getvalue() == ""


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
    code, _, said = run("replay", str(tmp_path / "t.jsonl"))
    assert code == 2
    assert ["line 1" in line or "no readable trajectory" in line for line in said.splitlines()] == [
        True,
        True,
    ]
    with pytest.raises(BadInput, match="no trajectory file"):
        read(tmp_path / "missing.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"holds no trajectory file \(\*.jsonl\)"):
        read(tmp_path / "empty")
