"""What the sources of an extension ask for: whether the short headers may stand in, and which parts of them are needed.

The short headers turn whatever they lack into a compile error. What is looked for here is the rest: places where code
would compile with them and mean something else than with torch's own. Found by reading; in doubt the answer is no.
"""

import re
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
_TAKES_TENSORS = re.compile(r"\b(?:Tensor|void|auto|vector\s*<[^;{}()]*>|tuple\s*<[^;{}()]*>)\s*[&*]?\s+(\w+)\s*\(")
_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_HALF = re.compile(r"\b(?:Half|BFloat16)\b|_AND_HALF\b|REDUCED_FLOATING")
_PYTHON = re.compile(r"\bpy::|\bpybind11\b|PYBIND11_MODULE|wrap_pybind_function")
_OF_STD = {
    "algorithm": "all_of any_of clamp copy_n count_if fill_n find find_if for_each generate lower_bound max_element "
    "merge min_element minmax minmax_element none_of nth_element partial_sort partition remove_if replace reverse "
    "rotate shuffle sort stable_sort transform unique upper_bound",
    "array": "array", "atomic": "atomic", "bit": "bit_cast", "chrono": "chrono", "complex": "complex",
    "condition_variable": "condition_variable", "cstring": "memcpy memset", "deque": "deque",
    "functional": "function greater hash less multiplies plus", "future": "async future", "iomanip": "setprecision",
    "iostream": "cerr cout endl", "limits": "numeric_limits", "map": "map",
    "memory": "make_shared make_unique shared_ptr unique_ptr", "mutex": "lock_guard mutex unique_lock",
    "numbers": "numbers", "numeric": "accumulate gcd inner_product iota lcm partial_sum reduce", "queue": "queue",
    "random": "mt19937", "set": "set", "span": "span", "sstream": "ostringstream stringstream",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range runtime_error",
    "string": "getline stof stoi string to_string", "string_view": "string_view", "thread": "thread",
    "tuple": "make_tuple tie tuple", "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "vector": "vector",
}  # fmt: skip
"""Which header of the C++ library brings what. A name that is found nowhere is a compile error."""
_HEADER_OF = {name: header for header, names in _OF_STD.items() for name in names.split()}


@dataclass(frozen=True)
class Needs:
    """What the short headers have to bring for some sources."""

    standard: tuple[str, ...]
    """Headers of the C++ library, which torch's headers would have brought."""
    half: bool
    """16-bit floats, whose headers take as long as all others together."""
    python: bool
    """A binding, in a CUDA source; elsewhere it is always there."""


def read_sources(paths: Iterable[str], folders: Iterable[str], functions: frozenset[str]) -> Needs | None:
    """What the sources need, or None when only torch's own headers will do.

    Args:
        paths: The source files.
        folders: Further places where headers are looked for.
        functions: Names of functions of torch that take tensors.
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
        standard=tuple(sorted(set(_standard(codes)) | {name for name in included if name in _OF_STD})),
        half=any(map(_HALF.search, codes)),
        python=any(map(_PYTHON.search, cuda)),
    )


def _collect(path: Path, folders: tuple[Path, ...], texts: dict[Path, str]) -> bool:
    """Reads a source and the headers beside it. Says whether all that it includes of torch's is there in short."""
    if path in texts:
        return True
    try:
        texts[path] = _TEXT.sub(lambda found: found[1] or " ", path.read_text(encoding="utf-8"))
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
    return _TEXT.sub(lambda found: '""' if found[1] else " ", text)


def _doubtful(code: str) -> bool:
    """Whether it asks what only torch's headers define, or opens namespaces whose names would differ."""
    macros = any(_DOUBTFUL_MACRO.search(condition) for condition in _CONDITION.findall(code))
    return macros or bool(_NAMESPACE.search(code) or _REQUIRES_GRAD.search(code))


def _hides_functions(codes: list[str], functions: frozenset[str]) -> bool:
    """Whether one is defined by the name of a function of torch and called without a namespace.

    For a tensor, torch's is a candidate as well, by argument-dependent lookup.
    """
    declared = Counter(name for code in codes for name in _TAKES_TENSORS.findall(code) if name in functions)
    return any(
        sum(len(re.findall(rf"(?<![\w:.])(?<!->){name}\s*\(", code)) for code in codes) > count
        for name, count in declared.items()
    )


def _standard(codes: list[str]) -> Iterator[str]:
    for code in codes:
        for name in _STD.findall(code):
            if name in _HEADER_OF:
                yield _HEADER_OF[name]
        if re.search(r"\bstd\s*::\s*(?:min|max)\s*\(\s*\{", code):
            yield "algorithm"
