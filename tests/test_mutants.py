"""Broken kernels are caught, honest ones are not: a small part of what `benchmarks/mutants.py`
measures.
"""

import ast
import re
import time
from collections.abc import Callable

import pytest
import torch
from corpus import FOLDER
from mutation import operators, rounding
from mutation.code import CodeAnswer, code_mutants
from mutation.findings import Judged, examine, examine_honest, tallies, total
from mutation.jury import Mutant, gather_evidence, judge
from mutation.samples import Sample, Sampler
from mutation.tokens import token_mutants

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


@pytest.mark.full
def test_every_family_and_the_usual_faults_are_among_them(judged: list[Judged]) -> None:
    found = {
        f"{each.mutant.family}/{each.mutant.kind}"
        for each in judged
        if each.status in ("caught", "structure")
    }
    assert found >= {
        "code/operator", "rewrite/bound", "rewrite/operator", "rewrite/function", "rewrite/skipped epsilon",
        "value/dropped tail", "value/wrong tile", "value/shift", "value/race", "value/one wrong element",
        "value/not finite", "value/missing from a reduction", "precision/tf32 operands", "precision/bf16 inputs",
        "precision/fp16 accumulators", "precision/fast approximation",
    }  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_honest_arithmetic_is_accepted(name: str) -> None:
    found = examine_honest(small(name))
    assert "rewritten as a kernel" in {each.mutant.name for each in found}
    for each in found:
        assert each.verdict.status == "accepted", each
        assert each.evidence is not None and each.evidence.rejected == 0, each


def test_another_order_of_summation_is_another_result() -> None:
    names = {
        each.mutant.name for each in examine_honest(small("L1_1_Square_matrix_multiplication_"))
    }
    assert names >= {
        "running float32 sums",
        "float64 accumulators",
        "products of three TF32 products",
    }


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


def test_a_mutant_that_does_not_end_is_stopped(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutation.jury.SECONDS", 0.2)

    def endless(sample: Sample) -> None:
        while True:
            time.sleep(0.01)

    verdict = judge(Mutant("code", "any", "any", endless), sampler.screened())
    assert verdict.status == "crashed" and "Hung" in verdict.where


def test_changed_code_is_given_the_weights_of_the_reference() -> None:
    problem = small("L1_40_LayerNorm")
    assert (
        judge(
            Mutant("code", "none", "none", CodeAnswer(problem)), Sampler(problem).screened()
        ).status
        == "accepted"
    )


def test_mutants_of_code_differ_from_each_other_and_from_the_reference() -> None:
    problem = load_problem("L5_2_Stencil_2D_Heat")
    names = [mutant.name for mutant in code_mutants(problem)]
    assert len(names) == len(set(names)) >= 40
    assert "0.25 -> 0.251" in names
    assert any("u[:-2, 1:-1] -> u[:-1, 1:-1]" in name for name in names)


@pytest.mark.parametrize(
    ("code", "kind", "changed"),
    [
        ("x + self.eps", "skipped epsilon", "x"),
        ("x + 1e-05", "skipped epsilon", "x"),
        ("a - b", "swapped operands", "b - a"),
        ("a < b", "comparison", "a <= b"),
        ("x.sum(dim=1)", "axis", "x.sum(dim=2)"),
        ("torch.sum(x, 1)", "axis", "torch.sum(x, 0)"),
        ("x.sqrt()", "dropped call", "x"),
        ("torch.exp(x)", "function", "torch.expm1(x)"),
        ("x.sum(dim=1, keepdim=True)", "dropped argument", "x.sum(dim=1)"),
        ("x[1:n]", "bound", "x[1:n - 1]"),
        ("range(0, n, 2)", "bound", "range(1, n, 2)"),
        ("F.conv2d(x, w, padding=1)", "padding or stride", "F.conv2d(x, w, padding=0)"),
        ("x[i]", "wrong index", "x[i + 1]"),
        ("x * y", "dropped term", "y"),
    ],
)
def test_expressions_are_changed(code: str, kind: str, changed: str) -> None:
    node = ast.parse(code, mode="eval").body
    found = [
        (of, ast.unparse(ast.fix_missing_locations(other)))
        for inner in ast.walk(node)
        for of, other in operators.changes(inner)
    ]
    assert (kind, changed) in found


@pytest.mark.parametrize(
    ("value", "changed"), [(0.25, 0.251), (1e-5, 1.01e-5), (-2.0, -2.01), (0.7071, 0.7081)]
)
def test_a_constant_changes_in_its_third_digit(value: float, changed: float) -> None:
    assert operators.third_digit(value) == changed


@pytest.mark.parametrize(
    ("cheap", "exact", "least", "most"),
    [
        (rounding.tf32, lambda x: x, 1e-4, 2**-11),
        (rounding.bf16, lambda x: x, 1e-3, 2**-8),
        (rounding.exp_by(2), torch.exp, 1e-3, 1e-2),
        (rounding.exp_by(3), torch.exp, 1e-4, 1e-3),
        (rounding.rsqrt_by(1), torch.rsqrt, 1e-3, 2e-3),
        (rounding.rsqrt_by(2), torch.rsqrt, 1e-6, 5e-6),
        (rounding.erf_cheap, torch.erf, 1e-6, 3e-4),
        (rounding.exp_base_two, torch.exp, 0, 2e-6),
    ],
)
def test_cheap_functions_are_as_cheap_as_they_say(
    cheap: rounding.Rounding, exact: rounding.Rounding, least: float, most: float
) -> None:
    x = torch.rand(100_000, generator=torch.Generator().manual_seed(0)) * 8 + 0.1
    off = float(((cheap(x).double() - exact(x.double())) / exact(x.double())).abs().max())
    assert least <= off <= most


@pytest.mark.parametrize("name", ["softmax_ctypes", "cross_entropy_ctypes", "softmax_triton"])
def test_kernels_in_other_languages_are_changed_within_the_kernel(name: str) -> None:
    code = (FOLDER / "honest" / f"{name}.py").read_text()
    found = list(token_mutants(code))
    assert len(found) >= 10 and len({mutant.code for mutant in found}) == len(found)
    for mutant in found:
        lines = zip(code.split("\n"), mutant.code.split("\n"), strict=True)
        assert [i for i, (a, b) in enumerate(lines, start=1) if a != b] == [mutant.line]
