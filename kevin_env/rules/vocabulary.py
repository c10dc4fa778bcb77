"""Names of torch, Python and other packages by what calling them does, from `vocabulary.toml`.

Python paths are resolved through imports: `F.relu` is looked up as `torch.nn.functional.relu`.
"""

import functools
import re
import tomllib
from importlib import resources


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


@functools.cache
def _entries() -> dict[str, str]:
    folder = resources.files("kevin_env.rules")
    return tomllib.loads((folder / "vocabulary.toml").read_text(encoding="utf-8"))
