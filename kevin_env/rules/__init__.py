"""Checks a submission against the rules, by its source alone.

Under `kernel`, kernels of the submission do the computing in all code that `ModelNew.forward`
reaches; torch may allocate, view, copy, cast and query, and handle devices, streams and graphs.
`partial` asks for one such kernel and leaves the rest to torch. `open` admits any code.

The reader reports early, with a line, and only what is certain. Everything else, such as the size
of a tensor or which branch runs, is decided by what torch dispatches when the submission is called
(`kevin_env.rules.recorded`).
"""

import ast

from kevin_env.outcome import CompileError, FormatError, RulesViolation
from kevin_env.parsing import defines, lacks_forward, marked, nodes_of, tree_of, walk
from kevin_env.rules.expressions import Finding
from kevin_env.rules.reader import Reader
from kevin_env.rules.recorded import Rules as Rules
from kevin_env.rules.recorded import also, called
from kevin_env.rules.scan import cpp_operations, interferes, may_hold_a_kernel
from kevin_env.rules.values import Imported, callee
from kevin_env.rules.vocabulary import words


def check_rules(
    code: str, mode: Rules = "kernel", glue: float = 0.0, backward: bool = False
) -> CompileError | FormatError | RulesViolation | None:
    """The first rule that the source of a submission breaks, if any.

    Args:
        code: The submission.
        mode: The rules. In every mode, `ModelNew` must be defined and have a method `forward`.
        glue: The share of the largest tensor below which torch may compute. If it is not 0,
            operations on tensors that may be small are not reported.
        backward: Whether `backward` of its autograd functions runs and counts, too.
    """
    try:
        tree = tree_of(code)
        if not defines(tree, "ModelNew"):
            message = "The code defines no class ModelNew at its top level."
            return FormatError(kind="no_model", message=message)
        if lacks_forward(tree, "ModelNew"):
            message = "The class ModelNew has no method forward."
            return FormatError(kind="no_forward", message=message)
        return None if mode == "open" else _check(tree, mode, glue > 0, backward)
    except SyntaxError as error:
        message, details = f"{type(error).__name__}: {error.msg}", marked(code, error)
        return CompileError(kind="syntax", message=message, line=error.lineno, details=details)
    except ValueError as error:
        return CompileError(kind="syntax", message=f"The code is not valid text: {error}.")
    except (RecursionError, MemoryError):
        message = "The code is nested too deeply; a chain of many elif or + counts as nested."
        return CompileError(kind="syntax", message=message)


def _check(
    tree: ast.Module, mode: Rules, glue: bool, backward: bool
) -> RulesViolation | None:  # fmt: skip
    if hidden := interferes(tree):
        what, line = hidden
        rule = "a submission may not change or watch how torch dispatches operations"
        return RulesViolation(
            kind="dispatcher", message=f"The code uses {what}; {rule}.", line=line
        )
    reader = Reader(tree, glue, backward)
    reader.read()
    if reference := _reference(tree, reader):
        what, line = reference
        message = f"{what}; submissions must be self-contained and may not use the reference."
        return RulesViolation(kind="inherits_reference", message=message, line=line)
    launches, models = reader.effects.launches, reader.models()
    in_cpp = _in_cpp(tree, glue) if launches else []
    if mode == "kernel" and (findings := [*reader.effects.findings, *in_cpp]):
        return _violation(sorted(findings), called(backward))
    if not may_hold_a_kernel(tree):
        what = "no Triton function, and no C++ or CUDA code that computes"
        message = f"The code defines no kernel: {what}."
    elif models and not launches:
        message = "`forward` launches none of your kernels."
    else:
        return None
    methods = [node for model in models for node in model.body]
    lines = [node.lineno for node in methods if getattr(node, "name", "") == "forward"]
    return RulesViolation(kind="no_kernel", message=message, line=lines[-1] if lines else None)


def _in_cpp(tree: ast.Module, glue: bool) -> list[Finding]:
    findings: list[Finding] = []
    for node in nodes_of(tree, ast.Constant):
        if isinstance(node.value, str):
            for line, what in cpp_operations(node.value, glue):
                place = min(node.lineno + line, node.end_lineno or node.lineno)
                findings.append(Finding(place, "torch_compute", f"{what} in C++"))
    return findings


def _reference(tree: ast.Module, reader: Reader) -> tuple[str, int] | None:
    """A model that inherits from a class `Model` other than `torch.nn.Module`, or imports one."""
    for model in reader.models():
        lineage = [node for node in reader.lineage(model) if isinstance(node, ast.ClassDef)]
        bases = [
            value
            for node in lineage
            for base, value in zip(node.bases, reader.bases[node], strict=True)
            if getattr(base, "id", getattr(base, "attr", "")) == "Model"
        ]
        modules = all(value == callee(Imported("torch.nn.Module")) for value in bases)
        if not modules or any(node.name == "Model" for node in lineage):
            return "ModelNew inherits from the reference Model", model.lineno
    skipped = {each for node in tree.body if _unused(node) for each in walk(node)}
    for node in [*nodes_of(tree, ast.Import), *nodes_of(tree, ast.ImportFrom)]:
        names = [each.name for each in node.names]
        module = names[0] if isinstance(node, ast.Import) else node.module or ""
        package = module.split(".")[0]
        model = isinstance(node, ast.ImportFrom) and "Model" in names
        if node not in skipped and (package in words("reference_packages") or model):
            return f"The code imports {names[0]} from {package or '.'}", node.lineno
    return None


def _unused(node: ast.stmt) -> bool:
    """Whether it only runs as a script, or creates inputs as in KernelBench's files."""
    inputs = getattr(node, "name", "") in ("get_inputs", "get_init_inputs")
    return inputs or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))


def _violation(findings: list[Finding], where: str) -> RulesViolation:
    """A violation of the first finding; its message names the others."""
    first, *others = findings
    does = "has" if first.kind == "fallback" else "uses"
    counts = "" if first.kind == "fallback" else ", which counts as computing"
    message = f"{where}, or code that it calls, {does} {first.what}{counts}"
    message += also([f"{each.what} (line {each.line})" for each in others])
    return RulesViolation(kind=first.kind, message=message, line=first.line)
