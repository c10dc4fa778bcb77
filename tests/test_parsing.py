"""Python code is read whatever other threads do."""

import ast
import warnings
from pathlib import Path
from typing import Any

import pytest

import kevin_env
from kevin_env.parsing import parse, walk

PACKAGE = Path(kevin_env.__file__).parent


def test_a_failure_that_is_not_of_the_code_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    read, failures = (
        ast.parse,
        [SystemError("AST constructor recursion depth mismatch (before=60, after=55)")] * 5,
    )

    def failing(*words: Any) -> ast.Module:
        if failures:
            raise failures.pop()
        return read(*words)

    monkeypatch.setattr(ast, "parse", failing)
    assert ast.dump(parse("x = 1")) == ast.dump(read("x = 1"))
    with pytest.raises(SyntaxError) as caught:
        parse("x = = 1", "file.py")
    assert caught.value.filename == "file.py"


def test_a_submission_causes_no_warning_and_a_file_does() -> None:
    escape = r"x = '\d'"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        parse(escape)
        assert found == []
        parse(escape, "file.py")
        assert len(found) == 1


def test_warnings_that_were_shown_once_stay_shown_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        parse("x = 1")
        for _ in range(3):
            warnings.warn("once", stacklevel=1)
            parse("x = 1")
    assert len(found) == 1


def test_nothing_else_reads_code() -> None:
    """But for a candidate, which may import nothing of ours."""
    trusted = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "candidate")
    assert [path.name for path in trusted if "ast.parse(" in path.read_text()] == ["parsing.py"]


def test_a_walk_is_that_of_the_library() -> None:
    tree = ast.parse(Path(__file__).read_text())
    assert walk(tree) == list(ast.walk(tree))
