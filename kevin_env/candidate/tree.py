"""Arguments and outputs as JSON: nested containers and scalars, with tensors numbered.

A tree is what a model takes or returns: tensors, numbers, strings, None, and lists, tuples and
dicts of these.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

Skeleton = Any
"""JSON: `{"t": i}` is the i-th tensor, other containers and scalars carry a one-letter tag."""

Path = str
"""A leaf's path as Python would write it: `[1]['mean']`; empty for the root."""


class Unsupported(TypeError):
    """A value that is neither a tensor, a scalar nor a container of these."""


def flatten(value: Any) -> tuple[Skeleton, list[torch.Tensor]]:
    """Splits a tree into its skeleton and its tensors, in order.

    Raises:
        Unsupported: for any other type.
    """
    tensors: list[torch.Tensor] = []
    return _walk(value, tensors), tensors


def unflatten(skeleton: Skeleton, tensors: list[torch.Tensor]) -> Any:
    """Inverts `flatten`, with these tensors."""
    tag, value = next(iter(skeleton.items()))
    if tag == "t":
        return tensors[value]
    return _decode(tag, value, lambda child: unflatten(child, tensors))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested containers of any content."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each)


def leaves(skeleton: Skeleton, path: Path = "") -> list[tuple[Path, Skeleton]]:
    """Every leaf of a skeleton with its path, in order."""
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return [leaf for i, child in enumerate(value) for leaf in leaves(child, f"{path}[{i}]")]
    if tag == "dict":
        return [leaf for key, child in value for leaf in leaves(child, f"{path}[{key!r}]")]
    return [(path, skeleton)]


def _walk(item: Any, tensors: list[torch.Tensor]) -> Skeleton:
    # no closure: one that calls itself is a cycle and would keep tensors until the next collection
    if isinstance(item, torch.Tensor):
        tensors.append(item)
        return {"t": len(tensors) - 1}
    if isinstance(item, list):
        return {"list": [_walk(child, tensors) for child in item]}
    if isinstance(item, tuple):
        return {"tuple": [_walk(child, tensors) for child in item]}
    if isinstance(item, dict) and all(isinstance(key, str) for key in item):
        return {"dict": [[key, _walk(child, tensors)] for key, child in item.items()]}
    return _scalar(item)


def _scalar(item: Any) -> Skeleton:
    if item is None or isinstance(item, bool | int | str):
        return {"v": item}
    if isinstance(item, float):
        return {"float": item.hex()}
    if isinstance(item, complex):
        return {"complex": [item.real.hex(), item.imag.hex()]}
    if isinstance(item, torch.dtype):
        return {"dtype": str(item).removeprefix("torch.")}
    raise Unsupported(
        f"a value of type {type(item).__name__} is neither a tensor, "
        "a scalar nor a container of these"
    )


def _decode(tag: str, value: Any, walk: Callable[[Skeleton], Any]) -> Any:
    match tag:
        case "v":
            return value
        case "float":
            return float.fromhex(value)
        case "complex":
            return complex(float.fromhex(value[0]), float.fromhex(value[1]))
        case "dtype" if value in vars(torch):  # `getattr` would import lazy parts of torch
            return vars(torch)[value]
        case "list":
            return [walk(child) for child in value]
        case "tuple":
            return tuple(walk(child) for child in value)
        case "dict":
            return {key: walk(child) for key, child in value}
        case _:
            raise ValueError(f"no such tag: {tag!r}")
