"""Mutants of source code: of a reference's own, or of a rewrite of it. The code is trusted and runs
in this process.
"""

import ast
import copy
import random
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kevin_env.candidate.weights import load_weights
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.problem import Problem

from .jury import Mutant
from .operators import changes
from .samples import SECRET, Sample

REWRITES = Path(__file__).parent / "rewrites"
OUTSIDE = {"get_inputs", "get_init_inputs"}
"""Functions of a problem that no submission contains."""


class CodeAnswer:
    """Runs a `Model` of other source in place of the reference: with its inputs, its arguments and
    its weights.

    Args:
        problem: With the other source.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._case: Case | None = None
        self._owner: Case | None = None

    def __call__(self, sample: Sample) -> Any:
        if self._owner is not sample.case:
            self._case, self._owner = _constructed(self._problem, sample.case), sample.case
        assert self._case is not None
        return self._case.answer(sample.skeleton, sample.tensors, sample.number)


def rewrite_of(problem: Problem) -> Problem | None:
    """The problem with our rewrite of its `Model`: the same function, as a kernel would do it; None
    without a file.
    """
    path = REWRITES / f"{problem.id}.py"
    if not path.exists():
        return None
    return problem.model_copy(update={"source": f"{problem.source}\n\n{path.read_text()}"})


def code_mutants(problem: Problem) -> list[Mutant]:
    """Every mutant of the reference's source, the classes of faults in turn, so that any number is
    a fair choice.
    """
    return _in_turn(list(_mutants(problem, "code")), problem.id)


def rewrite_mutants(problem: Problem) -> list[Mutant]:
    """The same of the rewrite, where there is one."""
    rewrite = rewrite_of(problem)
    if rewrite is None:
        return []
    start = problem.source.count("\n") + 2
    return _in_turn(list(_mutants(rewrite, "rewrite", start, CodeAnswer(rewrite))), problem.id)


def _mutants(
    problem: Problem, family: str, start: int = 0, original: CodeAnswer | None = None
) -> Iterator[Mutant]:  # fmt: skip
    """Those of functions and methods below line `start`; each text of a source is given once."""
    module = ast.parse(problem.source)
    seen = {ast.unparse(module)}
    functions = [node for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    for function in functions:
        if function.lineno <= start or function.name in OUTSIDE:
            continue
        for node in _computing(function):
            for kind, other in changes(node):
                source = _replaced(module, node, other)
                if source is None or source in seen:
                    continue
                seen.add(source)
                line = getattr(node, "lineno", 0)
                name = f"{ast.unparse(node)} -> {ast.unparse(ast.fix_missing_locations(other))}"
                name = " ".join(name.split())[:200]
                changed = problem.model_copy(update={"source": source})
                yield Mutant(family, kind, name, CodeAnswer(changed), line - start, original)


def _computing(function: ast.AST) -> Iterator[ast.AST]:
    """Every node of a function but those of its signature and docstrings."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.arguments | ast.arg) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        if not isinstance(node, ast.FunctionDef):
            yield node
        yield from _computing(node)


def _replaced(module: ast.Module, target: ast.AST, other: ast.AST) -> str | None:
    """The source with one node in the place of another; None when that is no code."""
    place = {id(node): i for i, node in enumerate(ast.walk(module))}[id(target)]
    whole = copy.deepcopy(module)
    node = next(node for i, node in enumerate(ast.walk(whole)) if i == place)
    changed = _Exchange(node, copy.deepcopy(other)).visit(whole)
    try:
        source = ast.unparse(ast.fix_missing_locations(changed))
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError, TypeError):
        return None
    return source


class _Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _constructed(problem: Problem, case: Case) -> Case:
    """The case of other source, with its model constructed as a candidate's and given the
    reference's weights.
    """
    other = Case(problem, case.name, case.device)
    sys.modules.pop(other.module.__name__, None)  # hundreds of these are made
    other.draw_weights(seed_from(SECRET, case.name, "mutant"))
    state = case.model.state_dict()
    load_weights(other.model, state, [name for name, _ in case.model.named_parameters()])
    return other


def _in_turn(mutants: list[Mutant], seed: str) -> list[Mutant]:
    """Mutants in another order: one of each class after the other; which one, the seed decides."""
    chance = random.Random(seed)
    classes: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        classes.setdefault(mutant.kind, []).append(mutant)
    for group in classes.values():
        chance.shuffle(group)
    return [
        mutant for row in zip_longest(*classes.values()) for mutant in row if mutant is not None
    ]
