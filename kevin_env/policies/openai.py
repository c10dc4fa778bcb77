"""Any OpenAI-compatible endpoint as a policy: OpenAI, vLLM, SGLang, llama.cpp, Ollama and others.

Replies are streamed. Reasoning that the endpoint gives apart (`reasoning` or `reasoning_content`) is kept apart, and
never sent back. The key is in no error, no representation and no record.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from kevin_env.policies.base import ContextOverflow, OnText, PolicyError, Refused
from kevin_env.record import Message, Reply, Usage

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
    from openai.types.completion_usage import CompletionUsage

_OPENAI_URL = "https://api.openai.com/v1"
_OVERFLOW = {"context_length_exceeded", "exceed_context_size_error"}
_FILTERED = {"content_filter", "content_policy_violation"}
_RETRIES = 5
"""With the package's own growing pauses; it heeds Retry-After."""
_NO_KEY = "EMPTY"
_LONGEST_ERROR = 1000


class OpenAIPolicy:
    """A model behind an OpenAI-compatible endpoint.

    Args:
        model: its name at the endpoint.
        base_url: the endpoint; by default $OPENAI_BASE_URL, then OpenAI's own.
        api_key: by default $OPENAI_API_KEY; endpoints other than OpenAI's own need none.
        timeout: seconds without an answer after which a request is given up.
        temperature: as the three below sent only when given, since some models reject it.
        max_tokens: most tokens of one reply.
        seed: best effort at the endpoint.
        extra_body: further fields of the request, as they are.

    Raises:
        PolicyError: if OpenAI's own endpoint is meant and there is no key.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 600.0,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        extra_body: dict[str, Any] | None = None,
    ) -> None:
        import openai

        self.name = model
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        self._host = urlsplit(base_url).hostname or base_url
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or _no_key(self._host)
        self._client = openai.OpenAI(base_url=base_url, api_key=self._key, timeout=timeout, max_retries=_RETRIES)
        parameters = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed, "extra_body": extra_body}
        self._parameters: dict[str, Any] = {name: value for name, value in parameters.items() if value is not None}

    def __repr__(self) -> str:
        return f"OpenAIPolicy({self.name!r} at {self._host})"

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """Asks the model.

        Raises:
            ContextOverflow: if the chat is too long for it.
            Refused: if it declined.
            PolicyError: for every other failure of model, endpoint or network, after the retries.
        """
        answer = _Answer()
        for text in self._stream(messages, answer):
            if text and on_text:
                on_text(text)
        if answer.finish in _FILTERED or (answer.refusal and not answer.content):
            raise Refused(self._safe(f"{self.name} declined: {answer.refusal or 'filtered by the endpoint'}"))
        if answer.finish is None:
            raise PolicyError(f"{self._host} ended its answer without a finish_reason")
        return answer.reply()

    def _stream(self, messages: Sequence[Message], answer: "_Answer") -> Iterator[str]:
        """Fills in the answer piece by piece. The boundary to the endpoint: whatever fails in here is a PolicyError."""
        try:
            with self._client.chat.completions.create(
                model=self.name,
                messages=[cast("ChatCompletionMessageParam", message.model_dump()) for message in messages],
                stream=True,
                stream_options={"include_usage": True},
                **self._parameters,
            ) as stream:
                for chunk in stream:
                    yield answer.add(chunk)
        except Exception as error:  # a broken stream raises what the HTTP library raises, which the package leaves open
            # Without its cause: an exception of the package holds the request, key included.
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> PolicyError:
        import openai

        text = self._safe(f"{self._host}: {type(error).__name__}: {error}")
        if not isinstance(error, openai.APIError):
            return PolicyError(text)
        named = {error.code, error.type}
        # vLLM and SGLang give no code of their own for a chat that is too long.
        if named & _OVERFLOW or error.param == "input_tokens" or "maximum context length" in error.message:
            return ContextOverflow(text)
        return Refused(text) if named & _FILTERED else PolicyError(text)

    def _safe(self, text: str) -> str:
        """One line of bounded length without the key."""
        text = text if self._key == _NO_KEY else text.replace(self._key, "<key>")
        return " ".join(text.split())[:_LONGEST_ERROR]


def _no_key(host: str) -> str:
    if host == urlsplit(_OPENAI_URL).hostname:
        raise PolicyError("no key for api.openai.com: set OPENAI_API_KEY, or give the --base-url of another endpoint")
    return _NO_KEY


@dataclass(slots=True)
class _Answer:
    """A reply that is coming in."""

    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish: str | None = None
    usage: Usage | None = None

    def add(self, chunk: "ChatCompletionChunk") -> str:
        """Takes one piece and gives the content in it. The last one, with the usage, has no choices."""
        self.usage = _usage(chunk.usage) if chunk.usage else self.usage
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self.finish = choice.finish_reason or self.finish
        text = choice.delta.content or ""
        extra = choice.delta.model_extra or {}
        self.content += text
        self.reasoning += extra.get("reasoning") or extra.get("reasoning_content") or ""
        self.refusal += choice.delta.refusal or ""
        return text

    def reply(self) -> Reply:
        return Reply(
            content=self.content,
            reasoning=self.reasoning or None,
            truncated=self.finish == "length",
            usage=self.usage,
        )


def _usage(usage: "CompletionUsage") -> Usage:
    completion, prompt = usage.completion_tokens_details, usage.prompt_tokens_details
    return Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=completion.reasoning_tokens if completion else None,
        cached_tokens=prompt.cached_tokens if prompt else None,
        cost=(usage.model_extra or {}).get("cost"),
    )
