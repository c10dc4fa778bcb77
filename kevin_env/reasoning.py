"""Tells a model's reasoning from its answer by the marks that models and servers leave."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kevin_env.fences import Fences

_WORDS = "think thinking thought thoughts reason reasoning reflection scratchpad analysis"
_WORD = "|".join(sorted(_WORDS.split(), key=len, reverse=True))
_HEAD = r"(?:(?:<\|start\|>)?assistant)?<\|channel\|>\s{0,9}"
_MARK = re.compile(
    rf"""(?=[<\[◁aA])(?:
      <\|?(?:\w{{1,20}}:)?(?P<tag>{_WORD})(?::\w{{1,20}})?\|?>  # most models; <mm:think> of MiniMax
    | \[(?P<bracket>think)\]  # Magistral
    | ◁(?P<triangle>{_WORD})▷  # Kimi
    | <\|(?:start|begin)_(?:of_)?(?P<token>thinking|thought)\|>  # Cohere; Sky-T1
    | <\|open\|>(?P<open>think)<\|sep\|>  # Kimi K3
    | <\|(?P<gemma>channel)>\s{{0,9}}thought  # Gemma 4
    | <\|(?P<inner>inner)_prefix\|>  # Apertus
    | <\|(?P<message>content)_thinking\|>  # Inkling
    # gpt-oss, also from servers that drop its special tokens
    | (?P<channel>{_HEAD}(?!final)\w{{1,20}}(?:[^<\n]{{0,40}}<\|message\|>)?
      | (?-i:assistant(?:analysis|commentary)|\Aanalysis(?=\w)))
    | <\|?/(?:\w{{1,20}}:)?(?P<_tag>{_WORD})(?::\w{{1,20}})?\|?>
    | \[/(?P<_bracket>think)\]
    | ◁/(?P<_triangle>{_WORD})▷
    | <\|end_(?:of_)?(?P<_token>thinking|thought)\|>
    | <\|close\|>(?P<_open>think)<\|sep\|>
    | <(?P<_gemma>channel)\|>
    | <\|(?P<_inner>inner)_suffix\|>
    | (?P<_channel>(?:<\|end\|>\s{{0,9}})?{_HEAD}final
        (?:[^<\n]{{0,40}}(?:<\|constrain\|>\w+)?<\|message\|>)?
      | (?-i:assistantfinal))
    | (?P<_message><\|(?:end|return|call|end_message)\|>)
    | (?P<_answer><answer>|<\|(?:begin_of_solution|start_response|content_text)\|>
      | <\|open\|>response<\|sep\|>)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_HINTS = (
    "think", "thought", "reason", "reflection", "scratchpad", "analysis", "channel",
    "assistantfinal", "inner_",
)  # fmt: skip
"""A text without any of them has no marks."""
_BEFORE_TAG = "\n.!?>]▷"
"""A tag opens reasoning at the beginning of a line, or after a sentence or another mark."""
_QUOTES = ("`", "'", '"')
_CLOSES = {"message": ("channel", "message"), "answer": ("message", "answer")}
"""The families that a mark closes if that is not just its own."""


class Mark(NamedTuple):
    """A mark of reasoning in a text."""

    start: int
    end: int
    family: str
    """Marks of the same family belong together."""
    closing: bool

    @property
    def strong(self) -> bool:
        """Whether it ends reasoning even if nothing opened it."""
        return self.closing and self.family not in ("message", "answer")


def marks(text: str, start: int = 0) -> Iterator[Mark]:
    """The marks of a text that are not quoted. Those in code are among them."""
    last, opened = -1, set[str]()
    for match in _MARK.finditer(text, start):
        name = match.lastgroup or ""
        kind, closing = name.lstrip("_"), name.startswith("_")
        word = "" if kind in ("channel", "message", "answer") else match[name].lower()
        family = f"{kind}{word}"
        before = text[max(0, match.start() - 100) : match.start()]
        blank = before.rstrip(" \t")
        # reasoning may end with a quotation: a mark that closes it has no quote behind it
        ends = closing and family in opened and not text.startswith(_QUOTES, match.end())
        if before.endswith(_QUOTES) and not ends:
            continue
        begins = not blank or blank[-1] in _BEFORE_TAG or last == match.start()
        if name in ("tag", "bracket") and not begins:
            continue
        last = match.end()
        (opened.discard if closing else opened.add)(family)
        yield Mark(match.start(), match.end(), family, closing)


def mark_at_end(prompt: str) -> str:
    """The mark at the end of a prompt with which a chat template opens the reasoning, or ""."""
    tail = prompt.rstrip()[-100:]
    opened = (mark for mark in marks(tail) if mark.end == len(tail) and not mark.closing)
    return "".join(tail[mark.start :] for mark in opened)


def split_reasoning(reply: str) -> tuple[str, str, bool]:
    """Splits a reply into answer, reasoning, and whether the reasoning is unclosed.

    Marks in closed fenced blocks of the answer belong to its code. A closing mark without an
    opening one ends reasoning that began with the reply, or goes on after other reasoning without
    code in between. The answer has no marks left, so that it can be split again.
    """
    lowered = reply.lower()
    found = list(marks(reply)) if any(hint in lowered for hint in _HINTS) else []
    if not found:
        return reply, "", False
    closed = _pairs(found)
    fences = Fences(reply)
    kept: list[str] = []
    thought: list[str] = []
    position = at = 0
    blocks = fences.blocks()
    block = next(blocks, None)
    reasoned = coded = False
    while at < len(found):
        mark = found[at]
        if block and block.start < mark.start:
            if mark.end <= block.end:
                at += 1
            else:
                block, coded = next(blocks, None), True
            continue
        at += 1
        if mark.closing and not mark.strong:
            continue
        kept.append(reply[position : mark.start])
        position = mark.end
        if not mark.closing:
            if at - 1 not in closed:
                return "".join(kept), "".join((*thought, reply[position:])), True
            end = found[closed[at - 1]]
            thought.append(reply[position : end.start])
            position, at = end.end, closed[at - 1] + 1
        elif reasoned and coded:
            continue
        else:
            thought.append(kept.pop())
        if block and block.start < position:  # otherwise the next one is the same, or there is none
            blocks = fences.blocks(position)
            block = next(blocks, None)
        reasoned, coded = True, False
    kept.append(reply[position:])
    return "".join(kept), "".join(thought), False


def _pairs(found: Sequence[Mark]) -> dict[int, int]:
    """The number of the mark that closes each opening one, by its number.

    It is the one that balances it, else the next of its family, the next of any, or the beginning
    of an answer.
    """
    pairs: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for number, mark in enumerate(found):
        if not mark.closing:
            opened.setdefault(mark.family, []).append(number)
        for family in _CLOSES.get(mark.family, (mark.family,)) if mark.closing else ():
            if opened.get(family):
                pairs[opened[family].pop()] = number
    following: dict[str, int] = {}
    for number, mark in reversed([*enumerate(found)]):
        if mark.closing:
            kinds = _CLOSES.get(mark.family, (mark.family,))
            following |= dict.fromkeys((*kinds, "any") if mark.strong else kinds, number)
        elif number not in pairs:
            kind = next((k for k in (mark.family, "any", "answer") if k in following), None)
            pairs |= {number: following[kind]} if kind else {}
    return pairs
