"""Submissions made from public kernels, as folders for `rules_agreement.py --sets`.

From a checkout of kernelbench.com: solutions whose reviewers wrote `clean` or `reward_hack`, as
`clean` and `hacks`. From folders of a library: each function or `autograd.Function` that launches a
Triton kernel, as the model's `forward`. Sources are copied, so keep OUT out of a repository.

    python benchmarks/labelled.py OUT --kernelbench-com CHECKOUT \\
        --library liger=CHECKOUT/src/liger_kernel/ops tritonbench=CHECKOUT/data/TritonBench_G_v1
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

_SETS = {"clean": "clean", "reward_hack": "hacks"}
_ENTRY_POINTS = ("custom_kernel", "kernel_function")
"""Entry points that launch kernels, of gpu-mode and of KernelAgent."""
_MODEL = """
import torch.nn as nn
class ModelNew(nn.Module):
    def forward(self, *args):
        return {}(*args)
"""


def reviewed(checkout: Path) -> Iterator[tuple[str, str, str]]:
    """Set, name and code of each reviewed solution that is published."""
    files = [*checkout.glob("public/**/*solution.py.txt")]
    solutions = {re.split(r"[._]solution\.py", file.name)[0]: file for file in files}
    for file in sorted(checkout.glob("benchmarks/*/results/annotations/*.yaml")):
        label = re.search(r"^verdict: *(\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if label and label[1] in _SETS and file.stem in solutions:
            text = solutions[file.stem].read_text(encoding="utf-8", errors="replace")
            yield _SETS[label[1]], file.stem, _in_our_form(text)


def _in_our_form(text: str) -> str:
    """The solution without the files that it loads; `step`, where it is what runs, as `forward`."""
    text = re.split(r"^# =+\n# =+ sidecar:", text, flags=re.MULTILINE)[0]
    text = re.sub(r"\bModel\b", "ModelNew", text)
    if re.search(r"^    def step\(self", text, re.MULTILINE):
        text = re.sub(r"\bforward\(", "unused_forward(", text)
        text = re.sub(r"((?:^    def |\.))step\(", r"\1forward(", text, flags=re.MULTILINE)
    return text


def wrapped(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and code of a submission for each function or class that launches a kernel."""
    for file in sorted(folder.rglob("*.py")):
        try:
            text, tree = _whole(file, {file})
        except SyntaxError:
            continue
        name = str(file.relative_to(folder).with_suffix("")).replace("/", "-")
        for call in _calls(tree):
            yield f"{name}-{call.partition('.')[0]}", text + _MODEL.format(call)


def _whole(file: Path, seen: set[Path]) -> tuple[str, ast.Module]:
    """A file, after the files of its folder that it imports from and without its tests."""
    text = re.split(r"^#{60,}$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
    tree, lines, before = ast.parse(text), text.split("\n"), list[str]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            source = file.with_name(f"{(node.module or '').rpartition('.')[2]}.py")
            if node.module == "__future__" or source.is_file():
                for number in range(node.lineno, (node.end_lineno or 0) + 1):
                    lines[number - 1] = ""
            if source.is_file() and source not in seen:
                seen.add(source)
                before.append(_whole(source, seen)[0])
    return "\n".join([*before, *lines]), tree


def _calls(tree: ast.Module) -> list[str]:
    """What to call: the classes for autograd if there are any, else functions that launch."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    kernels = {node.name for node in functions if "jit" in ast.dump(ast.List(node.decorator_list))}
    if names := [node.name for node in classes if "Function" in ast.dump(ast.List(node.bases))]:
        return [f"{name}.apply" for name in names]
    return [
        node.name
        for node in functions
        if kernels
        and not node.name.startswith("test")
        and (node.name in _ENTRY_POINTS or kernels & _subscripted(node))
    ]


def _subscripted(function: ast.FunctionDef) -> set[str]:
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Subscript)]
    return {getattr(node.value, "id", "") for node in nodes}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--kernelbench-com", type=Path, metavar="CHECKOUT")
    parser.add_argument("--library", nargs="+", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    submissions = list(reviewed(options.kernelbench_com)) if options.kernelbench_com else []
    for each in options.library:
        name, _, folder = each.partition("=")
        submissions += [(name, stem, code) for stem, code in wrapped(Path(folder))]
    for name, stem, code in submissions:
        (options.out / name).mkdir(parents=True, exist_ok=True)
        (options.out / name / f"{stem}.py").write_text(code, encoding="utf-8")
    for name in dict.fromkeys(name for name, _, _ in submissions):
        print(f"{len(list((options.out / name).iterdir()))} files in {options.out / name}")


if __name__ == "__main__":
    main()
