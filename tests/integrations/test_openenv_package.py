"""The folder as OpenEnv's own tools see it, the image as far as it can be read, and the command
that serves.
"""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
import zipfile
from contextlib import closing
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv")

import yaml
from episodes import WRONG
from openenv.cli.__main__ import app as openenv_cli
from openenv.cli._cli_utils import validate_env_structure
from openenv.cli._validation import validate_running_environment
from openenv.validation import run_validation
from openenv.validation.types import CheckStatus, ProviderCapability
from openenv_server import serving
from typer.main import get_command
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.integrations.openenv.server.environment import DESCRIPTION, NAME, reward_range
from kevin_env.integrations.openenv.server.sessions import ServerLimits
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.rules import check_rules
from kevin_env.settings import Settings

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "kevin_env" / "integrations" / "openenv"
MANIFEST = yaml.safe_load((FOLDER / "openenv.yaml").read_text())
KEVIN_ENV = [sys.executable, "-m", "kevin_env"]


class Loopback:
    """A provider for OpenEnv's runtime validation: no container, but the command that the image
    starts.
    """

    name = "loopback"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD, ProviderCapability.GPU})
    supported_network_modes = frozenset({"public", "no-network"})

    def __init__(self, url: str) -> None:
        self.base_url = url

    def build(self, root: Path, execution: Any) -> str:
        return "sha256:" + "0" * 64

    def start(self, spec: Any) -> "Loopback":
        return self

    def inspect(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        pass


def test_the_folder_passes_openenvs_validation() -> None:
    done = CliRunner().invoke(openenv_cli, ["validate", str(FOLDER), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    statuses = {result["check_id"]: result["status"] for result in report["results"]}
    assert statuses["static.manifest"] == "pass" and "fail" not in statuses.values()
    assert report["verdict"] == "warn"  # what needs a GPU, or is not in this OpenEnv, is left out
    validate_env_structure(FOLDER)


def test_an_episode_passes_openenvs_validation() -> None:
    """The plan in the folder, played and graded by OpenEnv: rewards in range, observations and
    state as declared.
    """
    with closing(ScriptedPool([WRONG])) as pool, serving(pool) as url:
        report = run_validation(FOLDER, provider=Loopback(url))
        results = {result.check_id: (result.status, result.evidence) for result in report.results}
        for check in ("startup", "reward_well_formed", "observation_schema", "state_contract"):
            assert results[f"runtime.{check}"][0] is CheckStatus.PASS, results
        (judged,) = pool.submissions
        assert (
            check_rules(judged[1].code) is None
        )  # the plan also has an answer without code, and one that is broken


def test_the_command_serves_until_it_is_interrupted() -> None:
    process = subprocess.Popen(
        [*KEVIN_ENV, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found is not None
        report = validate_running_environment(found.group(), timeout_s=60)
        assert report["passed"], report
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == ""


def test_the_manifest_says_what_is_so() -> None:
    validation = MANIFEST["validation"]
    assert tuple(validation["reward"]["range"]) == reward_range(Settings().score)
    assert (MANIFEST["name"], MANIFEST["description"]) == (NAME, DESCRIPTION)
    own = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    assert MANIFEST["version"] == own["version"] == metadata.version("kevin-env")
    assert own["name"] == f"openenv-{NAME.replace('_', '-')}"  # AutoEnv derives it from the Space
    module, _, name = MANIFEST["app"].partition(":")
    asgi = getattr(import_module(module), name)
    assert "/kernel_env/splits" in str(asgi.openapi()["paths"]).replace("{env_name}", NAME)
    with pytest.raises(AttributeError):
        import_module(module).nothing  # noqa: B018
    assert (
        Settings().max_turns * ServerLimits().step_timeout
        <= validation["resources"]["episode_timeout_s"]
    )


def test_the_hardware_of_the_space_fits_the_problems() -> None:
    card = (FOLDER / "README.md").read_text()
    measured = json.loads((ROOT / "benchmarks" / "results" / "lint.h200.json").read_text())["rows"]
    most = max(row["peak_bytes"] for row in measured if row["name"].startswith("ours/"))
    assert f"largest problem takes {most / 1e9:.1f} GB" in card
    suggested = re.search(r"^suggested_hardware: (\S+)$", card, re.MULTILINE)
    assert suggested and f"--hardware {suggested.group(1)}`" in card


def test_the_image_is_made_of_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / ".ci")
    build = [
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist"),
    ]  # fmt: skip
    subprocess.run(
        build, cwd=ROOT, check=True, capture_output=True
    )  # as the README says, but for the place
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    own = ("openenv.yaml", "README.md", "Dockerfile", "pyproject.toml", "validation/runtime.json")
    assert {f"kevin_env/integrations/openenv/{name}" for name in own} <= shipped
    steps = import_module("image").instructions((FOLDER / "Dockerfile").read_text())
    known = {"ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert {word for word, _ in steps} <= known
    for word, rest in steps:
        if word == "RUN":
            subprocess.run(["bash", "-n", "-c", rest], check=True)
        if word == "COPY":
            *sources, _ = rest.split()
            assert all(
                (FOLDER / source).exists() or (tmp_path / source).exists() for source in sources
            ), rest
    said = dict(steps)
    assert "-devel-" in said["ARG"] or any(
        "-devel-" in rest for word, rest in steps if word == "ARG"
    )
    assert int(said["EXPOSE"]) == MANIFEST["port"] and said["USER"] not in ("root", "0")
    name, _, *words = json.loads(said["CMD"])
    assert name in {script.name for script in metadata.distribution("kevin-env").entry_points}
    serve: Any = get_command(app).commands["serve"]  # pyright: ignore[reportAttributeAccessIssue]
    given = serve.make_context("serve", list(words)).params
    assert (given["host"], given["port"]) == ("0.0.0.0", MANIFEST["port"])
    python, flag, check = shlex.split(said["HEALTHCHECK"].partition("CMD ")[2])
    assert (python, flag) == ("python", "-c") and f":{MANIFEST['port']}/health" in check
    compile(check, "HEALTHCHECK", "exec")


def test_the_torch_of_the_image_is_the_one_that_is_tested() -> None:
    pinned = re.search(r"^torch==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned and f"ARG TORCH={pinned.group(1)}\n" in (FOLDER / "Dockerfile").read_text()


def test_the_command_says_in_one_line_what_is_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["serve", "--port", port])
    assert (done.exit_code, done.stdout) == (2, "")
    told = f"kevin-env: port {port} of 127.0.0.1 is in use; choose another with --port\n"
    assert done.stderr == told
    for words in (
        ["--problem", "L1_23"],
        ["--score", "nonsense"],
        ["--host", "256.1.1.1"],
        ["--step-timeout", "inf"],
    ):
        done = CliRunner().invoke(app, ["serve", "--port", "0", *words])
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.stderr
    without = "import sys; sys.modules['openenv'] = None; import kevin_env.cli as c; sys.argv = ['x', 'serve']; c.main()"
    run = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    assert run.returncode == 2
    assert (
        run.stderr == "kevin-env: this needs the extra openenv: pip install 'kevin-env[openenv]'\n"
    )
