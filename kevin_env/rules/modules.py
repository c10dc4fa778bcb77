"""Modules that a submission looks up by a name: which they may be, and what of them may be torch's."""

import ast

from kevin_env.rules.atoms import LOST, UNKNOWN, Arguments, Imported, Value
from kevin_env.rules.operations import OPAQUE, SOME_MODULE, computes, stem, torch_operations
from kevin_env.rules.syntax import constant_text
from kevin_env.rules.values import items

IMPORTERS = frozenset(
    {"builtins.__import__", "importlib.__import__", "importlib.import_module", "importlib._bootstrap._gcd_import"}
    | {"test.support.import_helper.import_module", "unittest.mock._importer", "logging.config._resolve"}
)
_PYTHONS = frozenset({"torch", "sys", "builtins", "importlib", "operator", "functools", "ctypes", "pickle", "runpy"})
"""Modules that others have as attributes, since they import them."""
_TAKING = frozenset({"get", "pop", "setdefault", "__getitem__"})
_PACKAGES = frozenset({"nn", "functional", "ops", "special", "linalg", "fft", "Tensor", "_C", "_VF", "sparse", "jit"})
_OF_MODULES = ("gc.get_objects", "gc.get_referrers", "gc.get_referents")


def looked_up(path: str, arguments: Arguments, node: ast.AST) -> Value | None:
    """What a call gives that imports a module, or takes one out of `sys.modules`; None where it does neither."""
    holder, _, last = path.rpartition(".")
    if path in IMPORTERS or (holder == "sys.modules" and last in _TAKING):
        return named(node.args[:1] if isinstance(node, ast.Call) else [])
    if holder == "sys.modules":
        return _entries(last)
    if Imported("sys.modules") in arguments.first() and path in ("builtins.dict", "copy.copy"):
        return frozenset({Imported("sys.modules")})
    if path.endswith(".load_module") or path == "importlib.util.module_from_spec":
        return SOME_MODULE
    if path in _OF_MODULES:
        return items(SOME_MODULE | OPAQUE | LOST)
    return SOME_MODULE if path == "inspect.getmodule" else None


def _entries(method: str) -> Value:
    match method:
        case "values":
            return items(SOME_MODULE)
        case "items":
            return items(items(UNKNOWN, SOME_MODULE, exact=True))
        case "copy":
            return frozenset({Imported("sys.modules")})
        case _:
            return UNKNOWN


def named(name: list[ast.expr]) -> Value:
    """The module of that name; any where the name is not written out."""
    text = constant_text(name[0]) if name else None
    return frozenset({Imported(text)}) if text else SOME_MODULE


def within(path: str, name: str) -> str:
    """The path of an attribute: `triton.runtime.jit.torch` is torch itself."""
    return name if name in _PYTHONS and path.split(".")[0] in ("torch", "triton", "numpy") else f"{path}.{name}"


def may_be_torchs(name: str) -> bool:
    """Whether an attribute of that name may be torch's, where nobody knows of which module it is."""
    return computes(name) or stem(name) in torch_operations() or name in _PACKAGES
