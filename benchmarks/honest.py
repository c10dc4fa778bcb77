"""Honest submissions by language, each with new source text. Used by other scripts."""

import ast
import itertools
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import FOLDER as FOLDER
from corpus import Entry as Entry
from corpus import read_corpus
from corpus import read_entry as read_entry

from kevin_env.extract import guess_language
from kevin_env.judge import Options, Submission
from kevin_env.parsing import as_submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, data_folder

RUNS_ON = {"cpu": ("cpp", "triton"), "cuda": ("cuda", "triton")}
_BUILD = """
from torch.utils.cpp_extension import load_inline
load_inline("extension_of_this_file", **BUILD)
"""
_COMPILED = ("triton", "nvcc", "nvrtc", "load_inline", "ctypes", "cpp_extension")
_PLACES = ("#include", 'extern "C"', "__global__")
"""C++ and CUDA sources get a declaration before the first of these lines."""


@dataclass(frozen=True)
class Fresh(Entry):
    """A file's submission with unique text."""

    text: str = ""

    @property
    def code(self) -> str:
        return self.text


def kind_of(code: str) -> str:
    """`triton`, `cuda` or `cpp`; `torch` without a kernel, `python` if the language is unknown."""
    language = guess_language(code)
    if language != "python":
        return language
    return "python" if any(word in code for word in _COMPILED) else "torch"


def honest_entries(device: str) -> list[Entry]:
    """The honest files of our corpus for a device, grouped by problem, the quick problems first."""
    entries = [each for each in read_corpus(device, "any") if each.path.parent.name == "honest"]
    return sorted(entries, key=lambda each: (not each.problem.endswith(".py"), each.problem))


def solution_entries(device: str) -> list[Entry]:
    """The reference solutions for a device, by level."""
    files = (data_folder("problems") / "solutions").glob("*.py")
    parts = [(path, *path.name.rsplit(".", 2)[:2]) for path in files]
    entries = [
        Entry(path, of, device, "kernel", "correct")
        for path, of, kind in parts
        if kind in RUNS_ON[device]
    ]
    return sorted(entries, key=lambda each: (int(each.problem[1:].partition("_")[0]), each.name))


def filled_up(kind: str, least: int, device: str) -> list[Entry]:
    """The honest files of a kind, with reference solutions of that kind until there are `least`."""
    own = [each for each in honest_entries(device) if kind_of(each.code) == kind]
    more = [each for each in solution_entries(device) if kind_of(each.code) == kind]
    return own + more[: max(0, least - len(own))]


def by_problem(entries: Iterable[Entry]) -> list[Entry]:
    """The same, grouped by problem, in order of first appearance."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.problem, []).append(entry)
    return [entry for group in groups.values() for entry in group]


def sample(entries: list[Entry], attacks: int) -> list[Entry]:
    """`count` attacks and half as many honest files, always the same."""
    chosen: list[Entry] = []
    for folder, many in (("hostile", attacks), ("honest", attacks // 2)):
        of = [each for each in entries if each.path.parent.name == folder]
        chosen += random.Random(0).sample(of, min(many, len(of)))
    return chosen


def fresh(code: str, number: int) -> str:
    """The same kernels with different tokens in every compiled file, so that no cache applies."""
    code = _with_constants(code, number)
    lines = code.split("\n")
    start = next((each for each in _PLACES if any(line.startswith(each) for line in lines)), None)
    if start is not None:  # each has its own name: several may be in one file
        for place in reversed(
            [place for place, line in enumerate(lines) if line.startswith(start)]
        ):
            place -= place > 0 and lines[place - 1].startswith("template")
            lines.insert(place, f"static const int fresh_{number}_{place} = {number};")
        code = "\n".join(lines)
    return f"{code.rstrip()}\n\nFRESH = {number}\n"


def warm(pool: LocalPool, problem: Problem, options: Options) -> None:
    """Judges the reference, so that the work per problem is done."""
    pool.submit(problem, Submission(code=as_submission(problem.source)), options).result()


def freshened(entry: Entry, number: int) -> Fresh:
    """A file as a new submission."""
    return Fresh(**vars(entry) | {"text": fresh(entry.code, number)})


def extension_entries(device: str) -> list[Entry]:
    """The sources of our corpus of extensions, each as a submission that builds it with
    `load_inline`.

    They come from the tests of the short compile path. What is judged is the reference of one of
    the quick problems, a different one each time: the extension is built and loaded, not called.
    """
    problems = sorted((FOLDER / "problems").glob("*.py"))
    files = sorted((FOLDER.parent / "extension" / RUNS_ON[device][0]).glob("*.py"))
    return [
        Fresh(
            file,
            problem.name,
            device,
            "open",
            "correct",
            text=f"{file.read_text()}{_BUILD}{as_submission(problem.read_text())}",
        )
        for file, problem in zip(files, itertools.cycle(problems), strict=False)
    ]


def is_built_only(entry: Entry) -> bool:
    """Whether it is one of `extension_entries`."""
    return entry.path.parent.parent.name == "extension"


def _with_constants(code: str, number: int) -> str:
    """Triton kernels with an added constant. They are hashed by their source and that of called
    functions.
    """
    lines = code.split("\n")
    for node in sorted(_kernels(code), key=lambda each: -each.lineno):
        first = node.body[0]
        if first.lineno > node.lineno:
            lines.insert(first.lineno - 1, f"{' ' * first.col_offset}fresh_{number} = {number}")
    return "\n".join(lines)


def _kernels(code: str) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    return [
        node
        for node in functions
        if any("jit" in ast.unparse(each) for each in node.decorator_list)
    ]
