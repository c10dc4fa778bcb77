"""What the sources of an extension ask for: whether the short headers may stand in, and which parts
of them are needed.

The short headers turn whatever they lack into a compile error. What is looked for here is the rest:
places where code would compile with them and mean something else than with torch's own. Found by
reading; in doubt the answer is no.
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
_TAKES_TENSORS = re.compile(
    r"\b(?:Tensor|void|auto|vector\s*<[^;{}()]*>|tuple\s*<[^;{}()]*>)\s*[&*]?\s+(\w+)\s*\("
)
_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_HALF = re.compile(
    r"\b(?:Half|BFloat16)\b|_AND_HALF\b|REDUCED_FLOATING|_AND\d?\s*\([^{};]*?\bk(?:Half|BFloat16|Float16)\b"
    r"|ATen/(?:AccumulateType|OpMathType)\.h"
)
_PYTHON = re.compile(r"\bpy::|\bpybind11\b|PYBIND11_MODULE|wrap_pybind_function")
_OF_STD = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy_backward copy_if copy_n count_if equal_range "
    "fill_n find find_if find_if_not for_each for_each_n generate generate_n includes inplace_merge is_heap is_sorted "
    "lexicographical_compare lower_bound make_heap max_element merge min_element minmax minmax_element mismatch "
    "none_of nth_element partial_sort partial_sort_copy partition partition_point pop_heap push_heap remove_copy_if "
    "remove_if replace replace_if reverse rotate sample search set_difference set_intersection set_union shuffle sort "
    "sort_heap stable_partition stable_sort swap_ranges transform unique unique_copy upper_bound",
    "array": "array to_array",
    "atomic": "atomic atomic_flag atomic_thread_fence memory_order memory_order_acq_rel memory_order_acquire "
    "memory_order_relaxed memory_order_release memory_order_seq_cst",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero popcount", "bitset": "bitset",
    "chrono": "chrono",
    "complex": "complex", "condition_variable": "condition_variable", "cstddef": "byte max_align_t nullptr_t",
    "cstring": "memcmp memcpy memmove memset strcmp strlen", "deque": "deque", "forward_list": "forward_list",
    "functional": "bind bit_and bit_or bit_xor cref divides equal_to function greater greater_equal hash invoke less "
    "less_equal logical_and logical_or minus modulus multiplies negate not_equal_to not_fn plus ref reference_wrapper",
    "future": "async future launch packaged_task promise shared_future", "iomanip": "setfill setprecision setw",
    "iostream": "cerr clog cout endl flush ostream",
    "iterator": "advance back_inserter distance iterator_traits make_move_iterator make_reverse_iterator next prev "
    "reverse_iterator",
    "limits": "numeric_limits", "list": "list", "map": "map multimap",
    "memory": "addressof allocator assume_aligned default_delete enable_shared_from_this make_shared make_unique "
    "shared_ptr uninitialized_fill unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "new": "align_val_t bad_alloc nothrow",
    "numbers": "numbers",
    "numeric": "accumulate adjacent_difference exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint "
    "partial_sum reduce transform_exclusive_scan transform_inclusive_scan transform_reduce",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64", "set": "multiset set", "span": "span",
    "sstream": "istringstream ostringstream stringstream", "stack": "stack",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range overflow_error range_error "
    "runtime_error underflow_error",
    "string": "getline stod stof stoi stol stoll string to_string u16string wstring", "string_view": "string_view",
    "thread": "this_thread thread", "tuple": "apply forward_as_tuple ignore make_tuple tie tuple tuple_cat "
    "tuple_element tuple_element_t tuple_size tuple_size_v",
    "typeinfo": "type_info", "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_multiset unordered_set",
    "utility": "as_const exchange index_sequence index_sequence_for integer_sequence make_index_sequence",
    "variant": "get_if holds_alternative monostate variant visit", "vector": "vector",
}  # fmt: skip
"""Which header of the C++ library brings what. A name that is found nowhere is a compile error."""
_HEADER_OF = {name: header for header, names in _OF_STD.items() for name in names.split()}
_BESIDES = {
    "algorithm": r"\bstd\s*::\s*(?:min|max)\s*\(\s*\{",
    "cassert": r"\bassert\s*\(",
    "climits": r"\b(?:CHAR_BIT|U?(?:INT|LLONG|LONG|SHRT)_(?:MAX|MIN))\b",
    "vector": r"(?:\.|->)\s*(?:vec|chunk|split|unbind)\s*\(",
    "c10/util/irange.h": r"\birange\s*\(",
}
"""What asks for a header in other words: macros, members that give vectors, loops of torch's."""


@dataclass(frozen=True)
class Needs:
    """What the short headers have to bring for some sources."""

    standard: tuple[str, ...]
    """Headers of the C++ library, which torch's headers would have brought."""
    half: bool
    """16-bit floats, whose headers take as long as all others together."""
    python: bool
    """A binding, in a CUDA source; elsewhere it is always there."""


def read_sources(
    paths: Iterable[str], folders: Iterable[str], functions: frozenset[str]
) -> Needs | None:
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
        standard=tuple(
            sorted(set(_standard(codes)) | {name for name in included if name in _OF_STD})
        ),
        half=any(map(_HALF.search, codes)),
        python=any(map(_PYTHON.search, cuda)),
    )


def _collect(path: Path, folders: tuple[Path, ...], texts: dict[Path, str]) -> bool:
    """Reads a source and the headers beside it. Says whether all that it includes of torch's is
    there in short.
    """
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
    """Whether it asks what only torch's headers define, or opens namespaces whose names would
    differ.
    """
    macros = any(_DOUBTFUL_MACRO.search(condition) for condition in _CONDITION.findall(code))
    return macros or bool(_NAMESPACE.search(code) or _REQUIRES_GRAD.search(code))


def _hides_functions(codes: list[str], functions: frozenset[str]) -> bool:
    """Whether one is defined by the name of a function of torch and called without a namespace.

    For a tensor, torch's is a candidate as well, by argument-dependent lookup.
    """
    declared = Counter(
        name for code in codes for name in _TAKES_TENSORS.findall(code) if name in functions
    )
    return any(
        sum(len(re.findall(rf"(?<![\w:.])(?<!->){name}\s*\(", code)) for code in codes) > count
        for name, count in declared.items()
    )


def _standard(codes: list[str]) -> Iterator[str]:
    for code in codes:
        yield from (_HEADER_OF[name] for name in _STD.findall(code) if name in _HEADER_OF)
        yield from (header for header, words in _BESIDES.items() if re.search(words, code))
