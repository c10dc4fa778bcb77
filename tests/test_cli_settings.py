"""How an episode is played is said in the same words to `gym.make`, `play`, `eval` and `serve`."""

import inspect
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from episodes import OTHER_SETTINGS, another, correct, problem_file
from stub_server import Answer, delta, serve
from typer.testing import CliRunner, Result

from kevin_env.app import arguments
from kevin_env.app.evaluate.config import read_config
from kevin_env.cli import app
from kevin_env.cli import play as cli_play
from kevin_env.cli.options import EPISODE
from kevin_env.env import KevinEnv
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.recorder import read_trajectories
from kevin_env.settings import Settings

OVERRIDES = [
    word
    for name, value in OTHER_SETTINGS.items()
    for word in ("-o", f"settings.{name}={str(value).lower()}")
]
FLAGS = [
    word
    for name, value in OTHER_SETTINGS.items()
    for word in (f"--{name.replace('_', '-')}", str(value))
    if value and word != "True"
]


class Seen(Exception):
    """Carries the settings that a command arrived at."""


@pytest.fixture(autouse=True)
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def open_pool(device: str) -> Iterator[ScriptedPool]:
        with closing(ScriptedPool([correct(2.0)] * 4)) as pool:
            yield pool

    monkeypatch.setattr(arguments, "open_pool", open_pool)
    monkeypatch.chdir(tmp_path)


def settings_of(command: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What a command makes of its words."""
    if command == "eval":
        overrides = [word for word in words if word != "-o"]
        return read_config(None, overrides, {"problem": "L1", "policy.model": "m"}).settings
    seen: list[Settings] = []
    if command == "play":
        monkeypatch.setattr(cli_play._Play, "run", lambda self, starts: seen.append(self.settings))
        begin = "--problem L1_23_Softmax --model m --base-url http://127.0.0.1:9/v1"
        words = [*begin.split(), *words]
    else:
        server = pytest.importorskip("kevin_env.integrations.openenv.server.app")

        def make_app(pool: Any, settings: Settings, **more: Any) -> None:
            seen.append(settings)
            raise Seen

        monkeypatch.setattr(server, "make_app", make_app)
        words = ["--port", "0", *words]
    result = CliRunner().invoke(app, [command, *words])
    assert result.exit_code == 0 or isinstance(result.exception, Seen), result.output
    return seen[0]


def test_the_environment_has_every_setting_by_its_name_and_default() -> None:
    parameters = inspect.signature(KevinEnv.__init__).parameters
    given = {
        name: each.default
        for name, each in parameters.items()
        if each.default is not inspect.Parameter.empty
    }
    assert given.keys() - Settings.model_fields.keys() == {"problem", "pool", "render_mode"}
    assert {name: given[name] for name in Settings.model_fields} == Settings().model_dump()
    assert OTHER_SETTINGS.keys() == Settings.model_fields.keys() == set(EPISODE)


FULL_SERVE = pytest.param("serve", marks=pytest.mark.full)
"""Its server takes seconds to import."""


@pytest.mark.parametrize("command", ["play", "eval", FULL_SERVE])
def test_every_command_takes_every_setting(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = {"baseline": "eager"} if command == "eval" else {}  # what its tables are over
    assert settings_of(command, [], monkeypatch) == Settings.of(default)
    assert settings_of(command, OVERRIDES, monkeypatch) == Settings.of(OTHER_SETTINGS)


@pytest.mark.parametrize("command", ["play", FULL_SERVE])
def test_every_setting_is_an_option(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_of(command, FLAGS, monkeypatch) == Settings.of(OTHER_SETTINGS)
    override = ["-o", "settings.max_turns=7"]
    assert settings_of(command, [*override, *FLAGS], monkeypatch).max_turns == 7, (
        "an override goes before an option"
    )


SERVE = pytest.param("serve --port 0", marks=pytest.mark.full)
PLAY = "play --problem L1_23_Softmax --model m"
NOWHERE = "-o settings.examples=retrieved -o settings.index=nowhere"


@pytest.mark.parametrize("command", [PLAY, SERVE])
def test_a_bad_setting_is_one_clear_line(command: str) -> None:
    """All of them: `test_episode.test_bad_settings_are_one_clear_line`."""
    if command != PLAY:
        pytest.importorskip("openenv")
    for words, said in (
        ("--score best", "setting score='best'"),
        ("-o settings.gamma=2", "setting gamma=2"),
        (NOWHERE, "there is no index at"),
    ):
        assert said in failure([*command.split(), *words.split()])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-o settings.gamma", "write -o key=value"),
        ("-o gamma=0.8", "-o gamma=0.8: only settings can be set here, such as -o settings.gamma"),
        ("--examples retrieved", "need an index"),
    ],
)
def test_bad_words_are_one_clear_line(words: str, said: str) -> None:
    assert said in failure([*PLAY.split(), *words.split()])


def test_bad_settings_of_an_evaluation_are_one_clear_line_before_it_begins() -> None:
    begin = "eval --problem L1_23_Softmax --model m --base-url http://127.0.0.1:9/v1 --out run"
    assert "there is no index at" in failure([*begin.split(), *NOWHERE.split()])
    assert not Path("run").exists()


def failure(words: list[str]) -> str:
    result: Result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("kevin-env: ")
    return line


def test_only_the_parameters_that_were_given_are_sent(tmp_path: Path) -> None:
    problem_file(tmp_path)
    words = "play --problem 7_Double.py --model m --max-turns 1 -o settings.gamma=0.8"
    with serve(Answer([delta(content=another(1)), delta("stop")])) as stub:
        more = ["--base-url", stub.url, "--top-p", "0.95", "--out", "out.jsonl"]
        result = CliRunner().invoke(app, [*words.split(), *more])
    assert result.exit_code == 0, result.output
    [request] = stub.requests
    assert request["top_p"] == 0.95
    assert not {"temperature", "max_tokens", "seed"} & request.keys()
    [trajectory] = read_trajectories(tmp_path / "out.jsonl")
    assert getattr(trajectory, "config", {})["gamma"] == 0.8
