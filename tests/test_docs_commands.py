"""Every command of a page runs as it stands there, with a scripted judge and model, or its reason not
to is in a table.
"""

import re
import shlex
import shutil
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

import pytest
from episodes import REPLY, correct
from stub_server import Answer, delta, serve
from test_docs import PAGES, ROOT
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.pools.scripted import ScriptedPool

PROGRAMS = "kevin-env|pip|pipx|uv|python|make|cd|claude|docker|vf-eval|openenv|git|curl"
COMMAND = re.compile(rf"^    ((?:export )?(?:[A-Z_]+=\S+ ?)*(?:(?:{PROGRAMS}) .*)?)$", re.MULTILINE)
PAGES_WITH_COMMANDS = [
    *PAGES,
    ROOT / "kevin_env" / "integrations" / "openenv" / "README.md",
    ROOT / "environments" / "kevin_vf" / "README.md",
]
NOT_RUN = {
    r"make demo": ("judges for half a minute", "tests/test_demo_env.py"),
    r"make ": ("is what runs the tests, or is run beside them", "Makefile"),
    r"(uv pip|pip|pipx) install": ("downloads gigabytes", ".ci/image.py"),
    r"export |[A-Z_]+=": ("sets what another program reads", "tests/pools/test_http_pool.py"),
    r"kevin-env judge .*--watch": ("runs until it is stopped", "tests/test_cli.py"),
    r"kevin-env judge --kernelbench-run": ("judges a run of KernelBench", "tests/test_rejudge.py"),
    r"kevin-env problems lint": ("judges for minutes", "tests/lint/test_lint_problems.py"),
    r"kevin-env workspace|cd work": (
        "serves until it is stopped",
        "tests/agents/test_workspace.py",
    ),
    r"kevin-env mcp": ("serves until it is stopped", "tests/agents/test_mcp.py"),
    r"kevin-env agent|kevin-env eval --agent|claude": (
        "starts an agent",
        "tests/agents/test_agent.py",
    ),
    r"kevin-env serve": ("serves until it is stopped", "tests/integrations/test_openenv.py"),
    r"kevin-env judge-server": ("serves until it is stopped", "tests/pools/test_judge_server.py"),
    r"kevin-env replay run --serve": ("serves until it is stopped", "tests/test_replay_serve.py"),
    r"kevin-env play .*--human": ("asks a person", "tests/test_play_terminal.py"),
    r"kevin-env play .*local:": ("loads a model", "tests/test_policies_local.py"),
    r"kevin-env play --resume": ("continues what was interrupted", "tests/test_play.py"),
    r"kevin-env (index|play .*--index|eval \.\.\.)": (
        "embeds with a model that is not here",
        "tests/retrieval/test_index.py",
    ),
    r"kevin-env eval examples/configs": ("is at a fixed address", "tests/test_examples.py"),
    r"kevin-env export-problems .*harbor": ("asks a server", "tests/agents/test_harbor.py"),
    r"python examples/train_t": ("trains a model", "tests/integrations/test_trl.py"),
    r"python examples/train_s": ("trains a model", "tests/integrations/test_skyrl_trainer.py"),
    r"vf-eval": ("is a program of verifiers", "tests/integrations/test_verifiers.py"),
    r"python -m hatchling|docker": ("builds the image", ".ci/image.py"),
}
"""Commands by how they begin: why a test does not run them, and what covers them instead."""
SMALLER = (
    (r"--problem train", "--problem L1_36_RMSNorm_"),
    (r"--samples \d+", "--samples 1"),
    (r"--max-turns \d+", "--max-turns 2"),
)


def commands(page: Path) -> list[str]:
    """The commands of a page, without their comments."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    return [
        command
        for line in COMMAND.findall(text)
        if (command := re.split(r"\s+#(?:\s|$)", line)[0].strip())
    ]


ALL = {page: commands(page) for page in PAGES_WITH_COMMANDS}


def reason(command: str) -> str | None:
    return next((each for each in NOT_RUN if re.match(each, command)), None)


RUN = {page: [each for each in found if not reason(each)] for page, found in ALL.items()}


def test_no_command_is_overlooked() -> None:
    """Each line of the form of a command is found, and each row of the table is needed."""
    found = [command for page in ALL.values() for command in page]
    assert len(found) > 60
    assert set(NOT_RUN) == {reason(command) for command in found} - {None}
    assert [file for _, file in NOT_RUN.values() if not (ROOT / file).exists()] == []


@pytest.mark.usefixtures("no_endpoint")
@pytest.mark.parametrize("page", [*filter(RUN.get, RUN)], ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ScriptedPool(lambda problem, submission: correct(2.0))
    monkeypatch.setattr("kevin_env.app.arguments.named_pool", lambda *_: nullcontext(pool))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "problems" / "solutions" / "L1_36_RMSNorm_.triton.py", "kernel.py")
    played = ROOT / "examples" / "demo.h200.jsonl"
    shutil.copy(played, "other_run")
    if not any("--out run.jsonl" in command for command in RUN[page]):
        shutil.copy(played, "run.jsonl")
    with serve(Answer([delta(content=REPLY), delta(finish="stop")])) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        for command in RUN[page]:
            run(command.replace("http://127.0.0.1:8000/v1", stub.url))


def run(command: str) -> None:
    for large, small in SMALLER:
        command = re.sub(large, small, command)
    program, *words = shlex.split(command.split(" > ")[0])
    assert program == "kevin-env"
    found = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words]
    done = CliRunner().invoke(app, [*chain.from_iterable(found)])
    assert done.exit_code == 0, f"{command}\n{done.output}"
