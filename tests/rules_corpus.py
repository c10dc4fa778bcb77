"""Submissions for the rules: honest ones that must pass, and hacks that must be named at the line marked HERE."""

HEAD = """
import ctypes, functools, operator
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline

@triton.autotune(configs=[triton.Config({"BLOCK": 1024})], key=["n"])
@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i, i < n)) * tl.load(y + i, i < n), i < n)

ext = load_inline(name="ext", cpp_sources="torch::Tensor f(torch::Tensor x);", cuda_sources="__global__ void k() {}")

def launch(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel())
    return out
"""

HONEST = {
    "triton with a lambda for the grid": """
class ModelNew(nn.Module):
    def forward(self, x, y):
        assert x.is_cuda and x.shape == y.shape, f"{x.shape} and {y.shape}"
        out = torch.empty_like(x)
        n = x.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        kernel[grid](x, y, out, n)
        return out.view(x.shape)
""",
    "extension function": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x.contiguous())
""",
    "extension kept on the model": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ext = ext
    def forward(self, x):
        return self.ext.f(x)
""",
    "extension built at the first call": """
_ext = None
def get():
    global _ext
    if _ext is None:
        _ext = load_inline(name="late", cpp_sources="", cuda_sources="")
    return _ext
class ModelNew(nn.Module):
    def forward(self, x):
        return get().f(x)
""",
    "extension in a cache with a lookup error": """
_cache = {}
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            mod = _cache["f"]
        except KeyError:
            mod = _cache["f"] = load_inline(name="late", cpp_sources="", cuda_sources="")
        return mod.f(x)
""",
    "weights held by nn.Linear": """
class ModelNew(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.scale = 1 / i ** 0.5
    def forward(self, x):
        B, x = x.shape[0], x.contiguous()
        out = torch.empty(B * 2, self.fc.out_features, device=x.device, dtype=x.dtype)
        kernel[(B // 2 + 1,)](x, self.fc.weight.t(), out, B * self.scale)
        return out
""",
    "weights in a ParameterList": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(3, 3) * 0.02) for _ in range(4)])
        nn.init.kaiming_uniform_(self.weights[0], a=5 ** 0.5)
    def forward(self, x):
        for index, weight in enumerate(self.weights):
            x = launch(x, weight) if index * 2 < 8 else ext.f(x)
        return x
""",
    "weights packed in the constructor": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("packed", (conv.weight * 2).sum(dim=0).contiguous())
    def forward(self, x):
        return launch(x, self.packed)
""",
    "weights packed by views and casts at the first call": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(8, 8))
        self._packed = None
    def _pack(self):
        if self._packed is None:
            self._packed = self.weight.detach().to(torch.float16).permute(1, 0).contiguous()
        return self._packed
    def forward(self, x):
        return launch(x, self._pack())
""",
    "views, slices, casts and chunks": """
class ModelNew(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        b = b[..., 1:, None].expand(-1, -1, 4).half().transpose(0, 1).flatten(1).unsqueeze(0)
        c = torch.reshape(a, (-1,)).view_as(a).squeeze()
        return launch(c, b).reshape(x.size(0), -1).type_as(x)
""",
    "sizes from several outputs of a helper": """
def prepare(x):
    return torch.zeros(x.shape, device=x.device), x.numel(), x.stride(0)
class ModelNew(nn.Module):
    def forward(self, x):
        out, n, stride = prepare(x)
        kernel[((n * 2 + stride - 1) // stride,)](x, x, out, n % 7)
        return out
""",
    "a submodule of one's own": """
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Gelu(), nn.Flatten(), Gelu())
    def forward(self, x):
        return self.layers(x)
""",
    "an autograd function": """
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return launch(x, y)
    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None
class ModelNew(nn.Module):
    def forward(self, x, y):
        return Op.apply(x, y)
""",
    "an operator registered with torch.library": """
@torch.library.custom_op("mine::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return launch(x, x)
@op.register_fake
def _(x):
    return x + 0
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.op(x)
""",
    "an operator registered from C++": """
load_inline(name="lib", cpp_sources="TORCH_LIBRARY(mylib, m) { m.def(f); }", is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mylib.f.default(x)
""",
    "ctypes": """
lib = ctypes.CDLL("./libk.so")
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), x.numel() * x.element_size())
        return out
""",
    "NumPy pointers": """
lib = ctypes.CDLL("./libk.so")
class ModelNew(nn.Module):
    def forward(self, x):
        out = np.empty(tuple(x.shape), dtype=np.float32)
        lib.run(x.numpy().ctypes.data_as(ctypes.c_void_p), out.ctypes.data, int(np.prod(x.shape)))
        return torch.from_numpy(out)
""",
    "streams, events and devices": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
    def forward(self, x):
        with torch.cuda.device(x.device), torch.no_grad(), torch.cuda.stream(self.side):
            event = torch.cuda.Event()
            self.side.wait_stream(torch.cuda.current_stream())
            out = ext.f(x, torch.cuda.current_stream().cuda_stream)
            event.record(self.side)
            event.synchronize()
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        return out if sms * 2 > 3 else ext.g(x)
""",
    "a graph of one's own kernels": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.empty(8, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = ext.f(self.x)
    def forward(self, x):
        self.x.copy_(x)
        self.graph.replay()
        return self.out
""",
    "trigger words in comments, strings and docstrings": '''
class ModelNew(nn.Module):
    """Replaces torch.matmul(x, y), F.relu(x) and x @ y; try: pass except: pass; class ModelNew(Model)."""
    def forward(self, x):
        # return torch.softmax(x, -1)  # not torch.nn.functional
        note = "x.sum() / torch.exp(x) -> at::matmul"
        print("%s for %s" % (note, tuple(x.shape)))
        return ext.f(x)
''',
    "an error is raised again": """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.f(x)
        except RuntimeError as error:
            print("failed", error)
            raise ValueError("bad input") from error
""",
    "numbers of the constructor in arithmetic": """
class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.block = 1 << (dim - 1).bit_length()
    def forward(self, x):
        rows = x.numel() // self.dim
        out = x.new_empty(x.shape)
        kernel[(rows,)](x, x, out, rows * self.dim + max(self.block, 4) - abs(self.dim), BLOCK=self.block)
        return out
""",
    "a number as parameter of forward": """
class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, s: float, k=2):
        return ext.f(a, s * 2 + k ** 2)
""",
    "a loop with two buffers": """
class ModelNew(nn.Module):
    def forward(self, x):
        src, dst = x.clone(), torch.empty_like(x)
        step = 1
        while step < x.size(-1):
            kernel[(1,)](src, src, dst, step)
            src, dst = dst, src
            step *= 2
        return src
""",
    "several outputs, by dict and by tuple": """
class ModelNew(nn.Module):
    def forward(self, x):
        outs = {"mean": torch.empty(3), "var": torch.empty(3)}
        kernel[(1,)](x, outs["mean"], outs["var"], 3)
        return outs["mean"], ext.f(x)[0], [o.contiguous() for o in outs.values()]
""",
    "inputs in a list": """
class ModelNew(nn.Module):
    def forward(self, xs: list[torch.Tensor]):
        sizes = sum(x.numel() for x in xs)
        longest = max(x.size(0) for x in xs)
        return ext.f(xs, sizes * longest)
""",
    "kernels chosen from a table": """
KERNELS = {torch.float32: ext.f, torch.float16: ext.g}
class ModelNew(nn.Module):
    def forward(self, x):
        return KERNELS[x.dtype](x)
""",
    "partial and cached helpers": """
@functools.lru_cache(maxsize=None)
def blocks(n):
    return triton.next_power_of_2(n) * 2
run = functools.partial(launch)
class ModelNew(nn.Module):
    def forward(self, x, y):
        blocks(x.shape[-1])
        return run(x, y)
""",
    "a base class of one's own": """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
    def run(self, x):
        return launch(x, self.weight)
class ModelNew(Base):
    def forward(self, x):
        return super().run(x)
""",
    "torch computes in code that forward never reaches": """
def reference(x):
    return torch.softmax(x @ x, -1)
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
class ModelNew(nn.Module):
    def check(self, x):
        return torch.allclose(self(x), reference(x))
    def forward(self, x):
        return ext.f(x)
if __name__ == "__main__":
    print(reference(torch.ones(2, 2)) @ torch.ones(2))
""",
}

HACKS = {
    "a torch function": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # HERE
""",
    ),
    "the matmul operator": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return x @ w  # HERE
""",
    ),
    "F": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return F.softmax(ext.f(x), -1)  # HERE
""",
    ),
    "a function imported under another name": (
        "torch_compute",
        """
from torch.nn.functional import gelu as fast
class ModelNew(nn.Module):
    def forward(self, x):
        return fast(x)  # HERE
""",
    ),
    "a tensor method": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x).sum(-1)  # HERE
""",
    ),
    "arithmetic": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        y = y * 2 + x  # HERE
        return y
""",
    ),
    "arithmetic in place": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        out = ext.f(x)
        out += x  # HERE
        return out
""",
    ),
    "a comparison": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x > 0)  # HERE
""",
    ),
    "a layer made in the constructor": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return ext.f(self.fc(x))  # HERE
""",
    ),
    "a Sequential of layers": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    def forward(self, x):
        return self.net(x)  # HERE
""",
    ),
    "layers in a list, looked up by name": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.append(nn.Linear(3, 4))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # HERE
        return ext.f(x)
""",
    ),
    "a layer made while forward runs": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return nn.ReLU()(ext.f(x))  # HERE
""",
    ),
    "a helper function": (
        "torch_compute",
        """
def helper(t):
    return torch.exp(t)  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(helper(x))
""",
    ),
    "a method of the model": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def _finish(self, t):
        return t.mean()  # HERE
    def forward(self, x):
        return self._finish(ext.f(x))
""",
    ),
    "a lambda on the model": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = lambda t: t.sigmoid()  # HERE
    def forward(self, x):
        return self.act(ext.f(x))
""",
    ),
    "getattr with a name in pieces": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return getattr(torch, 'mat' + 'mul')(x, w)  # HERE
""",
    ),
    "getattr with a hidden name": (
        "torch_compute",
        """
NAME = 'lumtam'[::-1]
class ModelNew(nn.Module):
    def forward(self, x, w):
        return getattr(torch, NAME)(x, w)  # HERE
""",
    ),
    "torch's dictionary": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.__dict__['matmul'](x, w)  # HERE
""",
    ),
    "an operator of torch.ops": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.ops.aten.mm.default(x, w)  # HERE
""",
    ),
    "an own operator that computes with torch": (
        "torch_compute",
        """
@torch.library.custom_op('mine::op', mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.op(x)
""",
    ),
    "a compiled torch function": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.compile(F.softmax)
    def forward(self, x):
        return self.f(x, -1)  # HERE
""",
    ),
    "a graph of torch operators": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.empty(3)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = torch.relu(self.x)  # HERE
    def forward(self, x):
        self.x.copy_(x)
        self.graph.replay()
        return self.out
""",
    ),
    "a kernel that is not launched": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, y):
        if x.numel() < 0:
            return launch(x, y)
        return torch.exp(x) * y  # HERE
""",
    ),
    "a kernel launched on a dummy": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, y):
        t = torch.zeros(1)
        kernel[(1,)](t, t, t, 1)
        return x.exp()  # HERE
""",
    ),
    "a branch on the mode": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        if self.training:
            return F.gelu(x)  # HERE
        return ext.f(x)
""",
    ),
    "a function that is only passed around": (
        "torch_compute",
        """
def apply(f, *args):
    return f(*args)  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return apply(torch.tanh, ext.f(x))
""",
    ),
    "map": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return list(map(torch.tanh, [x]))[0]  # HERE
""",
    ),
    "the module operator": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return operator.matmul(x, w)  # HERE
""",
    ),
    "NumPy": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.from_numpy(np.matmul(x.numpy(), w.numpy()))  # HERE
""",
    ),
    "a method by its special name": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return x.__matmul__(w)  # HERE
""",
    ),
    "an unbound method": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.Tensor.softmax(x, -1)  # HERE
""",
    ),
    "a parameter with a false annotation": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x: int, y: float):
        return ext.f(x) * 2 if y.shape else x  # HERE
""",
    ),
    "a gather by index": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, i):
        return ext.f(x[:, i])  # HERE
""",
    ),
    "forward assigned from outside": (
        "torch_compute",
        """
def run(self, x):
    return torch.relu(x)  # HERE
class ModelNew(nn.Module):
    pass
ModelNew.forward = run
""",
    ),
    "a call that goes around forward": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __call__(self, x):
        return torch.relu(x)  # HERE
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "a hook": (
        "torch_compute",
        """
def hook(module, args, out):
    return torch.relu(out)  # HERE
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(hook)
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "a property": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
    @property
    def packed(self):
        return self.w.softmax(0)  # HERE
    def forward(self, x):
        return launch(x, self.packed)
""",
    ),
    "the pasted reference": (
        "torch_compute",
        """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)  # HERE
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ref = Model()
    def forward(self, x):
        return self.ref(x)
""",
    ),
    "inheritance from a layer": (
        "torch_compute",
        """
class ModelNew(nn.Linear):
    def forward(self, x):
        return super().forward(x)  # HERE
""",
    ),
    "a decorator that only looks like Triton": (
        "torch_compute",
        """
class triton:
    jit = staticmethod(lambda f: f)
@triton.jit
def k(x):
    return torch.relu(x)  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return k(x)
""",
    ),
    "eval": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(eval('x + 1'))  # HERE
""",
    ),
    "torch by import_module": (
        "torch_compute",
        """
import importlib
t = importlib.import_module('torch')
class ModelNew(nn.Module):
    def forward(self, x):
        return t.relu(x)  # HERE
""",
    ),
    "a star import": (
        "torch_compute",
        """
from torch import *
class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x, -1)  # HERE
""",
    ),
    "a fallback to torch": (
        "fallback",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.f(x)
        except Exception:  # HERE
            return torch.relu(x)
""",
    ),
    "a fallback to a helper, in a helper": (
        "fallback",
        """
def safe(x, y):
    try:
        out = launch(x, y)
    except:  # HERE
        out = x.clone()
    return out
class ModelNew(nn.Module):
    def forward(self, x, y):
        return safe(x, y)
""",
    ),
    "the input": (
        "no_kernel",
        """
class ModelNew(nn.Module):
    def forward(self, x):  # HERE
        return x.clone()
""",
    ),
    "zeros": (
        "no_kernel",
        """
class ModelNew(nn.Module):
    def forward(self, x):  # HERE
        return torch.zeros_like(x)
""",
    ),
    "a launch in the constructor only": (
        "no_kernel",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.y = ext.f(torch.ones(3))
    def forward(self, x):  # HERE
        return self.y
""",
    ),
    "no forward": (
        "no_kernel",
        """
class ModelNew(nn.Module):  # HERE
    pass
""",
    ),
    "inheritance from the reference": (
        "inherits_reference",
        """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
class ModelNew(Model):  # HERE
    pass
""",
    ),
    "inheritance through another class": (
        "inherits_reference",
        """
class Middle(Model):
    pass
class ModelNew(Middle):  # HERE
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "an import of the reference": (
        "inherits_reference",
        """
from reference import Model as M  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "a value from the round before": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        last = 0
        for i in range(3):
            twice = last * 2  # HERE
            last = ext.f(x, twice)
        return last
""",
    ),
    "a number that is asked for its shape": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, y: float):
        n = y.shape
        return ext.f(x, y * 2)  # HERE
""",
    ),
    "a static method": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    @staticmethod
    def act(t):
        return t.sum()  # HERE
    def forward(self, x):
        return self.act(ext.f(x))
""",
    ),
    "a function with the name of the method that calls it": (
        "torch_compute",
        """
def run(t):
    return torch.relu(t)  # HERE
class ModelNew(nn.Module):
    def run(self, x):
        return run(x)
    def forward(self, x):
        return self.run(ext.f(x))
""",
    ),
    "a tensor out of a tuple": (
        "torch_compute",
        """
def prepare(x):
    return x.numel(), torch.zeros_like(x)
class ModelNew(nn.Module):
    def forward(self, x):
        n, out = prepare(x)
        kernel[(n * 2,)](x, x, out, n)
        return out * 2  # HERE
""",
    ),
    "torch's own operator under a registration of it": (
        "torch_compute",
        """
load_inline(name="lib", cpp_sources="TORCH_LIBRARY_FRAGMENT(aten, m) {}", is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.aten.relu(x)  # HERE
""",
    ),
    "an import of the environment": (
        "inherits_reference",
        """
from kevin_env.problem import load_problem  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    ),
}
