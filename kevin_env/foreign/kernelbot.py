"""Tasks of kernelbot: `task.yml` with sizes, `reference.py`, and perhaps `task.py` with types."""

import ast
import re
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
from kevin_env.parsing import UNREADABLE, assigned

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
_ADAPTER = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, data):
        return custom_kernel({data})
"""


def read(folder: Path) -> tuple[str, str]:
    """Name and text of a task as a problem; ForeignError if it cannot be one."""
    task = _task(read_text(folder / "task.yml"))
    language, several = (str(task.get(key, "")).lower() for key in ("lang", "multi_gpu"))
    if language not in ("", "py") or several == "true":
        raise ForeignError("only tasks in Python for one GPU can be judged")
    reference = read_text(folder / "reference.py")
    tree = tree_of_reference(reference)
    _refuse_other_answers(tree)
    tests, benchmarks = task.get("tests") or [], task.get("benchmarks") or []
    if not tests and not benchmarks:
        raise ForeignError("task.yml has neither tests nor benchmarks")
    main, *others = [*benchmarks[:1], *tests, *benchmarks[1:]]
    if wrong := [each for each in others if each.keys() != main.keys()]:
        raise ForeignError(f"{wrong[0]} in task.yml has other names than {main}")
    refuse_clashes(tree, main)
    parameters_of(tree, "ref_kernel")
    if unknown := main.keys() - set(parameters_of(tree, "generate_input")):
        raise ForeignError(f"generate_input takes no {', '.join(sorted(unknown))}")

    sizes = {name: value for name, value in main.items() if name != "seed"}
    given = [f"{name}={name}" for name in sizes]
    given += ["seed=int(torch.randint(2**31, ()))"] if "seed" in main else []
    begin = "import contextlib\n\nimport torch\n\nDEVICE = torch.get_default_device().type\n\n"
    return folder.resolve().name, in_form(
        f"{str(task.get('description') or folder.resolve().name).strip()}\n\n"
        "`forward` takes one argument, `data`, as `generate_input` returns it.\n"
        "Instead of ModelNew a submission may define the function custom_kernel(data).",
        begin + _embedded(reference, tree, folder),
        [f"{name} = {value!r}" for name, value in sizes.items()],
        cases_of(sizes, ({name: each[name] for name in sizes} for each in others)),
        _ADAPTER.format(data=_with_new_buffers(tree)),
        "data",
        "ref_kernel(data)",
        [f"    return [generate_input({', '.join(given)})]"],
    )


def _refuse_other_answers(tree: ast.Module) -> None:
    for node in tree.body:
        name = node.name if isinstance(node, ast.FunctionDef) else assigned(node)[0]
        compares = names_in(node) & {"ref_kernel", "match_reference", "make_match_reference"}
        if name == "check_implementation" and not compares:
            raise ForeignError(
                "check_implementation does not compare with ref_kernel: several answers are right"
            )


def _with_new_buffers(tree: ast.Module) -> str:
    """`data`, with new tensors for those that `ref_kernel` overwrites or does not use.

    They are there to be written to, and no call of a submission may change its inputs.
    """
    functions = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    reference = next(each for each in functions if each.name == "ref_kernel")
    unpacked, written, read = list[str](), set[str](), set[str]()
    for node in ast.walk(reference):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=items)], value=ast.Name(id="data")):
                unpacked = [ast.unparse(each) for each in items]
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=part)]):
                if ast.unparse(part) in ("...", ":"):
                    written.add(name)
            case ast.Attribute(value=ast.Name(id=name), attr="copy_"):
                written.add(name)
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
    buffers = {each for each in unpacked if each in written or each not in read}
    if not buffers or not all(each.isidentifier() for each in unpacked):
        return "data"
    parts = [
        f"torch.empty_like({each}) if isinstance({each}, torch.Tensor) else {each}"
        if name in buffers
        else each
        for each, name in ((f"data[{at}]", name) for at, name in enumerate(unpacked))
    ]
    return f"({', '.join(parts)},)"


def _embedded(reference: str, tree: ast.Module, folder: Path) -> str:
    """The reference without imports of `task` and `utils`, on the judge's device."""
    lines = reference.encode().split(b"\n")
    constants = (each for each in ast.walk(tree) if isinstance(each, ast.Constant))
    devices = [each for each in constants if each.value == "cuda"]
    for node in sorted(devices, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + b"DEVICE" + line[node.end_col_offset :]
    for node in reversed(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module in ("task", "utils"):
            names = [each.name for each in node.names]
            lines[node.lineno - 1 : node.end_lineno] = [
                _instead_of(node.module, names, folder).encode()
            ]
    return b"\n".join(lines).decode()


def _instead_of(module: str, names: list[str], folder: Path) -> str:
    """Code that binds what a reference imports from `task` or `utils`."""
    if module == "task":
        file = folder / "task.py"
        return read_text(file) if file.is_file() else f"{' = '.join(names)} = object"
    if unknown := set(names) - _STAND_INS.keys():
        raise ForeignError(f"reference.py imports {min(unknown)} from utils: it is not known here")
    return "\n".join(f"{name} = {_STAND_INS[name]}" for name in names)


def _task(text: str) -> dict[str, Any]:
    """The part of YAML that tasks use: plain values, text after `|`, lists of `{...}` on lines.

    Raises:
        ForeignError: with the line, for any other value of a list.
    """
    task, key, is_text = dict[str, Any](), "", False
    for number, line in enumerate(text.splitlines(), 1):
        if top := re.fullmatch(r"(\w+):\s*(.*?)\s*", line):
            key, value = top[1], re.sub(r"\s+#.*", "", top[2])
            is_text = value[:1] in ("|", ">") and bool(value)
            task[key] = "" if is_text else value.strip("\"'") if value else []
        elif is_text:
            task[key] += line[2:].rstrip() + "\n"
        elif key in ("tests", "benchmarks") and line.strip() and line.lstrip()[0] != "#":
            task[key].append(_sizes(line, number))
    return task


def _sizes(line: str, number: int) -> dict[str, Any]:
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
    if isinstance(value, dict) and all(str(each).isidentifier() for each in value):
        return value
    raise ForeignError(
        f'task.yml line {number}: only items such as - {{"size": 64, "seed": 1}} are read'
    )
