"""What could keep the recorder from seeing which operations torch runs.

The recorder is a `TorchDispatchMode` in the process of the submission. This is no defence: it says
early that code of this kind is not accepted, and lists only what has no use in a kernel.
"""

import ast
import re

from kevin_env.parsing import nodes_of, walk

_FORBIDDEN = (
    "torch.utils._python_dispatch", "torch._C", "torch._ops", "torch._subclasses", "torch.overrides.TorchFunctionMode",
    "torch.overrides.BaseTorchFunctionMode", "torch.overrides.enable_reentrant_dispatch",
    "torch.library.fallthrough_kernel", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe",
    "sys._current_frames", "sys.settrace", "sys.setprofile", "threading.settrace", "threading.setprofile",
    "inspect.currentframe", "inspect.stack",
)  # fmt: skip
"""Modules and functions, by their paths, with all that is in them ..."""
_ALLOWED = (
    "torch._C._cuda", "torch._C._jit_", "torch._C._nn.", "torch._C._get_tracing_state", "torch._C._dynamo.guards",
    "torch._C._debug_", "torch._C._VariableFunctions.",
)  # fmt: skip
"""... but these."""
_OTHERS = re.compile(r"(?:aten|prims?)(?:::|$)|_$")
"""Names of operators, or of their namespaces, that are torch's own; `_` is all of them."""
_TORCHS_FILES = re.compile(r"lib(?:torch|c10)|_C\.")
_CPP = re.compile(
    r"\bTORCH_LIBRARY_IMPL\s*\(\s*(?:aten|prims?|_)\s*,|\b(?:Exclude|Include|Force)DispatchKeyGuard\b"
    r"|\b(?:TorchDispatchModeTLS|TorchFunctionModeTLS|PythonDispatcherTLS|DisableTorchDispatch|DisablePythonDispatcher"
    r"|StashTorchDispatch\w*|tls_set_dispatch_key_\w+|_force_tls_local_dispatch_key_set|callBoxedForDispatchKey)\b"
    r"|\bat::redispatch::"
)


def interferes(tree: ast.Module) -> tuple[str, int] | None:
    """The first place in a file that changes how torch dispatches operations, or who sees it, with
    its line.
    """
    names = {
        alias.asname: alias.name
        for node in nodes_of(tree, ast.Import)
        for alias in node.names
        if alias.asname
    }
    paths = [
        (alias.name, node.lineno) for node in nodes_of(tree, ast.Import) for alias in node.names
    ]
    for node in nodes_of(tree, ast.ImportFrom):
        names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        paths += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    chains = nodes_of(tree, ast.Attribute)
    inner = {node.value for node in chains}
    inner |= {
        node.args[0]
        for node in nodes_of(tree, ast.Call)
        if _path(node.func, names) == "hasattr" and node.args
    }
    paths += [(_path(node, names), node.lineno) for node in chains if node not in inner]
    texts = [
        (node.value, node.lineno)
        for node in nodes_of(tree, ast.Constant)
        if isinstance(node.value, str)
    ]
    found = [(path, line) for path, line in (*paths, *texts) if _is_forbidden(path)]
    for node in nodes_of(tree, ast.Call):
        found += [(what, node.lineno) for what in _of_call(_path(node.func, names), node)]
    for text, line in texts:
        cpp = _CPP.search(text) if "{" in text else None
        found += (
            [(f"{' '.join(cpp[0].split())} in C++", line + text.count("\n", 0, cpp.start()))]
            if cpp
            else []
        )
    return min(found, key=lambda each: each[1], default=None)


def _is_forbidden(path: str) -> bool:
    return path.startswith(_FORBIDDEN) and not path.startswith(_ALLOWED) and " " not in path


def _of_call(path: str, node: ast.Call) -> list[str]:
    """What registers an operator in the place of torch's own, and what opens torch's libraries."""
    if not path.startswith(("torch.library.", "ctypes.")):
        return []
    constants = [
        each for argument in node.args for each in walk(argument) if isinstance(each, ast.Constant)
    ]
    texts = [str(each.value) for each in constants if isinstance(each.value, str)]
    if path.startswith("ctypes."):
        return [f"{path} on a library of torch"] if any(map(_TORCHS_FILES.search, texts)) else []
    return [f'{path}("{text}")' for text in texts[:1] if _OTHERS.match(text)]


def _path(node: ast.AST, names: dict[str, str]) -> str:
    """The full path of a dotted name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (
        ".".join([names.get(node.id, node.id), *reversed(parts)])
        if isinstance(node, ast.Name)
        else ""
    )
