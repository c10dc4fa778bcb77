"""What calls of the standard library give. Fourth layer of the reader."""

import ast

from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    TENSOR,
    UNKNOWN,
    Arguments,
    Function,
    Future,
    Imported,
    Items,
    Kernel,
    Partial,
    Tensor,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.operations import OPAQUE, is_operation
from kevin_env.rules.protocols import Protocols
from kevin_env.rules.tasks import executed, is_thread, thread
from kevin_env.rules.values import has_tensor, items, mapping

_WRAPPER = "functools.wraps()"
"""Is given what was wrapped, and a function which it gives back: that is bound to an object, as no `partial` is."""


class LibraryCalls(Protocols):
    """Follows calls of the standard library: most is not read, and may give whatever it was given."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._kept: Value = UNKNOWN

    def _call_stdlib(self, path: str, arguments: Arguments, handed: Value, node: ast.AST) -> Value:
        if _only_timed(path, arguments):
            self.call(arguments.first(), Arguments(), node)
            return UNKNOWN
        if path.startswith(library.UNREADABLE):
            return self._computes(f"{path}, whose code cannot be checked,", node)
        if path.startswith(library.STDLIB_COMPUTES) and has_tensor(arguments.all()):
            return self._computes(path, node)
        if path == "collections.defaultdict":
            return items(self.call(arguments.first(), Arguments(), node)) | mapping(Arguments(arguments.positional[1:]))
        result = self._called_or_handed(path, arguments, handed, node)
        held = frozenset(atom for atom in arguments.all() if not isinstance(atom, Items))
        given = self._given_back(path, arguments, bool(handed))
        self._called_there(path, arguments, node)
        if path.startswith("random."):
            return arguments.first() | given | result
        if path in ("functools.wraps", _WRAPPER):
            return result
        if path.startswith(library.PASSING):
            copied = self.special(arguments.all(), library.OPERATORS, Arguments())
            return arguments.first() | copied or result
        return items(held, items(held)) if path.startswith(library.COLLECTING) else result | given

    def _given_back(self, path: str, arguments: Arguments, handed: bool) -> Value:
        """What comes back of what it is given."""
        held, result = arguments.all(), UNKNOWN
        if path.startswith(library.REFLECTING) or Imported("ctypes.py_object") in held:
            result = OPAQUE | LOST
        elif not path.startswith(library.SILENT):
            given = self.special(held, library.OPERATORS | library.ITERATORS, Arguments(rest=held))
            result = (self.unread(held) - (OPAQUE if handed else UNKNOWN)) | given
        if path.startswith(library.KEEPING):
            kept = (Tensor, Function, TorchModule)
            self._kept |= frozenset(atom for atom in held if isinstance(atom, kept) or is_operation(atom))
            result |= self._kept
        return result

    def _called_there(self, path: str, arguments: Arguments, node: ast.AST) -> None:
        """Reads what the library may call of what it is given, now or later."""
        if not self.reached:
            later = path.startswith(library.CALLING_LATER)
            given = self.runnable(arguments.all())
            self.escaped += [a for a in given if is_operation(a) or (later and isinstance(a, Function))]
        if path.startswith(("functools.", *library.PASSING)):
            return
        tensors = TENSOR if has_tensor(arguments.all()) else UNKNOWN
        for atom in arguments.all():
            if is_operation(atom):
                self._computes(getattr(atom, "path", ""), node)
            elif isinstance(atom, Function) and path.split(".")[0] not in ("threading", *library.EXECUTORS):
                self.run(atom, Arguments(rest=tensors))

    def _called_or_handed(self, path: str, arguments: Arguments, handed: Value, node: ast.AST) -> Value:
        """Decorators and `partial` give back the function they got; the rest is remembered by where it came from."""
        if path == "functools.wraps":
            return frozenset({Partial(frozenset({Imported(_WRAPPER)}), arguments)})
        if path == _WRAPPER:
            function = join(arguments.positional[1:]) | arguments.rest
            self.remember(function, "__wrapped__", arguments.first())
            return function
        if path.startswith(words.LIBRARIES_BY_NAME):
            return self.call(frozenset({Kernel()}), arguments, node)
        if is_thread(path):
            return frozenset({thread(path, arguments) or Imported(path)})
        functions = all(isinstance(atom, Function) for atom in arguments.first())
        if path in ("functools.partial", "types.MethodType") and arguments.first() and functions:
            bound = Arguments(arguments.positional[1:], arguments.keywords, arguments.rest)
            return frozenset({Partial(arguments.first(), bound)})
        task = executed(path, arguments)
        if task is None:
            return handed or frozenset({Imported(path)})
        result = self.call(task.callee, task.arguments, node)
        match task.gives:
            case "result":
                return result
            case "results":
                return items(result)
            case "future":
                return frozenset({Future(result)})

    def _computes(self, what: str, node: ast.AST) -> Value:
        self.report("torch_compute", node, what)
        return TENSOR


def _only_timed(path: str, arguments: Arguments) -> bool:
    """Whether it is a call of `timeit` that is given a function, and no text that would be run."""
    functions, more = arguments.first(), {name for name, _ in arguments.keywords} - {"number", "repeat"}
    alone = len(arguments.positional) == 1 and not arguments.rest and not more
    timing = path in ("timeit.timeit", "timeit.repeat") and alone
    return timing and bool(functions) and all(isinstance(atom, Function) for atom in functions)
