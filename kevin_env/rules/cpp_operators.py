"""Operators in C++ that may compute on tensors: `x * y`, `-x`, `x += y`. What the names in them mean others say."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kevin_env.rules import vocabulary as words
from kevin_env.rules.operations import torch_operations

_TOKEN = re.compile(r"->|\+\+|--|<<=?|>>=?|&&|\|\||[-+*/%&|^<>=!]=|[-+*/%&|^<>~]")
_BINARY = re.compile(r"[-+*/%&|^<>=!]=|[-+*/%&|^<>]")
_UNARY = ("-", "~")
_LEFT_ONLY = re.compile(r"[-+*/%&|^]=|[<>]")
"""Where only the left side tells: brackets of templates, and what fills its left side."""
_DECLARING = ("*", "&")
"""What stands between a type and a name as well."""
_VARIABLE = re.compile(r"\bauto\s?&{0,2}\s?(\w+)\s?=(?=([^;]*))")
_NUMBER = re.compile(r"\b(?:int|float|double|long|u?int\d+_t|Scalar)(?:\s|&){1,3}(\w+)")
_WITH_NOTHING = re.compile(r" ?(?:nullptr|NULL)\b")
"""What asks whether there is something, and computes nothing."""
_DEEPEST = 6
"""Brackets round an operand that are looked into."""
_PRIMARY = re.compile(r"(?:this ?-> ?|\* ?)?((?:\w+ ?:: ?)*)(\w+)")
_METHOD = re.compile(r" ?(?:\.|->) ?(\w+) ?(?=\()")
_NOT_A_VALUE = re.compile(
    "return|else|case|do|goto|throw|new|delete|sizeof|typename|co_return|co_yield|co_await|const|auto|operator"
)
_ALLOCATES = re.compile(r"(?:torch|at)::(?:empty|zeros|ones|full|from_blob|arange|clone)\w*")
_MOVES = frozenset({"std::move", "std::forward", "py::cast", "pybind11::cast"})
_GIVES_TENSOR = frozenset(
    words.TENSOR_TENSOR
    - {"type", "data", "storage", "untyped_storage", "numpy", "copy", "__getitem__", "new", "astype"}
) | {"index", "slice", "alias", "variable_data", "tensor_data"}
_FUNCTION = re.compile(r"(?<![<\w:])(?:torch|at)::Tensor\s?&?\s(?:\w+::)*(\w+)\s?\((?!\w+\))")
_OTHER_FUNCTION = re.compile(r"\b(?:void|bool|int|float|double|size_t|u?int\d+_t|auto|T|scalar_t)\s?[&*]?\s(\w+)\s?\(")
_POINTER = re.compile(r"\bTensor\s?(?:const\s?)?\*\s?(?:const\s)?(\w+)")
_SEVERAL = re.compile(
    r"\bTensorList\s?(?:const\s?)?&?\s?(\w+)|\b(?:vector|optional|ArrayRef|List)\s?<\s?[\w:]*Tensor\s?>\s?(?:const\s?)?&?\s?(\w+)"
)


@functools.lru_cache(maxsize=64)
def giving(file: str) -> frozenset[str]:
    """Functions in a file that give a tensor, and by whose name there is none that gives something else."""
    return frozenset(_FUNCTION.findall(file)) - frozenset(_OTHER_FUNCTION.findall(file))


@dataclass(frozen=True)
class _Operand:
    """An operand that is a tensor if the name at `place` means one; surely where it has no name."""

    place: int
    name: str


class Operands:
    """The operators in a piece of code, each with the operands that may be tensors."""

    def __init__(self, code: str, functions: frozenset[str]) -> None:
        self._code, self._functions = code, functions
        tokens = [found for found in _TOKEN.finditer(code) if _BINARY.fullmatch(found[0]) or found[0] == "~"]
        self._pairs = _brackets(code) if tokens else {}
        several = {name for names in _SEVERAL.findall(code) for name in names if name}
        self._held = several | set(_POINTER.findall(code))
        """Names of what holds tensors, or points at one."""
        self._numbers = set(_NUMBER.findall(code))
        self._found = list(self._operators(tokens))

    def names(self) -> list[tuple[int, str]]:
        """Places and names of the operands about which has to be known whether they are tensors."""
        return [(each.place, each.name) for _, operands in self._found for each in operands if each.name]

    def signs(self, known: set[int]) -> list[str]:
        """The operators with a tensor as an operand, where the names at the places `known` mean tensors."""
        return [
            sign for sign, operands in self._found if any(not each.name or each.place in known for each in operands)
        ]

    def variables(self) -> Iterator[tuple[int, str, str]]:
        """Variables by `auto` that are made of a tensor: place, name, and the name of the tensor if it has one."""
        for found in _VARIABLE.finditer(self._code):
            made = self._operand(found.end(), until=found.end(2))
            if made:
                yield found.start(1), found[1], made.name

    def _operators(self, tokens: list[re.Match[str]]) -> Iterator[tuple[str, list[_Operand]]]:
        for token in tokens:
            if _WITH_NOTHING.match(self._code, token.end()):
                continue
            before = self._skipped(token.start())
            named = self._word_before(before) == "operator"
            operands = self._called(before, token.end()) if named else self._operands(token)
            if found := [each for each in operands if each]:
                yield token[0], found

    def _operands(self, token: re.Match[str]) -> list[_Operand | None]:
        sign, begin, end = token[0], self._left_of(token.start()), token.end()
        if begin is None:
            return [self._operand(end)] if sign in _UNARY else []
        left = self._operand(begin, until=token.start())
        sure = sign not in _DECLARING or self._is_value(begin, token.start())
        return [left, self._operand(end) if sure and not _LEFT_ONLY.fullmatch(sign) else None]

    def _called(self, before: int, end: int) -> list[_Operand | None]:
        """Of `operator+(x, y)` and `x.operator+(y)`, where `before` is the end of the word."""
        opens = re.compile(r" ?\(").match(self._code, end)
        member = self._joined(before - len("operator"))
        place = None if member is None else self._left_of(member)
        given = self._operand(opens.end()) if opens else None
        return [given, None if place is None else self._operand(place, until=member)]

    def _left_of(self, end: int) -> int | None:
        """Where the operand begins that ends there; None where there is none."""
        while True:
            place, alone = self._before_brackets(end)
            word = self._word_before(place)
            if alone or not word or _NOT_A_VALUE.fullmatch(word):
                return place if alone else None
            joined = self._joined(place - len(word))
            if joined is None:
                return place - len(word)
            end = joined

    def _before_brackets(self, end: int) -> tuple[int, bool]:
        """The end of the name before the brackets that end there, or where they begin, and that no name is before."""
        place = self._skipped(end)
        while place and self._code[place - 1] in ")]":
            opened = self._pairs.get(place - 1)
            if opened is None:
                return 0, False
            place = self._skipped(opened)
            last = self._code[place - 1 : place]
            if last == ">":
                return 0, False  # a cast, or a function of a template
            if not (last.isalnum() or last in ("_", ")", "]")) or _NOT_A_VALUE.fullmatch(self._word_before(place)):
                return opened, True
        return place, False

    def _joined(self, place: int) -> int | None:
        """The end of what the word at the place belongs to by `.`, `->` or `::`; None where it stands alone."""
        before = self._skipped(place)
        for sign in (".", "->", "::"):
            if self._code.endswith(sign, 0, before):
                return before - len(sign)
        return None

    def _skipped(self, place: int) -> int:
        while place and self._code[place - 1] in " \n":
            place -= 1
        return place

    def _word_before(self, end: int) -> str:
        begin = end
        while begin and (self._code[begin - 1].isalnum() or self._code[begin - 1] == "_"):
            begin -= 1
        return self._code[begin:end]

    def _is_value(self, begin: int, end: int) -> bool:
        """Whether what stands there is surely no type: a number, a call, or what follows `=` or `return`."""
        text = self._code[begin:end].strip()
        before = self._skipped(begin)
        shown = self._code[before - 1] in "=+-/%?:" if before else False
        number = text[:1].isdigit() or text in self._numbers
        return number or text[-1:] in ")]" or shown or self._word_before(before) == "return"

    def _operand(self, begin: int, until: int | None = None, depth: int = _DEEPEST) -> _Operand | None:
        """The operand that begins there, if it may be a tensor; it ends at `until` if that is given."""
        while begin < len(self._code) and self._code[begin] in " \n":
            begin += 1
        if self._code.startswith("(", begin):
            end = self._pairs.get(begin, -1)
            inner = self._operand(begin + 1, end, depth - 1) if end > 0 and depth else None
            return inner and self._after(inner, end + 1, until)
        primary = _PRIMARY.match(self._code, begin)
        if not primary or _NOT_A_VALUE.fullmatch(primary[2]) or primary[2][0].isdigit():
            return None
        spaces, name, end = primary[1].replace(" ", ""), primary[2], primary.end()
        call = re.compile(r" ?\(").match(self._code, end)
        if call:
            return self._call(spaces + name, call.end() - 1, until, depth)
        if spaces or name == "this":
            return None
        pointed = primary[0].startswith("*") or self._is_pointed_at(begin)
        return self._variable(_Operand(primary.start(2), name), pointed, end, until)

    def _is_pointed_at(self, begin: int) -> bool:
        """Whether a `*` stands before it that is no product."""
        before = self._skipped(begin)
        return self._code.endswith("*", 0, before) and self._left_of(before - 1) is None

    def _call(self, name: str, opens: int, until: int | None, depth: int) -> _Operand | None:
        end = self._pairs.get(opens, -1)
        if end < 0:
            return None
        if name in _MOVES:
            inner = self._operand(opens + 1, end, depth - 1) if depth else None
            return inner and self._after(inner, end + 1, until)
        made = name in self._functions or _ALLOCATES.fullmatch(name)
        return self._after(_Operand(opens, ""), end + 1, until) if made else None

    def _variable(self, found: _Operand, pointed: bool, end: int, until: int | None) -> _Operand | None:
        if found.name not in self._held or pointed:
            return None if pointed and found.name not in self._held else self._after(found, end, until)
        taken = re.compile(r" ?(?:(?=\[)|(?:\.|->) ?(?:at|front|back|value|get)\b ?(?=\())").match(self._code, end)
        if not taken or taken.end() not in self._pairs:
            return None
        return self._after(found, self._pairs[taken.end()] + 1, until)

    def _after(self, found: _Operand, end: int, until: int | None) -> _Operand | None:
        """The operand, if what is taken of it there is a tensor, too."""
        code = self._code
        while True:
            if index := re.compile(r" ?(?=\[)").match(code, end):
                end = self._pairs.get(index.end(), len(code)) + 1
            elif method := _METHOD.match(code, end):
                if method[1] not in _GIVES_TENSOR and method[1].strip("_") not in torch_operations():
                    return None
                end = self._pairs.get(method.end(), len(code)) + 1
            elif re.compile(r" ?(?:\.|->|::|<\w)").match(code, end):
                return None
            else:
                break
        return found if until is None or not code[end:until].strip() else None


def _brackets(code: str) -> dict[int, int]:
    """For each bracket the place of the one that belongs to it."""
    pairs, opened = dict[int, int](), list[int]()
    for found in re.finditer(r"[()\[\]{}]", code):
        if found[0] in "([{":
            opened.append(found.start())
        elif opened and code[opened[-1]] + found[0] in ("()", "[]", "{}"):
            pairs[found.start()] = opened.pop()
            pairs[pairs[found.start()]] = found.start()
    return pairs
