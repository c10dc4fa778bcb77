import ast
import subprocess
import sys

import pytest
from rules_corpus import HACKS, HEAD, HONEST
from rules_habits import CPP, HABITS

from kevin_env.outcome import CompileError, FormatError, RulesViolation
from kevin_env.problem import data_folder
from kevin_env.rules import Rules, check_rules


def _checked(code: str, mode: Rules = "kernel"):
    return check_rules(HEAD + code, mode)


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_passes(name):
    assert _checked(HONEST[name]) is None


@pytest.mark.parametrize("name", HABITS)
def test_habits_of_honest_code_pass(name):
    assert _checked(HABITS[name]) is None


@pytest.mark.parametrize("name", CPP)
def test_honest_sources_in_cpp_pass(name):
    extension = f"mine = load_inline(name='mine', cpp_sources={CPP[name]!r})\n"
    assert _checked(f"{extension}class ModelNew(nn.Module):\n def forward(self, x):\n  return mine.f(x)\n") is None


@pytest.mark.parametrize("name", HACKS)
def test_a_hack_is_named_with_its_line(name):
    kind, code = HACKS[name]
    found = _checked(code)
    assert isinstance(found, RulesViolation), name
    line = next(number for number, text in enumerate((HEAD + code).split("\n"), 1) if "# HERE" in text)
    assert (found.kind, found.line) == (kind, line), found.message


@pytest.mark.parametrize("name", HACKS)
def test_open_admits_any_code(name):
    assert _checked(HACKS[name][1], "open") is None


def test_a_module_that_is_called_is_a_violation_and_no_crash():
    found = _checked("class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch(x)\n")
    assert found is not None and found.category == "rules"


def test_there_are_enough_of_both():
    assert len(HONEST) >= 25 and len(HACKS) >= 25
    for code in (*HONEST.values(), *(code for _, code in HACKS.values())):
        ast.parse(HEAD + code)


def test_the_message_names_what_computes_and_every_other_place():
    found = _checked(
        "class ModelNew(nn.Module):\n def forward(self, x):\n  y = F.relu(x)\n  y = y.softmax(-1)\n  return y @ y\n"
    )
    assert found is not None
    start = HEAD.count("\n")
    assert found.line == start + 3
    assert found.message == (
        "`forward`, or code that it calls, uses torch.nn.functional.relu, which counts as computing; also the tensor "
        f"method .softmax() (line {start + 4}), the operator @ on tensors (line {start + 5})."
    )


@pytest.mark.parametrize("mode", ["kernel", "open"])
def test_code_that_does_not_parse_is_a_compile_error_with_its_line(mode):
    found = check_rules("import torch\n\nclass ModelNew:\n    def forward(self, x)\n        return x\n", mode)
    assert isinstance(found, CompileError) and (found.kind, found.line) == ("syntax", 4)
    assert found.details == "    4 |     def forward(self, x)\n      |                         ^"
    assert "SyntaxError" in found.message


@pytest.mark.parametrize("code", ["x = 1\0", "x = '\ud800'", "-" * 30000 + "1", "x" + ".y" * 30000, "(" * 300])
def test_text_that_breaks_the_parser_is_a_compile_error(code):
    found = check_rules(code)
    assert isinstance(found, CompileError) and found.kind == "syntax"


@pytest.mark.parametrize("mode", ["kernel", "open"])
@pytest.mark.parametrize("code", ["", "x = 1", "def f():\n    class ModelNew: pass", "ModelNew = 3"])
def test_code_without_the_class_is_a_format_error(code, mode):
    found = check_rules(code, mode)
    assert isinstance(found, FormatError) and found.kind == "no_model"


@pytest.mark.parametrize("mode", ["kernel", "open"])
def test_a_model_without_forward_is_a_format_error(mode):
    code = "class Base(nn.Module):\n def go(self, x):\n  return ext.f(x)\nclass ModelNew(Base):\n pass\n"
    found = check_rules(code, mode)
    assert isinstance(found, FormatError) and found.kind == "no_forward"
    for more in ("ModelNew.forward = go\n", "setattr(ModelNew, 'forward', go)\n", "class Other(nn.Linear):\n pass\n"):
        assert not isinstance(check_rules(code + more, mode), FormatError)


def test_of_two_definitions_the_last_counts():
    one = "class ModelNew(nn.Module):\n def forward(self, x):\n  return torch.relu(x)\n"
    other = "class ModelNew(nn.Module):\n def forward(self, x):\n  return ext.f(x)\n"
    assert _checked(one + other) is None
    assert isinstance(_checked(other + one), RulesViolation)


def test_an_odd_escape_warns_nobody(recwarn):
    assert _checked("PATTERN = '\\d'\nclass ModelNew(nn.Module):\n def forward(self, x):\n  return ext.f(x)\n") is None
    assert not recwarn.list


@pytest.mark.timeout(60)
def test_recursion_and_many_branches_end_soon():
    lines = ["class ModelNew(nn.Module):", "    def forward(self, x, y):"]
    lines += [f"        if x.numel() > {n}: x = self.f{n}(x, [x, y])" for n in range(60)]
    lines += ["        return ext.f(x)"]
    for n in range(60):
        lines += [f"    def f{n}(self, a, b):", "        for i in a:", "            for j in b:"]
        lines += [f"                a = [a, b, self.f{(n * 7 + 1) % 60}(b, [a])]", "        return a"]
    assert _checked("\n".join(lines)) is None


@pytest.mark.parametrize("name", ["examples/cuda", "examples/triton", "examples/cpp", "kevin-paper/example"])
def test_the_worked_examples_obey_the_rules(name):
    assert check_rules((data_folder("prompts") / f"{name}.py").read_text()) is None


EXT = "class ModelNew(nn.Module):\n    def forward(self, x):\n"
GUARD = "if __name__ == '__main__':\n    from model import Model\n    print(Model)\n"
REGISTERED = "mine = load_inline(name='m', is_python_module=False, cpp_sources={!r})\n"
COUNTS = (
    "mine = load_inline(name='m', cpp_sources={!r})\n".format(
        "std::tuple<torch::Tensor, int64_t> counted(torch::Tensor x) {\n  return {x, 3};\n}\n"
    )
    .replace("{", "{{")
    .replace("}", "}}")
    + f"{EXT}        {{}}\n"
)


@pytest.mark.parametrize(
    "code",
    [
        f"{EXT}        return ext.f(x)\n{GUARD}",
        f"class ModelNew(nn.Module):\n    @torch.autograd.inference_mode()\n{EXT[27:]}        return ext.f(x)\n",
        f"{EXT}        with torch.autograd.no_grad():\n            return ext.f(x, torch.initial_seed())\n",
        "import collections\nkept, rows = collections.OrderedDict(), collections.deque([torch.empty(3)])\n"
        f"{EXT}        kept[3] = x\n        kept.move_to_end(3)\n        rows.rotate(1)\n        return ext.f(x)\n",
        REGISTERED.format('static auto registry = torch::RegisterOperators("mine::f", &f);')
        + f"{EXT}        return torch.ops.mine.f(x)\n",
        REGISTERED.format('TORCH_LIBRARY(mine, m) { m.class_<Kept>("Kept").def("f", &Kept::f); }')
        + f"{EXT}        return torch.classes.mine.Kept().f(x)\n",
        COUNTS.format("values, count = mine.counted(x)\n        assert 0 <= count + 1\n        return values, count"),
    ],
    ids=["main", "decorator", "context", "collections", "RegisterOperators", "classes", "a number among tensors"],
)
def test_more_habits_pass(code):
    assert _checked(code) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (f"__name__ = '__main__'\n{EXT}        return ext.f(x)\n{GUARD}", "inherits_reference"),
        (f"{EXT}        return torch.cuda.torch.softmax(ext.f(x), 1)\n", "torch_compute"),
        (f"{EXT}        return torch.utils.cpp_extension.torch.nn.functional.silu(ext.f(x))\n", "torch_compute"),
        (f"{EXT}        return torch.classes.mine.Kept().f(x)\n", "torch_compute"),
        (COUNTS.format("values, count = mine.counted(x)\n        return values + count"), "torch_compute"),
        (COUNTS.format("return mine.counted(x)[0] <= x"), "torch_compute"),
    ],
)
def test_more_hacks_are_named(code, kind):
    found = _checked(code)
    assert isinstance(found, RulesViolation) and found.kind == kind


def test_reading_a_submission_takes_no_torch():
    code = "import kevin_env.rules as r, sys; r.check_rules('class ModelNew: pass'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
