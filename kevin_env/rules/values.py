"""What a name may stand for while a submission is read: sets of atoms; the empty set is "not known"."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Scope:
    """Names of one function body (or of the module, which has no parent)."""

    parent: "Scope | None" = None
    names: "dict[str, Value]" = field(default_factory=dict[str, "Value"])
    global_names: set[str] = field(default_factory=set[str])
    of_class: bool = False
    """The body of a class: functions defined in it do not see its names."""

    def find(self, name: str) -> "Value | None":
        """What the name stands for here or further out; None when it was never bound."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.of_class):
                return scope.names[name]
            scope = scope.parent
        return None


@dataclass(frozen=True)
class Tensor:
    """A tensor, or a NumPy view of one."""


@dataclass(frozen=True)
class TensorMethod:
    """An attribute of a tensor that is not a tensor: usually a bound method."""

    name: str


@dataclass(frozen=True)
class Imported:
    """Something of an imported package (or of `builtins`), by its full dotted path."""

    path: str


@dataclass(frozen=True)
class TorchModule:
    """An instance of a class of `torch.nn`."""

    path: str


@dataclass(frozen=True)
class Kernel:
    """An own kernel, or the extension or library that holds it."""

    gives_tensors: bool = False


@dataclass(frozen=True)
class Function:
    """A function or lambda of the submission, with what it is bound to."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    owner: "Instance | Class | None" = None


@dataclass(frozen=True)
class Class:
    """A class of the submission."""

    node: ast.ClassDef


@dataclass(frozen=True)
class Instance:
    """An instance of a class of the submission."""

    node: ast.ClassDef


@dataclass(frozen=True)
class Parent:
    """`super()` in a method of the class, called on the owner."""

    node: ast.ClassDef
    owner: Instance


@dataclass(frozen=True)
class Items:
    """A container, or an iterator over one: each element in order where `exact`, else one for all of them."""

    each: "tuple[Value, ...]"
    exact: bool = False
    depth: int = 1

    @property
    def inner(self) -> "Value":
        """What any element may stand for."""
        return join(self.each)


Atom = Tensor | TensorMethod | Imported | TorchModule | Kernel | Function | Class | Instance | Parent | Items
Value = frozenset[Atom]

UNKNOWN: Value = frozenset()
TENSOR: Value = frozenset({Tensor()})
_DEEPEST = 4


@dataclass(frozen=True)
class Arguments:
    """What a call hands over. `rest` is what came by `*` or `**`."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value = UNKNOWN

    def all(self) -> Value:
        """Every value handed over, containers opened."""
        handed = join((*self.positional, *(value for _, value in self.keywords), self.rest))
        return handed | opened(handed)

    def first(self) -> Value:
        """The first positional value."""
        return self.positional[0] if self.positional else UNKNOWN


def join(values: Iterable[Value]) -> Value:
    """Everything that one of the values may stand for."""
    return UNKNOWN.union(*values)


def has_tensor(value: Value) -> bool:
    """Whether it may be a tensor."""
    return value >= TENSOR


def items(*each: Value, exact: bool = False) -> Value:
    """A container of these; too deep a nesting is not followed."""
    depth = 1 + max((atom.depth for atom in join(each) if isinstance(atom, Items)), default=0)
    return frozenset({Items(each, exact, depth)}) if depth <= _DEEPEST else UNKNOWN


def opened(value: Value) -> Value:
    """What one element of it may stand for: of containers what they hold, of a tensor a tensor."""
    return join(atom.inner for atom in value if isinstance(atom, Items)) | (value & TENSOR)


def unpacked(value: Value, count: int) -> tuple[Value, ...]:
    """`value` taken apart into `count` targets."""
    exact = [atom.each for atom in value if isinstance(atom, Items) and atom.exact and len(atom.each) == count]
    loose = opened(frozenset(atom for atom in value if not (isinstance(atom, Items) and atom.exact)))
    return tuple(join((loose, *(each[i] for each in exact))) for i in range(count))
