"""Strings that are put together of others are written out, and Python code in strings is found."""

import ast
import codecs
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import cast

from kevin_env.parsing import nodes_of, parse, texts_of
from kevin_env.rules.entries import at
from kevin_env.rules.rewriter import Rewriter
from kevin_env.rules.syntax import constant_text, last_name

_METHODS = frozenset(
    {"lower", "upper", "swapcase", "title", "capitalize", "strip", "lstrip", "rstrip", "replace", "format", "join"}
    | {"removeprefix", "removesuffix", "casefold"}
)
_LOOKUPS = frozenset(
    {"getattr", "import_module", "__import__", "attrgetter", "methodcaller", "exec", "eval", "compile"}
)
_CODE = re.compile(r"^[ \t]*(?:import|from|def|class|@)[ \t]*\w", re.MULTILINE)
_LONGEST = 100_000
_LONGEST_MADE = 1_000
_WIDE = re.compile(r"\d{3}|\*|\{[^{}]*\{")
"""Formats that ask for many characters."""
_MOST = 32


def written_out(tree: ast.Module) -> ast.Module:
    """The tree, with strings whose text can be told in the place of what makes them; itself where there are none."""
    asked = any(last_name(node.func) in _LOOKUPS for node in nodes_of(tree, ast.Call))
    if asked or any(node.attr == "modules" for node in nodes_of(tree, ast.Attribute)):
        tree = _WrittenOut(_constants(tree)).visit(tree)
        return _WrittenOut(_constants(tree)).visit(tree)  # where names stand for texts that were made
    return tree


def code_in(tree: ast.Module) -> Iterator[ast.Module]:
    """Python code in strings, which may be written to a file and imported: definitions and imports, no expressions."""
    texts = [text for text in texts_of(tree) if len(text) < _LONGEST and _CODE.search(text) and "#include" not in text]
    for text in texts[:_MOST]:
        try:
            found = parse(textwrap.dedent(text).strip("\n"))
        except (SyntaxError, ValueError):
            continue
        if any(isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) for node in found.body):
            yield found


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names that stand for one string in the whole file."""
    stored = [node.id for node in nodes_of(tree, ast.Name) if isinstance(node.ctx, ast.Store)]
    stored += [node.arg for node in nodes_of(tree, ast.arg)]
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    pairs = [(target.id, constant_text(node.value)) for node in assigned for target in node.targets
             if isinstance(target, ast.Name)]  # fmt: skip
    return {name: text for name, text in pairs if text is not None and stored.count(name) == 1}


class _WrittenOut(Rewriter):
    def __init__(self, constants: dict[str, str]) -> None:
        self._constants = constants

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node = self.generic_visit(node)
        if last_name(node.func) in _LOOKUPS:
            arguments = [self._named(each) for each in node.args]
            return at(node, ast.Call(node.func, arguments, node.keywords)) if arguments != node.args else node
        match node:
            case ast.Call(func=ast.Name(id="chr"), args=[ast.Constant(value=int(number))], keywords=[]):
                return _text(node, lambda: chr(number))
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=arguments, keywords=keywords):
                text = self._value(of)
                given = [self._value(each) for each in arguments]
                named = {keyword.arg or "": self._value(keyword.value) for keyword in keywords}
                if name == "decode" and last_name(of) in ("fromhex", "b64decode") and isinstance(of, ast.Call):
                    return _decoded(node, last_name(of), [self._value(each) for each in of.args])
                if name == "decode" and last_name(of) == "codecs":
                    return _turned(node, given)
                wide = name == "format" and isinstance(text, str) and _WIDE.search(text)
                if isinstance(text, str) and name in _METHODS and not wide and None not in (*given, *named.values()):
                    return _text(node, lambda: getattr(text, name)(*given, **named))
            case _:
                pass
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node = self.generic_visit(node)
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(left, str) and isinstance(node.op, ast.Add) and isinstance(right, str):
            return _text(node, lambda: left + right)
        if isinstance(left, str) and isinstance(node.op, ast.Mod) and right is not None and not _WIDE.search(left):
            return _text(
                node, lambda: left % (tuple(cast("list[object]", right)) if isinstance(right, list) else right)
            )
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node = self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Constant(value=str(text)), slice=ast.Slice(step=ast.UnaryOp(operand=step))):
                backwards = isinstance(step, ast.Constant) and step.value == 1
                whole = (
                    node.slice.lower is None and node.slice.upper is None
                    if isinstance(node.slice, ast.Slice)
                    else False
                )
                return _text(node, lambda: text[::-1]) if backwards and whole else node
            case ast.Subscript(value=ast.Attribute(attr="modules") as value, slice=ast.Name() as key, ctx=ast.Load()):
                return at(node, ast.Subscript(value, self._named(key), node.ctx))
            case _:
                return node

    def _named(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name) and node.id in self._constants:
            return at(node, ast.Constant(self._constants[node.id]))
        return node

    def _value(self, node: ast.expr) -> object:
        match self._named(node):
            case ast.Constant(value=str() | int() as value):
                return value if not isinstance(value, str) or len(value) < _LONGEST_MADE else None
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                values = [self._value(each) for each in elements]
                return None if None in values else values
            case _:
                return None


def _turned(node: ast.AST, given: list[object]) -> ast.AST:
    match given:
        case [str(text), "rot13" | "rot_13"]:
            return _text(node, lambda: codecs.decode(text, "rot13"))
        case _:
            return node


def _decoded(node: ast.AST, how: str, given: list[object]) -> ast.AST:
    match given:
        case [str(text)] if how == "fromhex":
            return _text(node, lambda: bytes.fromhex(text).decode())
        case [str(text)]:
            return _text(node, lambda: codecs.decode(text.encode(), "base64").decode())
        case _:
            return node


def _text(node: ast.AST, make: Callable[[], object]) -> ast.AST:
    """The constant that is made, if it is a text of bearable length."""
    try:
        made = make()
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        return node
    return at(node, ast.Constant(made)) if isinstance(made, str) and len(made) < _LONGEST else node
