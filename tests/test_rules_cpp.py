import pytest
from rules_corpus import HEAD
from rules_cpp import COMPUTING, OWN

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules
from kevin_env.rules.cpp import operations

_MODEL = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return mine.f(x)\n"


def _checked(source: str):
    return check_rules(f"{HEAD}mine = load_inline(name='mine', cpp_sources={source!r}, functions=['f'])\n{_MODEL}")


@pytest.mark.parametrize("name", COMPUTING)
def test_what_computes_in_cpp_is_found(name):
    found = _checked(COMPUTING[name])
    assert isinstance(found, RulesViolation) and found.kind == "torch_compute", found


@pytest.mark.parametrize("name", OWN)
def test_arithmetic_on_what_is_no_tensor_passes(name):
    assert _checked(OWN[name]) is None


def test_an_operator_is_named():
    assert operations(["at::Tensor f(at::Tensor x, double s) { float y = 2; y *= s; return s * x; }"]) == ["operator*"]


@pytest.mark.parametrize(
    "body", ["x*" * 30_000, "((((x)+(x))+(x))" * 5_000, "auto a = x * " * 5_000, "x.view(" * 10_000]
)
def test_operators_that_are_many_are_read_once(body):
    assert "operator+" in operations([f"at::Tensor f(at::Tensor x) {{ x + 1; {body} }}"])
