"""Broken kernels are caught, honest ones are not: a small part of what `benchmarks/mutants.py`
measures.
"""

import re
import time
from collections.abc import Callable

import pytest
import torch
from mutation.code import CodeAnswer
from mutation.findings import Judged, examine, examine_honest, tallies, total
from mutation.jury import Mutant, gather_evidence, judge
from mutation.samples import Sample, Sampler

from kevin_env.problem import Problem, load_problem

SMALL: dict[str, dict[str, dict[str, int]]] = {
    "L1_1_Square_matrix_multiplication_": {"cpu": {"N": 150}, "odd": {"N": 67}},
    "L1_23_Softmax": {"cpu": {"batch_size": 50, "dim": 300}, "odd": {"batch_size": 7, "dim": 129}},
    "L1_40_LayerNorm": {"cpu": {"batch_size": 9, "dim1": 8, "dim2": 12, "features": 10}},
    "L3_107_CrossEntropyWithGradient": {"cpu": {"num_tokens": 20, "vocab_size": 500}},
    "L6_2_Histogram_256": {"cpu": {"num_pixels": 3_000_000}, "odd": {"num_pixels": 10_007}},
}
MOST = 10


def small(name: str) -> Problem:
    """A problem of ours in small cases."""
    problem = load_problem(name)
    source = re.sub(
        r"^CASES.*?^}", f"CASES = {SMALL[name]}", problem.source, flags=re.DOTALL | re.MULTILINE
    )
    return problem.model_copy(update={"source": source, "cases": ("main", *SMALL[name])})


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    return Sampler(small("L1_23_Softmax"))


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    return [each for name in SMALL for each in examine(small(name), MOST)]


@pytest.mark.full
def test_broken_kernels_are_caught(judged: list[Judged]) -> None:
    survivors = [
        (each.mutant.kind, each.mutant.name, each.evidence)
        for each in judged
        if each.status == "survived"
    ]
    parts = tallies(judged)
    narrow = total([part for name, part in parts.items() if name.startswith("precision/")])
    everything = total(parts)
    assert everything.wrong >= 250 and narrow.wrong >= 50
    assert (everything.rate or 0) >= 0.99, survivors
    assert (narrow.rate or 0) >= 0.95, survivors


@pytest.mark.parametrize("name", SMALL)
def test_honest_arithmetic_is_accepted(name: str) -> None:
    found = examine_honest(small(name))
    assert "rewritten as a kernel" in {each.mutant.name for each in found}
    for each in found:
        assert each.verdict.status == "accepted", each
        assert each.evidence is not None and each.evidence.rejected == 0, each


def off_in_one(x: torch.Tensor, error: float) -> torch.Tensor:
    """The tensor with one element changed; in all of them the same error would be too much on the
    whole.
    """
    x = x.clone()
    x.view(-1)[0] += error
    return x


@pytest.mark.parametrize(
    ("change", "equivalent"),
    [
        (lambda x: x, True),
        (lambda x: torch.nextafter(x, torch.zeros(())), True),
        (lambda x: off_in_one(x, 64 * torch.finfo(x.dtype).eps * float(x.std())), False),
    ],
    ids=["bitwise", "an ulp off", "within the tolerance, but not as right"],
)
def test_what_is_accepted_is_weighed(
    sampler: Sampler, change: Callable[[torch.Tensor], torch.Tensor], equivalent: bool
) -> None:
    mutant = Mutant("value", "any", "any", lambda sample: change(sample.outputs[0]))
    assert judge(mutant, sampler.screened()).status == "accepted"
    [evidence] = gather_evidence([mutant], sampler.evidence())
    assert evidence.sets >= 20 and evidence.rejected == 0
    assert evidence.equivalent == equivalent


def test_what_is_wrong_on_one_input_set_is_caught_there(sampler: Sampler) -> None:
    samples = sampler.screened()
    wrong = Mutant(
        "value", "any", "any", lambda sample: sample.outputs[0] + (sample is samples[-1])
    )
    verdict = judge(wrong, samples)
    assert (verdict.status, verdict.where) == ("caught", samples[-1].name)


def test_a_mutant_that_does_not_end_is_stopped(sampler: Sampler) -> None:
    def endless(sample: Sample) -> None:
        while True:
            time.sleep(0.01)

    verdict = judge(Mutant("code", "any", "any", endless), sampler.screened(), seconds=0.2)
    assert verdict.status == "crashed" and "Hung" in verdict.where


def test_changed_code_is_given_the_weights_of_the_reference() -> None:
    problem = small("L1_40_LayerNorm")
    assert (
        judge(
            Mutant("code", "none", "none", CodeAnswer(problem)), Sampler(problem).screened()
        ).status
        == "accepted"
    )
