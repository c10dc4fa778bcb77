"""Endpoints that fail, in every way that we know of."""

import itertools
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from stub_server import CHAT, Answer, Script, Stub, delta, serve

from kevin_env.policies import ContextOverflow, OpenAIPolicy, PolicyError, Refused
from kevin_env.policies.endpoint import LONGEST
from kevin_env.record import Reply

pytestmark = pytest.mark.usefixtures("no_endpoint")
FINE = Answer([delta(content="x"), delta(finish="stop")])
SOON = {"retry-after-ms": "1"}
HTML = b"<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"


def ignore(text: str) -> None:
    """A listener, so that the reply is streamed."""


LISTENERS = pytest.mark.parametrize("listener", [None, ignore], ids=["plain", "streamed"])


@contextmanager
def failing(
    *answers: Script, listener: Any = None, **parameters: Any
) -> Iterator[tuple[PolicyError, Stub]]:
    """The error that a reply ends with: always one line of a length that can be read."""
    with serve(*answers) as stub:
        with pytest.raises(PolicyError) as caught:
            OpenAIPolicy("m", stub.url, **parameters).reply(CHAT, listener)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) <= 1000
        yield caught.value, stub


def told(status: int = 400, **fields: Any) -> Answer:
    """An error as OpenAI's own server reports one."""
    return Answer(status=status, body={"error": fields}, headers=SOON)


@LISTENERS
def test_too_many_requests_is_asked_again_when_the_server_says(listener: Any) -> None:
    busy = Answer(
        status=429, body={"error": {"message": "slow down"}}, headers={"retry-after": "0.3"}
    )
    with serve(busy, busy, FINE) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT, listener).content == "x"
    assert [
        later - earlier >= 0.3 for earlier, later in zip(stub.times, stub.times[1:], strict=False)
    ] == [True] * 2


@LISTENERS
def test_a_server_error_is_asked_again(listener: Any) -> None:
    with serve(told(500, message="oops"), told(503), FINE) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT, listener).content == "x"
    assert len(stub.requests) == 3


@LISTENERS
@pytest.mark.parametrize(
    ("status", "said"), [(500, "HTTP 500: oops"), (429, "limits requests .* oops")]
)
def test_an_error_for_ever_is_given_up(status: int, said: str, listener: Any) -> None:
    with failing(told(status, message="oops"), listener=listener) as (error, stub):
        assert type(error) is PolicyError
        assert error.stop_reason == "model_error"
    with pytest.raises(PolicyError, match=said):
        raise error
    assert len(stub.requests) == 6


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"error": {"message": "temperature must be 1"}}, "HTTP 400: temperature must be 1"),
        (
            401,
            {"error": {"message": "Incorrect API key"}},
            "rejects the key .* check OPENAI_API_KEY",
        ),
        (403, {"error": {"message": "no access"}}, "does not let this key use m .*no access"),
        (
            404,
            {"error": {"message": "no such model", "code": "model_not_found"}},
            "no model 'm'.*--model.*no such",
        ),
        (404, {"detail": "Not Found"}, r"--base-url, which usually ends in /v1.*Not Found"),
        (404, {"error": "model 'm' not found"}, "model 'm' not found"),
        (422, {"detail": [{"msg": "Field required"}]}, "HTTP 422: .*Field required"),
    ],
)
def test_what_to_put_right_is_told(status: int, body: dict[str, Any], said: str) -> None:
    with (
        failing(Answer(status=status, body=body)) as (error, stub),
        pytest.raises(PolicyError, match=said),
    ):
        raise error
    assert len(stub.requests) == 1


OVERFLOWS = {
    "OpenAI": {"message": "This model's ...", "code": "context_length_exceeded"},
    "vLLM": {"message": "You passed 9000 input tokens", "param": "input_tokens", "code": 400},
    "vLLM 0.9": {"message": "This model's maximum context length is 4096 tokens.", "code": 400},
    "vLLM 0.4": {"message": "max_tokens must be at least 1, got -186.", "code": 400},
    "vLLM, decoder": {
        "message": "The decoder prompt is longer than the maximum model length of 8."
    },
    "SGLang": {
        "message": "The input (9 tokens) is longer than the model's context length (4 tokens)."
    },
    "SGLang, memory": {
        "message": "Input length (9) exceeds the maximum allowed length (8 tokens)."
    },
    "llama.cpp": {"message": "too long", "type": "exceed_context_size_error", "code": 400},
    "llama.cpp 0": {"message": "the request exceeds the available context size.", "code": 400},
    "Ollama": {"message": '{"error":{"message":"request exceeds the available context size"}}'},
    "OpenRouter": {
        "message": "Provider returned error",
        "metadata": {
            "raw": '{"error":{"message":"This model\'s maximum context length is 9 tokens."}}'
        },
    },
}
REFUSALS = {
    "Azure": {"message": "The response was filtered", "code": "content_filter"},
    "OpenAI": {"message": "no", "code": "content_policy_violation"},
    "OpenAI, reasoning": {
        "message": "Invalid prompt: your prompt was flagged",
        "code": "invalid_prompt",
    },
    "OpenRouter": {
        "message": "flagged",
        "code": 403,
        "metadata": {"reasons": ["x"], "flagged_input": "y"},
    },
}


@pytest.mark.parametrize("fields", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_a_chat_that_is_too_long_is_a_reason_to_stop(fields: dict[str, Any]) -> None:
    with failing(told(**fields)) as (error, _):
        assert type(error) is ContextOverflow
    with failing(Answer([{"error": fields}]), listener=ignore) as (error, _):
        assert type(error) is ContextOverflow


@pytest.mark.parametrize("fields", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_prompt_that_is_declined_is_a_reason_to_stop(fields: dict[str, Any]) -> None:
    with failing(told(403 if fields.get("code") == 403 else 400, **fields)) as (error, _):
        assert type(error) is Refused


@LISTENERS
def test_an_error_may_come_as_an_answer(listener: Any) -> None:
    body = {"error": {"code": 502, "message": "the provider is down"}}
    with failing(Answer([delta(content="half"), body]), listener=listener) as (error, _):
        assert "the provider is down" in str(error)
    broken = delta(content="half", finish="error")
    broken["choices"][0]["error"] = {"code": 502, "message": "the provider is down"}
    with failing(Answer([broken]), listener=ignore) as (error, _):
        assert "HTTP 502: the provider is down" in str(error)


@LISTENERS
def test_an_html_page_is_told_by_its_title(listener: Any) -> None:
    page = {"Content-Type": "text/html"} | SOON
    with failing(Answer(status=502, raw=HTML, headers=page), listener=listener) as (error, _):
        assert "HTTP 502: an HTML page (502 Bad Gateway)" in str(error)
    with failing(Answer(raw=HTML, headers=page), listener=listener) as (error, _):
        assert "check --base-url" in str(error)
        assert "<html" not in str(error)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "cannot be used"),
        (b"[]", "a chat completion"),
        (b'{"choices": null}', "finish_reason is None"),
        (
            b'{"choices": [{"finish_reason": "stop", "message": "hi"}]}',
            r"a chat completion .choices\.0\.message",
        ),
        (
            b'{"choices": [{"finish_reason": "stop", "message": {"content": [1]}}]}',
            "a chat completion",
        ),
    ],
)
def test_wrong_json_is_told(raw: bytes, said: str) -> None:
    with failing(Answer(raw=raw)) as (error, _), pytest.raises(PolicyError, match=said):
        raise error
    stream = b"data: " + raw + b"\n\ndata: [DONE]\n\n"
    events = Answer(raw=stream, headers={"Content-Type": "text/event-stream"})
    with failing(events, listener=ignore) as (error, _):
        assert type(error) is PolicyError


@pytest.mark.parametrize(
    "answer",
    [Answer([delta(content="half")], cut=True)]
    + [Answer([delta(finish, content="half")]) for finish in (None, "error", "abort")],
    ids=["connection cut", "no finish reason", "error", "abort"],
)
def test_half_a_stream_is_no_reply(answer: Answer) -> None:
    with failing(answer, listener=ignore) as (error, stub):
        assert "broke" in str(error) or "incomplete answer: finish_reason is" in str(error)
    assert len(stub.requests) == 1


@LISTENERS
def test_a_server_that_hangs_is_given_up_after_one_timeout(listener: Any) -> None:
    slow = Answer([delta(content="x"), delta(finish="stop")], pause=0.6)
    with failing(slow, listener=listener, timeout=0.3) as (error, stub):
        assert "no answer within 0.3 s" in str(error)
        assert "--timeout" in str(error)
        assert len(stub.requests) == 1


class Heard:
    """A listener that notes everything."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def __call__(self, text: str) -> None:
        self.events.append(("text", text))

    def thought(self, text: str) -> None:
        self.events.append(("thought", text))

    def retrying(self, why: str, seconds: float) -> None:
        self.events.append(("retrying", why, f"{seconds:.3f}"))


@pytest.mark.parametrize(
    "pieces",
    [
        [delta(reasoning="So."), delta(content="x\n")],
        [delta(reasoning_content="So."), delta(content="x\n")],
        [delta(content="<think>So.</think>"), delta(content="x\n")],
    ],
)
def test_retries_and_reasoning_are_heard(pieces: list[dict[str, Any]]) -> None:
    heard = Heard()
    with serve(told(503, message="oops"), Answer([*pieces, delta(finish="stop")])) as stub:
        OpenAIPolicy("m", stub.url).reply(CHAT, heard)
    assert heard.events == [("retrying", "HTTP 503", "0.001"), ("thought", "So."), ("text", "x\n")]


PIECE = "x" * (LONGEST // 4)


def test_a_huge_reply_is_cut_off() -> None:
    with serve(Answer([*(delta(content=PIECE) for _ in range(40)), delta(finish="stop")])) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT) == Reply(content=PIECE * 4, truncated=True)


def test_a_reply_without_end_is_given_up() -> None:
    with serve(Answer(itertools.repeat(delta(reasoning=PIECE)))) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT, ignore)
    assert reply == Reply(content="", reasoning=PIECE * 4, truncated=True)


def test_an_endpoint_that_never_answers_fails_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        policy = OpenAIPolicy("m", f"http://127.0.0.1:{silent.getsockname()[1]}/v1", timeout=1)
        with pytest.raises(PolicyError, match="no answer within 1 s"):
            policy.reply(CHAT)
        silent.settimeout(0)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()  # it has asked once, without anything before it


@pytest.mark.timeout(60)
def test_an_endpoint_that_is_not_there_is_told() -> None:
    heard = Heard()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(
        PolicyError, match=rf"cannot reach 127.0.0.1:{port}: check --base-url.*refused"
    ):
        OpenAIPolicy("m", f"http://127.0.0.1:{port}/v1").reply(CHAT, heard)
    assert not heard.events, "it is not retried"
    with pytest.raises(PolicyError, match=r"cannot reach nowhere\.invalid"):
        OpenAIPolicy("m", "http://nowhere.invalid/v1").reply(CHAT)


def test_a_plain_server_that_is_asked_for_tls_is_told() -> None:
    with serve(FINE) as stub, pytest.raises(PolicyError, match="try http:// in --base-url"):
        OpenAIPolicy("m", stub.url.replace("http", "https")).reply(CHAT)
