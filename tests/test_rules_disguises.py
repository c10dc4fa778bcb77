# ruff: noqa: E501

import pytest
import torch
from rules_corpus import HEAD
from rules_disguises import DISGUISES
from rules_indirect import INDIRECT

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules
from kevin_env.rules import vocabulary as words
from kevin_env.rules.cpp import operations
from kevin_env.rules.operations import torch_operations

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
    "C++ whose kernels have names of their host's tensors": '''
SRC = r"""#include <torch/extension.h>
__device__ float act(float x) { return exp(x) / (1 + tanh(x)) * sqrt(x); }
__global__ void k(const float* x, float* out, int n) { int i = threadIdx.x; out[i] = act(x[i]) + max(x[i], 0.f); }
template <typename T> T sum(T x) { return x; }
torch::Tensor work(torch::Tensor x) { auto n = x.numel(); auto out = torch::empty_like(x); k<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<float>(), n); auto s = sum(n); return out; }"""
lib = load_inline(name='l', cpp_sources=SRC, functions=['work'])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "C++ with a function of its own by torch's name": '''
SRC = r"""#include <torch/extension.h>
void softmax(const at::Tensor& x, at::Tensor& out) {}
torch::Tensor work(torch::Tensor x) { auto out = torch::empty_like(x); softmax(x, out); return out; }"""
lib = load_inline(name='l', cpp_sources=SRC, functions=['work'])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "C++ with vector instructions": '''
SRC = r"""#include <ATen/cpu/vec/vec.h>
using Vec = at::vec::Vectorized<float>;
torch::Tensor work(torch::Tensor x) { auto p = x.data_ptr<float>(); Vec v = Vec::loadu(p); v.exp().store(p); auto m = at::vec::maximum(v, v); auto r = v.sqrt() * v.abs(); return x; }"""
lib = load_inline(name='l', cpp_sources=SRC, functions=['work'])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "a kernel that calls another": """
@triton.jit
def relu(x):
    return tl.maximum(x, 0)
@triton.jit
def k(x, out, N: tl.constexpr, ACT: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    if ACT is not None:
        a = ACT(a)
    b = a.to(tl.float32) * min(N, 3) + float('inf')
    tl.store(out + tl.arange(0, N), relu(b))
    tl.static_print('x', a.shape)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out, N=128, ACT=relu)
        return out
""",
    "a comparison when it is run by itself": """
def ref(x):
    return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
if __name__ == '__main__':
    x = torch.randn(3, 3)
    print((ModelNew()(x) - ref(x)).abs().max(), torch.allclose(ref(x), x))
    triton.testing.do_bench(lambda: torch.softmax(x, 1))
""",
    "attributes by names from outside": """
class ModelNew(nn.Module):
    def __init__(self, **kw):
        super().__init__()
        for k, v in kw.items():
            setattr(self, k, v)
    def forward(self, x):
        return ext.f(x)
""",
    "sizes by NumPy": """
class ModelNew(nn.Module):
    def forward(self, x):
        n = int(np.prod(x.shape)); m = int(np.ceil(n / 4)); s = np.sqrt(64.0); t = np.float32(s); q = np.log2(n)
        return ext.f(x, n, m, s * 2, t, q)
""",
    "weights drawn by apply": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.apply(self._init)
    def _init(self, m):
        nn.init.normal_(m.weight)
        m.weight.data = m.weight.data * 2
    def forward(self, x):
        return ext.f(x)
""",
    "what Inductor writes": """
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime import triton_helpers
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
@triton.jit
def k(x, o, B: tl.constexpr):
    tl.store(o, triton_helpers.maximum(libdevice.erf(tl.load(x)), tl_math.abs(tl.load(x))))
class ModelNew(nn.Module):
    def forward(self, x):
        assert_size_stride(x, (4, 4), (4, 1))
        o = empty_strided_cuda((4, 4), (4, 1), torch.float32)
        k[(1,)](x, o, B=16)
        return o
""",
    "torch's just-in-time kernels": """
gelu = torch.cuda.jiterator._create_jit_fn("template <typename T> T gelu(T x) { return x; }")
class ModelNew(nn.Module):
    def forward(self, x):
        return gelu(x)
""",
    "a launcher of another package": """
import warp as wp
@wp.kernel
def relu(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.max(x[i], 0.0)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        wp.launch(relu, dim=x.numel(), inputs=[wp.from_torch(x), wp.from_torch(y)])
        return y
""",
    "a decorator of another package that is called first": """
import numba
@numba.njit(parallel=True)
def halve(x, y):
    for i in numba.prange(x.shape[0]):
        y[i] = x[i] / 2
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        halve(x.numpy(), y.numpy())
        return y
""",
    "a comparison in a function that nothing calls": """
def main():
    from reference import Model
    print((Model()(torch.ones(3)) - ModelNew()(torch.ones(3))).abs().max())
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
if '__main__' == __name__ and torch.cuda.is_available():
    main()
""",
    "a type by its name": """
class ModelNew(nn.Module):
    def __init__(self, kind="float16"):
        super().__init__()
        self.kind = getattr(torch, kind)
    def forward(self, x):
        return ext.f(x.to(self.kind), self.kind)
""",
    "a tuner with a hook, a pruner and a grid": """
def clear(nargs): nargs["o"].zero_()
def fewer(configs, named, **kw): return [c for c in configs if c.kwargs["B"] * 2 <= named["n"] * 4] or configs
@triton.autotune(configs=[triton.Config({"B": 16}, pre_hook=clear)], key=["n"], prune_configs_by={"early_config_prune": fewer})
@triton.jit
def k(x, o, n, B: tl.constexpr):
    tl.store(o, tl.load(x))
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, o, x.numel())
        return o
""",
    "a property that asks": """
class ModelNew(nn.Module):
    threads = property(lambda self: min(1024, 4 * 256))
    def forward(self, x):
        return ext.f(x, self.threads)
""",
    "errors with what was given": """
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("want a matrix", x.shape)
        try:
            return ext.f(x)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {error.args[0]}", x.dtype) from error
""",
    "one object only": """
class ModelNew(nn.Module):
    _one = None
    def __new__(cls, *a):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one
    def forward(self, x):
        return ext.f(x)
""",
}


@pytest.mark.parametrize("name", DISGUISES)
def test_what_computes_is_found_in_disguise(name):
    found = check_rules(HEAD + DISGUISES[name])
    assert isinstance(found, RulesViolation) and found.kind == "torch_compute", found
    assert check_rules(HEAD + DISGUISES[name], "open") is None


@pytest.mark.parametrize("name", INDIRECT)
def test_what_computes_is_found_where_its_name_is_lost_sight_of(name):
    found = check_rules(HEAD + INDIRECT[name])
    assert isinstance(found, RulesViolation) and found.kind == "torch_compute", found


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_that_looks_alike_passes(name):
    assert check_rules(HEAD + HONEST[name]) is None


@pytest.mark.parametrize("decorator", ["beartype.beartype", "tenacity.retry(stop=3)"])
def test_what_another_package_wraps_may_not_compute_with_torch(decorator):
    code = f"import beartype, tenacity\n@{decorator}\ndef work(x):\n    return BODY\n{MODEL}        return work(x)\n"
    found = check_rules(HEAD + code.replace("BODY", "torch.softmax(x, 1)"))
    assert isinstance(found, RulesViolation) and "torch.softmax" in found.message
    assert check_rules(HEAD + code.replace("BODY", "np.exp(torch.empty_like(x))")) is None


def test_an_import_of_the_reference_that_runs_is_seen_wherever_it_is():
    call = "def get():\n    from reference import Model\n    return Model\n"
    for place in ("def __init__(self):\n        super().__init__(); get()\n    def forward(self, x):\n        return ext.f(x)\n",
                  "def forward(self, x):\n        get()\n        return ext.f(x)\n"):  # fmt: skip
        found = check_rules(f"{HEAD}{call}class ModelNew(nn.Module):\n    {place}")
        assert isinstance(found, RulesViolation) and found.kind == "inherits_reference", found


def test_the_list_of_torchs_operators_is_whole():
    named = {
        name.split("::")[1] for name in map(str, torch._C._dispatch_get_all_op_names()) if name.startswith("aten::")
    }
    stems = {name.split(".")[0].removesuffix("_out").strip("_") for name in named}
    allowed = {name.strip("_") for name in words.TORCH_TENSOR | words.TORCH_TENSORS | words.TENSOR_NAMES}
    assert not torch_operations() & allowed
    assert {"linalg_matmul", "fft_rfft", "searchsorted", "multiply", "msort", "scatter_reduce"} <= torch_operations()
    missing = stems - torch_operations() - allowed
    assert len(missing) < 200, sorted(missing)  # questions, views, casts and what serves other devices


def test_a_constructor_may_call_as_deeply_as_python_can():
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(400))
    init = "    def __init__(self):\n        super().__init__()\n        f0(3)\n"
    code = f"{chain}def f400(x):\n    return x\n{MODEL.replace('    def forward', f'{init}    def forward')}        return ext.f(x)\n"
    assert check_rules(HEAD + code) is None


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
    assert operations(["void f(at::Tensor x) { g(x != nullptr ? x.data_ptr<float>() : nullptr); }"]) == []
    assert operations(["void f(at::Tensor x, at::Tensor y) { g(x != y); }"]) == ["operator!="]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["at::Tensor" + " " * 20_000, "auto" + " " * 20_000, "x[" * 20_000, "x.f(" * 10_000,
                                  "at::Tensor x; " + "a relu(x " * 20_000])  # fmt: skip
def test_sources_that_a_pattern_could_be_lost_in_take_no_time(text):
    assert set(operations([text])) == ({"relu"} if "relu" in text else set())


def test_a_product_is_no_definition():
    assert operations(["at::Tensor f(at::Tensor a) { using namespace at; return (a *relu(a)); }"]) == [
        "operator*",
        "relu",
    ]


@pytest.mark.parametrize("source", [
    "static at::Tensor kept; at::Tensor f(at::Tensor x) { kept = x; return x; } at::Tensor g() { return kept.relu(); }",
    "namespace { at::Tensor kept = at::zeros({3}); } at::Tensor g(int n) { return kept.relu(); }",
    "struct L { at::Tensor kept; at::Tensor g(); }; at::Tensor L::g() { return kept.relu(); }",
    'PYBIND11_MODULE(name, m) { m.def("g", [](at::Tensor x) { return x.relu(); }); }',
    "at::Tensor f(at::Tensor x) {\n#if A\n if (x.numel()) {\n#else\n {\n#endif\n } return x; } at::Tensor g(at::Tensor y) { return y.relu(); }",
])  # fmt: skip
def test_a_tensor_is_known_wherever_cpp_knows_it(source):
    assert operations([source]) == [".relu"]


@pytest.mark.parametrize(("body", "found"), [
    ("return at::fft_fft(x);", "at::fft_fft"),
    ("return torch::fft::rfft(x);", "torch::fft::rfft"),
    ("return torch::linalg::matmul(x, x);", "torch::linalg::matmul"),
    ("return torch::nn::functional::interpolate(x);", "torch::nn::functional::interpolate"),
    ("return at::multiply(x, x);", "at::multiply"),
    ('return x.scatter_reduce(0, x, x, "amax");', ".scatter_reduce"),
    ("return (x).softmax(1);", "softmax"),
    ("return id(x).softmax(1);", "softmax"),
    ("return std::move(x).softmax(1);", "softmax"),
    ('return py::cast(x).attr("softmax")(1).cast<torch::Tensor>();', ".softmax"),
    ('return py::eval("lambda t: t.softmax(1)")(x).cast<torch::Tensor>();', "py::eval"),
    ('PyRun_SimpleString("import torch"); return x;', "PyRun_SimpleString"),
    ('return c10::Dispatcher::singleton().findSchemaOrThrow("aten" "::softmax", "int");', "aten::softmax"),
    ('auto f = dlsym(RTLD_DEFAULT, "sgemm_");', "sgemm_"),
    ("vsExp (4, p, p); return x;", "vsExp"),
    ("DftiComputeForward(nullptr, p); return x;", "DftiComputeForward"),
    ("at::native::cpublas::gemm(n, n, 4); return x;", "at::native::cpublas::gemm"),
    ("at::cuda::blas::gemm<float>('n', 'n', 4); return x;", "at::cuda::blas::gemm"),
])  # fmt: skip
def test_every_way_from_cpp_to_an_operation_is_one(body, found):
    assert found in operations([f"torch::Tensor work(torch::Tensor x) {{ {body} }}"])


@pytest.mark.parametrize("body", [
    "auto o = torch::empty_like(x).zero_(); at::parallel_for(0, 4, 1, f); return o.view({2, 2}).t().contiguous();",
    "return Row(x.data_ptr<float>()).scaled(2).sum() + Vec::loadu(p).exp().abs();",
    "auto s = at::cuda::getCurrentCUDAStream(); auto d = torch::TensorOptions().dtype(torch::kFloat32).device(x.device());",
    'TORCH_CHECK(x.is_cuda(), "at::softmax wants a GPU"); m.def("softmax", &softmax);',
    "using at::native::ceil_div; int n = ceil_div(x.numel(), 4); return x.select(0, 1).to(torch::kHalf);",
])  # fmt: skip
def test_what_only_allocates_or_asks_is_no_operation(body):
    assert operations([f"torch::Tensor work(torch::Tensor x) {{ {body} }}"]) == []


def test_sources_are_read_wherever_the_file_has_them():
    source = 'SOURCES = {"a": "torch::Tensor f(torch::Tensor x) { return at::softmax(x, 1); }"}\n'
    build = 'lib = load_inline(name="l", cpp_sources=list(SOURCES.values()), functions=["f"])\n'
    found = check_rules(f"{HEAD}{source}{build}{MODEL}        return lib.f(x)\n")
    assert isinstance(found, RulesViolation) and "at::softmax" in found.message


@pytest.mark.parametrize(("source", "found"), [
    ("at::Tensor f(at::Tensor x) { using namespace at; return softmax(x, -1); }", "softmax"),
    ("at::Tensor f(at::Tensor x) { return relu(x.size(0) * x); }", "relu"),
    ("at::Tensor f(at::Tensor x) { return relu(x.dim() ? x : x); }", "relu"),
    ("at::Tensor f(at::Tensor x) { return relu(x.data()); }", "relu"),
    ("at::Tensor f(at::Tensor x) { return relu(x[0]); }", "relu"),
    ("at::Tensor f(at::Tensor x) { auto y = x.data(); return y.relu(); }", ".relu"),
    ("at::Tensor f(at::Tensor x) { at::Tensor y, z; z = x.contiguous(); return z.relu(); }", ".relu"),
    ("using V = at::vec::Vectorized<float>;\nat::Tensor f(at::Tensor x) { { V x(0); x.abs(); } return x.relu(); }", ".relu"),
    ("using V = at::vec::Vectorized<float>;\nat::Tensor f(at::Tensor x) { auto g = [](V x) { return x; }; return x.relu(); }", ".relu"),
    ("using V = at::vec::Vectorized<float>;\nvoid g(V x); at::Tensor f(at::Tensor x) { for (V x : v) k(x); return x.relu(); }", ".relu"),
    ("static at::Tensor x; template <typename T> T f(T x) { return x.relu(); }", ".relu"),
    ("static at::Tensor x; auto f(auto x) { return x.relu(); }", ".relu"),
    ("using V = at::Tensor; static at::Tensor x; V f(V x) { return x.relu(); }", ".relu"),
    ("using V = float; namespace own { using V = at::Tensor; } static at::Tensor x; void f(V x) { x.relu(); }", ".relu"),
    ("struct S { at::Tensor w; }; at::Tensor f(S s) { return s.w.relu(); }", ".relu"),
    ("struct alignas(16) S { at::Tensor a, w; at::Tensor f() { return this->w.relu(); } };", ".relu"),
    ("at::Tensor f(at::Tensor x) { struct S { at::Tensor w; } s{x}; return s.w.relu(); }", ".relu"),
    ("namespace own { struct Tensor { int n; }; } using namespace at; Tensor f(Tensor x) { return x.relu(); }", ".relu"),
    ("struct own { struct Tensor { int n; }; }; using at::Tensor; Tensor f(Tensor x) { return x.relu(); }", ".relu"),
    ("#define RET return\nat::Tensor f(at::Tensor x) { RET relu(x); }", "relu"),
    ("#define relu(x) relu(x)\nat::Tensor f(at::Tensor x) { return relu(x); }", "relu"),
    ("#define mul(a, b) div(a, b)\n#define div(a, b) mul(a, b)\nat::Tensor f(at::Tensor x) { return mul(x, x); }", "mul"),
    ("#define CALL relu(x)\nat::Tensor f(at::Tensor x) { return CALL; }\n#pragma once relu(x)", "relu"),
    ("at::Tensor relu(at::Tensor x) { return at::relu(x); } at::Tensor f(at::Tensor x) { return relu(x); }", "at::relu"),
    ("void f(at::Tensor x) { bool relu = true; g(x); } at::Tensor h(at::Tensor x) { return x.numel() and relu(x); }", "relu"),
    ("#if 0\n#if A\n#endif\n#else\nvoid f(at::Tensor x) { at::relu(x); }\n#endif", "at::relu"),
    ("#if 0\n#elif 1\nvoid f(at::Tensor x) { at::relu(x); }\n#endif", "at::relu"),
    ("#if 0\n#endif\nvoid f(at::Tensor x) { at::relu(x); }\n#if 1\n#endif", "at::relu"),
    ("#define A \\\n#if 0\nvoid f(at::Tensor x) { at::relu(x); }\n#define B \\\n#endif", "at::relu"),
    ('auto a = R"(\n#if 0\n)"; void f(at::Tensor x) { at::relu(x); } auto b = R"(\n#endif\n)";', "at::relu"),
    ('auto a = "/*"; void f(at::Tensor x) { at::relu(x); } auto b = "*/";', "at::relu"),
    ("auto a = '\"'; void f(at::Tensor x) { at::relu(x); } auto b = '\"';", "at::relu"),
    ("auto a = '//'; void f(at::Tensor x) { at::relu(x); }", "at::relu"),
    ("static at::Tensor x; void g() {} template <int x> int h(); at::Tensor f() { return x.relu(); }", ".relu"),
    ("struct L { at::Tensor w; at::Tensor f(); }; static float w; at::Tensor L::f() { return w.relu(); }", ".relu"),
    ("struct A { float w; struct B { at::Tensor f() { return w.relu(); } at::Tensor w; }; };", ".relu"),
    ("void f() { mkl_set_num_threads(1); mkl_scsrmm(a); }", "mkl_scsrmm"),
])  # fmt: skip
def test_a_wrapper_in_cpp_is_found_beside_what_looks_honest(source, found):
    assert found in operations([source])


def test_a_function_of_another_source_says_nothing_of_a_call_of_torch():
    assert operations(["at::Tensor f(S s) { return s.w.relu(); }", "struct S { at::Tensor w; };"]) == [".relu"]
    call = "at::Tensor f(at::Tensor x) { return at::relu(x).relu(); }"
    assert operations([call, "at::Tensor relu(at::Tensor x) { return x; }"]) == ["at::relu"]
    assert operations(["at::Tensor f(at::Tensor x) { return relu(x); }", "at::Tensor g(at::Tensor x) { relu(x); }"])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["/*" * 20_000, 'R"(' * 20_000, "a relu(float " * 20_000, "std::a<" * 20_000,
                                  "using a = b " * 10_000, "{" * 30_000 + "at::Tensor x; x.y(); " * 5_000,
                                  "#define a(x) b(x)\n" * 5_000, "at::Tensor x, " * 10_000])  # fmt: skip
def test_sources_in_which_scopes_are_many_take_no_time(text):
    operations([text, "at::Tensor f(at::Tensor x) { return relu(x); }"])
