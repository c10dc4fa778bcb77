"""What objects do that no call shows: special methods, patches, what is handed on. Third layer of the reader."""

import ast
import re

from kevin_env.parsing import walk
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    TENSOR,
    UNKNOWN,
    Arguments,
    Class,
    Function,
    Future,
    Imported,
    Instance,
    Kernel,
    Parent,
    Scope,
    Tensor,
    TensorMethod,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.calls import EXTENSION, KERNEL, Calls
from kevin_env.rules.cpp import operations
from kevin_env.rules.cpp_sources import are_numbers, sources_in
from kevin_env.rules.cpp_vendors import is_of_vendor
from kevin_env.rules.modules import looked_up
from kevin_env.rules.notes import CONTENTS
from kevin_env.rules.operations import KNOWN, is_operation, root
from kevin_env.rules.syntax import constant_text, local_names
from kevin_env.rules.values import has_tensor, leaves

_EXPLICIT = frozenset({"__init__", "__new__", "__call__", "__post_init__", "__repr__", "__str__"})
"""Special methods that are read where they are called, or that only tell what an object is."""
_VENDOR = "vendor"
_MODULE = re.compile(r"\b(?:PYBIND11_MODULE\s*\(|PyInit_\w)")


class Objects(Calls):
    """Calls, and what is called without one."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._sources = {
            target.id: text
            for node in tree.body
            if isinstance(node, ast.Assign) and (text := constant_text(node.value)) is not None
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self._written = sources_in(tree)
        self._builds_module = any(_MODULE.search(source) for source in self._written)

    def read_special_methods(self) -> None:
        """Reads what Python calls for an operator, a lookup or a block, and what that gives, in every class."""
        for node, names in list(self.class_names.items()):
            for name in [each for each in names if each.startswith("__") and each.endswith("__")]:
                for atom in names[name] if name not in _EXPLICIT else ():
                    if isinstance(atom, Function):
                        launches = self.launches
                        given = self.run(Function(atom.node, atom.scope, Instance(node)), Arguments())
                        for each in given:
                            if isinstance(each, Function | TorchModule) or is_operation(each):
                                self.call(frozenset({each}), Arguments((TENSOR,)), node)
                        self.launches = launches

    def read_kernels(self) -> None:
        """Reads what kernels in Triton's language call of Python: its interpreter runs that as any other code.

        And what functions call of torch that another package wraps; it may compile what they call of NumPy.
        """
        launches = self.launches
        for kernel in (*self.kernels, *self.foreign):
            packages = ("torch",) if kernel in self.foreign else ("torch", "numpy", "scipy")
            nodes = walk(kernel.node)
            scope = Scope(parent=kernel.scope, names=dict.fromkeys(local_names(nodes), UNKNOWN))
            for node in [each for each in nodes if isinstance(each, ast.Call)]:
                for atom in self.resolve(node.func, scope):
                    if isinstance(atom, Function):
                        self.run(atom, Arguments())
                    elif isinstance(atom, TensorMethod) or root(atom) in packages:
                        self.call(frozenset({atom}), Arguments((TENSOR,)), node)
        self.launches = launches

    def remember(self, receiver: Value, name: str, value: Value) -> None:
        """As without patches; what something imported or not known is given may be called by whoever calls that."""
        super().remember(receiver, name, value)
        self.special(receiver, frozenset({"__setattr__"}), Arguments((UNKNOWN, value)))
        for atom in [each for each in receiver if isinstance(each, Instance)]:
            setters = [self.setters[each, name] for each in self.lineage(atom.node) if (each, name) in self.setters]
            for function in setters:
                self.run(Function(function.node, function.scope, atom), Arguments((value,)))
        if any(isinstance(atom, Imported) for atom in receiver):
            self.hooks += self.to_be_called(value)
        elif not any(isinstance(atom, Instance | Class | Function) for atom in receiver):
            self.handed_on(value)
        if name == words.MODEL and not receiver & self.globals.names.get(name, UNKNOWN):
            self.globals.names[name] = self.globals.names.get(name, UNKNOWN) | value

    def read_escaped(self, node: ast.AST) -> None:
        """Reads what was handed on, as if it were called with nothing that is known."""
        for atom in self.escaped:
            given = self.run(atom, Arguments()) if isinstance(atom, Function) else frozenset({atom})
            called = frozenset(each for each in given if isinstance(each, TorchModule) or is_operation(each))
            if called:
                self.call(called, Arguments((TENSOR,)), node)

    def construct(self, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
        """An instance; a tensor as well where the class is one of tensors; and whatever `__new__` gives."""
        instance = super().construct(atom, arguments, node)
        bases = join(value for each in self.lineage(atom.node) for value in self.bases.get(each, ()))
        tensor = any(isinstance(base, Imported) and base.path in words.TENSOR_CLASSES for base in bases)
        new = frozenset(each for each in self.attribute(instance, "__new__") if isinstance(each, Function))
        made = self.call(new, arguments, node) if new else UNKNOWN
        others = frozenset(each for each in made if isinstance(each, Tensor | Instance | TorchModule))
        own = self._member(self.lineage(atom.node), "__init__", Instance(atom.node))
        if not own:  # one of Python's classes keeps what it is given
            self.handed_on(leaves(arguments.all()))
            self.remember(instance, CONTENTS, arguments.all())
        return instance | (TENSOR if tensor else UNKNOWN) | others

    def evaluate_super(self, node: ast.Call, scope: Scope) -> Value:
        """What `super()` or `super(Class, self)` stands for."""
        here = scope.find("super()") or UNKNOWN
        named = self.evaluate(node.args[0], scope) if node.args else UNKNOWN
        owners = [atom.owner for atom in here if isinstance(atom, Parent)]
        return frozenset(Parent(a.node, owner) for a in named for owner in owners if isinstance(a, Class)) or here

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """As without; a tensor cannot be called, so what can is a function that torch made."""
        if callee == TENSOR or (callee == LOST and has_tensor(arguments.all())):
            return self._computes("a call of something that torch made", node)
        to_kernel = any(isinstance(atom, Kernel) for atom in callee)
        if to_kernel or all(isinstance(atom, Future) for atom in callee):
            self._hand_over(arguments.all(), to_kernel)
        return super().call(callee, arguments, node)

    def _hand_over(self, handed: Value, to_kernel: bool) -> None:
        """What a kernel or something unknown is given may be called by it: functions of Python's, torch's operations.

        A constructor gives functions to what is not known for good reasons, such as `self.apply(initialise)`.
        """
        for atom in self.runnable(handed):
            if isinstance(atom, Function) and self.reached:
                self.run(atom, Arguments())
            elif is_operation(atom) or (isinstance(atom, Function) and to_kernel):
                self.escaped.append(atom)

    def _call_imported(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        package = path.split(".")[0]
        if (module := looked_up(path, arguments, node)) is not None:
            return module
        if package not in KNOWN and is_of_vendor(path.rsplit(".", 1)[-1]) and package != _VENDOR:
            return self._computes(path, node)
        if package == _VENDOR:
            what, cpp, _ = path.removeprefix(f"{_VENDOR}.").partition(" in C++")
            return self._computes(what + cpp, node)
        if package == "triton" and path.endswith(".jit"):
            self.kernels += [atom for atom in arguments.first() if isinstance(atom, Function)]
        elif package == "triton" and (self.reached or not path.startswith("triton.testing.")):
            self.handed_on(arguments.all() - (arguments.first() if path in words.OF_KERNELS else UNKNOWN))
        if (package in words.COMPUTING_PACKAGES or path.startswith("triton.ops.")) and has_tensor(arguments.all()):
            return self._call_numpy(path, arguments, node)
        makes_extension = path in words.EXTENSION_MAKERS or path.endswith(".load_inline")  # also of other vendors
        if makes_extension and isinstance(node, ast.Call):
            return EXTENSION | self._called_in(node)
        if path in words.LIBRARY_MAKERS and isinstance(node, ast.Call) and node.args:
            name = (constant_text(node.args[0]) or "").rsplit("/", 1)[-1]
            if name.startswith(words.COMPUTING_LIBRARIES):
                return frozenset({Imported(f"{_VENDOR}.{name}")})
            return super()._call_imported(path, arguments, node) | self._called_in(node)
        if self._builds_module and package not in KNOWN and isinstance(node, ast.Call):
            kinds = self.returned.get(path.rsplit(".", 1)[-1], set())
            return self.call((KERNEL if are_numbers(kinds) else EXTENSION) | self._called_in(node), arguments, node)
        return super()._call_imported(path, arguments, node)

    def _call_torch(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        if "register_module_" in path and path.endswith("_hook"):
            self.watchers += self.to_be_called(arguments.all())
            return UNKNOWN
        if path.endswith(".register_parametrization"):
            modules = [atom for atom in arguments.all() if isinstance(atom, Instance | TorchModule)]
            self.hooks += [atom for atom in self.runnable(frozenset(modules)) if atom not in arguments.first()]
            return UNKNOWN
        return super()._call_torch(path, arguments, node)

    def _call_allowed_namespace(self, path: str, arguments: Arguments) -> Value:
        result = super()._call_allowed_namespace(path, arguments)
        if path.endswith(".impl"):  # it may be an operator that is allowed otherwise
            self.hooks += self.to_be_called(arguments.all())
        return result | frozenset(self.to_be_called(arguments.all()))

    def _called_in(self, node: ast.Call) -> Value:
        """What sources in C++ call that computes: those in this call, and those that the file writes elsewhere."""
        inside = [each for argument in (*node.args, *(k.value for k in node.keywords)) for each in walk(argument)]
        given = [each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        named = {each.id for each in inside if isinstance(each, ast.Name)} & self._sources.keys()
        called = operations(dict.fromkeys([*given, *(self._sources[name] for name in sorted(named)), *self._written]))
        return frozenset({Imported(f"{_VENDOR}.{called[0]} in C++")} if called else ())
