"""Mappings that hold attributes or names: `vars(x)["f"]` is `x.f`, and what fills such a mapping sets attributes."""

import ast
from collections.abc import Iterable

from kevin_env.parsing import Node
from kevin_env.rules.syntax import constant_text

_OWN_NAMES = frozenset({"globals", "locals", "vars"})


def entry(mapping: ast.expr, name: str, context: ast.expr_context) -> ast.expr | None:
    """What an entry of a mapping of names stands for; None where it is another mapping."""
    match mapping:
        case ast.Call(func=ast.Name(id="vars"), args=[of]) | ast.Attribute(value=of, attr="__dict__"):
            return at(mapping, ast.Attribute(of, name, context))
        case ast.Call(func=ast.Name(id=call), args=[]) if call in _OWN_NAMES:
            return at(mapping, ast.Name(name, context))
        case ast.Name(id="__builtins__"):
            return at(mapping, ast.Name(name, context))
        case ast.Attribute(attr="f_globals" | "f_locals" | "f_builtins"):
            return at(mapping, ast.Name(name, context))
        case _:
            return None


def filled(node: Node) -> ast.expr | Node:
    """The statement or call, where it fills such a mapping, as one that sets each attribute or name by itself."""
    match node:
        case ast.AugAssign(target=mapping, op=ast.BitOr(), value=ast.Dict() as given):
            return _set(node, mapping, _pairs(given)) or node
        case ast.Call(func=ast.Attribute(value=mapping, attr="update"), args=given, keywords=keywords):
            named = [(keyword.arg or "", keyword.value) for keyword in keywords]
            pairs = [pair for each in given if isinstance(each, ast.Dict) for pair in _pairs(each)]
            return _set(node, mapping, [*pairs, *named]) or node
        case ast.Call(func=ast.Attribute(value=mapping, attr="__setitem__"), args=[key, value]):
            return _set(node, mapping, [(constant_text(key) or "", value)]) or node
        case ast.Call(func=ast.Attribute(attr="setitem"), args=[mapping, key, value]):
            return _set(node, mapping, [(constant_text(key) or "", value)]) or node
        case _:
            return node


def _pairs(given: ast.Dict) -> list[tuple[str, ast.expr]]:
    return [
        ((constant_text(key) if key else None) or "", value)
        for key, value in zip(given.keys, given.values, strict=True)
    ]


def _set(node: ast.AST, mapping: ast.expr, pairs: Iterable[tuple[str, ast.expr]]) -> ast.expr | None:
    parts: list[ast.expr] = []
    for name, value in pairs:
        place = entry(mapping, name, ast.Store())
        if isinstance(place, ast.Attribute):
            parts.append(call(node, "setattr", place.value, ast.Constant(place.attr), value))
        elif isinstance(place, ast.Name):
            parts.append(ast.NamedExpr(place, value))
    return at(node, ast.Tuple(parts, ast.Load())) if parts else None


def call(node: ast.AST, name: str, *arguments: ast.expr) -> ast.Call:
    """A call of a builtin, at the place of a node."""
    return at(node, ast.Call(ast.Name(name, ast.Load()), list(arguments), []))


def at(place: ast.AST, node: Node) -> Node:
    """The node, at the place of another in the file.

    What in it has a place keeps it, and is not looked into: a chain that is made link by link would be walked as often.
    """
    ast.copy_location(node, place)
    new = list(ast.iter_child_nodes(node))
    for each in new:  # it grows
        if not hasattr(each, "lineno"):
            ast.copy_location(each, place)
            new += ast.iter_child_nodes(each)
    return node
