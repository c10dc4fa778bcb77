"""What lists, sets and dictionaries hold, under whatever name they are filled. Seventh layer of the reader."""

import ast
from dataclasses import replace

from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    UNKNOWN,
    Arguments,
    Cell,
    Function,
    Instance,
    Items,
    Scope,
    TorchModule,
    Value,
    join,
    opened,
)
from kevin_env.rules.binding import loosened
from kevin_env.rules.names import Names
from kevin_env.rules.notes import CONTENTS
from kevin_env.rules.operations import is_operation
from kevin_env.rules.syntax import constant_key, constant_text
from kevin_env.rules.values import has_tensor, items, mapping, with_entry

FILLING = frozenset(
    {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault", "add_module",
     "register_module"}
)  # fmt: skip
_OPENING = frozenset({"extend", "extendleft", "update"})
_MOVING = frozenset({"pop", "popleft", "reverse", "sort", "insert", "remove", "rotate", "appendleft", "extendleft"})
_TAKING = frozenset({"pop", "get", "setdefault", "popitem"})


class Containers(Names):
    """Follows what is put into containers and taken out of them."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._cells: dict[ast.AST, Cell] = {}

    def _dictionary(self, keys: list[ast.expr | None], values: list[Value]) -> Value:
        """With the names of all entries where they are known, also of those that come by `**`."""
        entries, loose = dict[str, Value](), list[Value]()
        for key, value in zip(keys, values, strict=True):
            text = constant_text(key) if key else None
            if text is not None:
                entries[text] = value
                continue
            inner = [atom for atom in value if isinstance(atom, Items)] if key is None else []
            for atom in inner:
                entries |= {name: entries.get(name, UNKNOWN) | atom.named(name) for name in atom.names}
            loose += (
                [value] if key else [atom.inner for atom in inner if not atom.names] + [atom.given() for atom in inner]
            )
        return items(
            *entries.values(), *(each for each in loose if each), names=tuple(entries) if not any(loose) else ()
        )

    def _note_key(self, node: ast.AST, key: Value) -> None:
        if kept := keys_among(key):
            self._cells.setdefault(node, Cell()).add(None, kept)

    def _with_cell(self, made: Value, node: ast.AST) -> Value:
        """A list, a set or a dictionary with the place where what it is given later is noted for all of its names."""
        cell = self._cells.setdefault(node, Cell())
        return frozenset(replace(atom, cell=cell) if isinstance(atom, Items) else atom for atom in made)

    def _call_of_container(self, node: ast.Call, receiver: Value, args: Arguments, scope: Scope) -> Value | None:
        function = node.func
        if not isinstance(function, ast.Attribute):
            return None
        contained = frozenset(atom for atom in receiver if isinstance(atom, Items))
        if not contained:
            return self._call_of_own_container(function.attr, receiver, args)
        ambiguous = function.attr in words.TENSOR_NAMES and contained != receiver
        if ambiguous or self.attribute(contained, function.attr):
            return None
        name = constant_text(node.args[0]) if node.args else None
        moving = function.attr in _MOVING
        self._fill(contained, function.attr, args, name)
        if moving or function.attr in FILLING:
            filled = loosened(contained) if moving else contained
            if function.attr in FILLING:
                given = join((*args.positional, *(value for _, value in args.keywords), args.rest))
                filled |= items(opened(given) if function.attr in _OPENING else given)
            if isinstance(function.value, ast.Subscript):
                self._assign_element(function.value, filled, scope)
            elif isinstance(function.value, ast.Name | ast.Attribute):
                self.put(function.value, filled, scope)
        if function.attr == "items":
            held = [atom for atom in contained if atom.cell]
            keys = join(atom.cell.entries.get(None, UNKNOWN) for atom in held if atom.cell)
            return items(items(keys_among(keys), opened(contained), exact=True))
        if function.attr == "popitem":
            return items(UNKNOWN, opened(contained), exact=True)
        if function.attr in _TAKING:
            return join((*(atom.named(name) for atom in contained), *args.positional[1:]))
        return contained if function.attr in words.CONTAINER_METHODS else contained | self.unread(args.all())

    def _call_of_own_container(self, method: str, receiver: Value, args: Arguments) -> Value | None:
        """The same of an object whose class inherits from one of Python's containers."""
        objects = frozenset(each for each in receiver if isinstance(each, Instance) and self.is_container(each))
        if (
            not objects
            or method not in words.CONTAINER_METHODS
            or self.attribute(objects, method) - self.held_by(objects)
        ):
            return None
        if method in FILLING | {"__setitem__"}:
            self.remember(objects, CONTENTS, args.all())
        held = self.held_by(objects)
        return opened(held) | held | items(opened(held)) if method in _TAKING else held | items(opened(held) | held)

    def _fill(self, contained: Value, method: str, args: Arguments, name: str | None) -> None:
        """Notes for all names of the containers what a method puts into them, or elsewhere in them."""
        for cell in [atom.cell for atom in contained if isinstance(atom, Items) and atom.cell]:
            if method in _MOVING:
                cell.add(None, opened(contained))
            if method == "update":
                for key, value in args.keywords:
                    cell.add(key, value)
                args = Arguments((mapping(Arguments(args.positional)),))
            if method in FILLING:
                given = join((*args.positional, args.rest))
                cell.add(name if method == "setdefault" else None, opened(given) if method in _OPENING else given)

    def _assign_element(self, node: ast.Subscript, value: Value, scope: Scope) -> None:
        held, index = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if has_tensor(held) and has_tensor(index | opened(index)):
            self._computes("indexing with a tensor", node)
        containers = [atom for atom in held if isinstance(atom, Items)]
        for cell in [atom.cell for atom in containers if atom.cell]:
            cell.add(
                constant_key(node.slice), value | (opened(value) if isinstance(node.slice, ast.Slice) else UNKNOWN)
            )
            if kept := keys_among(index):
                cell.add(None, kept)
        if containers and isinstance(node.value, ast.Name | ast.Attribute):
            filled = join(with_entry(atom, constant_text(node.slice), value) for atom in containers)
            self.put(node.value, held - frozenset(containers) | filled, scope)
        else:
            if not has_tensor(held):
                self.handed_on(value)
            objects = frozenset(atom for atom in held if isinstance(atom, Instance))
            if objects and not self.special(objects, frozenset({"__setitem__"}), Arguments((index, value))):
                self.remember(objects, CONTENTS, items(value) | keys_among(index))
            if isinstance(node.value, ast.Attribute) and node.value.attr == "__dict__":
                self.set_attribute(self.resolve(node.value.value, scope), [node.slice], (value,))

    def put(self, target: ast.Name | ast.Attribute, filled: Value, scope: Scope) -> None:
        """Notes what a container holds now; of one that is bound further out, besides what else it may hold."""
        home = scope.home(target.id) if isinstance(target, ast.Name) else scope
        if isinstance(target, ast.Name) and home and home is not scope:
            home.names[target.id] |= filled
        else:
            self.assign(target, filled, scope)


def keys_among(value: Value) -> Value:
    """What of the keys of a dictionary is more than a number, a text or a type."""
    return frozenset(
        atom for atom in value if atom in LOST or isinstance(atom, Function | TorchModule) or is_operation(atom)
    )
