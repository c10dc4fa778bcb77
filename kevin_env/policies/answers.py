"""What an OpenAI-compatible endpoint answers, read with care: whole or in pieces, it need not keep
to the protocol.
"""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict

from kevin_env.policies.thinking import make_reply
from kevin_env.record import Reply, Usage

LONGEST = 4 * 2**20
"""Characters of content and reasoning that are read; a reply that is longer is cut off. A million
tokens fit.
"""


class _Part(BaseModel):
    """A message, or a piece of one."""

    model_config = ConfigDict(extra="ignore")

    content: str | None = None
    reasoning: str | None = None
    """vLLM, OpenRouter, Ollama."""
    reasoning_content: str | None = None
    """SGLang, llama.cpp, DeepSeek, vLLM before 0.12."""
    refusal: str | None = None


class _Choice(BaseModel):
    model_config = ConfigDict(extra="ignore")

    index: int | None = None
    message: _Part | None = None
    delta: _Part | None = None
    finish_reason: str | None = None
    error: Any = None


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


class Answer:
    """A reply that is coming in."""

    def __init__(self) -> None:
        self.begun = False
        """Whether anything has come."""
        self.finish: str | None = None
        self.error: Any = None
        """What the endpoint says of a failure in the middle of an answer."""
        self.refusal = ""
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._length = 0
        self._usage: Usage | None = None

    @property
    def content(self) -> str:
        """As far as it has come."""
        return "".join(self._content)

    @property
    def full(self) -> bool:
        """Whether it has become so long that no more is read."""
        return self._length >= LONGEST

    def add(self, body: object) -> str:
        """Takes a whole answer, or a piece of a stream, and gives the content in it.

        Raises:
            pydantic.ValidationError: if it is neither.
        """
        read = _Body.model_validate(body)
        self.begun = True
        self.error = read.error or self.error
        self._usage = (
            _usage(read.usage) or self._usage
        )  # the last piece of a stream has the usage and no choices
        choice = next((choice for choice in read.choices or () if not choice.index), _Choice())
        self.error = choice.error or self.error
        self.finish = choice.finish_reason or self.finish
        part = choice.message or choice.delta or _Part()
        self.refusal += part.refusal or ""
        self._take(self._reasoning, part.reasoning or part.reasoning_content or "")
        return self._take(self._content, part.content or "")

    def reply(self) -> Reply:
        """What came, with the reasoning apart."""
        cut = self.finish == "length" or self.full
        return make_reply(self.content, "".join(self._reasoning), truncated=cut, usage=self._usage)

    def _take(self, texts: list[str], text: str) -> str:
        text = text[: LONGEST - self._length]
        self._length += len(text)
        texts.append(text)
        return text


def _usage(told: Any) -> Usage | None:
    """What can be made of an endpoint's account; a figure that is none is left out, for the reply
    is worth more.
    """
    if not isinstance(told, dict):
        return None
    cost = told.get("cost")
    return Usage(
        prompt_tokens=_count(told, "prompt_tokens"),
        completion_tokens=_count(told, "completion_tokens"),
        reasoning_tokens=_count(told.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=_count(told.get("prompt_tokens_details"), "cached_tokens"),
        cost=float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else None,
    )


def _count(told: Any, name: str) -> int | None:
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
