"""The words of PyTorch as far as telling computations apart takes it."""

import ast
import re

SYNONYMS = {
    "mm": "matmul", "bmm": "matmul", "addmm": "linear", "baddbmm": "linear",
    "multiply": "mul", "divide": "div", "truedivide": "div", "subtract": "sub", "absolute": "abs", "negative": "neg",
    "swish": "silu", "power": "pow", "concat": "cat", "concatenate": "cat", "greater": "gt", "less": "lt",
    "crossentropyloss": "crossentropy", "mseloss": "mse", "nllloss": "nll", "kldivloss": "kldiv",
}  # fmt: skip
"""Different names of one operation, as `operation` spells them."""

NOT_COMPUTING = frozenset({
    "view", "viewas", "reshape", "reshapeas", "transpose", "permute", "t", "movedim", "moveaxis", "swapaxes",
    "swapdims", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expandas", "broadcastto",
    "broadcasttensors", "contiguous", "narrow", "chunk", "split", "unbind", "select", "detach", "clone", "to",
    "type", "typeas", "float", "half", "double", "bfloat16", "int", "long", "short", "bool", "cuda", "cpu",
    "tolist", "item", "size", "dim", "ndim", "numel", "stride", "shape", "promotetypes", "empty", "emptylike",
    "zeros", "zeroslike", "ones", "oneslike", "full", "fulllike", "newzeros", "newempty", "newones", "newfull",
    "newtensor", "tensor", "astensor", "arange", "eye", "identity", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "sequential", "modulelist", "moduledict", "parameter", "parameterlist", "registerbuffer", "append",
    "extend", "items", "keys", "values", "get", "format", "join", "apply", "super", "device", "dtype", "nograd",
})  # fmt: skip
"""What only views, places, makes or names tensors, and what does nothing when a model is used."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordivide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "bitwiseleftshift",
    ast.RShift: "bitwiserightshift", ast.BitOr: "bitwiseor", ast.BitXor: "bitwisexor", ast.BitAnd: "bitwiseand",
    ast.USub: "neg", ast.Invert: "bitwisenot", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le",
    ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
"""Python's operators as torch calls them."""


def operation(name: str) -> str:
    """One spelling of `nn.LayerNorm`, `F.layer_norm`, `relu` and `relu_`; empty for what computes
    nothing.
    """
    word = re.sub(r"norm[123]d$", "norm", name.replace("_", "").lower())
    word = SYNONYMS.get(word, word)
    return "" if word in NOT_COMPUTING else word
