"""Effects of statements and of `ModelNew.forward`. Last of the reader's three layers."""

import ast
from collections.abc import Sequence

from kevin_env.parsing import last_name, walk
from kevin_env.rules import values as v
from kevin_env.rules.calls import Calls
from kevin_env.rules.expressions import Effects, Finding
from kevin_env.rules.vocabulary import words


class Reader(Calls):
    """Reads a submission: its module, the constructor of its model, and what `forward` reaches.

    With `backward`, that includes the `backward` of autograd functions.
    """

    def __init__(self, tree: ast.Module, glue: bool = False, backward: bool = False) -> None:
        super().__init__(glue, backward)
        self._tree = tree
        self._results: dict[tuple[v.Function, v.Arguments], tuple[v.Value, Effects]] = {}

    def read(self) -> None:
        """Reads the file, as far as the limit of steps allows. Leaves the effects of `forward`."""
        try:
            with self._isolated():
                self._execute_body(self._tree.body, self.globals)
                classes = [v.callee(v.Own(node)) for node in self.models()]
                models = [self._call(each, v.Arguments(), self._tree) for each in classes]
            for owner in [each for model in models for each in model.callees]:
                if isinstance(owner, v.Own):
                    name = "__call__" if self._has(owner, "__call__") else "forward"
                    for each in self._attribute(v.callee(owner), name).callees:
                        known = isinstance(each, v.Function)
                        passed = _forward_arguments(each.node) if known else v.Arguments((v.LARGE,))
                        self._call(v.callee(each), passed, owner.node)
        except RecursionError:
            self.effects.launches = True  # the rest is unknown

    def models(self) -> list[ast.ClassDef]:
        """Every class that the name `ModelNew` may refer to."""
        named = self.globals.names.get("ModelNew", v.PLAIN)
        return [each.node for each in named.callees if isinstance(each, v.Own)]

    def _run(self, function: v.Function, arguments: v.Arguments) -> v.Value:
        """The return value; the body is read once for each kind of arguments."""
        key = (function, arguments)
        if key not in self._results:
            self._results[key] = v.UNKNOWN, Effects()  # for recursive calls
            with self._isolated() as effects:
                scope = self._bound_names(function, arguments)
                if isinstance(function.node, ast.Lambda):
                    scope.returned.append(self._evaluate(function.node.body, scope))
                else:
                    self._execute_body(function.node.body, scope)
                self._results[key] = v.join(scope.returned or [v.NONE]), effects
        result, effects = self._results[key]
        self.effects.add(effects)
        return result

    def _bound_names(self, function: v.Function, arguments: v.Arguments) -> v.Scope:
        scope, spec = v.Scope(parent=function.scope), function.node.args
        parameters = [*spec.posonlyargs, *spec.args]
        positional = [
            *([v.callee(function.owner)] if function.owner else []),
            *arguments.positional,
        ]
        missing: list[ast.expr | None] = [None] * (len(parameters) - len(spec.defaults))
        defaults = [*missing, *spec.defaults, *spec.kw_defaults]
        names = [parameter.arg for parameter in (*parameters, *spec.kwonlyargs)]
        keywords, rest = dict(arguments.keywords), [arguments.rest] if arguments.rest else []
        values = dict(zip(names, positional[: len(parameters)], strict=False)) | keywords
        for name, default in zip(names, defaults, strict=True):
            unset = self._evaluate(default, function.scope) if default else v.UNKNOWN
            scope.names[name] = values.get(name) or v.join([unset, *rest])
        if spec.vararg:
            more = [*positional[len(parameters) :], *rest]
            scope.names[spec.vararg.arg] = v.container(more, exact=not rest)
        if spec.kwarg:
            others = [value for name, value in keywords.items() if name not in names]
            scope.names[spec.kwarg.arg] = v.container(others)
        if function.defining_class and function.owner:
            scope.names |= {
                "super()": v.callee(v.Own(function.defining_class)),
                "self()": v.callee(function.owner),
            }
        return scope

    def _execute_body(self, body: Sequence[ast.stmt], scope: v.Scope) -> None:
        for place, node in enumerate(body):
            match node:
                case ast.If(test=test, body=then, orelse=orelse):
                    rest = body[place + 1 :]
                    self._evaluate(test, scope)
                    if rest and (_ends(then) or _ends(orelse)):  # the rest belongs to one branch
                        bodies = [
                            each if _ends(each) else [*each, *rest] for each in (then, orelse)
                        ]
                        self._branch(scope, *bodies)
                        return
                    self._branch(scope, then, orelse)
                case ast.Try() | ast.TryStar():
                    after = body[place + 1 :] if _ends([*node.body, *node.orelse]) else ()
                    self._execute_try(node, after, scope)
                    if after:
                        return
                case _:
                    self._execute(node, scope)

    def _branch(self, scope: v.Scope, *bodies: Sequence[ast.stmt]) -> None:
        """One of the bodies runs. Names then have the values after any body that continues."""
        before, after = scope.names, list[dict[str, v.Value]]()

        def branch(body: Sequence[ast.stmt]) -> v.Value:
            scope.names = dict(before)
            self._execute_body(body, scope)
            if not _ends(body):
                after.append(scope.names)
            return v.PLAIN

        raising = [body for body in bodies if body and isinstance(body[-1], ast.Raise)]
        for body in raising:  # only computes for an error message
            with self._isolated() as each:
                branch(body)
            self.effects.add(Effects(launches=each.launches))
        self._alternatives([lambda x=x: branch(x) for x in bodies if x not in raising])
        scope.names = _joined(after) or before

    def _loop(self, body: Sequence[ast.stmt], scope: v.Scope) -> None:
        """The body runs once or more; names in it may still have their earlier values."""
        before, scope.names = scope.names, dict(scope.names)
        self._execute_body(body, scope)
        scope.names = _joined([before, scope.names])

    def _execute_try(
        self, node: ast.Try | ast.TryStar, rest: Sequence[ast.stmt], scope: v.Scope
    ) -> None:
        """A handler that computes with torch, without a kernel, is a fallback unless it raises."""
        with self._isolated() as tried:
            self._execute_body([*node.body, *node.orelse], scope)
        self.effects.add(tried)
        before, after = dict(scope.names), [scope.names]
        for handler in node.handlers:
            scope.names = dict(before)
            if handler.name:
                scope.names[handler.name] = v.PLAIN
            with self._isolated() as handled:
                self._execute_body([*handler.body, *(() if _ends(handler.body) else rest)], scope)
            raises = isinstance(handler.body[-1], ast.Raise)
            if tried.launches and handled.findings and not handled.launches and not raises:
                what = "an `except` branch that continues without the kernel"
                self.effects.findings[Finding(handler.lineno, "fallback", what)] = None
            self.effects.launches |= handled.launches
            after.append(scope.names)
        scope.names = _joined(after)
        self._execute_body(node.finalbody, scope)

    def _execute(self, node: ast.stmt, scope: v.Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                self._define_class(node, scope)
            case ast.Return(value=value):
                scope.returned.append(self._evaluate(value, scope))
            case ast.Assign(targets=targets, value=value):
                result = self._evaluate(value, scope)
                for target in targets:
                    self._assign(target, result, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, self._evaluate(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                operands = [self._evaluate(target, scope), self._evaluate(value, scope)]
                self._assign(target, self._operate(op, operands, node), scope)
            case ast.Import(names=names):
                for each in names:
                    path = each.name if each.asname else each.name.split(".")[0]
                    scope.names[each.asname or path] = v.callee(v.Imported(path))
            case ast.ImportFrom(module=module, names=names):
                for each in names:
                    imported = v.Imported(f"{module or ''}.{each.name}")
                    scope.names[each.asname or each.name] = v.callee(imported)
            case ast.Global(names=names):
                scope.global_names |= set(names)
            case ast.Raise() | ast.Pass() | ast.Delete():
                pass
            case _:
                self._execute_block(node, scope)

    def _execute_block(self, node: ast.stmt, scope: v.Scope) -> None:
        match node:
            case ast.For() | ast.AsyncFor():
                self._assign(node.target, v.element(self._evaluate(node.iter, scope)), scope)
                self._loop([*node.body, *node.orelse], scope)
            case ast.While():
                self._evaluate(node.test, scope)
                self._loop([*node.body, *node.orelse], scope)
            case ast.With() | ast.AsyncWith():
                for each in node.items:
                    value = self._evaluate(each.context_expr, scope)
                    if each.optional_vars:
                        self._assign(each.optional_vars, value, scope)
                self._execute_body(node.body, scope)
            case ast.Match():
                self._evaluate(node.subject, scope)
                self._branch(scope, *(case.body for case in node.cases), [])
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._evaluate(child, scope)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: v.Scope) -> None:
        value = v.callee(v.Function(node, scope, scope.owner))
        binding = words("binding_decorators")
        for each in reversed([x for x in node.decorator_list if last_name(x) not in binding]):
            decorated = self._call(self._evaluate(each, scope), v.Arguments((value,)), each)
            value = decorated if decorated.callees else value
        scope.names[node.name] = value

    def _define_class(self, node: ast.ClassDef, scope: v.Scope) -> None:
        self.bases[node] = [self._evaluate(base, scope) for base in node.bases]
        inner = v.Scope(parent=scope, owner=node)
        self._execute_body(node.body, inner)
        self.members[v.Own(node)] = inner.names
        scope.names[node.name] = v.callee(v.Own(node))


def _joined(branches: Sequence[dict[str, v.Value]]) -> dict[str, v.Value]:
    """The values of names after any of these branches."""
    names = dict.fromkeys(name for branch in branches for name in branch)
    return {name: v.join([each[name] for each in branches if name in each]) for name in names}


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements never continue to the next one."""
    match body[-1] if body else None:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=then, orelse=orelse):
            return _ends(then) and _ends(orelse)
        case ast.With(body=inner):
            return _ends(inner)
        case _:
            return False


def _forward_arguments(node: v.FunctionNode) -> v.Arguments:
    """The arguments of `forward`. The first is a large tensor; others may be small or numbers."""
    nodes, arguments = walk(node), list[v.Value]()
    attributes = [each for each in nodes if isinstance(each, ast.Attribute)]
    loops = [each for each in nodes if isinstance(each, ast.For | ast.comprehension)]
    tensors = {getattr(x.value, "id", "") for x in attributes if x.attr in words("tensor_marks")}
    iterated = {getattr(each.iter, "id", "") for each in loops}
    parameters = [*node.args.posonlyargs, *node.args.args]
    for place, each in enumerate(parameters[1 : len(parameters) - len(node.args.defaults)]):
        annotation = ast.unparse(each.annotation) if each.annotation else ""
        if any(word in annotation.lower() for word in ("list", "tuple", "dict", "sequence")):
            arguments.append(v.container([v.SOME]))
        elif annotation in ("int", "float", "bool", "str") and each.arg not in tensors:
            arguments.append(v.PLAIN)
        elif place == 0 and each.arg not in iterated:
            arguments.append(v.LARGE)
        else:
            arguments.append(v.SOME if each.arg in tensors or "Tensor" in annotation else v.MAYBE)
    return v.Arguments(tuple(arguments))
