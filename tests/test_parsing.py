"""Python code is read whatever other threads do."""

import ast
import warnings
from pathlib import Path
from typing import Any

import pytest

import kevin_env
from kevin_env.parsing import meaning_of, parse, walk

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


def test_nothing_else_reads_code() -> None:
    assert [path.name for path in PACKAGE.rglob("*.py") if "ast.parse(" in path.read_text()] == [
        "parsing.py"
    ]


def test_a_walk_is_that_of_the_library() -> None:
    tree = ast.parse(Path(__file__).read_text())
    assert walk(tree) == list(ast.walk(tree))


SIMILAR = """
a[1:]
a[:1]
a[::1]
f(a, *b)
f(*a, b)
f(b=a)
f(a, **b)
{**a}
{None: a}
x = 1
x = 1.0
x = True
x = "1"
x = b"1"
x = ...
x = Ellipsis
x: 1
global a, b
global b, a
lambda a, b=1: 0
lambda a, *, b=1: 0
lambda *, a, b=1: 0
lambda *, a=1, b: 0
lambda *a, b=1: 0
lambda **a: 0
(a + b) * c
a + b * c
not (a < b)
(not a) < b
a < b < c
(a < b) < c
return
return a
return None
yield a
yield from a
from . import a
from .. import a
from .a import a
import a as b
"""


def test_code_that_looks_alike_and_says_something_else_has_another_meaning() -> None:
    codes = [f"def f():\n    {line}\n" for line in SIMILAR.strip().splitlines()]
    codes += ["if a:\n    b\nelse:\n    c\n", "if a:\n    b\n    c\n", "if a:\n    b\nc\n"]
    assert (
        len({meaning_of(code) for code in codes})
        == len({ast.dump(ast.parse(code)) for code in codes})
        == len(codes)
    )


def test_comments_and_layout_mean_nothing() -> None:
    one, other = (
        "def f(a, b):\n    return a + b  # the sum\n",
        "def f(a,\n      b):\n\n  return (a+b)",
    )
    assert meaning_of(one) == meaning_of(other) != meaning_of(other + "\nf")
