"""Requests to OpenAI-compatible endpoints, which deviate from the protocol, and their errors."""

import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import ValidationError

from kevin_env.outcome import printable
from kevin_env.policies.base import ContextOverflow, PolicyError, Refused, chat_of
from kevin_env.record import Message

RETRIES = 8
"""Most retries of a request, by default; without a Retry-After they span more than a minute."""
_RETRIES_OF_AN_ANSWER = 2
"""Most retries after answers that broke off: each is paid for."""
_LONGEST_PAUSE = 30.0
"""Longest pause before a retry, in seconds, that the endpoint does not ask for."""
_LONGEST_WAIT = 300.0
"""Longest Retry-After to wait for, in seconds; requests that it exceeds are not retried."""
_LONGEST_ERROR = 1000
_SHORT_SECRET = 8
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
_NO_CREDIT = {"insufficient_quota"}  # OpenAI
_FLAGGED = {"reasons", "flagged_input"}  # OpenRouter, in the metadata of its error
_NO_OPTIONS = re.compile("stream_options|include_usage")
_NO_STREAM = re.compile(r"\bstream(?:ing|ed)?\b", re.IGNORECASE)
_NO_SYSTEM = re.compile(
    r"\bsystem\b.{0,40}\b(?:role|message|prompt|instruction)"  # Gemma's template, o1-mini
    r"|\brole\b.{0,40}\bsystem\b|\broles?\b.{0,60}\bgot system"  # Ministral's
    r"|roles must alternate|developer instruction is not enabled",  # Mistral's; Google
    re.IGNORECASE | re.DOTALL,
)
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

        if isinstance(error, openai.APIConnectionError) or _is_of_http(error):
            # Before version 3, the package passes on the HTTP library's errors from a broken
            # stream.
            return self.error(self._connection(error.__cause__ or error))
        if isinstance(error, openai.APIError):
            body = error.message if error.body is None else error.body
            return self.reported_error(body, getattr(error, "status_code", None))
        if isinstance(error, BrokenAnswer):
            return error.failure
        if isinstance(error, ValidationError):
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            return self.error(
                f"{self.host} did not answer with a chat completion ({where}: {first['msg']})"
            )
        text = self._redacted(f"{type(error).__name__}: {error}")
        return self.error(f"{self.host} gave an answer that cannot be used ({text})")

    def reported_error(self, body: object, status: int | None = None) -> PolicyError:
        """The policy error for an error that the endpoint reports.

        Args:
            body: the `error` object of its answer, or its text.
            status: the HTTP status, if the answer was an error.
        """
        names, text = _names(body), self._redacted(_text(body))
        if (
            names & _OVERFLOW or "input_tokens" in names or _OVERFLOW_TEXT.search(text)
        ):  # `param` of vLLM
            return ContextOverflow(_line(f"{self.host}: {text}"))
        if names & _REFUSED or _REFUSED_TEXT.search(text) or _metadata(body).keys() & _FLAGGED:
            return Refused(_line(f"{self.host}: {text}"))
        return self.error(self._advice(status or _status(body), text))

    def broken_off(self, body: object) -> Exception:
        """The error for an error within an answer; a `BrokenAnswer` if it may pass."""
        failure, status = self.reported_error(body), _status(body) or 500
        passing = type(failure) is PolicyError and (status >= 500 or status in (408, 429))
        return BrokenAnswer(failure) if passing else failure

    def no_json_error(self, text: str) -> PolicyError:
        """An error for an answer that is text or an HTML page."""
        text = self._redacted(_text(text))
        return self.error(
            f"{self.host} answers with {text}, not with a chat completion: check --base-url"
        )

    def refusal(self, text: str) -> Refused:
        """The error for a model that declined with these words."""
        return Refused(_line(f"{self.model} declined: {self._redacted(text)}"))

    def error(self, text: str) -> PolicyError:
        """An error with a text of ours, as one line."""
        return PolicyError(_line(text))

    def _redacted(self, text: str) -> str:
        """A text of the endpoint without secrets; short ones are removed only as whole words."""
        for secret in self.secrets:
            edge = r"(?<![\w-])", r"(?![\w-])"
            before, after = edge if len(secret) < _SHORT_SECRET else ("", "")
            text = re.sub(f"{before}{re.escape(secret)}{after}", "<key>", text)
        return text

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
        why = self._redacted(str(cause)) or type(cause).__name__
        if not cannot_connect(cause):
            if "Timeout" in type(cause).__name__:
                late = f"{self.host} gave no answer within {self.timeout:g} s"
                return f"{late}; raise --timeout (eval: -o policy.timeout=...)"
            return f"the connection to {self.host} broke: {why}"
        if "certificate" in why.lower():
            return f"{self.host} has no trusted certificate; SSL_CERT_FILE adds some ({why})"
        if "ssl" in why.lower():
            return f"{self.host} does not speak TLS; try http:// in --base-url ({why})"
        return f"cannot reach {self.host}: check --base-url, and whether the server runs ({why})"


class BrokenAnswer(Exception):
    """An answer that began and did not end as it should."""

    def __init__(self, failure: PolicyError) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass
class Dialect:
    """What of the protocol an endpoint takes, as far as it has refused it. Shared by threads."""

    streams: bool = True
    reports_usage: bool = True
    """Whether a stream may be asked for its usage."""
    system_role: bool = True
    completion_limit: bool = False
    """Whether the token limit is called `max_completion_tokens`."""

    def request(
        self, messages: Sequence[Message], parameters: Mapping[str, Any], stream: bool
    ) -> dict[str, Any]:
        """The arguments of a request. Without a system role, its message begins the user's."""
        chat = chat_of(messages)
        if not self.system_role and len(chat) > 1 and chat[0]["role"] == "system":
            first, second, *rest = chat
            content = f"{first['content']}\n\n{second['content']}"
            chat = [second | {"content": content}, *rest]
        request = dict(parameters) | {"messages": chat}
        if self.completion_limit and "max_tokens" in request:
            request["max_completion_tokens"] = request.pop("max_tokens")
        if stream and self.streams:
            request["stream"] = True
            if self.reports_usage:
                request["stream_options"] = {"include_usage": True}
        return request

    def learn(self, request: Mapping[str, Any], status: int, text: str) -> bool:
        """Whether the endpoint has refused a part of a request that can be done without.

        Args:
            request: the arguments of the refused request.
            status: the HTTP status.
            text: the endpoint's message.
        """
        if status in (401, 404, 408, 429):
            return False
        if "max_tokens" in request and "Use 'max_completion_tokens'" in text:
            self.completion_limit = True
        elif "stream_options" in request and _NO_OPTIONS.search(text):
            self.reports_usage = False
        elif "stream" in request and status < 500 and _NO_STREAM.search(text):
            self.streams = False
        elif request["messages"][0]["role"] == "system" and _NO_SYSTEM.search(text):
            self.system_role = False
        else:
            return False
        return True


def pause_before_retry(
    error: Exception, attempt: int, begun: bool, most: int = RETRIES
) -> float | None:
    """Seconds until a failed request is sent again; None if it is not.

    A Retry-After counts; without it pauses grow from half a second to half a minute.

    Args:
        error: of the `openai` package, its HTTP library, or of reading the answer.
        attempt: retries so far.
        begun: whether a part of the answer was received.
        most: retries at all.
    """
    import openai

    if "Timeout" in type(error).__name__:
        return None
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    if isinstance(error, openai.APIConnectionError) or _is_of_http(error):
        passing = True
    elif isinstance(error, openai.APIError):
        status = getattr(error, "status_code", None) or _status(error.body) or 500
        passing = status in (408, 409, 429) or status >= 500
        passing = passing and not _names(error.body) & _NO_CREDIT
    else:
        passing = begun = isinstance(error, BrokenAnswer | UnicodeError | json.JSONDecodeError)
    wanted = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), passing)
    asked = _retry_after(headers)
    if not wanted or attempt >= (min(_RETRIES_OF_AN_ANSWER, most) if begun else most):
        return None
    if asked is not None:
        return asked if asked <= _LONGEST_WAIT else None
    return min(0.5 * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.75, 1.0)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait, as a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except ValueError:
                continue
        if seconds > 0:
            return seconds
    return None


def _is_of_http(error: Exception) -> bool:
    return type(error).__module__.startswith(("httpx", "httpcore"))


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


def _line(text: str) -> str:
    """One line of bounded length without control characters."""
    return " ".join(printable(text).split())[:_LONGEST_ERROR]
