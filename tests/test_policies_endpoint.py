"""Endpoints that fail, in every way that we know of."""

import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any

import httpx
import openai
import pytest
from stub_server import CHAT, Answer, Script, Stub, delta, serve, whole

from kevin_env.policies import ContextOverflow, OpenAIPolicy, PolicyError, Refused, for_sample
from kevin_env.policies.answer import LONGEST
from kevin_env.policies.endpoint import RETRIES, pause_before_retry
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
    assert len(stub.requests) == RETRIES + 1
    with failing(told(status, message="oops"), listener=listener, retries=1) as (_, stub):
        assert len(stub.requests) == 2


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
    assert len(stub.requests) == 3


@LISTENERS
def test_a_server_that_hangs_is_given_up_after_one_timeout(listener: Any) -> None:
    slow = Answer([delta(content="x"), delta(finish="stop")], pause=0.6)
    with failing(slow, listener=listener, timeout=0.3) as (error, stub):
        assert "no answer within 0.3 s" in str(error)
        assert "--timeout" in str(error) and "-o policy.timeout=" in str(error)
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


BAD_BYTE = Answer(
    raw=b'data: {"choices": [{"delta": {"content": "\xff', headers={"Content-Type": "text/event-stream"}
)  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        Answer([delta(content="half")], cut=True),
        Answer([delta(content="half")]),
        Answer([delta("error", content="half")]),
        Answer([delta(content="half"), {"error": {"code": 502, "message": "overloaded"}}]),
        BAD_BYTE,
    ],
    ids=["connection cut", "no finish reason", "error", "an error in it", "bad byte"],
)
def test_one_broken_answer_is_asked_for_again(answer: Answer) -> None:
    heard = Heard()
    with serve(answer, FINE) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT, heard) == Reply(content="x")
    why = "the answer cannot be used" if answer is BAD_BYTE else "the connection broke"
    assert heard.events[-2][:2] == ("retrying", why)
    assert heard.events[-1] == ("text", "x")


@LISTENERS
def test_a_cut_answer_is_asked_for_again_with_and_without_a_stream(listener: Any) -> None:
    with serve(Answer([delta(content="half")], cut=True), FINE) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT, listener) == Reply(content="x")


def status_error(**headers: str) -> openai.APIStatusError:
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response: Any = httpx.Response(429, headers=headers, request=request)
    return openai.RateLimitError("slow down", response=response, body=None)


def test_retries_outlast_a_limit_per_minute_and_wait_as_long_as_asked() -> None:
    pauses = [pause_before_retry(status_error(), n, begun=False) for n in range(RETRIES)]
    assert sum(pause or 0 for pause in pauses) > 60
    assert pause_before_retry(status_error(), RETRIES, begun=False) is None
    asked = {"retry-after": "90"}
    assert pause_before_retry(status_error(**asked), 0, begun=False) == 90
    later = formatdate(time.time() + 90, usegmt=True)
    waited = pause_before_retry(status_error(**{"retry-after": later}), 0, begun=False)
    assert waited == pytest.approx(90, abs=5)
    assert pause_before_retry(status_error(**{"retry-after": "86400"}), 0, begun=False) is None


def test_an_endpoint_that_one_sample_has_reached_is_tried_again_for_another() -> None:
    class Stopped(Exception):
        pass

    def stop(why: str, seconds: float) -> None:
        raise Stopped(why)

    once = Answer([delta("x"), delta(finish="stop")], headers={"Connection": "close"})
    with serve(once) as stub:
        policy = OpenAIPolicy("m", stub.url, seed=1)
        before = policy.for_sample(2).pausing(stop)
        policy.for_sample(0).reply(CHAT)
    with pytest.raises(Stopped):
        before.reply(CHAT)
    with pytest.raises(PolicyError):
        OpenAIPolicy("m", stub.url).pausing(stop).reply(CHAT)


def test_a_lack_of_credit_is_not_retried() -> None:
    with failing(told(429, message="You have no credit", code="insufficient_quota")) as (_, stub):
        assert len(stub.requests) == 1


REFUSED_STREAMS = {
    "OpenAI, unverified": (
        400,
        {"message": "Your organization must be verified to stream this model.", "param": "stream"},
    ),
    "Azure": (403, {"message": "Streaming requests are not yet allowed."}),
    "no word": (422, {"message": "Unsupported value: 'stream' does not support true"}),
}
REFUSED_OPTIONS = {
    "Mistral": (
        422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"]}]},
    ),
    "Azure": (400, {"message": "Unknown parameter: 'stream_options'"}),
}  # fmt: skip
REFUSED_SYSTEM = {
    "Gemma": (400, {"message": "System role not supported"}),
    "o1-mini": (
        400,
        {"message": "Unsupported value: 'messages[0].role' does not support 'system'"},
    ),
    "Mistral": (
        400,
        {"message": "Conversation roles must alternate user/assistant/user/assistant/..."},
    ),
    "Ministral, llama.cpp": (
        500,
        {"message": "Only user, assistant and tool roles are supported, got system."},
    ),
    "Google": (400, {"message": "Developer instruction is not enabled for models/gemma-3"}),
}


def without(refused: Callable[[dict[str, Any]], bool], status: int, fields: Any) -> Script:
    """An endpoint that refuses some requests."""

    def answer(request: dict[str, Any]) -> Answer:
        return Answer(status=status, body={"error": fields}) if refused(request) else FINE

    return answer


@pytest.mark.parametrize("refusal", REFUSED_STREAMS.values(), ids=REFUSED_STREAMS.keys())
def test_a_refused_stream_is_a_plain_request_from_then_on(refusal: tuple[int, Any]) -> None:
    heard: list[str] = []
    with serve(without(lambda request: "stream" in request, *refusal)) as stub:
        policy = OpenAIPolicy("m", stub.url)
        assert policy.reply(CHAT, heard.append) == Reply(content="x")
        for_sample(policy, 1).reply(CHAT, heard.append)
    assert heard == ["x", "x"]
    assert ["stream" in request for request in stub.requests] == [True, False, False]


@pytest.mark.parametrize("refusal", REFUSED_OPTIONS.values(), ids=REFUSED_OPTIONS.keys())
def test_a_stream_is_asked_for_without_refused_options(refusal: tuple[int, Any]) -> None:
    with serve(without(lambda request: "stream_options" in request, *refusal)) as stub:
        policy = OpenAIPolicy("m", stub.url)
        assert [policy.reply(CHAT, ignore).content for _ in range(2)] == ["x", "x"]
    assert [request.get("stream_options") is not None for request in stub.requests] == [
        True, False, False,
    ]  # fmt: skip
    assert all(request["stream"] for request in stub.requests)


@LISTENERS
@pytest.mark.parametrize("refusal", REFUSED_SYSTEM.values(), ids=REFUSED_SYSTEM.keys())
def test_a_refused_system_message_begins_the_users(refusal: tuple[int, Any], listener: Any) -> None:
    with serve(without(lambda request: len(request["messages"]) > 1, *refusal)) as stub:
        policy = OpenAIPolicy("m", stub.url)
        assert [policy.reply(CHAT, listener).content for _ in range(2)] == ["x", "x"]
    merged = [{"role": "user", "content": "Be brief.\n\nWrite a kernel."}]
    assert [request["messages"] for request in stub.requests[1:]] == [merged, merged]


def test_other_refusals_are_not_tried_again() -> None:
    for message in ("temperature must be 1", "the upstream system is down"):
        with failing(told(message=message), listener=ignore) as (_, stub):
            assert len(stub.requests) == 1


def test_a_whole_completion_in_answer_to_a_stream_is_the_reply() -> None:
    body = json.dumps(whole([delta(content="x"), delta(finish="stop")])).encode()
    heard: list[str] = []
    with serve(Answer(raw=body)) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT, heard.append) == Reply(content="x")
    assert heard == ["x"]
    error = json.dumps({"error": {"message": "no such model", "code": 404}}).encode()
    with failing(Answer(raw=error), listener=ignore) as (failure, _):
        assert "no such model" in str(failure)


@pytest.mark.parametrize("key", ["a", "no", "model", "the", "127"])
def test_a_short_key_is_hidden_in_no_words_of_ours(key: str) -> None:
    answer = Answer(status=404, body={"error": {"message": f"what is '{key}'? another one"}})
    with failing(answer, api_key=key) as (error, _):
        assert "has no model 'm' or no chat completions (HTTP 404): check --model" in str(error)
        assert str(error).startswith("127.0.0.1:")
        assert str(error).endswith("what is '<key>'? another one")


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
