"""Raw code and a class `Model`, as clients of kernrl send them, in the form that the rest of the
package reads.

Everywhere else an answer is a reply with a code block that defines `ModelNew`.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from kevin_env.parsing import parse

_REPLY = re.compile(r"^[ \t]*(?:```|~~~)|</think(?:ing)?>", re.MULTILINE)
_MODEL = re.compile(r"^class Model\b", re.MULTILINE)
_MODEL_NEW = re.compile(r"^class ModelNew\b", re.MULTILINE)


def as_reply(text: str) -> str:
    """`text` as a reply: a Python file gets a fence round it and its class `Model` the name
    `ModelNew`.

    A file that does not parse is one all the same when a line of it begins such a class, so that
    its error is told. What is no file is left alone.
    """
    code = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    tree = _parse(code)
    if tree is not None:
        is_file = any(isinstance(node, ast.ClassDef) for node in tree.body)
        return _fenced(_renamed(code, tree)) if is_file else text
    if _REPLY.search(code):
        return text
    code = code if _MODEL_NEW.search(code) else _MODEL.sub("class ModelNew", code)
    return _fenced(code) if _MODEL_NEW.search(code) else text


def _renamed(code: str, tree: ast.Module) -> str:
    """The code with its top-level class `Model` called `ModelNew`, unless it has one of that name."""
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    if "ModelNew" in names or "Model" not in names:
        return code
    lines = code.encode().split(b"\n")
    for line, column in sorted(_mentions(tree, lines), reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + b"ModelNew" + text[column + len(b"Model") :]
    return b"\n".join(lines).decode()


def _mentions(tree: ast.Module, lines: list[bytes]) -> Iterator[tuple[int, int]]:
    """Line and column in bytes of each `Model` that means the class: where it is defined and where
    it is named.

    Python 3.11 misplaces what stands in an f-string, so that each place is looked at.
    """
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name="Model") if node in tree.body:
                column = node.col_offset + len(b"class ")
            case ast.Name(id="Model") | ast.arg(arg="Model"):
                column = node.col_offset
            case _:
                continue
        if lines[node.lineno - 1][column:].startswith(b"Model"):
            yield node.lineno, column


def _fenced(code: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}\n"


def _parse(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # an odd escape in a submission is no message for our user
            return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
