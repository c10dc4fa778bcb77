"""Values of expressions. First of the reader's layers: expressions, calls, statements."""

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from kevin_env.rules import values as v
from kevin_env.rules.vocabulary import words

_MAX_STEPS = 100_000
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.Invert: "~", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
"""Operators that compute when an operand is a tensor."""


@dataclass(frozen=True, order=True)
class Finding:
    """A place in code reached by `forward` that breaks a rule."""

    line: int
    kind: Literal["torch_compute", "fallback"]
    what: str


@dataclass
class Effects:
    """The effects of code: its findings, each once, and whether it may launch a kernel."""

    findings: dict[Finding, None] = field(default_factory=dict[Finding, None])
    launches: bool = False

    def add(self, other: "Effects") -> None:
        """Adds the effects of another piece."""
        self.findings |= other.findings
        self.launches = self.launches or other.launches


class Expressions(ABC):
    """Evaluates expressions.

    Attributes:
        effects: Of the code being read.
        glue: Whether torch may compute on small tensors: only large ones are reported then.
        backward: Whether what autograd calls counts.
        members: Names of each class, and values that attributes of its instances were set to.
        bases: Base classes of each class.
    """

    def __init__(self, glue: bool, backward: bool) -> None:
        self.effects = Effects()
        self.glue, self.backward = glue, backward
        self.globals = v.Scope()
        self.members: dict[v.Own, dict[str, v.Value]] = {}
        self.bases: dict[ast.ClassDef, list[v.Value]] = {}
        self._steps = 0

    @abstractmethod
    def _call(self, called: v.Value, arguments: v.Arguments, node: ast.AST) -> v.Value: ...

    @abstractmethod
    def _evaluate_call(self, node: ast.Call, scope: v.Scope) -> v.Value: ...

    def _report(self, node: ast.AST, what: str) -> None:
        self.effects.findings[Finding(getattr(node, "lineno", 1), "torch_compute", what)] = None

    @contextmanager
    def _isolated(self) -> Generator[Effects]:
        """Collects the effects of code read in the block separately."""
        before, self.effects = self.effects, Effects()
        try:
            yield self.effects
        finally:
            self.effects = before

    def _evaluate(self, node: ast.expr | None, scope: v.Scope) -> v.Value:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise RecursionError("the file takes too many steps to read")
        match node:
            case None | ast.Constant(value=None):
                return v.NONE
            case ast.Name(id=name):
                if defining := scope.find(name):
                    return defining.names[name]
                known = hasattr(builtins, name)
                return v.callee(v.Imported(f"builtins.{name}")) if known else v.UNKNOWN
            case ast.Attribute(value=value, attr=name):
                return self._attribute(self._evaluate(value, scope), name)
            case ast.Call():
                return self._evaluate_call(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                operands = [self._evaluate(left, scope), self._evaluate(right, scope)]
                return self._operate(op, operands, node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._operate(op, [self._evaluate(operand, scope)], node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                operands = [self._evaluate(each, scope) for each in (left, *others)]
                identity = ast.Is | ast.IsNot | ast.In | ast.NotIn
                if any(isinstance(op, identity) for op in ops) or any(x.is_none for x in operands):
                    return v.PLAIN
                return self._operate(ops[0], operands, node)
            case ast.Subscript():
                return self._subscript(node, scope)
            case _:
                return self._evaluate_compound(node, scope)

    def _evaluate_compound(self, node: ast.expr, scope: v.Scope) -> v.Value:
        match node:
            case ast.Lambda():
                return v.callee(v.Function(node, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._evaluate(test, scope)
                return self._alternatives(
                    [lambda: self._evaluate(body, scope), lambda: self._evaluate(orelse, scope)]
                )
            case ast.BoolOp(values=values):
                return v.join([self._evaluate(value, scope) for value in values])
            case ast.NamedExpr(target=target, value=value):
                scope.names[target.id] = self._evaluate(value, scope)
                return scope.names[target.id]
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                exact = not any(isinstance(each, ast.Starred) for each in elements)
                return v.container([self._evaluate(each, scope) for each in elements], exact)
            case ast.Dict():
                return self._dict(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node.generators, node.elt, scope)
            case ast.DictComp():
                return self._comprehension(node.generators, node.value, scope)
            case ast.Starred(value=value):
                return v.element(self._evaluate(value, scope))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._evaluate(child, scope)
                return v.PLAIN if isinstance(node, ast.Constant | ast.JoinedStr) else v.UNKNOWN

    def _dict(self, node: ast.Dict, scope: v.Scope) -> v.Value:
        values = [self._evaluate(value, scope) for value in node.values]
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        names = tuple(key for key in keys if isinstance(key, str))
        pairs = zip(node.keys, values, strict=True)
        parts = [value if key else v.element(value) for key, value in pairs]  # `**value` has no key
        return v.container(parts, names=names if len(names) == len(values) else ())

    def _comprehension(
        self, generators: list[ast.comprehension], result: ast.expr, scope: v.Scope
    ) -> v.Value:
        inner = v.Scope(scope.parent if scope.owner else scope)
        for each in generators:
            self._assign(each.target, v.element(self._evaluate(each.iter, inner)), inner)
            for test in each.ifs:
                self._evaluate(test, inner)
        return v.container([self._evaluate(result, inner)])

    def _alternatives(self, branches: Sequence[Callable[[], v.Value]]) -> v.Value:
        """The result of one of the branches; the recorded call shows which one ran.

        Findings are certain if all branches have some, not counting those without a kernel beside
        one that launches it.
        """
        results, effects = list[v.Value](), list[Effects]()
        for branch in branches:
            with self._isolated() as each:
                results.append(branch())
            effects.append(each)
        likely = [each for each in effects if each.launches] or effects
        certain = all(each.findings for each in likely)
        for each in likely:
            self.effects.add(each if certain else Effects(launches=each.launches))
        return v.join(results)

    def _attribute(self, value: v.Value, name: str) -> v.Value:
        if value.tensor and not name.startswith("_"):
            if name in words("same_size"):
                return value if value.tensor == "large" else v.SOME
            return v.SOME if name in words("parts") else v.PLAIN
        if value.tensor or value.is_none:  # None: it is assigned in code that is not read
            return v.UNKNOWN
        attributes = [self._attribute_of(each, name) for each in value.callees]
        if value.parts:
            entry = v.item(value, name) if name in value.names else v.UNKNOWN
            attributes.append(value if name in ("forward", "__call__") else entry)
        return v.join(attributes)

    def _attribute_of(self, each: v.Callee, name: str) -> v.Value:
        match each:
            case "kernel":
                return v.KERNEL
            case v.Imported(path, made=True):
                if name in ("forward", "__call__"):
                    return v.callee(each)
                if name in words("layers_within"):
                    return v.callee(v.Imported(f"{path}.{name}", made=True))
                tensor = name.startswith(("weight", "bias", "in_proj", "running_"))
                return v.SOME if tensor else v.PLAIN
            case v.Imported(path):
                return v.callee(v.Imported(f"{path}.{name}"))
            case v.Own(node):
                return self._inherited(self.lineage(node), each, name)
            case _:
                return v.UNKNOWN

    def _inherited(self, lineage: Sequence[v.Base], owner: v.Own, name: str) -> v.Value:
        """An attribute of an object or class, from the first class in the lineage that has it."""
        for each in lineage:
            if isinstance(each, v.Imported):
                if each.path.endswith("autograd.Function"):
                    if name == "apply":
                        return self._applied(owner)
                    if name == "saved_tensors":
                        return v.container([v.SOME])
                if name in ("forward", "__call__", "__init__"):
                    return v.callee(v.Imported(f"{each.path}.{name}"))
                continue
            if owner.made and name in (members := self.members.get(v.Own(each, made=True), {})):
                return members[name]
            if value := self.members.get(v.Own(each), {}).get(name):
                return replace(value, callees=frozenset(_bound(x, owner) for x in value.callees))
        return v.UNKNOWN

    def _applied(self, owner: v.Own) -> v.Value:
        """`forward` of an autograd function, bound to its context if it takes one.

        Where gradients are judged, its `backward` follows.
        """
        lineage = self.lineage(owner.node)
        forward, backward = (self._inherited(lineage, owner, x) for x in ("forward", "backward"))
        bound = None if self._has(owner, "setup_context") else owner
        functions = [each for each in forward.callees if isinstance(each, v.Function)]
        others = forward.callees.difference(functions)
        after = [replace(x, owner=owner) for x in backward.callees if isinstance(x, v.Function)]
        then = after[0] if after and self.backward else None
        return v.callee(*(replace(each, owner=bound, then=then) for each in functions), *others)

    def lineage(self, node: ast.ClassDef) -> list[v.Base]:
        """The class and everything it inherits from, in order."""
        found: dict[v.Base, None] = {}
        to_add: list[v.Base] = [node]
        while to_add:
            if (each := to_add.pop()) not in found:
                found[each] = None
                values = self.bases.get(each, ()) if isinstance(each, ast.ClassDef) else ()
                bases = [base for value in values for base in value.callees]
                own = [x.node if isinstance(x, v.Own) else x for x in bases]
                to_add += [x for x in reversed(own) if isinstance(x, ast.ClassDef | v.Imported)]
        return list(found)

    def _has(self, owner: v.Own, name: str) -> bool:
        """Whether a class of the submission gives its instances an attribute of that name."""
        classes = [node for node in self.lineage(owner.node) if isinstance(node, ast.ClassDef)]
        keys = [v.Own(node, made) for node in classes for made in (False, True)]
        return any(name in self.members.get(key, {}) for key in keys)

    def _operate(self, op: ast.AST, operands: list[v.Value], node: ast.AST) -> v.Value:
        """The result of an operator: of tensors a tensor, of lists a list."""
        if any(isinstance(each, v.Own) for value in operands for each in value.callees):
            return self._call(v.UNKNOWN, v.Arguments(tuple(operands)), node)  # overloaded
        sign, tensors = _SIGNS.get(type(op), ""), {each.tensor for each in operands} - {""}
        certain = "some" in tensors or (sign == "@" and tensors)
        if sign and ("large" in tensors or (certain and not self.glue)):
            self._report(node, f"the operator {sign} on tensors")
        if tensors:
            return next(each for each in (v.LARGE, v.SOME, v.MAYBE) if each.tensor in tensors)
        return v.join(operands) if any(each.parts for each in operands) else v.PLAIN

    def _subscript(self, node: ast.Subscript, scope: v.Scope) -> v.Value:
        value, index = self._evaluate(node.value, scope), self._evaluate(node.slice, scope)
        if value.is_none:  # it is assigned in code that is not read
            return v.UNKNOWN
        certain = value.tensor == "large" or (value.tensor == "some" and not self.glue)
        if certain and any(each.tensor in ("some", "large") for each in (index, *index.parts)):
            self._report(node, "indexing with a tensor")
        match node.slice:
            case ast.Constant(value=int() | str() as place):
                entry = v.item(value, place)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(place))):
                entry = v.item(value, -place)
            case ast.Slice():
                entry = v.element(value) if value.tensor else v.container(value.parts)
            case _:
                entry = v.element(value)
        if value.tensor:
            return entry
        entries = [entry] if value.parts else []
        for each in value.callees:
            if not isinstance(each, v.Function):
                same = each == "kernel" or (isinstance(each, v.Imported) and each.made)
                entries.append(v.callee(each) if same else v.UNKNOWN)
        return v.join(entries)

    def _assign(self, target: ast.expr, value: v.Value, scope: v.Scope) -> None:
        """Sets the value of a name, an attribute or an entry."""
        match target:
            case ast.Name(id=name) if name in scope.global_names:
                self.globals.names[name] = v.join([self.globals.names.get(name, v.NONE), value])
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Attribute(value=of, attr=name):
                if name == "__class__":  # the other class is not read
                    name, value = "__call__", v.UNKNOWN
                for each in self._evaluate(of, scope).callees:
                    if isinstance(each, v.Own):
                        members = self.members.setdefault(each, {})
                        members[name] = v.join([members.get(name, v.NONE), value])
            case ast.Subscript(value=of):
                self._add_to(of, value, scope)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                starred = any(isinstance(each, ast.Starred) for each in targets)
                exact = value.exact and len(value.parts) == len(targets) and not starred
                for place, each in enumerate(targets):
                    self._assign(each, v.item(value, place) if exact else v.element(value), scope)
            case ast.Starred(value=inner):
                self._assign(inner, v.container([value]), scope)
            case _:
                pass

    def _add_to(self, of: ast.expr, value: v.Value, scope: v.Scope) -> None:
        """Records one more value in a container that has a name."""
        current = self._evaluate(of, scope)
        if not current.tensor and isinstance(of, ast.Name | ast.Attribute):
            more = v.container([*current.parts, value])
            defining = scope.find(of.id) if isinstance(of, ast.Name) else scope
            callees = current.callees | more.callees
            self._assign(of, v.Value("", callees, more.parts, depth=more.depth), defining or scope)


def _bound(each: v.Callee, owner: v.Own) -> v.Callee:
    """A function as a method of an object or class."""
    if not isinstance(each, v.Function) or each.owner:
        return each
    kinds = {ast.unparse(decorator) for decorator in getattr(each.node, "decorator_list", ())}
    binds = "staticmethod" not in kinds and (owner.made or "classmethod" in kinds)
    return replace(each, owner=owner) if binds else each
