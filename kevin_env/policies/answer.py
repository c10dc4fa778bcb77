"""Answers of OpenAI-compatible endpoints, whole or in pieces."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from kevin_env.record import Reply, Usage

FILTERED = frozenset({"content_filter", "refusal"})
"""Finish reasons of an answer that a filter or the model stopped."""
FAILED = frozenset({"error", "abort"})
"""Finish reasons of an answer that broke off: OpenRouter; vLLM and SGLang."""

LONGEST = 4 * 2**20
"""Limit of content and reasoning in characters: about a million tokens."""


class _Chunk(BaseModel):
    """A chunk of a message's content."""

    model_config = ConfigDict(extra="ignore")

    type: str = "text"
    text: str | list["_Chunk"] | None = None
    thinking: str | list["_Chunk"] | None = None
    reasoning: str | list["_Chunk"] | None = None
    summary: str | list["_Chunk"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, chunk: Any) -> Any:
        return {"text": chunk} if isinstance(chunk, str) else chunk

    @property
    def is_reasoning(self) -> bool:
        """Whether it belongs to the reasoning."""
        return self.type.startswith(("thinking", "reasoning"))

    @property
    def said(self) -> str:
        """Its text."""
        text = self.text or self.thinking or self.reasoning or self.summary or ""
        return text if isinstance(text, str) else "".join(chunk.said for chunk in text)


class _Part(BaseModel):
    """A message, or a piece of one."""

    model_config = ConfigDict(extra="ignore")

    content: str | None = None
    reasoning: str | None = None
    """vLLM, OpenRouter, Ollama."""
    reasoning_content: str | None = None
    """SGLang, llama.cpp, DeepSeek, vLLM before 0.12."""
    refusal: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _joined(cls, part: Any) -> Any:
        """Joins content that is a list of chunks, of which some may be reasoning (Mistral)."""
        if not (isinstance(part, dict) and isinstance(part.get("content"), list)):
            return part
        chunks = [_Chunk.model_validate(chunk) for chunk in part["content"]]
        thought = "".join(chunk.said for chunk in chunks if chunk.is_reasoning)
        return part | {
            "content": "".join(chunk.said for chunk in chunks if not chunk.is_reasoning),
            "reasoning": part.get("reasoning") or thought or None,
        }


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
    """A reply that is being received."""

    def __init__(self) -> None:
        self.begun = False
        """Whether anything was received."""
        self.finish: str | None = None
        self.error: Any = None
        """The endpoint's message on a failure in the middle of an answer."""
        self.refusal = ""
        self.thought = ""
        """The reasoning in the last piece."""
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._length = 0
        self._usage: Usage | None = None

    @property
    def content(self) -> str:
        """The content so far."""
        return "".join(self._content)

    @property
    def full(self) -> bool:
        """Whether it has reached the limit, so that no more is read."""
        return self._length >= LONGEST

    def add(self, body: object) -> str:
        """Adds a whole answer, or a piece of a stream, and returns its content.

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
        self.thought = self._take(self._reasoning, part.reasoning or part.reasoning_content or "")
        return self._take(self._content, part.content or "")

    def reply(self) -> Reply:
        """The content, with the reasoning apart."""
        cut = self.finish == "length" or self.full
        return Reply(
            content=self.content,
            reasoning="".join(self._reasoning) or None,
            truncated=cut,
            usage=self._usage,
        )

    def _take(self, texts: list[str], text: str) -> str:
        text = text[: LONGEST - self._length]
        self._length += len(text)
        texts.append(text)
        return text


def _usage(usage: Any) -> Usage | None:
    """The valid figures of an endpoint's usage; invalid ones are dropped rather than the reply."""
    if not isinstance(usage, dict):
        return None
    cost = usage.get("cost")
    return Usage(
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
        cost=float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else None,
    )


def _count(fields: Any, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if known else None
