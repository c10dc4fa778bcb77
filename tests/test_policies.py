import io
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from stub_server import Answer, delta, serve, usage

from kevin_env.policies import ContextOverflow, PolicyError, Quit, Refused, ScriptedPolicy
from kevin_env.policies.human import HumanPolicy
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.record import Message, Reply, Usage

CHAT = (Message(role="system", content="Be brief."), Message(role="user", content="Write a kernel."))
KEY = "sk-secret-0123456789"
DONE = delta(finish="stop")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def error(status: int, **fields: object) -> Answer:
    return Answer(status=status, body={"error": {"message": "no", "type": "invalid_request_error"} | fields})


def test_a_reply_is_streamed_and_put_together() -> None:
    heard: list[str] = []
    chunks = [delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), DONE]
    with serve(Answer([*chunks, usage(prompt_tokens=7, completion_tokens=2, total_tokens=9)])) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT, heard.append)
    assert reply == Reply(content="Hello", usage=Usage(prompt_tokens=7, completion_tokens=2))
    assert heard == ["Hel", "lo"]
    [request] = stub.requests
    assert request == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write a kernel."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_apart(name: str) -> None:
    heard: list[str] = []
    with serve(Answer([delta(**{name: "Hm, "}), delta(**{name: "so."}), delta(content="Yes"), DONE])) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT, heard.append)
    assert (reply.content, reply.reasoning, heard) == ("Yes", "Hm, so.", ["Yes"])


def test_usage_has_details_and_cost() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 3}, "prompt_tokens_details": {"cached_tokens": 4}}
    last = usage(prompt_tokens=7, completion_tokens=5, total_tokens=12, cost=0.25, **details)
    with serve(Answer([delta(content="x"), DONE, last])) as stub:
        reply = OpenAIPolicy("m", stub.url).reply(CHAT)
    expected = Usage(prompt_tokens=7, completion_tokens=5, reasoning_tokens=3, cached_tokens=4, cost=0.25)
    assert reply.usage == expected


def test_a_token_limit_truncates() -> None:
    with serve(Answer([delta(content="x", finish="length")])) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT).truncated


def test_parameters_are_sent_when_set() -> None:
    with serve(Answer([DONE])) as stub:
        OpenAIPolicy("m", stub.url, temperature=0.0, max_tokens=9, seed=1, extra_body={"top_k": 5}).reply(CHAT)
    sent = stub.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["seed"], sent["top_k"]) == (0.0, 9, 1, 5)


def test_too_many_requests_is_asked_again() -> None:
    busy = error(429)
    busy.headers = {"retry-after-ms": "1"}
    with serve(busy, busy, busy, Answer([delta(content="x"), DONE])) as stub:
        assert OpenAIPolicy("m", stub.url).reply(CHAT).content == "x"
    assert len(stub.requests) == 4


@pytest.mark.parametrize(
    ("fields", "raised"),
    [
        ({"code": "context_length_exceeded"}, ContextOverflow),
        ({"type": "exceed_context_size_error", "code": 400}, ContextOverflow),
        ({"message": "This model's maximum context length is 4096 tokens.", "code": 400}, ContextOverflow),
        ({"code": "content_filter"}, Refused),
        ({"code": "model_not_found"}, PolicyError),
    ],
)
def test_an_error_ends_the_episode_with_its_own_reason(fields: dict[str, object], raised: type[PolicyError]) -> None:
    with serve(error(400, **fields)) as stub, pytest.raises(PolicyError) as caught:
        OpenAIPolicy("m", stub.url).reply(CHAT)
    assert type(caught.value) is raised


def test_a_refusal_is_no_reply() -> None:
    with serve(Answer([delta(refusal="I won't."), DONE])) as stub, pytest.raises(Refused, match="I won't"):
        OpenAIPolicy("m", stub.url).reply(CHAT)


@pytest.mark.parametrize(
    "answer",
    [
        Answer([delta(content="half")], cut=True),
        Answer([delta(content="half")]),
        Answer([{"error": {"message": "out of memory", "code": 500}}]),
        Answer([delta(content="x"), usage(prompt_tokens="many", completion_tokens=[])]),
    ],
    ids=["connection cut", "no finish reason", "error event", "malformed usage"],
)
def test_a_broken_stream_is_a_policy_error(answer: Answer) -> None:
    with serve(answer) as stub, pytest.raises(PolicyError):
        OpenAIPolicy("m", stub.url).reply(CHAT)


def test_an_endpoint_that_is_not_there_is_a_policy_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kevin_env.policies.openai._RETRIES", 0)
    with pytest.raises(PolicyError, match="APIConnectionError"):
        OpenAIPolicy("m", "http://127.0.0.1:9/v1").reply(CHAT)


def test_an_error_of_the_listener_stays_its_own() -> None:
    def listen(text: str) -> None:
        raise BrokenPipeError

    with serve(Answer([delta(content="x"), DONE])) as stub, pytest.raises(BrokenPipeError):
        OpenAIPolicy("m", stub.url).reply(CHAT, listen)


def test_the_key_is_sent_and_never_shown() -> None:
    with serve(error(401, message=f"bad key {KEY}", code="invalid_api_key")) as stub:
        policy = OpenAIPolicy("m", stub.url, KEY)
        with pytest.raises(PolicyError) as caught:
            policy.reply(CHAT)
    assert stub.keys == [f"Bearer {KEY}"]
    shown = "".join(traceback.format_exception(caught.value)) + repr(policy) + str(policy)
    assert KEY not in shown
    assert "bad key <key>" in shown


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    with serve(Answer([DONE])) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        OpenAIPolicy("m", stub.url, "given").reply(CHAT)
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        OpenAIPolicy("m").reply(CHAT)
    assert stub.keys == ["Bearer given", "Bearer from-environment"]


def test_only_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    with pytest.raises(PolicyError, match="OPENAI_API_KEY"):
        OpenAIPolicy("m")
    with serve(Answer([DONE])) as stub:
        OpenAIPolicy("m", stub.url).reply(CHAT)
    assert stub.keys == ["Bearer EMPTY"]


def test_openai_is_imported_only_when_used() -> None:
    code = "import sys, kevin_env.policies.openai; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_script_is_played_in_order_and_ends() -> None:
    policy = ScriptedPolicy(["one", Reply(content="two", truncated=True), Refused("no")])
    heard: list[str] = []
    assert [policy.reply(CHAT, heard.append).content for _ in range(2)] == heard == ["one", "two"]
    with pytest.raises(Refused):
        policy.reply(CHAT)
    with pytest.raises(PolicyError, match="no reply to chat 4"):
        policy.reply(CHAT)


def test_a_person_gives_a_file_or_types(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("class ModelNew: ...")
    screen = io.StringIO()
    person = HumanPolicy(io.StringIO(f"missing.py\n{file}\n```python\nx\n```\n.\n"), screen)
    assert person.reply([Message(role="user", content="Go\x1b[2J.")]).content == "```python\nclass ModelNew: ...\n```\n"
    assert person.reply(CHAT).content == "```python\nx\n```\n"
    assert "missing.py" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()
    with pytest.raises(Quit):
        person.reply(CHAT)


def test_a_person_may_use_an_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "x = 1" >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    person = HumanPolicy(io.StringIO("edit\nedit\n"), io.StringIO())
    assert person.reply(CHAT).content == "```python\nx = 1\n\n```\n"
    assert person.reply(CHAT).content == "```python\nx = 1\nx = 1\n\n```\n"
