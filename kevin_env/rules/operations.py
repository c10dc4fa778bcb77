"""The names of torch's operators that compute."""

import functools
from importlib import resources


@functools.cache
def torch_operations() -> frozenset[str]:
    """Stems of the names of torch's own operators that compute: `add` for `add_` and `add_out`, too.

    A test names those of a new torch that are missing; views, questions and casts stay out.
    """
    return frozenset((resources.files("kevin_env.rules") / "torch_operations.txt").read_text(encoding="utf-8").split())


def stem(name: str) -> str:
    """`add` for `add_` and `add_out`."""
    return name.removesuffix("_out").strip("_")


def computes(name: str) -> bool:
    """Whether a function or a method of torch of that name, without its namespace, computes."""
    return stem(name) in torch_operations()
