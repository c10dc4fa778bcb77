"""Answers and errors of OpenAI-compatible endpoints, which may deviate from the protocol."""

import json
import math
import random
import re
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from kevin_env.outcome import printable
from kevin_env.policies.base import ContextOverflow, PolicyError, Refused
from kevin_env.record import Reply, Usage

FILTERED = frozenset({"content_filter", "refusal"})
"""Finish reasons of an answer that a filter or the model stopped."""
FAILED = frozenset({"error", "abort"})
"""Finish reasons of an answer that broke off: OpenRouter; vLLM and SGLang."""

_LONGEST_ERROR = 1000
_LONGEST_PAUSE = 60.0
"""Longest Retry-After to wait for, in seconds."""
_OVERFLOW = {"context_length_exceeded", "exceed_context_size_error"}  # OpenAI; llama.cpp
_OVERFLOW_TEXT = re.compile(
    "maximum context length"  # OpenAI, vLLM, SGLang, OpenRouter; most others by imitation
    "|model's context length|maximum allowed length"  # SGLang
    "|maximum model length|max_tokens must be at least 1, got"  # vLLM
    "|available context size|context size has been exceeded",  # llama.cpp, Ollama
    re.IGNORECASE,
)
_REFUSED = {"content_filter", "content_policy_violation"}  # Azure; OpenAI
_REFUSED_TEXT = re.compile(
    "prompt was flagged", re.IGNORECASE
)  # OpenAI's reasoning models: `invalid_prompt`
_FLAGGED = {"reasons", "flagged_input"}  # OpenRouter, in the metadata of its error
_HTML = re.compile(r"\s*<(?:!doctype html|html)", re.IGNORECASE)
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Endpoint:
    """The endpoint of a model.

    Args:
        host: its name, without secrets.
        model: the model.
        timeout: seconds to wait for it.
        secrets: strings to remove from all messages.
    """

    host: str
    model: str
    timeout: float
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def failure(self, error: Exception) -> PolicyError:
        """The policy error for an error of the `openai` package or of reading an answer."""
        import openai

        if isinstance(error, openai.APIConnectionError) or type(error).__module__.startswith(
            "httpx"
        ):
            # Before version 3, the package passes on the HTTP library's errors from a broken
            # stream.
            return self.error(self._connection(error.__cause__ or error))
        if isinstance(error, openai.APIError):
            body = error.message if error.body is None else error.body
            return self.reported_error(body, getattr(error, "status_code", None))
        if isinstance(error, ValidationError):
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            return self.error(
                f"{self.host} did not answer with a chat completion ({where}: {first['msg']})"
            )
        return self.error(
            f"{self.host} gave an answer that cannot be used ({type(error).__name__}: {error})"
        )

    def reported_error(self, body: object, status: int | None = None) -> PolicyError:
        """The policy error for an error that the endpoint reports.

        Args:
            body: the `error` object of its answer, or its text.
            status: the HTTP status, if the answer was an error.
        """
        names, text = _names(body), _text(body)
        if (
            names & _OVERFLOW or "input_tokens" in names or _OVERFLOW_TEXT.search(text)
        ):  # `param` of vLLM
            return ContextOverflow(self.safe(f"{self.host}: {text}"))
        if names & _REFUSED or _REFUSED_TEXT.search(text) or _metadata(body).keys() & _FLAGGED:
            return Refused(self.safe(f"{self.host}: {text}"))
        return self.error(self._advice(status or _status(body), text))

    def no_json_error(self, text: str) -> PolicyError:
        """An error for an answer that is text or an HTML page."""
        return self.error(
            f"{self.host} answers with {_text(text)}, not with a chat completion: check --base-url"
        )

    def error(self, text: str) -> PolicyError:
        """An error with the sanitized text."""
        return PolicyError(self.safe(text))

    def safe(self, text: str) -> str:
        """One line of bounded length without secrets and control characters."""
        for secret in self.secrets:
            text = text.replace(secret, "<key>")
        return " ".join(printable(text).split())[:_LONGEST_ERROR]

    def _advice(self, status: int | None, text: str) -> str:
        match status:
            case None:
                return f"{self.host} failed while it answered: {text}"
            case 401:  # the endpoint's message could quote a part of the key
                return f"{self.host} rejects the key (HTTP 401): check OPENAI_API_KEY"
            case 403:
                return f"{self.host} does not let this key use {self.model} (HTTP 403): {text}"
            case 404:
                return (
                    f"{self.host} has no model {self.model!r} or no chat completions (HTTP 404): "
                    f"check --model, and --base-url, which usually ends in /v1. {text}"
                )
            case 429:
                return (
                    f"{self.host} limits requests (HTTP 429): wait, or send fewer at once. {text}"
                )
            case _:
                return f"{self.host} answers with HTTP {status}: {text}"

    def _connection(self, cause: BaseException) -> str:
        why = str(cause) or type(cause).__name__
        if not cannot_connect(cause):
            if "Timeout" in type(cause).__name__:
                return f"{self.host} gave no answer within {self.timeout:g} s; raise --timeout"
            return f"the connection to {self.host} broke: {why}"
        if "certificate" in why.lower():
            return f"{self.host} has no trusted certificate; SSL_CERT_FILE adds some ({why})"
        if "ssl" in why.lower():
            return f"{self.host} does not speak TLS; try http:// in --base-url ({why})"
        return f"cannot reach {self.host}: check --base-url, and whether the server runs ({why})"


def pause_before_retry(error: Exception, attempt: int) -> float | None:
    """Seconds until a failed request is sent again; None if it is not.

    Retry-After counts up to a minute; without it pauses grow from half a second to eight.

    Args:
        error: of the `openai` package.
        attempt: retries so far.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        return None
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    should_retry = headers.get("x-should-retry")
    passing = not isinstance(error, openai.APIStatusError) or (
        error.status_code in (408, 409, 429) or error.status_code >= 500
    )
    if should_retry == "false" or not (passing or should_retry == "true"):
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if 0 < seconds <= _LONGEST_PAUSE:
            return seconds
    return min(0.5 * 2**attempt, 8.0) * random.uniform(0.75, 1.0)


def cannot_connect(cause: BaseException | None) -> bool:
    """Whether no connection was made, by the class names of the HTTP library."""
    return type(cause).__name__ in (
        "ConnectError",
        "ConnectTimeout",
        "ProxyError",
        "UnsupportedProtocol",
    )


def _names(body: object) -> set[str]:
    fields = body if isinstance(body, dict) else {}
    return {str(fields.get(name)) for name in ("code", "type", "param")}


def _status(body: object) -> int | None:
    """The status within an error sent with HTTP 200, as OpenRouter does."""
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _metadata(body: object) -> dict[str, Any]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _text(body: object) -> str:
    """The message of an error, with that of the provider behind OpenRouter."""
    if isinstance(body, dict):
        message = body.get("message")
        raw = _metadata(body).get("raw")
        return f"{message} {raw or ''}".strip() if message else json.dumps(body)
    text = str(body)
    if _HTML.match(text):
        title = _TITLE.search(text)
        return f"an HTML page{f' ({title[1].strip()})' if title else ''}"
    return text or "nothing"


LONGEST = 4 * 2**20
"""Limit of content and reasoning in characters: about a million tokens."""


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
    return value if isinstance(value, int) and not isinstance(value, bool) else None
