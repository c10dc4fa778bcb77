"""Small problems and kernels of varying quality, which the policy of `grpo.py` starts from.

The problems apply a function to each element of a matrix, reduce its rows, or normalize them. A
kernel is drawn at random: fused or not, whole rows or a loop, block size, warps, and in two of
three cases one defect.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kevin_env.outcome import CompileError, Correct, Incorrect, Outcome

RIGHT_SHARE = 0.35
"""Of the kernels, without a defect."""
BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096)
WARPS = (1, 2, 4, 8, 16)

MAPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Relu_Scale": ("torch.relu(x) * 0.5", ("tl.maximum(v, 0.0)", "v * 0.5")),
    "Swish": ("x * torch.sigmoid(x)", ("tl.sigmoid(v)", "x * v")),
    "Hard_Swish": (
        "x * torch.clamp(x + 3, 0, 6) / 6",
        ("tl.minimum(tl.maximum(v + 3.0, 0.0), 6.0)", "x * v / 6.0"),
    ),
    "Squared_Relu": ("torch.relu(x) ** 2", ("tl.maximum(v, 0.0)", "v * v")),
    "Quick_Gelu": ("x * torch.sigmoid(1.702 * x)", ("tl.sigmoid(1.702 * v)", "x * v")),
    "Gelu": (
        "0.5 * x * (1 + torch.erf(x * 0.7071067811865476))",
        ("tl.erf(v * 0.7071067811865476)", "0.5 * x * (v + 1.0)"),
    ),
    "Leaky_Relu_Shift": (
        "torch.where(x > 0, x, 0.1 * x) + 1",
        ("tl.where(v > 0, v, 0.1 * v)", "v + 1.0"),
    ),
    "Softsign": ("x / (1 + torch.abs(x))", ("tl.abs(v) + 1.0", "x / v")),
    "Bell": ("2 * torch.exp(-x * x)", ("v * v", "2.0 * tl.exp(-v)")),
    "Elu": (
        "torch.where(x > 0, x, torch.exp(x) - 1)",
        ("tl.exp(v) - 1.0", "tl.where(x > 0, x, v)"),
    ),
    "Clamp_Square_Add": (
        "torch.clamp(x, -1, 1) ** 2 + x",
        ("tl.minimum(tl.maximum(v, -1.0), 1.0)", "v * v + x"),
    ),
    "Log_Abs": ("torch.log(1 + torch.abs(x))", ("tl.abs(v) + 1.0", "tl.log(v)")),
    "Root_Abs": ("torch.sqrt(torch.abs(x) + 1) * 3", ("tl.abs(v) + 1.0", "tl.sqrt(v) * 3.0")),
    "Cubic": ("((0.5 * x + 1) * x - 2) * x", ("(0.5 * v + 1.0) * x - 2.0", "v * x")),
    "Relu6_Add": (
        "torch.clamp(x, 0, 6) + 0.1 * x",
        ("tl.minimum(tl.maximum(v, 0.0), 6.0)", "0.1 * x + v"),
    ),
}
"""The reference as an expression of x, and the steps of a kernel; v is the value so far."""

Pass = tuple[str, Literal["sum", "max"], str]
ROWS: dict[str, tuple[str, tuple[Pass, ...], str]] = {
    "Row_Sum": ("x.sum(dim=1)", (("v", "sum", "a"),), ""),
    "Row_Mean": ("x.mean(dim=1)", (("v", "sum", "a / columns"),), ""),
    "Row_Max": ("x.max(dim=1).values", (("v", "max", "a"),), ""),
    "Row_Norm": ("torch.sqrt((x * x).sum(dim=1))", (("v * v", "sum", "tl.sqrt(a)"),), ""),
    "Row_Mean_Abs": ("x.abs().mean(dim=1)", (("tl.abs(v)", "sum", "a / columns"),), ""),
    "Row_Relu_Sum": ("torch.relu(x).sum(dim=1)", (("tl.maximum(v, 0.0)", "sum", "a"),), ""),
    "Softmax": (
        "torch.softmax(x, dim=1)",
        (("v", "max", "a"), ("tl.exp(v - a)", "sum", "b")),
        "tl.exp(v - a) / b",
    ),
    "Log_Softmax": (
        "torch.log_softmax(x, dim=1)",
        (("v", "max", "a"), ("tl.exp(v - a)", "sum", "tl.log(b)")),
        "v - a - b",
    ),
    "RMS_Norm": (
        "x / torch.sqrt((x * x).mean(dim=1, keepdim=True) + 1e-5)",
        (("v * v", "sum", "tl.sqrt(a / columns + 1e-5)"),),
        "v / a",
    ),
    "L2_Norm": (
        "x / torch.sqrt((x * x).sum(dim=1, keepdim=True) + 1e-6)",
        (("v * v", "sum", "tl.sqrt(a + 1e-6)"),),
        "v / a",
    ),
    "L1_Norm": (
        "x / (x.abs().sum(dim=1, keepdim=True) + 1e-6)",
        (("tl.abs(v)", "sum", "a + 1e-6"),),
        "v / a",
    ),
    "Layer_Norm": (
        "(x - x.mean(dim=1, keepdim=True))"
        " / torch.sqrt(x.var(dim=1, keepdim=True, correction=0) + 1e-5)",
        (
            ("v", "sum", "a / columns"),
            ("(v - a) * (v - a)", "sum", "tl.sqrt(b / columns + 1e-5)"),
        ),
        "(v - a) / b",
    ),
    "Center": ("x - x.mean(dim=1, keepdim=True)", (("v", "sum", "a / columns"),), "v - a"),
    "Max_Scale": (
        "x / (x.abs().max(dim=1, keepdim=True).values + 1e-6)",
        (("tl.abs(v)", "max", "a + 1e-6"),),
        "v / a",
    ),
}
"""The reference; per pass over a row an element, how elements are combined, and the result from a
or b; and the output's element, if there is one per element.
"""
HELD_OUT = (
    "Quick_Gelu",
    "Bell",
    "Clamp_Square_Add",
    "Relu6_Add",
    "Row_Mean_Abs",
    "L2_Norm",
    "Center",
)
"""Of the warm start, but not of the training."""

Defect = Literal["none", "syntax", "name", "torch", "operator", "grid", "offset", "mask"]
DEFECTS: tuple[Defect, ...] = ("syntax", "name", "torch", "operator", "grid", "offset", "mask")
_SWAPS = (
    (" * ", " + "), (" + ", " - "), (" - ", " + "), ("maximum", "minimum"), (" / ", " * "),
    ("tl.exp", "tl.log"), ("tl.abs(v)", "v"),
)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A reply with one kernel file, and its defect."""

    reply: str
    defect: Defect

    def outcome(self, draw: random.Random) -> Outcome:
        """A plausible verdict, for prompts of later turns that nothing has judged."""
        if self.defect in ("syntax", "name", "torch"):
            return CompileError(message="NameError('SIZE is not defined')", kind="jit")
        if self.defect != "none":
            return Incorrect(
                message="Some elements are wrong.", kind="values", input_set="main/own",
                wrong=draw.randrange(1, 32_000_000), total=32_776_192,
            )  # fmt: skip
        speedup = round(draw.uniform(0.2, 3.0), 2)
        return Correct(
            message="Correct.", kind="timed", speedup=speedup,
            speedup_interval=(speedup * 0.98, speedup * 1.02),
            reference_seconds=2e-4, submission_seconds=2e-4 / speedup,
        )  # fmt: skip


def problem_names() -> list[str]:
    return [*MAPS, *ROWS]


def source(name: str) -> str:
    """A problem file in KernelBench's form."""
    expression = (MAPS[name] if name in MAPS else ROWS[name])[0]
    return f'''"""{name.replace("_", " ")} of a float32 matrix."""

import torch

rows = 8192
columns = 4001

CASES = {{"cpu": {{"rows": 61, "columns": 403}}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
'''


def draw_kernel(name: str, draw: random.Random) -> Kernel:
    """A reply to a problem, with at most one defect."""
    possible = [each for each in DEFECTS if each != ("mask" if name in MAPS else "offset")]
    defect = "none" if draw.random() < RIGHT_SHARE else draw.choice(possible)
    kernels, forward, plan = (_map if name in MAPS else _row)(name, defect, draw)
    if defect == "torch":
        forward = [f"return {(MAPS[name] if name in MAPS else ROWS[name])[0]}"]
    body = "\n".join(f"        {line}" for line in forward)
    code = (
        "import torch\nimport triton\nimport triton.language as tl\n\n\n"
        + "\n\n\n".join(kernels)
        + f"\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n{body}\n"
    )
    if defect == "syntax":
        code = code.replace("def forward(self, x):", "def forward(self, x)")
    if defect == "name":
        code = code.replace("tl.arange(0, BLOCK)", "tl.arange(0, SIZE)", 1)
    return Kernel(
        f"<think>Okay, {plan}.</think>\n```python\n{code}```\nIt uses {plan.partition(',')[0]}.",
        defect,
    )


def _map(name: str, defect: Defect, draw: random.Random) -> tuple[list[str], list[str], str]:
    """Kernels, the lines of `forward`, and a description."""
    steps = list(MAPS[name][1])
    if defect == "operator":
        place = draw.randrange(len(steps))
        steps[place] = _wrong(steps[place])
    block, warps = draw.choice(BLOCKS), draw.choice(WARPS)
    fused = draw.random() < 0.5
    groups = [steps] if fused else [[step] for step in steps]
    grid = "count // block" if defect == "grid" else "triton.cdiv(count, block)"
    kernels, forward = list[str](), ["count = x.numel()", f"block = {block}"]
    for number, group in enumerate(groups):
        kernel = f"kernel{number}"
        kernels.append(_map_kernel(kernel, group, defect, first=not number))
        before = f"y{number - 1}, " if number else ""
        forward += [
            f"y{number} = torch.empty_like(x)",
            f"{kernel}[({grid},)](x, {before}y{number}, count, BLOCK=block, num_warps={warps})",
        ]
    forward.append(f"return y{len(groups) - 1}")
    plan = f"{'one kernel' if fused else 'a kernel per step'}, blocks of {block}, {warps} warps"
    return kernels, forward, plan


def _map_kernel(name: str, steps: Sequence[str], defect: Defect, first: bool) -> str:
    shift = " + 1" if defect == "offset" else ""
    return "\n".join(
        [
            "@triton.jit",
            f"def {name}(x_ptr, {'' if first else 'v_ptr, '}y_ptr, count, BLOCK: tl.constexpr):",
            f"    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK){shift}",
            "    inside = index < count",
            "    x = tl.load(x_ptr + index, mask=inside)",
            "    v = x" if first else "    v = tl.load(v_ptr + index, mask=inside)",
            *(f"    v = {step}" for step in steps),
            "    tl.store(y_ptr + index, v, mask=inside)",
        ]
    )


def _row(name: str, defect: Defect, draw: random.Random) -> tuple[list[str], list[str], str]:
    """Kernels, the lines of `forward`, and a description."""
    _, passes, out = ROWS[name]
    if defect == "operator" and out and draw.random() < 0.5:
        out = _wrong(out)
    elif defect == "operator":
        passes = ((_wrong(passes[0][0]), *passes[0][1:]), *passes[1:])
    block, warps, whole = draw.choice(BLOCKS), draw.choice(WARPS), draw.random() < 0.5
    lines = _whole(passes, out) if whole else _loop(passes, out)
    text = "\n".join(
        [
            "@triton.jit",
            "def kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):",
            "    row = tl.program_id(0)",
            *(f"    {line}" for line in lines),
        ]
    )
    if defect == "mask":
        text = text.replace("< columns", "< BLOCK" if whole else "< columns + BLOCK")
    size = "triton.next_power_of_2(columns)" if whole else block
    forward = [
        "rows, columns = x.shape",
        "y = torch.empty_like(x)"
        if out
        else "y = torch.empty(rows, device=x.device, dtype=x.dtype)",
        f"kernel[({'rows - 1' if defect == 'grid' else 'rows'},)]"
        f"(x, y, columns, BLOCK={size}, num_warps={warps})",
        "return y",
    ]
    plan = f"{'whole rows' if whole else f'a loop over blocks of {block}'}, {warps} warps"
    return [text], forward, plan


def _whole(passes: Sequence[Pass], out: str) -> list[str]:
    lines = ["column = tl.arange(0, BLOCK)", *_LOAD]
    for name, (element, combine, final) in zip("ab", passes, strict=False):
        lines.append(f"{name} = tl.{combine}({_masked(element, combine)}, axis=0)")
        lines += [f"{name} = {final}"] if final != name else []
    return [*lines, _store(out)]


def _loop(passes: Sequence[Pass], out: str) -> list[str]:
    lines = list[str]()
    head = ["for start in range(0, columns, BLOCK):", "    column = start + tl.arange(0, BLOCK)"]
    for name, (element, combine, final) in zip("ab", passes, strict=False):
        one = _masked(element, combine)
        lines += [f"part = tl.full((BLOCK,), {_NEUTRAL[combine]}, tl.float32)", *head]
        lines += [f"    {line}" for line in _LOAD]
        lines.append(
            f"    part = part + {one}"
            if combine == "sum"
            else f"    part = tl.maximum(part, {one})"
        )
        lines.append(f"{name} = tl.{combine}(part, axis=0)")
        lines += [f"{name} = {final}"] if final != name else []
    if not out:
        return [*lines, _store(out)]
    return [*lines, *head, *(f"    {line}" for line in _LOAD), f"    {_store(out)}"]


_NEUTRAL = {"sum": "0.0", "max": '-float("inf")'}


_LOAD = (
    "inside = column < columns",
    "v = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)",
)


def _masked(element: str, combine: str) -> str:
    return f"tl.where(inside, {element}, {_NEUTRAL[combine]})"


def _store(out: str) -> str:
    if out:
        return f"tl.store(y_ptr + row * columns + column, {out}, mask=inside)"
    return "tl.store(y_ptr + row, a)"


def _wrong(expression: str) -> str:
    """The expression with another operator."""
    for old, new in _SWAPS:
        if old in expression:
            return expression.replace(old, new, 1)
    return f"{expression} * 2.0"
