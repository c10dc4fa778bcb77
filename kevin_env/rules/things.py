"""What an expression may stand for while a submission is read: its types."""

import ast
from dataclasses import dataclass, field
from typing import Literal


@dataclass(eq=False)
class Scope:
    """Names of a function or of the module; `owner` is the class whose body it is, which functions
    in it do not see.
    """

    parent: "Scope | None" = None
    owner: ast.ClassDef | None = None
    names: "dict[str, Value]" = field(default_factory=dict[str, "Value"])
    global_names: set[str] = field(default_factory=set[str])

    def home(self, name: str) -> "Scope | None":
        """Where the name is bound: here or further out; None where it was never bound."""
        scope: Scope | None = self
        while scope is not None and (
            name not in scope.names or (scope.owner and scope is not self)
        ):
            scope = scope.parent
        return scope


@dataclass(frozen=True)
class Imported:
    """Something of an imported package, or of `builtins`; an instance of a class of `torch.nn`
    where `made`.
    """

    path: str
    made: bool = False


@dataclass(frozen=True)
class Own:
    """A class of the submission, or an instance of it where `made`."""

    node: ast.ClassDef
    made: bool = False


@dataclass(frozen=True)
class Function:
    """A function or lambda of the submission, with what it is bound to and the class that it was
    defined in.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    home: ast.ClassDef | None = None
    owner: Own | None = None


IsTensor = Literal["", "maybe", "some", "large"]
Thing = Literal["unknown", "kernel"] | Imported | Own | Function
"""Anything that may be called. What is unknown may be a kernel; a kernel may also be a library or
an extension.
"""


@dataclass(frozen=True)
class Value:
    """What an expression may stand for.

    It is `some` tensor only where it surely is one, and `large` where it is as large as an input of
    `forward`; what a kernel gives is `maybe` one. The things are all that it may be. A container
    has parts: each in its place, or by its name, where it is exact, else one for all.
    """

    tensor: IsTensor = ""
    things: frozenset[Thing] = frozenset()
    parts: "tuple[Value, ...]" = ()
    exact: bool = False
    names: tuple[str, ...] = ()
    is_none: bool = False
    depth: int = 0


@dataclass(frozen=True)
class Arguments:
    """What a call hands over. `rest` is what any other argument may be."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None

    def all(self) -> list[Value]:
        """Every value that is handed over."""
        return [
            *self.positional,
            *(value for _, value in self.keywords),
            *([self.rest] if self.rest else []),
        ]

    def first(self) -> Value:
        """The first of them."""
        return next(iter(self.all()), Value())

    def tensors(self) -> list[Value]:
        """Tensors that are handed over, also in a list."""
        return [value for given in self.all() for value in (given, *given.parts) if value.tensor]

    def large(self) -> bool:
        """Whether any of them is large."""
        return any(value.tensor == "large" for value in self.tensors())
