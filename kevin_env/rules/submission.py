"""What the statements of a submission do, and what `forward` reaches. Last layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.parsing import nodes_of
from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    TENSOR,
    UNKNOWN,
    Arguments,
    Class,
    Function,
    Imported,
    Instance,
    Items,
    Parent,
    Scope,
    TorchModule,
    Value,
    join,
    opened,
)
from kevin_env.rules.binding import loosened, others_by_name, others_in_order
from kevin_env.rules.definitions import Definitions
from kevin_env.rules.plain import plain
from kevin_env.rules.syntax import falls_back, forward_arguments, keeps_to_itself, suspends
from kevin_env.rules.texts import code_in
from kevin_env.rules.values import items

_MOST_READINGS = 500
"""Functions are read once for each kind of arguments; in a file that needs more than this, once altogether."""
_DEEPEST_CALL = 32


class SubmissionReader(Definitions):
    """Reads a whole submission: first the module and the constructor, then what `forward` reaches."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._results: dict[tuple[Function, Arguments, bool], tuple[Value, bool]] = {}
        self._read_before: set[ast.AST] = set()
        self._returned: list[list[Value]] = []
        self._suspends: list[bool] = []
        self._in_loop = False
        self._too_deep: list[tuple[Function, Arguments]] = []
        """Calls that were nested too deeply to be followed in their place; what they give is not known there."""
        self._read_texts(tree)
        self.execute(tree.body, self.globals)

    def _read_texts(self, tree: ast.Module) -> None:
        """Reads the Python code in the file's strings, as one module that it may write and import."""
        scope = Scope()
        for text in code_in(tree):
            owners = nodes_of(text, ast.ClassDef)
            methods = ((node, owner) for owner in owners for node in owner.body if isinstance(node, ast.FunctionDef))
            self.home.update(methods)
            self.execute(plain(text).body, scope)
        self.written = scope.names

    def models(self) -> list[ast.ClassDef]:
        """Every class that the model's name may stand for, also where the file's own `__getattr__` gives it."""
        given = self.globals.names.get("__getattr__", UNKNOWN)
        looked_up = join(self.run(atom, Arguments()) for atom in given if isinstance(atom, Function))
        found = self.name(words.MODEL, self.globals) | looked_up
        return [atom.node for atom in found if isinstance(atom, Class)]

    def read_forward(self, model: ast.ClassDef) -> None:
        """Follows construction, `forward` and its hooks, noting findings and launches.

        Reads `forward` twice: attributes that it sets on the first call are known in the second.
        """
        made = self.construct(Class(model), Arguments(), model)
        forward = [atom for each in made if isinstance(each, Instance) for atom in self.entries(each)]
        forward += [each for each in made if isinstance(each, TorchModule)]
        named = [each for each in (*forward, *self.hooks) if isinstance(each, Function)]
        given = {each: forward_arguments(each.node) for each in named if not isinstance(each.node, ast.Lambda)}
        with self.reaching():
            for function in [*forward, *forward, *self.hooks]:
                self._read_before.clear()
                if isinstance(function, Function) and function in given:
                    self._results.clear()
                    self.run(function, given[function])
                else:
                    self.call(frozenset({function}), Arguments((TENSOR,)), model)
            for atom in self.watchers:
                self.call(frozenset({atom}), Arguments(rest=TENSOR), model)
            for atom in self.globals.names.get("__getattr__", UNKNOWN):  # of the file's own module
                if isinstance(atom, Function):
                    self.run(atom, Arguments())
            self.read_special_methods()
            self.read_escaped(model)
            self.read_kernels()
            for function, arguments in self._too_deep:  # which grows meanwhile
                self.run(function, arguments)

    def run(self, function: Function, arguments: Arguments) -> Value:
        """What the function returns for such arguments; its body is read once for them."""
        key = (function, arguments, self.reached)
        wanted = len(self._results) < _MOST_READINGS or function.node not in self._read_before
        unread = key not in self._results and wanted
        deep = len(self._returned) >= _DEEPEST_CALL
        if unread and deep and self.reached:
            self._too_deep.append((function, arguments))
        elif unread and not deep:
            self._read_before.add(function.node)
            self._results[key] = UNKNOWN, False  # for a recursive call
            with self.watching_launches() as launched:
                result = self._read(function, arguments)
            self._results[key] = result, bool(launched)
        result, launches = self._results.get(key, (UNKNOWN, False))
        if launches:
            self.launch()
        return result

    def _read(self, function: Function, arguments: Arguments) -> Value:
        scope = Scope(parent=function.scope)
        self._bind(function, arguments, scope)
        if isinstance(function.node, ast.Lambda):
            return self.evaluate(function.node.body, scope)
        looping, self._in_loop = self._in_loop, False
        self._returned.append([])
        self._suspends.append(suspends(function.node))
        self.execute(function.node.body, scope)
        self._suspends.pop()
        self._in_loop = looping
        return join(self._returned.pop())

    def suspend(self, node: ast.Yield | ast.YieldFrom | ast.Await, value: Value) -> Value:
        """What comes back at a `yield` is anybody's: maybe a tensor."""
        if isinstance(node, ast.Await):
            return (value - frozenset(each for each in value if isinstance(each, Items))) | self.elements(value)
        given = value if isinstance(node, ast.Yield) else self.elements(value)
        if self._returned:
            self._returned[-1].append(items(given))
        ended = frozenset(each for each in value if not isinstance(each, Items))
        return LOST if isinstance(node, ast.Yield) else ended

    def _bind(self, function: Function, arguments: Arguments, scope: Scope) -> None:
        spec = function.node.args
        parameters = [*spec.posonlyargs, *spec.args]
        given = [*([frozenset({function.owner})] if function.owner else []), *arguments.positional]
        defaults = [*[None] * (len(parameters) - len(spec.defaults)), *spec.defaults, *spec.kw_defaults]
        names = [parameter.arg for parameter in (*parameters, *spec.kwonlyargs)]
        for name, default in zip(names, defaults, strict=True):
            scope.names[name] = self.evaluate(default, function.scope) | arguments.rest
        scope.names |= dict(zip(names, given[: len(parameters)], strict=False)) | dict(arguments.keywords)
        if spec.vararg:
            scope.names[spec.vararg.arg] = others_in_order(given[len(parameters) :], arguments.rest)
        if spec.kwarg:
            fixed = keeps_to_itself(function.node, spec.kwarg.arg)
            scope.names[spec.kwarg.arg] = others_by_name(arguments, names, fixed)
        home = self.home.get(function.node) if isinstance(function.node, ast.FunctionDef) else None
        if home and isinstance(function.owner, Instance):
            scope.names["super()"] = frozenset({Parent(home, function.owner)})

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Reads statements in order."""
        for statement in body:
            self._execute(statement, scope)

    def _execute(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(node, scope)
            case ast.ClassDef():
                self.define_class(node, scope)
            case ast.Return(value=value):
                result = self.evaluate(value, scope)
                if self._returned:
                    self._returned[-1].append(result)
                if self._suspends[-1:] == [True]:
                    self.carried |= self.contents(result)
            case ast.Assign(targets=targets, value=value):
                result = self.evaluate(value, scope)
                for target in targets:
                    self.assign(target, result, scope)
            case ast.AnnAssign(target=target, annotation=kind, value=value):
                self.handed_on(self.evaluate(kind, scope))
                if value is not None:
                    self.assign(target, self.evaluate(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                operands = [self.evaluate(target, scope), self.evaluate(value, scope)]
                self.assign(target, self.operate(op, operands, node), scope)
            case ast.Import() | ast.ImportFrom():
                self.import_names(node, scope)
            case ast.Global(names=names):
                scope.global_names |= set(names)
            case ast.Delete(targets=targets):
                for name in (each.id for each in targets if isinstance(each, ast.Name)):
                    scope.names.pop(name, None)
                for each in (each.value for each in targets if isinstance(each, ast.Subscript)):
                    if isinstance(each, ast.Name | ast.Attribute):
                        self.put(each, loosened(self.evaluate(each, scope)), scope)
            case _:
                self._execute_compound(node, scope)

    def _execute_compound(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self.evaluate(test, scope)
                self._branch(scope, body, orelse)
            case ast.For(target=target, iter=over, body=body) | ast.AsyncFor(target=target, iter=over, body=body):
                self.assign(target, self.elements(self.evaluate(over, scope)), scope)
                self._loop(body, scope)
                self.execute(node.orelse, scope)
            case ast.While(test=test, body=body):
                self.evaluate(test, scope)
                self._loop(body, scope)
            case ast.With() | ast.AsyncWith():
                self._execute_with(node, scope)
            case ast.Try() | ast.TryStar():
                self._execute_try(node, scope)
            case ast.Match(subject=subject, cases=cases):
                self.evaluate(subject, scope)
                self._branch(scope, *(case.body for case in cases), [])
            case ast.Raise():  # the arguments of an exception come with it
                for each in (node.exc, node.cause):
                    given = each.args if isinstance(each, ast.Call) else []
                    self.raised(join(self.evaluate(part, scope) for part in (each, *given)))
            case _:
                for child in ast.iter_child_nodes(node):
                    self.evaluate(child, scope)

    def _branch(self, scope: Scope, *bodies: Sequence[ast.stmt]) -> None:
        """Any one of the bodies runs: afterwards a name stands for what it may be after any of them."""
        before, afterwards = scope.names, list[dict[str, Value]]()
        for body in bodies:
            scope.names = dict(before)
            self.execute(body, scope)
            afterwards.append(scope.names)
        names = {name for after in afterwards for name in after}
        scope.names = {name: join(after.get(name, UNKNOWN) for after in afterwards) for name in names}

    def _loop(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Read twice, so that what one round leaves is known in the next; loops within loops once more only."""
        looping, self._in_loop = self._in_loop, True
        for _ in range(1 if looping else 2):
            self._branch(scope, body, [])
        self._in_loop = looping

    def _execute_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        captured = False
        for item in node.items:
            value = self.evaluate(item.context_expr, scope)
            captured = captured or Imported("torch.cuda.graph") in value
            if item.optional_vars is not None:
                entered = self.special(value, library.ENTERING, Arguments())
                self.assign(item.optional_vars, value | opened(value) | entered, scope)
        if captured:  # what a graph captures runs whenever it is replayed
            with self.reaching():
                self.execute(node.body, scope)
        else:
            self.execute(node.body, scope)

    def _execute_try(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        with self.watching_launches() as launched:
            self.execute(node.body, scope)
        for handler in node.handlers:
            if handler.name:
                scope.names[handler.name] = self.caught()
            if launched and falls_back(handler):
                self.report("fallback", handler, "an except branch that goes on without the kernel that failed")
        self._branch(scope, node.orelse, *(handler.body for handler in node.handlers))
        self.execute(node.finalbody, scope)
