"""Calls that look something up, or set it, by a name in a string. Fourth layer of the reader."""

import ast

from kevin_env.rules.atoms import (
    Arguments,
    Imported,
    Instance,
    Items,
    Kernel,
    Tensor,
    TensorMethod,
    TorchModule,
    Value,
    join,
    opened,
)
from kevin_env.rules.calls import EXTENSION
from kevin_env.rules.entries import at
from kevin_env.rules.modules import IMPORTERS, named
from kevin_env.rules.notes import SOME_NAME
from kevin_env.rules.objects import Objects
from kevin_env.rules.operations import OPAQUE, SOME_MODULE, root
from kevin_env.rules.syntax import constant_text, may_be

_DEVICE_TYPE: Value = frozenset({TensorMethod("device"), Imported("torch.device.type")})
"""The type of a device, which is a tensor's or made: `torch` has a package by that name."""


class Names(Objects):
    """Follows names that are written out, and judges those that are not."""

    def call_by_name(self, callee: Value, node: ast.Call, args: Arguments) -> Value | None:
        """Calls that look something up by a name in a string; None for any other call."""
        paths = {atom.path for atom in callee if isinstance(atom, Imported)}
        if "builtins.getattr" in paths and len(node.args) > 1:
            return self._get_attribute(args, node)
        if "builtins.setattr" in paths or any(path.endswith(".__setattr__") for path in paths):
            self.set_attribute(args.first(), node.args[1:2], args.positional[2:3])
        if paths & IMPORTERS and node.args:
            found = named(node.args[:1])
            self.imports += [at(node, ast.Import([ast.alias(a.path)])) for a in found if isinstance(a, Imported)]
            return found
        return None

    def _get_attribute(self, args: Arguments, node: ast.Call) -> Value:
        value, name = args.first(), constant_text(node.args[1])
        if name is not None:
            return self.attribute(value, name)
        if args.positional[1:2] and args.positional[1] and args.positional[1] <= _DEVICE_TYPE:
            return self.attribute(value, "cuda")
        if any(isinstance(atom, Tensor) or root(atom) == "torch" for atom in value):
            self._computes("getattr() of a name that is not written out", node)
            return OPAQUE
        objects = [self.instance_names.get(atom.node, {}) for atom in value if isinstance(atom, Instance)]
        held = [entry for each in objects for key, entry in each.items() if may_be(node.args[1], key)]
        if value & SOME_MODULE:
            return EXTENSION
        callable = frozenset(atom for atom in value if isinstance(atom, TorchModule | Kernel))
        return callable | join(held) | opened(frozenset(atom for atom in value if isinstance(atom, Items)))

    def set_attribute(self, receiver: Value, key: list[ast.expr], value: tuple[Value, ...]) -> None:
        """Notes what an attribute by that name was set to; where the name is not written out, as handed on."""
        name = constant_text(key[0]) if key else None
        if name is not None and value:
            self.remember(receiver, name, value[0])
        elif value:
            self.handed_on(value[0])
            super().remember(frozenset(each for each in receiver if isinstance(each, Instance)), SOME_NAME, value[0])
