"""Problems as Harbor's tasks: written and graded here, and read by Harbor's own code where it is."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from episodes import WRONG, correct, problem_file
from serving import served

from kevin_env.pools.scripted import ScriptedPool

TOKEN = {"KEVIN_ENV_MCP_TOKEN": "secret"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the exported task, whose server runs."""
    folder = tmp_path_factory.mktemp("harbor")
    problem_file(folder)
    ours = [sys.executable, "-m", "kevin_env"]
    with served(ScriptedPool([WRONG, correct(2.0)])) as (judges, _):
        environment = {**os.environ, **TOKEN, "KEVIN_ENV_POOL": judges.url}
        serve = [
            *ours,
            "mcp",
            "--http",
            "--port",
            "0",
            "--problem",
            "7_Double.py",
            "--rules",
            "open",
        ]
        with subprocess.Popen(
            serve, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stderr
                url = server.stderr.readline().split()[2].rstrip(";")
                export = [*ours, "export-problems", "7_Double.py", "--format", "harbor"]
                export += ["--url", url, "--out", "tasks"]
                subprocess.run(export, cwd=folder, env=environment, check=True)
                yield folder / "tasks" / "7_Double"
            finally:
                server.terminate()


def graded(folder: Path, kernel: str, token: dict[str, str]) -> tuple[int, dict[str, float] | None]:
    """The exit code and the rewards of the task's own test, in a place of its own."""
    (folder / "kernel.py").write_text(kernel)
    rewards = folder / "reward.json"
    rewards.unlink(missing_ok=True)
    script = (folder / "tests" / "test.sh").read_text()
    for inside, here in (
        ("/tests/", f"{folder}/tests/"), ("/app/kernel.py", str(folder / "kernel.py")),
        ("/logs/verifier/reward.json", str(rewards)),
    ):  # fmt: skip
        assert inside in script
        script = script.replace(inside, here)
    done = subprocess.run(["sh", "-c", script], env={**os.environ, **token}, capture_output=True)
    return done.returncode, json.loads(rewards.read_text()) if rewards.exists() else None


@pytest.mark.full
def test_a_kernel_is_graded_outside_of_its_container(folder: Path) -> None:
    kernel = (folder / "environment" / "kernel.py").read_text()
    assert graded(folder, kernel, {"KEVIN_ENV_MCP_TOKEN": "guess"}) == (1, None)
    assert graded(folder, kernel, TOKEN) == (0, {"reward": 0.0, "speedup": 0.0})
    assert graded(folder, kernel, TOKEN) == (0, {"reward": 2.3, "speedup": 2.0})
    text = (folder / "instruction.md").read_text()
    assert "Doubles x." in text and '"7_Double"' in text
    assert all("secret" not in each.read_text() for each in folder.rglob("*") if each.is_file())


def test_a_problem_that_the_server_does_not_have_is_one_line(folder: Path) -> None:
    url = json.loads((folder / "tests" / ".mcp.json").read_text())["mcpServers"]["kevin-env"]["url"]
    export = [sys.executable, "-m", "kevin_env", "export-problems", "L1_36_RMSNorm_", "--out", "x"]
    done = subprocess.run(
        [*export, "--format", "harbor", "--url", url], env={**os.environ, **TOKEN}, cwd=folder,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "unknown problem 'L1_36_RMSNorm_'" in done.stderr


def test_harbor_accepts_the_task(folder: Path) -> None:
    harbor = shutil.which(os.environ.get("HARBOR", "harbor"))
    if harbor is None:
        pytest.skip("Harbor is not installed (it needs Python 3.12): uv tool install harbor")
    done = subprocess.run([harbor, "lint", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
