"""What the statements of a submission do, and what `forward` reaches. Last layer of the reader."""

import ast

from kevin_env.parsing import nodes_of
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    TENSOR,
    UNKNOWN,
    Arguments,
    Class,
    Function,
    Instance,
    Parent,
    Scope,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.binding import others_by_name, others_in_order
from kevin_env.rules.plain import plain
from kevin_env.rules.statements import Statements
from kevin_env.rules.syntax import forward_arguments, keeps_to_itself, suspends
from kevin_env.rules.texts import code_in

_MOST_READINGS = 500
"""Functions are read once for each kind of arguments; in a file that needs more than this, once altogether."""
_DEEPEST_CALL = 32


class SubmissionReader(Statements):
    """Reads a whole submission: first the module and the constructor, then what `forward` reaches."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._results: dict[tuple[Function, Arguments, bool], tuple[Value, bool]] = {}
        self._read_before: set[ast.AST] = set()
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
