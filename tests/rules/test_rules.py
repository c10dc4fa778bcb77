"""What the reader says of ordinary code, and what it leaves to what really runs."""

import ast
import textwrap
from typing import get_args

import pytest
import torch
from rules_corpus import CPP, HEAD, HONEST, VIOLATIONS

from kevin_env.outcome import CompileError, FormatError, RulesViolation
from kevin_env.parsing import tree_of
from kevin_env.problem import data_folder
from kevin_env.rules import Rules, check_rules
from kevin_env.rules.vocabulary import words

MODEL = "class ModelNew(nn.Module):\n    def forward(self, x):\n"
EXTENSION = (
    "mine = load_inline(name='mine', cpp_sources={!r})\n" + MODEL + "        return mine.f(x)\n"
)


def _checked(code: str, mode: Rules = "kernel"):
    ast.parse(code)
    return check_rules(HEAD + code, mode)


def _model(lines: str, before: str = "") -> str:
    return before + MODEL + textwrap.indent(lines, " " * 8)


def _forward(lines: str, before: str = "", mode: Rules = "kernel"):
    return _checked(_model(lines, before), mode)


def _line(code: str, found: RulesViolation) -> str:
    return (HEAD + code).split("\n")[(found.line or 1) - 1]


def test_honest_code_passes():
    modes: tuple[Rules, ...] = ("kernel", "partial")
    found = {(name, mode): _checked(HONEST[name], mode) for name in HONEST for mode in modes}
    assert {key: each for key, each in found.items() if each is not None} == {}


def test_honest_sources_in_cpp_pass():
    found = {name: _checked(EXTENSION.format(source)) for name, source in CPP.items()}
    assert {name: each for name, each in found.items() if each is not None} == {}


def test_a_violation_is_named_with_its_line():
    wrong = []
    for name, (kind, code) in VIOLATIONS.items():
        found = _checked(code)
        if not (
            isinstance(found, RulesViolation)
            and found.kind == kind
            and "# HERE" in _line(code, found)
        ):
            wrong.append((name, found))
    assert wrong == []


def test_open_admits_any_code_and_partial_all_that_computes():
    wrong = []
    for name, (kind, code) in VIOLATIONS.items():
        computes = kind in ("torch_compute", "fallback")
        found = _checked(code, "partial")
        if (found.kind if found else None) not in ({None, "no_kernel"} if computes else {kind}):
            wrong.append((name, "partial", found))
        if found := _checked(code, "open"):
            wrong.append((name, "open", found))
    assert wrong == []


OPERATIONS = {
    "torch.relu(x)": "torch.relu",
    "F.gelu(x)": "torch.nn.functional.gelu",
    "nn.functional.pad(x, (1, 1))": "torch.nn.functional.pad",
    "torch.nn.functional.linear(ext.f(x), ext.g(x))": "torch.nn.functional.linear",
    "x.softmax(dim=-1)": "the tensor method .softmax()",
    "x.view(-1).float().sum()": "the tensor method .sum()",
    "x.clone().mul_(2)": "the tensor method .mul_()",
    "torch.empty_like(x).copy_(x).exp()": "the tensor method .exp()",
    "x + 1": "the operator + on tensors",
    "1 - x.unsqueeze(0)": "the operator - on tensors",
    "-x": "the operator - on tensors",
    "x >= 0": "the operator >= on tensors",
    "ext.f(x) @ ext.g(x)": "the operator @ on tensors",
    "torch.matmul(ext.f(x), ext.g(x))": "torch.matmul",
    "torch.cat([x, x], dim=1)": "torch.cat",
    "torch.linalg.vector_norm(x)": "torch.linalg.vector_norm",
    "torch.ops.aten.relu.default(x)": "torch.ops.aten.relu.default",
    "torch.Tensor.softmax(x, -1)": "the tensor method .softmax()",
    "torch.compile(torch.tanh)(x)": "torch.tanh",
    "nn.ReLU()(x)": "torch.nn.ReLU",
    "x[x.argmax()]": "indexing with a tensor",
    "abs(x)": "abs() on a tensor",
    "np.dot(x.numpy(), 2)": "numpy.dot",
    "np.cumsum(x.numpy(), 1)": "numpy.cumsum",
    "np.matmul(array(x.data_ptr()), 2)": "numpy.matmul",
    "[torch.exp(part) for part in [x]][0]": "torch.exp",
    "flash_attn.flash_attn_func(x, x, x)": "flash_attn.flash_attn_func",
    "getattr(torch, 'tanh')(x)": "torch.tanh",
}
"""How operations are written, and how they are named."""
PLACES = {
    "forward": ("", "return OP"),
    "a function": ("def work(x):\n    return OP\n", "return work(x)"),
    "a function by a keyword": ("def work(n, x):\n    return OP\n", "return work(x=x, n=3)"),
    "a function of a function": (
        "def inner(x):\n    return OP\ndef work(*a):\n    return inner(*a)\n",
        "return work(x)",
    ),
    "a function within": ("", "def work(x):\n    return OP\nreturn work(x)"),
    "what it captures": ("", "def work():\n    return OP\nreturn work()"),
    "a lambda": ("", "work = lambda x: OP\nreturn work(x)"),
    "every branch": ("", "if x.is_cuda:\n    y = OP\nelse:\n    y = ext.f(OP)\nreturn y"),
    "after a guard": ("", "if x.is_cpu:\n    raise ValueError(x.sum())\nreturn OP"),
    "the branch with a kernel": ("", "if x.is_cpu:\n    return x\nreturn ext.f(OP)"),
    "a loop": ("", "for _ in range(3):\n    y = OP\nreturn y"),
    "a block": ("", "with torch.no_grad():\n    return OP"),
    "a module": (
        "class Own(nn.Module):\n    def forward(self, x):\n        return OP\n",
        "return Own()(x)",
    ),
    "an autograd function": (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n     "
        "   return OP\n",
        "return Own.apply(x)",
    ),
    "an autograd function that is kept": (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return OP\nwork = Own.apply\n",
        "return work(x)",
    ),
    "a static method": (
        "class Own:\n    @staticmethod\n    def f(x):\n        return OP\n",
        "return Own().f(x)",
    ),
    "a class method": (
        "class Own:\n    @classmethod\n    def f(cls, x):\n        return OP\n",
        "return Own().f(x)",
    ),
    "a base": (
        "class Base:\n    def f(self, x):\n        return OP\nclass Own(Base): pass\n",
        "return Own().f(x)",
    ),
    "super": (
        "class Base:\n    def f(self, x):\n        return OP\n"
        "class Own(Base):\n    def f(self, x):\n        return super().f(x)\n",
        "return Own().f(x)",
    ),
    "a decorated function": (
        "@functools.lru_cache(maxsize=None)\ndef work(x):\n    return OP\n",
        "return work(x)",
    ),
    "a function with a decorator of its own": (
        "def same(f):\n    @functools.wraps(f)\n    def call(*a, **k):\n        return f(*a, "
        "**k)\n    return call\n"
        "@same\ndef work(x):\n    return OP\n",
        "return work(x)",
    ),
    "a registered operator": (
        "@torch.library.custom_op('mine::work', mutates_args=())\ndef work(x):\n    return OP\n",
        "return work(x)",
    ),
}
"""Where they are written: before the model, and in `forward`."""


@pytest.mark.parametrize("place", PLACES)
def test_an_operation_is_found_wherever_forward_reaches_it(place):
    for operation, name in OPERATIONS.items():
        before, lines = (text.replace("OP", operation) for text in PLACES[place])
        code = _model(f"ext.f(x)\n{lines}\n", f"import flash_attn\n{before}")
        found = _checked(code)
        assert isinstance(found, RulesViolation) and found.kind == "torch_compute", (
            operation,
            found,
        )
        assert f"uses {name}" in found.message and operation in _line(code, found), operation


UNREACHED = {
    "backward": (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n     "
        "   return ext.f(x)\n"
        "    @staticmethod\n    def backward(ctx, x):\n        return OP\n",
        "return Own.apply(x)",
    ),
    "a function that nobody calls": ("def work(x):\n    return OP\n", "return ext.f(x)"),
    "the main program": (
        "if __name__ == '__main__':\n    from model import Model\n    x = torch.ones(3)\n    "
        "print(OP)\n",
        "return ext.f(x)",
    ),
    "module level": ("x = torch.ones(3)\nif x.numel():\n    y = OP\n", "return ext.f(x)"),
    "what is checked before an error": (
        "",
        "y = ext.f(x)\nif x.dim() > 9:\n    n = OP\n    raise ValueError(n)\nreturn y",
    ),
    "the other way of a kernel": ("", "if x.is_cuda:\n    return ext.f(x)\nelse:\n    return OP"),
    "a guard": ("", "if not x.is_cuda:\n    return OP\nreturn ext.f(x)"),
    "a guard before a launch in a function": (
        "",
        "if x.dtype != torch.float32:\n    return OP\nreturn launch(x, x)",
    ),
    "behind a kernel that returns": ("", "if x.is_contiguous():\n    return ext.f(x)\nreturn OP"),
    "evaluation mode": ("", "if not self.training:\n    return OP\nreturn ext.f(x)"),
    "an expression": ("", "return ext.f(x) if x.is_cuda else OP"),
    "what a handler does after a kernel": (
        "",
        "try:\n    return ext.f(x)\nexcept RuntimeError:\n    y = ext.g(x)\n    return OP",
    ),
}
"""Places that `forward` does not reach, or beside a kernel, where what runs decides."""


@pytest.mark.parametrize("place", UNREACHED)
def test_what_may_not_run_is_left_to_what_runs(place):
    for operation in (
        "torch.relu(x)",
        "x @ x",
        "x.softmax(-1) * 2",
        "nn.ReLU()(x)",
        "F.conv2d(x, x)",
    ):
        before, lines = (text.replace("OP", operation) for text in UNREACHED[place])
        assert _forward(lines, before) is None, operation


FALLBACKS = {
    "a handler that "
    "logs": "try:\n    y = launch(x, x)\nexcept:  # HERE\n    print('failed')\n    y = x * 2\n"
    "return y",
    "behind a handler that "
    "passes": "try:\n    return ext.f(x)\nexcept RuntimeError:  # HERE\n    pass\nreturn x @ x",
    "a layer": "try:\n    return ext.f(x)\nexcept RuntimeError as e:  # HERE\n    return "
    "nn.ReLU()(x)",
    "a handler in a "
    "loop": "while 1:\n    try:\n        y = ext.f(x)\n    except OSError:  # HERE\n        y = "
    "x.exp()",
    "the second handler": (
        "try:\n    return ext.f(x)\nexcept ValueError:\n    raise\nexcept Exception:  # HERE\n  "
        "  return x.exp()"
    ),
    "a launch in a "
    "function": "try:\n    return launch(x, x)\nexcept Exception:  # HERE\n    return x.cos()",
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_a_handler_that_computes_with_torch_falls_back(name):
    found = _forward(FALLBACKS[name])
    assert isinstance(found, RulesViolation) and found.kind == "fallback", found
    assert "# HERE" in _line(_model(FALLBACKS[name]), found)
    assert _forward(FALLBACKS[name], mode="partial") is None


@pytest.mark.parametrize(
    "lines",
    [
        "try:\n    return ext.f(x)\nexcept Exception as error:\n    raise RuntimeError(x.sum()) "
        "from error",
        "try:\n    return ext.f(x)\nexcept Exception:\n    torch.cuda.synchronize()\n    return "
        "launch(x, x)",
        "try:\n    y = ext.f(x)\nexcept triton.OutOfResources:\n    y = ext.g(x)\nreturn y",
        "try:\n    return ext.f(x)\nexcept Exception:\n    n = x.sum()\n    raise RuntimeError(n)",
        "y = ext.f(x)\ntry:\n    import fancy\nexcept ImportError:\n    y = x.sum()\nreturn y",
        "try:\n    import fancy\nexcept ImportError:\n    fancy = None\nreturn ext.f(x)",
        "try:\n    held = self.held[x.shape]\nexcept KeyError:\n    held = self.held[x.shape] = "
        "ext.g(x)\nreturn held",
        "try:\n    return ext.f(x)\nfinally:\n    torch.cuda.synchronize()",
    ],
)
def test_a_handler_that_reaches_a_kernel_or_raises_is_no_fallback(lines):
    assert _forward(lines) is None


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (
            "p = torch.empty(64)\nkernel[(64,)](x, x, p, 3)\nreturn p.sum()",
            "the tensor method .sum()",
        ),
        (
            "p = torch.empty(64)\nkernel[(64,)](x, x, p, 3)\nreturn p / 64",
            "the operator / on tensors",
        ),
        ("return ext.f(x).mean()", "the tensor method .mean()"),
        ("return torch.mean(ext.f(x))", "torch.mean"),
        (
            "self.w = nn.Parameter(torch.ones(3))\nreturn ext.f(x, F.softplus(self.w))",
            "torch.nn.functional.softplus",
        ),
        (
            "self.w = nn.Parameter(torch.ones(3))\nreturn ext.f(x) + self.w",
            "the operator + on tensors",
        ),
        ("return ext.f(x, torch.arange(x.size(1)) * 2)", "the operator * on tensors"),
        ("y = torch.empty(3, 4)\next.f(x, y)\nreturn y[torch.arange(2)]", "indexing with a tensor"),
        ("return nn.Linear(3, 4)(ext.f(x))", "torch.nn.Linear"),
    ],
)
def test_what_may_be_small_is_left_to_what_runs_where_glue_is_admitted(lines, named):
    found = _forward(lines)
    assert isinstance(found, RulesViolation) and f"uses {named}" in found.message
    assert check_rules(HEAD + _model(lines), glue=0.01) is None
    for large in (
        "x.relu()",
        "torch.cat([x, x])",
        "x * 2",
        "nn.Linear(3, 4)(x)",
        "torch.empty_like(x) + 1",
    ):
        assert check_rules(HEAD + _model(f"y = {large}\n{lines}"), glue=0.01) is not None


@pytest.mark.parametrize(
    "lines",
    [
        "if self.w is None:\n    self.w = torch.cat([self.q, self.k]).contiguous()\nreturn "
        "ext.f(x, self.w)",
        "w = F.pad(torch.stack([self.a, self.b]), (0, 3))\nreturn ext.f(x, w)",
        "seed = torch.randint(0, 2**31, (1,)).item()\nreturn ext.f(x, seed)",
        "h = torch.randn(2, x.size(0), 3, device=x.device)\nreturn ext.f(x, h)",
        "status = ext.f(x)\nreturn x if status + 1 > 2 else ext.g(x)",
        "count, y = ext.f(x)\nreturn ext.g(y, count * 2)",
        "a, b = x.shape\nn, m = x.stride()\nreturn ext.f(x, a * b + n // m, len(x.shape) - 1, "
        "max(a, b) ** 2)",
        "n = 0\nfor part in x.split(2):\n    n += part.numel()\nreturn ext.f(x, n)",
        "w = torch.empty(3)\nreturn ext.f(x) if w != None else ext.g(x)",
        "sizes = [t.numel() * 2 for t in (x, x)]\nreturn ext.f(x, sum(sizes))",
        "for i, t in enumerate([x, x]):\n    ext.f(t, i * 2 + 1)\nreturn x",
        "ext.f(x, **{'n': x.numel() * 2, 'out': x})\nn, y = (lambda t: (t.numel(), t))(x)\n"
        "return ext.f(y, n * 2)",
    ],
)
def test_what_may_be_no_tensor_or_only_moves_weights_is_left_to_what_runs(lines):
    assert _forward(lines) is None


def test_other_parameters_may_be_numbers_and_a_list_is_no_tensor():
    for parameters, lines in {
        "self, x, n": "return ext.f(x, n * 2 + 1)",
        "self, xs": "n = 0\nfor x in xs:\n    n += x.numel()\nreturn ext.f(xs + [n], n * 2)",
        "self, xs: list[torch.Tensor]": "return ext.f(xs * 2)",
        "self, n: int, x": "return ext.f(x, n * 2)",
        "self, x, scale=2.0": "return ext.f(x, scale * 2)",
    }.items():
        model = (
            f"class ModelNew(nn.Module):\n    def forward({parameters}):\n"
            f"{textwrap.indent(lines, ' ' * 8)}\n"
        )
        assert _checked(model) is None, parameters


SOURCE = """
#include <torch/extension.h>
torch::Tensor f(torch::Tensor x) {{
    // at::matmul(x, x) is what this replaces
    TORCH_CHECK(x.is_cuda(), "at::softmax wants a GPU");
    auto out = torch::empty_like(x);
    {}  // HERE
    return out;
}}
"""


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("out = at::matmul(x, x);", "at::matmul"),
        ("out = torch::softmax(x, -1);", "torch::softmax"),
        ("at::mm_out(out, x, x);", "at::mm_out"),
        ("out = at::_ops::relu::call(x);", "at::_ops::relu::call"),
        ("out = torch::nn::functional::gelu(x);", "torch::nn::functional::gelu"),
        ("out = torch::nn::Linear(3, 4)(x);", "torch::nn::Linear"),
        ("out = at::native::softmax(x, -1);", "at::native::softmax"),
        ("out = torch::linalg::matmul(x, x);", "torch::linalg::matmul"),
        ("out = x.matmul(x);", ".matmul"),
        ("out.relu_();", ".relu_"),
        ("namespace G = torch::nn::functional; out = G::relu(x);", "G::relu"),
        ("cublasSgemm(handle, a, b, n, n, n, &one, p, n, p, n, &zero, p, n);", "cublasSgemm"),
        ("cublasGemmEx (handle, a, b);", "cublasGemmEx"),
        ("cublasLtMatmul(handle, a, b);", "cublasLtMatmul"),
        ("cudnnConvolutionForward(handle, a);", "cudnnConvolutionForward"),
        ("cudnnSoftmaxForward(handle, a);", "cudnnSoftmaxForward"),
        ("cusparseSpMM(handle, a);", "cusparseSpMM"),
        ("cufftExecR2C(plan, a, b);", "cufftExecR2C"),
        ("cblas_sgemm(a, b);", "cblas_sgemm"),
        ("sgemm_(a, b);", "sgemm_"),
    ],
)
def test_an_operation_in_cpp_is_named_with_its_line(statement, named):
    before = (
        f"SRC = r'''{SOURCE.format(statement)}'''\nmine = load_inline(name='mine', "
        f"cpp_sources=SRC)\n"
    )
    found = _checked(f"{before}{MODEL}        return mine.f(x)\n")
    assert isinstance(found, RulesViolation) and f"uses {named} in C++" in found.message, found
    assert "// HERE" in _line(before, found)
    assert _checked(f"{before}{MODEL}        return mine.f(x)\n", "partial") is None
    assert isinstance(
        found := _checked(f"{before}{MODEL}        return x.clone()\n"), RulesViolation
    )
    assert found.kind == "no_kernel"


DISPATCHER = [
    "from torch.utils._python_dispatch import _disable_current_modes",
    "import torch.utils._python_dispatch as d",
    "from torch.utils import _python_dispatch",
    "torch.utils._python_dispatch._disable_current_modes()",
    "torch._C._DisableTorchDispatch()",
    "from torch import _C",
    "import torch._C",
    "C = torch._C",
    "getattr(torch._C, '_set_dispatch_mode')",
    "getattr(torch._C, NAME)",
    "torch.overrides.TorchFunctionMode()",
    "torch._ops.OpOverload",
    "import gc\ngc.get_objects()",
    "import sys\nsys._getframe(1)",
    "import sys\nsys.modules['torch.utils._python_dispatch']",
    "import importlib\nimportlib.import_module('torch._C')",
    "ctypes.CDLL(torch.__path__[0] + '/lib/libtorch_cpu.so')",
    "ctypes.PyDLL('libtorch_python.so')",
    "torch.library.Library('aten', 'IMPL')",
    "torch.library.Library('_', 'IMPL')",
    "torch.library.impl('aten::relu', 'cpu')(ext.f)",
    "SRC = 'TORCH_LIBRARY_IMPL(aten, CUDA, m) { m.impl(\"relu\", f); }'",
    "SRC = 'void f() { c10::impl::ExcludeDispatchKeyGuard guard(keys); }'",
    "SRC = 'at::Tensor f(at::Tensor x) { return at::redispatch::relu(keys, x); }'",
]


@pytest.mark.parametrize("code", DISPATCHER)
def test_what_could_keep_the_recorder_from_seeing_is_refused(code):
    model = f"{MODEL}        return ext.f(x)\n"
    for mode in ("kernel", "partial"):
        found = _checked(f"{code}\n{model}", mode)
        assert isinstance(found, RulesViolation) and found.kind == "dispatcher", found
        assert found.line == HEAD.count("\n") + code.count("\n") + 1
    assert _checked(f"{code}\n{model}", "open") is None


@pytest.mark.parametrize(
    "code",
    [
        "from torch._C import _cuda_getCurrentRawStream as get_raw_stream",
        "stream = torch._C._cuda_getCurrentRawStream(0)",
        "get_raw_stream = getattr(torch._C, '_cuda_getCurrentRawStream', None)",
        "lib = torch.library.Library('mine', 'DEF')\nlib.define('f(Tensor x) -> Tensor')",
        "import sys, gc\nsys.modules[__name__]\ngc.collect()",
        "SRC = 'TORCH_LIBRARY_IMPL(mine, CUDA, m) { at::AutoDispatchBelowADInplaceOrView guard; }'",
        "lib = ctypes.CDLL('./libmine.so')",
        "# torch._C is not used here",
        "if hasattr(torch._C, '_jit_set_nvfuser_enabled'):\n    "
        "torch._C._jit_set_nvfuser_enabled(True)",
    ],
)
def test_what_kernels_need_of_torchs_inside_is_no_interference(code):
    assert _checked(f"{code}\n{MODEL}        return ext.f(x)\n") is None


NO_KERNEL = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + MODEL


@pytest.mark.parametrize("mode", ["kernel", "partial"])
def test_a_file_without_a_kernel_has_none(mode):
    found = check_rules(f"{NO_KERNEL}        return self.anything(x)\n", mode)
    assert isinstance(found, RulesViolation) and (found.kind, found.line) == ("no_kernel", 5)
    assert check_rules(f"import warp\n{NO_KERNEL}        return self.anything(x)\n", mode) is None
    for more in (
        "from torch._inductor.async_compile import AsyncCompile\n",
        "from .own import work\n",
    ):
        assert check_rules(f"{more}{NO_KERNEL}        return self.anything(x)\n", mode) is None
    for builds in (
        "ctypes.CDLL('k.so')",
        "torch.utils.cpp_extension.load('k', [])",
        "exec(open('k.py').read())",
    ):
        assert (
            check_rules(f"import ctypes\n{NO_KERNEL}        return {builds}.f(x)\n", mode) is None
        )


def test_partial_admits_torch_beside_a_kernel_and_no_reference():
    assert _forward("return torch.softmax(ext.f(x) @ x, -1)", mode="partial") is None
    found = check_rules(f"{NO_KERNEL}        return torch.compile(F.softmax)(x)\n", "partial")
    assert found is not None and found.kind == "no_kernel"


SHIM = """at::Tensor f(at::Tensor x) {
  auto y = at::empty_like(x);
  BODY
}"""


@pytest.mark.parametrize(
    ("body", "kernel"),
    [
        ("return at::matmul(x, x.t()); // for each row", False),
        ("for (int i = 0; i < 3; ++i) p[i] = q[i]; return y;", True),
        ("work<<<1, 32>>>(x.data_ptr<float>()); return y;", True),
    ],
)
def test_an_extension_that_only_calls_torch_is_no_kernel(body, kernel):
    load = f"ext = load_inline(name='ext', cpp_sources={SHIM.replace('BODY', body)!r})\n"
    code = (
        f"from torch.utils.cpp_extension import load_inline\n{NO_KERNEL}        return ext.f(x)\n"
    )
    for given in (code + load, code + load.replace("load_inline(", "load(")):
        found = check_rules(given, "partial")
        assert (found is None) == (kernel or "load(" in given)


def test_a_module_that_is_called_is_no_crash():
    for lines in (
        "return torch(x)",
        "return torch.nn(x)",
        "return x()",
        "return (1)(x)",
        "return [](x)",
        "return None(x)",
    ):
        _forward(lines)


def test_the_message_names_what_computes_and_every_other_place():
    found = _forward("y = F.relu(x)\ny = y.softmax(-1)\nreturn y @ y\n")
    assert found is not None
    start = HEAD.count("\n")
    assert found.line == start + 3
    assert found.message == (
        "`forward`, or code that it calls, uses torch.nn.functional.relu, which counts as "
        "computing; also the tensor "
        f"method .softmax() (line {start + 4}), the operator @ on tensors (line {start + 5})."
    )


@pytest.mark.parametrize("mode", get_args(Rules))
def test_code_that_does_not_parse_is_a_compile_error_with_its_line(mode):
    found = check_rules(
        "import torch\n\nclass ModelNew:\n    def forward(self, x)\n        return x\n", mode
    )
    assert isinstance(found, CompileError) and (found.kind, found.line) == ("syntax", 4)
    assert found.details == "    4 |     def forward(self, x)\n      |                         ^"
    assert "SyntaxError" in found.message


@pytest.mark.parametrize(
    "code", ["x = 1\0", "x = '\ud800'", "-" * 30000 + "1", "x" + ".y" * 30000, "(" * 300]
)
def test_text_that_breaks_the_parser_is_a_compile_error(code):
    found = check_rules(code)
    assert isinstance(found, CompileError) and found.kind == "syntax"


@pytest.mark.parametrize("mode", get_args(Rules))
@pytest.mark.parametrize(
    "code", ["", "x = 1", "def f():\n    class ModelNew: pass", "ModelNew = 3"]
)
def test_code_without_the_class_is_a_format_error(code, mode):
    found = check_rules(code, mode)
    assert isinstance(found, FormatError) and found.kind == "no_model"


@pytest.mark.parametrize("mode", get_args(Rules))
def test_a_model_without_forward_is_a_format_error(mode):
    code = (
        "class Base(nn.Module):\n def go(self, x):\n  return ext.f(x)\nclass ModelNew(Base):\n"
        " pass\n"
    )
    found = check_rules(code, mode)
    assert isinstance(found, FormatError) and found.kind == "no_forward"
    for more in (
        "ModelNew.forward = go\n",
        "setattr(ModelNew, 'forward', go)\n",
        "class Other(nn.Linear):\n pass\n",
    ):
        assert not isinstance(check_rules(code + more, mode), FormatError)


def test_of_two_definitions_the_last_counts():
    one = f"{MODEL}        return torch.relu(x)\n"
    other = f"{MODEL}        return ext.f(x)\n"
    assert _checked(one + other) is None
    assert isinstance(_checked(other + one), RulesViolation)


@pytest.mark.timeout(60)
def test_recursion_and_many_branches_end_soon():
    lines = ["class ModelNew(nn.Module):", "    def forward(self, x, y):"]
    lines += [f"        if x.numel() > {n}: x = self.f{n}(x, [x, y])" for n in range(60)]
    lines += ["        return ext.f(x)"]
    for n in range(60):
        lines += [f"    def f{n}(self, a, b):", "        for i in a:", "            for j in b:"]
        lines += [
            f"                a = [a, b, self.f{(n * 7 + 1) % 60}(b, [a])]",
            "        return a",
        ]
    assert _checked("\n".join(lines)) is None


@pytest.mark.parametrize(
    "name", ["examples/cuda", "examples/triton", "examples/cpp", "kevin-paper/example"]
)
def test_the_worked_examples_obey_the_rules(name):
    assert check_rules((data_folder("prompts") / f"{name}.py").read_text()) is None


def test_the_tree_that_others_read_too_stays_as_it_was():
    changed = []
    for name, code in (HONEST | {name: code for name, (_, code) in VIOLATIONS.items()}).items():
        check_rules(HEAD + code)
        trees = tree_of(HEAD + code), ast.parse(HEAD + code)
        one, other = (ast.dump(tree, include_attributes=True) for tree in trees)
        if one != other:
            changed.append(name)
    assert changed == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "lines",
    [
        "return ext.f(x" + ".view(-1)" * 2000 + ")",
        "y = [" + "x, " * 20_000 + "]\nreturn ext.f(y)",
        "y = {" + "'a': x, " * 20_000 + "}\nreturn ext.f(y)",
        "return ext.f(" + "[" * 90 + "x" + "]" * 90 + ")",
        "y = x.numel()" + " + 1" * 5000 + "\nreturn ext.f(x, y)",
        "x = x + 1\n" * 30_000 + "return ext.f(x)",
        "\n".join(f"if x.numel() == {n}:\n    return ext.f(x, {n})" for n in range(2000))
        + "\nreturn ext.f(x)",
        "f = lambda g: g(g)\nreturn ext.f(f(f))",
        "y = []\n" + "y = [y, y]\n" * 60 + "y.append(y)\nreturn ext.f(y)",
        "".join(
            f"f{n} = lambda g: (f{n - 1}(lambda: g), f{n - 1}(lambda: g))\n" for n in range(1, 30)
        )
        + "return f29(ext)",
        "def f(a):\n    return f([a]) if a else f(lambda: a)\nreturn ext.f(f(x))",
        "a = x\n"
        + f"a = ({'a, ' * 64})\n" * 4
        + "b = a if x.numel() else (a, a)\n" * 40
        + "return ext.f(b)",
        "class A: pass\n"
        + "class B(A): pass\nclass C(A): pass\nclass A(B, C): pass\n" * 40
        + "return ext.f(A().b(x))",
    ],
)
def test_code_that_is_deep_long_or_calls_itself_is_read_soon(lines):
    found = check_rules(HEAD + _model(lines))
    assert found is None or isinstance(found, CompileError) or "29995 more" in found.message


@pytest.mark.timeout(30)
def test_a_model_in_a_loop_is_read_in_linear_time():
    assert _checked("x\n" * 200_000 + _model("return ext.f(x)")) is None


def test_code_that_calls_too_deeply_to_be_read_is_left_to_what_runs():
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(400))
    assert _forward("return f0(x)", f"{chain}def f400(x):\n    return x.relu()\n") is None
    assert _forward("return ext.f(x" + ".view(-1)" * 400 + ")") is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    ["/*" * 20_000, "at::a" * 20_000, "at::" * 30_000, "a::" * 30_000 + "(", "at::a<" * 20_000,
    "#if 0\n" * 20_000,
     '"' * 40_001, "x." * 40_000, "cudnn" + "Forward" * 10_000, "cublasS" * 20_000, "void a "
         "(" * 20_000,
     "\\\n" * 20_000, "torch::Tensor " * 20_000, "auto x = "
         "at::empty" * 10_000, "TORCH_LIBRARY_IMPL (" * 10_000, "at::exp(x);\n" * 60_000],
)  # fmt: skip
def test_sources_that_a_pattern_could_be_lost_in_take_no_time(text):
    assert isinstance(
        _checked(EXTENSION.format(text + "{;} at::matmul(x, x); __global__")), RulesViolation | None
    )


def test_the_list_of_torchs_operators_is_whole():
    named = {
        name.split("::")[1]
        for name in map(str, torch._C._dispatch_get_all_op_names())
        if name.startswith("aten::")
    }
    stems = {name.split(".")[0].removesuffix("_out").strip("_") for name in named}
    missing = (
        stems - words("torch_operations") - words("allocate") - words("same_size") - words("parts")
    )
    assert {
        "linalg_matmul",
        "fft_rfft",
        "searchsorted",
        "multiply",
        "msort",
        "scatter_reduce",
    } <= words("torch_operations")
    assert len(missing) < 260, sorted(
        missing
    )  # questions, views, casts and what serves other devices


def test_what_is_allowed_is_no_operator_that_computes():
    assert words("moves") - {"pad"} <= words("torch_operations") | set(dir(torch))
    assert not words("same_size") & words("torch_operations")
    assert not words("parts") & words("torch_operations")


FUNCTION = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        ctx.kept = x
        return ext.f(x, w)
    @staticmethod
    def backward(ctx, upstream):
        {}
"""
APPLIED = "return Own.apply(x, self.w)"


@pytest.mark.parametrize(
    ("backward", "named"),
    [
        ("return upstream * 2, None", "the operator * on tensors"),
        ("x, = ctx.saved_tensors; return x.exp(), None", "the tensor method .exp()"),
        ("return ext.g(upstream), F.relu(ctx.kept)", "torch.nn.functional.relu"),
    ],
)
def test_what_autograd_calls_counts_where_gradients_are_judged(backward: str, named: str) -> None:
    code = HEAD + _model(APPLIED, FUNCTION.format(backward))
    assert check_rules(code) is None
    found = check_rules(code, backward=True)
    assert isinstance(found, RulesViolation) and f"uses {named}" in found.message
    assert "`forward` or `backward`" in found.message
    assert found.line and backward in code.split("\n")[found.line - 1]


def test_a_backward_pass_of_own_kernels_passes() -> None:
    body = (
        "x, = ctx.saved_tensors; return ext.g(upstream.contiguous(), x, torch.empty_like(x)), None"
    )
    for before in (
        FUNCTION.format(body),
        FUNCTION.format("return upstream * 2").replace("Own", "Other"),
    ):
        applied = APPLIED if "Own" in before else "return ext.f(x)"
        assert check_rules(HEAD + _model(applied, before), backward=True) is None
