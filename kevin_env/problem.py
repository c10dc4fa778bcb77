"""Problems: their files, names and sources. The code of a problem is only parsed here, not run.

A problem is a Python file with KernelBench's contract (`Model`, `get_inputs`, `get_init_inputs`,
shapes as module constants). Optional additions are a docstring that states the task, `CASES`,
`HIDDEN`, `BASELINE`, `START`, `ADAPTER`, `TOLERANCE`, `PRECISION`, `INTEGERS`, `DISTRIBUTIONS` and
`TAGS`.
Only the judge executes it.
"""

import ast
import difflib
import functools
import hashlib
import os
import re
from importlib import resources
from importlib.util import decode_source
from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import Field

from kevin_env import foreign, kernelbench
from kevin_env.outcome import Frozen, printable
from kevin_env.parsing import assigned, parse, tree_of

Dtype = Literal["float32", "float16", "bfloat16"]
"""Types of floating-point inputs and weights that a problem can be judged in."""
_FILE = re.compile(r"(?P<number>\d+)_(?P<name>.+)\.py")


class ProblemError(ValueError):
    """A problem that is unknown or unreadable, or whose reference fails."""


class KernelFile(Frozen):
    """A file that defines `ModelNew`, as text, so that a remote judge needs no file."""

    name: str = Field(max_length=100)
    """The first line of its docstring, else the file's name without suffix."""
    code: str

    @classmethod
    def read(cls, path: Path) -> "KernelFile":
        """Reads a file.

        Raises:
            ProblemError: if it cannot be read, does not parse, or defines no `ModelNew`.
        """
        try:
            code = decode_source(path.read_bytes())
            tree = parse(code, str(path))
        except (OSError, SyntaxError, ValueError) as error:
            raise ProblemError(f"cannot read kernel {path}: {error}") from error
        if "ModelNew" not in {each.name for each in tree.body if isinstance(each, ast.ClassDef)}:
            raise ProblemError(f"kernel {path} does not define ModelNew")
        said = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
        return cls(name=(said or path.stem)[:100], code=code)


Baseline = Literal["eager", "compile"] | KernelFile
"""What a speedup is relative to: the reference, or a kernel."""


class Form(Protocol):
    """What is judged of a problem."""

    @property
    def dtype(self) -> Dtype | None:
        """As of `Problem`."""
        ...

    @property
    def backward(self) -> bool:
        """As of `Problem`."""
        ...


class Choice(Form, Protocol):
    """What is judged of a problem, and what a speedup is relative to: settings or options."""

    @property
    def baseline(self) -> Literal["auto"] | Baseline:
        """As of `baseline_of`."""
        ...


class Problem(Frozen):
    """A task: its ID, its source, and values parsed from the source."""

    id: str
    source: str
    level: int | None = None
    """1 to 10 for shipped problems, 1 to 3 for KernelBench's; None if the folder of the file has no
    level.
    """
    number: int | None = None
    name: str
    path: str = ""
    """Of its file; of a problem in another form the name that loads it, such as `sol:PATH`."""
    statement: str = ""
    """The module's docstring: what is computed, with formula and shapes."""
    cases: tuple[str, ...] = ("main",)
    """Names of the input cases: `main` (the module as it stands), then the keys of `CASES`."""
    hidden: tuple[str, ...] = ()
    """Names of held-out cases, the keys of `HIDDEN`: verified, and never shown to a policy."""
    tags: tuple[str, ...] = ()
    baseline: KernelFile | None = None
    """The file that `BASELINE` names, relative to the problem's."""
    adapter: str = ""
    """`ADAPTER`: a `ModelNew` around the function that a submission may define instead."""
    start: KernelFile | None = None
    """The file that `START` names: a kernel to begin with."""
    dtype: Dtype | None = None
    """What the judge converts its floating-point inputs and weights to; None: nothing."""
    backward: bool = False
    """Whether a call is a forward and a backward pass."""

    def __hash__(self) -> int:
        return hash((self.id, self.source))

    @property
    def sha256(self) -> str:
        """Hash of the source and of what is judged of it, which identifies a problem's version."""
        form = f"\n# {self.form}" if self.form else ""
        return hashlib.sha256(f"{self.source}{form}".encode()).hexdigest()

    @property
    def form(self) -> str:
        """What is judged, in words for an error; empty for the problem as its file has it."""
        parts = f"in {self.dtype}" if self.dtype else "", "with backward" if self.backward else ""
        return " ".join(filter(None, parts))

    def judged_as(self, form: Form) -> Self:
        """The problem as these options have it judged."""
        return self.model_copy(update={"dtype": form.dtype, "backward": form.backward})


_DIFFERS = re.compile(r"^Differs from .*?(\n\n|\Z)", re.MULTILINE | re.DOTALL)
"""The part of a problem's docstring that names its origin."""
_FORMATTING = re.compile(r"[ \t]*#[ \t]*fmt:[ \t]*(?:skip|off|on)[ \t]*$")
"""A mark for the formatter."""
_FOR_THE_JUDGE = frozenset({
    "CASES", "HIDDEN", "BASELINE", "START", "TAGS", "ADAPTER",
    "TOLERANCE", "PRECISION", "INTEGERS", "DISTRIBUTIONS",
})  # fmt: skip
"""Constants that the task describes in words, or not at all."""


def baseline_of(choice: Choice, problem: Problem, on_gpu: bool) -> Baseline:
    """The baseline that settings or options mean.

    `auto` is the problem's own on a GPU if it has one, and is judged as its file has it.
    """
    if choice.baseline != "auto":
        return choice.baseline
    as_its_file = not problem.judged_as(choice).form
    return (problem.baseline if on_gpu and as_its_file else None) or "eager"


def baseline_name(baseline: Baseline) -> str:
    """The name in prompts and feedback."""
    if isinstance(baseline, KernelFile):
        return " ".join(printable(baseline.name).split())
    return {"eager": "PyTorch eager", "compile": "torch.compile"}[baseline]


def shown_statement(problem: Problem) -> str:
    """What a policy reads of a problem's docstring: all but where the problem comes from."""
    return _DIFFERS.sub("", problem.statement).strip()


def shown_source(problem: Problem, to_model: bool = False) -> str:
    """What a policy reads of a problem's source: no docstring, judge's constants or their comments.

    With `to_model` it ends after the class `Model`, as in the prompts of the paper.
    """
    body, lines = tree_of(problem.source).body, problem.source.split("\n")
    hidden = [node for node in body if assigned(node)[0] in _FOR_THE_JUDGE]
    hidden += body[:1] if problem.statement else []
    removed = set[int]()
    for node in hidden:
        start = node.lineno
        while start > 1 and lines[start - 2].startswith("#"):
            start -= 1
        removed.update(range(start, (node.end_lineno or node.lineno) + 1))
    removed |= {number for number, line in enumerate(lines, 1) if _FORMATTING.fullmatch(line)}
    if to_model:
        ends = [
            node.end_lineno
            for node in body
            if isinstance(node, ast.ClassDef) and node.name == "Model"
        ]
        lines = lines[: ends[-1]] if ends else lines
    shown = (line for number, line in enumerate(lines, 1) if number not in removed)
    kept = "\n".join(_FORMATTING.sub("", line) for line in shown)
    return re.sub(r"\n{4,}", "\n\n\n", kept)


def data_folder(name: str) -> Path:
    """The folder `prompts` or `problems`: of KEVIN_ENV_<NAME>, the wheel, or the source checkout.

    Raises:
        ProblemError: if there is none.
    """
    override = os.environ.get(f"KEVIN_ENV_{name.upper()}")
    places = (Path(override),) if override else _shipped(name)
    for place in places:
        if place.is_dir():
            return place
    raise ProblemError(
        f"no folder {name!r} at {' or '.join(map(str, places))}; reinstall kevin-env"
    )


@functools.cache
def _shipped(name: str) -> tuple[Path, Path]:
    package = Path(str(resources.files("kevin_env")))
    return package / "_data" / name, package.parent / name


def load_problem(name: str) -> Problem:
    """A problem by ID (`L1_23_Softmax`, `kernelbench:level1/23`) or path to a file.

    `sol:PATH`, `flashinfer:PATH` and `kernelbot:PATH` are files of others: see `foreign`.

    Raises:
        ProblemError: if there is no such problem, with the nearest IDs, or it cannot be judged.
    """
    if name.startswith(kernelbench.PREFIX):
        problems = load_kernelbench(name)
        if len(problems) != 1:
            raise ProblemError(
                f"{name!r} means {len(problems)} problems; "
                f"write {kernelbench.PREFIX}level1/23 for one"
            )
        return problems[0]
    if foreign.is_foreign(name):
        return _load_foreign(name)
    if name.endswith(".py") or os.sep in name:
        return parse_problem(Path(name))
    path = problem_paths().get(name)
    if path is None:
        raise ProblemError(_unknown(name))
    return parse_problem(path, id=name)


def _load_foreign(name: str) -> Problem:
    try:
        title, path, source = foreign.convert(name)
    except foreign.ForeignError as error:
        raise ProblemError(str(error)) from error
    problem = _problem(source, Path(name), name, None)
    return problem.model_copy(update={"name": title, "path": path})


def load_kernelbench(name: str) -> list[Problem]:
    """The KernelBench problems of a name: `kernelbench:`, `kernelbench:level1`, or one problem.

    Raises:
        ProblemError: if there is none, or KernelBench is not available.
    """
    try:
        rows = kernelbench.entries(name)
    except kernelbench.KernelBenchError as error:
        raise ProblemError(str(error)) from error
    return [
        _problem(each.source, Path(each.path or f"{each.stem}.py"), each.id, each.level)
        for each in rows
    ]


def list_problems(level: int | None = None) -> list[Problem]:
    """The shipped problems, optionally of one level, by level and number."""
    return [
        parse_problem(path, id=id)
        for id, path in problem_paths().items()
        if level is None or path.parent.name == f"level{level}"
    ]


@functools.cache
def problem_paths() -> dict[str, Path]:
    """IDs and files of the shipped problems, by level and number."""
    files = data_folder("problems").glob("level*/*.py")
    numbered = ((*_numbers(path)[:2], path) for path in files)
    known = sorted(each for each in numbered if None not in each)
    return {f"L{level}_{path.stem}": path for level, _, path in known}


def parse_problem(path: Path, id: str | None = None) -> Problem:
    """Reads and parses one problem file.

    Raises:
        ProblemError: if it cannot be read, does not parse, or lacks one of the three names of the
            contract.
    """
    try:
        source = decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ProblemError(f"cannot read problem {path}: {error}") from error
    level, _, _ = _numbers(path)
    id = id or (f"L{level}_{path.stem}" if level is not None else path.stem)
    return _problem(source, path, id, level)


def _problem(source: str, path: Path, id: str, level: int | None) -> Problem:
    """Parses a problem's source. `path` is for errors, and stored only if the file exists."""
    try:
        tree = parse(source, str(path))
    except SyntaxError as error:
        raise ProblemError(
            f"problem {path} line {error.lineno or 1} does not parse: {error.msg}"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(
            f"problem {path} does not parse: {str(error) or 'it is nested too deeply'}"
        ) from error
    _require_contract(tree, path)
    _, number, title = _numbers(path)
    cases = ("main", *_names(tree, "CASES", path))
    hidden = _names(tree, "HIDDEN", path)
    for name in (*cases, *hidden):
        if (*cases, *hidden).count(name) > 1:  # `main` is the constants as they are
            raise ProblemError(f"problem {path}: case {name} already exists; rename it")
    return Problem(
        id=id,
        source=source,
        level=level,
        number=number,
        name=title,
        path=str(path.resolve()) if path.exists() else "",
        statement=ast.get_docstring(tree) or "",
        cases=cases,
        hidden=hidden,
        tags=_names(tree, "TAGS", path),
        adapter=_text(tree, "ADAPTER", path),
        baseline=_named_file(tree, "BASELINE", path),
        start=_named_file(tree, "START", path),
    )


def _numbers(path: Path) -> tuple[int | None, int | None, str]:
    file = _FILE.fullmatch(path.name)
    folder = re.fullmatch(r"level(\d+)", path.resolve().parent.name)
    if file is None:
        return None, None, path.stem
    level = int(folder.group(1)) if folder else None
    return level, int(file.group("number")), file.group("name")


def _require_contract(tree: ast.Module, path: Path) -> None:
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in defined]
    if missing:
        raise ProblemError(f"problem {path} does not define {', '.join(missing)}")


def _value(tree: ast.Module, name: str) -> ast.expr | None:
    """What a module-level constant is set to. The file is read without running it."""
    found = (value for node in tree.body for target, value in [assigned(node)] if target == name)
    return next(found, None)


def _names(tree: ast.Module, name: str, path: Path) -> tuple[str, ...]:
    """The keys of a literal dict, or for TAGS the elements of a literal tuple or list."""
    if (value := _value(tree, name)) is None:
        return ()
    items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [None])
    values = [each.value for each in items if isinstance(each, ast.Constant)]
    strings = tuple(each for each in values if isinstance(each, str))
    if len(strings) < len(items) or isinstance(value, ast.Dict) is (name == "TAGS"):
        kind = "tuple of strings" if name == "TAGS" else "dict with string keys"
        raise ProblemError(f"problem {path}: {name} must be a literal {kind}")
    return strings


def _text(tree: ast.Module, name: str, path: Path) -> str:
    """The value of a string literal; empty if there is none."""
    if (value := _value(tree, name)) is None:
        return ""
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value):
        raise ProblemError(f"problem {path}: {name} must be a string literal that is not empty")
    return value.value


def _named_file(tree: ast.Module, constant: str, path: Path) -> KernelFile | None:
    """The file that a module-level constant names, relative to the problem's."""
    name = _text(tree, constant, path)
    return KernelFile.read(path.parent / name) if name else None


def _unknown(name: str) -> str:
    levels = {id.partition("_")[0] for id in problem_paths()}
    if name in ("train", "held_out", *levels) or name.startswith("kevin-bench-"):
        level = f" --level {name[1:]}" * (name in levels)
        return f"{name} is a set of problems: give one that `kevin-env problems{level}` lists"
    near = [id for id in problem_paths() if id.startswith(f"{name}_")]
    near = near or difflib.get_close_matches(name, problem_paths(), n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(near)}?" if near else "; `kevin-env problems` lists them"
    return f"unknown problem {name!r}{hint}"
