"""What macros stand for in C++: names of operations, and calls that a macro writes."""

import re
from collections.abc import Iterator

from kevin_env.rules.operations import computes

_NAME = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w:]+)[ \t]*$", re.MULTILINE)
_CALL = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([\w \t,.]{0,200})\)[ \t]*([^\n]{1,400})$", re.MULTILINE)
_NAMES = frozenset({"at", "torch", "at::Tensor", "torch::Tensor", "Tensor"})
_PASTED = re.compile(r"\s?##\s?")
_BRACKET = re.compile(r"[(),]")
_MOST_MACROS = 64
_MOST_CALLS = 200
_LONGEST_CALL = 1000
_DEEPEST = 4
_LARGEST = 200_000


def expanded(code: str) -> str:
    """Code, in which every space is one, with its macros in their place, also those that macros write."""
    longest = _LARGEST + 4 * len(code)
    for _ in range(_DEEPEST):
        before, code = code, _once(code)
        if code == before or len(code) > longest:
            break
    return code


def _once(code: str) -> str:
    for name, meaning in _NAME.findall(code)[:_MOST_MACROS]:
        if computes(meaning) or meaning in _NAMES:
            code = re.sub(rf"\b{name}\b", meaning, code)
    for name, parameters, body in list(dict.fromkeys(_CALL.findall(code)))[:_MOST_MACROS]:
        names = [each.strip() for each in parameters.split(",")]
        code = "".join(_replaced(code, name, names, body))
    return code


def _replaced(code: str, name: str, parameters: list[str], body: str) -> Iterator[str]:
    done, calls = 0, 0
    for call in re.finditer(rf"\b{name} ?\(", code):
        line = code.rfind("\n", 0, call.start()) + 1
        if call.start() < done or calls == _MOST_CALLS or code[line : line + 80].lstrip().startswith("#"):
            continue
        end, arguments = _arguments(code, call.end())
        if parameters[-1:] == ["..."] and len(arguments) >= len(parameters):
            rest = len(parameters) - 1
            arguments = [*arguments[:rest], ", ".join(arguments[rest:])]
        if len(arguments) != len(parameters):
            continue
        names = ["__VA_ARGS__" if each == "..." else each for each in parameters]
        given = dict(zip(names, arguments, strict=True))
        text = re.sub(r"\w+", lambda word, given=given: given.get(word[0], word[0]), body)
        yield code[done : call.start()] + _PASTED.sub("", text)
        done, calls = end, calls + 1
    yield code[done:]


def _arguments(code: str, begin: int) -> tuple[int, list[str]]:
    """Where a call ends, and what is given to it; nothing where its end is not found."""
    depth, arguments, last = 1, list[str](), begin
    for mark in _BRACKET.finditer(code, begin, begin + _LONGEST_CALL):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0 or (depth == 1 and mark[0] == ","):
            arguments.append(code[last : mark.start()].strip())
            last = mark.end()
        if depth == 0:
            return mark.end(), arguments
    return begin, []
