"""Which names in C++ stand for tensors: as the nearest declaration before a place says, where one is seen."""

import functools
import re
from dataclasses import dataclass

ASKED = (
    r"(?:template )?(?:size|stride|data_|data\s?<|numel|nbytes|itemsize|dim\b|ndimension|accessor|packed_|scalar_|dtype"
    r"|device|option|item\b|const_|mutable_data|get_|element_|is_|defined|storage|layout|use_count|names\b|sym_|key_set"
    r"|to_?[sS]tring|unsafe|has_|suggest_)"
)
"""Beginnings of a tensor's members that tell of it, and give no tensor. `data()` gives one."""
_TYPE = r"(?:(?:torch::autograd::Variable|(?:(?:torch|at)::)?(?:Tensor|TensorList))\b)"
_OWN_TYPE = r"(?:torch::autograd::Variable|(?:torch|at)::(?:Tensor|TensorList))\b"
_TENSOR = (
    r"\b(?:{0}|(?:std::vector|(?:std|c10|torch|at)::(?:optional|ArrayRef)|c10::List)<\s*{0}\s*>)"
    r"\s*(?:const\s*)?[&*]?\s*(\w+)"
)
DERIVED = re.compile(
    rf"\bauto\s*[&*]{{0,2}}\s*(\w+)\s*=\s*&?\s*"
    rf"(?:(?:torch|at)::(?:empty|zeros|ones|full)\w*\b|(\w+)\s*(?:(?:\.|->)\s*(?!{ASKED})|;|\[))"
)
EACH = re.compile(r"\b(?:auto|decltype\(auto\))\s*&{0,2}\s*(\w+)\s*:\s*(\w+)\s*\)")
"""Of a loop over several: the name of one, and of all."""
OTHER = re.compile(
    r"(?:\bstd::(?:vector|array)<\s?(\w+)[^<>;{}()]{0,40}>|\bVectorized<[^<>;{}()]{0,80}>"
    r"|(?<![\w:])([A-Za-z_]\w*)(?:<[^<>;{}()]{0,80}>)?)"
    r"(?=(?:[ \n&*]|const\b|__restrict(?:__)?\b){1,40}\b([A-Za-z_]\w*))"
)
REGISTER = re.compile(r"\bauto\s?&{0,2}\s?(\w+)\s?=\s?(?:(\w+)|(?:\w+::){0,3}Vectorized<[^<>;{}()]{0,80}>)(?:::|\()")
NUMBER = r"(?:unsigned|signed|long|short|int|char|float|double|bool|size_t|u?int\d+_t|__half2?|__m\d+[di]?)"
_PLAIN = re.compile(rf"{NUMBER}(?: {NUMBER})*|(?:\w+::)*Vectorized\s?<[^;]*>")
NUMBER_TYPE = re.compile(NUMBER)
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

_IS_TORCHS = re.compile(
    r"\b(?:using\s(?:namespace\s)?(?:torch|at)\b(?:::Tensor)?\s?;|namespace\s(?:torch|at)\b|using\sTensor\s?=\s?(?:torch|at)::)"
)
"""What makes it torch's class."""


@dataclass(frozen=True)
class Types:
    """Names of types in the sources of a file: how tensors are declared, and what certainly is something else."""

    tensor: re.Pattern[str]
    surely: re.Pattern[str]
    """As `tensor`, where the bare name `Tensor` may be the class of another library, such as CuTe's."""
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
    named = {name for name, of in aliases.items() if of <= {"at::Tensor", "torch::Tensor"}} - unsure
    also = "".join(rf"|\b{name}\b" for name in sorted(named))
    surely = _tensor(_TYPE if _IS_TORCHS.search(code) and not own else _OWN_TYPE, also)
    return Types(_tensor(_OWN_TYPE if own else _TYPE, also), surely, frozenset(other), frozenset(registers))


def _tensor(kind: str, also: str) -> re.Pattern[str]:
    return re.compile(_TENSOR.format(f"(?:{kind}{also})"))


def _plain(meaning: str, known: set[str]) -> bool:
    """Whether a type is one of numbers, of registers, or a class of the file's own."""
    return meaning in known or (_PLAIN.fullmatch(meaning) is not None and "Tensor" not in meaning)


def tensors_in(code: str, types: Types, known: set[str]) -> set[str]:
    """Names that are declared as tensors anywhere in it, or made of one by a method of it."""
    found = known | set(types.tensor.findall(code))
    for name, of in [*DERIVED.findall(code), *EACH.findall(code)]:
        if not of or of in found:
            found.add(name)
    return found
