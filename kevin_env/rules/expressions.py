"""What an expression stands for. Fifth layer of the reader."""

import ast
from collections.abc import Sequence

from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    TENSOR,
    UNKNOWN,
    Arguments,
    Function,
    Imported,
    Items,
    Kernel,
    Scope,
    Tensor,
    Value,
    join,
    opened,
)
from kevin_env.rules.binding import gathered, loosened, operated
from kevin_env.rules.names import Names
from kevin_env.rules.operations import OPAQUE, SOME_MODULE, root
from kevin_env.rules.syntax import SYMBOLS, constant_text, element, is_none, last_name
from kevin_env.rules.values import has_tensor, items, unpacked, with_entry

_FILLING = frozenset(
    {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault", "add_module",
     "register_module"}
)  # fmt: skip
_OPENING = frozenset({"extend", "extendleft", "update"})
_MOVING = frozenset({"pop", "popleft", "reverse", "sort", "insert", "remove", "rotate", "appendleft", "extendleft"})
_TAKING = frozenset({"pop", "get", "setdefault", "popitem"})


class Expressions(Names):
    """Evaluates expressions to what they may stand for."""

    def evaluate(self, node: ast.AST | None, scope: Scope) -> Value:
        """What the expression stands for in this scope; every call in it is judged."""
        match node:
            case ast.Constant() | None:
                return UNKNOWN
            case ast.Name(id=name):
                return self.name(name, scope)
            case ast.Attribute(value=of, attr=name):
                return self.attribute(self.evaluate(of, scope), name)
            case ast.Call():
                return self._evaluate_call(node, scope)
            case ast.Subscript():
                return self._evaluate_subscript(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(op, [self.evaluate(left, scope), self.evaluate(right, scope)], node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                return self.operate(op, [self.evaluate(operand, scope)], node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._evaluate_compare(ops, [self.evaluate(each, scope) for each in (left, *others)], node)
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
                return self._evaluate_container(node, scope)

    def _evaluate_container(self, node: ast.AST, scope: Scope) -> Value:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                exact = not any(isinstance(element, ast.Starred) for element in elements)
                fixed = isinstance(node, ast.Tuple)
                return items(*(self.evaluate(element, scope) for element in elements), exact=exact, fixed=fixed)
            case ast.Dict(keys=keys, values=values):
                for key in keys:
                    self.evaluate(key, scope)
                names = tuple(text for text in (constant_text(key) for key in keys if key) if text is not None)
                complete = names if len(names) == len(keys) else ()
                return items(*(self.evaluate(value, scope) for value in values), names=complete)
            case ast.Starred(value=value) | ast.YieldFrom(value=value):
                return opened(self.evaluate(value, scope))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return items(self.evaluate(node.elt, self._comprehend(node.generators, scope)))
            case ast.DictComp():
                inner = self._comprehend(node.generators, scope)
                self.evaluate(node.key, inner)
                return items(self.evaluate(node.value, inner))
            case _:
                for child in ast.iter_child_nodes(node):
                    self.evaluate(child, scope)
                return UNKNOWN

    def _comprehend(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        inner = Scope(parent=scope, of_comprehension=True)
        for generator in generators:
            self.assign(generator.target, opened(self.evaluate(generator.iter, inner)), inner)
            for condition in generator.ifs:
                self.evaluate(condition, inner)
        return inner

    def operate(self, op: ast.AST, operands: Sequence[Value], node: ast.AST) -> Value:
        """What an arithmetic operator gives. Only `@` has no honest use on what is not known to be a tensor."""
        text = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant | ast.JoinedStr)
        if isinstance(op, ast.MatMult) or (has_tensor(join(operands)) and not (text and isinstance(op, ast.Mod))):
            return self._computes(f"the operator {SYMBOLS.get(type(op), '?')} on tensors", node)
        return operated(operands, adds=isinstance(op, ast.Add))

    def _evaluate_compare(self, ops: list[ast.cmpop], operands: list[Value], node: ast.AST) -> Value:
        judged = [op for op in ops if type(op) in SYMBOLS]
        if isinstance(node, ast.Compare) and any(is_none(each) for each in (node.left, *node.comparators)):
            return UNKNOWN  # also `x == None` compares no elements
        return self.operate(judged[0], operands, node) if judged and has_tensor(join(operands)) else UNKNOWN

    def _evaluate_subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        index = self.evaluate(node.slice, scope)
        key = constant_text(node.slice)
        found: list[Value] = []
        for atom in self.evaluate(node.value, scope):
            match atom:
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
                case Items():
                    found.append(element(atom, node.slice))
                case _:
                    pass
        return join(found)

    def _evaluate_call(self, node: ast.Call, scope: Scope) -> Value:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "super":
            return self.evaluate_super(node, scope)
        arguments = self._arguments(node, scope)
        if isinstance(function, ast.Attribute):
            receiver = self.evaluate(function.value, scope)
            contained = self._call_of_container(node, receiver, arguments, scope)
            if contained is not None:
                return contained
            if function.attr in ("register_buffer", "register_parameter", "add_module", "register_module"):
                held = tuple(value or TENSOR for value in arguments.positional[1:2])
                self.set_attribute(receiver, node.args[:1], held)
        callee = self.evaluate(function, scope)
        named = self.call_by_name(callee, node, arguments)
        return self.call(callee, arguments, node) if named is None else named

    def _arguments(self, node: ast.Call, scope: Scope) -> Arguments:
        starred = [isinstance(each, ast.Starred) for each in node.args]
        values = [self.evaluate(_unstarred(each), scope) for each in node.args]
        keywords = [(keyword.arg, self.evaluate(keyword.value, scope)) for keyword in node.keywords]
        return gathered(zip(values, starred, strict=True), keywords)

    def _call_of_container(self, node: ast.Call, receiver: Value, args: Arguments, scope: Scope) -> Value | None:
        function = node.func
        contained = frozenset(atom for atom in receiver if isinstance(atom, Items))
        if not isinstance(function, ast.Attribute) or not contained:
            return None
        ambiguous = function.attr in words.TENSOR_NAMES and contained != receiver
        if ambiguous or self.attribute(contained, function.attr):
            return None
        name = constant_text(node.args[0]) if node.args else None
        moving = function.attr in _MOVING
        if moving or function.attr in _FILLING:
            filled = loosened(contained) if moving else contained
            if function.attr in _FILLING:
                given = join((*args.positional, *(value for _, value in args.keywords), args.rest))
                filled |= items(opened(given) if function.attr in _OPENING else given)
            if isinstance(function.value, ast.Subscript):
                self._assign_element(function.value, filled, scope)
            elif isinstance(function.value, ast.Name | ast.Attribute):
                self.put(function.value, filled, scope)
        if function.attr == "items":
            return items(items(UNKNOWN, opened(contained), exact=True))
        if function.attr in _TAKING:
            return join((*(atom.named(name) for atom in contained), *args.positional[1:]))
        return contained

    def assign(self, target: ast.AST, value: Value, scope: Scope) -> Value:
        """Binds a target to a value, and gives the value."""
        match target:
            case ast.Name(id=name) if name in scope.global_names:
                self.globals.names[name] = self.globals.names.get(name, UNKNOWN) | value
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Attribute(value=of, attr=name):
                self.remember(self.evaluate(of, scope), name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each, part in zip(targets, unpacked(value, len(targets)), strict=True):
                    self.assign(each, part, scope)
            case ast.Starred(value=inner):
                self.assign(inner, items(value), scope)
            case ast.Subscript():
                self._assign_element(target, value, scope)
            case _:
                pass
        return value

    def _assign_element(self, node: ast.Subscript, value: Value, scope: Scope) -> None:
        held, index = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if has_tensor(held) and has_tensor(index | opened(index)):
            self._computes("indexing with a tensor", node)
        containers = [atom for atom in held if isinstance(atom, Items)]
        if containers and isinstance(node.value, ast.Name | ast.Attribute):
            filled = join(with_entry(atom, constant_text(node.slice), value) for atom in containers)
            self.put(node.value, held - frozenset(containers) | filled, scope)
        elif not has_tensor(held):
            self.handed_on(value)

    def put(self, target: ast.Name | ast.Attribute, filled: Value, scope: Scope) -> None:
        """Notes what a container holds now; of one that is bound further out, besides what else it may hold."""
        home = scope.home(target.id) if isinstance(target, ast.Name) else scope
        if isinstance(target, ast.Name) and home and home is not scope:
            home.names[target.id] |= filled
        else:
            self.assign(target, filled, scope)


def _unstarred(argument: ast.expr) -> ast.expr:
    """Without its star; a list that is written out behind one is as good as a tuple, since nobody else has it."""
    inner = argument.value if isinstance(argument, ast.Starred) else argument
    return ast.Tuple(inner.elts) if inner is not argument and isinstance(inner, ast.List) else inner


def _is_own_name(key: ast.expr) -> bool:
    """Whether it is the name of the file's own module."""
    return last_name(key) in ("__name__", "__module__")
