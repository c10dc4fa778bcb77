"""Abstract values of expressions while a submission is read."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MAX_PARTS = 64
_MAX_DEPTH = 4


@dataclass(eq=False)
class Scope:
    """Names of a function, a class body or the module.

    Attributes:
        parent: The enclosing scope.
        owner: The class whose body this is; functions inside the body do not see its names.
        returned: What `return` statements of the function return.
    """

    parent: "Scope | None" = None
    owner: ast.ClassDef | None = None
    names: "dict[str, Value]" = field(default_factory=dict[str, "Value"])
    global_names: set[str] = field(default_factory=set[str])
    returned: "list[Value]" = field(default_factory=list["Value"])

    def find(self, name: str) -> "Scope | None":
        """The innermost scope that binds the name."""
        scope: Scope | None = self
        while scope and (name not in scope.names or (scope.owner and scope is not self)):
            scope = scope.parent
        return scope


@dataclass(frozen=True)
class Imported:
    """Something from a package or from `builtins`; `made` is an instance of a `torch.nn` class."""

    path: str
    made: bool = False


@dataclass(frozen=True)
class Own:
    """A class of the submission, or an instance of it if `made`."""

    node: ast.ClassDef
    made: bool = False


@dataclass(frozen=True)
class Function:
    """A function defined in `scope` and in the class `defining_class`, bound to `owner`.

    `then` is what autograd calls later, if that counts.
    """

    node: FunctionNode
    scope: Scope
    defining_class: ast.ClassDef | None = None
    owner: Own | None = None
    then: "Function | None" = None


IsTensor = Literal["", "maybe", "some", "large"]
Base = ast.ClassDef | Imported
Callee = Literal["unknown", "kernel"] | Imported | Own | Function
"""A possible target of a call. `unknown` may be a kernel; `kernel` may be a library of kernels."""


@dataclass(frozen=True)
class Value:
    """The possible values of an expression.

    Attributes:
        tensor: `some` if it certainly is a tensor, `large` if it is also as large as an input of
            `forward`, `maybe` for what a kernel returns.
        callees: The possible targets of a call.
        parts: Contents of a container: one value for all of them, or one for each place if `exact`
            or `names` is set.
        names: The keys of all parts.
    """

    tensor: IsTensor = ""
    callees: frozenset[Callee] = frozenset()
    parts: "tuple[Value, ...]" = ()
    exact: bool = False
    names: tuple[str, ...] = ()
    is_none: bool = False
    depth: int = 0

    def __hash__(self) -> int:
        """Of this level alone: parts are shared, so the paths through them are countless."""
        return hash((self.tensor, self.callees, self.exact, self.names, self.is_none, self.depth))


def callee(*callees: Callee) -> Value:
    """A value that is one of these."""
    return Value(callees=frozenset(callees))


PLAIN = Value()
"""A number, a string, a type: nothing that computes or launches when it is called."""
NONE = Value(is_none=True)
MAYBE = Value("maybe")
SOME = Value("some")
LARGE = Value("large")
UNKNOWN = callee("unknown")
KERNEL = callee("kernel")


@dataclass(frozen=True)
class Arguments:
    """Arguments of a call; `rest` is the value of any further argument."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None

    def all(self) -> list[Value]:
        """Every argument."""
        rest = [self.rest] if self.rest else []
        return [*self.positional, *(value for _, value in self.keywords), *rest]

    def first(self) -> Value:
        """The first argument; plain if there is none."""
        return next(iter(self.all()), PLAIN)

    def flat(self) -> list[Value]:
        """Every argument, and the parts of those that are containers."""
        return [value for each in self.all() for value in (each, *each.parts)]

    def tensors(self) -> set[str]:
        """The kinds of tensors passed, also inside lists."""
        return {value.tensor for value in self.flat()} - {""}


def element(value: Value) -> Value:
    """Any element of a container or a tensor."""
    if value.tensor:
        return MAYBE if value.tensor == "maybe" else SOME
    return join([*value.parts, *([UNKNOWN] if "unknown" in value.callees else [])])


def item(value: Value, key: int | str) -> Value:
    """The element of a container with this index or name."""
    if isinstance(key, str):
        return value.parts[value.names.index(key)] if key in value.names else element(value)
    known = value.exact and -len(value.parts) <= key < len(value.parts)
    return value.parts[key] if known else element(value)


def container(parts: Iterable[Value], exact: bool = False, names: tuple[str, ...] = ()) -> Value:
    """A list, tuple, dictionary or module container that holds these."""
    contents = tuple(parts)
    depth = 1 + max((each.depth for each in contents), default=0)
    if depth > _MAX_DEPTH:
        return UNKNOWN
    if (exact or names) and len(contents) <= _MAX_PARTS:
        return Value(parts=contents, exact=exact, names=names, depth=depth)
    return Value(parts=(join(contents),) if contents else (), depth=depth)


def join(values: Iterable[Value]) -> Value:
    """The union of the values: a tensor only if each is one. None adds nothing."""
    candidates = list(values)
    some = [value for value in candidates if not value.is_none] or candidates
    if len(set(some)) < 2:
        return some[0] if some else PLAIN
    order: tuple[IsTensor, ...] = ("", "maybe", "some", "large")
    kinds = {value.tensor for value in some}
    tensor: IsTensor = next(kind for kind in order if kind in kinds)
    callees = frozenset[Callee]().union(*(value.callees for value in some))
    layouts = {(each.exact, each.names, len(each.parts)) for each in some}
    if all(each.parts for each in some) and len(layouts) == 1:
        columns = zip(*(value.parts for value in some), strict=True)
        depth = max(each.depth for each in some)
        parts, first = tuple(map(join, columns)), some[0]
        return Value(tensor, callees, parts, first.exact, first.names, depth=depth)
    contents = container(part for value in some for part in value.parts)
    return Value(tensor, callees | contents.callees, contents.parts, depth=contents.depth)
