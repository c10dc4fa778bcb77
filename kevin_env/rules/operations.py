"""Which imported names compute when they are called, and what is handed on to be called later."""

import functools
import sys
from importlib import resources

from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import Atom, Imported, Value

UNWRITTEN = "torch.(a name that is not written out)"
OPAQUE: Value = frozenset({Imported(UNWRITTEN)})
"""What is looked up, or made, in a way that cannot be followed: a dtype maybe, but to call it is not allowed."""

KNOWN = frozenset(
    {"torch", "numpy", "scipy", "cupy", "triton", "cuda", *words.COMPUTING_PACKAGES, *sys.stdlib_module_names}
)
"""Packages that are not what a submission builds of its sources in C++."""
SOME_MODULE: Value = frozenset({Imported("(a module that is not named)")})
"""What is imported, or taken out of `sys.modules`, by a name that is not written out."""


@functools.cache
def torch_operations() -> frozenset[str]:
    """Stems of the names of torch's own operators that compute: `add` for `add_` and `add_out`, too.

    Those of a new torch that are missing, a test names; views, questions and casts stay out.
    """
    return frozenset((resources.files("kevin_env.rules") / "torch_operations.txt").read_text(encoding="utf-8").split())


def root(atom: Atom) -> str:
    """The package of something imported; empty for anything else."""
    return atom.path.split(".")[0] if isinstance(atom, Imported) else ""


def is_operation(atom: Atom) -> bool:
    """Whether it computes when it is called, or gives what does to whoever looks for it by name."""
    if not isinstance(atom, Imported) or atom.path.startswith(UNWRITTEN):
        return False
    if root(atom) == "numpy":
        return atom.path.rsplit(".", 1)[-1] in words.OPERATIONS
    return atom.path in words.NAMESPACES or _computes(atom.path)


def _computes(path: str) -> bool:
    """Whether it is a function of torch's that computes: no class, no type or constant, and none that is allowed."""
    parts = path.split(".")
    last = parts[-1]
    if parts[0] != "torch" or len(parts) < 2 or last[0].isupper() or last in words.TORCH_CONSTANTS:
        return False
    if len(parts) > 2 and parts[1] in words.TORCH_OTHER:  # of what these give, such as `torch.finfo(dtype).max`
        return False
    if last.strip("_") in words.OPERATIONS:
        return True
    if len(parts) > 2:
        return f"{path}.".startswith(("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special."))
    harmless = parts[1] in words.TORCH_TENSOR | words.TORCH_TENSORS | words.TORCH_OTHER
    return not (harmless or f"{path}.".startswith(words.TORCH_NAMESPACES) or last.startswith(("is_", "get_", "set_")))


def computes(name: str) -> bool:
    """Whether a function or a method of that name, without its namespace, is an operation that everybody knows."""
    return stem(name) in words.OPERATIONS


def stem(name: str) -> str:
    """`add` for `add_` and `add_out`."""
    return name.removesuffix("_out").strip("_")
