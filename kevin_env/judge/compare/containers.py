"""The containers in which the tensors of an output lie, as far as the comparison asks for them."""

from typing import Any

from kevin_env.candidate import tree

SHOWN = 300
"""Characters of a claimed structure or value that are told: it may be megabytes long."""


def in_order_of(ours: tree.Skeleton, theirs: tree.Skeleton) -> tree.Skeleton:
    """A skeleton with the entries of dicts in the order in which another has them: dicts are equal
    in any order.
    """
    (tag, expected), (kind, given) = next(iter(ours.items())), next(iter(theirs.items()))
    sequences = {tag, kind} <= {"list", "tuple"}
    if not (sequences or tag == kind == "dict") or len(expected) != len(given):
        return theirs
    if sequences:
        return {kind: [in_order_of(a, b) for a, b in zip(expected, given, strict=True)]}
    entries = dict(given)
    if entries.keys() != dict(expected).keys():
        return theirs
    return {tag: [[key, in_order_of(child, entries[key])] for key, child in expected]}


def shape_of(skeleton: tree.Skeleton) -> Any:
    """The containers of a skeleton, with leaves reduced to whether they are tensors.

    A list is as good as a tuple: it is what C++ gives for a vector.
    """
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return ["sequence", [shape_of(child) for child in value]]
    if tag == "dict":
        return [tag, [[key, shape_of(child)] for key, child in value]]
    return "tensor" if tag == "t" else "value"


def described(skeleton: tree.Skeleton) -> str:
    """A skeleton in words, as far as it is told."""
    return _short(_describe(skeleton))


def count_of(leaves: list[Any]) -> str:
    """How many outputs there are, in words."""
    return f"{len(leaves)} output{'' if len(leaves) == 1 else 's'}"


def _describe(skeleton: tree.Skeleton) -> str:
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return f"a {tag} of ({', '.join(map(_describe, value))})"
    if tag == "dict":
        return f"a dict with {', '.join(repr(key) for key, _ in value) or 'nothing'}"
    return "a tensor" if tag == "t" else repr(tree.put_together(skeleton, []))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
