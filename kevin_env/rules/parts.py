"""Parts of syntax that stand for what Python does without saying so: names that a pattern binds, constructors."""

import ast
from collections.abc import Sequence

from kevin_env.parsing import Node, parse, walk
from kevin_env.rules.entries import at, call
from kevin_env.rules.syntax import constant_text, last_name

_TUPLES = frozenset({"NamedTuple", "namedtuple"})


def captures(pattern: ast.pattern, subject: ast.expr) -> list[ast.stmt]:
    """Names that a pattern binds: to the subject, or to what it holds where the pattern says so."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            return [*_bound(name, subject, pattern), *(captures(inner, subject) if inner else [])]
        case ast.MatchStar(name=name):
            return _bound(name, subject, pattern)
        case ast.MatchOr(patterns=patterns):
            return [each for inner in patterns for each in captures(inner, subject)]
        case ast.MatchSequence(patterns=patterns):
            return _sequence(patterns, subject)
        case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
            parts = [ast.Subscript(subject, key, ast.Load()) for key in keys]
            return [*_all(patterns, parts), *_bound(rest, subject, pattern)]
        case ast.MatchClass(patterns=patterns, kwd_attrs=names, kwd_patterns=named):
            some = [call(subject, "getattr", subject, ast.Name("_", ast.Load())) for _ in patterns]
            parts = [ast.Attribute(subject, name, ast.Load()) for name in names]
            return [*_all(patterns, some), *_all(named, parts)]
        case _:
            return []


def _sequence(patterns: Sequence[ast.pattern], subject: ast.expr) -> list[ast.stmt]:
    star = next((place for place, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), len(patterns))
    places = [place if place < star else place - len(patterns) for place in range(len(patterns))]
    parts: list[ast.expr] = [ast.Subscript(subject, _number(place), ast.Load()) for place in places]
    if star < len(patterns):
        parts[star] = ast.List([ast.Starred(subject, ast.Load())], ast.Load())
    return _all(patterns, parts)


def _number(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _all(patterns: Sequence[ast.pattern], parts: Sequence[ast.expr]) -> list[ast.stmt]:
    each = zip(patterns, parts, strict=True)
    return [found for pattern, part in each for found in captures(pattern, at(pattern, part))]


def _bound(name: str | None, value: ast.expr, place: ast.pattern) -> list[ast.stmt]:
    return [at(place, ast.Assign([ast.Name(name, ast.Store())], value))] if name else []


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Those of a class whose constructor Python writes."""
    written = {last_name(each) for each in (*node.decorator_list, *node.bases)} & {"dataclass", "NamedTuple"}
    listed = [field for base in node.bases if isinstance(base, ast.Call) for field in listed_fields(base)]
    return [*listed, *(each for each in node.body if isinstance(each, ast.AnnAssign) and written)]


def listed_fields(node: ast.Call) -> list[ast.AnnAssign]:
    """Those that a call of `namedtuple` names."""
    if last_name(node) not in _TUPLES or len(node.args) < 2:
        return []
    match node.args[1]:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            firsts = [
                each.elts[0] if isinstance(each, ast.Tuple | ast.List) and each.elts else each for each in elements
            ]
            names = [constant_text(each) or "" for each in firsts]
        case text:
            names = (constant_text(text) or "").replace(",", " ").split()
    return [at(node, ast.AnnAssign(ast.Name(name, ast.Store()), ast.Name("object", ast.Load()), None, 1))
            for name in names if name.isidentifier()]  # fmt: skip


def constructor(node: ast.ClassDef, given: list[ast.AnnAssign]) -> list[ast.stmt]:
    """The constructor that Python writes for these fields; of a tuple with names also how it is iterated over."""
    each = [(field.target.id, field) for field in given if isinstance(field.target, ast.Name)]
    names = [name for name, _ in each]
    lines = [f"    self.{name} = {name}" for name in names]
    if any(isinstance(part, ast.FunctionDef) and part.name == "__post_init__" for part in node.body):
        only = [name for name, field in each if last_name(_outer(field.annotation)) == "InitVar"]
        lines.append(f"    self.__post_init__({', '.join(only)})")
    source = f"def __init__(self, {', '.join(f'{name}=None' for name in names)}):\n" + "\n".join(lines or ["    pass"])
    if _TUPLES & {last_name(base) for base in node.bases}:
        source += f"\ndef __iter__(self): return ({''.join(f'self.{name}, ' for name in names)})"
        source += f"\ndef _asdict(self): return {{{', '.join(f'{name!r}: self.{name}' for name in names)}}}"
        source += f"\ndef _replace(self, **more): return {node.name}(**more) if more else self"
        source += f"\n@staticmethod\ndef _make(given): return {node.name}(*given)"
    written = parse(source).body
    assert isinstance(written[0], ast.FunctionDef)
    written[0].args.defaults = [_default(field) for _, field in each]
    return [moved(part, node) for part in written]


def _outer(annotation: ast.expr) -> ast.expr:
    return annotation.value if isinstance(annotation, ast.Subscript) else annotation


def _default(field: ast.AnnAssign) -> ast.expr:
    """What a field holds that nothing is given for."""
    match field.value:
        case None:
            return ast.Constant(None)
        case ast.Call(keywords=keywords) as value if last_name(value) == "field":
            named = {each.arg: each.value for each in keywords}
            factory = named.get("default_factory")
            return named.get("default", ast.Constant(None)) if factory is None else ast.Call(factory, [], [])
        case value:
            return value


def moved(node: Node, place: ast.AST) -> Node:
    """The node with all in it, at the line of another."""
    for each in walk(node):
        if hasattr(each, "lineno"):
            ast.copy_location(each, place)
    return node
