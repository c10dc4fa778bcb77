"""Checks by name and pattern alone: interference with the dispatcher, C++ sources, own kernels."""

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator

from kevin_env.parsing import nodes_of, texts_of, walk
from kevin_env.rules.vocabulary import computes, pattern, stem, words

_TORCH_OPERATORS = re.compile(r"(?:aten|prims?)(?:::|$)|_$")
"""Names of torch's operators or their namespaces; `_` is all of them."""
_TORCH_FILES = re.compile(r"lib(?:torch|c10)|_C\.")
_BLANK = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Strings and comments."""
_CALL = re.compile(r"\b(\w+(?:::\w+){0,8}) ?(?:<[^<>;(){}]{0,80}> ?)?\(")
_TENSOR = re.compile(
    r"\b(?:torch|at)::Tensor (?:const )?&?(\w+)"
    r"|\bauto&? (\w+) ?= ?(?:torch|at)::(?:empty|zeros|ones|full)"
)
_OTHER = re.compile(
    r"(?<![:\w])(?!(?:Tensor|auto|const|return|else|case|new|delete|throw|not|and|or)\b)"
    r"\w+(?:<[^<>;(){}]{0,80}>)?[ &*]{1,4}(\w+)\b"
)
"""Names declared as anything but a tensor."""
_METHOD = re.compile(r"(?<![\w.>])(\w+)(?:\.|->)(\w+) ?\(")


def interferes(tree: ast.Module) -> tuple[str, int] | None:
    """The first code, with its line, that could hide dispatched operations from the recorder.

    Not a defense: the recorder runs in the same process. Code of no use in a kernel is refused
    early.
    """
    imports = [(node, each) for node in nodes_of(tree, ast.Import) for each in node.names]
    names = {each.asname: each.name for _, each in imports if each.asname}
    uses = [(each.name, node.lineno) for node, each in imports]
    for node in nodes_of(tree, ast.ImportFrom):
        for each in node.names:
            names[each.asname or each.name] = f"{node.module}.{each.name}"
            uses.append((f"{node.module}.{each.name}", node.lineno))
    calls = [(_path(node.func, names), node) for node in nodes_of(tree, ast.Call)]
    chains = nodes_of(tree, ast.Attribute)
    inner: set[ast.AST] = {node.value for node in chains}
    lookups = [x for x in calls if x[0] in ("getattr", "hasattr") and len(x[1].args) > 1]
    inner |= {node.args[0] for _, node in lookups}
    for node in [node for path, node in lookups if path == "getattr"]:
        of, name = node.args[:2]
        uses.append((f"{_path(of, names)}.{getattr(name, 'value', '')}", node.lineno))
    uses += [(_path(node, names), node.lineno) for node in chains if node not in inner]
    texts = [(node.value, node.lineno) for node in nodes_of(tree, ast.Constant)]
    uses += [(text, line) for text, line in texts if isinstance(text, str)]
    uses = [(path, line) for path, line in uses if _is_forbidden(path)]
    uses += [(what, node.lineno) for path, node in calls if (what := _registers(path, node))]
    for text, line in texts:
        if isinstance(text, str) and "{" in text and (cpp := pattern("cpp_forbidden").search(text)):
            what = " ".join(cpp[0].split())
            uses.append((f"{what} in C++", line + text.count("\n", 0, cpp.start())))
    return min(uses, key=lambda each: each[1], default=None)


def _is_forbidden(path: str) -> bool:
    forbidden, allowed = (path.startswith(tuple(words(x))) for x in ("forbidden", "allowed"))
    return " " not in path and forbidden and not allowed


def _registers(path: str, node: ast.Call) -> str:
    """A call that replaces an operator of torch, or opens a library of torch."""
    if not path.startswith(("torch.library.", "ctypes.")):
        return ""
    nodes = [each for argument in node.args for each in walk(argument)]
    values = [each.value for each in nodes if isinstance(each, ast.Constant)]
    texts = [value for value in values if isinstance(value, str)]
    if path.startswith("ctypes."):
        return f"{path} on a library of torch" if any(map(_TORCH_FILES.search, texts)) else ""
    return f'{path}("{texts[0]}")' if texts and _TORCH_OPERATORS.match(texts[0]) else ""


def _path(node: ast.AST, names: dict[str, str]) -> str:
    """The full path of a dotted name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def may_hold_a_kernel(tree: ast.Module) -> bool:
    """Whether a file builds, loads or imports a possible kernel, or has the source of one."""
    imported = [alias.name for node in nodes_of(tree, ast.Import) for alias in node.names]
    imported += [node.module or "." for node in nodes_of(tree, ast.ImportFrom)]
    known = sys.stdlib_module_names | {"torch", "numpy", "scipy"}
    known |= words("computing_packages") | words("reference_packages")
    if any(x.split(".")[0] not in known or x.startswith("torch._inductor") for x in imported):
        return True
    called = [node.func for node in nodes_of(tree, ast.Call)]
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in called}
    attributes = {node.attr for node in nodes_of(tree, ast.Attribute)}
    makers = (names & words("kernel_makers")) | (attributes & {"ops", "cdll"})
    texts = texts_of(tree)
    inline = any("{" in text and pattern("cpp_marks").search(text) for text in texts)
    if inline and makers == {"load_inline"}:  # its sources may only call torch
        return any(map(pattern("cpp_kernels").search, texts))
    return bool(makers) or any(map(pattern("kernel_sources").search, texts))


def cpp_operations(text: str, glue: bool = False) -> Iterator[tuple[int, str]]:
    """Calls of torch's operations and of vendors' libraries in a C++ or CUDA source.

    With `glue`, those of torch are excluded: a name does not show the size of a tensor. Yields
    lines, counted from 0, and names as written; nothing for any other string.
    """
    if "{" not in text or ";" not in text or not pattern("cpp_marks").search(text):
        return
    code = _without_dead(_BLANK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text))
    ends = [match.start() for match in re.finditer("\n", code)]
    aliases = {"torch": "torch", "at": "at"}
    aliases |= re.findall(r"\bnamespace (\w+) ?= ?(?:::)?((?:torch|at)(?:::\w+)*) ?;", code)
    defined = set(re.findall(r"\b(?:void|int|float|double) (\w+) ?\([^;{}]{0,2000}\{", code))
    vendors = pattern("vendor_both", "vendor_source")
    for call in _CALL.finditer(code):
        root, _, rest = call[1].partition("::")
        last = rest.rpartition("::")[2] or root
        vendor = vendors.match(last) or vendors.match(call[1])
        setting = re.search(r"(?:Create|Destroy|Set|Get)(?![a-z])", last)
        torchs = rest and root in aliases and _is_operation(f"{aliases[root]}::{rest}")
        if (vendor and not setting and last not in defined) or (torchs and not glue):
            yield bisect_left(ends, call.start()), call[1]
    for begin, function in () if glue else _functions(code):
        tensors = {name for names in _TENSOR.findall(function) for name in names if name}
        tensors -= set(_OTHER.findall(function))
        for call in _METHOD.finditer(function):
            if call[1] in tensors and _cpp_computes(call[2]):
                yield bisect_left(ends, begin + call.start()), f".{call[2]}"


def _functions(code: str) -> Iterator[tuple[int, str]]:
    """Pieces of code that end with the brace of a function or class, with their offsets."""
    begin, depth = 0, 0
    for brace in re.finditer(r"\bnamespace[^{};]{0,80}\{|[{}]", code):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth <= 0 and brace[0] == "}":
            yield begin, code[begin : brace.end()]
            begin, depth = brace.end(), 0


def _without_dead(source: str) -> str:
    """The source with empty lines in place of those after `#if 0`."""
    lines, dead = source.split("\n"), 0
    for place, line in enumerate(lines):
        condition = re.match(r"[ \t]*#[ \t]*(if|el|endif)\w*[ \t]*(0\b)?", line)
        if dead:
            lines[place] = ""
            if condition:
                dead += {"if": 1, "el": -1 if dead == 1 else 0, "endif": -1}[condition[1]]
        elif condition and condition[1] == "if" and condition[2]:
            dead = 1
    return "\n".join(lines)


def _is_operation(path: str) -> bool:
    """Whether `at::softmax`, `torch::nn::functional::relu` or `at::_ops::exp::call` computes."""
    _, *spaces, last = path.split("::")
    if "vec" in spaces:  # CPU registers
        return False
    if spaces and last in ("call", "redispatch"):
        last = spaces[-1]
    if spaces[:1] == ["nn"] and last[0].isupper():
        return last not in ("Module", "Cloneable") and not last.endswith(("Options", "Impl"))
    return (spaces[:2] == ["nn", "functional"] and last[0].islower()) or _cpp_computes(last)


def _cpp_computes(name: str) -> bool:
    return computes(name) and stem(name) not in words("moves") | words("allocate")
