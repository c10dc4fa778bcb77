"""What is wrong with a folder of templates is said in one line, before the first turn where it can
be.
"""

import shutil
from pathlib import Path

import pytest

from kevin_env.app.errors import WRONG_ARGUMENTS, error_code
from kevin_env.feedback import render_feedback, render_system
from kevin_env.outcome import FormatError
from kevin_env.problem import data_folder
from kevin_env.templates import AGENTS, NAMES, PAPER, PromptError

NO_CODE = FormatError(kind="no_code", message="none")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of templates of the user's own."""
    folder = tmp_path / "own"
    shutil.copytree(data_folder("prompts"), folder)
    monkeypatch.setenv("KEVIN_ENV_PROMPTS", str(folder))
    return folder


def told(caught: pytest.ExceptionInfo[PromptError]) -> str:
    text = str(caught.value)
    assert "\n" not in text and error_code(caught.value) == WRONG_ARGUMENTS
    return text


def test_every_template_that_comes_along_is_one_of_those_that_there_have_to_be() -> None:
    folder = data_folder("prompts")
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.j2")} == {
        *NAMES,
        *PAPER,
        *AGENTS,
    }


def test_templates_of_ones_own_are_used(own: Path) -> None:
    (own / "feedback/format.j2").write_text("Mine: {{ message }}")
    assert render_feedback(NO_CODE).startswith("Mine: ")


def test_a_template_with_an_unknown_field_is_an_error(own: Path) -> None:
    (own / "feedback/format.j2").write_text("{{ message }} {{ secret }}")
    with pytest.raises(PromptError) as caught:
        render_feedback(NO_CODE)
    assert told(caught) == f"template {own}/feedback/format.j2: 'secret' is undefined"


@pytest.mark.parametrize("text", ["{{ message + 1 }}", "{{ 1 / 0 }}", "{% include 'nothing.j2' %}"])
def test_a_template_that_fails_is_an_error(own: Path, text: str) -> None:
    (own / "feedback/format.j2").write_text(text)
    with pytest.raises(PromptError) as caught:
        render_feedback(NO_CODE)
    assert str(own) in told(caught)


@pytest.mark.parametrize("text", [b"one\n{% if %}\n", b"one\n{{ x | no_filter }}\n"])
def test_a_template_that_does_not_compile_is_found_before_it_is_needed(
    own: Path, text: bytes
) -> None:
    (own / "feedback/correct.j2").write_bytes(text)
    with pytest.raises(PromptError) as caught:
        render_system()
    assert told(caught).startswith(f"template {own}/feedback/correct.j2 line 2: ")


def test_a_template_that_is_not_there_is_found_before_it_is_needed(own: Path) -> None:
    (own / "feedback/runtime.j2").unlink()
    with pytest.raises(PromptError) as caught:
        render_system()
    assert told(caught).startswith("no template feedback/runtime.j2 in ")
