"""Broken kernels are caught, honest ones are not: a small part of what `benchmarks/mutants.py`
measures.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kevin_env.problem import Problem, load_problem

pytestmark = pytest.mark.full
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALL: dict[str, dict[str, dict[str, int]]] = {
    "L1_1_Square_matrix_multiplication_": {"cpu": {"N": 150}, "odd": {"N": 67}},
    "L1_23_Softmax": {"cpu": {"batch_size": 50, "dim": 300}, "odd": {"batch_size": 7, "dim": 129}},
    "L1_40_LayerNorm": {"cpu": {"batch_size": 9, "dim1": 8, "dim2": 12, "features": 10}},
    "L3_107_CrossEntropyWithGradient": {"cpu": {"num_tokens": 20, "vocab_size": 500}},
    "L6_2_Histogram_256": {"cpu": {"num_pixels": 3_000_000}, "odd": {"num_pixels": 10_007}},
}
MOST = 10


@pytest.fixture
def findings() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        from mutation import findings  # pyright: ignore[reportMissingImports]

        yield findings


def small(name: str) -> Problem:
    """A problem of ours in small cases."""
    problem = load_problem(name)
    source = re.sub(
        r"^CASES.*?^}", f"CASES = {SMALL[name]}", problem.source, flags=re.DOTALL | re.MULTILINE
    )
    return problem.model_copy(update={"source": source, "cases": ("main", *SMALL[name])})


def test_broken_kernels_are_caught(findings: ModuleType) -> None:
    judged = [each for name in SMALL for each in findings.examine(small(name), MOST)]
    survivors = [
        (each.mutant.kind, each.mutant.name, each.evidence)
        for each in judged
        if each.status == "survived"
    ]
    parts = findings.tallies(judged)
    narrow = findings.total([part for name, part in parts.items() if name.startswith("precision/")])
    everything = findings.total(parts)
    assert everything.wrong >= 250 and narrow.wrong >= 50
    assert (everything.rate or 0) >= 0.99, survivors
    assert (narrow.rate or 0) >= 0.95, survivors


def test_honest_arithmetic_is_accepted(findings: ModuleType) -> None:
    judged = {name: findings.examine_honest(small(name)) for name in SMALL}
    missing = [
        name
        for name, found in judged.items()
        if "rewritten as a kernel" not in {each.mutant.name for each in found}
    ]
    refused = [
        (name, each)
        for name, found in judged.items()
        for each in found
        if each.verdict.status != "accepted" or each.evidence is None or each.evidence.rejected
    ]
    assert (missing, refused) == ([], [])
