"""Problems of SOL-ExecBench, flashinfer-bench and kernelbot, as text in KernelBench's form.

`sol:PATH` and `flashinfer:PATH` name a definition file, or the folder of `definition.json`;
`kernelbot:PATH` names the folder of `task.yml`. The reference is taken as it stands. What a
submission may define instead of `ModelNew` is in the statement, and the class around it in
`ADAPTER`.
"""

import ast
import json
import keyword
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kevin_env.parsing import UNREADABLE, assigned, parse, text_of

FORMATS = {"sol": "SOL-ExecBench", "flashinfer": "flashinfer-bench", "kernelbot": "kernelbot"}
"""Prefixes of names, each followed by a colon and a path."""
CASES = 4
"""Most cases beside `main`."""
MODERATE = 16 << 20, 1 << 30
"""Bytes of inputs and outputs of a workload that can be timed well, and that fits any device."""

_FLOATS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
_BYTES = {**_FLOATS, "float8_e4m3fn": 1, "float8_e5m2": 1, "uint8": 1, "bool": 1}
_BYTES |= {"int64": 8, "int32": 4, "int16": 2, "int8": 1}
_OTHER_NAMES = {"float8_e4m3": "float8_e4m3fn"}
_OURS = ("Model", "ModelNew", "get_inputs", "get_init_inputs", "CASES", "ADAPTER", "DEVICE")
_STAND_INS = {
    "DeterministicContext": "contextlib.nullcontext",
    "DisableCuDNNTF32": "contextlib.nullcontext",
    "set_seed": "torch.manual_seed",
    "get_device": "lambda use_cuda=True: torch.get_default_device()",
    **dict.fromkeys(
        ("make_match_reference", "match_reference", "verbose_allclose", "verbose_allequal"),
        "lambda *given, **named: None",
    ),
}
"""What kernelbot's `utils` has that a reference may import: the judge compares in its own way."""


class ForeignError(ValueError):
    """A problem that cannot be read, or that cannot be judged. The message names the reason."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A problem in KernelBench's form."""

    name: str
    path: str
    """Its name with an absolute path, which loads it from any folder."""
    source: str


def is_foreign(name: str) -> bool:
    """Whether a name begins with one of `FORMATS` and a colon."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in FORMATS


def convert(name: str) -> Converted:
    """Reads the problem that a name such as `sol:PATH` means.

    Raises:
        ForeignError: in one line, if it cannot be read or judged.
    """
    kind, _, text = name.partition(":")
    path = Path(text)
    try:
        title, source = _kernelbot(path) if kind == "kernelbot" else _definition(path, kind)
    except ForeignError as error:
        raise ForeignError(" ".join(f"{name}: {error}".split())) from error
    return Converted(title, f"{kind}:{path.resolve()}", source)


def _definition(path: Path, kind: str) -> tuple[str, str]:
    """Name and source of a definition with its workloads."""
    file = path / "definition.json" if path.is_dir() else path
    definition = _json(_text(file), file.name)
    try:
        title = str(definition["name"])
        axes, inputs = dict(definition["axes"]), dict(definition["inputs"])
        outputs, reference = dict(definition["outputs"]), str(definition["reference"])
    except (KeyError, TypeError, ValueError) as error:
        raise ForeignError(f"{file.name} lacks axes, inputs, outputs, name or reference") from error
    entry = definition.get("custom_inputs_entrypoint")
    tree = _tree(reference, "its reference")
    arguments = _function(tree, "run", "its reference")
    _refuse_clashes(tree, [*axes, *inputs], allowed=[entry])
    for each in (*axes, *inputs, *outputs):
        if not each.isidentifier() or keyword.iskeyword(each):
            raise ForeignError(f"{each!r} is not a name in Python")
    tensors = {
        name: spec for name, spec in (inputs | outputs).items() if spec.get("shape") is not None
    }
    for each, spec in tensors.items():
        if unknown := [axis for axis in spec["shape"] if axis not in axes]:
            raise ForeignError(f"{each} has the axis {unknown[0]!r}, which is not defined")
        if _dtype(spec) not in _BYTES:
            raise ForeignError(f"{each} is {spec.get('dtype')}, which cannot be judged")

    usable, refused = list[dict[str, Any]](), ""
    for workload in _workloads(file):
        try:
            usable.append(_constants(axes, inputs, workload, entry))
        except ForeignError as error:
            refused = refused or str(error)
    if not usable:
        raise ForeignError(refused or "it has no workload")
    sizes = [sum(_size(spec, axes, each) for spec in tensors.values()) for each in usable]
    fitting = [n for n, size in enumerate(sizes) if size <= MODERATE[1]]
    if not fitting:
        raise ForeignError(f"each workload takes more than {MODERATE[1] >> 30} GiB")
    timed = next(
        (n for n in fitting if sizes[n] >= MODERATE[0]), max(fitting, key=lambda n: sizes[n])
    )
    main = usable[timed]

    if entry:
        sized = ", ".join(f"{name!r}: {name}" for name in (*axes, *_scalars(inputs)))
        _function(tree, str(entry), "its reference")
        get_inputs = [
            f"    made = make_custom_inputs({{{sized}}}, torch.get_default_device())",
            f"    return [made[name] for name in {list(inputs)!r}]",
        ]
    else:
        drawn = [_drawn(name, spec) for name, spec in inputs.items()]
        get_inputs = ["    return [", *(f"        {each}," for each in drawn), "    ]"]
    named = set(arguments) == set(inputs)
    passed = ", ".join(f"{each}={each}" if named else each for each in inputs)
    adapter = _adapter(axes, inputs, outputs)
    statement = [
        f"{definition.get('description') or title}",
        "",
        f"Takes {_listed(inputs)}.",
        f"Returns {_listed(outputs)}.",
    ]
    if adapter:
        statement += [
            f"Instead of ModelNew a submission may define the function "
            f"run({', '.join((*inputs, *outputs))}), which writes to the last "
            f"{len(outputs)}: they are allocated for it."
        ]
    source = [
        reference.strip("\n"),
        "",
        "",
        "import torch",
        "",
        *([f"make_custom_inputs = {entry}"] if entry else []),
        *_assignments(axes, main),
        *_cases(main, [each for n, each in enumerate(usable) if n in fitting and n != timed]),
        *([f"ADAPTER = {adapter!r}"] if adapter else []),
        "",
        "",
        *_MODEL.format(arguments=", ".join(inputs), call=f"run({passed})").split("\n"),
        *get_inputs,
    ]
    return title, _source(statement, source, FORMATS[kind])


_MODEL = """\
class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {call}


def get_init_inputs():
    return []


def get_inputs():"""


def _workloads(file: Path) -> list[dict[str, Any]]:
    """The workloads of a definition; one without any is judged if its axes are constant."""
    places = [file.with_name("workload.jsonl"), file.with_suffix(".jsonl")]
    parts = list(file.resolve().parts)
    if "definitions" in parts:
        at = len(parts) - 1 - parts[::-1].index("definitions")
        parts[at] = "workloads"
        places.append(Path(*parts).with_suffix(".jsonl"))
    found = next((each for each in places if each.is_file()), None)
    if found is None:
        raise ForeignError(f"no workloads at {' or '.join(map(str, places))}")
    lines = _text(found).splitlines()
    read = [
        _json(line, f"{found.name} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    return [each.get("workload") or each for each in read]


def _constants(
    axes: Mapping[str, Any], inputs: Mapping[str, Any], workload: Mapping[str, Any], entry: object
) -> dict[str, Any]:
    """Values of variable axes and of scalar inputs in a workload."""
    given, sources = workload.get("axes") or {}, workload.get("inputs") or {}
    values = dict[str, Any]()
    for name, axis in axes.items():
        if axis.get("type") == "var":
            if type(given.get(name)) is not int:
                raise ForeignError(f"a workload gives no whole number for the axis {name}")
            values[name] = given[name]
    for name, spec in inputs.items():
        source = sources.get(name) or {}
        kind = source.get("type", "random")
        if kind == "safetensors":
            raise ForeignError(
                f"input {name} comes from the file {source.get('path')}, and a problem holds none"
            )
        if kind == "custom" and not entry:
            raise ForeignError(
                f"input {name} is custom, but the definition has no custom_inputs_entrypoint"
            )
        if kind == "scalar" and type(source.get("value")) in (int, float, bool):
            values[name] = source["value"]
        elif kind == "scalar" or (spec.get("shape") is None and kind != "custom"):
            raise ForeignError(f"input {name} is a scalar without a value in the workload")
        elif kind not in ("random", "custom"):
            raise ForeignError(f"input {name} is of the unknown type {kind!r}")
    return values


def _assignments(axes: Mapping[str, Any], main: Mapping[str, Any]) -> list[str]:
    """Axes and scalars as module constants, each after those that it is computed from."""
    lines = [f"{name} = {axis['value']!r}" for name, axis in axes.items() if _is_const(axis)]
    lines += [f"{name} = {value!r}" for name, value in main.items()]
    left = {name: _expression(name, axis) for name, axis in axes.items() if _is_expr(axis)}
    while left:
        ready = [name for name, tree in left.items() if not _names(tree) & left.keys()]
        if not ready:
            raise ForeignError(f"the axes {', '.join(left)} are defined by each other")
        lines += [f"{name} = int({ast.unparse(left.pop(name))})" for name in ready]
    return lines


def _is_const(axis: Mapping[str, Any]) -> bool:
    return axis.get("type") == "const" and type(axis.get("value")) is int


def _is_expr(axis: Mapping[str, Any]) -> bool:
    return axis.get("type") == "expr"


def _names(tree: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


def _expression(name: str, axis: Mapping[str, Any]) -> ast.expr:
    allowed = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Name | ast.Constant
    try:
        tree = ast.parse(str(axis.get("expression")), mode="eval").body
    except UNREADABLE as error:
        raise ForeignError(f"the expression of the axis {name} does not parse") from error
    if not all(isinstance(each, allowed | ast.expr_context) for each in ast.walk(tree)):
        raise ForeignError(f"the expression of the axis {name} is not arithmetic")
    return tree


def _values(axes: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, int]:
    """The length of each axis."""
    known = dict[str, Any]()
    try:
        for line in _assignments(axes, constants):
            name, _, text = line.partition(" = ")
            known[name] = eval(text, {"__builtins__": {"int": int}}, known)
    except (ArithmeticError, NameError, TypeError) as error:
        raise ForeignError(f"the axis {name} cannot be computed: {error}") from error
    if missing := [name for name in axes if name not in known]:
        raise ForeignError(f"the axis {missing[0]} is neither const, var nor expr")
    return known


def _size(spec: Mapping[str, Any], axes: Mapping[str, Any], constants: Mapping[str, Any]) -> int:
    known = _values(axes, constants)
    return math.prod(known[axis] for axis in spec["shape"]) * _BYTES[_dtype(spec)]


def _dtype(spec: Mapping[str, Any]) -> str:
    return _OTHER_NAMES.get(spec.get("dtype", ""), spec.get("dtype", ""))


def _scalars(inputs: Mapping[str, Any]) -> list[str]:
    return [name for name, spec in inputs.items() if spec.get("shape") is None]


def _drawn(name: str, spec: Mapping[str, Any]) -> str:
    """An expression for an input: a scalar's constant, or normal or whole random numbers."""
    if spec.get("shape") is None:
        return name
    shape, dtype = f"({''.join(f'{axis}, ' for axis in spec['shape'])})", _dtype(spec)
    if dtype in _FLOATS or dtype.startswith("float8"):
        return f"torch.randn({shape}).to(torch.{dtype})"
    low, high = {"bool": (0, 2), "uint8": (0, 256)}.get(dtype, (-128, 128))
    return f"torch.randint({low}, {high}, {shape}).to(torch.{dtype})"


def _listed(tensors: Mapping[str, Any]) -> str:
    """Tensors as `x (rows, columns) float16`."""
    return "; ".join(
        f"{name}, a number" if spec.get("shape") is None
        else f"{name} ({', '.join(spec['shape'])}) {_dtype(spec)}"
        for name, spec in tensors.items()
    )  # fmt: skip


def _adapter(axes: Mapping[str, Any], inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
    """The class around a function that writes to its last arguments.

    It is empty if an output is a number, or its shape does not follow from those of the inputs.
    """
    known = {name: str(axis["value"]) for name, axis in axes.items() if _is_const(axis)}
    tensors = [name for name, spec in inputs.items() if spec.get("shape") is not None]
    for name in tensors:
        for at, axis in enumerate(inputs[name]["shape"]):
            known.setdefault(axis, f"{name}.shape[{at}]")
    if not tensors or _scalars(outputs) or set(outputs) & set(inputs):
        return ""
    wanted = {axis for spec in outputs.values() for axis in spec["shape"]}
    if not wanted <= known.keys():
        return ""
    lines = ["import torch", "", "", "class ModelNew(torch.nn.Module):"]
    lines += [f"    def forward(self, {', '.join(inputs)}):"]
    for name, spec in outputs.items():
        shape = "".join(f"{known[axis]}, " for axis in spec["shape"])
        kind = f"dtype=torch.{_dtype(spec)}, device={tensors[0]}.device"
        lines += [f"        {name} = torch.empty(({shape}), {kind})"]
    lines += [f"        run({', '.join((*inputs, *outputs))})"]
    return "\n".join([*lines, f"        return {', '.join(outputs)}", ""])


def _kernelbot(folder: Path) -> tuple[str, str]:
    """Name and source of a kernelbot task."""
    task = _task(_text(folder / "task.yml"))
    if task.get("lang", "py") != "py" or task.get("multi_gpu", "false") == "true":
        raise ForeignError("only tasks in Python for one GPU can be judged")
    tests, benchmarks = task.get("tests") or [], task.get("benchmarks") or []
    if not tests and not benchmarks:
        raise ForeignError("task.yml has neither tests nor benchmarks")
    reference = _text(folder / "reference.py")
    tree = _tree(reference, "reference.py")
    _function(tree, "ref_kernel", "reference.py")
    generated = _function(tree, "generate_input", "reference.py")
    check = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    check = [each for each in check if each.name == "check_implementation"]
    if check and not _names(check[0]) & {"ref_kernel", "match_reference"}:
        raise ForeignError(
            "check_implementation does not compare with ref_kernel: several answers are right"
        )
    main, *others = [*benchmarks, *tests]
    _refuse_clashes(tree, main, allowed=[])
    if wrong := [each for each in (main, *others) if each.keys() != main.keys()]:
        raise ForeignError(f"{wrong[0]} in task.yml has other names than {main}")
    if unknown := main.keys() - set(generated):
        raise ForeignError(f"generate_input takes no {', '.join(sorted(unknown))}")
    sizes = {name: value for name, value in main.items() if name != "seed"}
    without_seed = [{name: each[name] for name in sizes} for each in (*tests, *benchmarks[1:])]
    given = [f"{name}={name}" for name in sizes]
    given += ["seed=int(torch.randint(2**31, ()))"] if "seed" in main else []
    adapter = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, data):\n        return custom_kernel(data)\n"
    )
    source = [
        "import contextlib",
        "",
        "import torch",
        "",
        "DEVICE = torch.get_default_device().type",
        "",
        _embedded(reference, tree, folder).strip("\n"),
        "",
        "",
        *(f"{name} = {value!r}" for name, value in sizes.items()),
        *_cases(sizes, without_seed),
        f"ADAPTER = {adapter!r}",
        "",
        "",
        *_MODEL.format(arguments="data", call="ref_kernel(data)").split("\n"),
        f"    return [generate_input({', '.join(given)})]",
    ]
    statement = [
        str(task.get("description") or folder.name).strip(),
        "",
        "`forward` takes one argument, `data`, as `generate_input` returns it.",
        "Instead of ModelNew a submission may define the function custom_kernel(data).",
    ]
    return folder.resolve().name, _source(statement, source, FORMATS["kernelbot"])


def _embedded(reference: str, tree: ast.Module, folder: Path) -> str:
    """The reference without its imports of `task` and `utils`, on the judge's device."""
    lines = reference.encode().split(b"\n")
    for node in sorted(
        (
            each
            for each in ast.walk(tree)
            if isinstance(each, ast.Constant) and each.value == "cuda"
        ),
        key=lambda each: (each.lineno, each.col_offset),
        reverse=True,
    ):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + b"DEVICE" + line[node.end_col_offset :]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in ("task", "utils"):
            names = [alias.name for alias in node.names]
            if node.module == "utils" and (unknown := set(names) - _STAND_INS.keys()):
                raise ForeignError(f"reference.py imports {min(unknown)} from utils: unknown here")
            file = folder / "task.py"
            text = (
                "\n".join(f"{name} = {_STAND_INS[name]}" for name in names)
                if node.module == "utils"
                else _text(file)
                if file.is_file()
                else "\n".join(f"{name} = object" for name in names)
            )
            lines[node.lineno - 1 : node.end_lineno] = [
                text.encode(), *[b""] * ((node.end_lineno or node.lineno) - node.lineno),
            ]  # fmt: skip
    return b"\n".join(lines).decode()


def _task(text: str) -> dict[str, Any]:
    """The part of YAML that tasks use: plain values, text after `|`, lists of `{...}` on lines.

    Raises:
        ForeignError: with the line, for any other value of a list.
    """
    task, key, folded = dict[str, Any](), "", False
    for number, line in enumerate(text.splitlines(), 1):
        top = re.fullmatch(r"(\w+):\s*(.*?)\s*", line)
        if top:
            key, value = top[1], re.sub(r"\s+#.*", "", top[2])
            folded = value[:1] in ("|", ">")
            task[key] = "" if folded else value.strip("\"'").lower() if value else []
        elif folded:
            task[key] += line[2:].rstrip() + "\n"
        elif key in ("tests", "benchmarks") and line.strip() and line.lstrip()[0] != "#":
            task[key].append(_flow(line, number))
    return task


def _flow(line: str, number: int) -> dict[str, Any]:
    item = re.fullmatch(r"\s*-\s*(\{.*\})\s*(?:#.*)?", line)
    words = {"true": "True", "false": "False", "null": "None"}
    parts = re.split(r"(\"[^\"]*\"|'[^']*')", item[1] if item else "")
    for at in range(0, len(parts), 2):  # the others are quoted
        bare = re.sub(r"\b([A-Za-z_]\w*)(\s*:)", r'"\1"\2', parts[at])
        parts[at] = re.sub(r"\b(true|false|null)\b", lambda word: words[word[0]], bare)
    try:
        value = ast.literal_eval("".join(parts))
    except UNREADABLE:
        value = None
    if not isinstance(value, dict) or not all(
        isinstance(each, str) and each.isidentifier() for each in value
    ):
        raise ForeignError(
            f'task.yml line {number}: only items such as - {{"size": 64, "seed": 1}} are read'
        )
    return value


def _cases(main: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """`CASES`: what differs from `main`, in distinct cases."""
    cases = dict[str, dict[str, Any]]()
    for each in others:
        changed = {name: value for name, value in each.items() if value != main[name]}
        if changed and changed not in cases.values() and len(cases) < CASES:
            parts = [f"{name}_{value}" for name, value in changed.items()]
            known = re.sub(r"\W+", "_", "_".join(parts))[:60]
            cases[known if known not in cases else f"{known}_{len(cases)}"] = changed
    return ["", f"CASES = {cases!r}"]


def _refuse_clashes(tree: ast.Module, names: Iterable[str], allowed: Iterable[object]) -> None:
    """Refuses a reference whose classes or functions have names that the problem needs."""
    bound = {
        each.name
        for each in tree.body
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    bound |= {
        (alias.asname or alias.name).split(".")[0]
        for each in tree.body
        if isinstance(each, ast.Import | ast.ImportFrom)
        for alias in each.names
    }
    bound |= {assigned(each)[0] for each in tree.body} & {*_OURS}
    for each in sorted(bound & {*_OURS, *names} - {*allowed}):
        raise ForeignError(f"its reference defines {each}, a name that the problem needs")


def _function(tree: ast.Module, name: str, place: str) -> list[str]:
    """The names of a top-level function's parameters."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            every = node.args
            return [each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    raise ForeignError(f"{place} does not define {name}")


def _source(statement: list[str], lines: list[str], origin: str) -> str:
    """The problem's file."""
    text = "\n".join([*statement, "", f"Differs from the problem of {origin} in its form only."])
    return "\n".join([_docstring(text), "", *lines, ""])


def _docstring(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}\n"""'


def _tree(code: str, place: str) -> ast.Module:
    try:
        return parse(code)
    except UNREADABLE as error:
        raise ForeignError(f"{place} does not parse: {error}") from error


def _json(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ForeignError(f"{place} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ForeignError(f"{place} is not a JSON object")
    return value


def _text(path: Path) -> str:
    try:
        return text_of(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ForeignError(f"cannot read {path}: {error}") from error
