"""What is sent to an endpoint and what is made of its answers."""

import logging
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from stub_server import CHAT, Answer, delta, serve, usage

from kevin_env.extract import extract
from kevin_env.outcome import FormatError
from kevin_env.policies import OpenAIPolicy, PolicyError, Refused, for_sample
from kevin_env.record import Message, Reply, Usage

pytestmark = pytest.mark.usefixtures("no_endpoint")
KEY = "sk-secret-0123456789"
DONE = delta(finish="stop")


EITHER = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


def ask(answer: Answer, stream: bool = False) -> tuple[Reply, list[str]]:
    """The reply to a chat, and what a listener heard of it."""
    heard: list[str] = []
    with serve(answer) as stub:
        return OpenAIPolicy("m", stub.url).reply(CHAT, heard.append if stream else None), heard


def test_a_reply_is_streamed_to_a_listener() -> None:
    heard: list[str] = []
    chunks = [
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo\n"),
        delta(content="<t"), DONE,
    ]  # fmt: skip
    with serve(
        Answer([*chunks, usage(prompt_tokens=7, completion_tokens=2, total_tokens=9)])
    ) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT, heard.append)
    assert reply == Reply(content="Hello\n<t", usage=Usage(prompt_tokens=7, completion_tokens=2))
    assert heard == ["Hel", "lo\n", "<t"]
    [request] = stub.requests
    assert request == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Write a kernel."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_a_listener_one_plain_request_is_made() -> None:
    with serve(
        Answer([delta(content="Hello"), DONE, usage(prompt_tokens=7, completion_tokens=2)])
    ) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT)
    assert reply == Reply(content="Hello", usage=Usage(prompt_tokens=7, completion_tokens=2))
    assert stub.requests[0].keys() == {"model", "messages"}


@EITHER
@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_in_a_field_is_kept_apart(name: str, stream: bool) -> None:
    chunks = [delta(**{name: "Hm, "}), delta(**{name: "so."}), delta(content="Yes"), DONE]
    reply, heard = ask(Answer(chunks), stream)
    assert reply == Reply(content="Yes", reasoning="Hm, so.")
    assert heard == ["Yes"] * stream


@EITHER
@pytest.mark.parametrize(
    "thinking",
    [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, so."}]},  # Mistral
        {"type": "thinking", "thinking": "Hm, so."},  # Anthropic
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm, so."}]},
    ],
)
def test_content_may_be_a_list_of_chunks(thinking: dict[str, Any], stream: bool) -> None:
    text = [{"type": "text", "text": "Yes"}, ", indeed"]
    chunks = [delta(content=[thinking]), delta(content=text), DONE]
    whole = [delta(content=[thinking, *text]), DONE]
    reply, heard = ask(Answer(chunks if stream else whole), stream)
    assert reply == Reply(content="Yes, indeed", reasoning="Hm, so.")
    assert heard == ["Yes, indeed"] * stream


def test_reasoning_without_its_end_is_a_reply_that_was_cut_off() -> None:
    reply, _ = ask(Answer([delta(content="<think>Hm."), DONE]))
    assert reply == Reply(content="", reasoning="Hm.", truncated=True)
    verdict = extract(reply.content, truncated=reply.truncated)
    assert isinstance(verdict, FormatError) and verdict.kind == "truncated"


def test_usage_has_details_and_cost() -> None:
    details = {
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    last = usage(prompt_tokens=7, completion_tokens=5, total_tokens=12, cost=0.25, **details)
    expected = Usage(
        prompt_tokens=7, completion_tokens=5, reasoning_tokens=3, cached_tokens=4, cost=0.25
    )
    assert ask(Answer([delta(content="x"), DONE, last]))[0].usage == expected
    wrong = usage(prompt_tokens=7, completion_tokens=-5, total_tokens=2)
    assert ask(Answer([delta(content="x"), DONE, wrong]))[0].usage == Usage(prompt_tokens=7)


def test_parameters_are_sent_when_set() -> None:
    with serve(Answer([DONE])) as stub:
        OpenAIPolicy(
            "m",
            stub.url,
            temperature=0.0,
            top_p=0.9,
            max_tokens=9,
            seed=1,
            extra_body={"reasoning_effort": "high"},
        ).reply(CHAT)
    sent = {
        name: value for name, value in stub.requests[0].items() if name not in ("model", "messages")
    }
    assert sent == {
        "temperature": 0.0, "top_p": 0.9, "max_tokens": 9, "seed": 1, "reasoning_effort": "high",
    }  # fmt: skip


def test_samples_have_seeds_of_their_own_if_there_is_one() -> None:
    with serve(Answer([DONE])) as stub:
        for sample in range(3):
            for_sample(OpenAIPolicy("m", stub.url, seed=5), sample).reply(CHAT)
        for_sample(OpenAIPolicy("m", stub.url), 3).reply(CHAT)
    assert [request.get("seed") for request in stub.requests] == [5, 6, 7, None]


def test_models_that_name_the_token_limit_otherwise_get_it_so() -> None:
    refusal = {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter",
    }  # fmt: skip

    def model(request: dict[str, Any]) -> Answer:
        return (
            Answer(status=400, body={"error": refusal})
            if "max_tokens" in request
            else Answer([DONE])
        )

    with serve(model) as stub:
        policy = OpenAIPolicy("m", stub.url, max_tokens=9)
        policy.reply(CHAT)
        policy.reply(CHAT, print)
    assert [request.get("max_completion_tokens") for request in stub.requests] == [None, 9, 9]


@EITHER
def test_a_refusal_is_no_reply(stream: bool) -> None:
    with pytest.raises(Refused, match="I won't"):
        ask(Answer([delta(refusal="I "), delta(refusal="won't."), DONE]), stream)
    with pytest.raises(Refused, match="filtered"):
        ask(Answer([delta(content="half", finish="content_filter")]), stream)


def test_threads_get_their_own_replies() -> None:
    def echo(request: dict[str, Any]) -> Answer:
        words = request["messages"][-1]["content"].split()
        return Answer([*(delta(content=f"{word} ") for word in words), DONE])

    chats = [[Message(role="user", content=f"{number} " * 20)] for number in range(24)]
    heard: list[list[str]] = [[] for _ in chats]
    with serve(echo) as stub, ThreadPoolExecutor(12) as threads:
        policy = OpenAIPolicy("m", stub.url)
        streamed = list(
            threads.map(lambda chat, words: policy.reply(chat, words.append), chats, heard)
        )
        whole = list(threads.map(policy.reply, chats))
    assert [reply.content for reply in streamed] == [chat[0].content for chat in chats]
    assert ["".join(words) for words in heard] == [chat[0].content for chat in chats]
    assert whole == streamed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_the_key_is_sent_and_never_shown(status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"error": {"message": f"bad key {KEY}", "code": KEY}}
    with serve(Answer(status=status, body=body, headers={"x-should-retry": "false"})) as stub:
        policy = OpenAIPolicy("m", stub.url, f" {KEY}\n")
        with pytest.raises(PolicyError) as caught:
            policy.reply(CHAT)
    assert stub.keys == [f"Bearer {KEY}"]
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(policy)) + str(policy)
    assert KEY not in shown
    assert caplog.text
    assert KEY not in caplog.text
    assert f"HTTP {status}" in str(caught.value)


def test_an_endpoint_is_tried_without_asking_the_model() -> None:
    with serve() as stub:
        policy = OpenAIPolicy("m", stub.url, KEY)
        for stub.lists_models in (200, 403, 404, 500):  # not all endpoints list their models
            policy.require_endpoint()
        stub.lists_models = 401
        with pytest.raises(PolicyError, match="OPENAI_API_KEY") as caught:
            policy.require_endpoint()
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert not stub.requests
    with pytest.raises(PolicyError, match=r"cannot reach 127.0.0.1:9: check --base-url"):
        OpenAIPolicy("m", "http://127.0.0.1:9/v1", KEY).require_endpoint()


def test_a_password_in_the_url_is_not_shown_either() -> None:
    with serve(Answer(status=400, body={"error": "hunter2 is wrong"})) as stub:
        policy = OpenAIPolicy("m", stub.url.replace("127", "me:hunter2@127"))
        with pytest.raises(PolicyError) as caught:
            policy.reply(CHAT)
    assert "hunter2" not in f"{caught.value} {policy!r}"
    with pytest.raises(PolicyError) as caught:
        OpenAIPolicy("m", "ftp://me:hunter2@127.0.0.1/")
    assert "hunter2" not in str(caught.value)


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    with serve(Answer([DONE])) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        OpenAIPolicy("m", stub.url, "given").reply(CHAT)
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        OpenAIPolicy("m").reply(CHAT)
        OpenAIPolicy("m", "", "").reply(CHAT)
    assert stub.keys == ["Bearer given", "Bearer from-environment", "Bearer from-environment"]


def test_only_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    with pytest.raises(PolicyError, match="OPENAI_API_KEY"):
        OpenAIPolicy("m")
    with serve(Answer([DONE])) as stub:
        OpenAIPolicy("m", stub.url).reply(CHAT)
    assert stub.keys == ["Bearer EMPTY"]
