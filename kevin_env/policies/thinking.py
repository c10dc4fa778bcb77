"""Keeps what a model writes in reasoning tags apart from its answer, also while both are still
coming.
"""

from kevin_env.extract import (
    CLOSING_TAGS,
    REASONING_CLOSES,
    REASONING_OPENS,
    REASONING_TAGS,
    part_reasoning,
)
from kevin_env.policies.base import Listener, OnText
from kevin_env.record import Reply, Usage

_LONGEST_CLOSING = max(map(len, CLOSING_TAGS))


def make_reply(
    content: str, reasoning: str = "", truncated: bool = False, usage: Usage | None = None
) -> Reply:
    """A reply from what a model wrote: reasoning in tags is moved from `content` to `reasoning`.

    A model that never stops reasoning has been cut off, whatever its endpoint says. An answer that
    speaks of the tags itself is left whole: `extract` leaves the reasoning out of every content,
    and must not do so twice.
    """
    answer, thoughts, unfinished = part_reasoning(content)
    if part_reasoning(answer)[0] != answer:
        answer, thoughts, unfinished = content, "", False
    elif thoughts or unfinished:
        answer = answer.lstrip("\n")
    reasoning = "\n\n".join(filter(None, (reasoning, thoughts.strip())))
    return Reply(
        content=answer, reasoning=reasoning or None, truncated=truncated or unfinished, usage=usage
    )


class Spoken:
    """Passes on a reply that comes in pieces, without what stands in reasoning tags.

    What may become a tag is held back until it is known. Reasoning whose opening tag is missing
    can't be told from the answer before its end, and is passed on.

    Args:
        listener: hears the answer.
        thinking: the prompt has opened the reasoning already.
    """

    def __init__(self, listener: OnText, thinking: bool = False) -> None:
        self._listener = listener
        self._thinking = thinking
        self._held = ""
        self._line_start = True

    def hear(self, piece: str) -> None:
        """Takes the next piece."""
        self._held += piece
        while self._held and (self._skip() if self._thinking else self._speak()):
            pass

    def end(self) -> None:
        """Passes on what was held back, since no more will come."""
        if self._held and not self._thinking:
            self._listener(self._held)
        self._held = ""

    def _skip(self) -> bool:
        """Passes reasoning on as such, up to its closing tag; whether that was there."""
        closed = REASONING_CLOSES.search(self._held)
        thought = self._held[: closed.start() if closed else -_LONGEST_CLOSING]
        if thought and isinstance(self._listener, Listener):
            self._listener.thought(thought)
        self._held = self._held[closed.end() if closed else -_LONGEST_CLOSING :]
        self._thinking, self._line_start = closed is None, False
        return closed is not None

    def _speak(self) -> bool:
        """Passes on a line, or as much of it as can be no tag; whether there may be more to do."""
        if self._line_start and (opened := REASONING_OPENS.match(self._held)):
            self._held, self._thinking = self._held[opened.end() :], True
            return True
        line, newline, rest = self._held.partition("\n")
        if (
            self._line_start
            and not newline
            and any(tag.startswith(line.lstrip(" \t")) for tag in REASONING_TAGS)
        ):
            return False
        self._held, self._line_start = rest, bool(newline)
        self._listener(line + newline)
        return True
