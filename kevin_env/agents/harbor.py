"""Problems as tasks of Harbor: a folder each, graded by a server outside of the agent's container.

The server is `kevin-env mcp --http`. It is asked for the task of each problem, so that texts agree
with how it judges. Agents have its tools, too; a container of its own, which the agent's files do
not reach but for `/app/kernel.py`, has that graded in a new episode, whose score is the reward.
"""

import json
import re
import urllib.error
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from kevin_env.agents import check
from kevin_env.app.errors import BadInput
from kevin_env.app.writing import write_text
from kevin_env.difficulty import tags_of
from kevin_env.problem import Problem
from kevin_env.templates import render

KERNEL = "/app/kernel.py"
_IMAGE = "python:3.12-slim-bookworm"
_AGENT_SECONDS, _JUDGE_SECONDS = 3600.0, 1800.0
_DOCKERFILE = f"FROM {_IMAGE}\nWORKDIR /app\nCOPY . {{}}\n"
_TEST = f"""#!/bin/sh
python3 /tests/check.py {KERNEL} /logs/verifier/reward.json
test $? -lt 2
"""
"""A wrong kernel has a reward, too; without a verdict there is none."""


def export_harbor(problems: Sequence[Problem], out: Path, url: str, token: str) -> None:
    """Writes a task for each problem.

    Args:
        problems: problems that the server offers.
        out: the folder of the tasks.
        url: of the server, as containers reach it; it must be reached from here, too.
        token: of the server. Tasks name its environment variable only.

    Raises:
        BadInput: if the server cannot be reached, or does not offer a problem.
        OSError: if the folder cannot be written.
    """
    for each in problems:
        try:
            headers, task = check.start(url, token, each.id)
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise BadInput(f"{each.id} of {url}: {reason}") from error
        check.end(url, headers)
        for name, text in _files(each, task, url).items():
            path = out / re.sub(r"[^\w.-]+", "-", each.id) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)


def _files(problem: Problem, task: dict[str, Any], url: str) -> dict[str, str]:
    server = {"type": "http", "url": url, "headers": {}}
    settings = {"mcpServers": {"kevin-env": server}, "problem": problem.id}
    shown = {name: task[name] for name in ("task", "problem_id")}
    return {
        "task.toml": tomli_w.dumps(_config(problem, url)),
        "instruction.md": render("agents/harbor.j2", **shown).strip() + "\n",
        "environment/Dockerfile": _DOCKERFILE.format("/app/"),
        "environment/reference.py": task["reference"],
        "environment/kernel.py": task["first_kernel"],
        "tests/Dockerfile": _DOCKERFILE.format("/tests/"),
        "tests/check.py": Path(check.__file__).read_text(encoding="utf-8"),
        "tests/.mcp.json": json.dumps(settings, indent=2) + "\n",
        "tests/test.sh": _TEST,
    }


def _config(problem: Problem, url: str) -> dict[str, Any]:
    secret = f"${{{check.TOKEN}}}"
    tools = {
        "name": "kevin-env", "transport": "streamable-http", "url": url,
        "headers": {"Authorization": f"Bearer {secret}"},
    }  # fmt: skip
    return {
        "schema_version": "1.4",
        "artifacts": [KERNEL],
        "task": {
            "name": "kevin-env/" + re.sub(r"[^\w.-]+", "-", problem.id),
            "description": problem.statement.partition("\n")[0],
            "keywords": ["kernels", *tags_of(problem)],
        },
        "metadata": {"problem": problem.id, "sha256": problem.sha256},
        "agent": {"timeout_sec": _AGENT_SECONDS},
        "verifier": {
            "timeout_sec": _JUDGE_SECONDS,
            "environment_mode": "separate",
            "env": {check.TOKEN: secret},
        },
        "environment": {"workdir": "/app", "mcp_servers": [tools]},
    }
