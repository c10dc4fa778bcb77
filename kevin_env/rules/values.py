"""What is done with sets of atoms: containers are made, opened and handed over as arguments."""

from itertools import zip_longest

from kevin_env.rules.atoms import TENSOR, UNKNOWN, Arguments, Items, Value, join, opened

_DEEPEST = 4


def has_tensor(value: Value) -> bool:
    """Whether it may be a tensor."""
    return value >= TENSOR


def items(*each: Value, exact: bool = False, names: tuple[str, ...] = (), fixed: bool = False) -> Value:
    """A container of these; where they are nested too deeply, of what they hold at any depth."""
    depth = 1 + max((atom.depth for atom in join(each) if isinstance(atom, Items)), default=0)
    return frozenset({Items(each, exact, depth, names, fixed) if depth <= _DEEPEST else Items((leaves(join(each)),))})


def with_entry(container: Items, name: str | None, value: Value) -> Value:
    """The container after one more assignment to an entry; its name is kept where all names are known."""
    if name is None or container.exact or (container.each and not container.names):
        return frozenset({container}) | items(value)
    entries = dict(zip(container.names, container.each, strict=True))
    entries[name] = entries.get(name, UNKNOWN) | value
    return items(*entries.values(), names=tuple(entries))


def mapping(arguments: Arguments) -> Value:
    """A dictionary made of these: what the given one holds, the second of each given pair, and the keywords."""
    kept = frozenset(atom for atom in arguments.first() if isinstance(atom, Items) and atom.names)
    given = opened(arguments.first() - kept)
    pairs = [atom.each[1] for atom in given if isinstance(atom, Items) and atom.exact and len(atom.each) == 2]
    others = join((given, *pairs, arguments.rest))
    names, values = tuple(k for k, _ in arguments.keywords), tuple(v for _, v in arguments.keywords)
    return (
        kept | (items(others) if others else UNKNOWN) | (items(*values, names=names) if names else UNKNOWN) or items()
    )


def leaves(value: Value) -> Value:
    """What the value and the containers in it hold, at any depth."""
    held = join(leaves(atom.inner) for atom in value if isinstance(atom, Items))
    return held | frozenset(atom for atom in value if not isinstance(atom, Items))


def spread(value: Value, named: Value = UNKNOWN) -> Arguments:
    """The arguments of a call that is given `*value` and `**named`."""
    exact = [atom.each for atom in value if isinstance(atom, Items) and atom.exact]
    loose = opened(frozenset(atom for atom in value if not (isinstance(atom, Items) and atom.exact)))
    kept = [atom for atom in named if isinstance(atom, Items) and atom.names]
    keywords = {name: join(atom.named(name) for atom in kept) for atom in kept for name in atom.names}
    rest = loose | opened(named - frozenset(kept))
    return Arguments(tuple(map(join, zip_longest(*exact, fillvalue=UNKNOWN))), tuple(keywords.items()), rest)


def unpacked(value: Value, count: int) -> tuple[Value, ...]:
    """`value` taken apart into `count` targets."""
    exact = [atom.each for atom in value if isinstance(atom, Items) and atom.exact and len(atom.each) == count]
    loose = opened(frozenset(a for a in value if not (isinstance(a, Items) and a.exact and len(a.each) == count)))
    return tuple(join((loose, *(each[i] for each in exact))) for i in range(count))
