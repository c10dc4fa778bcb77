"""The operations of a reference in order, regardless of names, layout and constants.

The source is only parsed, not run.
"""

import ast
import builtins
import difflib
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from kevin_env.languages import Name
from kevin_env.outcome import Frozen
from kevin_env.parsing import UNREADABLE, parse

SYNONYMS = {
    "mm": "matmul", "bmm": "matmul", "addmm": "linear", "baddbmm": "linear", "multiply": "mul",
    "divide": "div", "truedivide": "div", "subtract": "sub", "absolute": "abs", "negative": "neg",
    "swish": "silu", "power": "pow", "concat": "cat", "concatenate": "cat", "greater": "gt",
    "less": "lt", "crossentropyloss": "crossentropy", "mseloss": "mse", "nllloss": "nll",
    "kldivloss": "kldiv",
}  # fmt: skip
"""Different names of one operation, as `operation` spells them."""

_NOT_COMPUTING = """
view viewas reshape reshapeas transpose permute t movedim moveaxis swapaxes swapdims flatten
unflatten squeeze unsqueeze expand expandas broadcastto broadcasttensors contiguous narrow chunk
split unbind select detach clone to type typeas float half double bfloat16 int long short bool
cuda cpu tolist item size dim ndim numel stride shape promotetypes empty emptylike zeros
zeroslike ones oneslike full fulllike newzeros newempty newones newfull newtensor tensor
astensor arange eye identity dropout dropout1d dropout2d dropout3d sequential modulelist
moduledict parameter parameterlist registerbuffer append extend items keys values get format
join apply super device dtype nograd
"""

NOT_COMPUTING = frozenset(_NOT_COMPUTING.split())
"""Operations that only view, place, create or name tensors, or do nothing in evaluation."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordivide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "bitwiseleftshift",
    ast.RShift: "bitwiserightshift", ast.BitOr: "bitwiseor", ast.BitXor: "bitwisexor",
    ast.BitAnd: "bitwiseand", ast.USub: "neg", ast.Invert: "bitwisenot", ast.Eq: "eq",
    ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
"""Python's operators as torch calls them."""


def operation(name: str) -> str:
    """One name for `nn.LayerNorm` and `F.layer_norm`, `relu` and `relu_`; empty for views etc."""
    word = re.sub(r"norm[123]d$", "norm", name.replace("_", "").lower())
    word = SYNONYMS.get(word, word)
    return "" if word in NOT_COMPUTING else word


Origin = Literal["solutions", "kernelbook", "archive", "examples"]


class RetrievalError(ValueError):
    """An index, a source or a model that cannot be used. The message has the remedy."""


class Pair(Frozen):
    """A reference and a kernel for it; kernels from other collections were not judged."""

    id: str
    """Such as `L1_23_Softmax.triton`, `kernelbook:17`, `archive:L1_23/softmax_warp_reduce`."""
    origin: Origin
    language: Name
    reference: str
    """Source of a PyTorch module."""
    entry: str = "Model"
    """The class in it that is replaced."""
    kernel: str
    """Source: Python, or CUDA C++ in the archive."""
    level: int | None = None
    number: int | None = None
    """The KernelBench problem or shipped problem that it solves, if known."""
    speedup: float | None = None
    """As stated by the collection."""

    @property
    def lexer(self) -> Literal["python", "cpp"]:
        """The kernel's language, as in a fence."""
        return "cpp" if self.origin == "archive" else "python"


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

NEAR = 0.9
"""Similarity from which a reference is a copy of another: one operation in ten differs."""

_UNKNOWN = "call"
"""Placeholder for an operation with a name of the author's."""

_MOST = 2000
"""Limit of operations and functions per reference, since nested helpers can unfold endlessly."""


@functools.lru_cache(maxsize=65_536)
def operations(source: str, entry: str = "Model") -> tuple[str, ...]:
    """The operations of `entry.forward` in evaluation order.

    Helpers and submodules are unfolded, loops read once. `torch.softmax(x, 1)`, `x.softmax(1)`,
    `F.softmax(x, 1)` and `nn.Softmax(1)(x)` are the same operation. Views, casts and allocations
    are not operations.

    Raises:
        RetrievalError: if the source does not parse, or is nested too deeply.
    """
    try:
        reader = _Reader(parse(source))
        root = reader.classes.get(entry) or next(reversed(reader.classes.values()), None)
        if root is not None:
            reader.read(root)
    except UNREADABLE as error:
        raise RetrievalError(f"a reference cannot be read: {type(error).__name__}") from error
    return tuple(reader.operations[:_MOST])


def near_copies(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a solution of one reference nearly solves the other."""
    if one == other:
        return True
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return (
        matcher.real_quick_ratio() >= NEAR
        and matcher.quick_ratio() >= NEAR
        and matcher.ratio() >= NEAR
    )


class _Reader(ast.NodeVisitor):
    """Walks what a class's `forward` reaches and notes the operations."""

    def __init__(self, tree: ast.Module) -> None:
        self.operations: list[str] = []
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._functions = {
            node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        self._imported = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self._owner: ast.ClassDef | None = None
        self._self = ""
        self._open: list[Definition] = []
        self._read = 0

    def read(self, definition: Definition, owner: ast.ClassDef | None = None) -> None:
        """Reads a function, or the `forward` of a class, unless it is being read already."""
        if isinstance(definition, ast.ClassDef):
            method = self._method(definition, "forward")
            if method is not None:
                self.read(method, definition)
            return
        self._read += 1
        if definition in self._open or len(self.operations) >= _MOST or self._read > _MOST:
            return
        with self._inside(definition, owner):
            for statement in definition.body:
                self.visit(statement)

    @contextmanager
    def _inside(self, definition: Definition, owner: ast.ClassDef | None) -> Iterator[None]:
        before = self._owner, self._self
        arguments = [] if isinstance(definition, ast.ClassDef) else definition.args.args
        self._owner, self._self = owner, arguments[0].arg if owner is not None and arguments else ""
        self._open.append(definition)
        try:
            yield
        finally:
            self._open.pop()
            self._owner, self._self = before

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and not self._is_self(function.value):
            self.visit(function.value)
        elif not isinstance(function, ast.Attribute | ast.Name):
            self.visit(function)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(argument)
        if isinstance(function, ast.Attribute):
            self._call_attribute(function)
        elif isinstance(function, ast.Name):
            self._call_name(function.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Treats a mention of a submodule, as in a loop over `self.layers`, as a call."""
        if self._is_self(node.value):
            self._construct(self._member(node.attr))
        else:
            self.visit(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.visit(node.left)
        self.visit(node.right)
        self._note(OPERATORS[type(node.op)])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self._note(OPERATORS[type(node.op)])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.visit(node.operand)
        if not isinstance(node.operand, ast.Constant):
            self._note(OPERATORS.get(type(node.op), ""))

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        for operator in node.ops:
            self._note(OPERATORS.get(type(operator), ""))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Checks are not part of the computation."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Errors are not part of the computation."""

    def _call_attribute(self, function: ast.Attribute) -> None:
        name = function.attr
        if self._is_self(function.value):
            method = self._owner and self._method(self._owner, name)
            if method is not None:
                self.read(method, self._owner)
            else:
                self._call_member(self._member(name))
        elif isinstance(function.value, ast.Name) and function.value.id in self.classes:
            self.read(self.classes[function.value.id])  # such as MyFunction.apply
        else:
            self._note(operation(name))

    def _call_name(self, name: str) -> None:
        if name in self._functions:
            self.read(self._functions[name])
        elif name in self.classes:
            self.read(self.classes[name])
        elif name in self._imported:
            self._note(operation(self._imported[name]))
        elif not hasattr(builtins, name):
            self._note(_UNKNOWN)

    def _call_member(self, value: ast.expr | None) -> None:
        if isinstance(value, ast.Attribute):  # self.act = F.relu
            self._note(operation(value.attr))
        elif not self._construct(value):
            self._note(_UNKNOWN)

    def _construct(self, value: ast.expr | None) -> bool:
        """Records the modules that an expression creates; returns whether there are any."""
        calls = (
            [node for node in ast.walk(value) if isinstance(node, ast.Call)]
            if value is not None
            else []
        )
        calls.sort(key=lambda node: (node.func.end_lineno or 0, node.func.end_col_offset or 0))
        names = [
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in calls
        ]
        made = [name for name in names if name[:1].isupper()]
        for name in made:
            if name in self.classes:
                self.read(self.classes[name])
            else:
                self._note(operation(name))
        return bool(made)

    def _method(self, owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        """A method of the class, or of a base class that is defined here."""
        own = (
            node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == name
        )
        bases = (
            self.classes[base.id]
            for base in owner.bases
            if isinstance(base, ast.Name) and base.id in self.classes
        )
        inherited = (self._method(base, name) for base in bases if base is not owner)
        return next(own, None) or next((method for method in inherited if method), None)

    def _member(self, name: str) -> ast.expr | None:
        """The values that the constructor assigns to `self.name`."""
        constructor = self._owner and self._method(self._owner, "__init__")
        if constructor is None or not constructor.args.args:
            return None
        own, value = constructor.args.args[0].arg, None
        for node in ast.walk(constructor):
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    value = node.value if (target.value.id, target.attr) == (own, name) else value
        return value

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._self

    def _note(self, word: str) -> None:
        if word:
            self.operations.append(word)
