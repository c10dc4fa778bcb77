"""KernelBench's form, written around a reference."""

import ast
import re
from collections.abc import Iterable, Mapping
from importlib.util import decode_source
from pathlib import Path
from typing import Any

from kevin_env.parsing import UNREADABLE, assigned, parse

MOST_CASES = 4
"""Most cases beside `main`."""
_OURS = {"Model", "ModelNew", "get_inputs", "get_init_inputs", "CASES", "ADAPTER", "DEVICE"}


class ForeignError(ValueError):
    """A problem that cannot be read, or that cannot be judged. The message names the reason."""


def in_form(
    statement: str,
    reference: str,
    constants: Iterable[str],
    cases: Mapping[str, Any],
    adapter: str,
    arguments: str,
    call: str,
    get_inputs: Iterable[str],
) -> str:
    """The text of a problem.

    Args:
        statement: its docstring.
        reference: the code that `call` needs; the problem begins with it.
        constants: lines that assign the constants of `main`.
        cases: the constants of the other cases, as of `cases_of`.
        adapter: a `ModelNew` around another function, or empty.
        arguments: of `Model.forward`.
        call: the expression that `Model.forward` returns.
        get_inputs: lines of that function's body.
    """
    escaped = statement.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [
        f'"""{escaped}\n"""', "", reference.strip("\n"), "", "",
        "import torch", "",
        *constants, "",
        f"CASES = {dict(cases)!r}",
        *([f"ADAPTER = {adapter!r}"] if adapter else []), "", "",
        "class Model(torch.nn.Module):",
        f"    def forward(self, {arguments}):",
        f"        return {call}", "", "",
        "def get_init_inputs():",
        "    return []", "", "",
        "def get_inputs():", *get_inputs, "",
    ]  # fmt: skip
    return "\n".join(lines)


def cases_of(
    main: Mapping[str, Any], others: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What differs from `main`, by names such as `rows_8`: distinct cases, `MOST_CASES` at most."""
    cases = dict[str, dict[str, Any]]()
    for each in others:
        changed = {name: value for name, value in each.items() if value != main[name]}
        if changed and changed not in cases.values() and len(cases) < MOST_CASES:
            text = "_".join(f"{name}_{value}" for name, value in changed.items())
            name = re.sub(r"\W+", "_", text)[:60]
            cases[name if name not in cases else f"{name}_{len(cases)}"] = changed
    return cases


def refuse_clashes(tree: ast.Module, names: Iterable[str], allowed: object = None) -> None:
    """Raises ForeignError if a reference gives a name that the problem needs to something else."""
    bound = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(each.asname or each.name).split(".")[0] for each in node.names}
        elif assigned(node)[0] in _OURS:
            bound.add(assigned(node)[0])
    for each in sorted(bound & {*_OURS, *names} - {allowed}):
        raise ForeignError(f"its reference defines {each}, a name that the problem needs")


def parameters_of(tree: ast.Module, function: str) -> list[str]:
    """The names of the parameters of a top-level function, which must exist."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            every = node.args
            return [each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    raise ForeignError(f"its reference does not define {function}")


def names_in(tree: ast.AST) -> set[str]:
    """All names that code refers to."""
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


def tree_of_reference(code: str) -> ast.Module:
    """The reference as a syntax tree."""
    try:
        return parse(code)
    except UNREADABLE as error:
        raise ForeignError(f"its reference does not parse: {error}") from error


def read_text(path: Path) -> str:
    """A file's text."""
    try:
        return decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ForeignError(f"cannot read {path}: {error}") from error
