"""What a name may stand for while a submission is read: sets of atoms; the empty set is "not known"."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Scope:
    """Names of one function body, or of the module."""

    parent: "Scope | None" = None
    names: "dict[str, Value]" = field(default_factory=dict[str, "Value"])
    global_names: set[str] = field(default_factory=set[str])
    of_class: bool = False
    """Functions defined in it do not see its names."""
    of_comprehension: bool = False

    def outer(self) -> "Scope":
        """The nearest scope that is not a comprehension's."""
        return self.parent.outer() if self.of_comprehension and self.parent else self

    def find(self, name: str) -> "Value | None":
        """What the name stands for here or further out; None when it was never bound."""
        return home.names[name] if (home := self.home(name)) else None

    def home(self, name: str) -> "Scope | None":
        """Where the name is bound: here or further out."""
        scope: Scope | None = self
        while scope is not None and not (name in scope.names and (scope is self or not scope.of_class)):
            scope = scope.parent
        return scope


@dataclass(frozen=True)
class Tensor:
    """A tensor, or a NumPy view of one."""


@dataclass(frozen=True)
class Holder:
    """What code gave that is not read, and that was given a tensor: it may hold it somewhere."""


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
    """An own kernel, or the extension or library that holds it.

    `numbers` tells of a kernel that gives several things which of them are numbers.
    """

    gives_tensors: bool = False
    numbers: tuple[bool, ...] = ()


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


@dataclass(eq=False)
class Cell:
    """What a list, a set or a dictionary was given later, under whatever name, by the key; None for any."""

    entries: "dict[str | int | None, Value]" = field(default_factory=dict["str | int | None", "Value"])

    def add(self, key: "str | int | None", value: "Value") -> None:
        """Notes an entry; what holds this container itself adds nothing."""
        new = frozenset(each for each in value if not (isinstance(each, Items) and each.holds(self)))
        self.entries[key] = self.entries.get(key, UNKNOWN) | new


@dataclass(frozen=True)
class Items:
    """A container, or an iterator over one: each element in order where `ordered`, else one for all of them.

    Of a dictionary whose keys are all written out, `names` has the key of each element. What is `fixed`, such as a
    tuple, holds no other elements later; what else does is noted in `cell`.
    """

    each: "tuple[Value, ...]"
    ordered: bool = False
    depth: int = 1
    names: tuple[str, ...] = ()
    fixed: bool = False
    cell: Cell | None = None

    @property
    def exact(self) -> bool:
        """Whether it is as it was made, each element in its place."""
        return self.ordered and not self.given()

    @property
    def inner(self) -> "Value":
        """What any element may stand for."""
        return join(self.each) | self.given()

    def given(self, key: str | int | None = None) -> "Value":
        """What it was given later, under that key where it is known."""
        entries = self.cell.entries.items() if self.cell else ()
        return join(value for name, value in entries if key is None or name in (None, key))

    def named(self, name: str | None) -> "Value":
        """What the entry of that name may stand for; any entry where the name or the names are not known."""
        entries = dict(zip(self.names, self.each, strict=True)) if self.names else {}
        return (entries.get(name, UNKNOWN) if name and entries else join(self.each)) | self.given(name)

    def holds(self, cell: Cell) -> bool:
        """Whether it is the container of that cell, or has it in it."""
        return self.cell is cell or any(isinstance(each, Items) and each.holds(cell) for each in self.inner)


@dataclass(frozen=True)
class Thread:
    """A thread that is not started yet."""

    callee: "Value"
    arguments: "Arguments"


@dataclass(frozen=True)
class Filling:
    """A method of a container that puts something into it."""

    cell: Cell


@dataclass(frozen=True)
class Partial:
    """A function of the submission's with some of its arguments."""

    callee: "Value"
    arguments: "Arguments"


@dataclass(frozen=True)
class Future:
    """What an executor gives for a call."""

    result: "Value"


Atom = (
    Tensor
    | Holder
    | TensorMethod
    | Imported
    | TorchModule
    | Kernel
    | Function
    | Class
    | Instance
    | Parent
    | Items
    | Thread
    | Partial
    | Filling
    | Future
)
Value = frozenset[Atom]

UNKNOWN: Value = frozenset()
TENSOR: Value = frozenset({Tensor()})
LOST: Value = frozenset({Tensor(), Holder()})
"""What may be a tensor, or hold it."""


@dataclass(frozen=True)
class Arguments:
    """What a call hands over. `rest` is what came by `*` or `**`."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value = UNKNOWN

    def all(self) -> Value:
        """Every value handed over, containers opened."""
        handed = join((*self.positional, *dict(self.keywords).values(), self.rest))
        return handed | opened(handed)

    def with_more(self, more: "Arguments") -> "Arguments":
        """These, and behind them more."""
        named = (dict(self.keywords) | dict(more.keywords)).items()
        return Arguments((*self.positional, *more.positional), tuple(named), self.rest | more.rest)

    def first(self) -> Value:
        """The first positional value."""
        return self.positional[0] if self.positional else UNKNOWN

    def get(self, position: int, name: str) -> "Value | None":
        """What is given for the parameter of that position and name; None when nothing is."""
        given = self.positional[position : position + 1] or tuple(v for k, v in self.keywords if k == name)
        return given[0] if given else self.rest or None


def join(values: Iterable[Value]) -> Value:
    """Everything that one of the values may stand for."""
    return UNKNOWN.union(*values)


def opened(value: Value) -> Value:
    """What one element of it may stand for: of containers what they hold, of a tensor a tensor."""
    return join(atom.inner for atom in value if isinstance(atom, Items)) | (value & LOST)
