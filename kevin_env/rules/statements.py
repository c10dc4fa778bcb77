"""What statements do. Tenth layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.rules import library
from kevin_env.rules.atoms import LOST, UNKNOWN, Arguments, Imported, Items, Scope, Value, join, opened
from kevin_env.rules.binding import loosened
from kevin_env.rules.definitions import Definitions
from kevin_env.rules.syntax import falls_back
from kevin_env.rules.values import items


class Statements(Definitions):
    """Reads statements in order."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._returned: list[list[Value]] = []
        """What the functions that are being read return, innermost last ..."""
        self._suspends: list[bool] = []
        """... and whether they are generators or coroutines."""
        self._in_loop = False

    def suspend(self, node: ast.Yield | ast.YieldFrom | ast.Await, value: Value) -> Value:
        """What comes back at a `yield` is anybody's: maybe a tensor."""
        if isinstance(node, ast.Await):
            return (value - frozenset(each for each in value if isinstance(each, Items))) | self.elements(value)
        given = value if isinstance(node, ast.Yield) else self.elements(value)
        if self._returned:
            self._returned[-1].append(items(given))
        ended = frozenset(each for each in value if not isinstance(each, Items))
        return LOST if isinstance(node, ast.Yield) else ended

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
                for cell in [atom.cell for atom in operands[0] if isinstance(atom, Items) and atom.cell]:
                    cell.add(None, opened(operands[1]))  # a list has it under all of its names
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

    def _branch(self, scope: Scope, *bodies: Sequence[ast.stmt]) -> list[bool]:
        """Any one of the bodies runs: afterwards a name stands for what it may be after any of them.

        Returns:
            Whether each of them launches a kernel.
        """
        before, afterwards, launching = scope.names, list[dict[str, Value]](), list[bool]()
        for body in bodies:
            scope.names = dict(before)
            with self.watching_launches() as launched:
                self.execute(body, scope)
            afterwards.append(scope.names)
            launching.append(bool(launched))
        names = {name for after in afterwards for name in after}
        scope.names = {name: join(after.get(name, UNKNOWN) for after in afterwards) for name in names}
        return launching

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
        _, *kept = self._branch(scope, node.orelse, *(handler.body for handler in node.handlers))
        for handler, launches in zip(node.handlers, kept, strict=True):
            if launched and not launches and falls_back(handler):
                self.report("fallback", handler, "an `except` branch that continues without the kernel")
        self.execute(node.finalbody, scope)
