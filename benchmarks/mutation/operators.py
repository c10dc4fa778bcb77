"""Small changes of Python expressions and statements, by syntax tree: what goes wrong when a kernel
is written.

An operator takes a node and yields pairs of the class of the fault and the node that takes its
place.
"""

import ast
import math
from collections.abc import Iterator

Changed = tuple[str, ast.AST]

AXIS_WORDS = {"dim", "dims", "axis"}
PLACE_WORDS = {
    "padding", "stride", "dilation", "kernel_size", "groups", "shifts", "diagonal", "num_groups",
}  # fmt: skip
FLAGS = {
    "keepdim", "descending", "stable", "center", "unbiased", "right", "bias", "affine",
    "return_complex",
}  # fmt: skip
AXIS_CALLS = {"softmax": 1, "cumsum": 1, "sum": 1, "unfold": 1, "chunk": 2, "flatten": 1, "roll": 2}
"""Which positional argument of a function is an axis, counted with the tensor; a method has one
less.
"""
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.RShift: ast.LShift, ast.LShift: ast.RShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
}  # fmt: skip
COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}  # fmt: skip
FUNCTIONS = {
    "max": "min", "min": "max", "amax": "amin", "amin": "amax", "maximum": "minimum",
    "minimum": "maximum", "sum": "mean", "mean": "sum", "exp": "expm1", "sqrt": "rsqrt",
    "rsqrt": "sqrt", "square": "abs", "abs": "square", "sigmoid": "tanh", "tanh": "sigmoid",
    "silu": "gelu", "gelu": "silu", "softplus": "relu", "log": "log1p", "erf": "tanh",
    "softmax": "log_softmax", "cumsum": "cumprod", "triu": "tril", "tril": "triu", "zeros": "ones",
    "ones": "zeros", "atan2": "hypot", "round": "floor", "float": "half", "double": "float",
    "logsumexp": "amax", "sin": "cos", "cos": "sin", "sort": "argsort", "ceil": "floor",
    "floor": "ceil", "bmm": "matmul", "cat": "hstack",
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[Changed]:
    """Everything that may take the place of a node."""
    match node:
        case ast.BinOp():
            yield from _binary(node)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if type(op) in COMPARISON:
                yield "comparison", ast.Compare(left, [COMPARISON[type(op)]()], [right])
            yield "swapped operands", ast.Compare(right, [op], [left])
        case ast.Call():
            yield from _call(node)
        case ast.Subscript():
            yield from _subscript(node)
        case ast.Constant(value=float() as value) if value and math.isfinite(value):
            yield "constant in the 3rd digit", ast.Constant(third_digit(value))
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield "integer constant", ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "dropped term", operand
        case ast.AugAssign() | ast.Assign(targets=[ast.Subscript()]):
            yield "dropped statement", ast.Pass()
        case ast.If(test=test, body=body, orelse=orelse):
            yield "comparison", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case _:
            pass


def third_digit(value: float) -> float:
    """The value with one added to its third significant digit."""
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return float(f"{value + math.copysign(step, value):.12g}")


def _binary(node: ast.BinOp) -> Iterator[Changed]:
    if type(node.op) in ARITHMETIC:
        yield "operator", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    if isinstance(
        node.op, ast.Sub | ast.Div | ast.MatMult | ast.FloorDiv | ast.Mod | ast.RShift | ast.Pow
    ):
        yield "swapped operands", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node.op, ast.Add) and _is_epsilon(node.right):
        yield "skipped epsilon", node.left
    elif isinstance(
        node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.BitAnd | ast.BitOr | ast.BitXor
    ):
        yield "dropped term", node.left
        yield "dropped term", node.right


def _is_epsilon(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < abs(node.value) <= 1e-3
    return "eps" in ast.unparse(node)


def _call(node: ast.Call) -> Iterator[Changed]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "range":
        for i in (0, len(node.args) - 1):
            for by in (1, -1):
                yield "bound", _with_argument(node, i, _moved(node.args[i], by))
        return
    if name in FUNCTIONS and isinstance(node.func, ast.Attribute):
        yield (
            "function",
            ast.Call(ast.Attribute(node.func.value, FUNCTIONS[name]), node.args, node.keywords),
        )
    yield from _arguments(node, name)
    if isinstance(node.func, ast.Attribute):
        module = isinstance(node.func.value, ast.Name) and node.func.value.id in (
            "torch",
            "F",
            "math",
            "nn",
        )
        if not module:
            yield "dropped call", node.func.value
        elif node.args:
            yield "dropped call", node.args[0]


def _arguments(node: ast.Call, name: str) -> Iterator[Changed]:
    method = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") not in (
        "torch",
        "F",
    )
    place = AXIS_CALLS.get(name, -1) - method
    if 0 <= place < len(node.args):
        for by in (1, -1):
            yield "axis", _with_argument(node, place, _moved(node.args[place], by))
    if len(node.args) >= 2 and name not in ("pad", "range", "view", "reshape"):
        swapped = [node.args[1], node.args[0], *node.args[2:]]
        yield "swapped operands", ast.Call(node.func, swapped, node.keywords)
    for i, keyword in enumerate(node.keywords):
        others = [*node.keywords[:i], *node.keywords[i + 1 :]]
        if keyword.arg in AXIS_WORDS | PLACE_WORDS:
            kind = "axis" if keyword.arg in AXIS_WORDS else "padding or stride"
            for by in (1, -1):
                moved = ast.keyword(keyword.arg, _moved(keyword.value, by))
                yield kind, ast.Call(node.func, node.args, [*others, moved])
        elif keyword.arg in FLAGS and isinstance(keyword.value, ast.Constant):
            flipped = ast.keyword(keyword.arg, ast.Constant(not keyword.value.value))
            yield "flag", ast.Call(node.func, node.args, [*others, flipped])
        if keyword.arg not in ("dtype", "device"):
            yield "dropped argument", ast.Call(node.func, node.args, others)


def _subscript(node: ast.Subscript) -> Iterator[Changed]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for i, part in enumerate(parts):
        for kind, other in _index(part):
            replaced = [*parts[:i], other, *parts[i + 1 :]]
            index = (
                ast.Tuple(replaced, ast.Load())
                if isinstance(node.slice, ast.Tuple)
                else replaced[0]
            )
            yield kind, ast.Subscript(node.value, index, node.ctx)


def _index(part: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(part, ast.Slice):
        if part.lower is not None:
            yield "bound", ast.Slice(_moved(part.lower, 1), part.upper, part.step)
            yield "bound", ast.Slice(_moved(part.lower, -1), part.upper, part.step)
        if part.upper is not None:
            yield "bound", ast.Slice(part.lower, _moved(part.upper, -1), part.step)
            yield "bound", ast.Slice(part.lower, _moved(part.upper, 1), part.step)
    elif isinstance(part, ast.Name | ast.BinOp) or (
        isinstance(part, ast.Constant) and isinstance(part.value, int)
    ):
        yield "wrong index", _moved(part, 1)
        yield "wrong index", _moved(part, -1)


def _with_argument(node: ast.Call, place: int, value: ast.expr) -> ast.Call:
    return ast.Call(node.func, [*node.args[:place], value, *node.args[place + 1 :]], node.keywords)


def _moved(node: ast.expr, by: int) -> ast.expr:
    """An expression more or less by one; of tuples every item."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_moved(item, by) for item in node.elts], ast.Load())
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.Constant(node.value + by)
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return (
            ast.Constant(by - node.operand.value) if isinstance(node.operand.value, int) else node
        )
    return ast.BinOp(node, ast.Add() if by > 0 else ast.Sub(), ast.Constant(abs(by)))
