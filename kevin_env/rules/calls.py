"""What calls do, by what is called. Second layer of the reader."""

import ast
import sys

from kevin_env.rules import vocabulary as words
from kevin_env.rules.evaluator import Evaluator
from kevin_env.rules.things import Arguments, Function, Imported, Own, Scope, Thing, Value
from kevin_env.rules.values import (
    KERNEL,
    LARGE,
    MAYBE,
    NONE,
    PLAIN,
    SOME,
    UNKNOWN,
    container,
    join,
    one,
    part,
    thing,
)

_ATTRIBUTES = frozenset({"add_module", "register_module", "register_buffer", "register_parameter"})
_ADDING = frozenset({"append", "add", "insert", "extend", "update", "setdefault"}) | _ATTRIBUTES
_TAKING = frozenset({"get", "pop", "setdefault", "get_submodule"})
_LISTING = frozenset({"values", "items"}) | words.CONTENTS


class Calls(Evaluator):
    """Follows calls into the submission's functions, and judges calls of everything else."""

    def run(self, function: Function, arguments: Arguments) -> Value:
        """What a function of the submission's returns."""
        raise NotImplementedError

    def evaluate_call(self, node: ast.Call, scope: Scope) -> Value:
        """What a call gives, as it is written."""
        function, arguments = node.func, self._arguments(node, scope)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)):
                return self._call_parent(name, arguments, node, scope)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                return self.attribute(arguments.first(), name)
            case ast.Call(func=ast.Name(id="setattr"), args=[of, ast.Constant(value=str(name)), _]):
                self.assign(ast.Attribute(of, name, ast.Store()), arguments.positional[2], scope)
                return NONE
            case ast.Call(func=ast.Attribute(value=of) as method):
                receiver = self.evaluate(of, scope)
                found = self._call_method(receiver, method, arguments, node, scope)
                return (
                    self.call(self.attribute(receiver, method.attr), arguments, node)
                    if found is None
                    else found
                )
            case _:
                return self.call(self.evaluate(function, scope), arguments, node)

    def _call_parent(self, name: str, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
        """A method of `super()`."""
        home = scope.home("super()")
        for of, owner in (
            zip(*(home.names[each].things for each in ("super()", "self()")), strict=True)
            if home
            else ()
        ):
            if isinstance(of, Own) and isinstance(owner, Own):
                found = self.inherited(self.lineage(of.node)[1:], owner, name)
                itself = found == UNKNOWN and name in words.ITSELF
                return thing(owner) if itself else self.call(found, arguments, node)
        return UNKNOWN

    def _arguments(self, node: ast.Call, scope: Scope) -> Arguments:
        positional, rest = list[Value](), list[Value]()
        for each in node.args:
            starred = isinstance(each, ast.Starred)
            value = self.evaluate(each.value if isinstance(each, ast.Starred) else each, scope)
            if rest or (starred and not value.exact):
                rest.append(one(value) if starred else value)
            else:
                positional += value.parts if starred else (value,)
        keywords = [(each.arg, self.evaluate(each.value, scope)) for each in node.keywords]
        rest += [one(value) for name, value in keywords if name is None]
        named = tuple((name, value) for name, value in keywords if name is not None)
        return Arguments(tuple(positional), named, join([*rest, PLAIN]) if rest else None)

    def _call_method(
        self,
        receiver: Value,
        method: ast.Attribute,
        arguments: Arguments,
        node: ast.Call,
        scope: Scope,
    ) -> Value | None:
        """Methods of tensors, modules and containers; None for any other call."""
        name, own = method.attr, [each for each in receiver.things if isinstance(each, Own)]
        if receiver.tensor and not (receiver.tensor == "maybe" and name in words.PLAIN_METHODS):
            return self._call_tensor_method(receiver, name, arguments, node)
        if any(self.has(each, name) for each in own):
            return None
        made = any(getattr(each, "made", False) for each in receiver.things)
        if name in words.ITSELF and (made or receiver.parts):
            return receiver
        if (
            made
            and own
            and name in _ATTRIBUTES
            and node.args[1:]
            and isinstance(key := node.args[0], ast.Constant)
        ):
            self.assign(
                ast.Attribute(method.value, str(key.value), ast.Store()),
                arguments.positional[1],
                scope,
            )
            return NONE
        if made and name in words.CONTENTS:
            return container(
                [value for each in own for value in self.members.get(each, {}).values()]
                or [receiver]
            )
        if receiver.parts and name in _LISTING:
            return container(receiver.parts)
        if name in _ADDING and not receiver.things:
            added = [
                one(each) if name in ("extend", "update") else each for each in arguments.all()
            ]
            self.add_to(method.value, join(added), scope)
        if receiver.parts and name in _TAKING:
            key = (
                node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            )
            return part(receiver, key) if isinstance(key, str) else one(receiver)
        known = made or bool(own) or not (receiver.things or receiver.is_none)
        harmless = name in words.MODULE_METHODS or (
            not own and not made and name in words.PLAIN_METHODS
        )
        return (
            (PLAIN if known else UNKNOWN)
            if harmless and (known or receiver.things == UNKNOWN.things)
            else None
        )

    def _call_tensor_method(
        self, receiver: Value, name: str, arguments: Arguments, node: ast.AST
    ) -> Value:
        if name in words.SAME_SIZE:
            return receiver if receiver.tensor == "large" else SOME
        if name in words.PARTS:
            return container([SOME]) if name in words.SEVERAL else SOME
        if words.computes(name):
            given = Arguments((receiver, *arguments.all()))
            return self._operation(f"the tensor method .{name}()", name, given, node)
        return UNKNOWN if name.startswith("_") else PLAIN

    def _operation(self, what: str, name: str, given: Arguments, node: ast.AST) -> Value:
        """An operation of torch. To move what is not large, such as weights, may be preparation."""
        if given.large() or (
            given.tensors() and not self.glue and words.stem(name) not in words.MOVES
        ):
            self.report(node, what)
        return LARGE if given.large() and words.stem(name) not in words.REDUCTIONS else SOME

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling any of `callee` gives, and of a container calling each of its parts."""
        given = [
            self._call(each, arguments, node)
            for each in (UNKNOWN if callee.is_none else callee).things
        ]
        for each in callee.parts:
            given.append(self.call(each, arguments, node))
            arguments = Arguments((given[-1],)) if callee.exact else arguments
        return join(given[-1:] if callee.exact else given)

    def _call(self, each: Thing, arguments: Arguments, node: ast.AST) -> Value:
        match each:
            case "kernel":
                self.seen.launches = True
                return MAYBE if arguments.tensors() else KERNEL
            case Function():
                return self.run(each, arguments)
            case Imported(path, made=True):
                if arguments.large() or not self.glue:
                    self.report(node, path)
                return LARGE if arguments.large() else SOME
            case Imported(path):
                return self._call_imported(path, arguments, node)
            case Own(own, made=True):
                name = "__call__" if self.has(each, "__call__") else "forward"
                return self.call(self.inherited(self.lineage(own), each, name), arguments, node)
            case Own(own):
                made = thing(Own(own, made=True))
                self.call(self.attribute(made, "__init__"), arguments, node)
                return made
            case _:
                self.seen.launches = True
                return join([self._handed_over(arguments), UNKNOWN])

    def _handed_over(self, arguments: Arguments) -> Value:
        """What is not read calls the functions that it is given, and may give back a layer."""
        handed = [
            each
            for value in arguments.all()
            for held in (value, *value.parts)
            for each in held.things
        ]
        for each in [each for each in handed if isinstance(each, Function)]:
            self.run(each, Arguments(rest=UNKNOWN))
        return Value(
            things=frozenset(each for each in handed if isinstance(each, Imported) and each.made)
        )

    def _call_imported(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        root, last, first = path.split(".")[0], path.rsplit(".", 1)[-1], arguments.first()
        if path in words.WRAPPERS or path.startswith(("torch.library.", "dataclasses.")):
            return self._wrapped(path, arguments)
        if path in words.EXTENSION_MAKERS:
            return KERNEL
        if path in ("builtins.map", "builtins.filter"):
            each = Arguments(tuple(one(value) for value in arguments.positional[1:]))
            return container([self.call(first, each, node)])
        if path == "torch.utils.checkpoint.checkpoint":
            return self.call(first, Arguments(arguments.positional[1:]), node)
        if root == "numpy" and last in words.NUMPY_PRODUCTS:
            self.report(node, path)
            return SOME
        if root == "torch":
            return self._call_torch(path, arguments, node)
        computing = {
            "builtins": last in words.BUILTINS_COMPUTE and first.tensor in ("some", "large"),
            "numpy": last in ("dot", "outer") or ".linalg." in path or ".fft." in path,
        }.get(root, root in words.COMPUTING_PACKAGES and last != "rearrange")
        if computing and arguments.tensors():
            return self._operation(
                f"{last}() on a tensor" if root == "builtins" else path, last, arguments, node
            )
        self._handed_over(arguments)
        if (
            root == "numpy"
            or root in words.PLAIN_MODULES
            or (root == "builtins" and last in words.PLAIN_BUILTINS)
        ):
            return SOME if root == "numpy" and first.tensor else PLAIN
        if (
            root == "builtins"
            or root in words.COMPUTING_PACKAGES
            or root in sys.stdlib_module_names
        ):
            return UNKNOWN
        if root != "triton":  # whose functions configure or decorate; its kernels launch
            self.seen.launches = True
        return KERNEL

    def _wrapped(self, path: str, arguments: Arguments) -> Value:
        """Decorators and containers; one that is called first gives one that gives back what it is
        given.
        """
        first = arguments.first()
        match path.rsplit(".", 1)[-1]:
            case "dict" | "OrderedDict" | "SimpleNamespace" | "defaultdict":
                names = first.names + tuple(name for name, _ in arguments.keywords)
                parts = [*first.parts, *(value for _, value in arguments.keywords)]
                return container(parts, names=names if len(names) == len(parts) else ())
            case "enumerate":
                return container([container([PLAIN, one(first)], exact=True)])
            case "zip":
                return container(
                    [container([one(each) for each in arguments.positional], exact=True)]
                )
            case "next":
                return one(first)
            case "list" | "tuple" | "set" | "reversed" | "iter" | "sorted" | "deque":
                return container([SOME]) if first.tensor else first
            case "wraps":
                return thing(Imported("copy.copy"))
            case _:
                given = first.things or first.parts or first.tensor
                return (
                    first if given else thing(Imported("copy.copy"))
                )  # a decorator that changes nothing

    def _call_torch(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        match path.split(".")[1:]:
            case ["ops" | "classes", space, name, *_]:
                if space in words.BUILT_IN_OPERATORS:
                    return (
                        self._operation(path, name, arguments, node)
                        if words.computes(name)
                        else SOME
                    )
                self.seen.launches = True
                return MAYBE
            case ["nn", *_, str(layer), method] if layer[0].isupper():
                if method in words.ITSELF:
                    return arguments.first()
                if method == "__init__" or layer in words.NO_LAYERS:
                    return PLAIN
                made = Imported(path.rsplit(".", 1)[0], made=True)
                return self._call("unknown" if layer in words.CONTAINERS else made, arguments, node)
            case ["nn", *spaces, name] if name[0].isupper() and "functional" not in spaces:
                return self._module(path, name, arguments)
            case ["nn", "functional", name] | ["linalg" | "fft" | "special" | "sparse", *_, name]:
                return self._operation(path, name, arguments, node)
            case ["Tensor", name]:
                return self._call_tensor_method(
                    arguments.first(), name, Arguments(arguments.positional[1:]), node
                )
            case ["_C", "_nn" | "_VariableFunctions", name] | [name]:
                return self._call_function(path, name, arguments, node)
            case [space, *_]:
                self._handed_over(arguments)
                return (
                    UNKNOWN
                    if space.startswith("_") or space in ("jit", "package", "hub", "export", "fx")
                    else PLAIN
                )
            case _:
                return PLAIN

    def _call_function(self, path: str, name: str, arguments: Arguments, node: ast.AST) -> Value:
        if name in words.SAME_SIZE:
            return LARGE if arguments.first().tensor == "large" else SOME
        if name in words.ALLOCATE | words.PARTS:
            return container([SOME]) if name in words.SEVERAL else SOME
        return self._operation(path, name, arguments, node) if words.computes(name) else PLAIN

    def _module(self, path: str, name: str, arguments: Arguments) -> Value:
        """An instance of a class of `torch.nn`."""
        if name in words.PARAMETERS:
            return SOME
        if name in words.CONTAINERS:
            alone = len(arguments.all()) == 1 and arguments.first().parts
            held = arguments.first() if alone else container(arguments.all(), exact=True)
            return container(
                held.parts, exact=held.exact and name == "Sequential", names=held.names
            )
        return PLAIN if name in words.NO_LAYERS else thing(Imported(path, made=True))
