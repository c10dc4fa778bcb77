import gc
import random
import sys
import weakref

import pytest
import torch
from arithmetic import Replaced, rounded_operands, running, summed_by
from comparison import wrong as fault_of
from rounding import ROUNDINGS

from kevin_env.judge.inputs import variation
from kevin_env.judge.inputs.cases import distributions_of
from kevin_env.judge.inputs.process_state import reference_code
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.inputs.source import apply_overrides
from kevin_env.problem import Problem, ProblemError

CPU = torch.device("cpu")
SOURCE = """
import torch
from torch import nn
rows = 4
dim: int = 8
cells = rows * dim
CASES = {"large": {"rows": 6, "dim": 10}}

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.linear = nn.Linear(dim, 3)
        self.norm = nn.LayerNorm(3)
        self.register_buffer("steps", torch.zeros(1))
        self.scale = scale
    def forward(self, x, n):
        return BODY

def get_inputs():
    return [torch.rand(rows, dim), 7]
def get_init_inputs():
    return [0.5]
"""


def problem(body: str = "self.norm(self.linear(x)) * self.scale", **change: str) -> Problem:
    source = SOURCE.replace("BODY", body)
    for old, new in change.items():
        source = source.replace(f"{old} = 4", new)
    return Problem(id="p", source=source, name="p", cases=("main", "large"))


def case(
    body: str = "self.norm(self.linear(x)) * self.scale",
    name: str = "main",
    seed: int = 1,
) -> Case:
    opened = Case(problem(body), name, CPU)
    opened.draw_weights(seed)
    return opened


def weight(of: Case, name: str) -> torch.Tensor:
    return of.model.state_dict()[name]


def outputs(of: Case, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor | None]:
    expected = of.expect(*of.draw_inputs("own", 5), seed)
    return expected.output, expected.oracle


def test_a_case_overrides_constants_before_others_are_derived_from_them() -> None:
    main, large = case(), case(name="large")
    assert (main.module.cells, large.module.cells) == (32, 60)
    assert weight(large, "linear.weight").shape == (3, 10)
    assert large.draw_inputs("own", 1)[1][0].shape == (6, 10)


def test_an_override_of_an_unknown_name_is_a_problem_error() -> None:
    with pytest.raises(ProblemError, match="overrides heigth, width"):
        apply_overrides(SOURCE, {"width": 3, "heigth": 4, "rows": 1})
    with pytest.raises(ProblemError, match="overrides self"):
        apply_overrides(SOURCE, {"self": 3})  # assigned, but not at module level


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("rows = 4", "rows = 1 / 0", "the module"),
        ("return [0.5]", "raise OSError('no')", "get_init_inputs"),
        ("torch.rand(rows, dim)", "nothing", "get_inputs"),
        ("self.scale = scale", "self.scale = nothing", "Model"),
        ("BODY", "x @ x", "forward"),
    ],
)
def test_whatever_the_reference_raises_names_its_place(old: str, new: str, place: str) -> None:
    source = SOURCE.replace(old, new).replace("BODY", "x")
    with pytest.raises(ProblemError, match=f"its reference fails in {place}: "):
        broken = Case(Problem(id="p", source=source, name="p"), "main", CPU)
        broken.draw_weights(1)
        broken.expect(*broken.draw_inputs("own", 1), 1)


def test_a_seed_depends_on_the_secret_and_each_part() -> None:
    assert seed_from("ab", "main", "own", 1) == seed_from("ab", "main", "own", 1)
    others = {
        seed_from("ac", "main", "own", 1),
        seed_from("ab", "cpu", "own", 1),
        seed_from("ab", "main", "wide", 1),
        seed_from("ab", "main", "own", 2),
        seed_from("ab", "main", "own"),
    }
    assert len(others | {seed_from("ab", "main", "own", 1)}) == 6
    assert all(0 <= seed < 2**63 for seed in others)


def test_draws_depend_on_the_seed_and_nothing_else() -> None:
    first = case()
    torch.manual_seed(99)
    torch.rand(17)
    second = case()
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name])
    assert torch.equal(first.draw_inputs("wide", 4)[1][0], second.draw_inputs("wide", 4)[1][0])
    assert not torch.equal(first.draw_inputs("wide", 4)[1][0], first.draw_inputs("wide", 5)[1][0])
    assert not torch.equal(weight(first, "linear.weight"), weight(case(seed=2), "linear.weight"))


def test_distributions_are_as_described() -> None:
    source = SOURCE.replace("rows = 4", "rows = 4000").replace(
        "torch.rand(rows, dim)", "torch.randn(rows, dim)"
    )
    wide_case = Case(problem().model_copy(update={"source": source}), "main", CPU)
    drawn = {name: wide_case.draw_inputs(name, 1)[1][0] for name in distributions_of(wide_case)}
    assert abs(drawn["signed"].mean()) < 0.05 and abs(drawn["signed"].std() - 1) < 0.05
    assert drawn["wide"].min() < -1000 and drawn["wide"].max() > 1000
    first, second = wide_case.draw_inputs("wide", 1)[1][0].view(32, 1000).topk(2).values.T
    assert (first - second < 4).sum() > 8  # both count in a softmax
    assert first.max() - first.min() > 100
    assert abs(drawn["offset"].mean() - 4) < 0.05 and abs(drawn["offset"].std() - 1) < 0.05
    assert drawn["negative"].max() < -100 and drawn["negative"].min() < -1000
    assert not drawn["negative"].exp().any()
    assert distributions_of(wide_case) == ["own", "signed", "wide", "offset", "negative"]
    assert "negative" not in distributions_of(case()), "whose inputs are never negative"


@pytest.mark.parametrize(
    "body",
    [
        "setattr(self, 'h', torch.tanh(getattr(self, 'h', 0.0) / 2 + x)) or self.h",
        "(getattr(self, 'last', 0 * x), setattr(self, 'last', x))[0]",
        "x + torch.rand(1, generator="
        "self.__dict__.setdefault('own', torch.Generator().manual_seed(1)))",
    ],
    ids=["a hidden state", "the inputs before", "a generator of its own"],
)
def test_a_reference_that_keeps_state_is_refused(body: str) -> None:
    with pytest.raises(ProblemError, match="keeps state between calls"):
        assert case(body).stochastic


def test_state_on_which_no_output_depends_is_allowed() -> None:
    assert not case("setattr(self, 'calls', getattr(self, 'calls', 0) + 1) or x").stochastic


@pytest.mark.parametrize(
    ("returned", "given"),
    [
        ("[[], {'dim': 4, 'gain': 3.0}]", (4, 3.0)), ("[[4], {'gain': 3.0}]", (4, 3.0)),
        ("[[4, 3.0], {}]", (4, 3.0)), ("[4, 3.0]", (4, 3.0)), ("[[4], {'other': 3.0}]", ([4], {"other": 3.0})),
    ],
)  # fmt: skip
def test_init_inputs_may_have_keyword_arguments(returned: str, given: tuple[object, ...]) -> None:
    source = f"""
import torch
class Model(torch.nn.Module):
    def __init__(self, dim, gain=1.0):
        super().__init__()
        self.given = dim, gain
def get_inputs():
    return []
def get_init_inputs():
    return {returned}
"""
    opened = Case(Problem(id="p", source=source, name="p"), "main", CPU)
    opened.draw_weights(1)
    assert opened.model.given == given


def test_a_reference_for_another_device_says_so() -> None:
    source = problem().source.replace(
        "torch.rand(rows, dim)", "torch.rand(rows, dim, device='cuda')"
    )
    fixed = Case(problem().model_copy(update={"source": source}), "main", CPU)
    with pytest.raises(ProblemError, match="names a CUDA device; name none"):
        fixed.draw_inputs("own", 1)


def test_inputs_that_are_not_floating_stay_and_then_there_is_one_distribution() -> None:
    source = SOURCE.replace("torch.rand(rows, dim)", "torch.randint(9, (rows, dim))").replace(
        "BODY", "x"
    )
    whole = Case(Problem(id="p", source=source, name="p"), "main", CPU)
    assert torch.equal(whole.draw_inputs("own", 1)[1][0], whole.draw_inputs("wide", 1)[1][0])
    assert distributions_of(whole) == ["own"]


@pytest.mark.parametrize("named", ["('own', 'odd')", "[]", "3"])
def test_a_wrong_choice_of_distributions_is_a_problem_error(named: str) -> None:
    with pytest.raises(ProblemError, match=r"p: DISTRIBUTIONS is .*; list some of own, signed"):
        distributions_of(Case(problem(rows=f"DISTRIBUTIONS = {named}\nrows = 4"), "main", CPU))


@pytest.mark.parametrize("value", ["-1", "float('nan')", "float('inf')", "0"])
def test_a_tolerance_is_a_positive_number(value: str) -> None:
    with pytest.raises(ProblemError, match="p: TOLERANCE must be a positive, finite number"):
        Case(problem(rows=f"TOLERANCE = {value}\nrows = 4"), "main", CPU)


@pytest.mark.parametrize(("body", "error"), [("None", "no tensor"), ("{1, 2}", "of type set")])
def test_a_reference_returns_tensors(body: str, error: str) -> None:
    with pytest.raises(ProblemError, match=f"p: its reference .*{error}"):
        case(body).expect(*case(body).draw_inputs("own", 1), 1)


def test_an_output_that_needs_a_gradient_is_compared_without() -> None:
    opened = case("torch.nn.Parameter(x)")
    outputs = opened.expect(*opened.draw_inputs("own", 1), 1).output
    assert not outputs.requires_grad


@pytest.mark.parametrize("value", ["torch.tensor(1.0)", "torch.eye(4)"])
def test_whatever_a_parameter_is_made_of_it_has_to_be_read(value: str) -> None:
    opened = case()
    made = type("Model", (torch.nn.Module,), {"__init__": lambda self, _: make(self)})
    setattr(opened.module, "Model", made)  # noqa: B010

    def make(model: torch.nn.Module) -> None:
        torch.nn.Module.__init__(model)
        model.p = torch.nn.Parameter(eval(value))

    opened.draw_weights(1)
    drawn, plain = weight(opened, "p"), eval(value)
    assert drawn.shape == plain.shape and (drawn != plain).all()
    opened.draw_weights(2)
    assert not torch.equal(weight(opened, "p"), drawn)


LONG_SUM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 8192)
    def forward(self, x):
        return torch.sigmoid(self.linear(x)).sum(dim=1)

def get_inputs():
    return [torch.rand(8, 512)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("name", ROUNDINGS)
def test_weights_lean_so_that_narrow_ones_show_in_a_long_sum(name: str) -> None:
    opened = Case(Problem(id="p", source=LONG_SUM, name="p"), "main", CPU)
    opened.draw_weights(1)
    expected = opened.expect(*(given := opened.draw_inputs("own", 2)), 1)
    with Replaced(summed_by(running())):
        running_sum = opened.answer(*given, 1)
    with Replaced(rounded_operands(ROUNDINGS[name])):
        narrow = opened.answer(*given, 1)
    wrong = [
        fault_of(expected.output, got, oracle=lambda: expected.oracle, plain=expected.plain)
        for got in (running_sum, narrow)
    ]
    assert wrong[0] is None and wrong[1] is not None and wrong[1].kind == "values"


def test_weights_that_every_narrow_type_holds_are_left_as_they_are() -> None:
    ternary = torch.randint(-1, 2, (64,)).float()
    for weights in (ternary, torch.randn(64).bfloat16().float()):
        before = weights.clone()
        variation.lean(weights)
        assert torch.equal(weights, before)


def test_the_oracle_is_the_same_in_double_and_leaves_the_reference_alone() -> None:
    opened = case()
    output, oracle = outputs(opened)
    assert output.dtype == torch.float32 and oracle is not None and oracle.dtype == torch.float64
    assert torch.allclose(output.double(), oracle, atol=1e-5) and not torch.equal(
        output.double(), oracle
    )
    assert weight(opened, "linear.weight").dtype == torch.float32


@pytest.mark.parametrize(
    "body",
    ["x if x.dtype == torch.float32 else 1 / 0", "x @ torch.ones(8, 8, dtype=torch.float32)"],
)
def test_a_reference_that_insists_on_a_dtype_has_no_oracle(body: str) -> None:
    opened = case(body)
    for _ in range(2):
        output, oracle = outputs(opened)
        assert output.shape == (4, 8) and oracle is None


@pytest.mark.parametrize("place", ["forward", "double"])
def test_an_oracle_without_room_is_none(place: str) -> None:
    condition = "x.dtype == torch.float64" if place == "forward" else "False"
    body = f"self.full() if {condition} else x\n    def full(self): raise torch.OutOfMemoryError"
    body += "\n    double = full" if place == "double" else ""
    assert outputs(case(body))[1] is None


def test_the_oracle_is_made_when_it_is_first_needed_and_once_per_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, double = list[torch.nn.Module](), torch.nn.Module.double
    monkeypatch.setattr(torch.nn.Module, "double", lambda of: (made.append(of), double(of))[1])
    opened = case()
    expected = [opened.expect(*opened.draw_inputs("own", i), 1) for i in range(2)]
    assert not made
    for each in expected:
        assert each.oracle is not None and each.oracle is each.oracle
    assert len(made) == 1
    opened.draw_weights(2)
    assert outputs(opened)[1] is not None and len(made) == 2


def test_a_reference_may_write_to_its_inputs() -> None:
    opened = case("x.mul_(2)")
    skeleton, tensors = opened.draw_inputs("own", 1)
    before = tensors[0].clone()
    opened.expect(skeleton, tensors, 1)
    assert torch.equal(tensors[0], before)


def test_dropout_is_found_to_be_random_and_repeats_with_its_seed() -> None:
    opened = case("nn.functional.dropout(x, 0.5)")
    assert opened.stochastic
    (first, oracle), (again, _), (other, _) = (
        outputs(opened, 1),
        outputs(opened, 1),
        outputs(opened, 2),
    )
    assert oracle is None and torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(
    "body", ["x", "x / 0 - x / 0", "(x > 0.5, x.to(torch.float8_e4m3fn))", "torch.complex(x, x)"]
)
def test_what_is_not_random_is_not_found_to_be(body: str) -> None:
    opened = case(body)
    assert not opened.stochastic


@pytest.mark.parametrize(
    ("drawn", "random"),
    [("", False), (" + 0 * torch.rand(1)", True)],
    ids=["rounds otherwise", "draws as well"],
)
def test_a_reference_that_rounds_otherwise_each_time_is_not_random(
    drawn: str, random: bool
) -> None:
    counting = (
        "(self.__dict__.update(n=getattr(self, 'n', 0) + 1), "
        "self.linear(x) * (1 + 1e-6 * self.n))[1]"
    )
    opened = case(counting + drawn)
    assert opened.stochastic is random
    assert (outputs(opened)[1] is None) is random


def test_what_draws_python_numbers_is_random() -> None:
    assert case("x + __import__('random').random()").stochastic


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("CUBLAS_STATUS_ALLOC_FAILED"), torch.OutOfMemoryError("full")],
)
def test_a_lack_of_memory_is_no_fault_of_the_reference(error: Exception) -> None:
    with pytest.raises(torch.OutOfMemoryError), reference_code("p", "forward"):
        raise error
    with (
        pytest.raises(ProblemError, match="its reference fails in forward: ValueError"),
        reference_code("p", "forward"),
    ):
        raise ValueError("no")


def test_python_numbers_drawn_by_a_problem_follow_the_seed() -> None:
    drawing = case()
    vars(drawing.module)["get_inputs"] = lambda: [torch.full((2,), random.random())]
    one, same, other = (drawing.draw_inputs("own", seed)[1][0] for seed in (5, 5, 6))
    assert torch.equal(one, same) and not torch.equal(one, other)


def modules() -> set[str]:
    return {name for name in sys.modules if name.startswith("problem_")}


def test_nothing_of_a_reference_is_left_when_its_case_is_gone() -> None:
    before = modules()
    gc.disable()
    try:
        opened = Case(problem(rows="rows = 4; table = torch.ones(3)"), "main", CPU)
        opened.draw_weights(1)
        outputs(opened)
        table = weakref.ref(opened.module.table)
        assert sys.modules[opened.module.Model.__module__] is opened.module
        del opened
        assert table() is None and modules() == before
        with pytest.raises(ProblemError, match="undefined"):
            Case(problem(rows="rows = undefined"), "main", CPU)
        assert modules() == before
    finally:
        gc.enable()
