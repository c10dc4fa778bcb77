"""A policy for OpenAI-compatible endpoints: OpenAI, vLLM, SGLang, llama.cpp, Ollama, OpenRouter.

Reasoning is kept apart from the answer and never sent back, whether it comes in a separate field or
marked in the text. The key appears in no error, representation, log or record.
"""

import contextlib
import copy
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

from kevin_env.policies.answer import FAILED, FILTERED, Answer
from kevin_env.policies.base import Listener, OnText, PolicyError
from kevin_env.policies.endpoint import (
    RETRIES,
    BrokenAnswer,
    Dialect,
    Endpoint,
    cannot_connect,
    pause_before_retry,
)
from kevin_env.policies.thinking import VisibleText
from kevin_env.record import Message, Reply

OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 10.0
_NO_KEY = "EMPTY"
_RESERVED = frozenset({"model", "messages", "stream", "stream_options", "n"})
"""Fields of a request that `extra_body` must not set."""


class OpenAIPolicy:
    """A model behind an OpenAI-compatible endpoint. Thread-safe.

    Replies are streamed if there is a listener.

    Args:
        model: its name at the endpoint.
        base_url: the endpoint; by default $OPENAI_BASE_URL, then OpenAI's.
        api_key: by default $OPENAI_API_KEY; optional for endpoints other than OpenAI's.
        timeout: seconds without an answer, or the next piece of one, before a request fails.
        retries: most repetitions of a request that fails for now, with growing pauses.
        temperature: sampling temperature. This and the next four are sent only if given, since some
            models reject them.
        top_p: nucleus sampling probability.
        max_tokens: limit of a reply in tokens; `max_completion_tokens` for models that need it.
        seed: sampling seed. `for_sample` gives each of several samples its own.
        extra_body: more fields of the request, such as `{"reasoning_effort": "high"}` or
            `{"top_k": 20}`.

    Raises:
        PolicyError: for an invalid URL or key, or a missing key for OpenAI's endpoint.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 600.0,
        retries: int = RETRIES,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        import openai

        self.name = model
        base_url = _or_default(base_url)
        url = _split(base_url)
        self.base_url = public_url(base_url)
        """The address, for records."""
        key = _key(api_key or os.environ.get("OPENAI_API_KEY") or "", url)
        secrets = tuple(secret for secret in (key, url.password) if secret and secret != _NO_KEY)
        self._endpoint = Endpoint(url.netloc.rpartition("@")[2], model, timeout, secrets)
        waits = openai.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
        self._client = openai.OpenAI(base_url=base_url, api_key=key, timeout=waits, max_retries=0)
        self._reached, self._retries = threading.Event(), retries
        self._pause: Callable[[str, float], object] = lambda why, seconds: time.sleep(seconds)
        self._dialect = Dialect()
        parameters = {
            "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "seed": seed,
            "extra_body": _checked(extra_body),
        }  # fmt: skip
        self._parameters: dict[str, Any] = {
            name: value for name, value in parameters.items() if value is not None
        }

    def __repr__(self) -> str:
        return f"OpenAIPolicy({self.name!r} at {self._endpoint.host})"

    def for_sample(self, sample: int) -> Self:
        """The model for one of several samples, from 0, with its own seed if it has one."""
        other = copy.copy(self)
        if "seed" in self._parameters:
            other._parameters = self._parameters | {"seed": self._parameters["seed"] + sample}
        return other

    def pausing(self, pause: Callable[[str, float], object]) -> Self:
        """The model with another pause before a retry.

        Args:
            pause: Called with an error and the seconds to wait; may raise to end it.
        """
        other = copy.copy(self)
        other._pause = pause
        return other

    def require_endpoint(self) -> None:
        """Checks that the endpoint can be reached and accepts the key.

        Raises:
            PolicyError: if not. An endpoint that does not list its models, or is slow, passes.
        """
        import openai

        failure: PolicyError | None = None
        try:
            waits = openai.Timeout(_CONNECT_SECONDS)
            self._client.with_options(timeout=waits).models.with_raw_response.list()
        except openai.OpenAIError as error:
            if isinstance(error, openai.AuthenticationError) or cannot_connect(error.__cause__):
                failure = self._endpoint.failure(error)
        if failure:
            raise failure  # raised here, its context cannot hold the request and the key

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """Asks the model.

        Raises:
            ContextOverflow: if the chat is too long for it.
            Refused: if it declined.
            PolicyError: for every other failure of model, endpoint or network, after the retries.
        """
        for attempt in itertools.count():
            answer, error = Answer(), None
            visible = VisibleText(on_text) if on_text else None
            for text in self._texts(messages, answer, stream=on_text is not None):
                if isinstance(text, Exception):
                    error = text
                    break
                if answer.thought and isinstance(on_text, Listener):
                    on_text.thought(answer.thought)
                if visible:
                    visible.feed(text)
            if error is None:
                if visible:
                    visible.end()
                return answer.reply()
            failure = error if isinstance(error, PolicyError) else self._endpoint.failure(error)
            seconds = pause_before_retry(error, attempt, answer.begun, self._retries)
            if type(failure) is not PolicyError or seconds is None or not self._reached.is_set():
                raise failure  # its context cannot hold the request and the key
            if isinstance(on_text, Listener):
                unusable = isinstance(error, PolicyError | ValueError)
                why = "the answer cannot be used" if unusable else "the connection broke"
                status = getattr(error, "status_code", None)
                on_text.retrying(f"HTTP {status}" if status else why, seconds)
            self._pause(str(failure), seconds)
        raise AssertionError("unreachable")

    def _texts(
        self, messages: Sequence[Message], answer: Answer, stream: bool
    ) -> Iterator[str | Exception]:
        """Sends the request, adds the answer piece by piece, and yields the text of each.

        An error is yielded last instead of raised, to tell it from errors of a listener.
        """
        try:
            response = self._create(messages, stream)
            self._reached.set()
            with contextlib.closing(response.http_response):
                for piece in _pieces(response):
                    if isinstance(piece, str):
                        raise self._endpoint.no_json_error(piece)
                    yield answer.add(piece)
                    if answer.full:
                        break
            self._require(answer)
        except Exception as error:  # a broken stream raises errors of the HTTP library
            if not cannot_connect(error.__cause__):
                self._reached.set()
            yield error

    def _create(self, messages: Sequence[Message], stream: bool) -> Any:
        """Sends the request, again without what the endpoint refuses if that can be left out."""
        import openai

        while True:
            request = self._dialect.request(messages, self._parameters, stream)
            try:
                return self._client.chat.completions.with_raw_response.create(
                    model=self.name, **request
                )
            except openai.APIStatusError as error:
                text = str(error.body or error)
                if not self._dialect.learn(request, error.status_code, text):
                    raise

    def _require(self, answer: Answer) -> None:
        """Checks that the answer is complete.

        Raises:
            PolicyError: if it is not.
        """
        endpoint = self._endpoint
        if answer.error:
            raise endpoint.broken_off(answer.error)
        if answer.finish in FILTERED or (answer.refusal and not answer.content):
            raise endpoint.refusal(answer.refusal or "filtered by the endpoint")
        if not answer.begun:
            raise endpoint.error(
                f"{endpoint.host} gave no answer at this address; check --base-url"
            )
        if (answer.finish is None or answer.finish in FAILED) and not answer.full:
            text = f"{endpoint.host} sent an incomplete answer: finish_reason is {answer.finish}"
            raise BrokenAnswer(endpoint.error(text))


def _pieces(response: Any) -> Iterator[Any]:
    """The pieces of an answer as JSON objects; text if it is something else.

    Some endpoints answer a request for a stream with a whole completion.
    """
    if "event-stream" in response.headers.get("content-type", ""):
        for piece in response.parse():
            yield piece.model_dump(warnings=False)
        return
    text = response.http_response.read().decode()
    kind = response.headers.get("content-type", "")
    yield json.loads(text) if "json" in kind else text


def public_url(base_url: str | None = None) -> str:
    """The address of an endpoint as it is recorded: without user, password, query and fragment.

    Args:
        base_url: by default $OPENAI_BASE_URL, then OpenAI's.

    Raises:
        PolicyError: if it is not valid.
    """
    url = _split(_or_default(base_url))
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _or_default(base_url: str | None) -> str:
    return (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).strip()


def _split(base_url: str) -> SplitResult:
    try:
        url = urlsplit(base_url)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return url
    except ValueError:  # an invalid port or address
        pass
    raise PolicyError(
        f"{base_url.rpartition('@')[2]!r} is not the URL of an endpoint, such as http://localhost:8000/v1"
    )


def _key(key: str, url: SplitResult) -> str:
    key = key.strip()
    if not key and url.hostname == urlsplit(OPENAI_URL).hostname:
        raise PolicyError(
            "no key for api.openai.com: set OPENAI_API_KEY, or give another --base-url"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise PolicyError("the key has invalid characters: copy it into OPENAI_API_KEY again")
    return key or _NO_KEY


def _checked(extra_body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not extra_body:
        return None
    if reserved := sorted(_RESERVED & extra_body.keys()):
        raise PolicyError(
            f"--extra-body may not set {', '.join(reserved)}: they are set for each request"
        )
    return dict(extra_body)
