"""Hides reasoning in a stream of text."""

import re

from kevin_env.fences import opening
from kevin_env.policies.base import Listener, OnText
from kevin_env.reasoning import Mark, marks

_LONGEST = 100
"""Characters of a line that are kept to tell what a mark follows."""
_AT_ONCE = 4096
_UNFINISHED = re.compile(r"(?:[<\[◁]|assistant)\S{0,100}\Z|\Aanalysis\Z")
"""What could become a mark."""
_UNBROKEN = re.compile(r"\S{0,100}")


class VisibleText:
    """Passes on a stream without reasoning that is marked in it.

    Text that could become a mark is held back until that is known. Reasoning without an opening
    mark cannot be recognized in a stream, and is passed on.

    Args:
        listener: gets the answer.
        thinking: whether the prompt has already opened the reasoning.
    """

    def __init__(self, listener: OnText, thinking: bool = False) -> None:
        self._listener = listener
        self._thought = listener.thought if isinstance(listener, Listener) else None
        self._thinking = thinking
        self._before = ""
        """What has been processed of the line that `_held` continues."""
        self._held = ""
        self._fence = ""
        """The marks that opened the block of code that `_held` continues."""

    def feed(self, piece: str) -> None:
        """Processes the next piece."""
        for at in range(0, len(piece), _AT_ONCE):  # what is held is copied for each line
            self._held += piece[at : at + _AT_ONCE]
            self._process(ended=False)

    def end(self) -> None:
        """Processes the text held back, at the end of the stream."""
        self._process(ended=True)

    def _process(self, ended: bool) -> None:
        while self._held and (self._skip(ended) if self._thinking else self._emit(ended)):
            pass

    def _skip(self, ended: bool) -> bool:
        """Passes on reasoning up to its closing mark; returns whether to go on."""
        closing = (mark for mark in marks(self._held) if mark.closing and mark.family != "answer")
        mark = next(closing, None)
        if mark and (ended or _complete(self._held, mark)):
            end, self._before, self._thinking = mark.end, ">", False
        else:
            mark, end = None, _safe(self._held, ended)
        if self._thought and (text := self._held[: mark.start if mark else end]):
            self._thought(text)
        self._held = self._held[end:]
        return mark is not None

    def _emit(self, ended: bool) -> bool:
        """Passes on a line, or the part that cannot be a mark; returns whether to go on."""
        line, newline, _ = self._held.partition("\n")
        known, text = len(self._before), self._before + line
        mark = None if self._fence else next(marks(text, known), None)
        if mark and (ended or newline or _complete(text, mark)):
            self._thinking = not mark.closing
            end, self._before = mark.end - known, ">"
            shown = line[: mark.start - known]
        else:
            mark = None
            end = len(line) if newline or self._fence else _safe(line, ended)
            end += len(newline)
            shown = self._held[:end]
            if newline:
                closes = bool(self._fence) and text.lstrip(" \t>").startswith(self._fence)
                self._fence = "" if closes else self._fence or opening(text)
            self._before = "" if newline else (self._before + shown)[-_LONGEST:]
        if shown:
            self._listener(shown)
        self._held = self._held[end:]
        return mark is not None or bool(newline)


def _complete(text: str, mark: Mark) -> bool:
    """Whether the mark cannot go on in the next piece."""
    return _UNBROKEN.fullmatch(text, mark.start) is None


def _safe(text: str, ended: bool) -> int:
    """How much of a text is passed on: up to what could become a mark, or all at the end."""
    unfinished = None if ended else _UNFINISHED.search(text)
    return unfinished.start() if unfinished else len(text)
