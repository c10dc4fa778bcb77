"""Decides from an extension's sources whether the short headers suffice, and which of their parts.

Use of anything that the short headers lack is a compile error. This module finds code that would
compile with them but mean something else than with torch's headers. In doubt, the full headers are
used.
"""

import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HEADERS = Path(__file__).parent / "headers"
_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_OF_TORCH = re.compile(r"(torch|ATen|c10|caffe2|pybind11|THC?)/")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|elif|ifdef|ifndef)\b(.*)$", re.MULTILINE)
_DOUBTFUL_MACRO = re.compile(
    r"__has_include|__COUNTER__|\b(?:TORCH|AT|ATEN|C10|CAFFE2|PYBIND11|INTRA|USE|KEVIN)_\w+|\bPy_\w+"
)
_NAMESPACE = re.compile(r"using\s+namespace\s+(?:std|at|c10|torch|pybind11)\b")
_REQUIRES_GRAD = re.compile(r"\brequires_grad\s*\((?!\s*false\s*\))")
_TAKES_TENSORS = re.compile(
    r"\b(?:Tensor|void|auto|vector\s*<[^;{}()]*>|tuple\s*<[^;{}()]*>)\s*[&*]?\s+(\w+)\s*\("
)
_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_HALF = re.compile(
    r"\b(?:Half|BFloat16)\b|_AND_HALF\b|REDUCED_FLOATING|_AND\d?\s*\([^{};]*?\bk(?:Half|BFloat16|Float16)\b"
    r"|ATen/(?:AccumulateType|OpMathType)\.h"
)
_PYTHON = re.compile(r"\bpy::|\bpybind11\b|PYBIND11_MODULE|wrap_pybind_function")
_OTHER = {
    "algorithm": r"\bstd\s*::\s*(?:min|max)\s*\(\s*\{",
    "cassert": r"\bassert\s*\(",
    "climits": r"\b(?:CHAR_BIT|U?(?:INT|LLONG|LONG|SHRT)_(?:MAX|MIN))\b",
    "vector": r"(?:\.|->)\s*(?:vec|chunk|split|unbind)\s*\(",
    "c10/util/irange.h": r"\birange\s*\(",
}
"""Other code that needs a header: macros, members that return vectors, loops of torch."""


@dataclass(frozen=True)
class Needs:
    """What the short headers must provide for some sources."""

    standard: tuple[str, ...]
    """Headers of the standard library that torch's headers include."""
    half: bool
    """16-bit floats; their headers take as long to compile as all others together."""
    python: bool
    """A Python binding in a CUDA source; C++ sources always have it."""


def read_sources(
    paths: Iterable[str], folders: Iterable[str], functions: frozenset[str]
) -> Needs | None:
    """What the sources need; None if they need torch's own headers.

    Args:
        paths: The source files.
        folders: Further include folders.
        functions: Names of torch's functions that take tensors.
    """
    texts: dict[Path, str] = {}
    if not all(_collect(Path(path), tuple(map(Path, folders)), texts) for path in paths):
        return None
    included = {name for text in texts.values() for _, name in _INCLUDE.findall(text)}
    if not any((HEADERS / name).exists() for name in included):
        return None  # nothing to gain
    codes = [_without_strings(text) for text in texts.values()]
    if any(map(_doubtful, codes)) or _hides_functions(codes, functions):
        return None
    cuda = [code for path, code in zip(texts, codes, strict=True) if path.suffix in (".cu", ".cuh")]
    return Needs(
        standard=tuple(sorted(set(_standard(codes)) | included & set(_headers().values()))),
        half=any(map(_HALF.search, codes)),
        python=any(map(_PYTHON.search, cuda)),
    )


def _collect(path: Path, folders: tuple[Path, ...], texts: dict[Path, str]) -> bool:
    """Reads a source and its headers; False if a torch header has no short version."""
    if path in texts:
        return True
    try:
        texts[path] = _TEXT.sub(lambda match: match[1] or " ", path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    for quote, name in _INCLUDE.findall(texts[path]):
        if _OF_TORCH.match(name):
            if not (HEADERS / name).exists():
                return False
            continue
        for folder in (path.parent, *folders) if quote == '"' else folders:
            if (folder / name).is_file() and not _collect(folder / name, folders, texts):
                return False
    return True


def _without_strings(text: str) -> str:
    return _TEXT.sub(lambda match: '""' if match[1] else " ", text)


def _doubtful(code: str) -> bool:
    """Whether it tests macros of torch's headers, or opens namespaces whose names would differ."""
    macros = any(_DOUBTFUL_MACRO.search(condition) for condition in _CONDITION.findall(code))
    return macros or bool(_NAMESPACE.search(code) or _REQUIRES_GRAD.search(code))


def _hides_functions(codes: list[str], functions: frozenset[str]) -> bool:
    """Whether a function has the name of one of torch's and is called without a namespace.

    For a tensor, torch's is a candidate as well, by argument-dependent lookup.
    """
    declared = Counter(
        name for code in codes for name in _TAKES_TENSORS.findall(code) if name in functions
    )
    return any(
        sum(len(re.findall(rf"(?<![\w:.])(?<!->){name}\s*\(", code)) for code in codes) > count
        for name, count in declared.items()
    )


@functools.cache
def _headers() -> dict[str, str]:
    """The header of each name of the standard library; one that is missing is a compile error."""
    text = Path(__file__).with_name("standard.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text).items()
    return {name: header for header, names in entries for name in names.split()}


def _standard(codes: list[str]) -> Iterator[str]:
    for code in codes:
        yield from (_headers()[name] for name in _STD.findall(code) if name in _headers())
        yield from (header for header, words in _OTHER.items() if re.search(words, code))
