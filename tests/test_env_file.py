"""Keys of endpoints out of a `.env` file: who reads it, what goes before it, and where the keys
never are.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from episodes import SOURCE, another, correct, problem_file
from stub_server import Answer, Stub, delta, serve
from typer.testing import CliRunner, Result

from kevin_env.app import arguments
from kevin_env.app.env_file import load_env_file
from kevin_env.cli import app
from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import parse_problem

KEY = "sk-from-the-file-0123456789"
OTHER = "sk-from-the-environment-012"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of one's own, an environment without keys that is put back afterwards, and a
    scripted judge.
    """

    @contextmanager
    def open_pool(device: str, pool: str | None = None) -> Iterator[ScriptedPool]:
        with closing(ScriptedPool([correct(2.0)] * 8)) as opened:
            yield opened

    monkeypatch.setattr(arguments, "open_pool", open_pool)
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN"):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever is loaded
        monkeypatch.delenv(name)
    return tmp_path


def write(text: str) -> Path:
    file = Path(".env")
    file.write_text(text)
    return file


def play(*words: str, model: str = "m") -> Result:
    problem_file(Path.cwd())
    return CliRunner().invoke(
        app, ["play", "--problem", "7_Double.py", "--model", model, "--max-turns", "1", *words]
    )


def keys(stub: Stub) -> set[str]:
    return {key.removeprefix("Bearer ") for key in stub.keys}


def reply() -> Answer:
    return Answer([delta(content=another(1)), delta("stop")])


def test_what_is_written_there_is_taken_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""\ufeff# my keys
    export OPENAI_API_KEY="{KEY}"
    OPENAI_BASE_URL=http://${{HOST_OF_MINE}}:8000/v1   # a comment
    HF_TOKEN='hf $x # y'

    OPENAI_ORG_ID
    PATH=/nowhere
    LD_PRELOAD=evil.so
    DATABASE_URL=postgres://me@localhost
    OPENAI_API_TYPE=azure
    OPENAI_API_KEY_OF_MINE=x
    HF_HOME=/nowhere
    OTHER: no assignment
    ANOTHER='not closed
    OPENAI_PROJECT_ID=p1
    """
    monkeypatch.setenv("HOST_OF_MINE", "gpu7")
    environment = {"PATH": "/bin", "HF_TOKEN": ""}
    load_env_file(write(text), environment)
    assert environment == {
        "PATH": "/bin", "HF_TOKEN": "", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://gpu7:8000/v1",
        "OPENAI_PROJECT_ID": "p1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("set_before", "told"),
    [
        ({"OPENAI_API_KEY": OTHER}, True),
        ({}, False),
        ({"OPENAI_API_KEY": OTHER, "OPENAI_BASE_URL": "http://a"}, False),
    ],
)
def test_a_key_that_goes_where_the_file_says_is_told(
    set_before: dict[str, str], told: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    load_env_file(
        write("OPENAI_API_KEY=k\nOPENAI_BASE_URL=http://gpu7/v1\nBAD LINE: x\n"), dict(set_before)
    )
    assert capfd.readouterr() == (
        "",
        "kevin-env: using OPENAI_BASE_URL from .env\n" if told else "",
    )


def test_flags_go_before_the_environment_and_that_before_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(reply()) as by_flag, serve(reply()) as by_environment, serve(reply()) as by_file:
        write(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={by_file.url}\n")
        monkeypatch.setenv("OPENAI_BASE_URL", by_environment.url)
        assert play("--base-url", by_flag.url).exit_code == 0
        assert (len(by_flag.requests), len(by_environment.requests), len(by_file.requests)) == (
            1,
            0,
            0,
        )
        monkeypatch.setenv("OPENAI_API_KEY", OTHER)
        assert play().exit_code == 0
        assert (keys(by_environment), len(by_file.requests)) == ({OTHER}, 0)
        monkeypatch.delenv("OPENAI_BASE_URL")
        assert play().exit_code == 0
        assert keys(by_file) == {OTHER}


def test_the_library_does_not_read_it() -> None:
    write(f"OPENAI_API_KEY={KEY}\n")
    code = """
import os, kevin_env, kevin_env.cli, kevin_env.app.env_file, kevin_env.app.arguments, gymnasium
gymnasium.make("Kevin-v0").close()
from kevin_env.policies import OpenAIPolicy
OpenAIPolicy("m", "http://127.0.0.1:9/v1")
print("OPENAI_API_KEY" in os.environ)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"OPENAI_API_KEY={KEY}\nHF_TOKEN: {KEY}\n".encode(),
            "line 2 of .env, which is not NAME=value",
        ),
        (f"OPENAI_API_KEY='{KEY}\n".encode(), "line 1 of .env, which is not NAME=value"),
        (f"OPENAI_API_KEY={KEY}\0\n".encode(), "line 1 of .env, which is not NAME=value"),
        (f"OPENAI_API_KEY={KEY}\n".encode("utf-16"), ".env, which is not UTF-8 text"),
        (f"OPENAI_API_KEY={KEY}\xff".encode("latin-1"), ".env, which is not UTF-8 text"),
        (None, "cannot read .env ("),
    ],
    ids=["no equals sign", "open quote", "null", "UTF-16", "Latin-1", "a loop of links"],
)
def test_a_file_that_cannot_be_read_is_one_clear_line(text: bytes | None, said: str) -> None:
    if text is None:
        Path(".env").symlink_to(".env")
    else:
        Path(".env").write_bytes(text)
    line = failure("play")
    assert (
        line.startswith("kevin-env: cannot read ")
        and said in line
        and line.endswith("in another folder")
    )
    assert KEY not in line and "sk-" not in line


@pytest.mark.parametrize("command", ["eval", "index query kernels L1_23_Softmax"])
def test_every_command_that_needs_it_says_so(command: str) -> None:
    write("OPENAI_API_KEY='open\n")
    assert ".env, which is not NAME=value" in failure(*command.split())


def failure(*words: str) -> str:
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("status", [200, 400, 401])
def test_the_key_is_in_no_output_and_no_file(folder: Path, status: int) -> None:
    told = {"error": {"message": f"the key {KEY} is not known here"}}
    answer = Answer([delta(content=another(1)), delta("stop")], status, told)
    with serve(answer) as stub:
        env = write(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={stub.url}\n")
        played = play("--out", "played.jsonl")
        words = [
            "eval", "--problem", "7_Double.py", "--model", "m", "--max-turns", "1", "--out", "run",
        ]  # fmt: skip
        evaluated = CliRunner().invoke(app, words)
    refused = CliRunner().invoke(app, [*words[:4], f"m-{KEY}", "--dry-run"])
    assert keys(stub) == {KEY}
    for result in (played, evaluated, refused):
        assert KEY not in result.output and KEY not in repr(result.exception)
    files = {path for path in folder.rglob("*") if path.is_file()} - {env.resolve()}
    assert {path.name for path in files} >= {"played.jsonl", "config.toml", "trajectories.jsonl"}
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


LOOK = """
import os, pathlib

def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        return b""

seen = {{"environ": repr(dict(os.environ)).encode()}}
seen |= {{path: read(path) for path in ("/proc/self/environ", {file!r})}}
found = [place for place, text in seen.items() if b"from-the-file" in text]
raise RuntimeError(f"looked: {{[place for place, text in seen.items() if b'PATH' in text]}}, found: {{found}}")
"""


@pytest.mark.full
def test_a_submission_finds_it_in_no_environment_and_not_in_the_file(folder: Path) -> None:
    file = write(f"OPENAI_API_KEY={KEY}\nHF_TOKEN=hf_{KEY}\n")
    load_env_file()
    assert os.environ["OPENAI_API_KEY"] == KEY
    problem = folder / "7_Double.py"
    problem.write_text(SOURCE)
    code = LOOK.format(file=str(file.resolve()))
    with LocalPool() as pool:
        try:
            options = Options(device="cpu", require_sandbox=True)
            judgement = pool.submit(parse_problem(problem), Submission(code=code), options).result()
        except JudgeError as error:
            if "sandbox" not in str(error):
                raise
            pytest.skip(str(error))
    assert "looked: ['environ', '/proc/self/environ'], found: []" in judgement.outcome.message
