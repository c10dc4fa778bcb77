"""Python code is read whatever other threads do."""

import ast
from typing import Any

import pytest

from kevin_env.parsing import parse


def test_a_failure_that_is_not_of_the_code_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    read, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch (before=60, after=55)")] * 5

    def failing(*words: Any) -> ast.Module:
        if failures:
            raise failures.pop()
        return read(*words)

    monkeypatch.setattr(ast, "parse", failing)
    assert ast.dump(parse("x = 1")) == ast.dump(read("x = 1"))
    with pytest.raises(SyntaxError) as caught:
        parse("x = = 1", "file.py")
    assert caught.value.filename == "file.py"
