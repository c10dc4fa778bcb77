"""What is known of a submission while it is read: names, attributes, findings. First of seven layers of one reader."""

import ast
import builtins
from dataclasses import replace

from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    UNKNOWN,
    Arguments,
    Atom,
    Class,
    Function,
    Future,
    Holder,
    Imported,
    Instance,
    Items,
    Kernel,
    Parent,
    Partial,
    Scope,
    Tensor,
    TensorMethod,
    Thread,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.cpp_sources import are_numbers, numbers_among
from kevin_env.rules.cpp_vendors import is_of_vendor
from kevin_env.rules.members import is_layer, itself, of_module, of_module_class, of_tensor, of_torch_module
from kevin_env.rules.modules import may_be_torchs, within
from kevin_env.rules.notes import CONTENTS, SOME_NAME, Notes
from kevin_env.rules.operations import KNOWN, OPAQUE, SOME_MODULE
from kevin_env.rules.syntax import last_name
from kevin_env.rules.tasks import is_thread
from kevin_env.rules.values import items, leaves


class Reader(Notes):
    """Facts and findings. Nothing is executed: names are followed from assignment to use."""

    def name(self, name: str, scope: Scope) -> Value:
        """What a name stands for: bound, from a star import, or a builtin."""
        found = scope.find(name)
        if found is not None:
            return found
        if hasattr(builtins, name):
            return frozenset({Imported(f"builtins.{name}")})
        unbound = OPAQUE if self.runs_text else UNKNOWN
        starred = join(self.attribute(frozenset({Imported(module)}), name) for module in self.star_imports)
        return starred or unbound

    def remember(self, receiver: Value, name: str, value: Value) -> None:
        """Notes what an attribute was set to, besides what it was set to elsewhere."""
        for atom in receiver:
            if isinstance(atom, Instance | Class):
                known = self.instance_names if isinstance(atom, Instance) else self.class_names
                names = known.setdefault(atom.node, {})
                names[name] = names.get(name, UNKNOWN) | value
            elif isinstance(atom, Function | Tensor):
                self.loose[name] = self.loose.get(name, UNKNOWN) | value
            elif isinstance(atom, Imported):
                self.patches[atom.path, name] = self.patches.get((atom.path, name), UNKNOWN) | value

    def attribute(self, value: Value, name: str) -> Value:
        """What the attribute of that name stands for."""
        return join(self._attribute(atom, name) for atom in value)

    def _attribute(self, atom: Atom, name: str) -> Value:
        match atom:
            case Tensor() if name in self.stored and not may_be_torchs(name):
                return self.loose.get(name, UNKNOWN)
            case Tensor():
                return of_tensor(name)
            case Holder():
                return LOST
            case Imported(path):
                return self._of_imported(atom, name) | self.patches.get((path, name), UNKNOWN)
            case TorchModule():
                return of_torch_module(atom, name)
            case Kernel() if name not in self.returned and is_of_vendor(name):
                return frozenset({Imported(f"vendor.{name}")})
            case Kernel():
                kinds = self.returned.get(name, set())
                return frozenset({Kernel() if are_numbers(kinds) else replace(atom, numbers=numbers_among(kinds))})
            case TensorMethod():
                return frozenset({atom})
            case Function() | Class() if name in library.REFLECTION:
                return OPAQUE | LOST
            case Function(owner=Instance() as owner) if name == "__self__":
                return frozenset({owner})
            case Function():
                if name == "register":
                    return frozenset({Imported("functools.singledispatch.register")})
                known = self.loose.get(name, UNKNOWN)
                return frozenset({atom}) | known if name in ("__call__", "__wrapped__", "forward") else known
            case Instance() if name in library.REDUCING:
                return OPAQUE | LOST
            case Instance():
                return self._of_instance(atom, name) or self._inherited(atom, name) or self._looked_up(atom, name)
            case Class(node):
                return self._of_class(node, name, atom)
            case Items() if name == "__dict__":
                return frozenset({atom})
            case Items() if name in words.MODULE_ITSELF and name not in atom.names:
                return itself(atom)
            case Items():
                if name in words.CONTAINER_METHODS or name in words.TENSOR_NAMES:
                    return UNKNOWN
                return atom.inner if name == "forward" else atom.named(name)
            case Partial(callee, given):
                return callee if name == "func" else items(leaves(given.all()))
            case Thread() | Future():
                return frozenset({atom if name in library.RUNS else Imported(f"concurrent.futures.Future.{name}")})
            case Parent(node, owner):
                return self._member(self.lineage(node)[1:], name, owner) or self._inherited(owner, name)
            case _:
                return UNKNOWN

    def _looked_up(self, atom: Instance, name: str) -> Value:
        """What an attribute may be that the object does not have."""
        own = self.instance_names.get(atom.node, {})
        if name in own:
            return UNKNOWN
        given = self.special(frozenset({atom}), library.LOOKING_UP, Arguments())
        return given | own.get(SOME_NAME, UNKNOWN) | own.get(CONTENTS, UNKNOWN)

    def _of_imported(self, atom: Imported, name: str) -> Value:
        """Of a module of which nobody knows which it is: torch's, unless the file has it in C++ or in a string."""
        unknown, own = atom in SOME_MODULE, self.written.get(name, UNKNOWN)
        if not unknown:
            path = within(atom.path, name)
            return frozenset({Imported(path)}) | (UNKNOWN if atom.path.split(".")[0] in KNOWN else own)
        if own or name in self.returned or not may_be_torchs(name):
            return own | self._attribute(Kernel(gives_tensors=True), name)
        return frozenset({Imported(f"torch.{name}")})

    def entries(self, instance: Instance) -> Value:
        """What may run when the instance is called: its own `__call__`, and its `forward`."""
        return self._member(self.lineage(instance.node), "__call__", instance) | self._attribute(instance, "forward")

    def lineage(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and those of the submission's classes that it inherits from, nearest first."""
        found = [node]
        for each in found:
            parents = (base.node for base in join(self.bases.get(each, ())) if isinstance(base, Class))
            found += [parent for parent in parents if parent not in found]
        return found

    def _of_instance(self, atom: Instance, name: str) -> Value:
        own = self.instance_names.get(atom.node, {})
        if name in words.MODULE_CONTENTS and not self._member(self.lineage(atom.node), name, atom):
            return of_module(join(own.values()), name)
        return own.get(name, UNKNOWN) | self._member(self.lineage(atom.node), name, atom)

    def _of_class(self, node: ast.ClassDef, name: str, owner: Class) -> Value:
        found = self._member(self.lineage(node), name, owner)
        if found or name != "apply":
            return found or (of_module_class(name) if name in words.MODULE_ITSELF else UNKNOWN)
        context = Instance(node)
        return frozenset(
            Function(atom.node, atom.scope, context)
            for atom in self._member(self.lineage(node), "forward", owner)
            if isinstance(atom, Function)
        )

    def _member(self, lineage: list[ast.ClassDef], name: str, owner: Instance | Class) -> Value:
        for node in lineage:
            found = self.class_names.get(node, {}).get(name)
            if found is not None:
                return join(self._bound(atom, owner) for atom in found)
        return UNKNOWN

    def overloads(self, left: Value, op: ast.AST) -> bool:
        """Whether the operator calls a method of the submission's own, whatever is on its right."""
        name = library.METHODS.get(type(op).__name__, "")
        own = [self._member(self.lineage(each.node), name, each) for each in left if isinstance(each, Instance)]
        return bool(own) and len(own) == len(left) and all(own)

    def _bound(self, atom: Atom, owner: Instance | Class) -> Value:
        if isinstance(atom, Instance) and isinstance(owner, Instance):
            given = self.special(frozenset({atom}), frozenset({"__get__"}), Arguments((frozenset({owner}),)))
            return given | frozenset({atom})
        if not isinstance(atom, Function) or isinstance(atom.node, ast.Lambda):
            return frozenset({atom})
        decorators = {last_name(decorator) for decorator in atom.node.decorator_list}
        if "staticmethod" in decorators or (isinstance(owner, Class) and "classmethod" not in decorators):
            return frozenset({atom})
        bound = Function(atom.node, atom.scope, owner)
        return self.run(bound, Arguments()) if decorators & {"property", "cached_property"} else frozenset({bound})

    def _inherited(self, atom: Instance, name: str) -> Value:
        """From the imported classes it inherits from."""
        bases = [base for each in self.lineage(atom.node) for base in join(self.bases.get(each, ()))]
        imported = [base.path for base in bases if isinstance(base, Imported)]
        if name == "start" and any(is_thread(path) for path in imported):
            return self.attribute(frozenset({atom}), "run")
        if name in words.MODULE_ITSELF:
            return itself(atom)
        computing = [path for path in imported if is_layer(path) or path.endswith(".Sequential")]
        if computing and name != "__init__":
            return join(of_torch_module(TorchModule(path), name) for path in computing)
        known = name in words.MODULE_METHODS or name.endswith("_hooks")
        return of_module_class(name) if known else UNKNOWN
