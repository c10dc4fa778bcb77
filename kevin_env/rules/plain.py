"""Rewrites what Python can say in a roundabout way as what it says plainly, so that the reader has one way to follow.

`vars(x)["f"]` is `x.f`, `operator.methodcaller("f", 1)` is `lambda it: it.f(1)`, a name that a `match` captures is
assigned. The result need not run, and lines stay what they were: only what is reached and called matters.
"""

import ast

from kevin_env.parsing import Node, nodes_of, parse
from kevin_env.rules.entries import at, call, entry, filled
from kevin_env.rules.parts import captures, constructor, fields, listed_fields, moved
from kevin_env.rules.rewriter import Rewriter, changed
from kevin_env.rules.syntax import constant_text, last_name


def plain(tree: ast.Module) -> ast.Module:
    """The tree, rewritten; itself where there is nothing to rewrite. It stays as it was, since others read it too."""
    alone = _Alone()  # nearly every file is plain, which its nodes one by one tell sooner than a visit of them all
    if all(alone.visit(node) is node for kind in _KINDS for node in nodes_of(tree, kind)):
        return tree
    return _Plain().visit(tree)


class _Plain(Rewriter):
    """A method for each kind of node that is rewritten."""

    def __init__(self) -> None:
        self._shared: list[set[str]] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node = self.generic_visit(node)
        loaded = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        return call(node, "type", node.value) if loaded else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node = self.generic_visit(node)
        name = constant_text(node.slice)
        return (entry(node.value, name, node.ctx) if name and name.isidentifier() else None) or node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node = self.generic_visit(node)
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *rest]) if last_name(func) in _GETTERS:
                method = last_name(func) == "methodcaller"
                return _getter(node, name, rest, node.keywords) if method or not rest else node
            case ast.Call(func=func, args=[_, *_] as keys, keywords=[]) if last_name(func) == "itemgetter":
                return _entries(node, keys)
            case ast.Call(func=ast.Attribute(attr="__import__")):
                return call(node, "__import__", *node.args)
            case ast.Call(func=ast.Attribute(attr="getattr_static")):
                return call(node, "getattr", *node.args)
            case ast.Call(func=ast.Attribute(value=of, attr="get" | "pop" | "__getitem__"), args=[key, *_]) if (
                text := constant_text(key)
            ):
                return entry(of, text, ast.Load()) or node
            case ast.Call(func=ast.Attribute(attr="__getattribute__"), args=[of, name]):
                return call(node, "getattr", of, name)
            case ast.Call(func=ast.Attribute(value=of, attr="__getattribute__"), args=[name]):
                return call(node, "getattr", of, name)
            case ast.Call(
                func=ast.Name(id="setattr"), args=[ast.Subscript(slice=ast.Name(id="__name__")), name, value]
            ):
                text = constant_text(name)
                return at(node, ast.NamedExpr(ast.Name(text, ast.Store()), value)) if text else node
            case ast.Call(func=ast.Name(id="eval"), args=[source, *_]):
                match _read(source):
                    case ast.Module(body=[ast.Expr(value=value)]):
                        return moved(value, node)
                    case _:
                        return node
            case _:
                return filled(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node = self.generic_visit(node)
        made = filled(node)
        return at(node, ast.Expr(made)) if isinstance(made, ast.expr) else made

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.AST]:
        node = self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=of, attr="__setitem__"), args=[key, value]):
                return self.visit(at(node, ast.Assign([ast.Subscript(of, key, ast.Store())], value)))
            case ast.Call(func=ast.Name(id="exec"), args=[source, *_]):
                read = _read(source)
                return node if read is None else [node, *(moved(each, node) for each in _into(read.body, node.value))]
            case _:
                return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """An object that is given another class is called as that class says; a call of `type` may make a class."""
        node = self.generic_visit(node)
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Name(id="type"), args=[_, ast.Tuple(elts=bases), ast.Dict(keys=keys, values=values)]
                ),
            ):
                body = [at(node, ast.Assign([ast.Name(constant_text(key) or "_", ast.Store())], value))
                        for key, value in zip(keys, values, strict=True) if key]  # fmt: skip
                made = ast.ClassDef(name, bases, [], [*body, ast.Pass()], [])
                return at(node, made)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value) if listed_fields(value):
                return self.visit(at(node, ast.ClassDef(name, [value], [], [at(node, ast.Pass())], [])))
            case _:
                pass
        targets, value = list[ast.expr](), node.value
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "__class__":
                target, value = changed(target, attr="forward"), at(node, ast.Attribute(value, "forward", ast.Load()))
            targets.append(target)
        return node if value is node.value else changed(node, targets=targets, value=value)

    def _property(self, node: ast.Assign) -> ast.AST:
        """`f = property(g)`: a property `f` that gives what `g` gives."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func, args=[getter, *_])) if (
                last_name(func) in _PROPERTIES
            ):
                made = parse(f"@property\ndef {name}(self):\n    return None").body[0]
                assert isinstance(made, ast.FunctionDef)
                itself = ast.Name("self", ast.Load())
                gives: ast.expr = ast.Call(getter, [itself], [])
                if isinstance(getter, ast.Name):  # a function of the class, or one of the module
                    gives = ast.IfExp(itself, ast.Call(ast.Attribute(itself, getter.id, ast.Load()), [], []), gives)
                return changed(moved(made, node), body=[at(node, ast.Return(gives))])
            case _:
                return node

    def visit_While(self, node: ast.While) -> list[ast.AST]:
        node = self.generic_visit(node)
        return [changed(node, orelse=[]), *node.orelse]

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node = self.generic_visit(node)
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            body = [*map(self.visit, captures(case.pattern, node.subject)), *case.body]
            guard = [] if case.guard is None else [at(case.guard, ast.Expr(case.guard))]
            chain = [at(node, ast.If(node.subject, [*body[: -len(case.body)], *guard, *case.body], chain))]
        return chain[0]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST | list[ast.AST]:
        node = self.generic_visit(node)
        body = [self._property(each) if isinstance(each, ast.Assign) else each for each in node.body]
        node = changed(node, body=body) if body != node.body else node
        given = fields(node)
        if given and not any(isinstance(each, ast.FunctionDef) and each.name == "__init__" for each in node.body):
            node = changed(node, body=[*constructor(node, given), *node.body])
        decorated = [ast.Call(each, [ast.Name(node.name, ast.Load())], []) for each in node.decorator_list]
        return [node, *(at(each.func, ast.Expr(each)) for each in decorated)] if decorated else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        """One variable of several functions: as if of the module."""
        for names in self._shared:
            names |= set(node.names)
        return at(node, ast.Global(node.names))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._shared.append(set())
        node = self.generic_visit(node)
        shared, before = self._shared.pop(), list[ast.stmt]()
        if shared:
            before.append(at(node.body[0], ast.Global(sorted(shared))))
        spec = node.args
        parameters = [*spec.posonlyargs, *spec.args]
        pairs = [*zip(reversed(parameters), reversed(spec.defaults), strict=False),
                 *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]  # fmt: skip
        for parameter, default in pairs:  # `f(x, op=torch.relu)` calls what stands there, unless it is given another
            if isinstance(default, ast.Name | ast.Attribute | ast.Lambda):
                either = ast.IfExp(ast.Constant(True), default, ast.Name(parameter.arg, ast.Load()))
                before.insert(0, at(default, ast.Assign([ast.Name(parameter.arg, ast.Store())], either)))
        return changed(node, body=[*before, *node.body]) if before else node


class _Alone(_Plain):
    """What becomes of a node if nothing in it is rewritten."""

    def generic_visit(self, node: Node) -> Node:
        return node


_KINDS = tuple(getattr(ast, name.removeprefix("visit_")) for name in vars(_Plain) if name.startswith("visit_"))
_GETTERS = ("attrgetter", "methodcaller")
_PROPERTIES = ("property", "cached_property")


def _getter(node: ast.Call, name: str, rest: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
    body: ast.expr = ast.Name("it", ast.Load())
    for part in name.split("."):
        body = ast.Attribute(body, part, ast.Load())
    if last_name(node.func) == "methodcaller":
        body = ast.Call(body, rest, keywords)
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("it")], kwonlyargs=[], kw_defaults=[], defaults=[])
    return at(node, ast.Lambda(arguments, body))


def _entries(node: ast.Call, keys: list[ast.expr]) -> ast.expr:
    parts: list[ast.expr] = [ast.Subscript(ast.Name("it", ast.Load()), key, ast.Load()) for key in keys]
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("it")], kwonlyargs=[], kw_defaults=[], defaults=[])
    return at(node, ast.Lambda(arguments, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())))


def _read(source: ast.expr) -> ast.Module | None:
    """Code in a string that is written out, maybe compiled; None for any other."""
    if isinstance(source, ast.Call) and last_name(source) == "compile" and source.args:
        source = source.args[0]
    text = constant_text(source)
    try:
        return None if text is None else _Plain().visit(parse(text.strip()))
    except (SyntaxError, ValueError):
        return None


def _into(body: list[ast.stmt], run: ast.Call) -> list[ast.stmt]:
    """What `exec` runs; what it defines is put into the mapping as well that it is given."""
    defined = [each.name for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    filled = [
        ast.Assign([ast.Subscript(space, ast.Constant(name), ast.Store())], ast.Name(name, ast.Load()))
        for space in run.args[1:]
        for name in defined
    ]
    return [*body, *(_Plain().visit(at(run, each)) for each in filled)]
