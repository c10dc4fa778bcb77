"""Separates reasoning in tags from the answer, in whole replies and in streams."""

from kevin_env.extract import (
    CLOSING_TAGS,
    REASONING_CLOSES,
    REASONING_OPENS,
    REASONING_TAGS,
    split_reasoning,
)
from kevin_env.policies.base import Listener, OnText
from kevin_env.record import Reply, Usage

_LONGEST_CLOSING = max(map(len, CLOSING_TAGS))
_LONGEST_OPENING = 200
"""Longest beginning of a line to hold back, indentation included."""


def make_reply(
    content: str, reasoning: str = "", truncated: bool = False, usage: Usage | None = None
) -> Reply:
    """A reply from generated text: reasoning in tags moves from `content` to `reasoning`.

    A model that never closes its reasoning was cut off, whatever the endpoint reports. An answer
    that mentions the tags itself stays whole: `extract` removes reasoning from every content, and
    must not do so twice.
    """
    answer, thoughts, unfinished = split_reasoning(content)
    if split_reasoning(answer)[0] != answer:
        answer, thoughts, unfinished = content, "", False
    elif thoughts or unfinished:
        answer = answer.lstrip("\n")
    reasoning = "\n\n".join(filter(None, (reasoning, thoughts.strip())))
    return Reply(
        content=answer, reasoning=reasoning or None, truncated=truncated or unfinished, usage=usage
    )


class VisibleText:
    """Passes on a stream without the reasoning in tags.

    Text that could become a tag is held back until that is known. Reasoning without an opening tag
    cannot be recognized in a stream, and is passed on.

    Args:
        listener: gets the answer.
        thinking: whether the prompt has already opened the reasoning.
    """

    def __init__(self, listener: OnText, thinking: bool = False) -> None:
        self._listener = listener
        self._thought = listener.thought if isinstance(listener, Listener) else None
        self._thinking = thinking
        self._held = ""
        self._line_start = True

    def feed(self, piece: str) -> None:
        """Processes the next piece."""
        self._held += piece
        while self._held and (self._skip() if self._thinking else self._emit()):
            pass

    def end(self) -> None:
        """Passes on the text held back, at the end of the stream."""
        if self._held and not self._thinking:
            self._listener(self._held)
        self._held = ""

    def _skip(self) -> bool:
        """Passes on reasoning up to its closing tag; returns whether there was one."""
        closed = REASONING_CLOSES.search(self._held)
        thought = self._held[: closed.start() if closed else -_LONGEST_CLOSING]
        if thought and self._thought:
            self._thought(thought)
        self._held = self._held[closed.end() if closed else -_LONGEST_CLOSING :]
        self._thinking, self._line_start = closed is None, False
        return closed is not None

    def _emit(self) -> bool:
        """Passes on a line, or the part that cannot be a tag; returns whether to go on."""
        if self._line_start and (opened := REASONING_OPENS.match(self._held)):
            self._held, self._thinking = self._held[opened.end() :], True
            return True
        line, newline, rest = self._held.partition("\n")
        if (
            self._line_start
            and not newline
            and len(line) < _LONGEST_OPENING
            and any(tag.startswith(line.lstrip(" \t")) for tag in REASONING_TAGS)
        ):
            return False
        self._held, self._line_start = rest, bool(newline)
        self._listener(line + newline)
        return True
