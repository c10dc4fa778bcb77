"""What objects of the submission give through Python's protocols: iteration, operators, blocks. Second layer."""

from kevin_env.rules import library
from kevin_env.rules.atoms import (
    LOST,
    UNKNOWN,
    Arguments,
    Atom,
    Function,
    Instance,
    Items,
    TorchModule,
    Value,
    join,
    opened,
)
from kevin_env.rules.notes import CONTENTS
from kevin_env.rules.operations import OPAQUE, is_operation, root
from kevin_env.rules.reader import Reader
from kevin_env.rules.values import has_tensor, items, leaves


class Protocols(Reader):
    """Follows what Python calls for syntax and for its own functions, and what nobody follows."""

    def runnable(self, value: Value) -> Value:
        """With what an instance of the submission's classes runs in its place where it is called."""
        return join(self.entries(atom) if isinstance(atom, Instance) else frozenset({atom}) for atom in value)

    def to_be_called(self, value: Value) -> list[Atom]:
        """What of it can be called and may compute: functions, torch's operations and layers, what an object runs."""
        return [a for a in self.runnable(value) if isinstance(a, Function | TorchModule) or is_operation(a)]

    def handed_on(self, value: Value) -> None:
        """Notes what code that is not read was given: it may be called there when `forward` runs."""
        self.escaped += [atom for atom in self.runnable(value) if isinstance(atom, Function) or is_operation(atom)]

    def special(self, value: Value, names: frozenset[str], arguments: Arguments) -> Value:
        """What special methods of those names give."""
        owners = [each for each in value if isinstance(each, Instance)]
        methods = [self._member(self.lineage(each.node), name, each) for each in owners for name in sorted(names)]
        return join(self.run(atom, arguments) for atom in join(methods) if isinstance(atom, Function))

    def iterated(self, value: Value) -> Value:
        """With the containers that stand for what can be iterated over."""
        given = self.special(value, library.ITERATORS, Arguments())
        held = [self._of_instance(each, CONTENTS) for each in value if isinstance(each, Instance)]
        return value | given | join(items(each) for each in held if each)

    def is_container(self, atom: Instance) -> bool:
        """Whether its class inherits from one of Python's containers, or of other packages' classes."""
        bases = join(base for each in self.lineage(atom.node) for base in self.bases.get(each, ()))
        return any(root(base) in ("builtins", "collections") for base in bases)

    def held_by(self, value: Value) -> Value:
        """What such objects hold."""
        owners = [each for each in value if isinstance(each, Instance)]
        return join(self.instance_names.get(each.node, {}).get(CONTENTS, UNKNOWN) for each in owners)

    def elements(self, value: Value) -> Value:
        """What one element may stand for of what is iterated over."""
        whole = self.iterated(value)
        stepped = self.special(whole, library.STEPS, Arguments((UNKNOWN,)))
        return opened(whole) | stepped | opened(stepped - frozenset(each for each in stepped if each in LOST))

    def contents(self, value: Value) -> Value:
        """What the value holds at any depth, also in attributes of objects."""
        held = leaves(value)
        seen = [each for each in held if isinstance(each, Instance)]
        for each in seen:  # it grows
            own = leaves(join(self.instance_names.get(each.node, {}).values()))
            held |= own
            seen += [more for more in own if isinstance(more, Instance) and more not in seen]
        return held

    def unread(self, value: Value) -> Value:
        """What code gives that is not read: whatever it was given. Operations that it was given, it may call."""
        held = self.contents(value)
        for atom in value:
            if isinstance(atom, Items) and atom.cell:
                atom.cell.add(None, atom.inner)  # it may be put in another order
        called = any(isinstance(atom, Function | TorchModule) for atom in held)
        self.escaped += [atom for atom in held if is_operation(atom)]
        if self.reached:
            self.escaped += [atom for atom in held if isinstance(atom, Function | TorchModule)]
        return (LOST if has_tensor(held) else UNKNOWN) | (OPAQUE if called else UNKNOWN)

    def raised(self, value: Value) -> None:
        """Notes what an exception carries."""
        self.carried |= self.contents(value)
        self.unread(value)

    def caught(self) -> Value:
        """What a handler is given."""
        return items(self.carried) | (LOST if has_tensor(self.carried) else UNKNOWN)
