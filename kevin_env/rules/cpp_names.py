"""Which names in C++ stand for tensors: as the nearest declaration before a place says, where one is seen."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

ASKED = (
    r"(?:template )?(?:size|stride|data_|data\s?<|numel|nbytes|itemsize|dim\b|ndimension|accessor|packed_|scalar_|dtype"
    r"|device|option|item\b|const_|mutable_data|get_|element_|is_|defined)"
)
"""Beginnings of a tensor's members that tell of it, and give no tensor. `data()` gives one."""
_TYPE = r"(?:(?:torch|at)::)?(?:Tensor|TensorList)"
_OWN_TYPE = r"(?:torch|at)::(?:Tensor|TensorList)"
_TENSOR = r"\b(?:{0}|std::vector<\s*{0}\s*>)\s*(?:const\s*)?[&*]?\s*(\w+)"
_DERIVED = re.compile(
    rf"\bauto\s*[&*]{{0,2}}\s*(\w+)\s*=\s*&?\s*"
    rf"(?:(?:torch|at)::(?:empty|zeros|ones|full)\w*\b|(\w+)\s*(?:(?:\.|->)\s*(?!{ASKED})|;|\[))"
)
_OTHER = re.compile(
    r"(?:\bstd::(?:vector|array)<\s?(\w+)[^<>;{}()]{0,40}>|\bVectorized<[^<>;{}()]{0,80}>"
    r"|(?<![\w:])([A-Za-z_]\w*)(?:<[^<>;{}()]{0,80}>)?)"
    r"(?=(?:[ \n&*]|const\b|__restrict(?:__)?\b){1,40}\b([A-Za-z_]\w*))"
)
_REGISTER = re.compile(r"\bauto\s?&{0,2}\s?(\w+)\s?=\s?(?:(\w+)|(?:\w+::){0,3}Vectorized<[^<>;{}()]{0,80}>)(?:::|\()")
NUMBER = r"(?:unsigned|signed|long|short|int|char|float|double|bool|size_t|u?int\d+_t|__half2?|__m\d+[di]?)"
_PLAIN = re.compile(rf"{NUMBER}(?: {NUMBER})*|(?:\w+::)*Vectorized\s?<[^;]*>")
_NUMBER_TYPE = re.compile(NUMBER)
_STRUCT = re.compile(r"\b(?:struct|class|union)\s(?:alignas\([^()]*\)\s?)?(\w+)(?:\sfinal)?\s?\{")
_USING = re.compile(r"\busing\s(\w+)\s?=\s?([^;{}]{1,200});")
_TYPEDEF = re.compile(r"\btypedef\s([^;{}]{1,200})\s(\w+)\s?;")
_UNSURE = re.compile(r"\b(?:typename|class)\s(\w+)\s?(?=[,>=])|#\s?define\s(\w+)")
"""Parameters of templates, and macros: they may be anything."""
_TORCHS_TENSOR = re.compile(
    r"\busing\s(?!namespace\sstd\b)(?:namespace\b|[\w:]*\bTensor(?:List)?\b)|\btypedef\b[^;{}]*\bTensor(?:List)?\s?;"
    r"|\bnamespace\s(?:torch|at)\b|#\s?define\sTensor"
)
"""What may make the bare name torch's class, though a class of that name is the file's own."""
_MARK = re.compile(r"[(){};,]")
_NEXT = re.compile(r",\s?[&*]?\s?(\w+)\s?(?=[=({;,\[])")
_COMMA = re.compile(r"\s?,")
_TEMPLATE = re.compile(r"\btemplate\s?<(?:[^<>;{}]|<(?:[^<>;{}]|<[^<>;{}]*>)*>)*>")
_IS_CLASS = re.compile(r"\b(?:struct|class|union)\b")


@dataclass(frozen=True)
class Types:
    """Names of types in the sources of a file: how tensors are declared, and what certainly is something else."""

    tensor: re.Pattern[str]
    other: frozenset[str]
    registers: frozenset[str]


@functools.lru_cache(maxsize=64)
def types_of(code: str) -> Types:
    """Those that code declares."""
    aliases: dict[str, set[str]] = {}
    pairs = [*_USING.findall(code), *((name, meaning) for meaning, name in _TYPEDEF.findall(code))]
    for name, meaning in pairs:
        aliases.setdefault(name, set()).add(meaning.replace("const ", "").replace("typename ", "").strip(" \n*&"))
    unsure = {name for names in _UNSURE.findall(code) for name in names}
    structs = set(_STRUCT.findall(code)) - unsure - aliases.keys()
    own = "Tensor" in structs and not _TORCHS_TENSOR.search(code)
    other = structs if own else structs - {"Tensor", "TensorList"}
    for _ in range(3):  # an alias may be one of an alias
        other |= {name for name, of in aliases.items() if name not in unsure and all(_plain(one, other) for one in of)}
    registers = {name for name in other & aliases.keys() if any("Vectorized" in one for one in aliases[name])}
    return Types(re.compile(_TENSOR.format(_OWN_TYPE if own else _TYPE)), frozenset(other), frozenset(registers))


def _plain(meaning: str, known: set[str]) -> bool:
    """Whether a type is one of numbers, of registers, or a class of the file's own."""
    return meaning in known or (_PLAIN.fullmatch(meaning) is not None and "Tensor" not in meaning)


def tensors_in(code: str, types: Types, known: set[str]) -> set[str]:
    """Names that are declared as tensors anywhere in it, or made of one by a method of it."""
    found = known | set(types.tensor.findall(code))
    for name, of in _DERIVED.findall(code):
        if not of or of in found:
            found.add(name)
    return found


def members_of(code: str, types: Types) -> set[str]:
    """Tensors that classes in it have."""
    return _read(code, types, set(), ()).members


def tensors_at(code: str, types: Types, known: set[str], uses: Iterable[tuple[int, str]]) -> set[int]:
    """Those of the places where the name means a tensor. `known` decides where no declaration is in sight."""
    return _read(code, types, known, uses).found


def _read(code: str, types: Types, known: set[str], uses: Iterable[tuple[int, str]]) -> "_Scopes":
    code = _TEMPLATE.sub(lambda found: " " * len(found[0]), code)  # what stands there is no variable
    scopes = _Scopes(code, known)
    scopes.read(_declarations(code, types), uses)
    return scopes


_Event = tuple[int, str, str, str]
"""Place, what is there, its name, and what it is made of. Of two at a place the last of the alphabet has the word."""


def _declarations(code: str, types: Types) -> list[_Event]:
    events = [(found.start(1), "derived", found[1], found[2] or "") for found in _DERIVED.finditer(code)]
    for found in _REGISTER.finditer(code):
        if not found[2] or found[2] in types.registers:
            events.append((found.start(1), "other", found[1], ""))
    for found in _OTHER.finditer(code):
        name = found[1] or found[2] or ""
        if not name or name in types.other or _NUMBER_TYPE.fullmatch(name):
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
                case "other" if len(self._open) > 1 and not self._open[-1].of_class:
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
