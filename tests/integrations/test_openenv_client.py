"""The client as users install it: from a Space that `openenv push` staged, through AutoEnv."""

import subprocess
import sysconfig
import venv
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("openenv")

from episodes import REPLY, correct
from openenv.cli.commands import push
from openenv_server import serving

from kevin_env.integrations import openenv as folder
from kevin_env.integrations.openenv.server.environment import NAME
from kevin_env.pools.scripted import ScriptedPool

SPACE = f"someone/{NAME}"
CLIENT = """
import sys
from openenv import AutoAction, AutoEnv

env = AutoEnv.from_env(sys.argv[1], base_url=sys.argv[2], trust_remote_code=True)
action = AutoAction.from_env("kernel")(code=sys.argv[3])
with env:
    assert env.reset(problem_id="L1_23_Softmax").observation.messages
    print(type(env).__module__, env.step(action).reward)
assert not {"kevin_env", "torch"} & sys.modules.keys()
"""


def stage(path: Path) -> None:
    """A Git repository with what `openenv push` uploads."""
    source = Path(folder.__file__).parent
    ignored = push._load_ignore_patterns(source, None)
    push._prepare_staging_directory(source, NAME, path, ignored)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "Space"]):
        subprocess.run(["git", *words], cwd=path, check=True)


def environment(path: Path, spaces: Path) -> dict[str, str]:
    """Variables for a new virtual environment at `path` that has the packages of this one, and
    Git repositories in `spaces` instead of Spaces.
    """
    venv.create(path, with_pip=True)
    site = sysconfig.get_path("purelib", vars={"base": str(path)})
    (Path(site) / "packages.pth").write_text(sysconfig.get_path("purelib"))
    return {
        "HOME": str(path),
        "PATH": f"{path}/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": str(path),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say yes
        "https_proxy": "http://127.0.0.1:9",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{spaces.as_uri()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://huggingface.co/spaces/",
    }


def test_autoenv_installs_the_client_from_the_space(tmp_path: Path) -> None:
    spaces, client = tmp_path / "spaces", tmp_path / "venv"
    stage(spaces / SPACE)
    variables = environment(client, spaces)

    def run(*words: str) -> str:
        done = subprocess.run(words, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with closing(ScriptedPool(lambda *_: correct(2.0))) as pool, serving(pool) as url:
        play = (f"{client}/bin/python", "-c", CLIENT, SPACE, url, REPLY)
        assert run(*play) == "kernel_env.client 2.3\n"
        spaces.rename(tmp_path / "gone")
        assert run(*play) == "kernel_env.client 2.3\n"  # what is installed is found
    assert "Requires: openenv\n" in run(f"{client}/bin/pip", "show", f"openenv-{NAME}")
