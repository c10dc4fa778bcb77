"""The key loop in a real pseudo-terminal."""

import os
import pty
import re
import termios
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pseudo_terminal import LONGEST, Screen, run_python
from trajectories import RIGHT, evil, timed, trajectory, turn, write

from kevin_env.app.replay.terminal import key_name
from kevin_env.recorder import Recorder


def replay(*words: str, **more) -> AbstractContextManager[Screen]:
    return run_python("-m", "kevin_env", "replay", *words, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(
        tmp_path / "t.jsonl",
        trajectory(turn(1), RIGHT),
        trajectory(timed(1, 3.0), id="e2", model="qwen"),
    )


def test_keys_turn_pages_and_the_terminal_is_left_as_it_was(file: Path) -> None:
    with replay(str(file)) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("2 trajectories")
        assert termios.tcgetattr(screen.slave) != before
        screen.press("\x1b[B\r")
        screen.wait_for("qwen")
        screen.press("[")
        screen.wait_for("correct/timed")
        screen.press("l2")
        screen.wait_for("nothing to compare with")
        screen.press("/trouble\r")
        screen.wait_for("not in this pane")
        screen.press("Q")
        assert screen.end() == 0
        assert termios.tcgetattr(screen.slave) == before
    assert screen.raw.startswith("\x1b[?1049h")
    assert screen.raw.endswith("\x1b[?25h\x1b[?1049l")


@pytest.mark.parametrize("key", ["\x03", "q"])
def test_it_ends_at_once(file: Path, key: str) -> None:
    with replay(str(file)) as screen:
        screen.wait_for("2 trajectories")
        screen.press(key)
        assert screen.end() == 0


@pytest.mark.full
def test_it_ends_with_its_terminal(file: Path) -> None:
    with replay(str(file)) as screen:
        screen.wait_for("2 trajectories")
        old = screen.master, screen.slave
        screen.master, screen.slave = pty.openpty()
        for end in old:
            os.close(end)
        assert screen.process.wait(LONGEST) == 0


@pytest.mark.full
def test_a_resized_terminal_is_drawn_anew(file: Path) -> None:
    with replay(str(file), COLUMNS="33") as screen:
        assert "─" * 81 not in screen.wait_for("q quit")
        screen.resize(120, 30)
        assert "─" * 120 in screen.wait_for("q quit")


@pytest.mark.full
def test_without_colour(file: Path) -> None:
    with replay(str(file)) as screen:
        assert re.search(r"\x1b\[(\d+;)*3\dm", screen.wait_for("q quit"))
    with replay(str(file), NO_COLOR="1") as screen:
        assert not re.search(r"\x1b\[(\d+;)*[349]\dm", screen.wait_for("q quit"))


def test_a_file_is_followed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(turn(1), stop_reason=None))
    with replay(str(tmp_path / "t.jsonl"), "--follow") as screen:
        screen.wait_for("1 kernel")
        recorder.add("e1", RIGHT)
        screen.wait_for("correct/timed")
        recorder.finish(trajectory(turn(1), RIGHT, timed(3, 7.5)))
        screen.wait_for("7.50x")


@pytest.mark.full
def test_a_pipe_is_followed_turn_by_turn(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(turn(1), stop_reason=None))
    with replay(str(tmp_path / "t.jsonl"), "--follow", "--plain") as screen:
        screen.wait_for("There was no code.")
        recorder.finish(trajectory(turn(1), RIGHT))
        assert "turn 1" not in screen.wait_for("It was right.")


@pytest.mark.full
def test_auto_play_turns_by_itself(file: Path) -> None:
    with replay(str(file), "--episode", "e1") as screen:
        screen.wait_for("1 kernel")
        screen.press("++++a")
        screen.wait_for("class ModelNew")


def test_nothing_hostile_reaches_the_terminal(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", evil(), evil("b"))
    with replay(str(file), columns=160, rows=50) as screen:
        screen.wait_for("2 trajectories")
        screen.press("\rl1234567")
        screen.wait_for("s_2 =")
        screen.press("Q")
        screen.end()
    ours = re.sub(r"\x1b\[(?:[0-9;]*[mHJ]|\?(?:1049|25|7)[hl])", "", screen.raw)
    assert "\x1b" not in ours
    assert "[red]x[/bad]" in ours


@pytest.mark.parametrize(
    ("sequence", "name"),
    [
        ("a", "a"),
        ("漢", "漢"),
        ("\x1b", "esc"),
        ("\r", "enter"),
        ("\x04", "ctrl-d"),
        ("\x1b[A", "up"),
        ("\x1bOB", "down"),
        ("\x1b[5~", "pgup"),
        ("\x1b[1;5C", "right"),
        ("\x1b[Z", "shift-tab"),
        ("\x1b[200~", ""),
        ("\x1b[<0;1;1M", ""),
    ],
)
def test_names_of_keys(sequence: str, name: str) -> None:
    assert key_name(sequence) == name
