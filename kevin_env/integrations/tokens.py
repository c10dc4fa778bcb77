"""The policy's tokenizer, which is asked from whichever thread a turn ends in."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from kevin_env.context import TokenCounter

A = TypeVar("A")
P = ParamSpec("P")


def alone(function: Callable[P, A], *args: P.args, **kwargs: P.kwargs) -> A:
    """Calls what uses a tokenizer, one at a time in this process.

    Those of Hugging Face fail ("Already borrowed") when one thread asks while another changes how
    they work, which even encoding does.
    """
    with _lock():
        return function(*args, **kwargs)


def token_counter(encode: Callable[[str], Sequence[int]]) -> TokenCounter:
    """Counts by `encode`."""
    return lambda text: len(alone(encode, text))


@functools.cache
def _lock() -> threading.Lock:
    return threading.Lock()
