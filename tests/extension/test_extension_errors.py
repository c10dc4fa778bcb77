"""Which errors of the short compile path are final: certain ones come back at once, all others cost
the full build.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import extension_traps
import global_names
import pytest

from kevin_env.extension import build, final
from kevin_env.extension.declarations import cut
from kevin_env.extension.final import final_errors
from kevin_env.judge import Options, Submission
from kevin_env.outcome import CompileError
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem

TRAPS = extension_traps.sources()
MARKED = "// !"
BROUGHT_BY_NVCC = ("time", "clock", "letters", "arguments", "hidden elsewhere")
"""Traps whose names every source in CUDA has."""
CUDA = """#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cfloat>
#define TILE 16
constexpr int WARPS = 4;
struct Pair { float value; int index; };
__device__ __forceinline__ Pair better(Pair a, Pair b) { return a.value > b.value ? a : b; }
__global__ void __launch_bounds__(256) most(const float* __restrict__ x, float* __restrict__ out,
                                            int64_t n) {
    extern __shared__ float shared[];
    __shared__ float tile[TILE][TILE + 1];
    const int64_t index = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    Pair all = {-FLT_MAX, 0};
    float4 v = reinterpret_cast<const float4*>(x)[index];
    #pragma unroll
    for (int d = 16; d; d /= 2)
        all.value = fmaxf(all.value, __shfl_xor_sync(0xffffffff, all.value, d));
    float sum = expf(v.x - INFINITY) + exp(x[0]) + __ldg(x + 1) + tile[0][0] * WARPS;
    if (index < n) atomicAdd(out, sum);
    __syncthreads();
    FAULT  // !
    out[index] = rsqrtf(sum);
}
torch::Tensor launched(torch::Tensor x) {
    auto out = torch::empty_like(x);
    most<<<1, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
"""

PROBLEM = Problem(
    id="twice",
    name="twice",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
""",
)


def told(path: Path, code: str, **given: Any) -> str | None:
    """What is final of an error in the marked line, with nothing else known of it."""
    path.write_text(code)
    line = next(at for at, text in enumerate(code.splitlines(), 1) if text.endswith(MARKED))
    place = f"{path}({line})" if path.suffix == ".cu" else f"{path}:{line}:3"
    output = given.pop(
        "output", "FAILED: x.o \n/usr/bin/c++ -c x\n{place}: error: wrong\n  source line\n  ^\n\n"
    )
    asked = {"folders": [], "flags": []} | given
    return final_errors(output.format(place=place, path=path), [str(path)], **asked)


@pytest.mark.parametrize("name", TRAPS)
def test_what_full_headers_could_cure_is_not_final(name: str, tmp_path: Path) -> None:
    """The traps' functions on the device; on the host nothing is final."""
    (tmp_path / "own.h").write_text(extension_traps.OWN)
    assert told(tmp_path / "main.cpp", TRAPS[name]) is None
    assert told(tmp_path / "main.cu", TRAPS[name]) is None
    on_device = re.sub(r"^(?=(?:int|float) [gh]\()", "__device__ ", TRAPS[name], flags=re.MULTILINE)
    assert name in BROUGHT_BY_NVCC or told(tmp_path / "main.cu", on_device) is None


@pytest.mark.parametrize(
    "fault",
    [
        "y[i] = fmaxf(x[i], missing);", "out[index] = sum", "out[index] = x;",
        "out[index] = fmaxf(sum, 0;", "float w = all.nothing;", "better(all);", "int index = 3 +;",
        "out[tid] = v.q;", "sum = shared[idx];", 'printf_("%d", index);',
    ],
)  # fmt: skip
def test_errors_in_kernels_are_final(fault: str, tmp_path: Path) -> None:
    text = told(tmp_path / "k.cu", CUDA.replace("FAULT", fault))
    assert text is not None and text.count("error: ") == 1 and "source line" in text


@pytest.mark.parametrize(
    "fault",
    [
        "__half h = "
        "1;", "half2 "
            "h;", "c10::Half h = 1;", "sum = std::max(sum, 1.f);", "BLOCK_SIZE;", "nv_bfloat16 b;",
        "cub::Sum "
        "s;", "sum = c10::cuda::compat::max(sum, "
            "1.f);", "thrust::complex<float> c;", "assert(sum > 0);",
        "CUDA_KERNEL_LOOP(i, n) {}", "hexp(sum);", "sum = at::numeric_limits<float>::lowest();",
        "cuComplex c;", "INT_MAX;", "exp<float>(1.f);", "sum = ::exp;", "sum = 1_v;",
    ],
)  # fmt: skip
def test_names_that_headers_could_bring_are_not_final(fault: str, tmp_path: Path) -> None:
    assert told(tmp_path / "k.cu", CUDA.replace("FAULT", fault)) is None


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        (
            '#define CHECKED(c) do { if (!(c)) { printf("bad %s", #c); CUDA_KERNEL_ASSERT(0); } '
            "} while (0)",
            "CHECKED(1);",
        ),
        ('#define CHECKED(c) (note("bad" #c), assert(c))', "CHECKED(1);"),
        ("#define TOTAL value().sum()\nstatic at::Tensor value() { return {}; }", "TOTAL;"),
        ('#define PAT(n) ("/*", at::sum(n), "*/", 1)', "PAT(1);"),
        ('#define own "own.h"\n#include own', "each(1);"),
        ("// some \\ \n/*\n#define each c10::irange\n// */", "each(1);"),
        ("", "auto f = [](int k) -> c10::IValue { return k; };"),
        ("", "auto f = [](int k) -> Py_ssize_t { return k; };"),
        ("", "auto f = [](int k) mutable -> std::bitset<32> { return k; };"),
    ],
)
def test_what_macros_and_lambdas_hide_is_not_final(before: str, fault: str, tmp_path: Path) -> None:
    code = CUDA.replace("#define TILE 16", f"#define TILE 16\n{before}").replace("FAULT", fault)
    assert told(tmp_path / "k.cu", code) is None


def test_what_begins_on_a_functions_last_line_leaves_it_open(tmp_path: Path) -> None:
    code = CUDA.replace("FAULT", "nothing;")
    assert told(tmp_path / "k.cu", code) is not None
    more = code.replace("rsqrtf(sum);\n}\n", "rsqrtf(sum);\n} int h() { return int(L'a'); }\n")
    assert more != code and told(tmp_path / "k.cu", more) is None


@pytest.mark.parametrize(
    "output",
    [
        "FAILED: x.o\n{path}(2): error: no\n{place}: error: wrong\n",
        "FAILED: x.o\n{place}: error #20-D: wrong\n",
        "FAILED: x.o\n{place}: warning: wrong\n",
        "FAILED: x.o\nFAILED: y.o\n{place}: error: wrong\n",
        "FAILED: x.o\n/elsewhere/{place}: error: wrong\n",
        "FAILED: x.o\n{place}: error: wrong\n   line\n   ^\n    detected during instantiation "
        "of f\n",
        "FAILED: x.o\nptxas error   : wrong\n{place}: error: wrong\n",
        "FAILED: x.o\nnvcc fatal   : wrong\n{place}: error: wrong\n",
        "ninja: error: wrong\n",
        "",
    ],
)
def test_only_a_first_error_with_a_place_is_final(output: str, tmp_path: Path) -> None:
    assert told(tmp_path / "k.cu", CUDA.replace("FAULT", "nothing;"), output=output) is None


@pytest.mark.parametrize(
    ("flags", "final"),
    [
        ("-O3 --use_fast_math -DTILES=3 -lineinfo -std=c++17 -gencode=arch=compute_90,code=sm_90", True),
        ("-Xptxas -v -U__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr -DNDEBUG", True),
        ("-Dshared=at::Tensor", False), ("-include torch/nn.h", False), ("-Iown", False),
        ("-Werror", False), ("@flags", False),
    ],
)  # fmt: skip
def test_flags_that_change_words_leave_it_open(flags: str, final: bool, tmp_path: Path) -> None:
    text = told(tmp_path / "k.cu", CUDA.replace("FAULT", "nothing;"), flags=flags.split())
    assert (text is not None) is final


def test_a_header_of_the_submission_by_a_systems_name_leaves_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CUDA.replace("FAULT", "nothing;")
    assert told(tmp_path / "k.cu", code) is not None
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "cfloat").touch()
    assert told(tmp_path / "k.cu", code, folders=[str(tmp_path / "more")]) is None
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert told(tmp_path / "k.cu", code) is None


def test_errors_in_templates_and_headers_are_not_final(tmp_path: Path) -> None:
    code = CUDA.replace("FAULT", "nothing;")
    assert (
        told(tmp_path / "k.cu", code.replace("__global__", "template <typename T> __global__"))
        is None
    )
    (tmp_path / "own.cu").write_text(code)
    output = f"FAILED: x.o\n{tmp_path / 'own.cu'}(21): error: wrong\n"
    assert told(tmp_path / "k.cu", code, output=output) is None


def test_reading_ends_where_brackets_are_missing() -> None:
    assert len(list(cut("int f(int n) {\n  return (n;\n}\nint g() {\n  return 1;\n}\n"))) == 1
    assert len(list(cut("int f(int n) {\n  return (n);\n}\nint g() {\n  return 1;\n}\n"))) == 2


def test_errors_that_full_headers_may_not_have_are_not_told(tmp_path: Path) -> None:
    code = CUDA.replace("FAULT", "nothing;")
    output = (
        "FAILED: x.o\n{place}: error: wrong\n  line\n\n{path}(25): error: short of it\n  "
        "line\n\n2 errors detected\n"
    )
    text = told(tmp_path / "k.cu", code, output=output)
    assert text is not None and "wrong" in text and "short of it" not in text


@pytest.mark.parametrize("verbose", [True, False])
def test_a_certain_error_is_raised_as_torch_raises_it(
    verbose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> bool:
        raise subprocess.CalledProcessError(
            1, ["ninja"], f"FAILED: x.o\n{source}(4): error: wrong\n  line\n".encode()
        )

    source = tmp_path / "main.cu"
    source.write_text(LOOP.replace("FAULT", "y[i] = x;"))
    flags = {key: [] for key in ("extra_include_paths", "extra_cflags", "extra_cuda_cflags")}
    request = {"name": "own", "sources": [str(source)], "verbose": verbose, **flags}
    monkeypatch.setattr(build, "_run", fail)
    with pytest.raises(RuntimeError) as raised:
        build._build_short(request)
    cause = raised.value.__cause__
    assert (
        isinstance(cause, subprocess.CalledProcessError)
        and b"main.cu(4): error: wrong" in cause.output
    )
    assert str(raised.value).startswith("Error building extension 'own'")
    assert ("wrong" in str(raised.value)) is not verbose  # torch has shown it then
    source.write_text(LOOP.replace("FAULT", "y[i] = std::max(x, 1.f);"))
    assert build._build_short(request) is False


LOOP = """#include <torch/extension.h>
__global__ void scale(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        FAULT
    }
}
torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    scale<<<1, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""


@pytest.mark.gpu
def test_a_judge_tells_a_certain_error_like_any_other(pool: LocalPool) -> None:
    outcomes = []
    for headers in ("short", "full"):
        code = LOOP.replace("FAULT", "y[i] = x[i] * missing;")
        submission = f"""
import torch
from torch.utils.cpp_extension import load_inline
declared = "torch::Tensor f(torch::Tensor x);"
built = load_inline("final_{headers}", declared, '''{code}''', functions=["f"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return built.f(x)
"""
        options = Options(device="cuda", headers=headers)
        outcomes.append(pool.submit(PROBLEM, Submission(code=submission), options).result().outcome)
    for outcome in outcomes:
        assert (
            isinstance(outcome, CompileError)
            and outcome.kind == "compiler"
            and outcome.details is not None
        )
        assert (
            'identifier "missing" is undefined' in outcome.message
            and "y[i] = x[i] * missing;" in outcome.details
        )
    assert outcomes[0].message == outcomes[1].message


@pytest.mark.full
@pytest.mark.parametrize("cuda", [True, False])
def test_the_list_has_all_names_of_this_torch(cuda: bool) -> None:
    if cuda and shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    everywhere, in_cpp, macros = map(set, final.groups())
    names, defined = global_names.changed(cuda)
    assert global_names.listed(names) - everywhere - (set() if cuda else in_cpp) == set()
    assert global_names.listed(defined) - macros == set()
