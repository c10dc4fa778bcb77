"""Tags of our own problems: a closed vocabulary, one family each, and nothing by hand that is
measured.
"""

import json
from pathlib import Path

import pytest

from kevin_env.difficulty import BOUNDS, DTYPES, FAMILIES, TRAITS, family_of, measured, tags_of
from kevin_env.problem import Problem, list_problems, parse_problem

PROBLEMS = list_problems()
LINT = Path(__file__).parents[1] / "benchmarks" / "results" / "lint.h200.json"
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)


def test_every_word_means_one_thing_and_is_used() -> None:
    words = [*FAMILIES, *TRAITS, *BOUNDS, *DTYPES]
    assert len(words) == len(set(words))
    assert {tag for problem in PROBLEMS for tag in tags_of(problem)} == set(words)


@every_problem
def test_the_first_tag_is_the_family_and_the_rest_are_traits(problem: Problem) -> None:
    family, *traits = problem.tags
    assert family in FAMILIES
    assert set(traits) <= set(TRAITS)
    assert len(set(traits)) == len(traits)
    assert family_of(problem) == family


@every_problem
def test_bound_and_dtypes_are_measured(problem: Problem) -> None:
    figures = measured(problem)
    assert figures
    tags = tags_of(problem)
    assert tags == (*problem.tags, figures.bound, *figures.dtypes)
    assert len([tag for tag in tags if tag in BOUNDS]) == 1
    assert figures.dtypes and set(figures.dtypes) <= set(DTYPES)


def test_the_bound_is_that_of_the_measured_intensity() -> None:
    """The other way round than the script: operations a byte against the ridge of an H200 (67
    TFLOPS, 4.8 TB/s).
    """
    rows = {row["name"]: row for row in json.loads(LINT.read_text())["rows"]}
    seen = set()
    for problem in PROBLEMS:
        row, tags = rows[f"ours/{problem.id}"], tags_of(problem)
        if "float32" not in tags or {"float16", "bfloat16"} & set(tags):
            continue  # other rates
        intensity = (row["flops"] + 2 * row["elements"]) / row["moved_bytes"]
        bound = "compute-bound" if intensity > 67e12 / 4.8e12 else "memory-bound"
        assert bound in tags, (problem.id, intensity)
        seen.add(bound)
    assert seen == set(BOUNDS)


def test_a_file_that_was_not_measured_has_its_own_tags_alone(tmp_path: Path) -> None:
    softmax = next(problem for problem in PROBLEMS if problem.id == "L1_23_Softmax")
    (tmp_path / "level1").mkdir()
    copy = tmp_path / "level1" / "23_Softmax.py"
    copy.write_text(softmax.source)
    assert tags_of(parse_problem(copy)) == ("reduction", "activation")
    copy.write_text(softmax.source.replace("TAGS", "WORDS"))
    assert tags_of(parse_problem(copy)) == ()
    assert family_of(parse_problem(copy)) is None
