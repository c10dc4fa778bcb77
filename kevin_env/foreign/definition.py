"""Definitions of SOL-ExecBench and flashinfer-bench, and their workloads."""

import ast
import json
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kevin_env.foreign.form import (
    ForeignError,
    cases_of,
    in_form,
    names_in,
    parameters_of,
    read_text,
    refuse_clashes,
    tree_of_reference,
)
from kevin_env.parsing import UNREADABLE, parse

MODERATE = 16 << 20, 1 << 30
"""Bytes of inputs and outputs of a workload that can be timed well, and that fits any device."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}
_BYTES |= {"float8_e5m2": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output."""

    shape: tuple[str, ...] | None
    """Names of axes; None for a number."""
    dtype: str

    def __str__(self) -> str:
        return "(a number)" if self.shape is None else f"({', '.join(self.shape)}) {self.dtype}"


@dataclass(frozen=True, slots=True)
class Definition:
    """What is computed."""

    name: str
    description: str
    constants: Mapping[str, int]
    """Lengths of constant axes."""
    variables: tuple[str, ...]
    """Axes whose length a workload gives."""
    expressions: Mapping[str, str]
    """Axes that are computed from others, each after those that it needs."""
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    reference: str
    custom: str
    """The function of the reference that makes all inputs, if one does."""

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes."""
        return (*self.constants, *self.variables, *self.expressions)

    def bytes(self, values: Mapping[str, Any]) -> int:
        """Bytes of inputs and outputs with these values of the variables."""
        known = {**self.constants, **values}
        try:
            for name, text in self.expressions.items():
                known[name] = int(eval(text, {"__builtins__": {}}, known))
        except (ArithmeticError, NameError, TypeError) as error:
            raise ForeignError(f"the axis {name} cannot be computed: {error}") from error
        tensors = (each for each in (*self.inputs.values(), *self.outputs.values()) if each.shape)
        return sum(
            math.prod(known[axis] for axis in each.shape or ()) * _BYTES[each.dtype]
            for each in tensors
        )


def read(path: Path) -> tuple[str, str]:
    """Name and text of a definition as a problem; ForeignError if it cannot be one."""
    file = path / "definition.json" if path.is_dir() else path
    defined = _definition(_json(read_text(file), file.name))
    tree = tree_of_reference(defined.reference)
    refuse_clashes(tree, (*defined.axes, *defined.inputs), allowed=defined.custom)
    named = set(parameters_of(tree, "run")) == set(defined.inputs)
    call = ", ".join(f"{each}={each}" if named else each for each in defined.inputs)
    main, others = _chosen(defined, _workloads(file))

    adapter, reference = _adapter(defined), defined.reference.strip("\n")
    given, written = ", ".join(defined.inputs), ", ".join(defined.outputs)
    inputs = [f"        {_drawn(name, each)}," for name, each in defined.inputs.items()]
    get_inputs = ["    return [", *inputs, "    ]"]
    if defined.custom:
        parameters_of(tree, defined.custom)
        reference += f"\n\n\nmake_custom_inputs = {defined.custom}"
        scalars = [name for name in defined.inputs if name in main]
        sized = ", ".join(f"{name!r}: {name}" for name in (*defined.axes, *scalars))
        get_inputs = [
            f"    made = make_custom_inputs({{{sized}}}, torch.get_default_device())",
            f"    return [made[name] for name in {list(defined.inputs)!r}]",
        ]
    statement = [defined.description, ""]
    statement += [f"    {name}: {each}" for name, each in defined.inputs.items()]
    statement += [f"    returns {name}: {each}" for name, each in defined.outputs.items()]
    if adapter:
        statement += [
            "",
            f"Instead of ModelNew a submission may define the function run({given}, {written}),",
            f"which writes its results to {written}, allocated before, and returns nothing.",
        ]
    assignments = {name: repr(value) for name, value in {**defined.constants, **main}.items()}
    assignments |= {name: f"int({text})" for name, text in defined.expressions.items()}
    return defined.name, in_form(
        "\n".join(statement),
        reference,
        [f"{name} = {value}" for name, value in assignments.items()],
        cases_of(main, others),
        adapter,
        given,
        f"run({call})",
        get_inputs,
    )


def _definition(read: dict[str, Any]) -> Definition:
    """The parts of a definition, checked."""
    try:
        axes, texts = dict(read["axes"]), (str(read["name"]), str(read["reference"]))
        inputs, outputs = (
            {name: _tensor(name, spec, axes) for name, spec in read[kind].items()}
            for kind in ("inputs", "outputs")
        )
        constants = {n: int(each["value"]) for n, each in axes.items() if each["type"] == "const"}
        variables = tuple(name for name, each in axes.items() if each["type"] == "var")
        left = {n: _expression(n, each) for n, each in axes.items() if each["type"] == "expr"}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ForeignError):
            raise
        raise ForeignError(
            f"its axes, inputs, outputs, name or reference are missing or wrong ({error})"
        ) from error
    for name in (*axes, *inputs, *outputs):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ForeignError(f"{name!r} is not a name in Python")
    expressions = dict[str, str]()
    while left:
        ready = [name for name, tree in left.items() if not names_in(tree) & left.keys()]
        if not ready:
            raise ForeignError(f"the axes {', '.join(left)} are defined by each other")
        expressions |= {name: ast.unparse(left.pop(name)) for name in ready}
    if unknown := axes.keys() - {*constants, *variables, *expressions}:
        raise ForeignError(f"the axis {min(unknown)} is neither const, var nor expr")
    custom = str(read.get("custom_inputs_entrypoint") or "")
    about = str(read.get("description") or texts[0])
    return Definition(
        texts[0], about, constants, variables, expressions, inputs, outputs, texts[1], custom
    )


def _tensor(name: str, spec: Mapping[str, Any], axes: Mapping[str, Any]) -> Tensor:
    dtype = str(spec["dtype"])
    dtype = "float8_e4m3fn" if dtype == "float8_e4m3" else dtype
    if spec["shape"] is None:
        return Tensor(None, dtype)
    if unknown := [axis for axis in spec["shape"] if axis not in axes]:
        raise ForeignError(f"{name} has the axis {unknown[0]!r}, which is not defined")
    if dtype not in _BYTES:
        raise ForeignError(f"{name} is {dtype}, which cannot be judged")
    return Tensor(tuple(spec["shape"]), dtype)


def _expression(name: str, axis: Mapping[str, Any]) -> ast.expr:
    allowed = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Name | ast.Constant
    try:
        body = parse(str(axis["expression"]).strip()).body
    except UNREADABLE as error:
        raise ForeignError(f"the expression of the axis {name} does not parse") from error
    tree = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if tree and all(isinstance(each, allowed | ast.expr_context) for each in ast.walk(tree)):
        return tree
    raise ForeignError(f"the expression of the axis {name} is not arithmetic")


def _workloads(file: Path) -> list[dict[str, Any]]:
    """The workloads beside a definition, or in flashinfer-bench's folder for them."""
    places = [file.with_name("workload.jsonl"), file.with_suffix(".jsonl")]
    before, found, after = str(file.resolve()).rpartition("/definitions/")
    if found:
        places.append(Path(f"{before}/workloads/{after}").with_suffix(".jsonl"))
    place = next((each for each in places if each.is_file()), None)
    if place is None:
        raise ForeignError(f"no workloads at {' or '.join(map(str, places))}")
    lines = enumerate(read_text(place).split("\n"), 1)
    read = [_json(line, f"{place.name} line {number}") for number, line in lines if line.strip()]
    return [each.get("workload") or each for each in read]


def _chosen(
    defined: Definition, workloads: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The constants of `main`, the first workload of moderate size or the largest, and of others.

    Workloads that cannot be made or are too large are left out, unless all are.
    """
    usable, refused = list[tuple[int, dict[str, Any]]](), "it has no workload"
    for workload in workloads:
        try:
            values = _values(defined, workload)
        except ForeignError as error:
            refused = str(error)
            continue
        if (size := defined.bytes(values)) <= MODERATE[1]:
            usable.append((size, values))
        else:
            refused = f"each workload takes more than {MODERATE[1] >> 30} GiB"
    if not usable:
        raise ForeignError(refused)
    large = (each for each in usable if each[0] >= MODERATE[0])
    main = next(large, None) or max(usable, key=lambda each: each[0])
    return main[1], [values for _, values in usable if values is not main[1]]


def _values(defined: Definition, workload: Mapping[str, Any]) -> dict[str, Any]:
    """Variable axes and scalar inputs of a workload."""
    given, sources = workload.get("axes") or {}, workload.get("inputs") or {}
    values = {name: given.get(name) for name in defined.variables}
    if wrong := [name for name, value in values.items() if type(value) is not int]:
        raise ForeignError(f"a workload gives no whole number for the axis {wrong[0]}")
    for name, tensor in defined.inputs.items():
        source = sources.get(name) or {}
        match source.get("type", "random"), source.get("value"):
            case "scalar", bool() | int() | float() as value:
                values[name] = value
            case "safetensors", _:
                raise ForeignError(
                    f"input {name} comes from {source.get('path')}, and a problem holds no data"
                )
            case "custom", _:
                if not defined.custom:
                    raise ForeignError(f"input {name} is custom without custom_inputs_entrypoint")
            case "random", _ if tensor.shape is not None:
                pass
            case kind, _:
                raise ForeignError(f"input {name} is {kind} without a value, and no tensor")
    return values


def _drawn(name: str, tensor: Tensor) -> str:
    """An expression for an input: a scalar's constant, or normal or whole random numbers."""
    if tensor.shape is None:
        return name
    shape = f"[{', '.join(tensor.shape)}]"
    if "float" in tensor.dtype:
        return f"torch.randn({shape}).to(torch.{tensor.dtype})"
    low, high = {"bool": (0, 2), "uint8": (0, 256)}.get(tensor.dtype, (-128, 128))
    return f"torch.randint({low}, {high}, {shape}).to(torch.{tensor.dtype})"


def _adapter(defined: Definition) -> str:
    """The class around a function that writes to its last arguments.

    It is empty if an output is a number, or its shape does not follow from those of the inputs.
    """
    known = {name: str(value) for name, value in defined.constants.items()}
    tensors = [name for name, each in defined.inputs.items() if each.shape]
    for name in tensors:
        for at, axis in enumerate(defined.inputs[name].shape or ()):
            known.setdefault(axis, f"{name}.shape[{at}]")
    for name, text in defined.expressions.items():
        if {*_NAME.findall(text)} <= known.keys():
            known.setdefault(name, f"int({_NAME.sub(lambda word: known[word[0]], text)})")
    shapes = [each.shape for each in defined.outputs.values()]
    clash = defined.outputs.keys() & defined.inputs.keys()
    if not tensors or clash or any(each is None or {*each} - known.keys() for each in shapes):
        return ""
    lines = ["import torch", "", "", "class ModelNew(torch.nn.Module):"]
    lines += [f"    def forward(self, {', '.join(defined.inputs)}):"]
    for name, each in defined.outputs.items():
        shape = ", ".join(known[axis] for axis in each.shape or ())
        kind = f"dtype=torch.{each.dtype}, device={tensors[0]}.device"
        lines += [f"        {name} = torch.empty([{shape}], {kind})"]
    lines += [f"        run({', '.join((*defined.inputs, *defined.outputs))})"]
    return "\n".join([*lines, f"        return {', '.join(defined.outputs)}", ""])


def _json(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ForeignError(f"{place} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ForeignError(f"{place} is not a JSON object")
    return value
