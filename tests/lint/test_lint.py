"""The lint of a problem: what it finds, and that it finds nothing on a problem that is fit."""

import pytest
import torch
from comparison import wrong as fault_of
from judges import QUICK

from kevin_env.judge.api import Options, Submission
from kevin_env.judge.compare.tolerance import tolerance_of
from kevin_env.judge.inputs.cases import plan
from kevin_env.judge.inputs.distributions import DISTRIBUTIONS
from kevin_env.judge.inputs.reference import Case
from kevin_env.lint.report import Limits, LintReport
from kevin_env.lint.target import InputSet, Target
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem

GENEROUS = Limits(cpu_seconds=20, first_seconds=60)  # other tests run beside
"""For machines that have other things to do."""
FORM = """
import torch
import torch.nn as nn
{constants}
class Model(nn.Module):
    def __init__(self{parameters}):
        super(Model, self).__init__()
        {init}
    def forward(self, {names}):
        {body}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return [{initial}]
"""


def problem(body: str, inputs: str = "torch.randn(64, 32)", names: str = "x", init: str = "pass", constants: str = "",
            parameters: str = "", initial: str = "", cases: tuple[str, ...] = ("main",)) -> Problem:  # fmt: skip
    source = FORM.format(**{name: value for name, value in locals().items() if name != "cases"})
    return Problem(id="p", name="p", source=source, cases=cases)


def lint(
    pool: LocalPool, it: Problem, inputs: str = "varied", limits: Limits = GENEROUS
) -> LintReport:
    options = Options.model_validate({"device": "cpu", "inputs": inputs})
    return pool.lint(it, options, limits).result()


def messages(report: LintReport) -> list[str]:
    return [f"{finding.check}: {finding.message}" for finding in report.findings]


def test_a_problem_that_is_fit(pool: LocalPool) -> None:
    init, constants = "self.linear = nn.Linear(n, n)", "m, n = 64, 32\nCASES = {'odd': {}}"
    body = "return torch.tanh(self.linear(x)) * torch.arange(n)"
    it = problem(body, "torch.randn(m, n)", init=init, constants=constants, cases=("main", "odd"))
    report = lint(pool, it)
    assert report.ok and not report.findings
    assert (report.reference, report.accepted, report.accepted_as_shipped) == ("accepted", (), ())
    assert report.cost is not None
    assert report.cost.flops == 2 * 64 * 32 * 32
    assert report.cost.elements == 64 * 32 + 32 + (
        64 * 32 + 32
    )  # tanh, arange, and the product, which reads both
    assert report.cost.moved_bytes == 4 * (2 * 64 * 32 + 32 * 32 + 32)
    assert report.cost.peak_bytes == 4 * 64 * 32
    assert 0 < report.cost.seconds < 20


@pytest.mark.parametrize(
    ("body", "inputs", "found"),
    [
        ("return torch.arange(n) * 2.5", "3", "inputs: get_inputs returns no tensor: "),
        (
            "return x.sum() + torch.arange(n)",
            "torch.randn(0, 4)",
            "inputs: x has no elements: its shape is [0, 4]",
        ),
        ("return x[:0]", "torch.randn(4)", "outputs: no output has elements: "),
    ],
    ids=["no tensor", "no elements", "nothing comes out"],
)
def test_a_problem_of_nothing_is_not_fit(
    pool: LocalPool, body: str, inputs: str, found: str
) -> None:
    report = lint(pool, problem(body, inputs, constants="n = 32"))
    assert any(message.startswith(found) for message in messages(report)), messages(report)


CLAMPED = problem("return x.clamp(-100, 100)", "torch.randn(64, 32)")
"""What it is given comes out, but for the distribution `wide`."""


def test_inputs_as_shipped_may_let_pass_what_further_distributions_reject(pool: LocalPool) -> None:
    report = lint(pool, CLAMPED)
    assert report.ok and report.accepted == ()
    assert report.accepted_as_shipped == ("input 0",)
    shipped = lint(pool, CLAMPED, inputs="shipped")
    assert messages(shipped) == ["answers: a verdict accepts input 0"]


@pytest.mark.parametrize(
    ("body", "inputs", "accepted"),
    [
        ("return torch.softmax(x, 1) * 0", "torch.randn(64, 32)", "zeros"),
        ("return torch.where(x > 1e9, 0., 1.)", "torch.randn(64, 32)", "ones"),
        (
            "return x.mean(0, keepdim=True).expand(64, 32)",
            "torch.randn(64, 32)",
            "the mean of axis 0",
        ),
        ("return torch.cat((x, x))", "torch.randn(64, 32)", "the output's first half twice"),
        (
            "return torch.cat((x, 0 * x))",
            "torch.randn(64, 32)",
            "the output's first half and zeros",
        ),
        ("return x + 0", "torch.randn(64, 32)", "input 0"),
        (
            "return x.clamp(0, 0) + torch.arange(32.)",
            "torch.randn(64, 32)",
            "another seed's output",
        ),
    ],
)
def test_a_trivial_answer_that_passes_is_named(
    pool: LocalPool, body: str, inputs: str, accepted: str
) -> None:
    report = lint(pool, problem(body, inputs))
    assert accepted in report.accepted
    assert f"answers: a verdict accepts {accepted}" in messages(report)


def test_an_output_beside_others_may_not_be_trivial_either(pool: LocalPool) -> None:
    report = lint(pool, problem("return {'y': torch.tanh(x), 'carry': torch.zeros(3, 3)}"))
    assert "zeros as output ['carry']" in report.accepted
    assert not any("['y']" in each for each in report.accepted)


def test_further_cases_count_where_the_timed_one_does_not_tell(pool: LocalPool) -> None:
    """In the timed case the input of one column is its own sum; in another case it is not."""
    it = problem("return x.cumsum(1)", "torch.randn(64, n)", constants="n = 1\nCASES = {'odd': {'n': 7}}",
                 cases=("main", "odd"))  # fmt: skip
    assert "input 0" not in lint(pool, it).accepted


def test_what_does_not_matter_is_named(pool: LocalPool) -> None:
    init = "self.linear = nn.Linear(32, 8); self.spare = nn.Parameter(torch.randn(5))"
    inputs = "torch.randn(64, 32), torch.randn(64, 1), torch.arange(9)"
    report = lint(
        pool, problem("return self.linear(x) + 0 * y + 1e-12 * z.sum()", inputs, "x, y, z", init)
    )
    named = [
        message.split(" does not matter")[0]
        for message in messages(report)
        if message.startswith("inputs")
    ]
    assert named == ["inputs: spare", "inputs: y", "inputs: z"]


def test_running_statistics_are_state_and_a_bias_before_a_normalisation_does_not_matter(
    pool: LocalPool,
) -> None:
    init = "self.conv = nn.Conv2d(3, 4, 3); self.norm = nn.BatchNorm2d(4)"
    report = lint(
        pool, problem("return self.norm(self.conv(x))", "torch.randn(4, 3, 9, 9)", init=init)
    )
    assert [
        finding.message.split()[0] for finding in report.findings if finding.check == "inputs"
    ] == ["conv.bias"]


@pytest.mark.parametrize(
    ("body", "check", "message"),
    [
        ("return x / 0", "reference", "NaN on its own inputs"),
        ("return nope(x)", "reference", "fails in forward: NameError"),
        (
            "return nn.functional.dropout(x, 0.5)",
            "outputs",
            "differs when the reference is run again",
        ),
        (
            "return torch.where(torch.arange(64 * 32).view(64, 32) % 32 == 0, x, 1.)",
            "outputs",
            "nearly constant: 3.",
        ),
        ("return x.add_(1)", "reference", "as its own submission: correctness/inputs_changed"),
    ],
)
def test_a_reference_or_an_output_that_is_of_no_use(
    pool: LocalPool, body: str, check: str, message: str
) -> None:
    found = [
        finding.message for finding in lint(pool, problem(body)).findings if finding.check == check
    ]
    assert any(message in each for each in found), found


def test_a_model_that_reads_what_a_case_overrides_fails_as_a_submission(pool: LocalPool) -> None:
    it = problem("return x.cumsum(1)[:, :n]", "torch.randn(64, n)", constants="n = 9\nCASES = {'odd': {'n': 17}}",
                 cases=("main", "odd"))  # fmt: skip
    report = lint(pool, it)
    assert report.reference == "correctness/shape"
    assert any("(odd/" in message for message in messages(report))


def test_memory_and_time_are_held_against_their_limits(pool: LocalPool) -> None:
    report = lint(
        pool, problem("return torch.tanh(x)"), limits=Limits(cpu_bytes=8191, cpu_seconds=1e-9)
    )
    assert [finding.check for finding in report.findings] == ["memory", "time"]
    assert not lint(
        pool,
        problem("return torch.tanh(x)"),
        limits=Limits(cpu_bytes=8192, cpu_seconds=20, first_seconds=60),
    ).findings


@pytest.mark.full
def test_a_reference_that_loops_for_hours_is_given_up_and_nothing_else_is_looked_at(
    pool: LocalPool,
) -> None:
    body = "return x * sum(range(10**12))"  # never leaves C, and never lets go of the interpreter
    report = lint(pool, problem(body), limits=Limits(first_seconds=0.3))
    assert (report.reference, report.accepted, report.cost) == ("not judged", (), None)
    (finding,) = report.findings
    assert finding.check == "time" and "nothing else was checked" in finding.message
    assert not lint(pool, problem("return torch.tanh(x)")).findings


def test_time_without_the_processor_is_hardly_counted(pool: LocalPool) -> None:
    body = "called.append(0); time.sleep(1.2 if len(called) == 1 else 0.02); return torch.tanh(x)"
    waits = problem(body, constants="import time; called = []")  # as it would on a busy machine
    report = lint(pool, waits, limits=Limits(cpu_seconds=0.015, first_seconds=1.0))
    assert not report.findings and report.cost and report.cost.seconds < 0.015


@pytest.mark.full
def test_waiting_for_another_reference_is_not_a_problems_own_time(pool: LocalPool) -> None:
    slow = problem("import time; time.sleep(0.2); return torch.tanh(x)")
    quick, limits = problem("return torch.tanh(x)"), Limits(cpu_seconds=20, first_seconds=0.8)
    patient, options = GENEROUS, Options(device="cpu")
    asked = [
        pool.lint(slow, options, patient),
        pool.lint(quick, options, limits),
        pool.lint(quick, options, patient),
    ]
    assert [[finding.check for finding in each.result(120).findings] for each in asked] == [
        [],
        [],
        [],
    ]


def test_integer_inputs_stay_integer_and_large_ones_are_made_on_the_device() -> None:
    it = problem(
        "return x[i]", "torch.rand(4), torch.randint(0, 4, (9,)), torch.arange(3)", "x, i, j"
    )
    huge = problem(
        "return x[i]",
        "torch.rand(1 << 40), torch.randint(0, 4, (1 << 40,)), torch.arange(3)",
        "x, i, j",
    )
    for distribution in ("own", "wide"):
        _, tensors = Case(huge, "main", torch.device("meta")).draw_inputs(distribution, 1)
        assert [str(t.dtype) for t in tensors] == ["torch.float32", "torch.int64", "torch.int64"]
        assert {t.device.type for t in tensors} == {"meta"}
    drawn = [Case(it, "main", torch.device("cpu")).draw_inputs(d, 1)[1] for d in ("own", "wide")]
    assert torch.equal(drawn[0][1], drawn[1][1]) and not torch.equal(drawn[0][0], drawn[1][0])


def test_shipped_inputs_are_all_that_is_drawn_and_told(pool: LocalPool) -> None:
    same = Submission(
        code="import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    secrets = map("{:032x}".format, range(99))  # a quick judge screens on two of the distributions
    secret = next(
        each for each in secrets if "wide" in plan(list(DISTRIBUTIONS), True, each, "main", QUICK)
    )
    all_of_them = len(DISTRIBUTIONS)
    for inputs, category, told in (
        ("shipped", "correct", 1),
        ("varied", "correctness", all_of_them),
    ):
        options = Options.model_validate({"device": "cpu", "inputs": inputs, "secret": secret})
        facts = pool.describe(CLAMPED, options).result()
        assert len(facts.distributions) == told and facts.distributions[0].startswith("own")
        assert pool.submit(CLAMPED, same, options).result().outcome.category == category


def test_answers_may_be_off_by_one_accumulator_a_sum_as_in_a_verdict() -> None:
    case = Case(problem("return x.sum(1)", "torch.rand(16, 1 << 18)"), "main", torch.device("cpu"))
    case.draw_weights(1)
    drawn = InputSet.draw(case, "own", 0)
    (target,) = drawn.targets
    tight = tolerance_of(target.reference, target.oracle, 1.0, "ieee")[0].worst
    assert target.accepts(drawn.outputs[0] + 1.1 * tight) and not target.accepts(
        drawn.outputs[0] + 100 * tight
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.complex64])
def test_answers_are_compared_as_a_verdict_compares(dtype: torch.dtype) -> None:
    """Also where only one element of many is wrong, and not one of those that are looked at first."""
    generator = torch.Generator().manual_seed(3)
    parts = torch.randn(70_001, 2, generator=generator) * 100
    reference = torch.view_as_complex(parts) if dtype.is_complex else parts[:, 0].to(dtype)
    oracle = (
        None
        if dtype == torch.int32
        else reference.to(torch.complex128 if dtype.is_complex else torch.float64)
    )
    tolerance, share = tolerance_of(reference, oracle, 1.0, "ieee")
    target = Target(0, "", reference, oracle, tolerance.worst, share)
    for shift in (0, 1e-6, 1e-4, 1e-2, 1, 50):
        for index in (0, 1, 69_999):
            answer = reference.clone()
            answer[index] += int(shift) if dtype == torch.int32 else shift
            assert target.accepts(answer) == (
                fault_of(reference, answer, oracle=lambda: oracle) is None
            ), (shift, index)
    assert not target.accepts(reference[1:]) and not target.accepts(reference.to(torch.complex128))


def test_integers_that_depend_on_rounding_are_found() -> None:
    body = "torch.round(x / (x.abs().amax(1, keepdim=True) / 127)).to(torch.int8)"
    (found,) = InputSet.draw(opened(body), "own", 0).targets
    assert found.other > 0 and not found.accepts(found.reference + 1)
    (exact,) = InputSet.draw(opened("(x > 0).to(torch.int8)"), "own", 0).targets
    assert exact.other == 0
    declared = opened(body, 'INTEGERS = "rounded"')
    (target,) = InputSet.draw(declared, "own", 0).targets
    some = target.reference.clone()
    some[0, :99] += 1
    assert target.accepts(some) and not target.accepts(target.reference + 1)


def opened(body: str, constants: str = "") -> Case:
    it = problem(f"return {body}", "torch.randn(512, 4096)", constants=constants)
    case = Case(it, "main", torch.device("cpu"))
    case.draw_weights(1)
    return case
