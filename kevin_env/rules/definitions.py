"""What definitions bind: functions, classes, what is imported. Fifth layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.rules.expressions import Expressions
from kevin_env.rules.values import UNKNOWN, Arguments, Class, Function, Imported, Scope, Value


class Definitions(Expressions):
    """Binds names as statements do that define something."""

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Reads statements in order."""
        raise NotImplementedError

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """Binds a function, as its decorators leave it."""
        function: Value = frozenset({Function(node, scope)})
        for decorator in reversed(node.decorator_list):
            decorated = self.call(self.evaluate(decorator, scope), Arguments((function,)), decorator)
            function = frozenset(atom for atom in decorated if not isinstance(atom, Imported)) or function
        scope.names[node.name] = function

    def define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        """Reads the body of a class, and binds it."""
        self.bases[node] = tuple(self.evaluate(base, scope) for base in node.bases)
        body = Scope(parent=scope, of_class=True)
        self.execute(node.body, body)
        self.class_names[node] = body.names
        scope.names[node.name] = frozenset({Class(node)})
        told = self._member(self.lineage(node)[1:], "__init_subclass__", Class(node))
        if told:
            self.call(told, Arguments((frozenset({Class(node)}),)), node)

    def construct(self, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
        """As without a metaclass; whatever its `__call__` gives as well."""
        made = super().construct(atom, arguments, node)
        for each in (keyword.value for keyword in atom.node.keywords if keyword.arg == "metaclass"):
            called = self.attribute(self.evaluate(each, self.globals), "__call__")
            made |= self.call(called, arguments, node) if called else UNKNOWN
        return made

    def import_names(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """Binds what is imported."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name if alias.asname else alias.name.split(".")[0]
                scope.names[alias.asname or path] = frozenset({Imported(path)})
            elif alias.name == "*":
                self.star_imports.append(node.module or "")
            else:
                scope.names[alias.asname or alias.name] = frozenset({Imported(f"{node.module or ''}.{alias.name}")})
