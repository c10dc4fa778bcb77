import io
import subprocess
import sys
from pathlib import Path

import pytest
from stub_server import CHAT

from kevin_env.app.arguments import read_policy
from kevin_env.app.errors import BadInput
from kevin_env.extract import Extracted, extract
from kevin_env.policies import HumanPolicy, PolicyError, Quit, Refused, ScriptedPolicy, for_sample
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.record import Message, Reply

pytestmark = pytest.mark.usefixtures("no_endpoint")


def test_openai_and_transformers_are_imported_only_when_used() -> None:
    code = "import sys, kevin_env.policies; sys.exit(bool({'openai', 'transformers', 'torch'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_script_is_played_in_order_and_ends() -> None:
    policy = ScriptedPolicy(["one", Reply(content="two", truncated=True), Refused("no")])
    heard: list[str] = []
    assert [policy.reply(CHAT, heard.append).content for _ in range(2)] == heard == ["one", "two"]
    with pytest.raises(Refused):
        policy.reply(CHAT)
    with pytest.raises(PolicyError, match="no reply to chat 4"):
        policy.reply(CHAT)
    assert for_sample(policy, 3) is policy


def test_a_person_gives_a_file_or_types(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    code = '"""Use:\n```\nmodel()\n```\n"""\nclass ModelNew: x = 1'
    file.write_text(code)
    screen = io.StringIO()
    person = HumanPolicy(io.StringIO(f"missing.py\n{file}\n```python\nx\n```\n.\n"), screen)
    found = extract(person.reply([Message(role="user", content="Go\x1b[2J.")]).content)
    assert isinstance(found, Extracted) and found.submission.code == f"{code}\n"
    assert person.reply(CHAT).content == "```python\nx\n```\n"
    assert "missing.py" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()
    with pytest.raises(Quit):
        person.reply(CHAT)


def test_a_person_may_use_an_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "x = 1" >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    person = HumanPolicy(io.StringIO("edit\nedit\n"), io.StringIO())
    assert person.reply(CHAT).content == "```python\nx = 1\n```"
    assert person.reply(CHAT).content == "```python\nx = 1\nx = 1\n```"


def test_an_editor_that_changes_nothing_submits_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also after a file: that is what the editor begins with."""
    (file := tmp_path / "kernel.py").write_text("y = 2\n")
    monkeypatch.setenv("VISUAL", "true")
    screen = io.StringIO()
    person = HumanPolicy(io.StringIO(f"edit\n{file}\nedit\n"), screen)
    assert person.reply(CHAT).content == "```python\ny = 2\n```"
    with pytest.raises(Quit):
        person.reply(CHAT)
    assert screen.getvalue().count("the file was not changed, so nothing is submitted") == 2


def test_the_words_of_the_command_line_name_a_policy() -> None:
    assert isinstance(read_policy("human"), HumanPolicy)
    model = read_policy(
        "llama3:8b", "http://127.0.0.1:1/v1", '{"top_k": 2}', temperature=0.5, top_p=None
    )
    assert isinstance(model, OpenAIPolicy)
    assert model.name == "llama3:8b"
    assert isinstance(read_policy("m", "http://127.0.0.1:1/v1", {"top_k": 2}), OpenAIPolicy)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "give --model"),
        (("m",), "OPENAI_API_KEY"),
        (("m", "localhost:8000/v1"), "http://localhost:8000/v1"),
        (("m", "http://127.0.0.1:1/v1", "{"), "not JSON"),
        (("m", "http://127.0.0.1:1/v1", '{"stream": true, "n": 2}'), "may not set n, stream"),
        (("local:/nowhere/at/all",), "/nowhere/at/all is not a folder"),
        (("transformers:x", "http://127.0.0.1:1/v1"), "--base-url"),
        (("local:x", None, '{"top_k": 2}'), "--extra-body"),
    ],
)
def test_bad_words_are_one_clear_line(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        read_policy(*words)
    assert "\n" not in str(caught.value)


def test_a_local_model_needs_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"pip install 'kevin-env\[local\]'"):
        read_policy("local:anything")
