"""The screens of `kevin-env play` in a real pseudo-terminal, and the command itself with a real
judge.
"""

import json
import os
import pty
import re
import termios
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from episodes import SOURCE
from pseudo_terminal import Screen, run_python
from stub_server import Answer, delta, serve
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

SCRIPT = str(Path(__file__).with_name("scripted_play.py"))
ARITHMETIC = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"


def play(
    folder: Path, letters: str, *how: str, **environment: Any
) -> AbstractContextManager[Screen]:
    return run_python(SCRIPT, str(folder), letters, *how, **environment)


def recorded(folder: Path) -> list[Trajectory]:
    return [each for each in read_trajectories(folder / "t.jsonl") if isinstance(each, Trajectory)]


def editor(folder: Path, script: str) -> str:
    """An editor that does what the script says; `$1` is the file."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_an_episode_runs_to_its_end_and_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    with play(tmp_path, "w2") as screen:
        before = termios.tcgetattr(screen.slave)
        assert "2.00x" in screen.wait_for("max_turns")
        assert termios.tcgetattr(screen.slave) != before
        screen.press("q")
        assert screen.end() == 0
        assert termios.tcgetattr(screen.slave) == before
    assert "\x1b[?1049h" in screen.raw
    assert "ended: max_turns" in screen.raw.split("\x1b[?1049l")[1]
    assert [each.category for each in recorded(tmp_path)[0].turns] == ["correctness", "correct"]


def test_the_reply_is_seen_while_it_comes(tmp_path: Path) -> None:
    with play(tmp_path, ".") as screen:
        assert re.search(r"\x1b\[(\d+;)*3\dm", screen.wait_for("class ModelNew"))
        screen.wait_for("the model replies 1 s")  # the clock goes on
        (tmp_path / "go").touch()
        screen.wait_for("512 of 1024")


@pytest.mark.full
def test_steps_a_remark_and_the_same_turn_again(tmp_path: Path) -> None:
    with play(tmp_path, ".w2w") as screen:
        screen.wait_for("class ModelNew")
        screen.press(" ")
        screen.wait_for("step by step")
        (tmp_path / "go").touch()
        screen.wait_for("waiting for you")
        screen.press("rUse one pass.\r")
        screen.wait_for("remark: Use one pass.")
        screen.press("n")
        screen.wait_for("turn 2: feedback")
        screen.press("t1\x7f\x7f2\r")
        screen.wait_for("turn 2 of 4")
        screen.press(" ")
        screen.wait_for("2.00x")
        screen.wait_for("turn 3: feedback")
        screen.press("\x03")
        screen.end()
    first, second = recorded(tmp_path)
    assert [len(each.turns) for each in (first, second)] == [2, 3]
    assert (first.stop_reason, second.parent) == ("interrupted", first.episode_id)
    assert first.turns[1].messages[-1].content.endswith("Use one pass.")
    assert "Use one pass." not in second.turns[1].messages[-1].content
    assert second.turns[0] == first.turns[0]


def test_the_kernel_is_edited_and_submitted(tmp_path: Path) -> None:
    changes = editor(
        tmp_path,
        'sed -i "s/# w/# 2/;s/num_warps=1/num_warps=8/" "$1"; stty -a > ' + str(tmp_path / "modes"),
    )
    with play(tmp_path, "ww", EDITOR="never-called", VISUAL=changes) as screen:
        screen.wait_for("starting")
        screen.press(" ")
        screen.wait_for("waiting for you")
        screen.press("n")
        screen.wait_for("turn 1: feedback")
        screen.press("e")
        assert "2.00x" in screen.wait_for("by hand")
        screen.press("q")
        screen.end()
    [episode] = recorded(tmp_path)
    assert [(each.category, each.by_person) for each in episode.turns] == [
        ("correctness", False),
        ("correct", True),
    ]
    assert (
        " icanon" in (tmp_path / "modes").read_text()
    )  # the editor had the terminal as it was before


@pytest.mark.full
def test_an_editor_that_fails_or_changes_nothing_submits_nothing(tmp_path: Path) -> None:
    once = editor(tmp_path, f"test -e {tmp_path}/again && exit 0; touch {tmp_path}/again; exit 3")
    with play(tmp_path, "w", "human", VISUAL=once) as screen:
        screen.wait_for("waiting for you")
        screen.press("e")
        screen.wait_for("set $EDITOR to another")
        screen.press("e")
        screen.wait_for("nothing was changed")
        screen.press("q")
        screen.end()
    assert [each.turns for each in recorded(tmp_path)] == [()]


def test_a_person_plays(tmp_path: Path) -> None:
    writes = editor(tmp_path, f'cp "$1" {tmp_path}/draft; cp {tmp_path}/kernel "$1"')
    (tmp_path / "kernel").write_text("class ModelNew: ...\n")
    with play(tmp_path, "w", "human", VISUAL=writes) as screen:
        screen.wait_for("Write a faster version of the PyTorch module below")
        screen.press("\r")
        screen.wait_for("max_turns")
        screen.press("q")
        screen.end()
    assert "# The reference:" in (tmp_path / "draft").read_text()
    [only] = recorded(tmp_path)[0].turns
    assert (only.reply, only.by_person) == ("```python\nclass ModelNew: ...\n```\n", True)


@pytest.mark.full
def test_a_model_that_fails_is_asked_again(tmp_path: Path) -> None:
    with play(tmp_path, "x2") as screen:
        screen.wait_for("no reply: nobody there")
        screen.press("n")
        screen.wait_for("2.00x")
        screen.press("q")
        assert screen.end() == 0


def test_it_ends_at_once_while_a_turn_runs(tmp_path: Path) -> None:
    for keys in ("\x03", "qq"):
        with play(tmp_path, "..") as screen:
            screen.wait_for("class ModelNew")
            screen.press(keys)
            assert screen.end() == 0
            assert "ended: interrupted" in screen.raw
    assert [(each.turns, each.stop_reason) for each in recorded(tmp_path)] == [
        ((), "interrupted")
    ] * 2


@pytest.mark.full
def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    with play(tmp_path, ".") as screen:
        screen.wait_for("class ModelNew")
        old = screen.master, screen.slave
        screen.master, screen.slave = pty.openpty()
        for end in old:
            os.close(end)
        screen.process.wait(30)
    assert [each.stop_reason for each in recorded(tmp_path)] == ["interrupted"]


@pytest.mark.full
def test_a_resized_terminal_is_drawn_anew(tmp_path: Path) -> None:
    with play(tmp_path, ".") as screen:
        assert "─" * 81 not in screen.wait_for("class ModelNew")
        screen.resize(140, 40)
        screen.wait_for(" │ ")


def test_samples_are_played_on_a_screen(tmp_path: Path) -> None:
    with play(tmp_path, "w.", "3") as screen:
        screen.wait_for("3 of 6 turns")
        (tmp_path / "go").touch()
        screen.wait_for("6 of 6 turns")
        screen.press("q")
        assert screen.end() == 0
    assert screen.raw.count("ended: max_turns") == 3
    assert sorted((each.sample, len(each.turns)) for each in recorded(tmp_path)) == [
        (0, 2),
        (1, 2),
        (2, 2),
    ]


def command(folder: Path, url: str, *words: str) -> list[str]:
    (folder / "7_Double.py").write_text(SOURCE)
    file = ["--out", str(folder / "t.jsonl")]
    return [
        "-m",
        "kevin_env",
        "play",
        "--model",
        "m",
        "--base-url",
        url,
        "--device",
        "cpu",
        *file,
        *words,
    ]


def answers(*codes: str) -> Sequence[Answer]:
    return [
        Answer([delta(content=f"```python\n{code}```\nDone."), delta(finish="stop")])
        for code in codes
    ]


@pytest.mark.full
@pytest.mark.usefixtures("one_pool")
def test_a_model_is_watched_stopped_and_resumed_for_real(tmp_path: Path) -> None:
    problem = ["--problem", str(tmp_path / "7_Double.py"), "--turns", "2"]
    with serve(*answers(ARITHMETIC, "class ModelNew(:\n")) as stub:
        with run_python(*command(tmp_path, stub.url, *problem)) as screen:
            screen.wait_for("starting")
            screen.press(" ")
            screen.wait_for("waiting for you")
            screen.press("rAdd a kernel.\rn")
            screen.wait_for("rules/torch_compute")
            screen.press("q")
            assert screen.end() == 130
        assert "--resume" in screen.raw.split("\x1b[?1049l")[1]
        resume = command(tmp_path, stub.url, "--resume", str(tmp_path / "t.jsonl"), "--json")[2:]
        done = CliRunner().invoke(app, resume)
    assert done.exit_code == 0, done.stderr
    played = json.loads(done.stdout)
    assert [(each["category"], each["kind"]) for each in played["turns"]] == [
        ("rules", "torch_compute"),
        ("compile", "syntax"),
    ]
    sent = [request["messages"][-1]["content"] for request in stub.requests]
    assert [content.endswith("Add a kernel.") for content in sent] == [True, False]
    assert [each["messages"][-1]["content"] for each in played["turns"]] == sent


@pytest.mark.full
@pytest.mark.usefixtures("one_pool")
def test_samples_are_played_for_real(tmp_path: Path) -> None:
    words = [
        "--problem",
        str(tmp_path / "7_Double.py"),
        "--turns",
        "2",
        "--samples",
        "3",
        "--seed",
        "5",
        "--plain",
    ]
    with serve(*answers(ARITHMETIC)) as stub:
        done = CliRunner().invoke(app, command(tmp_path, stub.url, *words)[2:])
    assert done.exit_code == 0, done.stderr
    assert len(re.findall(r"sample \d +turn \d +rules/torch_compute", done.stdout)) == 6
    assert "6 of 6 turns" in done.stdout
    assert sorted(request["seed"] for request in stub.requests)[::2] == sorted(
        {each["seed"] for each in stub.requests}
    )
    assert len({each["seed"] for each in stub.requests}) == 3
    assert sorted(each.sample or 0 for each in recorded(tmp_path)) == [0, 1, 2]
