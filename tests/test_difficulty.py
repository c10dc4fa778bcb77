"""The difficulty that ships is what its script makes of the results of others and of our references
as they are.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from episodes import SOURCE

from kevin_env.difficulty import Measurements, by_difficulty, measured
from kevin_env.problem import Problem, ProblemError, list_problems, parse_problem
from kevin_env.selection import NEAR_COPIES

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PROBLEMS = list_problems()
TAGS = {problem.id: problem.tags for problem in PROBLEMS}


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """`benchmarks/difficulty.py`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import difficulty  # pyright: ignore[reportMissingImports]

        yield difficulty


@pytest.fixture(scope="module")
def shipped() -> Measurements:
    return Measurements.model_validate_json((ROOT / "problems" / "difficulty.json").read_bytes())


@pytest.fixture(scope="module")
def counted(script: ModuleType) -> dict[str, object]:
    """Every reference run once in its case `cpu`."""
    return {problem.id: script.count(problem) for problem in PROBLEMS}


def test_every_problem_was_measured_and_nothing_else(shipped: Measurements) -> None:
    assert set(shipped.problems) == {problem.id for problem in PROBLEMS}
    assert {source.file for source in shipped.sources} >= {"lint.h200.json", "difficulty.py"}
    assert all(measured(problem) == shipped.problems[problem.id] for problem in PROBLEMS)


@pytest.mark.full
def test_the_file_is_of_the_results_and_references_as_they_are(
    script, counted, shipped: Measurements
) -> None:
    """When this fails, run `python benchmarks/difficulty.py --json problems/difficulty.json`."""
    sources, rows = script.read_device("h200")
    known = {source.file: source for source in shipped.sources}
    assert all(known[source.file] == source for source in sources)
    if metadata.version("torch") != known["difficulty.py"].versions["torch"]:
        pytest.skip("another version of torch may dispatch other operators")
    assert script.measure(counted, rows, script.PEAKS["h200"], TAGS) == shipped.problems


def test_the_roofline_is_below_every_time(shipped: Measurements) -> None:
    for id, each in shipped.problems.items():
        assert 0 < each.roofline_seconds < each.seconds, id
        assert 0 <= each.difficulty <= 1, id


@pytest.mark.full
def test_what_dispatches_the_same_operators_is_a_near_copy(counted) -> None:
    alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for id, each in counted.items():
        alike[each.operators].add(id)
    for ids in alike.values():
        assert len(ids) == 1 or any(ids <= set(group) for group in NEAR_COPIES), ids


HARD = (
    *("L9_4_RadixSort", "L9_9_TopK", "L7_1_FFT_1D", "L7_2_FFT_2D", "L3_101_FlashAttentionCausal"),
    *("L1_1_Square_matrix_multiplication_", "L1_63_conv_standard_2D__square_input__square_kernel"),
)
EASY = (
    *("L1_26_GELU_", "L1_40_LayerNorm", "L1_42_Max_Pooling_2D", "L3_104_RotaryEmbedding"),
    *("L3_108_FusedAdamW", "L9_7_Gather", "L6_7_BoxFilter", "L10_11_CRC32_Batch"),
)


def test_what_a_library_does_best_is_harder_than_a_loop(shipped: Measurements) -> None:
    difficulty = {id: each.difficulty for id, each in shipped.problems.items()}
    assert min(difficulty[id] for id in HARD) > max(difficulty[id] for id in EASY)
    vector, matrix = "L1_4_Matrix_vector_multiplication_", "L1_2_Standard_matrix_multiplication_"
    assert difficulty[vector] < difficulty[matrix]


def test_the_order_is_by_difficulty_and_the_unknown_come_last() -> None:
    unknown = [Problem(id=id, name=id, source="") for id in ("y", "x")]
    ordered = by_difficulty([*unknown, *PROBLEMS])
    assert ordered[-2:] == unknown
    figures = [each.difficulty for problem in ordered[:-2] if (each := measured(problem))]
    assert figures == sorted(figures) and len(figures) == len(PROBLEMS)


def test_a_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    path = tmp_path / "level1" / "1_P.py"
    path.write_text(SOURCE)
    assert measured(parse_problem(path)) is None
    other = tmp_path / "other" / "level1"
    other.mkdir(parents=True)
    (other / "1_P.py").write_text(SOURCE)
    (tmp_path / "other" / "difficulty.json").write_text(json.dumps({"problems": {}}))
    with pytest.raises(
        ProblemError, match=r"cannot read .*difficulty\.json.*regenerate it with benchmarks"
    ) as caught:
        measured(parse_problem(other / "1_P.py"))
    assert "\n" not in str(caught.value)
