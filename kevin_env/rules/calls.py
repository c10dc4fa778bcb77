"""Effects of calls. Second of the reader's three layers."""

import ast
import sys
from abc import abstractmethod

from kevin_env.rules import values as v
from kevin_env.rules.expressions import Expressions
from kevin_env.rules.vocabulary import computes, plain_methods, stem, words

MOST_GRADIENTS = 16
"""Tensors that are passed to `backward`; it reads those that it has parameters for."""


class Calls(Expressions):
    """Follows calls into the submission's functions, and classifies all other calls by name."""

    @abstractmethod
    def _run(self, function: v.Function, arguments: v.Arguments) -> v.Value: ...

    def _evaluate_call(self, node: ast.Call, scope: v.Scope) -> v.Value:
        arguments = self._arguments(node, scope)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)):
                return self._call_parent(name, arguments, node, scope)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                return self._attribute(arguments.first(), name)
            case ast.Call(func=ast.Name(id="setattr"), args=[of, ast.Constant(value=str(name)), _]):
                self._assign(ast.Attribute(of, name, ast.Store()), arguments.positional[2], scope)
                return v.NONE
            case ast.Call(func=ast.Attribute(value=of, attr=name)):
                receiver = self._evaluate(of, scope)
                result = self._call_method(receiver, of, name, arguments, node, scope)
                if result is None:
                    return self._call(self._attribute(receiver, name), arguments, node)
                return result
            case _:
                return self._call(self._evaluate(node.func, scope), arguments, node)

    def _arguments(self, node: ast.Call, scope: v.Scope) -> v.Arguments:
        positional, rest = list[v.Value](), list[v.Value]()
        for each in node.args:
            starred = isinstance(each, ast.Starred)
            value = self._evaluate(each.value if isinstance(each, ast.Starred) else each, scope)
            if rest or (starred and not value.exact):
                rest.append(v.element(value) if starred else value)
            else:
                positional += value.parts if starred else (value,)
        keywords = [(each.arg, self._evaluate(each.value, scope)) for each in node.keywords]
        rest += [v.element(value) for name, value in keywords if name is None]
        named = tuple((name, value) for name, value in keywords if name is not None)
        return v.Arguments(tuple(positional), named, v.join([*rest, v.PLAIN]) if rest else None)

    def _call_parent(
        self, name: str, arguments: v.Arguments, node: ast.AST, scope: v.Scope
    ) -> v.Value:
        if method := scope.find("super()"):
            (of,), (owner,) = (method.names[key].callees for key in ("super()", "self()"))
            if isinstance(of, v.Own) and isinstance(owner, v.Own):
                inherited = self._inherited(self.lineage(of.node)[1:], owner, name)
                if inherited == v.UNKNOWN and name in words("itself"):
                    return v.callee(owner)
                return self._call(inherited, arguments, node)
        return v.UNKNOWN

    def _call_method(
        self, receiver: v.Value, of: ast.expr, name: str, arguments: v.Arguments, node: ast.Call,
        scope: v.Scope,
    ) -> v.Value | None:  # fmt: skip
        """The result for methods of tensors, modules and containers; None for any other call."""
        own = [each for each in receiver.callees if isinstance(each, v.Own)]
        if receiver.tensor and not (receiver.tensor == "maybe" and name in plain_methods()):
            return self._call_tensor_method(receiver, name, arguments, node)
        if any(self._has(each, name) for each in own):
            return None
        made = any(getattr(each, "made", False) for each in receiver.callees)
        if name in words("itself") and (made or receiver.parts):
            return receiver
        key = node.args[0] if len(node.args) > 1 else None
        if made and own and name in words("module_setters") and isinstance(key, ast.Constant):
            target = ast.Attribute(of, str(key.value), ast.Store())
            self._assign(target, arguments.positional[1], scope)
            return v.NONE
        if made and name in words("contents"):
            held = [value for each in own for value in self.members.get(each, {}).values()]
            return v.container(held or [receiver])
        if receiver.parts and (name in ("values", "items") or name in words("contents")):
            return v.container(receiver.parts)
        if name in words("container_setters") and not receiver.callees:
            spread = name in ("extend", "update")
            added = [v.element(each) if spread else each for each in arguments.all()]
            self._add_to(of, v.join(added), scope)
        if receiver.parts and name in words("container_getters"):
            wanted = getattr(node.args[0], "value", None) if node.args else None
            return v.item(receiver, wanted) if isinstance(wanted, str) else v.element(receiver)
        known = made or bool(own) or not (receiver.callees or receiver.is_none)
        plain = not own and not made and name in plain_methods()
        harmless = plain or name in words("module_methods")
        if harmless and (known or receiver.callees == v.UNKNOWN.callees):
            return v.PLAIN if known else v.UNKNOWN
        return None

    def _call_tensor_method(
        self, receiver: v.Value, name: str, arguments: v.Arguments, node: ast.AST
    ) -> v.Value:
        passed = v.Arguments((receiver, *arguments.all()))
        result = self._operation(f"the tensor method .{name}()", name, passed, node)
        return result or (v.UNKNOWN if name.startswith("_") else v.PLAIN)

    def _operation(
        self, what: str, name: str, arguments: v.Arguments, node: ast.AST
    ) -> v.Value | None:
        """A function or method of torch, by its name; None if it makes no tensor."""
        if name in words("same_size"):
            return v.LARGE if arguments.first().tensor == "large" else v.SOME
        if name == "tolist" and arguments.first().tensor == "large":
            self._report(node, what)
        if name in words("parts"):
            return v.container([v.SOME]) if name in words("several") else v.SOME
        return self._compute(what, name, arguments, node) if computes(name) else None

    def _compute(self, what: str, name: str, arguments: v.Arguments, node: ast.AST) -> v.Value:
        """Reports an operation, unless it moves small tensors, which may prepare weights."""
        large, base = "large" in arguments.tensors(), stem(name)
        if large or (arguments.tensors() and not self.glue and base not in words("moves")):
            self._report(node, what)
        return v.LARGE if large and base not in words("reductions") else v.SOME

    def _call(self, called: v.Value, arguments: v.Arguments, node: ast.AST) -> v.Value:
        """The result of a call; calling a container calls each of its parts."""
        callees = v.UNKNOWN.callees if called.is_none else called.callees
        results = [self._call_one(each, arguments, node) for each in callees]
        for each in called.parts:
            results.append(self._call(each, arguments, node))
            arguments = v.Arguments((results[-1],)) if called.exact else arguments
        return v.join(results[-1:] if called.exact else results)

    def _call_one(self, each: v.Callee, arguments: v.Arguments, node: ast.AST) -> v.Value:
        match each:
            case "kernel":
                self.effects.launches = True
                return v.MAYBE if arguments.tensors() else v.KERNEL
            case v.Function():
                result = self._run(each, arguments)
                if each.then:
                    self._run(each.then, v.Arguments((v.SOME,) * MOST_GRADIENTS))
                return result
            case v.Imported(path, made=True):
                if "large" in arguments.tensors() or not self.glue:
                    self._report(node, path)
                return v.LARGE if "large" in arguments.tensors() else v.SOME
            case v.Imported(path):
                return self._call_imported(path, arguments, node)
            case v.Own(own, made=True):
                name = "__call__" if self._has(each, "__call__") else "forward"
                return self._call(self._inherited(self.lineage(own), each, name), arguments, node)
            case v.Own(own):
                made = v.callee(v.Own(own, made=True))
                self._call(self._attribute(made, "__init__"), arguments, node)
                return made
            case _:
                self.effects.launches = True
                return v.join([self._passed_on(arguments), v.UNKNOWN])

    def _passed_on(self, arguments: v.Arguments) -> v.Value:
        """Code that is not read calls the functions passed to it, and may return a layer."""
        callees = [each for value in arguments.flat() for each in value.callees]
        for each in callees:
            if isinstance(each, v.Function):
                self._run(each, v.Arguments(rest=v.UNKNOWN))
        return v.callee(*(each for each in callees if isinstance(each, v.Imported) and each.made))

    def _call_imported(self, path: str, arguments: v.Arguments, node: ast.AST) -> v.Value:
        root, last, first = path.split(".")[0], path.rsplit(".", 1)[-1], arguments.first()
        if path in words("wrappers") or path.startswith(("torch.library.", "dataclasses.")):
            return self._wrapped(path, arguments)
        if path in words("extension_makers"):
            return v.KERNEL
        if path in ("builtins.map", "builtins.filter"):
            each = v.Arguments(tuple(v.element(value) for value in arguments.positional[1:]))
            return v.container([self._call(first, each, node)])
        if path == "torch.utils.checkpoint.checkpoint":
            return self._call(first, v.Arguments(arguments.positional[1:]), node)
        if root == "numpy" and last in words("numpy_products"):
            self._report(node, path)
            return v.SOME
        if root == "torch":
            return self._call_torch(path, arguments, node)
        return self._call_package(path, arguments, node)

    def _call_package(self, path: str, arguments: v.Arguments, node: ast.AST) -> v.Value:
        root, last, first = path.split(".")[0], path.rsplit(".", 1)[-1], arguments.first()
        if root == "builtins":
            computing = last in words("builtins_compute") and first.tensor in ("some", "large")
            plain = last in words("plain_builtins")
        elif root == "numpy":
            computing = last not in words("numpy_moves")
            plain = True
        else:
            computing = root in words("computing_packages") and last != "rearrange"
            plain = root in words("plain_modules")
        if computing and arguments.tensors():
            what = f"{last}() on a tensor" if root == "builtins" else path
            return self._compute(what, last, arguments, node)
        self._passed_on(arguments)
        if plain:
            return v.SOME if root == "numpy" and first.tensor else v.PLAIN
        if root in words("computing_packages") | sys.stdlib_module_names:  # has `builtins`, too
            return v.UNKNOWN
        if root != "triton":  # its functions configure or decorate; only its kernels launch
            self.effects.launches = True
        return v.KERNEL

    def _wrapped(self, path: str, arguments: v.Arguments) -> v.Value:
        """A decorator or container has the effect of its argument, if any."""
        first = arguments.first()
        match path.rsplit(".", 1)[-1]:
            case "dict" | "OrderedDict" | "SimpleNamespace" | "defaultdict":
                names = first.names + tuple(name for name, _ in arguments.keywords)
                parts = [*first.parts, *(value for _, value in arguments.keywords)]
                return v.container(parts, names=names if len(names) == len(parts) else ())
            case "enumerate":
                return v.container([v.container([v.PLAIN, v.element(first)], exact=True)])
            case "zip":
                return v.container([v.container(map(v.element, arguments.positional), exact=True)])
            case "next":
                return v.element(first)
            case "list" | "tuple" | "set" | "reversed" | "iter" | "sorted" | "deque":
                return v.container([v.SOME]) if first.tensor else first
            case name:
                wrapped = name != "wraps" and (first.callees or first.parts or first.tensor)
                return first if wrapped else v.callee(v.Imported("copy.copy"))

    def _call_torch(self, path: str, arguments: v.Arguments, node: ast.AST) -> v.Value:
        match path.split(".")[1:]:
            case ["ops" | "classes", space, name, *_]:
                if space not in words("torch_namespaces"):
                    self.effects.launches = True
                    return v.MAYBE
                return self._compute(path, name, arguments, node) if computes(name) else v.SOME
            case ["nn", *_, str(layer), method] if layer[0].isupper():
                if method in words("itself"):
                    return arguments.first()
                if method == "__init__" or layer in words("no_layers"):
                    return v.PLAIN
                made = v.Imported(path.rsplit(".", 1)[0], made=True)
                called = v.UNKNOWN if layer in words("containers") else v.callee(made)
                return self._call(called, arguments, node)
            case ["nn", *spaces, name] if name[0].isupper() and "functional" not in spaces:
                return self._construct(path, name, arguments)
            case ["nn", "functional", name] | ["linalg" | "fft" | "special" | "sparse", *_, name]:
                return self._compute(path, name, arguments, node)
            case ["Tensor", name]:
                rest = v.Arguments(arguments.positional[1:])
                return self._call_tensor_method(arguments.first(), name, rest, node)
            case ["_C", "_nn" | "_VariableFunctions", name] | [name]:
                if name in words("allocate"):
                    return v.SOME
                return self._operation(path, name, arguments, node) or v.PLAIN
            case [space, *_]:
                self._passed_on(arguments)
                opaque = space in ("jit", "package", "hub", "export", "fx")
                return v.UNKNOWN if opaque or space.startswith("_") else v.PLAIN
            case _:
                return v.PLAIN

    def _construct(self, path: str, name: str, arguments: v.Arguments) -> v.Value:
        if name in words("parameters"):
            return v.SOME
        if name in words("containers"):
            alone = len(arguments.all()) == 1 and arguments.first().parts
            held = arguments.first() if alone else v.container(arguments.all(), exact=True)
            exact = held.exact and name == "Sequential"
            return v.container(held.parts, exact=exact, names=held.names)
        return v.PLAIN if name in words("no_layers") else v.callee(v.Imported(path, made=True))
