"""Reading Python code as a syntax tree, from any thread, and a problem's source as a submission."""

import ast
import functools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

Node = TypeVar("Node", bound=ast.AST)
_ATTEMPTS = 10
_UNKNOWN = "<unknown>"
_QUIET = ("ignore", None, Warning, re.compile(_UNKNOWN), 0)
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of parsing a text as Python; ValueError is for a null byte."""


def parse(code: str, filename: str = _UNKNOWN) -> ast.Module:
    """As `ast.parse`, retried on a spurious SystemError; warnings are hidden without a file name.

    Before Python 3.13, all threads share the counter of the tree's depth (python/cpython#106905),
    which raises a SystemError about once in ten thousand calls. Each call resets the counter. A
    lock could stay held in a forked process.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    # such as those about escapes in a submission; `catch_warnings` is not thread-safe
    if warnings.filters[:1] != [_QUIET]:  # each addition has warnings shown again that were shown
        warnings.filterwarnings("ignore", module=_UNKNOWN)
    for _ in range(_ATTEMPTS):
        try:
            return ast.parse(code, filename)
        except SystemError:
            continue
    return ast.parse(code, filename)


def marked(code: str, error: SyntaxError) -> str:
    """The source line with its number and, if known, a mark under the column."""
    lines = code.split("\n")
    if error.lineno is None or not 0 < error.lineno <= len(lines):
        return ""
    source, label = lines[error.lineno - 1].rstrip(), f"{error.lineno:>5} | "
    column = min(max(error.offset or 1, 1), len(source) + 1)
    return f"{label}{source}\n{' ' * (len(label) - 2)}| {' ' * (column - 1)}^"


@functools.lru_cache(maxsize=8)
def tree_of(code: str) -> ast.Module:
    """As `parse`, cached. The tree must not be changed."""
    return parse(code)


def parsed(code: str) -> ast.Module | None:
    """As `tree_of`; None if the code does not parse."""
    try:
        return tree_of(code)
    except UNREADABLE:
        return None


def nodes_of(tree: ast.Module, kind: type[Node] = ast.AST) -> Sequence[Node]:
    """All nodes of that kind in an unchanged tree, in the order of `ast.walk`."""
    return cast("Sequence[Node]", _read_whole(tree)[0].get(kind, ()))


@functools.lru_cache(maxsize=8)
def _read_whole(tree: ast.Module) -> tuple[dict[type[ast.AST], list[ast.AST]], list[object]]:
    """Its nodes by their kinds, and their fields."""
    nodes, fields = _read(tree)
    kinds: dict[type[ast.AST], list[ast.AST]] = {ast.AST: nodes}
    for node in nodes:
        kinds.setdefault(type(node), []).append(node)
    return kinds, fields


def imported(tree: ast.Module) -> set[str]:
    """Top-level packages that import statements name."""
    return {module.split(".")[0] for module in imports(tree)}


def imports(tree: ast.Module) -> set[str]:
    """Dotted names that import statements name; for `from a import b`, `a.b`."""
    modules = {alias.name for node in nodes_of(tree, ast.Import) for alias in node.names}
    return modules | {
        f"{node.module}.{alias.name}"
        for node in nodes_of(tree, ast.ImportFrom)
        if node.module
        for alias in node.names
    }


def texts_of(tree: ast.Module) -> list[str]:
    """All strings in an unchanged tree."""
    return [node.value for node in nodes_of(tree, ast.Constant) if isinstance(node.value, str)]


def flags_of(code: str) -> set[str]:
    """Options that its strings hold, alone or among others: `-O3`, `--use_fast_math`."""
    tree = parsed(code)
    texts = [text.split() for text in texts_of(tree)] if tree is not None else []
    return {word for words in texts if all(each[0] == "-" for each in words) for word in words}


def walk(node: ast.AST) -> list[ast.AST]:
    """As `ast.walk`, in the same order and quicker: every turn walks its code."""
    return _read(node)[0]


def _read(node: ast.AST) -> tuple[list[ast.AST], list[object]]:
    """All nodes in the order of `ast.walk`, and the values of all fields with `...` for nodes."""
    nodes, fields = [node], list[object]()
    for each in nodes:
        for name in each._fields:
            value = getattr(each, name, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
                fields.append(...)
            elif isinstance(value, list):
                several: list[object] = value
                nodes += [child for child in several if isinstance(child, ast.AST)]
                fields.append([... if isinstance(child, ast.AST) else child for child in several])
            else:
                fields.append(value)
    return nodes, fields


def last_name(node: ast.AST) -> str:
    """`jit` of `triton.jit` and of `jit(...)`; empty for another expression."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The assigned name and its value; an empty name for anything but a single plain target."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return "", None
    return targets[0].id, getattr(node, "value", None)


def defines(tree: ast.Module, name: str) -> bool:
    """Whether the top level of a file binds this name to a class or something that can be one.

    Assigning another class to the name counts, and so do definitions within `if`, `try` or `with`.
    """
    return any(_binds(node, name) for node in _top_level(tree.body))


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            children = (
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler)
            )
            for child in children:
                yield from _top_level(
                    child.body if isinstance(child, ast.ExceptHandler) else [child]
                )


def _binds(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.ClassDef():
            return node.name == name
        case ast.Assign(targets=targets, value=value):
            return not isinstance(value, ast.Constant) and any(
                _is_name(target, name) for target in targets
            )
        case ast.AnnAssign(target=target, value=value):
            return (
                value is not None and not isinstance(value, ast.Constant) and _is_name(target, name)
            )
        case _:
            return False


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def lacks_forward(tree: ast.Module, name: str) -> bool:
    """Whether a module of that name evidently has no `forward`.

    That is if nothing in the file is called `forward` or `__call__`, and its classes inherit only
    from `nn.Module` and each other.
    """
    classes = nodes_of(tree, ast.ClassDef)
    named = [field for field in _read_whole(tree)[1] if isinstance(field, str)]
    known = {"Module", "object", *(each.name for each in classes)}
    bases = [
        base for each in classes for base in (*each.bases, *each.keywords, *each.decorator_list)
    ]
    plain = all(
        (base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")) in known
        for base in bases
    )
    return (
        plain
        and any(each.name == name for each in classes)
        and not {"forward", "__call__"}.intersection(named)
    )


def as_submission(source: str) -> str:
    """A file with its top-level class `Model` renamed to `ModelNew`, unless it has both.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: if it does not parse.
    """
    tree = tree_of(source)
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    if "ModelNew" in names or "Model" not in names:
        return source
    lines = source.encode().split(b"\n")
    for line, column in sorted(_mentions(tree, lines), reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + b"ModelNew" + text[column + len(b"Model") :]
    return b"\n".join(lines).decode()


def _mentions(tree: ast.Module, lines: list[bytes]) -> Iterator[tuple[int, int]]:
    """Line and byte column of each `Model` that refers to the class.

    Python 3.11 misplaces names in f-strings, so each place is checked.
    """
    for node in nodes_of(tree):
        match node:
            case ast.ClassDef(name="Model") if node in tree.body:
                column = node.col_offset + len(b"class ")
            case ast.Name(id="Model") | ast.arg(arg="Model"):
                column = node.col_offset
            case _:
                continue
        if lines[node.lineno - 1][column:].startswith(b"Model"):
            yield node.lineno, column
