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
    "forward wrapped by an own decorator": """
def contiguous(method):
    @functools.wraps(method)
    def wrapped(self, x):
        return method(self, x if x.is_contiguous() else x.contiguous())
    return wrapped
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(8)
        self.ext = ext
    @contiguous
    def forward(self, x):
        return self.ext.f(x, self.ln.weight, self.ln.eps)
""",
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
    "modules in an OrderedDict of pairs": """
from collections import OrderedDict
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(OrderedDict([("flat", nn.Flatten()), ("gelu", Gelu())]))
    def forward(self, x):
        return self.layers(x)
""",
    "modules in an OrderedDict of keywords": """
import collections as c
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(c.OrderedDict(flat=nn.Flatten(), gelu=Gelu()))
    def forward(self, x):
        return self.layers.forward(x)
""",
    "an entry of a ModuleDict as attribute": """
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.ModuleDict([["a", Gelu()]])
    def forward(self, x):
        return self.m.a(x)
""",
    "an entry of a ModuleDict by key": """
from collections import OrderedDict
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.ModuleDict(OrderedDict({"a": Gelu()}))
    def forward(self, x):
        return self.m["a"](x)
""",
    "entries of dictionaries by key": """
class Gelu(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.ModuleDict({"fc": nn.Linear(3, 4), "gelu": Gelu()})
        self.sizes = dict(weight=self.m.fc.weight, rows=4)
    def forward(self, x):
        kept = {"out": torch.empty_like(x), "n": x.numel()}
        kernel[(kept["n"] * self.sizes["rows"],)](x, self.sizes["weight"], kept["out"], kept["n"])
        return self.m["gelu"](kept["out"])
""",
    "a namespace": """
from types import SimpleNamespace
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = SimpleNamespace(f=ext.f, weight=nn.Parameter(torch.ones(3)), n=2)
    def forward(self, x):
        return self.own.f(x, self.own.weight, self.own.n * 2)
""",
    "a list of tensors or one of them": """
def sizes(x):
    return x.shape[0] * x.size(1) if x.is_contiguous() else len(x) * 2
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, sizes(x if x.is_cuda else [x]))
""",
    "torch.nn.Module under the name of the reference": """
from torch.nn import Module as Model
class Base(Model):
    def forward(self, x):
        return ext.f(x)
class ModelNew(Base):
    pass
""",
    "threads": """
import threading
class ModelNew(nn.Module):
    def run(self, stream, x, *, out, n):
        with torch.cuda.stream(stream):
            kernel[(n * 2,)](x, x, out, n)
    def forward(self, x):
        out = torch.empty_like(x)
        threads = []
        for a, b in zip(x.chunk(2), out.chunk(2)):
            kwargs = {"out": b, "n": a.numel()}
            threads.append(threading.Thread(target=self.run, args=(torch.cuda.Stream(), a), kwargs=kwargs, daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()
        return out
""",
    "a thread class of one's own": """
from threading import Thread
class Worker(Thread):
    def __init__(self, x):
        super().__init__()
        self.x = x
    def run(self):
        self.y = launch(self.x, self.x)
class ModelNew(nn.Module):
    def forward(self, x):
        worker = Worker(x)
        worker.start()
        worker.join()
        return worker.y
""",
    "a pool that maps": """
from concurrent.futures import ThreadPoolExecutor
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(2)
    def run(self, x, out, n):
        kernel[(n * 2,)](x, x, out, n)
    def forward(self, x):
        out = torch.empty_like(x)
        list(self.pool.map(self.run, x.chunk(2), out.chunk(2), [x.numel() // 2] * 2))
        return out
""",
    "futures of a pool": """
from concurrent import futures
def blocks(n):
    return n * 2
class ModelNew(nn.Module):
    def forward(self, x):
        with futures.ThreadPoolExecutor() as pool:
            n = pool.submit(blocks, x.numel()).result() + 1
            waiting = {pool.submit(launch, part, y=part): n for part in x.chunk(2)}
            futures.wait(waiting)
        out = torch.empty_like(x)
        return ext.f([future.result() for future in waiting], out)
""",
    "a class of another name": """
class Fast(nn.Module):
    def forward(self, x):
        return ext.f(x)
ModelNew = Fast
""",
    "a class in a branch": """
if torch.cuda.is_available():
    class ModelNew(nn.Module):
        def forward(self, x):
            return ext.f(x)
""",
    "streams, events, sizes and generators of torch itself": """
class ModelNew(nn.Module):
    def forward(self, x):
        event, stream = torch.Event(device="cuda"), torch.Stream(device="cuda")
        event.record()
        stream.wait_event(event)
        seed = torch.Generator(device=x.device).manual_seed(3).initial_seed()
        return ext.f(x, seed + torch.Size([2, 3]).numel() * 2)
""",
    "super with two arguments": """
class Base(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(Base):
    def __init__(self):
        super(ModelNew, self).__init__()
    def forward(self, x):
        return super(ModelNew, self).forward(x.contiguous())
""",
    "what a module gives of itself": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.packed = nn.MultiheadAttention(8, 2), {}
    def forward(self, x):
        device, count = next(self.parameters()).device, sum(p.numel() for p in self.parameters())
        for name, module in self.named_modules():
            if isinstance(module, nn.MultiheadAttention):
                self.packed[name] = module.out_proj.weight.t().contiguous()
        out = self.get_submodule("attn").out_proj
        return ext.f(x.to(device), self.attn.in_proj_weight, out.bias.detach(), [*self.packed.values()], count * 2)
""",
    "a comparison with None by its value": """
class ModelNew(nn.Module):
    def forward(self, x, bias=None):
        return ext.f(x, bias) if bias != None else ext.g(x)
""",
    "numbers from functions in C++": """
mine = load_inline(name="mine", cpp_sources='''
int64_t run_it(torch::Tensor x, torch::Tensor y) { return 0; }
static int64_t bytes_of(torch::Tensor x) { return x.numel(); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run_it", &run_it); m.def("workspace", &bytes_of, "bytes"); }
''')
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(mine.workspace(x) // 4 + 1, device=x.device)
        status = mine.run_it(x, out)
        if status != 0:
            raise RuntimeError(f"failed: {status}")
        return out
""",
    "operators in a namespace that is a macro or filled in": """
SOURCE = 'TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("f", f); }'.replace("TORCH_EXTENSION_NAME", "mylib")
load_inline(name="mylib", cpp_sources=SOURCE, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mylib.f(x)
""",
    "NVIDIA's own bindings": """
from cuda.bindings import driver
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = build()
    def forward(self, x):
        out = torch.empty_like(x)
        arguments = np.array([x.data_ptr(), out.data_ptr()], dtype=np.uint64)
        driver.cuLaunchKernel(self.kernel, 1, 1, 1, 256, 1, 1, 0, 0, arguments.ctypes.data, 0)
        return out
""",
    "a library by its file name": """
lib = ctypes.cdll["./libk.so"]
class ModelNew(nn.Module):
    def forward(self, x):
        out = np.require(np.empty(tuple(x.shape), np.float32), requirements="C")
        lib.run(x.data_ptr(), out.ctypes.data)
        return torch.from_numpy(np.expand_dims(out, 0)[0])
""",
    "except branches where no kernel fails": """
import os, subprocess, tempfile
def folder():
    try:
        os.makedirs("cache", exist_ok=True)
        return "cache"
    except OSError:
        return tempfile.mkdtemp()
def library():
    try:
        return ctypes.CDLL(folder() + "/k.so")
    except OSError:
        subprocess.check_call(["g++", "k.cpp"])
        return ctypes.CDLL(folder() + "/k.so")
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        library().run(x.data_ptr(), out.data_ptr())
        return out
""",
    "old and rare names": """
from torch.nn.modules.utils import _pair
class ModelNew(nn.Module):
    @torch.jit.unused
    def run(self, x, height):
        y = x.new(x.shape) if x.is_inference() or x._is_view() else torch.IntTensor([height * 2]).to(x.device)
        return ext.f(x, y)
    def forward(self, x, dim=-1, dims=(1, 2)):
        height, width = _pair(3)
        return self.run(x, height * width + dim % 2 + dims[0] * 2)
""",
    "tensors and numbers in one container": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.plans, self.kept = [], {}
    def forward(self, x):
        if not self.plans:
            self.plans.append((torch.empty_like(x), x.numel()))
        out, n = self.plans[0]
        space = self.kept.setdefault(x.device, {})
        if "n" not in space:
            space["out"] = torch.empty_like(x)
            space["n"] = x.numel()
        state = dict(out=out, n=n)
        kernel[(n * 2 + space["n"] * 2 + state.get("n") * 2,)](x, space["out"], state.pop("out"), n)
        return out
""",
    "vector instructions by torch's names": """
mine = load_inline(name="mine", cpp_sources='''
torch::Tensor f(torch::Tensor x) {
    auto v = at::vec::Vectorized<float>::loadu(x.data_ptr<float>());
    at::vec::maximum(v, v.exp()).store(x.data_ptr<float>());
    return x;
}
''')
class ModelNew(nn.Module):
    def forward(self, x):
        return mine.f(x.clone())
""",
    "the larger of two tensors by a number": """
class ModelNew(nn.Module):
    def forward(self, a, b):
        larger = max((a, b), key=lambda t: t.numel())
        first, *others = sorted([a, b], key=lambda t: t.shape[0])
        return ext.f(larger, first, others)
""",
}

HACKS = {
    "forward wrapped by an own decorator": (
        "torch_compute",
        """
def noted(method):
    @functools.wraps(method)
    def wrapped(self, x):
        return method(self, ext.f(x))
    return wrapped
class ModelNew(nn.Module):
    @noted
    def forward(self, x):
        return x.softmax(-1)  # HERE
""",
    ),
    "a partial function as forward, which is no method": (
        "torch_compute",
        """
def whole(x):
    return ext.f(x).softmax(-1)  # HERE
class ModelNew(nn.Module):
    forward = functools.partial(whole)
""",
    ),
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
    "a fallback that waits first": (
        "fallback",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.f(x)
        except Exception:  # HERE
            torch.cuda.synchronize()
            return x.clone()
""",
    ),
    "a function kept on a tensor": (
        "torch_compute",
        """
def work(x):
    return x.relu()  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        x.run = work
        return x.run(ext.f(x))
""",
    ),
    "a function kept on another": (
        "torch_compute",
        """
def work(x):
    return x.relu()  # HERE
def run(x):
    return run.work(ext.f(x))
run.work = work
class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
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
    "the base of a layer under the name of the reference": (
        "inherits_reference",
        """
from torch.nn import Linear as Model
class ModelNew(Model):  # HERE
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "the name of the reference taken back afterwards": (
        "inherits_reference",
        """
class Model(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(Model):  # HERE
    pass
from torch.nn import Module as Model
""",
    ),
    "the reference under another name": (
        "inherits_reference",
        """
from torch.nn import Module as Model
class Model(Model):
    def forward(self, x):
        return ext.f(x)
Base = Model
class ModelNew(Base):  # HERE
    pass
""",
    ),
    "a base that is torch.nn.Module only at times": (
        "inherits_reference",
        """
if torch.cuda.is_available():
    from torch.nn import Module as Model
else:
    Model = load_reference()
class ModelNew(Model):  # HERE
    def forward(self, x):
        return ext.f(x)
""",
    ),
    "layers in an OrderedDict of pairs": (
        "torch_compute",
        """
from collections import OrderedDict
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("fc", nn.Linear(3, 4)), ("act", nn.ReLU())]))
    def forward(self, x):
        return ext.f(self.net(x))  # HERE
""",
    ),
    "layers in an OrderedDict of keywords": (
        "torch_compute",
        """
from collections import OrderedDict
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.ModuleDict(OrderedDict(fc=nn.Linear(3, 4)))
    def forward(self, x):
        return ext.f(self.net["fc"](x))  # HERE
""",
    ),
    "a layer of a ModuleDict as attribute": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.ModuleDict([("fc", nn.Linear(3, 4))])
    def forward(self, x):
        return ext.f(self.net.fc(x))  # HERE
""",
    ),
    "a layer of a Sequential by a name that is not written out": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential()
        self.net.add_module("fc", nn.Linear(3, 4))
    def forward(self, x, name="fc"):
        return ext.f(getattr(self.net, name)(x))  # HERE
""",
    ),
    "the forward of a Sequential": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4))
    def forward(self, x):
        return ext.f(self.net.forward(x))  # HERE
""",
    ),
    "a weight of a ParameterDict as attribute": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterDict(dict(w=nn.Parameter(torch.ones(3))))
    def forward(self, x):
        return ext.f(self.weights.w * 2)  # HERE
""",
    ),
    "layers in a dictionary or in pairs": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self, flat=True):
        super().__init__()
        self.net = nn.ModuleDict({"a": nn.Flatten()} if flat else [("a", nn.Linear(3, 4))])
    def forward(self, x):
        return ext.f(self.net["a"](x))  # HERE
""",
    ),
    "a tensor or a list of it": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x) if x.is_cuda else [x]
        return y.view(-1) * 2  # HERE
""",
    ),
    "a tensor out of pairs": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        named = dict([("x", x)])
        return ext.f(named["x"] * 2)  # HERE
""",
    ),
    "a thread beside a kernel": (
        "torch_compute",
        """
import threading
class ModelNew(nn.Module):
    def run(self, x, out):
        out.copy_(torch.softmax(x, 1))  # HERE
    def forward(self, x):
        out = ext.f(x)
        thread = threading.Thread(target=self.run, args=(x, out))
        thread.start()
        thread.join()
        return out
""",
    ),
    "a thread that multiplies": (
        "torch_compute",
        """
from threading import Thread
class ModelNew(nn.Module):
    def forward(self, x):
        out = ext.f(x)
        def run(n, y, factor):
            y *= factor  # HERE
        Thread(None, run, "name", [n for n in (1, out)], dict(factor=2)).start()
        return out
""",
    ),
    "a timer": (
        "torch_compute",
        """
import threading
class ModelNew(nn.Module):
    def forward(self, x):
        out = ext.f(x)
        timer = threading.Timer(0, lambda y: y * 2, (out,))  # HERE
        timer.start()
        return out
""",
    ),
    "a thread class of one's own that computes": (
        "torch_compute",
        """
import threading
class Worker(threading.Thread):
    def run(self):
        self.y = torch.softmax(self.x, 1)  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        worker = Worker()
        worker.x = ext.f(x)
        worker.start()
        return worker.y
""",
    ),
    "a thread that is never started": (
        "no_kernel",
        """
import threading
class ModelNew(nn.Module):
    def forward(self, x):  # HERE
        thread = threading.Thread(target=launch, args=(x, x))
        thread.daemon = thread.is_alive()
        return x.clone()
""",
    ),
    "a pool that is handed torch": (
        "torch_compute",
        """
from concurrent.futures import ThreadPoolExecutor
class ModelNew(nn.Module):
    def forward(self, x):
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(torch.softmax, ext.f(x), -1)  # HERE
        return future.result()
""",
    ),
    "what a future gives": (
        "torch_compute",
        """
import concurrent.futures as cf
class ModelNew(nn.Module):
    def forward(self, x):
        pool = cf.ThreadPoolExecutor(1)
        waiting = {pool.submit(launch, x, x): 0}
        futures = [pool.submit(ext.f, x)]
        for future in cf.as_completed(futures):
            y = future.result() * 2  # HERE
        return y
""",
    ),
    "futures as keys": (
        "torch_compute",
        """
import concurrent.futures as cf
class ModelNew(nn.Module):
    def act(self, x):
        return x.sigmoid()  # HERE
    def forward(self, x):
        pool = cf.ThreadPoolExecutor(1)
        futures = {pool.submit(self.act, part): n for n, part in enumerate(ext.f(x).chunk(2))}
        return ext.f([future.result() for future in cf.as_completed(futures)])
""",
    ),
    "what a pool maps": (
        "torch_compute",
        """
from concurrent.futures import ThreadPoolExecutor as Pool
class ModelNew(nn.Module):
    def forward(self, x):
        with Pool(2) as pool:
            parts = list(pool.map(launch, x.chunk(2), x.chunk(2)))
        return parts[0] + parts[1]  # HERE
""",
    ),
    "a pool of multiprocessing": (
        "torch_compute",
        """
from multiprocessing.pool import ThreadPool
def scale(n, y):
    return y * n  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        with ThreadPool(2) as pool:
            return pool.starmap(scale, [(2, ext.f(x))])[0]
""",
    ),
    "a call on a pool of multiprocessing": (
        "torch_compute",
        """
import multiprocessing.pool as mp
class ModelNew(nn.Module):
    def forward(self, x):
        pool = mp.ThreadPool(2)
        late = pool.apply_async(launch, (x, x))
        return pool.apply(launch, (late.get(), x)) * 2  # HERE
""",
    ),
    "a class of another name that computes": (
        "torch_compute",
        """
class Plain(nn.Module):
    def forward(self, x):
        return ext.f(torch.relu(x))  # HERE
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
ModelNew = Plain
""",
    ),
    "a class that computes in one of two branches": (
        "torch_compute",
        """
class Plain(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # HERE
if torch.cuda.is_available():
    class ModelNew(nn.Module):
        def forward(self, x):
            return ext.f(x)
else:
    ModelNew = Plain
""",
    ),
    "no kernel in one of two branches": (
        "no_kernel",
        """
if torch.cuda.is_available():
    class ModelNew(nn.Module):
        def forward(self, x):
            return ext.f(x)
else:
    class ModelNew(nn.Module):
        def forward(self, x):  # HERE
            return x.clone()
""",
    ),
    "the forward of a layer by super with two arguments": (
        "torch_compute",
        """
class ModelNew(nn.Linear):
    def forward(self, x):
        return ext.f(super(ModelNew, self).forward(x))  # HERE
""",
    ),
    "layers that the module gives of itself": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
    def forward(self, x):
        for name, module in self.named_children():
            x = module(ext.f(x))  # HERE
        return x
""",
    ),
    "a layer within a layer": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2)
    def forward(self, x):
        return self.attn.out_proj(ext.f(x))  # HERE
""",
    ),
    "parameters that the module gives of itself": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        weight = next(self.parameters())
        return ext.f(x, weight * 2)  # HERE
""",
    ),
    "arithmetic on tensors from C++": (
        "torch_compute",
        """
mine = load_inline(name="mine", cpp_sources='''
__global__ void scale(float* x) {}
torch::Tensor scale_cuda(torch::Tensor x) { return scale(x); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale_cuda); }
void run(torch::Tensor x);
''')
class ModelNew(nn.Module):
    def forward(self, x):
        return mine.scale(x) * 2  # HERE
""",
    ),
    "torch's own operators beside a registration": (
        "torch_compute",
        """
load_inline(name="lib", cpp_sources="TORCH_LIBRARY(mylib, m) {}", is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mylib.f(torch.ops.mkldnn._linear_pointwise(x))  # HERE
""",
    ),
    "an operator's name without a registration": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(torch.ops.other.f(x))  # HERE
""",
    ),
    "a fallback through a helper that was read before": (
        "fallback",
        """
def run(x):
    return ext.f(x)
class ModelNew(nn.Module):
    def forward(self, x):
        y = run(x)
        try:
            return run(x)
        except RuntimeError:  # HERE
            return y.clone()
""",
    ),
    "a function put into a dictionary with others": (
        "torch_compute",
        """
TABLE = {"f": ext.f}
TABLE.update({"g": torch.relu})
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(TABLE["g"](x))  # HERE
""",
    ),
    "a function put into a dictionary by its name": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        table = {"f": ext.f}
        table["h"] = torch.tanh  # HERE
        return table["f"](table.get("h")(x))
""",
    ),
    "what is taken instead of an entry": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        table = {"f": ext.f}
        return ext.f(table.get("g", torch.tanh)(x))  # HERE
""",
    ),
    "the largest row": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(max(x, key=lambda row: ext.g(row)))  # HERE
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
