"""A workspace is played by a shell script as an agent would, and nothing in it decides a verdict."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cpp_kernels import FASTER_KERNEL, RIGHT_KERNEL, WRONG_KERNEL
from episodes import correct, problem_file, recorded
from serving import served
from typer.testing import CliRunner

from kevin_env.agents import check as check_file
from kevin_env.cli import app
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.tools import MOST_CODE

ROOT = Path(__file__).parent.parent.parent
AGENT = """
set -e
test -s TASK.md && test -s reference.py && python3 -m json.tool .mcp.json > /dev/null
{ ./check kernel.py && exit 9; } || test $? = 1
cp ../wrong.py kernel.py
{ ./check kernel.py && exit 9; } || test $? = 1
echo 'Any answer is right.' > TASK.md
echo 'Model = object' > reference.py
cp ../right.py kernel.py
./check kernel.py
cp ../faster.py kernel.py
./check kernel.py
"""
"""The first kernel runs, but is against the rules; then wrong, right, faster."""


def until(there: Path, process: subprocess.Popen[str]) -> None:
    while not there.exists():
        assert process.poll() is None
        time.sleep(0.05)


@contextmanager
def workspace(
    folder: Path, url: str, *words: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """`kevin-env workspace` with the judges at a URL, once its `check` is there."""
    environment = {**os.environ, "KEVIN_ENV_POOL": url}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = [sys.executable, "-m", "kevin_env", "workspace", *words]
    with running(command, folder, environment) as process:
        yield process, environment


@contextmanager
def running(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            until(folder / "work" / "check", process)
            yield process
        finally:
            process.terminate()


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./check", *(words or ("kernel.py",))], cwd=folder, capture_output=True, text=True
    )


def test_a_shell_script_plays_a_workspace(tmp_path: Path, pool: LocalPool) -> None:
    problem_file(tmp_path)
    for name, code in (
        ("wrong", WRONG_KERNEL), ("right", RIGHT_KERNEL), ("faster", FASTER_KERNEL),
    ):  # fmt: skip
        (tmp_path / f"{name}.py").write_text(code)
    words = ["7_Double.py", "work", "--max-turns", "4", "--device", "cpu", "--out", "t.jsonl"]
    with (
        served(pool) as (judges, _),
        workspace(tmp_path, judges.url, *words) as (process, environment),
    ):
        agent = subprocess.run(
            ["sh", "-c", AGENT], cwd=tmp_path / "work", env=environment, capture_output=True,
            text=True,
        )  # fmt: skip
        assert agent.returncode == 0, agent.stdout + agent.stderr
        assert "best turn: 4" in process.communicate(timeout=60)[0]
    [episode] = recorded(tmp_path / "t.jsonl")
    categories = [turn.category for turn in episode.turns]
    assert categories == ["rules", "correctness", "correct", "correct"]
    assert episode.stop_reason == "max_turns"
    assert FASTER_KERNEL in episode.turns[3].reply


def test_only_the_token_of_the_episode_submits_to_it(tmp_path: Path) -> None:
    problem_file(tmp_path)
    scripted = ScriptedPool([correct(2.0)] * 4)
    (tmp_path / "other").mkdir()
    problem_file(tmp_path / "other")
    with (
        served(scripted) as (judges, _),
        workspace(tmp_path, judges.url, "7_Double.py", "work", "--rules", "open"),
        workspace(tmp_path / "other", judges.url, "7_Double.py", "work", "--rules", "open"),
    ):
        mine, other = tmp_path / "work", tmp_path / "other" / "work"
        settings, others = (
            json.loads((each / ".mcp.json").read_text())["mcpServers"]["kevin-env"]
            for each in (mine, other)
        )
        assert (mine / ".mcp.json").stat().st_mode & 0o077 == 0
        settings["headers"] = others["headers"]
        (other / ".mcp.json").write_text(json.dumps({"mcpServers": {"kevin-env": settings}}))
        refused = check(other)
        assert refused.returncode == 2 and "401" in refused.stderr
        assert scripted.submissions == []
        assert "Turn 1: correct/timed" in check(mine).stdout


@pytest.mark.full
def test_checks_of_two_processes_share_the_turns(tmp_path: Path) -> None:
    problem_file(tmp_path)
    scripted = ScriptedPool([correct(2.0)] * 2)
    words = ["7_Double.py", "work", "--rules", "open", "--max-turns", "2"]
    with served(scripted) as (judges, _), workspace(tmp_path, judges.url, *words) as (process, _):
        work = tmp_path / "work"
        assert check(work, "nothing.py").returncode == check(work, "--help").returncode == 2
        first = check(work)
        assert "1 turn and 60 minutes left" in first.stdout and first.returncode == 0
        assert check(work).stdout == first.stdout
        (work / "kernel.py").write_text("def broken(:\n")
        last = check(work)
        assert last.returncode == 1 and "The episode has ended" in last.stdout
        process.wait(60)
        gone = check(work)
        assert gone.returncode == 2 and "the episode has ended" in gone.stderr
    assert len(recorded(tmp_path / "trajectories.jsonl")[0].turns) == 2


def test_the_episode_ends_with_its_time(tmp_path: Path) -> None:
    problem_file(tmp_path)
    words = ["7_Double.py", "work", "--minutes", "0.02"]
    with (
        served(ScriptedPool([])) as (judges, _),
        workspace(tmp_path, judges.url, *words) as (process, _),
    ):
        assert process.wait(60) == 0
        assert check(tmp_path / "work").returncode == 2


def test_a_server_that_is_told_to_stop_leaves_a_finished_episode(tmp_path: Path) -> None:
    problem_file(tmp_path)
    words = ["7_Double.py", "work", "--rules", "open"]
    with (
        served(ScriptedPool([correct(2.0)])) as (judges, _),
        workspace(tmp_path, judges.url, *words) as (process, _),
    ):
        check(tmp_path / "work")
        process.terminate()
        assert process.wait(60) == 130
    [episode] = recorded(tmp_path / "trajectories.jsonl")
    assert (len(episode.turns), episode.stop_reason) == (1, "interrupted")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["7_Double.py", "work", "--out", "work/t.jsonl"], "outside of work"),
        (["7_Double.py", "work", "--host", "0.0.0.0"], "the address at which the agent"),
        (["7_Double.py", "full"], "not empty"),
        (["7_Double.py", "full/mine.py"], "it is a file"),
        (["7_Double.py", "work", "--templates", "kevin-paper"], "for chats"),
    ],
)
@pytest.mark.usefixtures("one_pool")
def test_a_workspace_that_cannot_be_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    problem_file(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.py").touch()
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["workspace", *words])
    *_, last = done.stderr.splitlines()
    assert done.exit_code == 2 and told in last


def test_what_goes_wrong_in_a_check_is_one_line_and_no_verdict(tmp_path: Path) -> None:
    problem_file(tmp_path)
    words = ["7_Double.py", "work", "--rules", "open"]
    with (
        served(ScriptedPool([correct(2.0)])) as (judges, _),
        workspace(tmp_path, judges.url, *words) as (process, _),
    ):
        assert check_file.LONGEST == MOST_CODE
        work = tmp_path / "work"
        (work / "long.py").write_text("#" * (check_file.LONGEST + 1))
        settings = (work / ".mcp.json").read_text()
        for broken in ("[]", "{", '{"mcpServers": {}}'):
            (work / ".mcp.json").write_text(broken)
            assert_no_verdict(check(work), "cannot read .mcp.json")
        (work / ".mcp.json").write_text(settings)
        assert_no_verdict(check(work, "long.py"), "long.py has 1,048,577 characters; the limit is")
        assert_no_verdict(check(work, "kernel.py", "/proc/x/score.json"), "run the same command")
        with Path("/dev/full").open("w") as full:
            command = ["./check", "kernel.py"]
            done = subprocess.run(command, cwd=work, stdout=full, stderr=-1, text=True)
            assert_no_verdict(done, "No space left")
        process.terminate()
        process.wait(60)
        assert_no_verdict(check(work), "the server is gone, so the episode has ended")


def assert_no_verdict(done: subprocess.CompletedProcess[str], told: str) -> None:
    assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") <= 2


def test_an_interrupted_check_is_one_line(tmp_path: Path) -> None:
    problem_file(tmp_path)
    interrupted = threading.Event()

    def verdict(*_: object) -> Correct:
        interrupted.wait(60)
        return correct(2.0)

    words = ["7_Double.py", "work", "--rules", "open"]
    with served(ScriptedPool(verdict)) as (judges, _), workspace(tmp_path, judges.url, *words):
        asked = subprocess.Popen(
            ["./check", "kernel.py"], cwd=tmp_path / "work", stderr=subprocess.PIPE, text=True
        )
        assert asked.stderr
        asked.stderr.readline()  # that it is being judged
        asked.send_signal(signal.SIGINT)
        _, told = asked.communicate(timeout=30)
        interrupted.set()
        assert asked.returncode == 2
        assert told.endswith("interrupted; run the same command again to see the verdict\n")


@pytest.mark.full
def test_the_three_commands_of_the_page(tmp_path: Path, pool: LocalPool) -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    lines = re.findall(r"^    (.*?)(?:  +#.*)?$", page, re.MULTILINE)[:3]
    install, write, judge = map(str.strip, lines)
    site = tmp_path / "site"
    environment = {
        **os.environ,
        "PATH": f"{site / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(site),
        # What it depends on is here already.
        **{"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_TARGET": str(site)},
    }
    done = subprocess.run(["sh", "-c", install], cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 0 and (site / "kevin_env").is_dir(), done.stderr.decode()
    with served(pool) as (judges, _):
        environment["KEVIN_ENV_POOL"] = judges.url
        with running(shlex.split(write), tmp_path, environment):
            judged = subprocess.run(
                ["sh", "-c", judge], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
    assert judged.returncode == 1 and "Turn 1: rules/torch_compute" in judged.stdout
    assert "19 turns and 60 minutes left" in judged.stdout
