"""What a submission may do, read from its syntax tree before anything runs.

Under the rules `kernel`, in what `ModelNew.forward` reaches, torch may allocate, view, shape, cast, ask, and handle
devices, streams, events and graphs; the computing is done by kernels of the submission's own. Under `partial` any of
it may be torch's as long as one own kernel runs, which only a call shows (`kevin_env.rules.recorded`). `open` admits
any code.
Comments, strings and docstrings never matter. This reading is there to tell a model early and precisely what is
not asked of it. It is not a defence: code that hides what it does passes here and is the judge's business.
"""

import ast
import warnings
from collections.abc import Sequence

from kevin_env.outcome import CompileError, FormatError, RulesViolation
from kevin_env.parsing import defines, lacks_forward, nodes_of, tree_of
from kevin_env.rules.atoms import Class, Imported, Value
from kevin_env.rules.findings import Finding
from kevin_env.rules.plain import plain
from kevin_env.rules.recorded import Rules as Rules
from kevin_env.rules.rewriter import changed
from kevin_env.rules.submission import SubmissionReader
from kevin_env.rules.syntax import last_name
from kevin_env.rules.texts import written_out
from kevin_env.rules.vocabulary import MODULE_PATHS

_REFERENCE_PACKAGES = frozenset({"kevin_env", "reference", "problem", "problems"})
_MOST_NAMED = 4
_TOO_DEEP = (
    "The code is nested too deeply to be read; a chain of hundreds of elif or of + counts as nested, a loop does not."
)
_NO_MODEL = FormatError(kind="no_model", message="The code defines no class ModelNew at its top level.")
_NO_FORWARD = FormatError(kind="no_forward", message="The class ModelNew has no method forward.")


def check_rules(code: str, mode: Rules = "kernel") -> CompileError | FormatError | RulesViolation | None:
    """What is wrong with a submission before it is built; None when it may be judged.

    A file that does not parse is `compile/syntax`, one without a class `ModelNew` at its top level, which may have been
    given that name by an assignment, `format/no_model`, and one whose `ModelNew` has no `forward`, `format/no_forward`,
    in both modes.
    """
    try:
        tree = _parse(code)
        if isinstance(tree, CompileError):
            return tree
        if not defines(tree, "ModelNew"):
            return _NO_MODEL
        if lacks_forward(tree, "ModelNew"):
            return _NO_FORWARD
        return None if mode == "open" else _check_kernel(plain(written_out(_as_imported(tree))), mode)
    except (RecursionError, MemoryError):
        return CompileError(kind="syntax", message=_TOO_DEEP)


def _check_kernel(tree: ast.Module, mode: Rules) -> FormatError | RulesViolation | None:
    """Of every class that the name may stand for: it may be given to another class, also here one and there another."""
    reader = SubmissionReader(tree)
    named = [node for node in nodes_of(tree, ast.ClassDef) if node.name == "ModelNew"]
    models = reader.models() or named[-1:]
    for model in models:
        own = reader if model is models[0] else SubmissionReader(tree)
        own.read_forward(model)
        found = _check_reference(tree, model, own) or (_check_forward(model, own) if mode == "kernel" else None)
        if found is not None:
            return found
    return None if models else _NO_MODEL


def _parse(code: str) -> ast.Module | CompileError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a submission is no message for our user
            return tree_of(code)
    except SyntaxError as error:
        message = f"{type(error).__name__}: {error.msg}"
        return CompileError(kind="syntax", message=message, line=error.lineno, details=_place(code, error))
    except ValueError as error:
        return CompileError(kind="syntax", message=f"The code is not valid text: {error}.")


def _place(code: str, error: SyntaxError) -> str:
    """The source line with its number and, where Python tells it, a mark under the column."""
    lines = code.split("\n")
    if error.lineno is None or not 0 < error.lineno <= len(lines):
        return ""
    source, label = lines[error.lineno - 1].rstrip(), f"{error.lineno:>5} | "
    column = min(max(error.offset or 1, 1), len(source) + 1)
    return f"{label}{source}\n{' ' * (len(label) - 2)}| {' ' * (column - 1)}^"


def _check_reference(tree: ast.Module, model: ast.ClassDef, reader: SubmissionReader) -> RulesViolation | None:
    stored = {node.id for node in nodes_of(tree, ast.Name) if isinstance(node.ctx, ast.Store)}
    for node in reader.lineage(model):
        bases = zip(node.bases, reader.bases[node], strict=True)
        if any(_is_reference(base, value, "Model" not in stored) for base, value in bases):
            return _inherits("ModelNew inherits from the reference Model", model.lineno)
    for node in sorted(reader.imports, key=lambda each: each.lineno):
        if imported := _imported_reference(node):
            return _inherits(f"the code imports {imported}", node.lineno)
    return None


def _as_imported(tree: ast.Module) -> ast.Module:
    """Without what only runs where the file is a program, which here it never is, unless it changes its own name."""
    if any(isinstance(node.ctx, ast.Store) for node in nodes_of(tree, ast.Name) if node.id == "__name__"):
        return tree
    body: list[ast.stmt] = []
    for node in tree.body:
        body += node.orelse if isinstance(node, ast.If) and _asks_for_a_program(node.test) else [node]
    return changed(tree, body=body) if body != tree.body else tree


def _asks_for_a_program(test: ast.expr) -> bool:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(map(_asks_for_a_program, values))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return {ast.unparse(left), ast.unparse(right)} == {"__name__", "'__main__'"}
        case _:
            return False


def _is_reference(base: ast.expr, value: Value, imported: bool) -> bool:
    """Whether a base is a class Model, or is called so and was not just imported as `torch.nn.Module`."""
    if any(isinstance(atom, Class) and atom.node.name == "Model" for atom in value):
        return True
    modules = [atom for atom in value if isinstance(atom, Imported) and atom.path in MODULE_PATHS]
    return last_name(base) == "Model" and not (imported and modules and len(modules) == len(value))


def _imported_reference(node: ast.Import | ast.ImportFrom) -> str:
    if isinstance(node, ast.Import):
        return next((each.name for each in node.names if each.name.split(".")[0] in _REFERENCE_PACKAGES), "")
    taken = (node.module or "").split(".")[0] in _REFERENCE_PACKAGES or any(each.name == "Model" for each in node.names)
    return f"{node.names[0].name} from {node.module or '.'}" if taken else ""


def _inherits(what: str, line: int) -> RulesViolation:
    message = f"{what[0].upper()}{what[1:]}; submissions must be self-contained and may not use the reference."
    return RulesViolation(kind="inherits_reference", message=message, line=line)


def _check_forward(model: ast.ClassDef, reader: SubmissionReader) -> RulesViolation | None:
    if reader.findings:
        return _violation(sorted(reader.findings, key=lambda found: (found.line, found.kind, found.what)))
    if reader.launches:
        return None
    forward = [node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    message = "`forward` launches none of your kernels."
    return RulesViolation(kind="no_kernel", message=message, line=(forward or [model])[-1].lineno)


def _violation(findings: Sequence[Finding]) -> RulesViolation:
    """Of the first finding in the file; the others are named with it, so that one turn can mend them all."""
    first, *others = findings
    named = [f"{each.what} (line {each.line})" for each in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        named.append(f"{len(others) - _MOST_NAMED} more")
    told = f"has {first.what}" if first.kind == "fallback" else f"uses {first.what}, which counts as computing"
    message = f"`forward`, or code that it calls, {told}"
    message += f"; also {', '.join(named)}." if named else "."
    return RulesViolation(kind=first.kind, message=message, line=first.line)
