"""The built wheel works away from its checkout: it carries problems, prompts and all that pages are
made of.
"""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASK = """
import json, kevin_env
from kevin_env.app.demo import demo_replies
from kevin_env.problem import data_folder, list_problems
print(json.dumps([kevin_env.__file__, str(data_folder("prompts")), len(list_problems()), len(demo_replies("cpu"))]))
"""


def test_the_package_for_verifiers_needs_what_kevin_env_needs() -> None:
    package = ROOT / "environments" / "kevin_vf" / "pyproject.toml"
    ours, theirs = (
        tomllib.loads(file.read_text())["project"] for file in (ROOT / "pyproject.toml", package)
    )
    extra = ours["optional-dependencies"]["verifiers"]
    assert theirs["dependencies"] == [*ours["dependencies"], *extra]
    for name in ("version", "license", "requires-python"):
        assert theirs[name] == ours[name]


@pytest.mark.full
def test_the_wheel_carries_what_it_needs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    site = tmp_path / "site"
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    package, prompts, problems, replies = json.loads(done.stdout)
    assert Path(package).is_relative_to(site)
    assert Path(prompts).is_relative_to(site)
    assert problems >= 10
    assert replies == 6
    files = (path.relative_to(ROOT) for path in (ROOT / "kevin_env").rglob("*") if path.is_file())
    beside_code = [path for path in files if path.suffix not in (".py", ".pyc")]
    assert {path.suffix for path in beside_code} >= {
        ".js",
        ".css",
        ".j2",
        ".md",
        ".typed",
        ".yaml",
    }
    assert [path for path in beside_code if not (site / path).exists()] == []
    assert (site / "kevin_env" / "_data" / "problems" / "difficulty.json").exists()
