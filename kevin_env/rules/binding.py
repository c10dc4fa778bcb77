"""How what a call is given comes to the parameters: in order where that is known, else each of them to all."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kevin_env.rules.atoms import UNKNOWN, Arguments, Items, Value, join, opened
from kevin_env.rules.values import items, spread


def gathered(positional: Iterable[tuple[Value, bool]], keywords: Iterable[tuple[str | None, Value]]) -> Arguments:
    """The arguments of a call.

    Args:
        positional: Each value, and whether a star stands before it.
        keywords: Each name, or None for `**`, and its value.
    """
    placed: list[Value] = []
    rest: list[Value] = []
    named: list[tuple[str, Value]] = []
    for value, starred in positional:
        given = spread(value) if starred else Arguments((value,))
        known = not starred or (len(_lengths(value)) == 1 and _is_exact(value) and not given.rest)
        if known and not rest:
            placed += given.positional
        else:  # how many came before is not known
            rest.append(join((*given.positional, given.rest)))
    for name, value in keywords:
        if name is not None:
            named.append((name, value))
            continue
        given = spread(UNKNOWN, value) if _is_fixed(value) else Arguments(rest=opened(value))
        named += [(each, taken | given.rest) for each, taken in given.keywords]
        rest.append(given.rest)
    return Arguments(tuple(placed), tuple(named), join(rest))


def others_in_order(left: Sequence[Value], rest: Value) -> Value:
    """What `*args` of a function holds: values for which there are no parameters, and what may be anywhere."""
    return items(*left, rest) if rest else items(*left, exact=True, fixed=True)


def others_by_name(arguments: Arguments, names: Sequence[str], fixed: bool) -> Value:
    """What `**kwargs` of a function with these parameters holds; `fixed` as in `Items`."""
    if not fixed:
        return items(join(value for _, value in arguments.keywords), arguments.rest)
    more = {name: value for name, value in arguments.keywords if name not in names}
    loose = items(arguments.rest) if arguments.rest else UNKNOWN
    return items(*more.values(), names=tuple(more), fixed=True) | loose


def loosened(value: Value) -> Value:
    """The same without the order of its containers' elements."""
    return frozenset(replace(atom, ordered=False) if isinstance(atom, Items) else atom for atom in value)


def operated(operands: Sequence[Value], adds: bool) -> Value:
    """The containers that an operator on some gives; `adds`: whether it puts one behind the other."""
    held = [[atom for atom in value if isinstance(atom, Items)] for value in operands]
    if adds and all(len(each) == 1 and each[0].exact for each in held):
        fixed = all(each[0].fixed for each in held)
        return items(*(part for each in held for part in each[0].each), exact=True, fixed=fixed)
    kept, moved = (held[0], held[1:]) if adds else ([], held)  # what comes behind moves nothing
    return frozenset(kept) | loosened(frozenset(atom for each in moved for atom in each))


def columns(rows: Sequence[Value]) -> Value | None:
    """What `zip` gives of rows whose elements are all known; None where they are not."""
    known = [atom.each for value in rows for atom in value if isinstance(atom, Items) and atom.exact]
    if not rows or any(len(value) != 1 for value in rows) or len(known) != len(rows) or len({*map(len, known)}) != 1:
        return None
    return items(*(items(*column, exact=True, fixed=True) for column in zip(*known, strict=True)), exact=True)


def _is_fixed(value: Value) -> bool:
    """Whether no other name of it can have been used to change it."""
    return all(atom.fixed for atom in value if isinstance(atom, Items))


def _is_exact(value: Value) -> bool:
    """Whether each container in it is as it was made."""
    return all(atom.exact for atom in value if isinstance(atom, Items))


def _lengths(value: Value) -> set[int]:
    return {len(atom.each) for atom in value if isinstance(atom, Items) and atom.exact}
