"""Code in C++ as the compiler sees it: without comments, with macros in their place."""

import functools
import re

from kevin_env.rules.cpp_macros import expanded

_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_TEXT = re.compile(
    r"""(?<!\w)(?:u8?|U|L)?R"([^()\\\s"]{0,16})\((?P<raw>.*?)(?:\)\1"|\Z)|(?P<text>"(?:\\.|[^"\\\n])*")"""
    r"|(?:(?<!\w)|(?<=\bu8)|(?<=\b[uUL]))'(?:\\.|[^'\\\n]){1,16}'|//[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)
"""Strings, and what is left out: characters and comments."""
DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|el|endif)(\w*)[ \t]*(.*)")
_SPACES = re.compile(r"\s+")
"""Made one, so that no pattern below has a choice of how many it takes: that takes for ever where they are many."""
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_TOKENS = {"bitand": "&", "bitor": "|", "xor": "^", "compl": "~", "and_eq": "&=", "or_eq": "|=", "xor_eq": "^=",
           "not_eq": "!=", "<:": "[", ":>": "]", "<%": "{", "%>": "}"}  # fmt: skip
_TOKEN = re.compile(r"\b(?:bitand|bitor|xor|compl|and_eq|or_eq|xor_eq|not_eq)\b|<:(?!:)|:>|<%|%>")
_NAMESPACE = re.compile(r"\b(?:namespace(?:\s+[\w:]+)?|extern)\s*\{")


@functools.lru_cache(maxsize=64)
def compiled(source: str) -> str:
    """The source with its lines joined, without comments and what stands behind `#if 0`, and any spaces as one."""
    source = _SPLICE.sub("", source)
    disguised = any(DIRECTIVE.search(found["raw"] or "") for found in _TEXT.finditer(source))
    source = _TEXT.sub(_readable, source)
    if not disguised:  # a directive in a raw string is none, and compilers differ on one in code that they skip
        source = _without_dead(source)
    return _SPACES.sub(lambda found: "\n" if "\n" in found[0] else " ", source)


@functools.lru_cache(maxsize=64)
def code_of(source: str) -> str:
    """What is compiled of it, without strings, and with the operations that macros stand for."""
    plain = _TOKEN.sub(lambda found: _TOKENS[found[0]], _STRING.sub(" ", compiled(source)))
    return expanded(plain)


def _readable(found: re.Match[str]) -> str:
    """A comment as a space, and strings so that no later pattern takes their end for a beginning."""
    if found["raw"] is not None:
        return '"' + re.sub(r'["\\\n]', " ", found["raw"]) + '"'
    return found["text"] or " "


def _without_dead(source: str) -> str:
    lines, dead, depth = list[str](), False, 0
    for line in source.split("\n"):
        condition = _CONDITION.match(line)
        if not dead and condition and condition[1] == "if" and not condition[2] and condition[3].strip() == "0":
            dead, depth = True, 0
        elif not dead:
            lines.append(line)
        elif condition and condition[1] == "if":
            depth += 1
        elif condition and depth:
            depth -= condition[1] == "endif"
        elif condition:
            dead = False
    return "\n".join(lines)


def pieces_of(code: str) -> list[str]:
    """Functions and classes, each with what stands before it: a name of one says nothing in another."""
    code = _NAMESPACE.sub(" ", code)
    pieces, begin, depth = list[str](), 0, 0
    for bracket in re.finditer(r"[(){}]", code):
        depth = depth + 1 if bracket[0] in "({" else max(depth - 1, 0)
        if not depth and bracket[0] == "}":
            pieces.append(code[begin : bracket.end()])
            begin = bracket.end()
    return [*pieces, code[begin:]]
