"""From a reply's text to the submission in it. Nothing is executed; the code is only parsed."""

import ast
import builtins
import re
from collections.abc import Sequence
from dataclasses import replace

from kevin_env.fences import Block, Fences
from kevin_env.judge.api import Submission, Written
from kevin_env.languages import imported_by
from kevin_env.outcome import FormatError, Frozen, Printable
from kevin_env.parsing import (
    UNREADABLE,
    as_submission,
    defines,
    imported,
    imports,
    lacks_forward,
    last_name,
    nodes_of,
    parse,
    parsed,
    texts_of,
    tree_of,
    walk,
)
from kevin_env.reasoning import split_reasoning

SUMMARY_LIMIT = 1000
"""Characters of a summary that are kept."""

_MODEL_LINE = re.compile(r"^class ModelNew\b", re.MULTILINE)
_OLD_MODEL_LINE = re.compile(r"^class Model\b", re.MULTILINE)
_LEFT_OUT = re.compile(r"^[ \t]*(?:\.\.\.|\N{HORIZONTAL ELLIPSIS})", re.MULTILINE)
_WRAPPER = re.compile(
    r"<(?P<end>/?)(?:answer|code|solution|output|response)>|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|</s>",
    re.IGNORECASE,
)
"""Tags round an answer, and tokens that end it."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_CANDIDATES = 16
"""Blocks that are considered, from the last."""


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


def extract(reply: str, truncated: bool = False, adapter: str = "") -> Extracted | FormatError:
    """The last complete code block of a reply that defines `ModelNew`, and the prose around it.

    A block that only outlines the model, such as a reminder of what has changed, counts only if
    there is no other. A block that does not parse counts if one of its lines starts with `class
    ModelNew`, so that its error can be reported. Reasoning is dropped first. A reply without a
    fence is taken whole if it is a Python file, also within a tag such as `<answer>`.

    Args:
        reply: the model's reply.
        truncated: whether the endpoint reported that a token limit cut the reply off.
        adapter: of the problem.
    """
    answer, _, unfinished = split_reasoning(clean(reply))
    fences = Fences(answer)
    blocks = [replace(each, code=adapted(each.code, adapter)) for each in fences.blocks()]
    models = [block for block in blocks if "ModelNew" in block.code][-_CANDIDATES:]
    models = [block for block in reversed(models) if _defines_model(block.code)]
    if models:
        chosen = next((block for block in models if not _is_outline(block.code)), models[0])
        return Extracted(
            submission=_submission(chosen.code), summary=_summary(answer, blocks, chosen)
        )
    if truncated:
        return FormatError(kind="truncated", message=_AT_THE_LIMIT)
    if unfinished:
        return FormatError(kind="truncated", message=_STILL_REASONING)
    if fences.unclosed:
        return FormatError(kind="truncated", message=_FENCE_OPEN)
    if blocks:
        return FormatError(
            kind="no_model",
            message="No code block of the reply defines a top-level class ModelNew.",
        )
    for code in reversed(_WRAPPER.split(answer)[:: _WRAPPER.groups + 1]):
        code = adapted(code, adapter)
        if "ModelNew" in code and (tree := parsed(code)) and defines(tree, "ModelNew"):
            return Extracted(submission=_submission(code.strip("\n") + "\n"), summary="")
    return FormatError(kind="no_code", message="The reply has no fenced code block.")


def extract_file(code: str, adapter: str = "") -> Submission | FormatError:
    """A whole file as a submission, even if it does not parse: the rules report the error.

    A fence round the file is left out.
    """
    code = clean(code)
    if code.lstrip().startswith("```") and len(blocks := [*Fences(code).blocks()]) == 1:
        code = blocks[0].code
    code = adapted(code, adapter)
    tree = parsed(code)
    if tree is not None and not defines(tree, "ModelNew"):
        return FormatError(kind="no_model", message="The file defines no top-level class ModelNew.")
    return _submission(code)


def adapted(code: str, adapter: str) -> str:
    """Code with a problem's adapter after it, if it defines what that calls and no `ModelNew`.

    Lines of the code keep their numbers.
    """
    calls = nodes_of(tree_of(adapter), ast.Call)
    called = {each.func.id for each in calls if isinstance(each.func, ast.Name)}
    tree = parsed(code) if any(f"def {name}" in code for name in called) else None
    if tree is None or defines(tree, "ModelNew"):
        return code
    functions = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    return f"{code.rstrip()}\n\n\n{adapter}" if functions & called else code


def as_reply(text: str) -> str:
    """`text` as a reply: a Python file gets a fence, and its class `Model` becomes `ModelNew`.

    A file that does not parse counts if one of its lines begins such a class, so that its error is
    reported. Other text is unchanged.
    """
    code = clean(text)
    if (tree := parsed(code)) is not None:
        is_file = any(isinstance(node, ast.ClassDef) for node in tree.body)
        return fenced(as_submission(code)) if is_file else text
    if is_chat(code):
        return text
    code = code if _MODEL_LINE.search(code) else _OLD_MODEL_LINE.sub("class ModelNew", code)
    return fenced(code) if _MODEL_LINE.search(code) else text


def is_chat(text: str) -> bool:
    """Whether a text is a chat's reply and not a file of Python, which may have errors.

    A file can have fences in its strings; its first error comes after them, that of a reply before.
    """
    code = clean(text)
    if parsed(code) is not None:
        return False
    first = Fences(code).first
    if first is None:
        return bool(split_reasoning(code)[1])
    try:
        parse(code)
    except SyntaxError as error:
        return (error.lineno or 1) <= code.count("\n", 0, first) + 1
    except UNREADABLE:
        pass
    return True


def guess_language(code: str) -> Written:
    """Guesses the language from imports, decorators and strings; for display only."""
    tree = parsed(code)
    if tree is None:
        return "python"
    packages = imported(tree)
    functions = nodes_of(tree, ast.FunctionDef)
    for language in imported_by(imports(tree)):
        if language.name != "triton" or any(map(_is_jit, functions)):
            return language.name
    calls = nodes_of(tree, ast.Call)
    has_sources = any(keyword.arg == "cuda_sources" for call in calls for keyword in call.keywords)
    if has_sources or any("__global__" in text for text in texts_of(tree)):
        return "cuda"
    builds = {"load", "load_inline"} & set(map(last_name, calls))
    return "cpp" if (builds and "torch" in packages) or "ctypes" in packages else "python"


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


def _defines_model(code: str) -> bool:
    tree = parsed(code)
    return _MODEL_LINE.search(code) is not None if tree is None else defines(tree, "ModelNew")


def _is_outline(code: str) -> bool:
    """Whether the model or its `forward` evidently has no body, or needs code from elsewhere."""
    tree = parsed(code)
    if tree is None:
        return _LEFT_OUT.search(code) is not None or _lacks_body(code)
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    model = next((each for each in reversed(classes) if each.name == "ModelNew"), None)
    if model is None:
        return False
    body = model.body
    forwards = [
        each.body for each in body if isinstance(each, ast.FunctionDef) and each.name == "forward"
    ]
    return (
        _lacks_a_base(tree, model)
        or lacks_forward(tree, "ModelNew")
        or any(all(map(_is_placeholder, each)) for each in (body, *forwards))
        or any(_is_ellipsis(each) for each in body)
    )


def _lacks_a_base(tree: ast.Module, model: ast.ClassDef) -> bool:
    """Whether nothing in the file can bind the name of a base class, such as `nn`."""
    nodes = nodes_of(tree)
    aliases = [each for each in nodes if isinstance(each, ast.alias)]
    bound = {(each.asname or each.name).split(".")[0] for each in aliases}
    bound |= {each.name for each in nodes if isinstance(each, ast.ClassDef | ast.FunctionDef)}
    bound |= {each.id for each in nodes if isinstance(each, ast.Name) and _stores(each)}
    used = {each.id for base in model.bases for each in walk(base) if isinstance(each, ast.Name)}
    return "*" not in bound and not used <= bound | set(dir(builtins))


def _stores(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _lacks_body(code: str) -> bool:
    """Whether the code does not parse since something has only a comment for a body."""
    try:
        tree_of(code)
    except IndentationError as error:
        return error.msg.startswith("expected an indented block")
    except UNREADABLE:
        pass
    return False


def _is_placeholder(statement: ast.stmt) -> bool:
    """Whether the statement stands for code that was left out, or is a docstring."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=None | ast.Constant(value=None)):
            return True
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case _:
            return False


def _is_ellipsis(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def _submission(code: str) -> Submission:
    return Submission(code=code, language=guess_language(code))


def _summary(answer: str, blocks: Sequence[Block], chosen: Block) -> str:
    """The prose after the chosen block, or else before it."""
    return _shortened(_prose(answer, blocks, chosen.end, len(answer))) or _shortened(
        _prose(answer, blocks, 0, chosen.start)
    )


def _prose(answer: str, blocks: Sequence[Block], start: int, end: int) -> str:
    kept: list[str] = []
    for block in blocks:
        if start <= block.start < end:
            kept.append(answer[start : block.start])
            start = block.end + answer.startswith("\n", block.end)
    kept.append(answer[start:end])
    lines = _WRAPPER.sub("", "".join(kept)).split("\n")
    text = "\n".join(line for line in lines if not line.lstrip(" \t>").startswith(("```", "~~~")))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _shortened(text: str) -> str:
    if len(text) <= SUMMARY_LIMIT:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, SUMMARY_LIMIT)]
    return text[: ends[-1] if ends else SUMMARY_LIMIT].rstrip()


def _is_jit(node: ast.FunctionDef) -> bool:
    return any(last_name(each) == "jit" for each in node.decorator_list)
