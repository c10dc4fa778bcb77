"""What an expression stands for. Fifth layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    TENSOR,
    UNKNOWN,
    Arguments,
    Class,
    Filling,
    Function,
    Holder,
    Imported,
    Instance,
    Items,
    Kernel,
    Scope,
    Tensor,
    TorchModule,
    Value,
    join,
    opened,
)
from kevin_env.rules.binding import gathered, operated
from kevin_env.rules.containers import FILLING, Containers, keys_among
from kevin_env.rules.operations import KNOWN, OPAQUE, SOME_MODULE, is_operation, root
from kevin_env.rules.syntax import SYMBOLS, constant_text, element, is_none, last_name
from kevin_env.rules.values import has_tensor, items, unpacked

_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


class Expressions(Containers):
    """Evaluates expressions to what they may stand for."""

    def evaluate(self, node: ast.AST | None, scope: Scope) -> Value:
        """What the expression stands for in this scope; every call in it is judged.

        An operation that is not called where it is named has no use in what is reached but to be called elsewhere.
        """
        value = self.resolve(node, scope)
        if isinstance(node, ast.Attribute) and node.attr in FILLING:  # to be called later
            held = self.resolve(node.value, scope)
            value |= frozenset(Filling(atom.cell) for atom in held if isinstance(atom, Items) and atom.cell)
        if self.reached and isinstance(node, ast.Name | ast.Attribute):
            for path in [atom.path for atom in value if isinstance(atom, Imported) and is_operation(atom)]:
                self._computes(path, node)
        return value

    def resolve(self, node: ast.AST | None, scope: Scope) -> Value:
        """As `evaluate`, where nobody gets the value: it is called, compared, or an attribute is looked up."""
        match node:
            case ast.Constant() | None:
                return UNKNOWN
            case ast.Name(id=name):
                return self.name(name, scope)
            case ast.Attribute(value=of, attr=name):
                return self.attribute(self.resolve(of, scope), name)
            case ast.Call():
                return self._evaluate_call(node, scope)
            case ast.Subscript():
                return self._evaluate_subscript(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(op, [self.evaluate(left, scope), self.evaluate(right, scope)], node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                return self.operate(op, [self.evaluate(operand, scope)], node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._evaluate_compare(ops, [self.resolve(each, scope) for each in (left, *others)], node)
            case ast.BoolOp(values=values):
                return join([self.evaluate(value, scope) for value in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.evaluate(test, scope)
                return self.evaluate(body, scope) | self.evaluate(orelse, scope)
            case ast.NamedExpr(target=target, value=value):
                return self.assign(target, self.evaluate(value, scope), scope.outer())
            case ast.Lambda():
                return frozenset({Function(node, scope)})
            case _:
                made = self._evaluate_container(node, scope)
                return self._with_cell(made, node) if isinstance(node, _MUTABLE) else made

    def _evaluate_container(self, node: ast.AST, scope: Scope) -> Value:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                exact = not any(isinstance(element, ast.Starred) for element in elements)
                fixed = isinstance(node, ast.Tuple)
                return items(*(self.evaluate(element, scope) for element in elements), exact=exact, fixed=fixed)
            case ast.Dict(keys=keys, values=values):
                for key in keys:
                    self._note_key(node, self.evaluate(key, scope))
                return self._dictionary(keys, [self.evaluate(value, scope) for value in values])
            case ast.Starred(value=value):
                return self.elements(self.evaluate(value, scope))
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                return self.suspend(node, self.evaluate(node.value, scope))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return items(self.evaluate(node.elt, self._comprehend(node.generators, scope)))
            case ast.DictComp():
                inner = self._comprehend(node.generators, scope)
                return items(keys_among(self.evaluate(node.key, inner)) | self.evaluate(node.value, inner))
            case _:
                for child in ast.iter_child_nodes(node):
                    self.evaluate(child, scope)
                return UNKNOWN

    def _comprehend(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        inner = Scope(parent=scope, of_comprehension=True)
        for generator in generators:
            self.assign(generator.target, self.elements(self.evaluate(generator.iter, inner)), inner)
            for condition in generator.ifs:
                self.evaluate(condition, inner)
        return inner

    def operate(self, op: ast.AST, operands: Sequence[Value], node: ast.AST) -> Value:
        """What an arithmetic operator gives. Only `@` has no honest use on what is not known to be a tensor."""
        if self.overloads(operands[0], op):
            return self.special(operands[0], library.OPERATORS, Arguments(rest=join(operands)))
        text = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant | ast.JoinedStr)
        if isinstance(op, ast.MatMult) or (has_tensor(join(operands)) and not (text and isinstance(op, ast.Mod))):
            return self._computes(f"the operator {SYMBOLS.get(type(op), '?')} on tensors", node)
        given = join(operands)
        return operated(operands, adds=isinstance(op, ast.Add)) | self.special(
            given, library.OPERATORS, Arguments(rest=given)
        )

    def _evaluate_compare(self, ops: list[ast.cmpop], operands: list[Value], node: ast.AST) -> Value:
        judged = [op for op in ops if type(op) in SYMBOLS]
        if isinstance(node, ast.Compare) and any(is_none(each) for each in (node.left, *node.comparators)):
            return UNKNOWN  # also `x == None` compares no elements
        given = join(operands)
        if judged and has_tensor(given):
            return self.operate(judged[0], operands, node)
        return self.special(given, library.OPERATORS, Arguments(rest=given))

    def _evaluate_subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        index = self.evaluate(node.slice, scope)
        key = constant_text(node.slice)
        found: list[Value] = []
        receiver = self.resolve(node.value, scope)
        if not any(isinstance(each, Items | Tensor | Kernel) for each in receiver):
            found.append(self.unread(index))
        for atom in receiver:
            match atom:
                case Instance() | Class() | Holder():
                    found.append(self._of_object(atom, index, node))
                case Tensor():
                    if has_tensor(index | opened(index)):
                        self._computes("indexing with a tensor", node)
                    found.append(TENSOR)
                case Kernel():
                    self._hand_over(index, to_kernel=True)
                    found.append(self.attribute(frozenset({atom}), key) if key else frozenset({atom}))
                case Imported(path) if not key and (path in words.NAMESPACES or path.endswith(".__dict__")):
                    found.append(self._computes("a lookup by a name that is not written out", node))
                case Imported(path) if key:
                    found.append(frozenset({Imported(key if path == "sys.modules" else f"{path}.{key}")}))
                case Imported(path) if not key and path.endswith((".f_globals", ".f_locals")):
                    found.append(SOME_MODULE)
                case Imported("sys.modules") if not _is_own_name(node.slice):
                    found.append(SOME_MODULE)
                case Items(each=()) if self.runs_text:
                    found.append(OPAQUE)
                case Imported() if root(atom) == "torch":
                    found.append(frozenset({atom}))
                case Imported(path) if root(atom) not in KNOWN or f"{path}." in words.LIBRARIES_BY_NAME:
                    # a kernel with its grid, or a library by its file's name
                    found.append(frozenset({Kernel()}))
                case TorchModule():  # a list of layers within a layer
                    found.append(frozenset({atom}))
                case Items():
                    found.append(element(atom, node.slice))
                case _:
                    pass
        return join(found)

    def _of_object(self, atom: Instance | Class | Holder, index: Value, node: ast.Subscript) -> Value:
        """What an index gives of something that is no container of Python's."""
        if isinstance(atom, Holder):
            return LOST
        if isinstance(atom, Class):
            return self.call(self.attribute(frozenset({atom}), "__class_getitem__"), Arguments((index,)), node)
        given = self.special(frozenset({atom}), frozenset({"__getitem__", "__missing__"}), Arguments((index,)))
        ordered = self.iterated(frozenset({atom}))
        return given or join(element(each, node.slice) for each in ordered if isinstance(each, Items))

    def suspend(self, node: ast.Yield | ast.YieldFrom | ast.Await, value: Value) -> Value:
        """What is yielded or waited for, noted for who iterates, and what comes back."""
        raise NotImplementedError

    def _evaluate_call(self, node: ast.Call, scope: Scope) -> Value:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "super":
            return self.evaluate_super(node, scope)
        if isinstance(function, ast.Name) and function.id == "locals" and scope.parent and scope.find("locals") is None:
            here = scope.outer().names
            return self._with_cell(items(*here.values(), names=tuple(here)), node)
        if isinstance(function, ast.Name) and function.id == "globals" and scope.find("globals") is None:
            here = {name: value for name, value in self.globals.names.items() if _can_be_called(value)}
            return items(*here.values(), names=tuple(here))
        arguments = self._arguments(node, scope)
        if isinstance(function, ast.Attribute):
            receiver = self.resolve(function.value, scope)
            contained = self._call_of_container(node, receiver, arguments, scope)
            if contained is not None:
                return contained
            if function.attr in ("register_buffer", "register_parameter", "add_module", "register_module"):
                held = tuple(value or TENSOR for value in arguments.positional[1:2])
                self.set_attribute(receiver, node.args[:1], held)
            callee = self.attribute(receiver, function.attr)
        else:
            callee = self.resolve(function, scope)
        named = self.call_by_name(callee, node, arguments)
        return self.call(callee, arguments, node) if named is None else named

    def _arguments(self, node: ast.Call, scope: Scope) -> Arguments:
        starred = [isinstance(each, ast.Starred) for each in node.args]
        asked = isinstance(node.func, ast.Name) and node.func.id in library.QUESTIONS
        read = self.resolve if asked and scope.find(last_name(node.func)) is None else self.evaluate
        values = [read(_unstarred(each), scope) for each in node.args]
        values = [self.iterated(each) if star else each for each, star in zip(values, starred, strict=True)]
        keywords = [(keyword.arg, self.evaluate(keyword.value, scope)) for keyword in node.keywords]
        return gathered(zip(values, starred, strict=True), keywords)

    def assign(self, target: ast.AST, value: Value, scope: Scope) -> Value:
        """Binds a target to a value, and gives the value."""
        match target:
            case ast.Name(id=name) if name in scope.global_names:
                self.globals.names[name] = self.globals.names.get(name, UNKNOWN) | value
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Attribute(value=of, attr=name):
                self.remember(self.resolve(of, scope), name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                others = self.elements(frozenset(each for each in value if not isinstance(each, Items)))
                parts = unpacked(self.iterated(value) | others, len(targets))
                for each, part in zip(targets, parts, strict=True):
                    self.assign(each, part, scope)
            case ast.Starred(value=inner):
                self.assign(inner, items(value), scope)
            case ast.Subscript():
                self._assign_element(target, value, scope)
            case _:
                pass
        return value


def _unstarred(argument: ast.expr) -> ast.expr:
    """Without its star; a list that is written out behind one is as good as a tuple, since nobody else has it."""
    inner = argument.value if isinstance(argument, ast.Starred) else argument
    return ast.Tuple(inner.elts) if inner is not argument and isinstance(inner, ast.List) else inner


def _can_be_called(value: Value) -> bool:
    """Whether it is a function of the file's own, a kernel or a layer."""
    return bool(value) and all(isinstance(atom, Function | Kernel | TorchModule) for atom in value)


def _is_own_name(key: ast.expr) -> bool:
    """Whether it is the name of the file's own module."""
    return last_name(key) in ("__name__", "__module__")
