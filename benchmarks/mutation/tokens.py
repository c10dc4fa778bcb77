"""Mutants of kernels in C++ and Triton, by their text: for a real candidate and judge."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

CHANGES = (
    ("comparison", r" < ", " <= "),
    ("comparison", r" > ", " < "),
    ("bound", r"< (rows|columns)\b", r"< \1 - 1"),
    ("bound", r"(long i|Py_ssize_t i) = (\d)", r"\1 = \2 + 1"),
    ("bound", r"row = 0\b", "row = 1"),
    ("missing bound check", r" & \(\w+ < \w+\)", ""),
    ("missing bound check", r"\(row < rows\) & ", ""),
    ("stride", r"\* columns\b", "* (columns - 1)"),
    ("stride", r"\+= columns\b", "+= columns - 1"),
    ("stride", r"\* ROWS\b", "* (ROWS - 1)"),
    ("half of the work", r"some\(rows / 2, rows\);", ""),
    ("half of the work", r"rows / 2\b", "rows / 2 - 1"),
    ("missing synchronisation", r"half\.join\(\);", "half.detach();"),
    ("narrowed accumulator", r"double", "float"),
    ("narrowed accumulator", r"float sum = 0;", "_Float16 sum = 0;"),
    ("operator", r" - most", " + most"),
    ("dropped term", r" - most", ""),
    ("dropped term", r" \+ most", ""),
    ("dropped term", r" - tl\.max\(value, axis=1\)\[:, None\]", ""),
    ("operator", r"/= sum", "*= sum"),
    ("operator", r"total / rows", "total / (rows - 1)"),
    ("operator", r"(total|sum) \+= ", r"\1 = "),
    ("function", r"std::exp\(", "std::expm1("),
    ("function", r"std::log\(", "std::log1p("),
    ("function", r"tl\.exp\(", "tl.exp2("),
    ("function", r"tl\.max\(", "tl.min("),
    ("wrong index", r"in\[i\]", "in[0]"),
    ("wrong index", r"out\[i\]", "out[i ^ 1]"),
    ("wrong index", r"target\[row\]", "target[0]"),
    ("axis", r"axis=1", "axis=0"),
    ("initial value", r'other=-float\("inf"\)', "other=0.0"),
    ("constant in the 3rd digit", r"(std::exp\([^;]*?most\))", r"(1.01f * \1)"),
    ("constant in the 3rd digit", r"/= sum", "/= 1.004f * sum"),
    ("constant in the 3rd digit", r"value / tl\.sum", "1.004 * value / tl.sum"),
)
"""Class of the fault, what is looked for in the text of a kernel, and what takes its place."""
KERNEL = re.compile(r'SOURCE = r"""(.*?)"""|@triton\.jit(.*?)\nclass ', re.DOTALL)


@dataclass(frozen=True)
class TokenMutant:
    """A submission with one change in its kernel: the class, what was changed, the line, and the
    whole text.
    """

    kind: str
    name: str
    line: int
    code: str


def token_mutants(code: str) -> Iterator[TokenMutant]:
    """Every change at every place of the kernel of a submission."""
    kernel = KERNEL.search(code)
    if kernel is None:
        return
    start, stop = kernel.span(1 if kernel.group(1) is not None else 2)
    for kind, pattern, by in CHANGES:
        for found in re.compile(pattern).finditer(code, start, stop):
            changed = found.expand(by)
            text = code[: found.start()] + changed + code[found.end() :]
            line = code.count("\n", 0, found.start()) + 1
            yield TokenMutant(kind, f"{found.group().strip()} -> {changed.strip()}", line, text)
