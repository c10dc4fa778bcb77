"""What a name in C++ means at a place: a tensor, or something else, as the nearest declaration before it says."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kevin_env.rules.cpp_names import DERIVED, EACH, NUMBER, NUMBER_TYPE, OTHER, REGISTER, Types

_MARK = re.compile(r"[(){};,]")
_NEXT = re.compile(r",\s?[&*]?\s?(\w+)\s?(?=[=({;,\[])")
_COMMA = re.compile(r"\s?,")
_TEMPLATE = re.compile(r"\btemplate\s?<(?:[^<>;{}]|<(?:[^<>;{}]|<[^<>;{}]*>)*>)*>")
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_NUMBERS = re.compile(rf"\b(?:{NUMBER}|Scalar)(?:\s|&){{1,3}}(\w+)")
_AUTO = re.compile(r"\bauto\s*[&*]{0,2}\s*(\w+)\s*[={(:,)]")
_NO_TYPES = re.compile(
    "return|else|case|do|goto|throw|new|delete|sizeof|typename|and|or|not|xor|bitand|bitor|compl|co_\\w+|auto"
)
"""Words that stand before a name that is not declared there."""
_BEFORE_TYPE = re.compile(r"(?:[(,;{}<]|\bconst|\bstatic|\bextern|\bvolatile)\s?$")
_IS_CLASS = re.compile(r"\b(?:struct|class|union)\b")


def members_of(code: str, types: Types) -> set[str]:
    """Tensors that classes in it have."""
    return _read(code, types, set(), ()).members


def tensors_at(code: str, types: Types, known: set[str], uses: Iterable[tuple[int, str]]) -> set[int]:
    """Those of the places where the name means a tensor. `known` decides where no declaration is in sight."""
    return _read(code, types, known, uses).found


def surely_tensors_at(
    code: str, types: Types, known: set[str], uses: Iterable[tuple[int, str]], variables: Iterable[tuple[int, str, str]]
) -> set[int]:
    """As `tensors_at`, where a declaration of any type that is not a tensor's says that the name means none.

    `variables` are those that are declared by `auto` and made of a tensor.
    """
    code = _DIRECTIVE.sub(_blank, _TEMPLATE.sub(_blank, code))
    derived = [(place, "derived", name, of) for place, name, of in variables]
    each = [(found.start(1), "derived", found[1], found[2]) for found in EACH.finditer(code)]
    tensors = [(found.start(1), "tensor", found[1], "") for found in types.surely.finditer(code)]
    scopes = _Scopes(code, known)
    scopes.read([*derived, *each, *tensors, *_of_any_type(code)], uses)
    return scopes.found


@functools.lru_cache(maxsize=64)
def declared_otherwise(code: str) -> frozenset[str]:
    """Names that are declared with a type, or with `auto`, and not as tensors, anywhere in it."""
    return frozenset(name for _, _, name, _ in _of_any_type(code))


def _read(code: str, types: Types, known: set[str], uses: Iterable[tuple[int, str]]) -> "_Scopes":
    code = _TEMPLATE.sub(_blank, code)  # what stands there is no variable
    scopes = _Scopes(code, known)
    scopes.read(_declarations(code, types), uses)
    return scopes


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


_Event = tuple[int, str, str, str]
"""Place, what is there, its name, and what it is made of. Of two at a place the last of the alphabet has the word."""


def _of_any_type(code: str) -> list[_Event]:
    """Names behind a word that may be a type: in `f(a * b)` that is not sure, unless `a` is a number."""
    numbers = {found[1] for found in _NUMBERS.finditer(code)}
    events = [(found.start(1), "any", found[1], "") for found in _AUTO.finditer(code)]
    for found in OTHER.finditer(code):
        kind, between = found[2] or "", code[found.end() : found.start(3)]
        if _NO_TYPES.fullmatch(kind) or "Tensor" in kind or kind == "Variable":
            continue
        expression = ("*" in between or "&" in between) and (
            kind in numbers or not _BEFORE_TYPE.search(code, max(found.start() - 12, 0), found.start())
        )
        if not expression:
            events.append((found.start(3), "any", found[3], ""))
    return events


def _declarations(code: str, types: Types) -> list[_Event]:
    derived = [*DERIVED.finditer(code), *EACH.finditer(code)]
    events = [(found.start(1), "derived", found[1], found[2] or "") for found in derived]
    for found in REGISTER.finditer(code):
        if not found[2] or found[2] in types.registers:
            events.append((found.start(1), "other", found[1], ""))
    for found in OTHER.finditer(code):
        name = found[1] or found[2] or ""
        if not name or name in types.other or NUMBER_TYPE.fullmatch(name):
            events.append((found.start(3), "other", found[3], ""))
    return [*events, *((found.start(1), "tensor", found[1], "") for found in types.tensor.finditer(code))]


@dataclass
class _Scope:
    """What stands between two brackets."""

    block: bool
    of_class: bool = False
    names: list[str] = field(default_factory=list[str])
    pending: list[str] = field(default_factory=list[str])
    """Declared in parentheses that were closed here: the block that may follow knows them too."""
    declares: bool | None = None
    """Whether the statement that is being read declares tensors; None where it declares nothing that is known."""


class _Scopes:
    """Reads code from its begin to its end, with what each name means at the place."""

    def __init__(self, code: str, known: set[str]) -> None:
        self._code, self._known = code, known
        self._meanings: dict[str, list[bool]] = {}
        self._open = [_Scope(block=True)]
        self._head = 0
        self.members: set[str] = set()
        self.found: set[int] = set()

    def read(self, declarations: Iterable[_Event], uses: Iterable[tuple[int, str]]) -> None:
        marks = [(found.start(), found[0], "", "") for found in _MARK.finditer(self._code)]
        for place, what, name, of in sorted([*marks, *declarations, *((at, "use", name, "") for at, name in uses)]):
            match what:
                case "tensor":
                    self._declare(name, True)
                case "any" | "other" if len(self._open) > 1 and not self._open[-1].of_class:
                    self._declare(name, False)  # elsewhere a member of some class may be nearer
                case "derived":
                    if not of or self._meanings.get(of) or of in self._known:
                        self._declare(name, not of or self._is_tensor(of))
                case "use":
                    if self._is_tensor(name):
                        self.found.add(place)
                case "(" | "{":
                    self._enter(place, what == "{")
                case ")" | "}":
                    self._leave(place, what == "}")
                case ";" | ",":
                    self._separate(place, what == ";")
                case _:
                    pass

    def _is_tensor(self, name: str) -> bool:
        meanings = self._meanings.get(name)
        return meanings[-1] if meanings else name in self._known

    def _declare(self, name: str, tensor: bool) -> None:
        scope = self._open[-1]
        scope.names.append(name)
        self._meanings.setdefault(name, []).append(tensor)
        if scope.block:
            scope.declares = tensor
        if scope.of_class and tensor:
            self.members.add(name)

    def _forget(self, names: list[str]) -> None:
        for name in names:
            self._meanings[name].pop()
        names.clear()

    def _enter(self, place: int, block: bool) -> None:
        scope, outer = _Scope(block), self._open[-1]
        if block:
            scope.of_class = _IS_CLASS.search(self._code, self._head, place) is not None
            scope.names, outer.pending, self._head = outer.pending, [], place
        self._open.append(scope)

    def _leave(self, place: int, block: bool) -> None:
        scope = self._open.pop() if len(self._open) > 1 else _Scope(block)
        outer = self._open[-1]
        if not block:
            self._forget(scope.pending)
            outer.pending += scope.names
            return
        self._head = place
        for names in (scope.pending, scope.names, outer.pending):
            self._forget(names)
        if not _COMMA.match(self._code, place + 1):
            outer.declares = None

    def _separate(self, place: int, end: bool) -> None:
        scope = self._open[-1]
        self._forget(scope.pending)
        if end:
            scope.declares, self._head = None, place
        elif scope.block and scope.declares is not None and (following := _NEXT.match(self._code, place)):
            self._declare(following[1], scope.declares)
