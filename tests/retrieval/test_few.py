"""The fixed examples: legal, right where this machine can tell, and of no use as answers to our own
problems.
"""

from pathlib import Path

import pytest

from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.lint.examine import screen
from kevin_env.pools.local import LocalPool
from kevin_env.problem import data_folder, list_problems, parse_problem
from kevin_env.retrieval.operations import near_copies, operations
from kevin_env.rules import check_rules

FOLDERS = sorted(
    path.parent for path in (data_folder("prompts") / "examples" / "few").glob("*/reference.py")
)


def kernels(*languages: str) -> list:
    return [
        pytest.param(each / f"{name}.py", id=f"{each.name}.{name}")
        for each in FOLDERS
        for name in languages
    ]


def test_they_obey_the_rules() -> None:
    kernels = [folder / f"{name}.py" for folder in FOLDERS for name in ("cpp", "cuda", "triton")]
    assert len(kernels) >= 6
    found = {path: check_rules(path.read_text(), "kernel") for path in kernels}
    assert {path: each for path, each in found.items() if each is not None} == {}


@pytest.mark.full
@pytest.mark.parametrize("kernel", kernels("cpp", "triton"))
def test_it_is_right_on_a_cpu(kernel: Path, untimed_judge: Judge) -> None:
    problem = parse_problem(kernel.parent / "reference.py")
    assert (
        screen(untimed_judge, problem, kernel.read_text(), Options(device="cpu", rules="kernel"))
        is None
    )


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", kernels("cuda", "triton"))
def test_it_is_right_on_a_gpu(kernel: Path, pool: LocalPool) -> None:
    problem = parse_problem(kernel.parent / "reference.py")
    outcome = (
        pool.submit(
            problem, Submission(code=kernel.read_text()), Options(device="cuda", rules="kernel")
        )
        .result()
        .outcome
    )
    assert outcome.category == "correct", outcome


def test_they_answer_none_of_our_problems() -> None:
    ours = {problem.id: operations(problem.source) for problem in list_problems()}
    answered = [
        (folder.name, id)
        for folder in FOLDERS
        for id, each in ours.items()
        if near_copies(each, operations((folder / "reference.py").read_text()))
    ]
    assert answered == []
