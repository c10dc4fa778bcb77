"""Reasoning and answer are told apart by the marks of any model."""

import pytest

from kevin_env.extract import Extracted, extract
from kevin_env.outcome import FormatError
from kevin_env.policies.thinking import VisibleText
from kevin_env.reasoning import mark_at_end, split_reasoning
from kevin_env.record import Reply

CODE = "class ModelNew:\n    def forward(self, x):\n        return good(x)\n"
BLOCK = f"```python\n{CODE}```"
DRAFT = BLOCK.replace("good", "draft")
FINAL = "<|start|>assistant<|channel|>final<|message|>"
MARKS = {
    "DeepSeek, Qwen, GLM": ("<think>\n", "\n</think>\n\n"),
    "upper case": ("<THINK>", "</Think>"),
    "Claude": ("<thinking>", "</thinking>"),
    "EXAONE": ("<thought>", "</thought>"),
    "another tag": ("<scratchpad>\n", "</scratchpad>\n"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "MiniMax": ("<mm:think>", "</mm:think>"),
    "Hunyuan": ("<think:6124c78e>", "</think:6124c78e>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Kimi K3": ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    "Sky-T1": ("<|begin_of_thought|>\n", "<|end_of_thought|>\n<|begin_of_solution|>\n"),
    "Cohere": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "Gemma": ("<|channel>thought\n", "<channel|>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "Inkling": (
        "<|message_model|><|content_thinking|>",
        "<|end_message|><|message_model|><|content_text|>",
    ),
    "gpt-oss": ("<|channel|>analysis<|message|>", f"<|end|>{FINAL}"),
    "gpt-oss, comments": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>",
        f"<|end|>\n{FINAL}",
    ),
    "gpt-oss, constrained": (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    "gpt-oss without special tokens": ("analysis", "assistantfinal"),
    "gpt-oss with comments without special tokens": ("analysisHm.assistantcommentary", "assistantfinal"),
    "another closing tag": ("<think>", "</thinking>"),
    "tags of another kind inside": ("<think><analysis>Hm.</analysis>", "</think>"),
    "the same tag inside": ("<think>\n<think>Hm.</think>", "</think>"),
}  # fmt: skip
MARKED = pytest.mark.parametrize(("opening", "closing"), MARKS.values(), ids=MARKS.keys())


def taken(text: str) -> Reply:
    """The reply, whose answer has the good code and nothing of the reasoning, nor have its exports."""
    reply = Reply(content=text)
    found = extract(reply.content)
    assert isinstance(found, Extracted) and found.submission.code == CODE
    assert extract(text) == found
    assert Reply(content=reply.content) == reply.model_copy(update={"reasoning": None})
    assert "draft" not in reply.content + found.summary and "draft" in (reply.reasoning or "")
    assert "think" not in reply.content and "<|" not in found.summary
    return reply


@MARKED
@pytest.mark.parametrize("draft", [DRAFT, f"draft\n{DRAFT.removesuffix('```')}No.", "draft"])
def test_reasoning_is_neither_kept_nor_judged(opening: str, closing: str, draft: str) -> None:
    taken(f"{opening}First {draft}\nSlow.{closing}{BLOCK}\nFast.")
    taken(f"{opening}First {draft}\nSlow.{closing}Here:\n{BLOCK}<|im_end|>")
    if "analysis" not in opening[:9]:
        taken(f"Let me see.\n{opening}First {draft}\nSlow.{closing}{BLOCK}\nFast.")
        taken(f"{BLOCK}\n{opening}First {draft}\nSlow.{closing}Fast.")


@pytest.mark.parametrize("end", ["`draft`", "'draft'", '"draft"', f"\n{DRAFT}"])
def test_reasoning_may_end_with_a_quotation(end: str) -> None:
    taken(f"<think>I name it {end}</think>\n\n{BLOCK}")
    found = extract(f"<think>It says `</think>` and {end}</think>\n\n{BLOCK}")
    assert isinstance(found, Extracted) and found.submission.code == CODE


@MARKED
def test_reasoning_that_is_never_closed_is_cut_off(opening: str, closing: str) -> None:
    if "assistantcommentary" not in opening and "</" not in opening:
        text = f"{opening}First:\n{DRAFT}\nSlow, since"
        found = extract(text)
        assert isinstance(found, FormatError) and found.kind == "truncated"
        assert Reply(content=text).truncated and "draft" not in Reply(content=text).content


@pytest.mark.parametrize(
    "closing", ["</think>", "</THINKING>", "[/THINK]", f"<|end|>{FINAL}", "assistantfinal"]
)
def test_reasoning_may_begin_without_a_mark(closing: str) -> None:
    taken(f"First {DRAFT}\nNo.\n{closing}\n\n{BLOCK}")
    taken(f"First draft\n```python\nx = 1\n{closing}\n\n{BLOCK}")
    found = extract(f"First:\n{DRAFT}\nNo.{closing}I give up.")
    assert isinstance(found, FormatError) and found.kind == "no_code"


@pytest.mark.parametrize(
    "answer",
    [
        BLOCK.replace("class", "P = '''\n<think>\n'''\nclass"),
        BLOCK.replace("class", "P = '''\n</think>\n'''\nclass"),
        BLOCK.replace("good(x)", "good(x)  # <|channel|>analysis<|message|>"),
        f"```text\n<think>\n```\n{BLOCK}",
        f"{BLOCK}\nIt has no `<think>` and no '</think>'.",
        f"I removed `<thinking>`:\n{BLOCK}",
        f"{BLOCK}\nThe analysis of assistant models, <b>channel</b> by channel: [think] of it.",
        f"{BLOCK}<|end|>",
        f"{BLOCK}\n{BLOCK}\n<|return|>",
    ],
)
def test_an_answer_that_mentions_marks_is_whole(answer: str) -> None:
    assert Reply(content=answer) == Reply(content=answer).model_copy(update={"content": answer})
    assert isinstance(extract(answer), Extracted)
    assert split_reasoning(f"<think>draft</think>{answer}") == (answer, "draft", False)


def test_a_stray_closing_mark_after_the_code_is_dropped() -> None:
    taken(f"<think>draft</think>\n{BLOCK}\nMy reasoning ended with </think>.")


@pytest.mark.parametrize(
    ("text", "content", "reasoning"),
    [
        (f"<think>\nHm.\n</think>\n\n{BLOCK}", BLOCK, "Hm."),
        (f"Hm.\n</think>\n\n{BLOCK}", BLOCK, "Hm."),
        (f"<thinking>a</thinking>{BLOCK}\n<think>b</think>", f"{BLOCK}\n", "ab"),
        (f"\n{BLOCK}", f"\n{BLOCK}", None),
    ],
)
def test_a_reply_has_its_reasoning_apart(text: str, content: str, reasoning: str | None) -> None:
    assert Reply(content=text) == Reply(content=content, reasoning=reasoning)
    assert Reply(content=text, reasoning="First.").reasoning == (
        f"First.\n\n{reasoning}" if reasoning else "First."
    )


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("<think>\nHm <b>.\n</think>\n\nYes\n<b>", "\n\nYes\n<b>"),
        ("a\n  <thinking>b</thinking>c\n<think>d</think>", "a\n  c\n"),
        ("a <think> b\n<thin", "a <think> b\n<thin"),
        ("<think>never ends", ""),
        ("◁think▷never◁/think▷a", "a"),
        (f"<|channel|>analysis<|message|>Hm.<|end|>{FINAL}Yes", "Yes"),
        ("```python\n<think>\n```\n<think>a</think>b", "```python\n<think>\n```\nb"),
    ],
)
def test_a_listener_does_not_hear_reasoning(text: str, heard: str, size: int) -> None:
    pieces: list[str] = []
    visible = VisibleText(pieces.append)
    for start in range(0, len(text), size):
        visible.feed(text[start : start + size])
    visible.end()
    assert "".join(pieces) == heard


@pytest.mark.parametrize(
    ("opening", "closing"), [pair for pair in MARKS.values() if "</" not in pair[0]]
)
def test_a_listener_does_not_hear_the_reasoning_of_any_model(opening: str, closing: str) -> None:
    heard: list[str] = []
    visible = VisibleText(heard.append)
    for word in f"{opening}First {DRAFT}\nSlow.{closing}{BLOCK}\nFast.".split(" "):
        visible.feed(f"{word} ")
    visible.end()
    assert "draft" not in "".join(heard) and "good" in "".join(heard)


@pytest.mark.timeout(30)
def test_a_line_of_spaces_is_passed_on_as_it_comes() -> None:
    heard: list[str] = []
    visible = VisibleText(heard.append)
    for _ in range(50_000):
        visible.feed(" ")
    assert len("".join(heard)) == 50_000


@pytest.mark.parametrize(
    ("prompt", "mark"),
    [
        ("Write.<|assistant|>\n<think>\n", "<think>"),
        (
            "Write.\n<|start|>assistant<|channel|>analysis<|message|>",
            "<|start|>assistant<|channel|>analysis<|message|>",
        ),
        ("<think>\n\n</think>\n\n", ""),
        ("<think> about it", ""),
        ("", ""),
    ],
)
def test_a_prompt_may_open_the_reasoning(prompt: str, mark: str) -> None:
    assert mark_at_end(prompt) == mark
