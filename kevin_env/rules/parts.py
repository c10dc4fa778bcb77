"""Parts of syntax that stand for what Python does without saying so: names that a pattern binds, constructors."""

import ast

from kevin_env.parsing import Node, parse, walk
from kevin_env.rules.entries import at
from kevin_env.rules.syntax import last_name


def captures(pattern: ast.pattern, subject: ast.expr) -> list[ast.stmt]:
    """Names that a pattern binds: to the subject, or to what it holds."""
    found: list[ast.stmt] = []
    for each in walk(pattern):
        name = getattr(each, "rest", None) if isinstance(each, ast.MatchMapping) else getattr(each, "name", None)
        if isinstance(name, str):
            target = ast.Name(name, ast.Store())
            found.append(at(pattern, ast.Assign([target], subject)))
            found.append(at(pattern, ast.For(target, subject, [ast.Pass()], [])))
    return found


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Those of a class whose constructor Python writes."""
    written = {last_name(each) for each in (*node.decorator_list, *node.bases)} & {"dataclass", "NamedTuple"}
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and written]


def constructor(node: ast.ClassDef, given: list[ast.AnnAssign]) -> ast.FunctionDef:
    """The constructor that Python writes for these fields."""
    names = [each.target.id for each in given if isinstance(each.target, ast.Name)]
    lines = [f"    self.{name} = {name}" for name in names]
    if any(isinstance(each, ast.FunctionDef) and each.name == "__post_init__" for each in node.body):
        lines.append("    self.__post_init__()")
    source = f"def __init__(self, {', '.join(f'{name}=None' for name in names)}):\n" + "\n".join(lines or ["    pass"])
    written = parse(source).body[0]
    assert isinstance(written, ast.FunctionDef)
    return moved(written, node)


def moved(node: Node, place: ast.AST) -> Node:
    """The node with all in it, at the line of another."""
    for each in walk(node):
        if hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node
