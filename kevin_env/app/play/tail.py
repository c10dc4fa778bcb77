"""The end of a reply that is still coming in, with the colours that the whole will have.

Only what is on the screen is coloured, so that a long reply costs no more than a short one. What
stands above it is read for its fences and triple quotes alone, which say what the lines below them
are.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Literal

from kevin_env.app.replay.code import Line, code_lines, lines_of

_Language = Literal["prose", "fence", "string", "python", "cpp", "text"]

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})\s*([\w+-]*)")
_QUOTES = re.compile(r'"""|\'\'\'')
_CPP = re.compile(r"#include|__global__|\w+\s*\([^)]*\)\s*\{|\w+\(.*\);")
_LANGUAGES: dict[str, _Language] = {
    **dict.fromkeys(("python", "py"), "python"),
    **dict.fromkeys(("cpp", "c++", "cuda", "cu", "c"), "cpp"),
}


def tail(reply: str, most: int) -> tuple[Line, ...]:
    """The last lines of a reply, at most `most` of them, as coloured pieces of clean text."""
    lines = lines_of(reply)
    kinds = _kinds(lines)
    first = max(len(lines) - most, 0)
    done: list[Line] = []
    for _, group in itertools.groupby(range(first, len(lines)), key=lambda number: kinds[number]):
        alike = list(group)
        done += _coloured(kinds[alike[0]], [lines[number] for number in alike])
    return tuple(done)


def _coloured(kind: _Language, lines: list[str]) -> list[Line]:
    if kind in ("python", "cpp"):
        return list(code_lines("\n".join(lines), "cpp" if kind == "cpp" else "python"))
    piece = {"fence": "comment", "string": "string"}.get(kind, "")
    return [((piece, line),) for line in lines]  # type: ignore[list-item]


def _kinds(lines: list[str]) -> list[_Language]:
    """What each line is."""
    kinds: list[_Language] = []
    start, language = 0, ""
    for number, line in enumerate([*lines, "```"]):
        if found := _FENCE.match(line):
            block = lines[start:number]
            kinds.extend(_in_block(block, language))
            kinds.append("fence")
            start, language = number + 1, "" if language else found[1].lower() or "text"
    return kinds[: len(lines)]


def _in_block(block: list[str], language: str) -> list[_Language]:
    """What the lines between two fences are; without a language they stand outside."""
    known: _Language = _LANGUAGES.get(language, "text") if language else "prose"
    return list(_python(block)) if known == "python" else [known for _ in block]


def _python(block: list[str]) -> Iterator[_Language]:
    """Python lines; text in multi-line triple quotes is C++ if it looks like it, else a string."""
    held: list[str] | None = None
    quote = ""
    for line in block:
        before = quote
        quote = _open_quote(line, quote)
        if held is not None and before and quote:
            held.append(line)
            continue
        yield from _string(held or [])
        yield "string" if held is not None else "python"
        held = [] if quote else None
    yield from _string(held or [])


def _string(lines: list[str]) -> list[_Language]:
    return ["cpp" if _CPP.search("\n".join(lines)) else "string"] * len(lines)


def _open_quote(line: str, quote: str) -> str:
    """The triple quote that is open after a line; `quote` was open before it."""
    for found in _QUOTES.finditer(line):
        if not quote:
            quote = found[0]
        elif quote == found[0]:
            quote = ""
    return quote
