"""Decides whether the full headers could avoid a compile error that occurs with the short ones.

An error is final if it is the first one and lies in a device function all of whose words mean the
same with both: neither the function nor anything it uses from the source has a name that the full
headers declare, or could. In doubt the full headers are tried. Host functions are always in doubt:
they may call anything that a header declares.
"""

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kevin_env.extension.declarations import Piece, Token, cut
from kevin_env.extension.sources import HEADERS

_SEVERE = re.compile(r"^(?P<file>/[^\s:()]+)\((?P<line>\d+)\): error: ")
"""nvcc's format: with a line and no column."""
_ERROR = re.compile(r"^(?!FAILED|ninja|\[|\d+ errors? )\S.*\b(?:error|fatal)\b")
_ELSEWHERE = re.compile(
    r"instantiation|required (?:from|by|for)|detected during|in expansion of|\[-[fW]\S*\]$", re.M
)
_SYSTEM = re.compile(r"[a-z_0-9]+(?:\.h)?|cub/cub\.cuh|cooperative_groups/\w+\.h")
_FLAG = re.compile(
    r"-?-(?:O\w*|g|w|v|W(?!error)[a-z][\w-]*|std=[\w+]+|f(?:openmp|PIC|fast-math|no-[\w-]+|unroll-loops)|m(?:arch|tune|cpu)=[\w-]+"
    r"|use_fast_math|(?:generate-)?line-?info|expt-(?:relaxed-constexpr|extended-lambda)|extended-lambda|res-usage"
    r"|arch=\w+|gencode(?:=\S+)?|Xptxas(?:=\S+)?|Xcompiler|maxrregcount=\d+|ptxas-options=\S+|threads=?\d*|U__CUDA_NO_\w+__"
    r"|(?:ftz|prec-div|prec-sqrt|fmad)=\w+|D\w+(?:=\d*)?)|arch=\w+,code=\S+"
)
_LAST_LINE = re.compile(r"[^}]*\}\s*(//.*)?")
"""The last line of a function, if nothing else begins on it."""
_VARIABLES = re.compile(r"CPATH|\w*_INCLUDE_PATH|NVCC_\w+|GCC_EXEC_PREFIX|COMPILER_PATH")

NAMES = Path(__file__).with_name("names.txt")
_WORDS = {
    "keywords":
        "alignas alignof asm auto bool break case catch char class const const_cast constexpr "
        "continue decltype default do double else enum explicit extern false float for goto "
        "if inline int long mutable noexcept nullptr private protected public register "
        "reinterpret_cast return short signed sizeof static static_assert static_cast struct "
        "switch template this throw true try typedef typename union unsigned using void "
        "volatile while",
    "types":
        "auto bool char double float int long short signed unsigned void size_t dim3 int8_t "
        "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t float2 float3 float4 int2 "
        "int3 int4 uint2 uint3 uint4 double2 class typename enum struct",
    "called":
        "acos acosh asin asinh atan atanh atomicAdd cos cosh exp expm1 log log10 log1p log2 "
        "pow sin sinh sqrt tan tanh",
    "uncertain":
        "typeid new delete co_await co_return co_yield requires concept friend namespace",
    "float.h": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON",
    "limits.h": "INT_MAX INT_MIN UINT_MAX LLONG_MAX LLONG_MIN",
}  # fmt: skip
KEYWORDS, _TYPES, _CALLED, _UNCERTAIN, _FLOATS, _INTEGERS = (
    frozenset(words.split()) for words in _WORDS.values()
)
"""`called`: calls mean the same, though the full headers add overloads for their own types.
`uncertain`: these need a header, or depend on more than the adjacent words.
"""
_BROUGHT = {"cfloat": _FLOATS, "float.h": _FLOATS, "climits": _INTEGERS, "limits.h": _INTEGERS}
"""What including a header declares."""
FORM = re.compile(
    r"_\w*|Py\w*|py\w*|THP\w*|FLAGS_\w*|[A-Z][A-Z0-9_]*|(?:SYS|SCN|PRI|C10|TORCH|AT|NV)_?\w*|CU\w*|cu[A-Z]\w*|nv_?[A-Z]?\w*"
    r"|(?:cuda|cublas|cusparse|cusolver|curand|cufft|cudnn|nvrtc|make_cu)\w*|\w+Info(?:_t)?|stdc_\w+|(?:pthread|cl)_\w+"
)
"""Forms of names of which the full headers have thousands, different in each version."""
_KNOWN = re.compile(
    r"__(?:global|device|host|shared|constant|forceinline|launch_bounds|restrict|noinline|align)__|__restrict"
    r"|__syncthreads(?:_count|_and|_or)?|__syncwarp|__activemask|__threadfence(?:_block|_system)?"
    r"|__(?:shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all)_sync"
    r"|__ld(?:g|ca|cg|cs)"
    r"|__(?:exp|exp10|log|log2|log10|sin|cos|tan|pow|saturate|fdivide)f|__f(?:add|sub|mul|maf|div|sqrt|rcp|rsqrt)_r[nzud]"
    r"|__(?:float_as_u?int|u?int_as_float|float2u?int_r[nzud]|u?int2float_r[nzud])|__popc(?:ll)?|__clz(?:ll)?|__ffs(?:ll)?"
    r"|__brev(?:ll)?|__u?mul(?:24|hi)|INFINITY|NAN|M_PI|HUGE_VALF?"
)
"""Names of such a form that CUDA or every short header declares."""
_RESULTS = frozenset((")", "]", "mutable", "noexcept", "constexpr"))
_BETWEEN = frozenset(("*", "&", "const", "volatile", "__restrict__", "__restrict"))
_QUALIFIERS = frozenset(("::", "struct", "class", "enum", "union"))
"""After these, a word does not mean the variable of that name."""
_AFTER = frozenset("=;,)[{:>")
_NUMBER = re.compile(
    r"(?:0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)[uUlL]{0,3}|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?"
)


def final_errors(
    output: str, sources: Sequence[str], folders: Sequence[str], flags: Iterable[str]
) -> str | None:
    """Errors that also occur with the full headers; None if these must be tried.

    Args:
        output: Of ninja, from the build with the short headers.
        sources: The source files, as given to ninja.
        folders: Further include folders.
        flags: The submission's compiler flags.
    """
    flags = list(flags)
    if any(map(_VARIABLES.fullmatch, os.environ)) or not all(map(_FLAG.fullmatch, flags)):
        return None
    errors = list(_errors(output))
    if sum(line.startswith("FAILED: ") for line in output.splitlines()) != 1 or not errors:
        return None
    defined = {
        flag.lstrip("-")[1:].partition("=")[0] for flag in flags if flag.lstrip("-").startswith("D")
    }
    final = [_is_final(error, sources, folders, defined) for error in errors]
    kept = (error for error, keep in zip(errors, final, strict=True) if keep)
    return "".join("\n".join(error.lines) + "\n\n" for error in kept) if final[0] else None


@dataclass(frozen=True)
class _Error:
    """An error with its context; `before` is the output since the previous one."""

    before: str
    lines: tuple[str, ...]


def _errors(output: str) -> Iterator[_Error]:
    lines = output.splitlines()
    start, at = 0, 0
    while at < len(lines):
        end = at + 1
        if _ERROR.match(lines[at]):
            while end < len(lines) and lines[end][:1].isspace():
                end += 1
            yield _Error("\n".join(lines[start:at]), tuple(lines[at:end]))
            start = end
        at = end


def _is_final(
    error: _Error, sources: Sequence[str], folders: Sequence[str], defined: set[str]
) -> bool:
    match = _SEVERE.match(error.lines[0])
    if (
        not match
        or match["file"] not in sources
        or _ELSEWHERE.search("\n".join((error.before, *error.lines)))
    ):
        return False
    path = Path(match["file"])
    if path.suffix != ".cu":
        return False
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _depends_on_nothing(
            path, int(match["line"]), [path.parent, *map(Path, folders)], names_of(defined)
        )
    return False


def _depends_on_nothing(path: Path, line: int, folders: Sequence[Path], names: "Names") -> bool:
    """Whether a line lies in a function that means the same with both headers."""
    text = path.read_text(encoding="utf-8")
    pieces = iter(cut(text))
    for piece in pieces:
        end = piece.tokens[-1].line
        if piece.kind == "include" and not _is_system(piece.tokens[0].text, folders):
            return False
        if piece.body is not None and piece.tokens[piece.body].line < line <= end:
            alone = _LAST_LINE.fullmatch(text.split("\n")[end - 1])
            return bool(alone) and _is_of_the_device(piece) and names.are_plain(piece)
        if end >= line or _opens_namespace(piece):
            return False
        names.learn(piece)
    return False


def _is_system(name: str, folders: Sequence[Path]) -> bool:
    """Whether a header is the compiler's, or has a short version."""
    inner = name[1:-1]
    if name[:1] + name[-1:] not in ("<>", '""'):
        return False
    if (HEADERS / inner).is_file():
        return True
    return bool(_SYSTEM.fullmatch(inner)) and not any(
        (folder / inner).exists() for folder in folders
    )


def _opens_namespace(piece: Piece) -> bool:
    words = [token.text for token in piece.tokens]
    return piece.body is None and ("using", "namespace") in itertools.pairwise(words)


def _is_of_the_device(piece: Piece) -> bool:
    """Whether a function is compiled for the device alone and is no template."""
    head = {token.text for token in piece.tokens[: piece.body]}
    return not head.isdisjoint(("__global__", "__device__")) and head.isdisjoint(
        ("__host__", "template", "auto", "operator")
    )


@dataclass
class Names:
    """What is known about names at a place in a source.

    Attributes:
        doubtful: Names at global scope that the full headers change, or may.
        macros: Such macros.
        own: Names that the source declares, with the same meaning under both headers.
    """

    doubtful: set[str]
    macros: set[str]
    own: set[str] = field(default_factory=set)

    def learn(self, piece: Piece) -> None:
        """Records what a piece declares."""
        plain = self.are_plain(piece)
        if piece.kind == "include":
            self.own |= _BROUGHT.get(piece.tokens[0].text[1:-1], set())
        elif piece.kind == "define":  # a longer one gets its meaning at its use
            constant = [token.kind for token in piece.tokens[1:]] == ["number"]
            (self.own if plain and constant else self.macros).add(piece.tokens[0].text)
        elif piece.kind == "declaration" and plain:
            self.own |= _declared(piece.tokens)
        elif piece.kind == "declaration":
            self.doubtful |= {
                token.text for token in piece.tokens[: piece.body] if token.kind == "word"
            } - KEYWORDS

    def are_plain(self, piece: Piece) -> bool:
        """Whether all words of a piece mean the same with both headers."""
        tokens = piece.tokens
        declared = _declared(tokens) | ({tokens[0].text} if piece.kind == "define" else set())
        hidden = _hidden(piece)
        places = zip(_before(tokens), tokens, (*(t.text for t in tokens[1:]), ""), strict=False)
        return all(
            self._is_plain(before, token, after, declared, hidden)
            for before, token, after in places
        )

    def _is_plain(
        self, before: str, token: Token, after: str, declared: set[str], hidden: set[str]
    ) -> bool:
        word = token.text
        if token.kind != "word":
            return token.kind != "number" or bool(_NUMBER.fullmatch(word))
        if word in self.macros or word in _UNCERTAIN:
            return False
        if (
            before in (".", "->")
            or word in KEYWORDS
            or (word in hidden and before not in _QUALIFIERS)
        ):
            return True
        if word in self.doubtful:
            return word in _CALLED and after == "("
        return (
            word in declared
            or word in self.own
            or not FORM.fullmatch(word)
            or bool(_KNOWN.fullmatch(word))
        )


def names_of(defined: set[str]) -> Names:
    """What is known at the start of a CUDA source; `defined`: macros from flags."""
    everywhere, _, macros = groups()
    return Names(set(everywhere), set(macros), set(defined))


def _before(tokens: Sequence[Token]) -> list[str]:
    """The text before each token; empty for the arrow of a lambda's result type."""
    texts = ["", "", *(token.text for token in tokens)]
    pairs = itertools.pairwise(texts[:-1])
    return ["" if arrow == "->" and before in _RESULTS else arrow for before, arrow in pairs]


@functools.cache
def groups() -> tuple[tuple[str, ...], ...]:
    """Names that the full headers change: in all sources, in C++ only; and macros."""
    return tuple(tuple(group.split()) for group in NAMES.read_text(encoding="utf-8").split("\n\n"))


def _declared(tokens: Sequence[Token]) -> set[str]:
    """Names right after a well-known type."""
    return {token.text for at, token in enumerate(tokens) if _is_declared(tokens, at)}


def _is_declared(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].kind != "word" or tokens[at].text in KEYWORDS or at + 1 >= len(tokens):
        return False
    before = at - 1
    while before >= 0 and tokens[before].text in _BETWEEN:
        before -= 1
    return before >= 0 and tokens[before].text in _TYPES and tokens[at + 1].text in _AFTER


def _hidden(piece: Piece) -> set[str]:
    """Names hidden by a function's parameters and outermost variables."""
    if piece.body is None:
        return set()
    names: set[str] = set()
    seen: set[str] = set()
    for at, token in enumerate(piece.tokens):
        inside = token.braces == 1 and not token.parentheses
        if (at < piece.body and token.parentheses == 1 and not token.braces) or (
            inside and token.text not in seen
        ):
            names |= {token.text} if _is_declared(piece.tokens, at) else set()
        seen.add(token.text)
    return names
