"""Which operations of torch or of a vendor C++ sources call. Comments and strings in them do not matter.

Found by patterns, not by a parser: an operator between tensors, which looks like one between numbers, is not seen.
"""

import functools
import re
from collections.abc import Iterable

from kevin_env.rules import vocabulary as words

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACES = re.compile(r"\s+")
"""Made one, so that no pattern below has a choice of how many it takes: that takes for ever where they are many."""
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_BY_NAME = re.compile(
    r'"(aten::\w+)|\bmodule_?::import\s*\(\s*"(torch|numpy)\b|\bPyImport_ImportModule\s*\(\s*"(torch|numpy)\b'
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_ALIAS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(?:::)?(torch|at)\b")
_QUALIFIED = re.compile(r"\b(\w+)((?:::\w+)+)")
_TYPE = r"(?:(?:torch|at)::)?(?:Tensor|TensorList)"
_TENSOR = re.compile(rf"\b(?:{_TYPE}|std::vector<\s*{_TYPE}\s*>)\s*(?:const\s*)?[&*]?\s*(\w+)")
_ASKED = (
    r"(?!size|stride|data|numel|dim\b|accessor|packed|scalar|dtype|device|option|item|const_|mutable|get_|element|is_)"
)
_DERIVED = re.compile(
    rf"\bauto\s*[&*]{{0,2}}\s*(\w+)\s*=\s*&?\s*"
    rf"(?:(?:torch|at)::(?:empty|zeros|ones|full)\w*\b|(\w+)\s*(?:(?:\.|->)\s*{_ASKED}|;|\[))"
)
_ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_CHAIN = re.compile(rf"\b(\w+)\s*(?:\[[^\[\]\n]{{0,80}}\]\s*)?(?=((?:(?:\.|->)\s*\w+\s*{_ARGUMENTS}\s*)+))")
_METHOD = re.compile(rf"(?:\.|->)\s*(\w+)\s*{_ARGUMENTS}")
_UNQUALIFIED = re.compile(r"(?<![\w:.>])(\w+)\s*\(\s*(\w+)")
_MATHS = frozenset(
    {"abs", "exp", "log", "sqrt", "rsqrt", "pow", "sin", "cos", "tan", "tanh", "erf", "floor", "norm", "min", "max"}
)
"""What C and CUDA call so as well, of numbers."""
_MOST_MACROS = 64
_REGISTERS = "::vec::"
"""Namespace of the processor's vector instructions, such as `at::vec::maximum`: they work on registers, not tensors."""
_VENDOR = re.compile(
    r"\b(cblas_[sdcz]\w+|[sd]gem[mv]_|LAPACKE_\w+|cublas(?:Lt)?(?:[SDHCZ](?:gem|ger|dot|axpy|scal|asum|nrm2|trsm|dgmm)"
    r"\w*|Gemm\w*|Matmul|DotEx|AxpyEx|ScalEx|Nrm2Ex)|cudnn\w*(?:Forward|Execute|Tensor|Reduce\w*)|cusparseSp\w+"
    r"|cufftExec\w+|cusolverDn[SDCZ]\w+|dnnl_primitive_execute|dnnl::\w+|mkl_[sd]\w+|vms?[sd][A-Z]\w+)\s*\("
)
_NAMESPACE = re.compile(r"\b(?:namespace(?:\s+[\w:]+)?|extern)\s*\{")
_IS_CLASS = re.compile(r"\b(?:struct|class|union)\b")
_SETTINGS = re.compile(r"(?:Create|Destroy|Set|Get)\w*")


def operations(sources: Iterable[str]) -> list[str]:
    """Names of the operations, as they are written: `at::mm`, or `.softmax` of something declared as a tensor."""
    return [name for source in sources for name in _operations(source)]


@functools.lru_cache(maxsize=64)  # asked of a source for every extension and library in its file
def _operations(source: str) -> list[str]:
    source = _SPACES.sub(lambda found: "\n" if "\n" in found[0] else " ", _COMMENT.sub(" ", source))
    found = ["".join(names) for names in _BY_NAME.findall(source)]
    code = _STRING.sub(" ", source)
    for name, meaning in _MACRO.findall(code)[:_MOST_MACROS]:
        if _computes(meaning):
            code = re.sub(rf"\b{name}\b", meaning, code)
    found += [name for name in _VENDOR.findall(code) if not _SETTINGS.search(name)]
    roots = {"torch", "at", *(name for name, _ in _ALIAS.findall(code))}
    found += [root + rest for root, rest in _QUALIFIED.findall(code) if root in roots and _is_operation(rest)]
    pieces = _pieces(code)
    everywhere = {name for piece in pieces for name in _shared(piece)}
    return found + [name for piece in pieces for name in _calls(piece, _tensors(piece, everywhere), code)]


def _calls(piece: str, tensors: set[str], code: str) -> list[str]:
    """Methods of tensors, and functions that are given one and that the code does not have of its own."""
    found: list[str] = []
    for name, chain in _CHAIN.findall(piece):
        if name in tensors:
            found += [f".{method}" for method in _METHOD.findall(chain) if _computes(method)]
    found += [
        name for name, given in set(_UNQUALIFIED.findall(piece))
        if given in tensors and _computes(name) and name not in _MATHS and not _defines(code, name)
    ]  # fmt: skip
    return found


def _pieces(code: str) -> list[str]:
    """Functions and classes, each with what stands before it: a name of one says nothing in another."""
    code = _NAMESPACE.sub(" ", code)
    pieces, begin, depth = list[str](), 0, 0
    for bracket in re.finditer(r"[(){}]", code):
        depth = depth + 1 if bracket[0] in "({" else max(depth - 1, 0)
        if not depth and bracket[0] == "}":
            pieces.append(code[begin : bracket.end()])
            begin = bracket.end()
    return [*pieces, code[begin:]]


def _shared(piece: str) -> set[str]:
    """Tensors that other functions know by the same name: global ones, and members of classes."""
    outside = re.sub(_ARGUMENTS, "()", piece).split("{", 1)[0]
    head = outside.rsplit(";", 1)[-1]
    if _IS_CLASS.search(head):
        return _tensors(piece, set())
    return _tensors(outside.removesuffix(head) if "()" in head and "=" not in head else outside, set())


def _tensors(code: str, known: set[str]) -> set[str]:
    """Names that are declared as tensors, or made of one by a method of it."""
    tensors = known | set(_TENSOR.findall(code))
    for name, of in _DERIVED.findall(code):
        if not of or of in tensors:
            tensors.add(name)
    return tensors


def _is_operation(rest: str) -> bool:
    """Whether `::softmax`, `::_ops::exp::call` or `::nn::Linear` computes."""
    if _REGISTERS in rest:
        return False
    layer = rest.startswith("::nn::") and rest[6:7].isupper() and rest[6:] not in ("Module", "Cloneable")
    return layer or "::_ops::" in rest or _computes(rest.rsplit("::", 1)[-1])


def _defines(code: str, name: str) -> bool:
    """Whether it has a function of that name of its own."""
    function = rf"\b(?!return\b|else\b|case\b)\w+>?[&*]*\s[&*]*{name}\s*\([^;{{}}]{{0,2000}}\)[^;{{}}()]{{0,200}}\{{"
    variable = rf"\bauto\s*&*\s*{name}\s*=\s*\[|\bfunction<[^;{{}}]*>\s*{name}\s*=|\b\w+\s*&&?\s*{name}\s*[,)]"
    return re.search(f"{function}|{variable}", code) is not None


def _computes(name: str) -> bool:
    return name.removesuffix("_out").strip("_") in words.OPERATIONS
