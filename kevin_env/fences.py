"""Fenced code blocks of a text. Laxer than CommonMark, since models are."""

import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_FENCE = re.compile(
    r"^(?P<prefix>[ \t>]*+)(?P<before>.*?)(?P<marks>`{3,}+|~{3,}+)(?P<info>.*)$", re.MULTILINE
)
_STRING = re.compile(
    r"#[^\n]*"
    r"|(?P<quotes>\"{3}|'{3})(?:\\.|(?!(?P=quotes)).)*+(?P<end>(?P=quotes)|\Z)"
    r"|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?",
    re.DOTALL,
)
"""A comment or string of Python."""
_LANGUAGES = frozenset(
    {
        "bash", "c", "c++", "console", "cpp", "cu", "cuda", "cxx", "diff", "json", "markdown", "md",
        "plaintext", "py", "python", "python3", "pytorch", "sh", "shell", "text", "toml", "triton",
        "txt", "yaml",
    }
)  # fmt: skip
_CODE = re.compile(r"(?:import|from|class|def)\b|@\w|#|\"\"\"")
"""How code begins that follows a fence on its line."""
_MOST = 1000
_REACH = 32
"""A block that is not closed by the next so many fences is not closed."""


@dataclass(frozen=True, slots=True)
class Block:
    """A closed block: its code, and its place in the text with both fences."""

    code: str
    start: int
    end: int


class _Fence(NamedTuple):
    line: int
    """Where its line begins."""
    start: int
    marks: str
    end: int
    """Where its line ends."""
    prefix: str
    """Indentation and marks of a quotation."""
    before: str
    """Other text before the marks."""
    info: str
    """The text after them."""

    @property
    def language(self) -> str:
        """The first word after the marks if it is a known language."""
        word = self.info.split(maxsplit=1)[0].lower() if self.info.strip() else ""
        return word if word in _LANGUAGES else ""

    @property
    def opens(self) -> bool:
        """Whether it can begin a block. After words on its line, only if it evidently does."""
        if not self.before:
            return "`" not in self.info
        last = self.before.rstrip()[-1:]
        bare = not self.info.strip() and last in (":", ">")
        return self.marks[0] == "`" and (bare or self.info.strip().lower() == self.language != "")


class Fences:
    """The fences of a text; the last 1000 if there are more."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = [_fence(match) for match in _FENCE.finditer(text, _start(text))]
        self._places = [fence.start for fence in self._fences]

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """The closed blocks from a place on. A block that is never closed is text.

        A fence with a language begins another block even within one, for models that begin again
        without closing a block or fence their whole answer. Fences in strings do not count.
        """
        at = bisect_left(self._places, start)
        while at < len(self._fences):
            block, at = self._block(at) if self._fences[at].opens else (None, at + 1)
            if block:
                yield block

    @property
    def unclosed(self) -> bool:
        """Whether the text ends within a block."""
        end = max((block.end for block in self.blocks()), default=0)
        return any(fence.opens for fence in self._fences[bisect_left(self._places, end) :])

    @property
    def first(self) -> int | None:
        """Where the first begins that can begin a block; None if there is none."""
        return next((fence.start for fence in self._fences if fence.opens), None)

    def _block(self, at: int) -> tuple[Block | None, int]:
        """The block that a fence opens, if it is closed, and the number of the next fence."""
        opening = self._fences[at]
        last_resort: int | None = None
        for number, fence in enumerate(self._fences[at + 1 : at + 1 + _REACH], at + 1):
            if not fence.marks.startswith(opening.marks):
                continue
            if fence.before:  # at the end of a line of code
                if last_resort is None and not fence.before.startswith("#"):
                    last_resort = number
            elif self._in_string(opening.end, fence.line):
                last_resort = number if last_resort is None else last_resort
            elif fence.language:
                break
            else:
                return self._closed(opening, fence), number + 1
        if last_resort is None:
            return None, at + 1
        return self._closed(opening, self._fences[last_resort]), last_resort + 1

    def _in_string(self, start: int, end: int) -> bool:
        """Whether this part of a Python file ends inside a string of several lines."""
        code = self._text[start:end]
        if '"""' not in code and "'''" not in code:
            return False
        return any(match["quotes"] and not match["end"] for match in _STRING.finditer(code))

    def _closed(self, opening: _Fence, closing: _Fence) -> Block:
        lines = self._text[opening.end + 1 : closing.line].split("\n")[:-1]
        if closing.before:
            lines.append(closing.prefix + closing.before)
        quote = opening.prefix.rstrip()
        lines = [
            line.removeprefix(opening.prefix if line.startswith(opening.prefix) else quote)
            for line in lines
        ]
        first = opening.info.strip()
        first = first[len(opening.language) :].strip()
        if _CODE.match(first):
            lines.insert(0, first)
        code = "".join(line + "\n" for line in lines)
        if code.lstrip("\n")[:1] in (" ", "\t"):
            code = textwrap.dedent(code)
        start = opening.start if opening.before else opening.line
        return Block(code, start, closing.start + len(closing.marks))


def opening(line: str) -> str:
    """The marks with which a line opens a block of code, or ""."""
    match = _FENCE.match(line)
    fence = _fence(match) if match else None
    return fence.marks if fence and fence.opens else ""


def _fence(match: re.Match[str]) -> _Fence:
    line, end = match.span()
    start, marks = match.start("marks"), match["marks"]
    return _Fence(line, start, marks, end, match["prefix"], match["before"], match["info"])


def _start(text: str) -> int:
    """Where the line of the first fence begins that counts."""
    starts = [0]
    for marks in ("```", "~~~"):
        place = len(text)
        for _ in range(_MOST):
            place = text.rfind(marks, 0, place)
            if place < 0:
                break
        else:
            starts.append(text.rfind("\n", 0, place) + 1)
    return max(starts)
