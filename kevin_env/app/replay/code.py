"""Untrusted text made safe to show, and code cut into coloured pieces."""

import ast
import functools
import re
from typing import Literal

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String

from kevin_env.outcome import visible
from kevin_env.parsing import parse

TAB = 4
COLOURED = 300_000
"""Characters of code beyond which it stays without colours: lexers take their time."""

Kind = Literal["", "comment", "keyword", "string", "number", "function", "builtin", "decorator"]
Line = tuple[tuple[Kind, str], ...]
"""One line of code as pieces; their texts joined are the line."""

_KINDS: tuple[tuple[object, Kind], ...] = (
    (Comment.Preproc, "decorator"),
    (Comment, "comment"),
    (Keyword.Type, "builtin"),
    (Keyword, "keyword"),
    (Name.Decorator, "decorator"),
    (Name.Function, "function"),
    (Name.Class, "function"),
    (Name.Builtin, "builtin"),
    (String, "string"),
    (Number, "number"),
)


def clean(text: str) -> str:
    """Text of anyone as it may be shown anywhere: `visible`, with tabs as spaces."""
    return visible(text).expandtabs(TAB)


def lines_of(text: str) -> list[str]:
    """The clean lines of a text, without the empty ones at its end."""
    return clean(text).rstrip().split("\n")


@functools.lru_cache(maxsize=128)
def code_lines(
    code: str, language: Literal["python", "cpp", "text"] = "python"
) -> tuple[Line, ...]:
    """Code as clean lines of coloured pieces, with CUDA and C++ in a Python file's strings."""
    text = clean(code).rstrip("\n")
    if language == "text" or len(text) > COLOURED:
        return tuple((("", line),) for line in text.split("\n"))
    if language == "cpp":
        return _coloured(text, CppLexer(stripnl=False, ensurenl=False))
    found = list(_coloured(text, PythonLexer(stripnl=False, ensurenl=False)))
    lines = text.split("\n")
    for first, last in _embedded(text):
        found[first:last] = _coloured(
            "\n".join(lines[first:last]), CppLexer(stripnl=False, ensurenl=False)
        )
    return tuple(found)


def _coloured(text: str, lexer: Lexer) -> tuple[Line, ...]:
    lines: list[list[tuple[Kind, str]]] = [[]]
    for token, value in lexer.get_tokens(text):
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if piece:
                lines[-1].append((_kind(token), piece))
    return tuple(map(tuple, lines))


def _kind(token: object) -> Kind:
    return next((kind for parent, kind in _KINDS if token in parent), "")  # type: ignore[operator]


def _embedded(text: str) -> list[tuple[int, int]]:
    """Strings of a Python file that hold C++: the first line inside, and the closing line."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        (node.lineno, (node.end_lineno or node.lineno) - 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (node.end_lineno or 0) > node.lineno + 1
        and re.search(r"#include|__global__|\w+\s*\([^)]*\)\s*\{|\w+\(.*\);", node.value)
    ]


def fenced(text: str) -> tuple[Line, ...]:
    """A reply or a prompt as clean lines; fenced blocks are coloured by their language."""
    done: list[Line] = []
    block: list[str] | None = None
    language = ""
    for line in lines_of(text):
        fence = re.match(r"\s{0,3}(?:```|~~~)\s*([\w+-]*)", line)
        if not fence:
            (done.append((("", line),)) if block is None else block.append(line))
            continue
        if block is not None:
            done.extend(_fence(block, language))
        block, language = ([], fence[1].lower()) if block is None else (None, "")
        done.append((("comment", line),))
    return tuple(done + (list(_fence(block, language)) if block else []))


def _fence(block: list[str], language: str) -> tuple[Line, ...]:
    known = {
        "python": "python",
        "py": "python",
        "cpp": "cpp",
        "c++": "cpp",
        "cuda": "cpp",
        "cu": "cpp",
        "c": "cpp",
    }
    return code_lines("\n".join(block), known.get(language, "text")) if block else ()  # type: ignore[arg-type]
