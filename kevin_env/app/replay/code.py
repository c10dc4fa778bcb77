"""Makes untrusted text safe to show, and highlights code."""

import functools
import re
from typing import Literal

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String

from kevin_env.outcome import visible

TAB = 4
COLORED = 100_000
"""Characters of code above which it is not highlighted, since lexers are slow."""

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


_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})\s*([\w+-]*)")
_QUOTES = re.compile(r'"""|\'\'\'')
_CPP = re.compile(r"#include|__global__|\w+\s*\([^)]*\)\s*\{|\w+\(.*\);")
Language = Literal["python", "cpp", "text"]
_LANGUAGES: dict[str, Language] = {
    **dict.fromkeys(("python", "py"), "python"),
    **dict.fromkeys(("cpp", "c++", "cuda", "cu", "c"), "cpp"),
}


def clean(text: str) -> str:
    """Untrusted text that is safe to show: `visible`, with tabs as spaces."""
    return visible(text).expandtabs(TAB)


def lines_of(text: str) -> list[str]:
    """The clean lines of a text, without the empty ones at its end."""
    return clean(text).rstrip().split("\n")


@functools.lru_cache(maxsize=128)
def code_lines(code: str, language: Language = "python") -> tuple[Line, ...]:
    """Code as clean lines of colored pieces, with CUDA and C++ in a Python file's strings."""
    text = clean(code).rstrip("\n")
    if language == "text" or len(text) > COLORED:
        return tuple((("", line),) for line in text.split("\n"))
    if language == "cpp":
        return _colored(text, CppLexer(stripnl=False, ensurenl=False))
    found = list(_colored(text, PythonLexer(stripnl=False, ensurenl=False)))
    lines = text.split("\n")
    for first, last in _embedded(text):
        found[first:last] = _colored(
            "\n".join(lines[first:last]), CppLexer(stripnl=False, ensurenl=False)
        )
    return tuple(found)


def _colored(text: str, lexer: Lexer) -> tuple[Line, ...]:
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
    """Strings of a Python file that hold C++: the first line inside, and the closing line.

    The file may be incomplete, so that it cannot be parsed.
    """
    found: list[tuple[int, int]] = []
    quote, start = "", 0
    for mark in (*_QUOTES.finditer(text), None):
        if not quote and mark:
            quote, start = mark[0], mark.end()
        elif quote and (mark is None or mark[0] == quote):
            end = mark.start() if mark else len(text)
            first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + (mark is None)
            if last > first and _CPP.search(text[start:end]):
                found.append((first, last))
            quote = ""
    return found


def fenced(text: str) -> tuple[Line, ...]:
    """A reply or a prompt as clean lines; fenced blocks are colored by their language."""
    done: list[Line] = []
    block: list[str] | None = None
    language = ""
    for line in lines_of(text):
        fence = _FENCE.match(line)
        if not fence:
            (done.append((("", line),)) if block is None else block.append(line))
            continue
        if block is not None:
            done.extend(_fence(block, language))
        block, language = ([], fence[1].lower()) if block is None else (None, "")
        done.append((("comment", line),))
    return tuple(done + (list(_fence(block, language)) if block else []))


def unfenced(text: str) -> str:
    """Feedback for a person: what is in a fence is indented instead."""
    done: list[str] = []
    opening = ""
    for line in clean(text).rstrip().split("\n"):
        found = re.match(r"(`{3,}|~{3,})\s*[\w+-]*$", line)
        if found and (not opening or line.rstrip() == opening):
            opening = "" if opening else found[1]
        else:
            done.append(f"    {line}".rstrip() if opening else line)
    return "\n".join(done)


def last_lines(reply: str, most: int) -> tuple[Line, ...]:
    """The last lines of a partial reply, colored as in the complete one.

    The lines above are only looked through, so that a long reply costs no more than a short one.
    """
    lines = lines_of(reply)
    first = max(len(lines) - most, 0)
    opening, quote = "", ""
    for line in lines[:first]:
        if _FENCE.match(line):
            opening, quote = ("" if opening else line), ""
        for found in _QUOTES.finditer(line) if opening else ():
            quote = "" if quote == found[0] else quote or found[0]
    above = [*([opening] if opening else []), *([quote] if quote else [])]
    return fenced("\n".join([*above, *lines[first:]]))[len(above) :]


def _fence(block: list[str], language: str) -> tuple[Line, ...]:
    return code_lines("\n".join(block), _LANGUAGES.get(language, "text")) if block else ()
