"""The reference solutions: legal, for problems that exist, on every level, and right where this
machine can tell.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kevin_env.extract import guess_language
from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.judge.verdict import flag_name
from kevin_env.languages import LANGUAGES
from kevin_env.lint.examine import screen
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool
from kevin_env.problem import data_folder, load_problem, problem_paths
from kevin_env.rules import check_rules

FOLDER = data_folder("problems") / "solutions"
FILES = sorted(FOLDER.glob("*.*"))
ON_CPU = Options(device="cpu", rules="kernel")
ON_GPU = Options(device="cuda", rules="kernel")
QUICK = {
    "L1_47_Sum_reduction_over_a_dimension", "L1_95_CrossEntropyLoss", "L9_2_Reduction_Sum",
}  # fmt: skip
"""Problems whose Triton solution is tested by `make test`: Triton's interpreter takes seconds for
them, and up to a minute for others.
"""
FEW = {"L1_23_Softmax", "L3_108_FusedAdamW", "L9_5_Compact_StreamCompaction"}
"""Problems whose C++ solution is tested by `make test`: one with a reduction, one with several
outputs, one with an output whose length depends on the data.
"""


def problem_of(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]


def language_of(path: Path) -> str:
    return path.name.rsplit(".", 2)[1]


def files(*languages: str) -> list:
    return [pytest.param(path, id=path.name) for path in FILES if language_of(path) in languages]


def test_solutions_are_legal_and_answer_a_problem() -> None:
    assert [(path.name, fault) for path in FILES for fault in faults(path)] == []


def faults(path: Path) -> Iterator[str]:
    code = path.read_text()
    if found := check_rules(code, "kernel"):
        yield found.message
    if problem_of(path) not in problem_paths():
        yield "there is no such problem"
    if guess_language(code) != language_of(path):
        yield f"the code looks like {guess_language(code)}"
    idea = (ast.get_docstring(ast.parse(code)) or "").split("\n")[0]
    if not idea.endswith(".") or len(idea) <= 40:
        yield "the first line does not say what the idea is"


def test_there_are_solutions_on_every_level_and_in_every_language() -> None:
    assert all(
        path.name.endswith(tuple(f".{language}.py" for language in LANGUAGES)) for path in FILES
    )
    on_a_gpu = {problem_of(path) for path in FILES if language_of(path) != "cpp"}
    assert len(on_a_gpu) >= 24
    assert {load_problem(problem).level for problem in on_a_gpu} == set(range(1, 11))
    least = {"cpp": 10, "cuda": 12, "triton": 20}
    assert all(len(files(language)) >= count for language, count in least.items())


def check(path: Path, untimed_judge: Judge) -> None:
    """Verifies a solution as the judge does, in a candidate's process, on every input set, without
    timing it.
    """
    assert screen(untimed_judge, load_problem(problem_of(path)), path.read_text(), ON_CPU) is None


def judged_apart(params: list, few: set[str]) -> list:
    """The same, spread over the processes that run tests; all but a few by `make test-all` only."""
    found = []
    for param in params:
        full = [pytest.mark.full] * (problem_of(param.values[0]) not in few)
        marks = [pytest.mark.xdist_group(param.id), *full]
        found.append(pytest.param(*param.values, id=param.id, marks=marks))
    return found


@pytest.mark.parametrize("path", judged_apart(files("cpp"), FEW))
def test_a_cpp_solution_is_right(path: Path, untimed_judge: Judge) -> None:
    check(path, untimed_judge)


@pytest.mark.parametrize("path", judged_apart(files("triton"), QUICK))
def test_a_triton_solution_is_right_in_the_interpreter(path: Path, untimed_judge: Judge) -> None:
    check(path, untimed_judge)


@pytest.mark.full
def test_the_speed_of_an_interpreted_kernel_is_flagged_and_held_against_no_roofline(
    pool: LocalPool,
) -> None:
    code = (FOLDER / "L9_2_Reduction_Sum.triton.py").read_text()
    asked = pool.submit(load_problem("L9_2_Reduction_Sum"), Submission(code=code), ON_CPU)
    judged = asked.result()
    assert isinstance(judged.outcome, Correct) and judged.outcome.roofline is None
    assert list(map(flag_name, judged.flags)) == ["interpreted"]


@pytest.mark.gpu
@pytest.mark.parametrize("path", files("cuda", "triton"))
def test_a_solution_is_right_on_a_gpu(path: Path, pool: LocalPool) -> None:
    submission = Submission(code=path.read_text(), language=language_of(path))  # type: ignore[arg-type]
    outcome = pool.submit(load_problem(problem_of(path)), submission, ON_GPU).result().outcome
    assert outcome.category == "correct", outcome
