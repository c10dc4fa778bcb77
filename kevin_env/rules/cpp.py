"""Which operations of torch or of a vendor C++ sources call. Comments and strings in them do not matter.

Found by patterns, not by a parser: what a name means is what the nearest declaration before it says.
"""

import functools
import re
from collections.abc import Iterable

from kevin_env.rules import vocabulary as words
from kevin_env.rules.cpp_names import ASKED, NUMBER, Types, tensors_in, types_of
from kevin_env.rules.cpp_operators import Operands, giving
from kevin_env.rules.cpp_scopes import declared_otherwise, members_of, surely_tensors_at, tensors_at
from kevin_env.rules.cpp_text import DIRECTIVE, code_of, compiled, pieces_of
from kevin_env.rules.cpp_vendors import called_by_name
from kevin_env.rules.operations import computes, stem, torch_operations

_BROKEN = re.compile(r'"\s?"')
"""Between two strings that are one."""
_ALIAS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(?:::)?((?:torch|at)\b(?:::\w+)*)")
_SYMBOL = re.compile(r"\b_ZN[KVr]*(?:2at|5torch)\w+")
"""How the linker calls what is in torch's namespaces."""
_GENERIC = re.compile(r"\bauto\s?(?:&{0,2}|\*)\s?(\w+)\s?[,)]")
"""Parameters that anything may be given for."""
_QUALIFIED = re.compile(r"\b(\w+)((?:::\w+)+)")
_ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_CHAIN = re.compile(rf"\b(\w+)\s*(?:\[[^\[\]\n]{{0,80}}\]\s*)?(?=((?:(?:\.|->)\s*\w+\s*{_ARGUMENTS}\s*)+))")
_METHOD = re.compile(rf"(?:\.|->)\s*(\w+)\s*{_ARGUMENTS}")
_CALL = re.compile(r"(?<![\w.:>])(?<!define )(\w+)\s?\(\s?(?=\w)")
_OF_TYPE = re.compile(rf"(?:\b(?:{NUMBER}|Tensor|auto)|<\s?{NUMBER}\s?>)\s$")
"""Before a name that is declared, and not called."""
_MEMBER = re.compile(r"(?:(?<!this)->|\.)\s?$")
_GIVEN = re.compile(r"[^(),;{}]{0,200}(?:\([^()]{0,200}\)[^(),;{}]{0,200}){0,8}")
_INNER = re.compile(r"\([^()]*\)")
_NO_QUESTION = re.compile(rf"(?<![\w.:])(?<!->)([A-Za-z_]\w*)\b(?!\s?(?:\[[^\[\]\n]{{0,80}}\]\s?)?(?:\.|->)\s?{ASKED})")
"""A name, and no question about it, such as `x.size(0)`."""
_NO_TYPES = (
    r"(?!(?:return|else|case|do|goto|throw|new|delete|sizeof|typename|co_\w+"
    r"|and|or|not|xor|bitand|bitor|compl|\w+_eq)\b)"
)
"""Before a word that stands before a name: with these it is no declaration."""
_DEFAULT = re.compile(r"=\s?\{[^;{}]{0,80}\}")
_PARAMETERS = rf"\(\s?(?:\)|[^(),]{{0,200}}?(?:\b(?:{NUMBER}|const|Tensor)\b|\w\s\w))"
_MATHS = frozenset(
    {"abs", "exp", "log", "sqrt", "rsqrt", "pow", "sin", "cos", "tan", "tanh", "erf", "floor", "norm", "min", "max"}
)
"""What C and CUDA call so as well, of numbers."""
_ANYBODYS = _MATHS | words.ANYBODYS
"""What vectors of registers, matrices of Eigen and classes of one's own have as methods, too."""
_ON_RESULT = re.compile(r"\)\s?(?:\.|->)\s?(\w+)\s?\(")
_FUNCTION_OBJECT = re.compile(
    r"\b(std::(?:plus|minus|multiplies|divides|modulus|negate))\s?<[\w\s:]*Tensor\s?>"
    r"|\b(std::(?:plus|minus|multiplies|divides|negate))\s?<\s?(?:void\s?)?>\s?[{(]\s?[})]\s?\((?=[^()]*\b(?:at|torch)::)"
)
_ON_DEVICE = re.compile(r"\b__(?:global|device)__\b")
"""Before code that runs on a GPU, where there are no tensors."""
_FUNCTION = rf"\b{_NO_TYPES}\w+>?[&*]*\s[&*]*(?:\w+::)*NAME\s*\((?P<first>[^,;{{}}()]{{0,400}})[,)]"
_NUMERIC = re.compile(rf"(?:const\s|unsigned\s)*(?:{NUMBER})\s(?:const\s)?\w+")
_REGISTERS = "::vec::"
"""Namespace of the processor's vector instructions, such as `at::vec::maximum`: they work on registers, not tensors."""


def operations(sources: Iterable[str]) -> list[str]:
    """Names of the operations, as they are written: `at::mm`, or `.softmax` of something declared as a tensor."""
    given = list(sources)
    file = "\n".join(code_of(source) for source in given)
    return [name for source in given for name in _operations(source, file)]


@functools.lru_cache(maxsize=64)  # asked of a source for every extension and library in its file
def _operations(source: str, file: str) -> list[str]:
    written, code = _BROKEN.sub("", compiled(source)), code_of(source)
    found = called_by_name(written, file) + ["".join(names) for names in _FUNCTION_OBJECT.findall(code)]
    roots = {"torch": "", "at": ""} | {name: of[2 if of.startswith("at") else 5 :] for name, of in _ALIAS.findall(code)}
    found += _SYMBOL.findall(written)
    called = [(root, rest) for root, rest in _QUALIFIED.findall(code) if root in roots]
    found += [root + rest for root, rest in called if _is_operation(roots[root] + rest)]
    pieces, types = pieces_of(code), types_of(file)
    everywhere = _members(code, types).union(*(_shared(piece, types) for piece in pieces))
    return found + [name for piece in pieces for name in _in_piece(piece, types, everywhere, file)]


@functools.lru_cache(maxsize=64)
def _members(code: str, types: Types) -> frozenset[str]:
    return frozenset(name for piece in pieces_of(code) for name in members_of(piece, types))


def _in_piece(piece: str, types: Types, everywhere: frozenset[str], file: str) -> list[str]:
    """Methods of tensors, and functions that are given one and that the file does not have of its own."""
    chains, calls = list(_CHAIN.finditer(piece)), _calls(piece)
    uses = {(chain.start(1), chain[1]) for chain in chains} | {use for _, given in calls for use in given}
    on_host = "Tensor" in file and not _ON_DEVICE.search(piece.split("{", 1)[0])
    generic = set(_GENERIC.findall(piece)) if on_host else set[str]()
    known = tensors_at(piece, types, tensors_in(piece, types, {*everywhere}), uses)
    found: list[str] = []
    for chain in chains:
        member = _MEMBER.search(piece, max(chain.start(1) - 3, 0), chain.start(1))
        if chain[1] in _members(file, types) if member else chain.start(1) in known:
            found += [f".{method}" for method in _METHOD.findall(chain[2]) if stem(method) in torch_operations()]
        elif chain[1] in generic:
            found += [
                f".{name}" for name in _METHOD.findall(chain[2]) if computes(name) and stem(name) not in _ANYBODYS
            ]
    called = dict.fromkeys(name for name, given in calls if any(place in known for place, _ in given))
    if "Tensor" in file:  # of what a call or a cast gives nothing is known but that such a method is a tensor's
        results = (name for name in _ON_RESULT.findall(piece) if computes(name) and stem(name) not in _ANYBODYS)
        called |= dict.fromkeys(results)
    found += _operators(piece, types, everywhere, file)
    return found + [name for name in called if not _takes_it(file, name)]


def _operators(piece: str, types: Types, everywhere: frozenset[str], file: str) -> list[str]:
    if "Tensor" not in file or _ON_DEVICE.search(piece.split("{", 1)[0]):
        return []
    operands = Operands(piece, giving(file))
    if not operands.names():
        return [f"operator{sign}" for sign in operands.signs(set())]
    shared = {*everywhere} - declared_otherwise(file)
    known = surely_tensors_at(piece, types, shared, operands.names(), operands.variables())
    return [f"operator{sign}" for sign in operands.signs(known)]


def _calls(piece: str) -> list[tuple[str, list[tuple[int, str]]]]:
    """Calls of functions by the names of operations, each with the places of names that its first argument is."""
    calls: list[tuple[str, list[tuple[int, str]]]] = []
    for call in _CALL.finditer(piece):
        declared = _OF_TYPE.search(piece, max(call.start() - 20, 0), call.start())
        judged = computes(call[1]) and call[1] not in _MATHS and not declared
        if judged and (given := _GIVEN.match(piece, call.end())):
            argument = _INNER.sub(lambda found: " " * len(found[0]), given[0])
            first = _NO_QUESTION.match(argument)
            places = [first] if first else _NO_QUESTION.finditer(argument)
            calls.append((call[1], [(call.end() + name.start(), name[1]) for name in places]))
    return calls


def _shared(piece: str, types: Types) -> set[str]:
    """Tensors that other functions know by the same name, as they are global."""
    outside = re.sub(_ARGUMENTS, "()", piece).split("{", 1)[0]
    head = outside.rsplit(";", 1)[-1]
    function = "()" in head and "=" not in head
    return tensors_in(outside.removesuffix(head) if function else outside, types, set())


def _is_operation(rest: str) -> bool:
    """Whether `::softmax`, `::_ops::exp::call` or `::nn::Linear` computes."""
    if _REGISTERS in rest:
        return False
    *spaces, last = rest.split("::")
    layer = rest.startswith("::nn::") and rest[6:7].isupper() and rest[6:] not in ("Module", "Cloneable")
    function = rest.startswith("::nn::functional::") and last[0].islower()
    inside = bool({"_ops", "cpublas", "blas", "fft", "linalg", "special"} & set(spaces)) and last[0].islower()
    return layer or function or inside or stem(last) in torch_operations()


@functools.lru_cache(maxsize=256)
def _takes_it(file: str, name: str) -> bool:
    """Whether a function of that name of the file's own may be what is given a tensor: not if all take numbers."""
    heads = [found["first"] for found in re.finditer(_FUNCTION.replace("NAME", name), DIRECTIVE.sub(" ", file))]
    return _defines(file, name) and not (heads and all(_NUMERIC.fullmatch(head.strip()) for head in heads))


@functools.lru_cache(maxsize=256)
def _defines(file: str, name: str, inside: frozenset[str] = frozenset()) -> bool:
    """Whether the file has a function of that name of its own, in any source, or something else that can be called."""
    code = _DEFAULT.sub("= 0", DIRECTIVE.sub(" ", file))
    function = rf"\b{_NO_TYPES}\w+>?[&*]*\s[&*]*(?:\w+::)*{name}\s*\([^;{{}}]{{0,2000}}\)[^;{{}}()]{{0,200}}\{{"
    variable = (
        rf"\bauto\s*[&*]*\s*{name}\s*=|\bfunction<[^;{{}}]*>\s*{name}\s*[=;({{,)]|\b\w+\s*&&?\s*{name}\s*[,)]"
        rf"|[\w>*&] ?\( ?\* ?(?:const )?{name} ?\) ?\("
    )
    if re.search(f"{function}|{variable}", code):
        return True
    macros = set(re.findall(r"#\s?define\s(\w+)", file))
    prototype = rf"(?={_PARAMETERS}){_ARGUMENTS}[^;{{}}()]{{0,80}};"
    kept = rf"(?<![\w.>:])(?!{NUMBER}\b|Tensor\b|auto\b){_NO_TYPES}(\w+)\s{name}\s?[{{;=,)]"
    declared = rf"(?<![\w.>])(?:{_NO_TYPES}(\w+)|\w+::\w+<[^;{{}}()=&|]{{1,200}}>)\s{name}\s?{prototype}|{kept}"
    if any((found[1] or found[2]) not in macros for found in re.finditer(declared, code)):
        return True
    return _is_macro(file, name, inside | {name})


def _is_macro(file: str, name: str, inside: frozenset[str]) -> bool:
    """Whether it is one with arguments, which comes down to no operation."""
    bodies = re.findall(rf"#\s?define\s{name}\([^()\n]*\)([^\n]*)", file)
    called = {each for body in bodies for each in re.findall(r"(\w+)\s?\(", body) if computes(each)} - _MATHS
    own = all(each not in inside and _defines(file, each, inside) for each in called)
    return bool(bodies) and own and not re.search(rf"#\s?undef\s{name}\b", file)
