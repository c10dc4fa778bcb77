"""Which code counts as code that was submitted before."""

import ast
import time

import pytest

from kevin_env.meaning import meaning_of

SIMILAR = """
a[1:]
a[:1]
a[::1]
f(a, *b)
f(*a, b)
f(b=a)
f(a, **b)
{**a}
{None: a}
x = 1
x = 1.0
x = True
x = "1"
x = b"1"
x = ...
x = Ellipsis
x: 1
global a, b
global b, a
lambda a, b=1: 0
lambda a, *, b=1: 0
lambda *, a, b=1: 0
lambda *, a=1, b: 0
lambda *a, b=1: 0
lambda **a: 0
(a + b) * c
a + b * c
not (a < b)
(not a) < b
a < b < c
(a < b) < c
return
return a
return None
yield a
yield from a
from . import a
from .. import a
from .a import a
import a as b
"""


def test_code_that_looks_alike_and_says_something_else_has_another_meaning() -> None:
    codes = [f"def f():\n    {line}\n" for line in SIMILAR.strip().splitlines()]
    codes += ["if a:\n    b\nelse:\n    c\n", "if a:\n    b\n    c\n", "if a:\n    b\nc\n"]
    assert (
        len({meaning_of(code) for code in codes})
        == len({ast.dump(ast.parse(code)) for code in codes})
        == len(codes)
    )


def test_comments_and_layout_mean_nothing() -> None:
    one, other = (
        "def f(a, b):\n    return a + b  # the sum\n",
        "def f(a,\n      b):\n\n  return (a+b)",
    )
    assert meaning_of(one) == meaning_of(other) != meaning_of(other + "\nf")


CUDA = '''"""Adds."""
SOURCE = """
#include <torch/extension.h>
#define N 4
__constant__ float w[N];
struct Pair { float low; float high; };
__global__ void add(const float* __restrict__ x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x; float sum = 0; // one
  if (i < n) y[i] = x[i] + sum - -w[0];
}
"""
module = torch.utils.cpp_extension.load_inline(name="first", cuda_sources=SOURCE)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Calls it."""
        return module.add(x)
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// one", "// another"),
        ("// one", "/* y[i] = 0; */"),
        ("x[i] + sum", "x[i]+sum"),
        ("if (i < n) y", "if (i < n)\n    y"),
        ("#define N 4", "#define  N 4  // four"),
        ('"first"', '"second"'),
        ('"""Adds."""', '"""Adds quickly."""'),
        ('"""Adds."""\n', ""),
        ('        """Calls it."""\n', ""),
        ("sum", "total"),
        ("const int i = ", "const int at = "),
        ("module = ", "# a comment\nmodule = "),
    ],
)
def test_what_computes_nothing_means_nothing(old: str, new: str) -> None:
    changed = CUDA.replace(old, new)
    if new == "const int at = ":
        changed = changed.replace("(i < n)", "(at < n)").replace("[i]", "[at]")
    assert changed != CUDA and meaning_of(changed) == meaning_of(CUDA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- -w", "--w"),
        ("i < n", "i <= n"),
        ("float sum = 0", "double sum = 0"),
        ("y[i] = x[i]", "x[i] = y[i]"),
        ("blockDim.x + threadIdx.x", "gridDim.x + threadIdx.x"),
        ("#define N 4", "#define N 5"),
        ("#define N 4", "#define M 4"),
        ("w[N]", "v[N]"),
        ("float low", "float least"),
        ("void add", "void sub"),
        ("module.add", "module.sub"),
        ("const float*", "const double*"),
        ("x[i] + sum", "x[i] + summ"),
        ("float sum = 0; // one", "float sum = 0; // one\n  sum = 1;"),
    ],
)
def test_what_may_compute_something_else_is_new(old: str, new: str) -> None:
    """Above all a repaired name, which must be judged."""
    code = CUDA.replace("- -w", "+ pair.low - -w") if "low" in old else CUDA
    changed = code.replace(old, new, 1)
    assert changed != code and meaning_of(changed) != meaning_of(code)


INLINE = '''NAME = "first"
CPP = "void run(int64_t x, int64_t n);"
CUDA = """
__device__ float twice(float v) { return 2 * v; }
__global__ void double_all(float* x, int n) {
  int i = threadIdx.x; if (i < n) x[i] = twice(x[i]);
}
void run(int64_t x, int64_t n) { double_all<<<1, 256>>>((float*)x, n); }
"""
module = load_inline(name=NAME, cpp_sources=CPP, cuda_sources=CUDA, functions=["run"])
'''


def test_functions_that_nothing_else_names_and_any_name_of_an_extension_mean_nothing() -> None:
    for old, new in (
        ("double_all", "scale"),
        ("twice", "by_two"),
        ('"first"', '"second"'),
        ("name=NAME", 'name=f"first_{2}"'),
    ):
        changed = INLINE.replace(old, new)
        if new.startswith("name="):
            changed, one = (
                changed.replace('NAME = "first"\n', ""),
                INLINE.replace('NAME = "first"\n', ""),
            )
            assert meaning_of(changed) == meaning_of(one.replace("name=NAME", 'name="other"'))
        else:
            assert meaning_of(changed) == meaning_of(INLINE), new
    positional = INLINE.replace("name=NAME, ", "NAME, ")
    assert meaning_of(positional) == meaning_of(positional.replace('"first"', '"second"'))
    for old, new in (
        ("run", "go"),
        ("twice(x[i])", "thrice(x[i])"),
        ("double_all<<<", "double_al<<<"),
        ("return 2 * v", "return 3 * v"),
    ):
        assert meaning_of(INLINE.replace(old, new)) != meaning_of(INLINE), new
    elsewhere = INLINE.replace('CPP = "', 'CPP = "#define CALL twice(1)\\n')
    renamed = elsewhere.replace("float twice", "float by_two").replace("= twice", "= by_two")
    assert meaning_of(elsewhere) != meaning_of(renamed)
    triton = "def k(x, y):\n    tl.store(y, tl.load(x))\n"
    assert meaning_of(triton) != meaning_of(triton.replace("tl.load(x)", "tl.load(y)"))
    used = INLINE + "print(NAME)\n"
    assert meaning_of(used) != meaning_of(used.replace('"first"', '"second"'))


@pytest.mark.parametrize(
    "declared",
    [
        "float *x = f(1, n), *NAME = x, z;",
        "const unsigned int a[2] = {1, 2}, NAME{3};",
        "__shared__ float a, NAME[4];",
        "for (int i = 0, NAME = n; i < n; i++);",
    ],
)
def test_every_name_of_a_declaration_is_local(declared: str) -> None:
    code = f"""A = "void g(int n) {{ {declared} use(NAME); }}"\n"""
    assert meaning_of(code.replace("NAME", "one")) == meaning_of(code.replace("NAME", "other"))


@pytest.mark.parametrize(
    "used",
    [
        "auto x = f<4, NAME, float>(1);",
        "float a = 1; f(a, NAME);",
        "void f(float a, NAME, float b);",
        "float a[2], b = a[NAME];",
    ],
)
def test_what_a_declaration_uses_is_not_local(used: str) -> None:
    code = f"""A = "void g(int n) {{ {used} }}"\n"""
    assert meaning_of(code.replace("NAME", "half")) != meaning_of(code.replace("NAME", "bfloat"))


def test_a_name_that_two_sources_share_is_its_own() -> None:
    both = 'A = "float table[4];"\nB = "void f() { table[0] = 1; }"\n'
    assert meaning_of(both) != meaning_of(both.replace("float table", "float list"))


def test_a_name_in_a_directive_is_its_own() -> None:
    code = 'A = "#define HEAD list[0]\\nfloat list[4]; float f() { return HEAD; }"\n'
    assert meaning_of(code) != meaning_of(code.replace("float list", "float array"))


@pytest.mark.parametrize("loop", ["int f(", "; a b={", "{a b, ", "*", 'R\\"(', "float *", "(", "#"])
def test_a_reply_that_repeats_itself_is_read_in_linear_time(loop: str) -> None:
    """Tens of thousands of repetitions, as models that loop write them."""
    code = f'A = """{loop * 30_000};"""'
    before = time.process_time()
    meaning_of(code)
    assert time.process_time() - before < 5
