"""The fixed examples: legal, right where this machine can tell, and of no use as answers to our own
problems.
"""

from pathlib import Path

import pytest

from kevin_env.judge import Options, Submission
from kevin_env.judge.bench import Bench
from kevin_env.judge.lint.examine import screen
from kevin_env.judge.pool import LocalPool
from kevin_env.problem import data_folder, list_problems, parse_problem
from kevin_env.retrieval.operations import near_copies, operations
from kevin_env.rules import check_rules

FOLDERS = sorted(
    path.parent for path in (data_folder("prompts") / "examples" / "few").glob("*/reference.py")
)
LANGUAGES = ("cpp", "cuda", "triton")


def kernels(*languages: str) -> list:
    return [
        pytest.param(each / f"{name}.py", id=f"{each.name}.{name}")
        for each in FOLDERS
        for name in languages
    ]


@pytest.mark.parametrize("kernel", kernels(*LANGUAGES))
def test_it_obeys_the_rules(kernel: Path) -> None:
    assert check_rules(kernel.read_text(), "kernel") is None


@pytest.mark.full
@pytest.mark.parametrize("kernel", kernels("cpp", "triton"))
def test_it_is_right_on_a_cpu(kernel: Path, bench: Bench) -> None:
    problem = parse_problem(kernel.parent / "reference.py")
    assert screen(bench, problem, kernel.read_text(), Options(device="cpu", rules="kernel")) is None


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


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_answers_none_of_our_problems(folder: Path) -> None:
    own = operations((folder / "reference.py").read_text())
    assert not [
        problem.id for problem in list_problems() if near_copies(operations(problem.source), own)
    ]
