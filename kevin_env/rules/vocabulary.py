"""Names of torch, Python and other packages by what calling them does, from `vocabulary.toml`.

Python paths are resolved through imports: `F.relu` is looked up as `torch.nn.functional.relu`.
"""

import functools
import re
import tomllib
from importlib import resources

_LONGEST = 4096
"""Characters of a kernel's name that are looked at."""


@functools.cache
def words(name: str) -> frozenset[str]:
    """The words of an entry."""
    return frozenset(_entries()[name].split())


@functools.cache
def pattern(*names: str) -> re.Pattern[str]:
    """A regular expression of all alternatives in these entries."""
    return re.compile("|".join(each for name in names for each in _entries()[name].split()))


@functools.cache
def plain_methods() -> frozenset[str]:
    """Methods of Python's own types, of streams and of events: none of them launches a kernel."""
    types = (str, bytes, list, dict, set, tuple, int, float)
    return words("stream_methods").union(*map(dir, types))


def stem(name: str) -> str:
    """`add` for `add_` and `add_out`."""
    return name.removesuffix("_out").strip("_")


def computes(name: str) -> bool:
    """Whether a function or method of torch computes, by its name without the namespace."""
    return stem(name) in words("torch_operations")


def is_library(name: str) -> bool:
    """Whether a kernel is PyTorch's, Inductor's or a vendor's, by its name; also a copy or fill.

    A library's kernels are known by their names, which a submission cannot change. It can name its
    own kernels as a library does, but only loses by it. So a kernel not known as a library's is the
    submission's. A copy of a library's machine code under another name would pass; such a kernel is
    timed like any other.
    """
    return bool(pattern("library_kernels").search(name[:_LONGEST]))


@functools.cache
def _entries() -> dict[str, str]:
    folder = resources.files("kevin_env.rules")
    return tomllib.loads((folder / "vocabulary.toml").read_text(encoding="utf-8"))
