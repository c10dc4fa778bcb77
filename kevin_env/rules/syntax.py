"""Questions that a piece of syntax answers by itself."""

import ast
import re
from collections.abc import Sequence

from kevin_env.parsing import walk
from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import TENSOR, UNKNOWN, Arguments, Items, Value, join
from kevin_env.rules.values import items

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.USub: "-",
    ast.Invert: "~",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
"""The operators that compute when an operand is a tensor, as they are written."""
_NUMBERS = ("int", "float", "bool", "str", "complex", "torch.dtype", "torch.device", "optional[int]", "optional[float]")
"""Annotations of what is no tensor; a name of the submission's own may stand for anything."""


def constant_text(node: ast.AST) -> str | None:
    """The string that an expression is, also when it is written in pieces; None when it cannot be told."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            pieces = (constant_text(left), constant_text(right))
            return None if None in pieces else "".join(piece or "" for piece in pieces)
        case ast.JoinedStr(values=values):
            pieces = [
                constant_text(value.value if isinstance(value, ast.FormattedValue) else value) for value in values
            ]
            return None if None in pieces else "".join(piece or "" for piece in pieces)
        case _:
            return None


def constant_key(node: ast.AST) -> str | int | None:
    """The key or the index that is written out."""
    place = _whole_number(node) if isinstance(node, ast.expr) else None
    return constant_text(node) or (place if place is not None and place >= 0 else None)


def may_be(name: ast.expr, key: str) -> bool:
    """Whether a name that is put together may come out so."""
    return re.fullmatch(_pattern(name), key, re.DOTALL) is not None


def _pattern(name: ast.expr) -> str:
    match name:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=values):
            return "".join(map(_pattern, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
        case _:
            return ".*"


def element(atom: Items, index: ast.expr) -> Value:
    """What the entry of a container may stand for that an index names."""
    if isinstance(index, ast.Slice):
        return items(atom.inner)
    place = _whole_number(index)
    if atom.ordered and place is not None and -len(atom.each) <= place < len(atom.each):
        return atom.each[place] | atom.given(place if place >= 0 else None)
    names = [name for name in atom.names if may_be(index, name)]
    return join(map(atom.named, names)) if names else atom.named(constant_text(index))


def _whole_number(node: ast.expr) -> int | None:
    """The number that an index is, also one that counts from the end; None when it cannot be told."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def is_none(node: ast.expr) -> bool:
    """Whether it is written as `None`."""
    return isinstance(node, ast.Constant) and node.value is None


_READS = frozenset({"get", "pop", "items", "keys", "values"})


def keeps_to_itself(function: ast.AST, name: str) -> bool:
    """Whether a dictionary is only used by that name, and handed on by `**`, so that nobody else changes it."""
    nodes = walk(function)
    own = {each.value for each in nodes if isinstance(each, ast.Subscript)}
    own |= {each.value for each in nodes if isinstance(each, ast.keyword) and each.arg is None}
    own |= {each.value for each in nodes if isinstance(each, ast.Attribute) and each.attr in _READS}
    return all(each in own for each in nodes if isinstance(each, ast.Name) and each.id == name)


def suspends(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether what it returns comes out as that of a generator or a coroutine, with the exception that ends it."""
    kinds = (ast.Yield, ast.YieldFrom)
    return isinstance(function, ast.AsyncFunctionDef) or any(isinstance(each, kinds) for each in walk(function))


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, called or not: `jit` of `@triton.jit` and of `@jit(...)`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def falls_back(handler: ast.ExceptHandler) -> bool:
    """Whether the handler goes another way; to raise, to log, or to fill in a missing entry is none."""
    if isinstance(handler.body[-1], ast.Raise) or _caught(handler) <= library.LOOKUPS:
        return False
    return any(_goes_on(node) for statement in handler.body for node in walk(statement))


def _caught(handler: ast.ExceptHandler) -> set[str]:
    names = {node.id for node in walk(handler.type) if isinstance(node, ast.Name)} if handler.type else set[str]()
    return names or {"BaseException"}


def _goes_on(node: ast.AST) -> bool:
    match node:
        case ast.Return(value=value):
            return value is not None and not isinstance(value, ast.Constant)
        case ast.Call(func=function):
            if ast.unparse(function).startswith("torch.cuda."):  # waits, or frees memory
                return False
            while isinstance(function, ast.Attribute | ast.Call):
                function = function.value if isinstance(function, ast.Attribute) else function.func
            return not (isinstance(function, ast.Name) and function.id in library.LOGGING)
        case _:
            return False


def local_names(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that a function of these nodes binds: its parameters, and what it assigns to."""
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return stored | {each.arg for each in nodes if isinstance(each, ast.arg)}


def forward_arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Arguments:
    """What `forward` is called with, as its signature and its use of the parameters tell."""
    spec = node.args
    marked = {
        each.value.id
        for each in walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.attr in words.TENSOR_MARKS
    }
    parameters = [*spec.posonlyargs, *spec.args][1:]
    defaults = [*[None] * (len(parameters) - len(spec.defaults)), *spec.defaults[-len(parameters) or None :]]
    named = [*zip(parameters, defaults, strict=False), *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    values = [
        TENSOR if each.arg in marked else _parameter(each, default, position == 0)
        for position, (each, default) in enumerate(named)
    ]
    keywords = tuple((each.arg, value) for each, value in zip(spec.kwonlyargs, values[len(parameters) :], strict=True))
    rest = (TENSOR,) if spec.vararg else ()
    return Arguments((*values[: len(parameters)], *rest), keywords)


def _parameter(node: ast.arg, default: ast.expr | None, first: bool) -> Value:
    annotation = ast.unparse(node.annotation).lower() if node.annotation else ""
    if any(container in annotation for container in ("list", "tuple", "dict", "sequence", "iterable")):
        return items(TENSOR)
    number = annotation.split("|")[0].strip() in _NUMBERS or _is_plain(default)
    return TENSOR if first or "tensor" in annotation or not number else UNKNOWN


def _is_plain(default: ast.expr | None) -> bool:
    """Whether it is written as a number, a string or several of them."""
    match default:
        case ast.Constant(value=value):
            return value is not None
        case ast.UnaryOp(operand=operand):
            return _is_plain(operand)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return all(_is_plain(each) for each in elements)
        case _:
            return False
