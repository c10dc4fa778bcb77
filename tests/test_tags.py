"""Tags of our own problems: a closed vocabulary, one family each, and nothing by hand that is
measured.
"""

import json
from pathlib import Path

from kevin_env.difficulty import BOUNDS, DTYPES, FAMILIES, TRAITS, family_of, tags_of
from kevin_env.problem import list_problems, parse_problem

PROBLEMS = list_problems()
LINT = Path(__file__).parents[1] / "benchmarks" / "results" / "lint.h200.json"


def test_every_word_means_one_thing_and_is_used() -> None:
    words = [*FAMILIES, *TRAITS, *BOUNDS, *DTYPES]
    assert len(words) == len(set(words))
    assert {tag for problem in PROBLEMS for tag in tags_of(problem)} == set(words)


def test_tags_are_one_family_then_traits_then_bound_and_dtypes() -> None:
    wrong = []
    for problem in PROBLEMS:
        tags = tags_of(problem)
        family, *traits = problem.tags
        bound, *dtypes = tags[len(problem.tags) :]
        if not (
            tags[: len(problem.tags)] == problem.tags
            and len(set(tags)) == len(tags)
            and family in FAMILIES
            and family == family_of(problem)
            and set(traits) <= set(TRAITS)
            and bound in BOUNDS
            and dtypes
            and set(dtypes) <= set(DTYPES)
        ):
            wrong.append((problem.id, tags))
    assert wrong == []


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
