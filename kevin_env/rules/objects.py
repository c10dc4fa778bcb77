"""What objects do that no call shows: special methods, patches, what is handed on. Between calls and expressions."""

import ast

from kevin_env.rules import vocabulary as words
from kevin_env.rules.calls import EXTENSION, Calls
from kevin_env.rules.cpp import operations
from kevin_env.rules.syntax import constant_text
from kevin_env.rules.values import (
    TENSOR,
    UNKNOWN,
    Arguments,
    Atom,
    Class,
    Function,
    Imported,
    Instance,
    Tensor,
    TorchModule,
    Value,
    has_tensor,
    items,
    join,
    opened,
)

_EXPLICIT = frozenset({"__init__", "__new__", "__call__", "__post_init__", "__repr__", "__str__"})
"""Special methods that are read where they are called, or that only tell what an object is."""
_VENDOR = "vendor"


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

    def read_special_methods(self) -> None:
        """Reads what Python calls for an operator, a lookup or a block, and what that gives, in every class."""
        for node, names in list(self.class_names.items()):
            for name in [each for each in names if each.startswith("__") and each.endswith("__")]:
                for atom in names[name] if name not in _EXPLICIT else ():
                    if isinstance(atom, Function):
                        launches = self.launches
                        given = self.run(Function(atom.node, atom.scope, Instance(node)), Arguments())
                        for each in given:
                            if isinstance(each, Function | TorchModule) or _is_operation(each):
                                self.call(frozenset({each}), Arguments((TENSOR,)), node)
                        self.launches = launches

    def remember(self, receiver: Value, name: str, value: Value) -> None:
        """As without patches; what something imported is replaced by is called by whoever calls that."""
        super().remember(receiver, name, value)
        if any(isinstance(atom, Imported) for atom in receiver):
            self.hooks += [atom for atom in value if isinstance(atom, Function) or _is_operation(atom)]

    def construct(self, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
        """An instance; a tensor as well where the class is one of tensors; and whatever `__new__` gives."""
        instance = super().construct(atom, arguments, node)
        bases = join(value for each in self.lineage(atom.node) for value in self.bases.get(each, ()))
        tensor = any(isinstance(base, Imported) and base.path in words.TENSOR_CLASSES for base in bases)
        made = self.call(new, arguments, node) if (new := self.attribute(instance, "__new__")) else UNKNOWN
        return instance | (TENSOR if tensor else UNKNOWN) | frozenset(each for each in made if isinstance(each, Tensor))

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """As without; a tensor cannot be called, so what can is a function that torch made."""
        if callee == TENSOR:
            return self._computes("a call of something that torch made", node)
        return super().call(callee, arguments, node)

    def _call_imported(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        root = path.split(".")[0]
        if root == _VENDOR:
            what, cpp, _ = path.removeprefix(f"{_VENDOR}.").partition(" in C++")
            return self._computes(what + cpp, node)
        if root in words.COMPUTING_PACKAGES and has_tensor(arguments.all()):
            return self._call_numpy(path, arguments, node)
        if path in words.EXTENSION_MAKERS and isinstance(node, ast.Call):
            called = operations(self._sources_of(node))
            return EXTENSION | frozenset({Imported(f"{_VENDOR}.{called[0]} in C++")} if called else ())
        if path in words.LIBRARY_MAKERS and isinstance(node, ast.Call) and node.args:
            name = (constant_text(node.args[0]) or "").rsplit("/", 1)[-1]
            if name.startswith(words.COMPUTING_LIBRARIES):
                return frozenset({Imported(f"{_VENDOR}.{name}")})
        return super()._call_imported(path, arguments, node)

    def _call_torch(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        if "register_module_" in path and path.endswith("_hook"):
            self.hooks += [atom for atom in arguments.all() if isinstance(atom, Function)]
            return UNKNOWN
        return super()._call_torch(path, arguments, node)

    def _call_allowed_namespace(self, path: str, arguments: Arguments) -> Value:
        result = super()._call_allowed_namespace(path, arguments)
        if path.endswith(".impl"):  # it may be an operator that is allowed otherwise
            self.hooks += [atom for atom in arguments.all() if isinstance(atom, Function)]
        return result | frozenset(
            atom for atom in arguments.all() if _is_operation(atom) or isinstance(atom, TorchModule)
        )

    def _call_stdlib(self, path: str, arguments: Arguments, handed: Value, node: ast.AST) -> Value:
        result = super()._call_stdlib(path, arguments, handed, node)
        if path.startswith(words.PASSING):
            return arguments.first() or result
        if path.startswith(words.COLLECTING):
            result = items(opened(arguments.all()) | (arguments.all() & TENSOR))
        if not path.startswith("functools."):
            for atom in arguments.all():  # it is there to be called
                if _is_operation(atom):
                    self._computes(getattr(atom, "path", ""), node)
                elif isinstance(atom, Function) and path.split(".")[0] not in ("threading", *words.EXECUTORS):
                    self.run(atom, Arguments())
        return result

    def _sources_of(self, node: ast.Call) -> list[str]:
        """The sources that an extension is built from, as far as they are written out in the file."""
        inside = [each for argument in (*node.args, *(k.value for k in node.keywords)) for each in ast.walk(argument)]
        texts = [each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        named = {each.id for each in inside if isinstance(each, ast.Name)} & self._sources.keys()
        return [*texts, *(self._sources[name] for name in sorted(named))]


def _is_operation(atom: Atom) -> bool:
    path = atom.path if isinstance(atom, Imported) else ""
    return path.startswith("torch.") and path.rsplit(".", 1)[-1].strip("_") in words.OPERATIONS
