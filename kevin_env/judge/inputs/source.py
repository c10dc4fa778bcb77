"""A problem's source with the constants of one of its cases, and the module that it runs in."""

import ast
import functools
import itertools
import linecache
import sys
import weakref
from types import CodeType, ModuleType
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter

from kevin_env.parsing import assigned, parse
from kevin_env.problem import Problem, ProblemError

_CASES = TypeAdapter(dict[str, dict[str, Any]], config=ConfigDict(strict=True))


def overrides_of(problem: Problem, case: str) -> dict[str, Any]:
    """The module constants of a case: its entry in `CASES` or `HIDDEN`; none for `main`.

    Raises:
        ProblemError: if these are not literal.
    """
    if case == "main":
        return {}
    wanted = "HIDDEN" if case in problem.hidden else "CASES"
    for node in parse(problem.source).body:
        name, value = assigned(node)
        if name == wanted and value is not None:
            try:
                return _CASES.validate_python(ast.literal_eval(value))[case]
            except ValueError as error:
                text = f"{problem.id}: {wanted} is not a literal dict of dicts"
                raise ProblemError(text) from error
    raise ProblemError(f"{problem.id}: there is no case {case}")


def apply_overrides(source: str, overrides: dict[str, Any]) -> ast.Module:
    """The source's tree with module constants replaced where they are assigned.

    Raises:
        ProblemError: if a name is not assigned at module level.
    """
    module = parse(source)
    left = set(overrides)
    for node in module.body:
        name, _ = assigned(node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in overrides:
            node.value = ast.copy_location(_literal(overrides[name]), node)
            left.discard(name)
    if left:
        raise ProblemError(
            f"a case overrides {', '.join(sorted(left))}: assign each in a line of its own, as in "
            f"`{min(left)} = ...`"
        )
    return ast.fix_missing_locations(module)


@functools.lru_cache(maxsize=1024)
def source_of(problem: Problem, case: str) -> str:
    """The problem's source with the constants of a case. Errors as for the functions above."""
    return ast.unparse(apply_overrides(problem.source, overrides_of(problem, case)))


@functools.lru_cache(maxsize=1024)
def code_of(problem: Problem, case: str) -> CodeType:
    """The same as code, with the line numbers of the problem's file. Tracebacks show its lines."""
    tree, file = (
        apply_overrides(problem.source, overrides_of(problem, case)),
        file_of(problem, case),
    )
    lines = problem.source.splitlines(keepends=True)
    linecache.cache[file] = len(problem.source), None, lines, file
    return compile(tree, file, "exec")


def file_of(problem: Problem, case: str) -> str:
    """The file name in the code."""
    return f"<problem {problem.id}, case {case}>"


def _literal(value: Any) -> ast.expr:
    """A literal's value as an expression."""
    return cast("ast.Expr", parse(repr(value)).body[0]).value


_NUMBERS = itertools.count()
"""Numbers of modules: each case has its own."""


def new_module(name: str, owner: object) -> ModuleType:
    """A module in `sys.modules`, where its classes may look it up, while `owner` exists."""
    unique = f"{name}_{next(_NUMBERS)}"
    module = sys.modules[unique] = ModuleType(unique)
    weakref.finalize(owner, _forget, module)
    return module


def _forget(module: ModuleType) -> None:
    sys.modules.pop(module.__name__, None)
    module.__dict__.clear()  # a cycle through its functions would keep its tensors until collected
