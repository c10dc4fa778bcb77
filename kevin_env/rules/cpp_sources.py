"""Sources in C++ among a file's strings, and what their functions return."""

import ast
import re

from kevin_env.parsing import nodes_of, texts_of
from kevin_env.rules import vocabulary as words
from kevin_env.rules.syntax import constant_text

_LIBRARY = re.compile(r"(?:TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?|\bRegisterOperators(?:\s+\w+)?)\s*[({]")
_QUALIFIERS = r'(?:extern "C" |(?:static|inline|constexpr|const|unsigned|signed|long) )*'
_TYPE = r"([\w:]+(?:<[^;(){}]*>)?)"
_DECLARATION = re.compile(rf"^[ \t]*{_QUALIFIERS}{_TYPE}[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
_TRAILING = re.compile(rf"\bauto[ \t]+(\w+)[ \t]*\([^;{{}}]*\)[ \t]*->\s*{_TYPE}")
_BOUND = re.compile(r"\bdef\(\s*\"(\w+)\"\s*,\s*&?(?:\w+::)*(\w+)")
_LAMBDA = re.compile(rf"\bdef\(\s*\"(\w+)\"\s*,\s*\[[^\]]*\]\s*\([^;{{}}]*\)\s*->\s*{_TYPE}")
_TORCHS = re.compile(r"\b(?:at|torch)::\w")
"""What only code in C++ has: `load_inline` writes the first lines itself."""
_MOST_SOURCES = 64
_TUPLE = re.compile(r"(?:std::)?(?:tuple|pair)<(.*)>")
_CLASS = re.compile(r"\bclass_<[^;()]*>\s*\(\s*\w+\s*,\s*\"(\w+)\"")


def registers_operators(tree: ast.Module) -> bool:
    """Whether C++ sources in the file register operators. Their namespace may be a macro, or filled in later."""
    return any(_LIBRARY.search(text) for text in texts_of(tree))


def returned_types(tree: ast.Module) -> dict[str, set[str]]:
    """What C++ sources in the file declare to return, by the name by which Python calls it; of a class nothing."""
    declared = dict[str, set[str]]()
    bound = dict[str, str]()
    defined = dict[str, set[str]]()
    for text in texts_of(tree):
        bound |= dict(_BOUND.findall(text))
        defined |= {name: {"void"} for name in _CLASS.findall(text)}
        defined |= {name: {kind} for name, kind in _LAMBDA.findall(text)}
        trailing = dict(_TRAILING.findall(text))
        for kind, name in _DECLARATION.findall(text):
            kinds = {trailing.get(name, kind) if kind == "auto" else kind}
            declared.setdefault(name, set()).update(kinds - {"return", "else"})
    return declared | {own: declared.get(of, set()) for own, of in bound.items()} | defined


def are_numbers(kinds: set[str]) -> bool:
    """Whether types in C++ are known, and all of numbers, several of them, or nothing."""
    return bool(kinds) and all(map(_is_number, kinds))


def numbers_among(kinds: set[str]) -> tuple[bool, ...]:
    """Which entries of the one tuple that is returned are numbers; empty where that cannot be told."""
    tuples = [match[1] for kind in kinds if (match := _TUPLE.fullmatch(kind))]
    if len(tuples) != 1 or len(kinds) != 1:
        return ()
    plain = re.sub(r"<[^<>]*>", lambda inner: inner[0].replace(",", ";"), tuples[0])
    return tuple(_is_number(each) for each in plain.split(","))


def _is_number(kind: str) -> bool:
    """Whether a type in C++ is that of a number, of nothing or of a container of numbers."""
    return set(re.findall(r"[a-z_][\w:]*", kind, re.IGNORECASE)) <= words.SCALARS | words.SEVERAL


def sources_in(tree: ast.Module) -> list[str]:
    """Strings that are code in C++, also with a word in them replaced."""
    written = [text for text in texts_of(tree) if "#include" in text or _is_cpp(text)]
    for node in nodes_of(tree, ast.Call) if written else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="replace"), args=[old, new]):
                word, by = constant_text(old), constant_text(new)
                written += [text.replace(word, by) for text in written[:_MOST_SOURCES] if word and by and word in text]
            case _:
                pass
    return written[:_MOST_SOURCES]


def _is_cpp(text: str) -> bool:
    return "{" in text and ";" in text and _TORCHS.search(text) is not None
