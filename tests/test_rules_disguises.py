import pytest
from rules_corpus import HEAD
from rules_disguises import DISGUISES

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules
from kevin_env.rules.cpp import operations

DEEP = (
    "\n".join(f"def f{n}(x):\n    return f{n + 1}(x)" for n in range(20)) + "\ndef f20(x):\n    return torch.relu(x)\n"
)
MANY = "\n".join(f"def f{n}(x):\n    return x" for n in range(600)) + "\ndef work(x):\n    return torch.relu(x)\n"
MODEL = "class ModelNew(nn.Module):\n    def forward(self, x):\n        ext.f(x)\n"
HONEST = {
    "an object with operators of its own": """
class Grid:
    def __init__(self, x):
        self.x = x
    def __mul__(self, other):
        return Grid(self.x.numel() * other)
    def __getitem__(self, place):
        return self.x[place]
    def __enter__(self):
        return self.x
    def __exit__(self, *error):
        pass
class ModelNew(nn.Module):
    def forward(self, x):
        with Grid(x) as y:
            return ext.f(Grid(y)[0])
""",
    "a wrapper of a launch": """
class Launch:
    def __getitem__(self, grid):
        return lambda *args: kernel[grid](*args)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        Launch()[(1,)](x, x, out, x.numel())
        return out
""",
    "defaults, counters and cleaning up": """
import contextlib, copy, weakref
SIZE = 128
def launched(x, size=SIZE, out_of=torch.empty_like, kernel=launch):
    return kernel(x, out_of(x))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        weakref.finalize(self, ext.free, 3)
        self.weights = copy.deepcopy(nn.Linear(3, 4))
    def forward(self, x):
        count = 0
        def counted(y):
            nonlocal count
            count += 1
            return launched(y)
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: ext.release(count))
            match x.dim():
                case 1 | 2 as rank:
                    return counted(x.view(rank, -1))
                case _:
                    return counted(x)
""",
    "C++ that allocates, views and says what it does not do": '''
SOURCE = r"""
#include <torch/extension.h>
// faster than at::softmax(x, 1) and torch::matmul(a, b)
struct Sums { float max(float); float sum(); };
torch::Tensor work(torch::Tensor x) {
    TORCH_CHECK(x.dim() == 2, "use torch::softmax(x, 1) for others");
    auto out = torch::empty_like(x), view = x.contiguous().view({-1});
    Sums s; float all = s.sum() + s.max(1) + at::ceil_div(3, 2);
    at::parallel_for(0, 3, 1, [&](int64_t a, int64_t b) {});
    return out;
}"""
lib = load_inline(name="lib", cpp_sources=SOURCE, functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
}


@pytest.mark.parametrize("name", DISGUISES)
def test_what_computes_is_found_in_disguise(name):
    found = check_rules(HEAD + DISGUISES[name])
    assert isinstance(found, RulesViolation) and found.kind == "torch_compute", found
    assert check_rules(HEAD + DISGUISES[name], "open") is None


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_that_looks_alike_passes(name):
    assert check_rules(HEAD + HONEST[name]) is None


def test_what_lies_deep_or_behind_much_else_is_found():
    calls = "".join(f"        f{n}(x)\n" for n in range(600))
    for code in (f"{DEEP}{MODEL}        return f0(x)\n", f"{MANY}{MODEL}{calls}        return work(x)\n"):
        found = check_rules(HEAD + code)
        assert isinstance(found, RulesViolation) and "torch.relu" in found.message


def test_operations_in_cpp_are_named_and_nothing_else():
    source = 'namespace F = torch::nn::functional; auto y = F::softmax(x, 1); "at::mm(" /* at::mm( */ // at::mm(\n'
    assert operations([source]) == ["F::softmax"]
    assert operations(["void f(const at::Tensor& x, Own y) { x.sum(); y.sum(); at::sum_out(x, x); }"]) == [
        "at::sum_out",
        ".sum",
    ]
