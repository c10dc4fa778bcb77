"""Which of torch's operations C++ sources call. Comments and strings in them do not matter."""

import re
from collections.abc import Iterable

from kevin_env.rules import vocabulary as words

_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_ALIAS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(?:::)?(torch|at)\b")
_QUALIFIED = re.compile(r"\b(\w+)((?:::\w+)+)\s*\(")
_TENSOR = re.compile(r"\b(?:torch|at)::Tensor\s*(?:const\s*)?&?\s*(\w+)")
_REGISTERS = "::vec::"
"""Namespace of the processor's vector instructions, such as `at::vec::maximum`: they work on registers, not tensors."""
_METHOD = re.compile(r"\b(\w+)\s*\.\s*(\w+)\s*\(")


def operations(sources: Iterable[str]) -> list[str]:
    """Names of the operations, as they are written: `at::mm`, or `.softmax` of something declared as a tensor."""
    found: list[str] = []
    for source in sources:
        code = _NO_CODE.sub(" ", source)
        roots = {"torch", "at", *(name for name, _ in _ALIAS.findall(code))}
        for root, rest in _QUALIFIED.findall(code):
            if root in roots and not rest.startswith(_REGISTERS) and _computes(rest.rsplit("::", 1)[-1]):
                found.append(root + rest)
        tensors = set(_TENSOR.findall(code))
        found += [f".{method}" for name, method in _METHOD.findall(code) if name in tensors and _computes(method)]
    return found


def _computes(name: str) -> bool:
    return name.removesuffix("_out").strip("_") in words.OPERATIONS
