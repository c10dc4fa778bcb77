"""What expressions stand for. First layer of the reader."""

import ast
import builtins
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from kevin_env.rules import vocabulary as words
from kevin_env.rules.things import Arguments, Function, Imported, Own, Scope, Thing, Value
from kevin_env.rules.values import (
    KERNEL,
    LARGE,
    MAYBE,
    NONE,
    PLAIN,
    SOME,
    UNKNOWN,
    container,
    join,
    one,
    part,
    thing,
)

_MOST_STEPS = 100_000
_SIGNS: dict[type[ast.AST], str] = {
    **{
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Pow: "**",
    },
    **{
        ast.MatMult: "@",
        ast.BitAnd: "&",
        ast.BitOr: "|",
        ast.BitXor: "^",
        ast.LShift: "<<",
        ast.RShift: ">>",
    },
    **{
        ast.USub: "-",
        ast.Invert: "~",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.Eq: "==",
    },
    ast.NotEq: "!=",
}
"""Operators that compute when an operand is a tensor, as they are written."""
_ALIKE = ast.Is | ast.IsNot | ast.In | ast.NotIn


class TooLong(Exception):
    """The file takes too many steps to read: what was found until then stands."""


@dataclass(frozen=True, order=True)
class Finding:
    """One place where what `forward` reaches breaks a rule."""

    line: int
    kind: Literal["torch_compute", "fallback"]
    what: str


@dataclass
class Seen:
    """What was seen in one piece of code: findings, and whether it may launch a kernel."""

    findings: list[Finding] = field(default_factory=list[Finding])
    launches: bool = False

    def add(self, other: "Seen") -> None:
        """Takes over what was seen elsewhere."""
        self.findings += [each for each in other.findings if each not in self.findings]
        self.launches = self.launches or other.launches


class Evaluator:
    """Evaluates expressions. What calls do the next layer knows."""

    def __init__(self, glue: bool) -> None:
        self.seen = Seen()
        self.glue = glue
        """Whether torch may compute on small tensors: then only operations on large ones are sure
        to count.
        """
        self.globals = Scope()
        self.members: dict[Own, dict[str, Value]] = {}
        """Names of each class, and what attributes of its instances were set to."""
        self.bases: dict[ast.ClassDef, list[Value]] = {}
        self._steps = 0

    def report(self, node: ast.AST, what: str) -> None:
        """Notes that something computes."""
        self.seen.add(Seen([Finding(getattr(node, "lineno", 1), "torch_compute", what)]))

    @contextmanager
    def apart(self) -> Generator[Seen]:
        """What is read meanwhile is seen by itself."""
        before, self.seen = self.seen, Seen()
        try:
            yield self.seen
        finally:
            self.seen = before

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling any of `callee` gives."""
        raise NotImplementedError

    def evaluate_call(self, node: ast.Call, scope: Scope) -> Value:
        """What a call gives, as it is written."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Value:
        """What an expression may stand for."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooLong
        match node:
            case None | ast.Constant(value=None):
                return NONE
            case ast.Name(id=name):
                home = scope.home(name)
                builtin = (
                    thing(Imported(f"builtins.{name}")) if hasattr(builtins, name) else UNKNOWN
                )
                return home.names[name] if home else builtin
            case ast.Attribute(value=value, attr=name):
                return self.attribute(self.evaluate(value, scope), name)
            case ast.Call():
                return self.evaluate_call(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(
                    op, [self.evaluate(left, scope), self.evaluate(right, scope)], node
                )
            case ast.UnaryOp(op=op, operand=operand):
                return self.operate(op, [self.evaluate(operand, scope)], node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                operands = [self.evaluate(each, scope) for each in (left, *others)]
                asks = any(isinstance(op, _ALIKE) for op in ops) or any(
                    each.is_none for each in operands
                )
                return PLAIN if asks else self.operate(ops[0], operands, node)
            case ast.Subscript():
                return self._subscript(node, scope)
            case _:
                return self._evaluate_more(node, scope)

    def _evaluate_more(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Lambda():
                return thing(Function(node, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.evaluate(test, scope)
                return self.alternatives(
                    [lambda: self.evaluate(body, scope), lambda: self.evaluate(orelse, scope)]
                )
            case ast.BoolOp(values=values):
                return join([self.evaluate(value, scope) for value in values])
            case ast.NamedExpr(target=target, value=value):
                scope.names[target.id] = self.evaluate(value, scope)
                return scope.names[target.id]
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                exact = not any(isinstance(each, ast.Starred) for each in elements)
                return container([self.evaluate(each, scope) for each in elements], exact)
            case ast.Dict(keys=keys, values=values):
                held = [self.evaluate(value, scope) for value in values]
                names = tuple(
                    key.value
                    for key in keys
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
                parts = (
                    value if key else one(value) for key, value in zip(keys, held, strict=True)
                )
                return container(parts, names=names if len(names) == len(held) else ())
            case (
                ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element)
            ):
                return self._comprehension(node.generators, element, scope)
            case ast.DictComp(value=element):
                return self._comprehension(node.generators, element, scope)
            case ast.Starred(value=value):
                return one(self.evaluate(value, scope))
            case _:
                for child in [
                    each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
                ]:
                    self.evaluate(child, scope)
                return PLAIN if isinstance(node, ast.Constant | ast.JoinedStr) else UNKNOWN

    def _comprehension(
        self, generators: list[ast.comprehension], element: ast.expr, scope: Scope
    ) -> Value:
        inner = Scope(scope.parent if scope.owner else scope)
        for each in generators:
            self.assign(each.target, one(self.evaluate(each.iter, inner)), inner)
            for test in each.ifs:
                self.evaluate(test, inner)
        return container([self.evaluate(element, inner)])

    def alternatives(self, ways: Sequence[Callable[[], Value]]) -> Value:
        """What one of the ways gives.

        Where one launches a kernel, what others compute without one is left to what really runs: it
        may be a guard.
        """
        results, seen = list[Value](), list[Seen]()
        for way in ways:
            with self.apart() as each:
                results.append(way())
            seen.append(each)
        for each in seen:
            if each.launches or not any(other.launches for other in seen):
                self.seen.add(each)
        return join(results)

    def attribute(self, value: Value, name: str) -> Value:
        """What an attribute may stand for."""
        if value.tensor:
            same = value if value.tensor == "large" else SOME
            tensor = same if name in words.SAME_SIZE else SOME if name in words.PARTS else PLAIN
            return UNKNOWN if name.startswith("_") else tensor
        if value.is_none:  # it was set in a way that is not seen
            return UNKNOWN
        found = [self._attribute_of(each, name) for each in value.things]
        if value.parts:
            entry = part(value, name) if name in value.names else UNKNOWN
            found.append(value if name in ("forward", "__call__") else entry)
        return join(found)

    def _attribute_of(self, each: Thing, name: str) -> Value:
        match each:
            case "kernel":
                return KERNEL
            case Imported(path, made=True):
                if name in ("forward", "__call__"):
                    return thing(each)
                if name in words.LAYERS_WITHIN:
                    return thing(Imported(f"{path}.{name}", made=True))
                return SOME if name.startswith(("weight", "bias", "in_proj", "running_")) else PLAIN
            case Imported(path):
                return thing(Imported(f"{path}.{name}"))
            case Own(node):
                return self.inherited(self.lineage(node), each, name)
            case _:
                return UNKNOWN

    def inherited(
        self, lineage: "Sequence[ast.ClassDef | Imported]", owner: Own, name: str
    ) -> Value:
        """An attribute of an object, or of a class, as the first class in the lineage has it."""
        for each in lineage:
            if isinstance(each, Imported):
                if name == "apply" and each.path.endswith("autograd.Function"):
                    return self._applied(owner)
                if name in ("forward", "__call__", "__init__"):
                    return thing(Imported(f"{each.path}.{name}"))
                continue
            if owner.made and name in (held := self.members.get(Own(each, made=True), {})):
                return held[name]
            if found := self.members.get(Own(each), {}).get(name):
                return replace(found, things=frozenset(_bound(one, owner) for one in found.things))
        return UNKNOWN

    def _applied(self, owner: Own) -> Value:
        """The `forward` of an autograd function, bound to its context where it has one."""
        forward = self.inherited(self.lineage(owner.node), owner, "forward")
        bound = owner if not self.has(owner, "setup_context") else None
        things: list[Thing] = [
            replace(each, owner=bound) if isinstance(each, Function) else each
            for each in forward.things
        ]
        return Value(things=frozenset[Thing](things))

    def lineage(self, node: ast.ClassDef) -> "list[ast.ClassDef | Imported]":
        """The class and all that it inherits from, in order."""
        found: list[ast.ClassDef | Imported] = [node]
        for base in [each for value in self.bases.get(node, ()) for each in value.things]:
            if isinstance(base, Imported):
                found.append(base)
            elif isinstance(base, Own) and base.node is not node:
                found += [each for each in self.lineage(base.node) if each not in found]
        return found

    def has(self, owner: Own, name: str) -> bool:
        """Whether a class of the submission gives its instances an attribute of that name."""
        classes = [node for node in self.lineage(owner.node) if isinstance(node, ast.ClassDef)]
        return any(
            name in self.members.get(Own(node, made), {})
            for node in classes
            for made in (False, True)
        )

    def operate(self, op: ast.AST, operands: list[Value], node: ast.AST) -> Value:
        """What an operator gives: of a tensor a tensor, of a list a list."""
        if any(isinstance(each, Own) for value in operands for each in value.things):
            return self.call(
                UNKNOWN, Arguments(tuple(operands)), node
            )  # an operator of its own class
        sign, tensors = _SIGNS.get(type(op), ""), {each.tensor for each in operands} - {""}
        sure = "some" in tensors or (sign == "@" and tensors)
        if sign and ("large" in tensors or (sure and not self.glue)):
            self.report(node, f"the operator {sign} on tensors")
        if tensors:
            return next(each for each in (LARGE, SOME, MAYBE) if each.tensor in tensors)
        return join(operands) if any(each.parts for each in operands) else PLAIN

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        value, index = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if value.is_none:  # it was set in a way that is not seen
            return UNKNOWN
        sure = value.tensor == "large" or (value.tensor == "some" and not self.glue)
        if sure and any(each.tensor in ("some", "large") for each in (index, *index.parts)):
            self.report(node, "indexing with a tensor")
        match node.slice:
            case ast.Constant(value=int() | str() as place):
                held = part(value, place)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(place))):
                held = part(value, -place)
            case ast.Slice():
                held = one(value) if value.tensor else container(value.parts)
            case _:
                held = one(value)
        own = [thing(each) if each == "kernel" or (isinstance(each, Imported) and each.made) else UNKNOWN
               for each in value.things if not isinstance(each, Function)]  # fmt: skip
        return held if value.tensor else join([*([held] if value.parts else []), *own])

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Notes what a name, an attribute or an entry stands for from here on."""
        match target:
            case ast.Name(id=name) if name in scope.global_names:
                self.globals.names[name] = join([self.globals.names.get(name, NONE), value])
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Attribute(value=of, attr=name):
                for each in [
                    each for each in self.evaluate(of, scope).things if isinstance(each, Own)
                ]:
                    held = self.members.setdefault(each, {})
                    held[name] = join([held.get(name, NONE), value])
            case ast.Subscript(value=of):
                self.add_to(of, value, scope)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                starred = any(isinstance(each, ast.Starred) for each in elements)
                exact = value.exact and len(value.parts) == len(elements) and not starred
                for place, each in enumerate(elements):
                    self.assign(each, part(value, place) if exact else one(value), scope)
            case ast.Starred(value=inner):
                self.assign(inner, container([value]), scope)
            case _:
                pass

    def add_to(self, of: ast.expr, value: Value, scope: Scope) -> None:
        """Notes that a container holds something more, where it has a name."""
        held = self.evaluate(of, scope)
        if not held.tensor and isinstance(of, ast.Name | ast.Attribute):
            more = container([*held.parts, value])
            home = scope.home(of.id) if isinstance(of, ast.Name) else scope
            self.assign(
                of,
                Value("", held.things | more.things, more.parts, depth=more.depth),
                home or scope,
            )


def _bound(each: Thing, owner: Own) -> Thing:
    """A method, called on an object or a class."""
    if not isinstance(each, Function) or each.owner:
        return each
    kinds = {ast.unparse(decorator) for decorator in getattr(each.node, "decorator_list", ())}
    binds = "staticmethod" not in kinds and (owner.made or "classmethod" in kinds)
    return replace(each, owner=owner) if binds else each
