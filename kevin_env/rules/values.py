"""Values that are known, and how values are put together and taken apart."""

from collections.abc import Iterable

from kevin_env.rules.things import IsTensor, Thing, Value

_MOST_PARTS = 64
_DEEPEST = 4
_LEAST: tuple[IsTensor, ...] = ("", "maybe", "some", "large")


def thing(*things: Thing) -> Value:
    """What is one of these."""
    return Value(things=frozenset(things))


PLAIN = Value()
"""A number, a text, a type: nothing that computes or launches when it is called."""
NONE = Value(is_none=True)
MAYBE = Value("maybe")
SOME = Value("some")
LARGE = Value("large")
UNKNOWN = thing("unknown")
KERNEL = thing("kernel")


def one(value: Value) -> Value:
    """Any part of a container; of a tensor a part of it."""
    if value.tensor:
        return MAYBE if value.tensor == "maybe" else SOME
    return join([*value.parts, *([UNKNOWN] if "unknown" in value.things else [])])


def part(value: Value, place: int | str) -> Value:
    """The part of a container in that place, or of that name."""
    if isinstance(place, str):
        return value.parts[value.names.index(place)] if place in value.names else one(value)
    return (
        value.parts[place]
        if value.exact and -len(value.parts) <= place < len(value.parts)
        else one(value)
    )


def container(parts: Iterable[Value], exact: bool = False, names: tuple[str, ...] = ()) -> Value:
    """A list, a tuple, a dictionary or a module of others that holds them; `names` are the keys of
    all of them.
    """
    held = tuple(parts)
    depth = 1 + max((each.depth for each in held), default=0)
    if depth > _DEEPEST:
        return UNKNOWN
    if (exact or names) and len(held) <= _MOST_PARTS:
        return Value(parts=held, exact=exact, names=names, depth=depth)
    return Value(parts=(join(held),) if held else (), depth=depth)


def join(values: Iterable[Value]) -> Value:
    """Everything that one of the values may be; a tensor where each is one. None adds nothing to
    the others.
    """
    given = list(values)
    some = [value for value in given if not value.is_none] or given
    if len(set(some)) < 2:
        return some[0] if some else PLAIN
    kinds = {value.tensor for value in some}
    tensor: IsTensor = next(kind for kind in _LEAST if kind in kinds)
    things = frozenset[Thing]().union(*(value.things for value in some))
    held, first = [value for value in some if value.parts], some[0]
    if (
        len(held) == len(some)
        and len({(each.exact, each.names, len(each.parts)) for each in some}) == 1
    ):
        parts = [join(column) for column in zip(*(value.parts for value in some), strict=True)]
        return Value(
            tensor,
            things,
            tuple(parts),
            first.exact,
            first.names,
            depth=max(each.depth for each in some),
        )
    parts = container(each for value in held for each in value.parts)
    return Value(tensor, things | parts.things, parts.parts, depth=parts.depth)
