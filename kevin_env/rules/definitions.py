"""What definitions bind: functions, classes, what is imported. Sixth layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.rules.atoms import UNKNOWN, Arguments, Class, Function, Imported, Scope, Value, join
from kevin_env.rules.calls import KERNEL
from kevin_env.rules.expressions import Expressions
from kevin_env.rules.operations import KNOWN, root
from kevin_env.rules.syntax import last_name


class Definitions(Expressions):
    """Binds names as statements do that define something."""

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Reads statements in order."""
        raise NotImplementedError

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """Binds a function, as its decorators leave it."""
        function: Value = frozenset({Function(node, scope)})
        for decorator in reversed(node.decorator_list):
            decorated = self.call(self.resolve(decorator, scope), Arguments((function,)), decorator)
            if not decorated and isinstance(decorator, ast.Call) and self._is_foreign(decorator.func, scope):
                decorated = KERNEL
                self.foreign += [atom for atom in function if isinstance(atom, Function)]
            function = frozenset(atom for atom in decorated if not isinstance(atom, Imported)) or function
        home = self.home.get(node) if isinstance(node, ast.FunctionDef) else None
        if home and any(last_name(each) == "setter" for each in node.decorator_list):
            self.setters[home, node.name] = Function(node, scope)
        else:
            scope.names[node.name] = function

    def _is_foreign(self, node: ast.expr, scope: Scope) -> bool:
        """Whether it is of a package that is not known here: its decorators may compile what they are given."""
        return any(root(atom) not in (*KNOWN, "", "builtins") for atom in self.evaluate(node, scope))

    def define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        """Reads the body of a class, and binds it."""
        self.bases[node] = tuple(self.resolve(base, scope) for base in node.bases)
        body = Scope(parent=scope, of_class=True)
        self.execute(node.body, body)
        self.class_names[node] = body.names
        scope.names[node.name] = frozenset({Class(node)})
        owner: Value = frozenset({Class(node)})
        self.special(join(body.names.values()), frozenset({"__set_name__"}), Arguments((owner,)))
        given = [(each.arg, self.evaluate(each.value, scope)) for each in node.keywords if each.arg != "metaclass"]
        told = self._member(self.lineage(node)[1:], "__init_subclass__", Class(node))
        if told:
            self.call(
                told, Arguments((frozenset({Class(node)}),), tuple((name or "", value) for name, value in given)), node
            )

    def construct(self, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
        """As without a metaclass; whatever its `__call__` gives as well."""
        made = super().construct(atom, arguments, node)
        for each in (keyword.value for keyword in atom.node.keywords if keyword.arg == "metaclass"):
            called = self.attribute(self.evaluate(each, self.globals), "__call__")
            made |= self.call(called, arguments, node) if called else UNKNOWN
        return made

    def import_names(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """Binds what is imported."""
        self.imports.append(node)
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name if alias.asname else alias.name.split(".")[0]
                scope.names[alias.asname or path] = frozenset({Imported(path)})
            elif alias.name == "*":
                self.star_imports.append(node.module or "")
            else:
                module: Value = frozenset({Imported(node.module or "")})
                scope.names[alias.asname or alias.name] = self.attribute(module, alias.name)
