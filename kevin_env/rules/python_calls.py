"""What calls of builtins and of operators give. Fifth layer of the reader."""

import ast

from kevin_env.rules import library
from kevin_env.rules.atoms import (
    LOST,
    UNKNOWN,
    Arguments,
    Atom,
    Imported,
    Instance,
    Items,
    Value,
    join,
    opened,
)
from kevin_env.rules.binding import columns, loosened
from kevin_env.rules.library_calls import LibraryCalls
from kevin_env.rules.members import type_of
from kevin_env.rules.operations import OPAQUE
from kevin_env.rules.values import has_tensor, items, leaves, spread


class PythonCalls(LibraryCalls):
    """Follows calls of builtins and operators."""

    def _apply(self, name: str, arguments: Arguments, node: ast.AST) -> Value:
        """Calls of the first argument on the others, or on what they hold."""
        given = arguments.positional[1:]
        elements = tuple(self.elements(value) for value in given)
        if name == "checkpoint":
            return self.call(arguments.first(), Arguments(given, arguments.keywords, arguments.rest), node)
        if name == "starmap":
            return items(self.call(arguments.first(), spread(join(elements)), node))
        if name == "reduce":
            every = join((*elements, *given[1:]))
            return every | self.call(arguments.first(), Arguments((every, every)), node)
        either = tuple(each | value for each, value in zip(elements, given, strict=True))
        return items(
            self.call(arguments.first(), Arguments(either), node) | (join(elements) if name == "filter" else UNKNOWN)
        )

    def _call_operator(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        last = path.rsplit(".", 1)[-1]
        if last in library.OPERATOR_GETTERS:  # by a name that is not written out; others were rewritten
            return OPAQUE | LOST
        if last == "call":
            return self.call(arguments.first(), Arguments(arguments.positional[1:], arguments.keywords), node)
        if last == "getitem":
            return self.elements(arguments.first())
        if last in ("concat", "iconcat"):
            return items(self.elements(join(arguments.positional)))
        computes = has_tensor(arguments.all()) and last not in library.OPERATOR_HARMLESS
        given = self.special(arguments.all(), library.OPERATORS, Arguments(rest=arguments.all()))
        return self._computes(path, node) if computes else given

    def _call_builtin(self, name: str, arguments: Arguments, node: ast.AST) -> Value:
        if name in ("eval", "exec"):
            self.report("torch_compute", node, f"{name}(), whose code cannot be checked,")
            if name == "exec":
                self.runs_text = True
                for cell in [atom.cell for atom in arguments.all() if isinstance(atom, Items) and atom.cell]:
                    cell.add(None, OPAQUE)  # what it defines
            return OPAQUE
        elif name in library.BUILTINS_SELECT and (key := dict(arguments.keywords).get("key")):
            return self._select(name, key, arguments, node)
        elif name in library.BUILTINS_COMPUTE and has_tensor(arguments.all()):
            return self._computes(f"{name}() on a tensor", node)
        elif (name == "type" and len(arguments.positional) > 1) or name.endswith(("Error", "Exception", "Iteration")):
            self.handed_on(leaves(arguments.all()))
            self.raised(arguments.all())
        elif name == "iter" and len(arguments.positional) > 1:
            return items(self.call(arguments.first(), Arguments(), node))
        elif name == "zip" and not arguments.rest and (found := columns(arguments.positional)):
            return found
        elif name in ("zip", "enumerate"):
            elements = tuple(self.elements(value) for value in arguments.positional)
            rest = (self.elements(arguments.rest),) if arguments.rest else ()
            return items(items(*((UNKNOWN,) if name == "enumerate" else ()), *elements, *rest, exact=not rest))
        elif name == "next":
            return self.elements(arguments.first())
        elif name in library.BUILTINS_PASS:
            first = loosened(arguments.first()) if name == "reversed" else arguments.first()
            return frozenset(atom for atom in self.iterated(first) if isinstance(atom, Items)) or items(
                self.elements(first)
            )
        elif name == "locals" or (name == "vars" and not arguments.positional):
            return OPAQUE | LOST
        elif name in ("type", "vars"):
            return join(type_of(atom) if name == "type" else self._mapping_of(atom) for atom in arguments.first())
        elif name in library.QUESTIONS | library.NUMBERS:
            return frozenset({Imported("builtins.object")})
        given = self.special(arguments.all(), library.OPERATORS | library.ITERATORS, Arguments(rest=arguments.all()))
        return given | self.unread(arguments.all()) | frozenset({Imported("builtins.object")})

    def _mapping_of(self, atom: Atom) -> Value:
        return self.attribute(frozenset({atom}), "__dict__") if isinstance(atom, Instance) else frozenset({atom})

    def _select(self, name: str, key: Value, arguments: Arguments, node: ast.AST) -> Value:
        """`min`, `max` or `sorted` by what a function gives for each element, which may be a tensor then."""
        given = arguments.positional
        elements = opened(given[0]) if len(given) == 1 else join(given)
        if has_tensor(self.call(key, Arguments((elements,)), node)):
            return self._computes(f"{name}() on a tensor", node)
        return items(elements) if name == "sorted" else elements
