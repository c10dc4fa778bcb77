"""From a reply's text to the submission in it. Nothing is executed; the code is only parsed."""

import ast
import bisect
import itertools
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kevin_env.judge.api import Submission
from kevin_env.outcome import FormatError, Frozen, Printable
from kevin_env.parsing import as_submission, defines, imported, nodes_of, parsed, texts_of

Language = Literal["cuda", "triton", "cpp", "python"]

SUMMARY_LIMIT = 1000
"""Characters of a summary that are kept."""

REASONING_TAGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<seed:think>", "[THINK]")
"""Opening tags of a model's reasoning."""
CLOSING_TAGS = tuple(f"{tag[0]}/{tag[1:]}" for tag in REASONING_TAGS)
REASONING_OPENS = re.compile(
    rf"^[ \t]*(?:{'|'.join(map(re.escape, REASONING_TAGS))})", re.MULTILINE
)
REASONING_CLOSES = re.compile("|".join(map(re.escape, CLOSING_TAGS)))
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<info>.*)")
_MODEL_LINE = re.compile(r"^class ModelNew\b", re.MULTILINE)
_OLD_MODEL_LINE = re.compile(r"^class Model\b", re.MULTILINE)
_REPLY = re.compile(rf"^[ \t]*(?:```|~~~)|{REASONING_CLOSES.pattern}", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_DEEPEST = 8
"""Blocks within each other; of more, the outer ones are ignored."""


_AT_THE_LIMIT = "The reply reached the token limit before a complete code block with ModelNew."
_STILL_REASONING = (
    "The reply ends inside its reasoning: the reasoning tag is never closed and no answer follows."
)
_FENCE_OPEN = "The last code block is never closed: end it with the fence that opened it."


class Extracted(Frozen):
    """The submission in a reply, and the reply's summary of it."""

    submission: Submission
    summary: Printable
    """At most `SUMMARY_LIMIT` characters, without code and reasoning; can be empty."""


@dataclass(frozen=True)
class _Block:
    """A fenced block: its code, and the lines from the opening fence up to `end`, exclusive."""

    code: str
    start: int
    end: int
    closed: bool


def extract(reply: str, truncated: bool = False) -> Extracted | FormatError:
    """The last complete code block of a reply that defines `ModelNew`, and the prose around it.

    A block whose `forward` is just `...`, as in a reminder of changes, counts only if there is no
    other. A block that does not parse counts if one of its lines starts with `class ModelNew`, so
    that its error can be reported, and if no fence inside it opens such a block. Reasoning in tags
    such as `<think>` is dropped first, even if the opening tag is missing or the closing tag never
    comes. A reply that is a Python file without a fence is taken whole.

    Args:
        reply: the model's reply.
        truncated: whether the endpoint reported that a token limit cut the reply off.
    """
    answer, _, unfinished = split_reasoning(clean(reply))
    lines = answer.split("\n")
    blocks = _code_blocks(lines)
    chosen = _last_model(blocks)
    if chosen is None or parsed(chosen.code) is None:
        nested = _code_blocks(lines, nested=True)
        if model := _last_model(nested):
            blocks, chosen = nested, model
    if chosen is not None:
        return Extracted(
            submission=_submission(chosen.code), summary=_summary(lines, blocks, chosen)
        )
    if truncated:
        return FormatError(kind="truncated", message=_AT_THE_LIMIT)
    if unfinished:
        return FormatError(kind="truncated", message=_STILL_REASONING)
    if blocks and not blocks[-1].closed:
        return FormatError(kind="truncated", message=_FENCE_OPEN)
    if blocks:
        return FormatError(
            kind="no_model",
            message="No code block of the reply defines a top-level class ModelNew.",
        )
    if _defines_model(answer) and parsed(answer):
        return Extracted(submission=_submission(answer.strip("\n") + "\n"), summary="")
    return FormatError(kind="no_code", message="The reply has no fenced code block.")


def extract_file(code: str) -> Submission | FormatError:
    """A whole file as a submission, even if it does not parse: the rules report the error."""
    code = clean(code)
    tree = parsed(code)
    if tree is not None and not defines(tree, "ModelNew"):
        return FormatError(kind="no_model", message="The file defines no top-level class ModelNew.")
    return _submission(code)


def as_reply(text: str) -> str:
    """`text` as a reply: a Python file gets a fence, and its class `Model` becomes `ModelNew`.

    A file that does not parse counts if one of its lines begins such a class, so that its error is
    reported. Other text is unchanged.
    """
    code = clean(text)
    if (tree := parsed(code)) is not None:
        is_file = any(isinstance(node, ast.ClassDef) for node in tree.body)
        return fenced(as_submission(code)) if is_file else text
    if _REPLY.search(code):
        return text
    code = code if _MODEL_LINE.search(code) else _OLD_MODEL_LINE.sub("class ModelNew", code)
    return fenced(code) if _MODEL_LINE.search(code) else text


def guess_language(code: str) -> Language:
    """Guesses the language from imports, decorators and strings; for display only."""
    tree = parsed(code)
    if tree is None:
        return "python"
    packages = imported(tree)
    if "triton" in packages and any(
        _is_jit(function) for function in nodes_of(tree, ast.FunctionDef)
    ):
        return "triton"
    calls = nodes_of(tree, ast.Call)
    has_sources = any(keyword.arg == "cuda_sources" for call in calls for keyword in call.keywords)
    if has_sources or any("__global__" in text for text in texts_of(tree)):
        return "cuda"
    builds = any(_called(call) in ("load_inline", "load") for call in calls) and "torch" in packages
    return "cpp" if builds or "ctypes" in packages else "python"


def clean(text: str) -> str:
    """Encodable text with plain line ends and no byte order mark."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def fenced(text: str, language: str = "python") -> str:
    """`text` as a fenced block that it cannot close."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def split_reasoning(reply: str) -> tuple[str, str, bool]:
    """Splits a reply into answer, reasoning, and whether the reasoning is unclosed.

    An opening tag counts only at the beginning of a line, and can be missing. A closing tag without
    an opening one does not count inside a fenced block after code, so that code can mention the
    tags.
    """
    opened, closed = REASONING_OPENS.search(reply), REASONING_CLOSES.search(reply)
    if closed and not (opened and opened.start() < closed.start()):
        code = _spans_of_code(reply)
        unopened = (
            each
            for each in REASONING_CLOSES.finditer(reply)
            if not _follows_code(reply, each.start(), code)
        )
        closed = next(unopened, None)
    kept: list[str] = []
    thought: list[str] = []
    position = 0
    if closed and not (opened and opened.start() < closed.start()):
        thought, position = [reply[: closed.start()]], closed.end()
    while opened := REASONING_OPENS.search(reply, position):
        kept.append(reply[position : opened.start()])
        closed = REASONING_CLOSES.search(reply, opened.end())
        thought.append(reply[opened.end() : closed.start() if closed else None])
        if closed is None:
            return "".join(kept), "".join(thought), True
        position = closed.end()
    return "".join((*kept, reply[position:])), "".join(thought), False


def _spans_of_code(reply: str) -> list[range]:
    """Where the closed fenced blocks of a reply are, in characters."""
    lines = reply.split("\n")
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    return [
        range(starts[each.start], starts[each.end]) for each in _code_blocks(lines) if each.closed
    ]


def _follows_code(reply: str, place: int, code: Sequence[range]) -> bool:
    """Whether something precedes this place on its line, and the line is in one of the blocks."""
    before = reply[reply.rfind("\n", 0, place) + 1 : place]
    at = bisect.bisect_right(code, place, key=lambda span: span.start) - 1
    return bool(before.strip()) and at >= 0 and place in code[at]


def _last_model(blocks: Sequence[_Block]) -> _Block | None:
    """The last closed block that defines the model, preferably not just its outline."""
    models = [block for block in reversed(blocks) if block.closed and _defines_model(block.code)]
    whole = (block for block in models if not _is_outline(block.code))
    return next(whole, models[0] if models else None)


def _code_blocks(lines: Sequence[str], nested: bool = False) -> list[_Block]:
    """All fenced blocks by their starts, as in CommonMark except that any indentation is allowed.

    If `nested`, a fence with a language opens a block even inside another one, for models that
    begin again without closing a block or fence their whole answer; blocks left open do not count.
    """
    blocks: list[_Block] = []
    opened: deque[tuple[int, re.Match[str]]] = deque(maxlen=_DEEPEST)
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None or (opened and not fence["marks"].startswith(opened[-1][1]["marks"])):
            continue
        if opened and not fence["info"].strip():
            blocks.append(_block(lines, *opened.pop(), number))
        elif "`" not in fence["info"] and (nested or not opened):
            opened.append((number, fence))
    if opened and not nested:
        blocks.append(_block(lines, *opened[-1], None))
    return sorted(blocks, key=lambda block: block.start)


def _block(lines: Sequence[str], start: int, fence: re.Match[str], end: int | None) -> _Block:
    code = "".join(line.removeprefix(fence["indent"]) + "\n" for line in lines[start + 1 : end])
    return _Block(code, start, len(lines) if end is None else end + 1, closed=end is not None)


def _defines_model(code: str) -> bool:
    if "ModelNew" not in code:
        return False
    tree = parsed(code)
    return _MODEL_LINE.search(code) is not None if tree is None else defines(tree, "ModelNew")


def _is_outline(code: str) -> bool:
    """Whether the body of the model or of its `forward` is `...`."""
    tree = parsed(code)
    models = (
        [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"]
        if tree
        else []
    )
    inside = [each for model in models for each in model.body]
    forwards = [
        each for each in inside if isinstance(each, ast.FunctionDef) and each.name == "forward"
    ]
    return any(map(_is_ellipsis, inside)) or any(
        all(map(_is_ellipsis, each.body)) for each in forwards
    )


def _is_ellipsis(statement: ast.stmt) -> bool:
    """Whether it is `...`."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is ...
    )


def _submission(code: str) -> Submission:
    return Submission(code=code, language=guess_language(code))


def _summary(lines: Sequence[str], blocks: Sequence[_Block], chosen: _Block) -> str:
    """The prose after the chosen block, or else before it."""
    return _shortened(_prose(lines, blocks, chosen.end, len(lines))) or _shortened(
        _prose(lines, blocks, 0, chosen.start)
    )


def _prose(lines: Sequence[str], blocks: Sequence[_Block], start: int, end: int) -> str:
    code = {number for block in blocks for number in range(block.start, block.end)}
    kept = "\n".join(lines[number] for number in range(start, end) if number not in code)
    return re.sub(r"\n{3,}", "\n\n", kept).strip()


def _shortened(text: str) -> str:
    if len(text) <= SUMMARY_LIMIT:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, SUMMARY_LIMIT)]
    return text[: ends[-1] if ends else SUMMARY_LIMIT].rstrip()


def _is_jit(node: ast.FunctionDef) -> bool:
    return any(_called(each) == "jit" for each in node.decorator_list)


def _called(node: ast.AST) -> str:
    """The last part of a dotted name, called or not."""
    if isinstance(node, ast.Call):
        return _called(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
