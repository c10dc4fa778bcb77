"""The screens of `kevin-env play` in a real pseudo-terminal, and the command itself with a real
judge.
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from episodes import SOURCE, recorded
from pseudo_terminal import Screen, run_python
from stub_server import Answer, delta, serve
from typer.testing import CliRunner

from kevin_env.cli import app

SCRIPT = str(Path(__file__).with_name("scripted_play.py"))
ARITHMETIC = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"


def play(
    folder: Path, letters: str, *how: str, **environment: Any
) -> AbstractContextManager[Screen]:
    return run_python(SCRIPT, str(folder), letters, *how, **environment)


def editor(folder: Path, script: str) -> str:
    """An editor that does what the script says; `$1` is the file."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_an_episode_runs_to_its_end_and_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    with play(tmp_path, "w2") as screen:
        before = termios.tcgetattr(screen.slave)
        assert "2.00x" in screen.wait_for("all turns played")
        assert termios.tcgetattr(screen.slave) != before
        screen.press("q")
        assert screen.end() == 0
        assert termios.tcgetattr(screen.slave) == before
    assert "\x1b[?1049h" in screen.raw
    assert "ended: max_turns" in screen.raw.split("\x1b[?1049l")[1]
    assert [each.category for each in recorded(tmp_path / "t.jsonl")[0].turns] == [
        "correctness",
        "correct",
    ]


def test_the_kernel_is_edited_in_an_editor(tmp_path: Path) -> None:
    modes = tmp_path / "modes"
    changes = editor(tmp_path, f'sed -i "1s/^/# edited /" "$1"; stty -a > {modes}')
    with play(tmp_path, "ww", "human", EDITOR="never-called", VISUAL=changes) as screen:
        screen.wait_for("you are the policy")
        screen.press("e")
        screen.wait_for("the next kernel")
        screen.press("\x05")
        screen.wait_for("# edited")
        screen.press("\x13")
        screen.wait_for("rules/no_kernel")
        screen.press("q")
        screen.end()
    [only] = recorded(tmp_path / "t.jsonl")[0].turns
    assert only.by_person and "# The reference:" in only.reply
    assert " icanon" in modes.read_text()  # the editor had the terminal as it was before


@pytest.mark.full
@pytest.mark.parametrize("keys", ["\x03", "qq"])
def test_it_ends_at_once_while_a_turn_runs(tmp_path: Path, keys: str) -> None:
    with play(tmp_path, "..") as screen:
        screen.wait_for("class ModelNew")
        screen.press(keys)
        assert screen.end() == 0
        assert "ended: interrupted" in screen.raw
    assert not (tmp_path / "t.jsonl").exists()  # an episode without a turn is not recorded


@pytest.mark.parametrize("samples", [(), pytest.param(("2",), marks=pytest.mark.full)])
def test_a_terminal_that_goes_away_loses_no_turn(tmp_path: Path, samples: Sequence[str]) -> None:
    with play(tmp_path, "w.", *samples) as screen:
        screen.wait_for("1 of 2 turns" if not samples else "2 of 4 turns")
        assert screen.hang_up() == 128 + signal.SIGHUP
    kept = [[turn.kind for turn in each.turns] for each in recorded(tmp_path / "t.jsonl")]
    assert kept == [["values"]] * (len(samples) + 1)


def test_input_that_ends_is_no_terminal_that_goes_away() -> None:
    """As of `echo | kevin-env eval` in a terminal."""
    code = "import time\nfrom rich.console import Console\nfrom rich.text import Text\n"
    code += "from kevin_env.app.screen import on_whole_screen\n"
    code += "with on_whole_screen(Console(), lambda: Text('x')): time.sleep(0.5)"
    master, terminal = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", code], input=b"", stdout=terminal, check=False)
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 0


def test_a_hang_up_signal_loses_no_turn(tmp_path: Path) -> None:
    with play(tmp_path, "w.") as screen:
        screen.wait_for("1 of 2 turns")
        screen.process.send_signal(signal.SIGHUP)
        assert screen.end() == -signal.SIGHUP
    assert [len(each.turns) for each in recorded(tmp_path / "t.jsonl")] == [1]


def command(folder: Path, url: str, *words: str) -> list[str]:
    (folder / "7_Double.py").write_text(SOURCE)
    usual = f"-m kevin_env play --model m --base-url {url} --device cpu --out {folder}/t.jsonl"
    return [*usual.split(), *words]


def answers(*codes: str) -> Sequence[Answer]:
    return [
        Answer([delta(content=f"```python\n{code}```\nDone."), delta(finish="stop")])
        for code in codes
    ]


@pytest.mark.full
@pytest.mark.usefixtures("one_pool")
def test_a_model_is_watched_stopped_and_resumed_for_real(tmp_path: Path) -> None:
    problem = ["--problem", str(tmp_path / "7_Double.py"), "--max-turns", "2"]
    with serve(*answers(ARITHMETIC, "class ModelNew(:\n")) as stub:
        with run_python(*command(tmp_path, stub.url, *problem)) as screen:
            screen.wait_for("the judge starts")
            screen.press(" ")
            screen.wait_for("enter asks the model")
            screen.press("R")
            screen.wait_for("for the next turn")
            screen.press("Add a kernel.")
            screen.wait_for("Add a kernel.")
            screen.press("\x13")
            screen.wait_for("gets the remark")
            screen.press("n")
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
    words = f"--problem {tmp_path}/7_Double.py --max-turns 2 --samples 3 --seed 5 --plain".split()
    with serve(*answers(ARITHMETIC)) as stub:
        done = CliRunner().invoke(app, command(tmp_path, stub.url, *words)[2:])
    assert done.exit_code == 0, done.stderr
    assert len(re.findall(r"sample \d +turn \d +rules/torch_compute", done.stdout)) == 6
    assert "6 of 6 turns" in done.stdout
    assert sorted(request["seed"] for request in stub.requests)[::2] == sorted(
        {each["seed"] for each in stub.requests}
    )
    assert len({each["seed"] for each in stub.requests}) == 3
    assert sorted(each.sample or 0 for each in recorded(tmp_path / "t.jsonl")) == [0, 1, 2]
