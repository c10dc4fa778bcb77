"""What statements do, and what `ModelNew.forward` reaches. Last layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.parsing import nodes_of, walk
from kevin_env.rules.calls import Calls
from kevin_env.rules.evaluator import Finding, Seen, TooLong
from kevin_env.rules.things import Arguments, Function, Imported, Own, Scope, Value
from kevin_env.rules.values import (
    LARGE,
    MAYBE,
    NONE,
    PLAIN,
    SOME,
    UNKNOWN,
    container,
    join,
    one,
    thing,
)

_BINDING = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "setter", "deleter"}
)
"""Decorators that say how a method is called."""
_MARKS = frozenset(
    {
        "shape",
        "device",
        "dtype",
        "data_ptr",
        "contiguous",
        "stride",
        "numel",
        "is_contiguous",
        "is_cuda",
    }
)
"""What is only ever asked of a tensor: a parameter of `forward` of which it is asked is one."""


class Reader(Calls):
    """Reads a submission: its module, the constructor of its model, and what `forward` reaches."""

    def __init__(self, tree: ast.Module, glue: bool = False) -> None:
        super().__init__(glue)
        self._tree = tree
        self._sets_mode = bool(
            {"eval", "train"} & {node.attr for node in nodes_of(tree, ast.Attribute)}
        )
        self._results: dict[tuple[Function, Arguments], tuple[Value, Seen]] = {}
        self._returned: list[list[Value]] = []

    def read(self) -> None:
        """Reads it all, as far as that takes a bearable time. What is seen afterwards is of
        `forward` alone.
        """
        try:
            with self.apart():
                self.execute(self._tree.body, self.globals)
                made = [self.call(thing(Own(model)), Arguments(), model) for model in self.models()]
            for model in made:
                for owner in [each for each in model.things if isinstance(each, Own)]:
                    forward = self.attribute(
                        model, "__call__" if self.has(owner, "__call__") else "forward"
                    )
                    for each in forward.things:
                        given = (
                            _given_to_forward(each.node)
                            if isinstance(each, Function)
                            else Arguments((LARGE,))
                        )
                        self.call(thing(each), given, owner.node)
        except (TooLong, RecursionError):
            self.seen.launches = True  # nothing is known of the rest

    def models(self) -> list[ast.ClassDef]:
        """Every class that the model's name may stand for."""
        return [
            each.node
            for each in self.globals.names.get("ModelNew", PLAIN).things
            if isinstance(each, Own)
        ]

    def run(self, function: Function, arguments: Arguments) -> Value:
        """What the function returns for such arguments; its body is read once for them."""
        key = (function, arguments)
        if key not in self._results:
            self._results[key] = UNKNOWN, Seen()  # for a recursive call
            with self.apart() as seen:
                self._returned.append([])
                scope = self._bound_names(function, arguments)
                if isinstance(function.node, ast.Lambda):
                    self._returned[-1].append(self.evaluate(function.node.body, scope))
                else:
                    self.execute(function.node.body, scope)
                self._results[key] = join(self._returned.pop() or [NONE]), seen
        result, seen = self._results[key]
        self.seen.add(seen)
        return result

    def _bound_names(self, function: Function, arguments: Arguments) -> Scope:
        scope, spec = Scope(parent=function.scope), function.node.args
        parameters = [*spec.posonlyargs, *spec.args]
        given = [*([thing(function.owner)] if function.owner else []), *arguments.positional]
        defaults = [
            *[None] * (len(parameters) - len(spec.defaults)),
            *spec.defaults,
            *spec.kw_defaults,
        ]
        names = [parameter.arg for parameter in (*parameters, *spec.kwonlyargs)]
        keywords, rest = dict(arguments.keywords), [arguments.rest] if arguments.rest else []
        values = dict(zip(names, given[: len(parameters)], strict=False)) | keywords
        for name, default in zip(names, defaults, strict=True):
            unset = self.evaluate(default, function.scope) if default else UNKNOWN
            scope.names[name] = values.get(name) or join([unset, *rest])
        if spec.vararg:
            scope.names[spec.vararg.arg] = container(
                [*given[len(parameters) :], *rest], exact=not rest
            )
        if spec.kwarg:
            scope.names[spec.kwarg.arg] = container(
                value for name, value in keywords.items() if name not in names
            )
        if function.home and function.owner:
            scope.names |= {"super()": thing(Own(function.home)), "self()": thing(function.owner)}
        return scope

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Reads statements in order."""
        for place, node in enumerate(body):
            rest = body[place + 1 :]
            match node:
                case ast.If(test=test, body=then, orelse=orelse):
                    self.evaluate(test, scope)
                    if (known := self._known(test)) is not None:
                        self.execute([*(then if known else orelse), *rest], scope)
                        return
                    if rest and (_ends(then) or _ends(orelse)):  # the rest belongs to the other way
                        self._branch(scope, then if _ends(then) else [*then, *rest],
                                     orelse if _ends(orelse) else [*orelse, *rest])  # fmt: skip
                        return
                    self._branch(scope, then, orelse)
                case ast.Try() | ast.TryStar():
                    after = rest if _ends([*node.body, *node.orelse]) else ()
                    self._execute_try(node, after, scope)
                    if after:
                        return
                case _:
                    self._execute(node, scope)

    def _known(self, test: ast.expr) -> bool | None:
        """Whether a condition holds, where that is known: models are called in training mode."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self._known(operand)
                return None if known is None else not known
            case ast.Attribute(value=ast.Name(id="self"), attr="training"):
                return None if self._sets_mode else True
            case _:
                return None

    def _branch(self, scope: Scope, *bodies: Sequence[ast.stmt]) -> None:
        """One of the bodies runs: afterwards a name stands for what it may be after any that goes
        on.
        """
        before, after = scope.names, list[dict[str, Value]]()

        def way(body: Sequence[ast.stmt]) -> Value:
            scope.names = dict(before)
            seen = len(self.seen.findings)
            self.execute(body, scope)
            if body and isinstance(body[-1], ast.Raise):  # what is only computed to fail
                del self.seen.findings[seen:]
            if not _ends(body):
                after.append(scope.names)
            return PLAIN

        self.alternatives([lambda body=body: way(body) for body in bodies])
        scope.names = _joined(after) or before

    def _execute_try(
        self, node: ast.Try | ast.TryStar, rest: Sequence[ast.stmt], scope: Scope
    ) -> None:
        """A handler that computes with torch, and reaches no kernel, falls back; one that raises
        does not.
        """
        with self.apart() as tried:
            self.execute([*node.body, *node.orelse], scope)
        self.seen.add(tried)
        before, after = dict(scope.names), [scope.names]
        for handler in node.handlers:
            goes_on = () if _ends(handler.body) else rest
            scope.names = dict(before)
            if handler.name:
                scope.names[handler.name] = PLAIN
            with self.apart() as seen:
                self.execute([*handler.body, *goes_on], scope)
            if (
                tried.launches
                and seen.findings
                and not seen.launches
                and not isinstance(handler.body[-1], ast.Raise)
            ):
                found = Finding(
                    handler.lineno,
                    "fallback",
                    "an `except` branch that continues without the kernel",
                )
                self.seen.add(Seen([found]))
            self.seen.launches |= seen.launches
            after.append(scope.names)
        scope.names = _joined(after)
        self.execute(node.finalbody, scope)

    def _execute(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                self._define_class(node, scope)
            case ast.Return(value=value):
                result = self.evaluate(value, scope)
                if self._returned:
                    self._returned[-1].append(result)
            case ast.Assign(targets=targets, value=value):
                result = self.evaluate(value, scope)
                for target in targets:
                    self.assign(target, result, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.evaluate(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                operands = [self.evaluate(target, scope), self.evaluate(value, scope)]
                self.assign(target, self.operate(op, operands, node), scope)
            case ast.Import(names=names):
                for each in names:
                    path = each.name if each.asname else each.name.split(".")[0]
                    scope.names[each.asname or path] = thing(Imported(path))
            case ast.ImportFrom(module=module, names=names):
                for each in names:
                    scope.names[each.asname or each.name] = thing(
                        Imported(f"{module or ''}.{each.name}")
                    )
            case ast.Global(names=names):
                scope.global_names |= set(names)
            case ast.Raise() | ast.Pass() | ast.Delete():
                pass
            case _:
                self._execute_block(node, scope)

    def _execute_block(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case (
                ast.For(target=target, iter=over, body=body)
                | ast.AsyncFor(target=target, iter=over, body=body)
            ):
                self.assign(target, one(self.evaluate(over, scope)), scope)
                self._branch(scope, [*body, *node.orelse], [])
            case ast.While(test=test, body=body):
                self.evaluate(test, scope)
                self._branch(scope, [*body, *node.orelse], [])
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    value = self.evaluate(item.context_expr, scope)
                    if item.optional_vars:
                        self.assign(item.optional_vars, value, scope)
                self.execute(body, scope)
            case ast.Match(subject=subject, cases=cases):
                self.evaluate(subject, scope)
                self._branch(scope, *(case.body for case in cases), [])
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.evaluate(child, scope)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        value = thing(Function(node, scope, scope.owner))
        for each in reversed([each for each in node.decorator_list if _last(each) not in _BINDING]):
            given = self.call(self.evaluate(each, scope), Arguments((value,)), each)
            value = given if given.things else value
        scope.names[node.name] = value

    def _define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        self.bases[node] = [self.evaluate(base, scope) for base in node.bases]
        inner = Scope(parent=scope, owner=node)
        self.execute(node.body, inner)
        self.members[Own(node)] = inner.names
        scope.names[node.name] = thing(Own(node))


def _joined(ways: Sequence[dict[str, Value]]) -> dict[str, Value]:
    """What names stand for after any of these ways."""
    names = dict.fromkeys(name for way in ways for name in way)
    return {name: join([way[name] for way in ways if name in way]) for name in names}


def _last(node: ast.expr) -> str:
    """`jit` of `@triton.jit` and of `@jit(...)`."""
    if isinstance(node, ast.Call):
        return _last(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether what stands behind it is not reached through it."""
    if not body:
        return False
    match body[-1]:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=then, orelse=orelse):
            return _ends(then) and _ends(orelse)
        case ast.With(body=inner):
            return _ends(inner)
        case _:
            return False


def _given_to_forward(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Arguments:
    """What `forward` is called with: its first parameter is as large as its tensors get; others may
    be small.
    """
    nodes, given = walk(node), list[Value]()
    marked = {
        getattr(each.value, "id", "")
        for each in nodes
        if isinstance(each, ast.Attribute) and each.attr in _MARKS
    }
    iterated = {
        getattr(each.iter, "id", "")
        for each in nodes
        if isinstance(each, ast.For | ast.comprehension)
    }
    parameters = [*node.args.posonlyargs, *node.args.args]
    for place, each in enumerate(parameters[1 : len(parameters) - len(node.args.defaults)]):
        annotation = ast.unparse(each.annotation) if each.annotation else ""
        if any(word in annotation.lower() for word in ("list", "tuple", "dict", "sequence")):
            given.append(container([SOME]))
        elif annotation in ("int", "float", "bool", "str") and each.arg not in marked:
            given.append(PLAIN)
        else:
            sure = each.arg in marked or "Tensor" in annotation
            given.append(
                LARGE if place == 0 and each.arg not in iterated else SOME if sure else MAYBE
            )
    return Arguments(tuple(given))
