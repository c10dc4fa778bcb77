"""What a submission may do, as far as its text shows it before anything runs.

Under the rules `kernel`, in what `ModelNew.forward` reaches, torch may allocate, view, shape, cast,
ask, and handle devices, streams, events and graphs; the computing is done by kernels of the
submission's own. `partial` asks for one such kernel and lets torch do the rest. `open` admits any
code.

This reading gives early messages for ordinary spellings, with a line, and reports only what it is
sure of. What it cannot decide (how large a tensor is, which branch runs, what a name stands for
that is looked up while the code runs) is left to what torch is seen to do when the submission is
called.
"""

import ast
import warnings
from collections.abc import Sequence

from kevin_env.outcome import CompileError, FormatError, RulesViolation
from kevin_env.parsing import defines, lacks_forward, marked, nodes_of, tree_of, walk
from kevin_env.rules import cpp
from kevin_env.rules import vocabulary as words
from kevin_env.rules.dispatcher import interferes
from kevin_env.rules.evaluator import Finding
from kevin_env.rules.kernels import may_hold_a_kernel
from kevin_env.rules.reader import Reader
from kevin_env.rules.recorded import Rules as Rules
from kevin_env.rules.things import Imported
from kevin_env.rules.values import thing

_MOST_NAMED = 4
_TOO_DEEP = "The code is nested too deeply to be read; a chain of hundreds of elif or of + counts as nested, a loop does not."
_NO_MODEL = FormatError(
    kind="no_model", message="The code defines no class ModelNew at its top level."
)
_NO_FORWARD = FormatError(kind="no_forward", message="The class ModelNew has no method forward.")


def check_rules(
    code: str, mode: Rules = "kernel", glue: float = 0.0
) -> CompileError | FormatError | RulesViolation | None:
    """What is wrong with a submission before it is built; None when it may be judged.

    A file that does not parse is `compile/syntax`, one without a class `ModelNew` at its top level,
    which may have been given that name by an assignment, `format/no_model`, and one whose
    `ModelNew` has no `forward`, `format/no_forward`, in every mode. Where some `glue` is admitted,
    operations on tensors that may be small are left to what runs.
    """
    try:
        tree = _parse(code)
        if isinstance(tree, CompileError):
            return tree
        if not defines(tree, "ModelNew"):
            return _NO_MODEL
        if lacks_forward(tree, "ModelNew"):
            return _NO_FORWARD
        return None if mode == "open" else _check(tree, mode, glue > 0)
    except (RecursionError, MemoryError):
        return CompileError(kind="syntax", message=_TOO_DEEP)


def _parse(code: str) -> ast.Module | CompileError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # an odd escape in a submission is no message for our user
            return tree_of(code)
    except SyntaxError as error:
        message = f"{type(error).__name__}: {error.msg}"
        return CompileError(
            kind="syntax", message=message, line=error.lineno, details=marked(code, error)
        )
    except ValueError as error:
        return CompileError(kind="syntax", message=f"The code is not valid text: {error}.")


def _check(tree: ast.Module, mode: Rules, glue: bool) -> RulesViolation | None:
    if hidden := interferes(tree):
        message = f"The code uses {hidden[0]}; a submission may not change or watch how torch dispatches operations."
        return RulesViolation(kind="dispatcher", message=message, line=hidden[1])
    reader = Reader(tree, glue)
    reader.read()
    if reference := _reference(tree, reader):
        return reference
    if mode == "kernel" and (findings := [*reader.seen.findings, *_in_cpp(tree, reader)]):
        return _violation(sorted(findings))
    message = (
        ""
        if reader.seen.launches or not reader.models()
        else "`forward` launches none of your kernels."
    )
    if not may_hold_a_kernel(tree):
        message = (
            "The code holds no kernel of its own: no Triton function, and no source in C++ or CUDA."
        )
    lines = [
        node.lineno
        for model in reader.models()
        for node in model.body
        if getattr(node, "name", "") == "forward"
    ]
    return (
        RulesViolation(kind="no_kernel", message=message, line=lines[-1] if lines else None)
        if message
        else None
    )


def _in_cpp(tree: ast.Module, reader: Reader) -> list[Finding]:
    """What sources in C++ call, where `forward` launches a kernel at all."""
    sources = [
        node
        for node in nodes_of(tree, ast.Constant)
        if isinstance(node.value, str) and cpp.is_cpp(node.value)
    ]
    return [
        Finding(
            min(node.lineno + line, node.end_lineno or node.lineno),
            "torch_compute",
            f"{what} in C++",
        )
        for node in (sources if reader.seen.launches else [])
        for line, what in cpp.operations(str(node.value), reader.glue)
    ]


def _reference(tree: ast.Module, reader: Reader) -> RulesViolation | None:
    """Whether the model inherits from a class `Model`, other than `torch.nn.Module` by that name,
    or imports it.
    """
    for model in reader.models():
        lineage = [node for node in reader.lineage(model) if isinstance(node, ast.ClassDef)]
        bases = [
            (base, value)
            for node in lineage
            for base, value in zip(node.bases, reader.bases[node], strict=True)
        ]
        named = [
            value
            for base, value in bases
            if getattr(base, "id", getattr(base, "attr", "")) == "Model"
        ]
        modules = all(value == thing(Imported("torch.nn.Module")) for value in named)
        if not modules or any(node.name == "Model" for node in lineage):
            return _inherits("ModelNew inherits from the reference Model", model.lineno)
    program = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
    ]
    skipped = {each for node in program for each in walk(node)}
    for node in [*nodes_of(tree, ast.Import), *nodes_of(tree, ast.ImportFrom)]:
        package = (node.names[0].name if isinstance(node, ast.Import) else node.module or "").split(
            "."
        )[0]
        model = isinstance(node, ast.ImportFrom) and any(
            each.name == "Model" for each in node.names
        )
        if node not in skipped and (package in words.REFERENCE_PACKAGES or model):
            return _inherits(
                f"The code imports {node.names[0].name} from {package or '.'}", node.lineno
            )
    return None


def _inherits(what: str, line: int) -> RulesViolation:
    message = f"{what}; submissions must be self-contained and may not use the reference."
    return RulesViolation(kind="inherits_reference", message=message, line=line)


def _violation(findings: Sequence[Finding]) -> RulesViolation:
    """Of the first finding in the file; the others are named with it, so that one turn can mend
    them all.
    """
    first, *others = findings
    named = [f"{each.what} (line {each.line})" for each in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        named.append(f"{len(others) - _MOST_NAMED} more")
    told = (
        f"has {first.what}"
        if first.kind == "fallback"
        else f"uses {first.what}, which counts as computing"
    )
    message = f"`forward`, or code that it calls, {told}"
    message += f"; also {', '.join(named)}." if named else "."
    return RulesViolation(kind=first.kind, message=message, line=first.line)
