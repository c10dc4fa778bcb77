"""Whether a file may hold a kernel of its own."""

import ast
import sys

from kevin_env.parsing import nodes_of, texts_of
from kevin_env.rules import vocabulary as words

_SOURCES = (
    "__global__",
    "PYBIND11_MODULE",
    "TORCH_LIBRARY",
    "#include",
    'extern "C"',
    "triton.jit",
    "tl.load",
)
_MAKERS = frozenset(
    {
        "load",
        "load_inline",
        "CDLL",
        "PyDLL",
        "LoadLibrary",
        "_compile_kernel",
        "load_library",
        "dlopen",
    }
)
_DYNAMIC = frozenset({"exec", "eval", "__import__", "import_module", "CFUNCTYPE"})
_KNOWN = (
    words.COMPUTING_PACKAGES
    | words.REFERENCE_PACKAGES
    | sys.stdlib_module_names
    | {"torch", "numpy", "scipy"}
)


def may_hold_a_kernel(tree: ast.Module) -> bool:
    """Whether a file builds, loads or imports something that may be a kernel, or has the source of
    one.
    """
    imported = [alias.name for node in nodes_of(tree, ast.Import) for alias in node.names]
    imported += [node.module or "." for node in nodes_of(tree, ast.ImportFrom)]
    called = {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in nodes_of(tree, ast.Call)
    }
    return (
        any(
            name.split(".")[0] not in _KNOWN or name.startswith("torch._inductor")
            for name in imported
        )
        or bool(called & (_MAKERS | _DYNAMIC))
        or any(node.attr in ("ops", "cdll") for node in nodes_of(tree, ast.Attribute))
        or any(mark in text for text in texts_of(tree) for mark in _SOURCES)
    )
