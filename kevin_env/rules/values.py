"""What an expression may stand for while a submission is read."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

_MOST_PARTS = 64
_DEEPEST = 4
_LEAST: tuple[Literal["", "maybe", "some", "large"], ...] = ("", "maybe", "some", "large")


@dataclass(eq=False)
class Scope:
    """Names of a function or of the module; `owner` is the class whose body it is, which functions in it do not see."""

    parent: "Scope | None" = None
    owner: ast.ClassDef | None = None
    names: "dict[str, Value]" = field(default_factory=dict[str, "Value"])
    global_names: set[str] = field(default_factory=set[str])

    def home(self, name: str) -> "Scope | None":
        """Where the name is bound: here or further out; None where it was never bound."""
        scope: Scope | None = self
        while scope is not None and (name not in scope.names or (scope.owner and scope is not self)):
            scope = scope.parent
        return scope


@dataclass(frozen=True)
class Imported:
    """Something of an imported package, or of `builtins`; an instance of a class of `torch.nn` where `made`."""

    path: str
    made: bool = False


@dataclass(frozen=True)
class Own:
    """A class of the submission, or an instance of it where `made`."""

    node: ast.ClassDef
    made: bool = False


@dataclass(frozen=True)
class Function:
    """A function or lambda of the submission, with what it is bound to and the class that it was defined in."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    home: ast.ClassDef | None = None
    owner: Own | None = None


Thing = Literal["unknown", "kernel"] | Imported | Own | Function
"""Anything that may be called. What is unknown may be a kernel; a kernel may also be a library or an extension."""


@dataclass(frozen=True)
class Value:
    """What an expression may stand for.

    It is `some` tensor only where it surely is one, and `large` where it is as large as an input of `forward`; what a
    kernel gives is `maybe` one. The things are all that it may be. A container has parts: each in its place, or by its name, where it is exact, else one
    for all.
    """

    tensor: Literal["", "maybe", "some", "large"] = ""
    things: frozenset[Thing] = frozenset()
    parts: "tuple[Value, ...]" = ()
    exact: bool = False
    names: tuple[str, ...] = ()
    is_none: bool = False
    depth: int = 0

    def one(self) -> "Value":
        """Any of its parts; of a tensor a part of it."""
        if self.tensor:
            return MAYBE if self.tensor == "maybe" else SOME
        return join([*self.parts, *([UNKNOWN] if "unknown" in self.things else [])])

    def at(self, place: int | str) -> "Value":
        """The part in that place, or of that name."""
        if isinstance(place, str):
            return self.parts[self.names.index(place)] if place in self.names else self.one()
        return self.parts[place] if self.exact and -len(self.parts) <= place < len(self.parts) else self.one()


@dataclass(frozen=True)
class Arguments:
    """What a call hands over. `rest` is what any other argument may be."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None

    def all(self) -> list[Value]:
        """Every value that is handed over."""
        return [*self.positional, *(value for _, value in self.keywords), *([self.rest] if self.rest else [])]

    def first(self) -> Value:
        """The first of them."""
        return next(iter(self.all()), PLAIN)

    def tensors(self) -> list[Value]:
        """Tensors that are handed over, also in a list."""
        return [value for given in self.all() for value in (given, *given.parts) if value.tensor]

    def large(self) -> bool:
        """Whether any of them is large."""
        return any(value.tensor == "large" for value in self.tensors())


def thing(*things: Thing) -> Value:
    """What is one of these."""
    return Value(things=frozenset(things))


PLAIN = Value()
"""A number, a text, a type: nothing that computes or launches when it is called."""
NONE = Value(is_none=True)
MAYBE = Value("maybe")
SOME = Value("some")
LARGE = Value("large")
UNKNOWN = thing("unknown")
KERNEL = thing("kernel")


def container(parts: Iterable[Value], exact: bool = False, names: tuple[str, ...] = ()) -> Value:
    """A list, a tuple, a dictionary or a module of others that holds them; `names` are the keys of all of them."""
    held = tuple(parts)
    depth = 1 + max((part.depth for part in held), default=0)
    if depth > _DEEPEST:
        return UNKNOWN
    if (exact or names) and len(held) <= _MOST_PARTS:
        return Value(parts=held, exact=exact, names=names, depth=depth)
    return Value(parts=(join(held),) if held else (), depth=depth)


def join(values: Iterable[Value]) -> Value:
    """Everything that one of the values may be; a tensor where each is one. None adds nothing to the others."""
    given = list(values)
    some = [value for value in given if not value.is_none] or given
    if len(set(some)) < 2:
        return some[0] if some else PLAIN
    kinds = {value.tensor for value in some}
    tensor = next(kind for kind in _LEAST if kind in kinds)
    things = frozenset[Thing]().union(*(value.things for value in some))
    held, first = [value for value in some if value.parts], some[0]
    if len(held) == len(some) and len({(each.exact, each.names, len(each.parts)) for each in some}) == 1:
        parts = [join(column) for column in zip(*(value.parts for value in some), strict=True)]
        return Value(tensor, things, tuple(parts), first.exact, first.names, depth=max(each.depth for each in some))
    parts = container(part for value in held for part in value.parts)
    return Value(tensor, things | parts.things, parts.parts, depth=parts.depth)
