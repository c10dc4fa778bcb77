"""Submissions for the rules: honest ones that must pass, and violations that must be named at the
line marked HERE.

None of them is run.
"""

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
    "a graph that could not be made": """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.out = launch(x, x)
        except RuntimeError:
            torch.cuda.synchronize()
            graph = None
        return launch(x, x)
""",
    "views as a compiler writes them": """
reinterpret_tensor = torch.ops.inductor._reinterpret_tensor
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(torch.ops.inductor._reinterpret_tensor(reinterpret_tensor(x, (3, 4), (4, 1), 0), (12,), (1,), 0))
""",
    "a chain of many methods": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x{MANY})
""".replace("{MANY}", ".view(-1)" * 60),
    "operators of its own class": """
class Op:
    def __init__(self, w):
        self.w = w
    def __matmul__(self, x):
        return ext.f(x, self.w)
    def __mul__(self, x):
        return ext.g(x, self.w)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = Op(2)
    def forward(self, x):
        return self.op @ (self.op * x)
""",
    "bounds of a type": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, torch.finfo(x.dtype).min, torch.iinfo(torch.int32).max, torch.finfo(torch.float32).max / 2)
""",
    "asks torch what it is": """
class ModelNew(nn.Module):
    def forward(self, x):
        flags = ["-DNEW"] if int(torch.__version__.split(".")[0]) >= 2 else []
        flags += ["-I" + torch.__file__, *torch.__path__, str(torch.compiled_with_cxx11_abi())]
        return ext.f(x, len(flags) * 2)
""",
    "asks whether there is a graph": """
class ModelNew(nn.Module):
    def forward(self, x):
        assert x.grad_fn is None
        return ext.f(x)
""",
    "numbers set by name": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "block", 1024)
        object.__setattr__(self, "warps", 4)
    def forward(self, x):
        return ext.f(x, self.block * 2, self.warps + 1)
""",
    "alias": """
class Fast(nn.Module):
    def forward(self, x):
        return ext.f(x)
ModelNew = Fast
""",
    "alias annotated": """
class Fast(nn.Module):
    def forward(self, x):
        return ext.f(x)
ModelNew: type = Fast
""",
    "class in if": """
if True:
    class ModelNew(nn.Module):
        def forward(self, x):
            return ext.f(x)
""",
    "size numel": """
class ModelNew(nn.Module):
    def forward(self, x):
        n = torch.Size([2, 3]).numel()
        return ext.f(x, n * 2)
""",
    "generator": """
class ModelNew(nn.Module):
    def forward(self, x):
        g = torch.Generator(device=x.device).manual_seed(3)
        return ext.f(x, g.initial_seed())
""",
    "mha out_proj": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2)
    def forward(self, x):
        w = self.attn.out_proj.weight.t().contiguous()
        return ext.f(x, self.attn.in_proj_weight, w, self.attn.out_proj.bias.detach())
""",
    "== None": """
class ModelNew(nn.Module):
    def forward(self, x, bias=None):
        if bias != None:
            return ext.f(x, bias)
        return ext.g(x)
""",
    "class level module": """
class ModelNew(nn.Module):
    _ext = None
    def __init__(self):
        super().__init__()
        if ModelNew._ext is None:
            ModelNew._ext = load_inline(name="x", cpp_sources="", cuda_sources="")
    def forward(self, x):
        return ModelNew._ext.f(x)
""",
    "class level module self.__class__": """
class ModelNew(nn.Module):
    _ext = None
    def __init__(self):
        super().__init__()
        if self.__class__._ext is None:
            self.__class__._ext = load_inline(name="x", cpp_sources="", cuda_sources="")
        if type(self)._ext is None:
            type(self)._ext = load_inline(name="x", cpp_sources="", cuda_sources="")
    def forward(self, x):
        return self._ext.f(x)
""",
    "dict buffers get": """
class ModelNew(nn.Module):
    def forward(self, x):
        state = dict(out=torch.empty_like(x), n=x.numel(), rows=x.shape[0])
        kernel[(state.get("n") * 2,)](x, x, state.get("out"), state["rows"] * 2)
        return state.pop("out")
""",
    "star args": """
class ModelNew(nn.Module):
    def forward(self, *inputs):
        x, y = inputs
        b, n = x.shape[0], x.shape[-1]
        return ext.f(*inputs, b * n)
""",
    "decorators": """
def timed(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)
    return inner
class ModelNew(nn.Module):
    @torch.no_grad()
    @timed
    def forward(self, x):
        return ext.f(x)
""",
    "enum dispatch": """
import enum
class Kind(enum.Enum):
    A = 1
    B = 2
class ModelNew(nn.Module):
    def forward(self, x):
        kind = Kind.A if x.shape[0] > 3 else Kind.B
        match kind:
            case Kind.A:
                return ext.f(x)
            case Kind.B:
                return ext.g(x)
""",
    "scalar float of tensor": """
class ModelNew(nn.Module):
    def forward(self, x, t):
        a = float(t)
        return ext.f(x, a * 2, 1 - a)
""",
    "complex": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, dtype=torch.complex64, device=x.device)
        ext.f(x, torch.view_as_real(out), out.real, out.imag)
        return out
""",
    "einops": """
from einops import rearrange
class ModelNew(nn.Module):
    def forward(self, x):
        return rearrange(ext.f(rearrange(x, "b c h w -> b h w c")), "b h w c -> b c h w")
""",
    "walrus": """
class ModelNew(nn.Module):
    def forward(self, x):
        if (n := x.numel()) % 4 == 0:
            return ext.f4(x, n // 4)
        return ext.f1(x, n)
""",
    "workspace size from ext": """
class ModelNew(nn.Module):
    def forward(self, x):
        n = ext.workspace_bytes(x.shape[0], x.shape[1])
        ws = torch.empty(n // 4 + 1, device=x.device)
        return ext.f(x, ws)
""",
    "except ImportError module level": """
try:
    import triton.language.extra.libdevice as libdevice
except ImportError:
    from triton.language import math as libdevice
class ModelNew(nn.Module):
    def forward(self, x, y):
        return launch(x, y)
""",
    "getattr module by dtype name": """
class ModelNew(nn.Module):
    def forward(self, x):
        name = "f_" + str(x.dtype).split(".")[-1]
        return getattr(ext, name)(x)
""",
    "method alias": """
class ModelNew(nn.Module):
    def run(self, x):
        return ext.f(x)
    forward = run
""",
    "forward bound ext": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = ext.f
    def forward(self, x): return self.op(x)
""",
    "map of tensors": """
class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = map(lambda t: t.contiguous(), (a, b))
        pa, pb = (t.data_ptr() for t in (a, b))
        return ext.f(a, b, pa + 4, pb + 8)
""",
    "sorted by key": """
class ModelNew(nn.Module):
    def forward(self, a, b):
        big = max((a, b), key=lambda t: t.numel())
        names = sorted([("a", a.numel()), ("b", b.numel())], key=lambda p: p[1])
        return ext.f(big, names[0][1] * 2)
""",
    "dim=-1": """
class ModelNew(nn.Module):

    def forward(self, x, dim=-1, dims=(1, 2)):
        d = dim % x.dim()
        return ext.f(x, d + 1, dims[0] * 2)
""",
    "pre_hook": """
from triton.tools.tensor_descriptor import TensorDescriptor
def init_to_zero(name):
    return lambda nargs: nargs[name].zero_()
def set_block(nargs):
    nargs["desc"].block_shape = [nargs["BLOCK_M"], nargs["BLOCK_K"]]
cfgs = [triton.Config({"B": 32 * i}, num_warps=4, pre_hook=init_to_zero("c")) for i in range(1, 3)]
def prune(configs, named_args, **kw):
    return [c for c in configs if c.kwargs["B"] * 2 <= named_args["n"]] or configs
@triton.autotune(cfgs, key=["n"], prune_configs_by={"early_config_prune": prune}, restore_value=["c"])
@triton.heuristics(values={"EVEN": lambda a: a["n"] % a["B"] == 0})
@triton.jit(do_not_specialize=["n"], launch_metadata=lambda g, k, a: {})
def kk(x, c, n, B: tl.constexpr, EVEN: tl.constexpr):
    pass
def alloc_fn(size: int, alignment: int, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)
triton.set_allocator(alloc_fn)
class ModelNew(nn.Module):
    def forward(self, x):
        c = torch.empty_like(x)
        desc = TensorDescriptor(x, x.shape, x.stride(), [32, 32])
        d2 = TensorDescriptor.from_tensor(c, block_shape=[32, 32])
        kk[lambda m: (triton.cdiv(x.numel(), m["B"]),)](desc, d2, x.numel())
        print(kk.best_config, kk.cache)
        return c
""",
    "arg kinds": """
from typing import Optional, Union, List, Tuple
class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, scale: Optional[float] = None, k: "int" = 3, *, causal: bool = False):
        s = scale * 2 if scale is not None else x.shape[-1] ** -0.5
        return ext.f(x, s * k, causal)
""",
    "weakref": """
import weakref
CACHE = weakref.WeakKeyDictionary()
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "typing protocol & generics": """
from typing import Callable, Protocol, TypeVar, Generic
T = TypeVar("T")
class Launcher(Protocol):
    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...
class Registry(Generic[T]):
    def __init__(self):
        self.items: dict[str, T] = {}
    def register(self, name):
        def deco(fn):
            self.items[name] = fn
            return fn
        return deco
    def __getitem__(self, name):
        return self.items[name]
REG: Registry[Launcher] = Registry()
@REG.register("fast")
def fast(x, y):
    return launch(x, y)
class ModelNew(nn.Module):
    def forward(self, x, y):
        return REG["fast"](x, y)
""",
    "ops by dict of lambdas": """
OPS = {"a": lambda x: ext.f(x), "b": lambda x: ext.g(x, 2)}
class ModelNew(nn.Module):
    def forward(self, x):
        return OPS["a" if x.numel() > 3 else "b"](x)
""",
    "return none and scalars": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return {"y": y, "n": x.numel() * 2, "aux": None}
""",
    "walk modules": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.packed = {}
    def pack(self):
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                self.packed[name] = module.weight.t().contiguous()
        for child in self.children():
            self.packed["c"] = child.weight
        for p in self.parameters():
            p.requires_grad_(False)
    def forward(self, x):
        if not self.packed:
            self.pack()
        return ext.f(x, self.packed["a"], list(self.packed.values()))
""",
    "entries counted from the end": """
class ModelNew(nn.Module):
    def forward(self, x):
        plan = (x, torch.empty_like(x), x.numel())
        kernel[(triton.cdiv(plan[-1], 256) + plan[-1] % 2,)](plan[-3], plan[0], plan[-2], plan[-1])
        return plan[-2]
""",
    "importlib for optional": r"""
import importlib
HAS = importlib.util.find_spec("triton") is not None
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "pad by zeros": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        m = (n + 15) // 16 * 16
        p = torch.zeros(*x.shape[:-1], m, dtype=x.dtype, device=x.device)
        p[..., :n].copy_(x)
        return ext.f(p)[..., :n].contiguous()
""",
    "pad by slice assign": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        p = torch.zeros((x.size(0), 128), dtype=x.dtype, device=x.device)
        p[:, : x.size(1)] = x
        return ext.f(p)
""",
    "string names": r"""
OPS = {"float16": "f_half", "float32": "f_float"}
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(ext, OPS[str(x.dtype).split(".")[-1]])(x)
""",
    "percent source": r"""
SRC = "#define N %d\n__global__ void k(float* x) { x[0] *= N; }" % 128
lib = load_inline(name="l", cpp_sources="torch::Tensor f(torch::Tensor x);", cuda_sources=SRC, functions=["f"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.f(x)
""",
    "exec of launcher": r"""
ns = {"kernel": kernel, "torch": torch, "triton": triton}
exec("def run(x):\n    o = torch.empty_like(x)\n    kernel[(1,)](x, x, o, x.numel())\n    return o\n", ns)
run = ns["run"]
class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
""",
    "gc collect": r"""
import gc
class ModelNew(nn.Module):
    def forward(self, x):
        gc.collect()
        return ext.f(x)
""",
    "own sgemm ext": r"""
lib = load_inline(name="g", cpp_sources="torch::Tensor sgemm(torch::Tensor a, torch::Tensor b);", cuda_sources="__global__ void sgemm_kernel(const float* a) {}\ntorch::Tensor sgemm(torch::Tensor a, torch::Tensor b) { auto c = torch::empty_like(a); sgemm_kernel<<<1, 2>>>(a.data_ptr<float>()); return c; }", functions=["sgemm"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.sgemm(x, x)
""",
    "getattr join": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        name = "_".join(["f", str(x.dim())])
        return getattr(ext, name)(x)
""",
    "big format": r"""
S = "{:>5}".format("x")
getattr(ext, "f")
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
}

CPP = {
    "registers and classes by the names of tensors": """
using Vec = at::vec::Vectorized<float>;
struct Sum { float add(float v) { return v; } };
torch::Tensor f(torch::Tensor x, torch::Tensor y) {
    at::parallel_for(0, x.numel(), 1, [&](int64_t b, int64_t e) { Vec y = Vec::loadu(p); y.exp().store(q); Sum x; x.add(1.f); });
    return torch::empty_like(x);
}
""",
    "a function by the name of a vendor's, and settings": """
void cblas_sgemm(const float* a, float* b) { b[0] = a[0]; }
torch::Tensor f(torch::Tensor x) {
    cblas_sgemm(x.data_ptr<float>(), x.data_ptr<float>());
    cudnnSetOpTensorDescriptor(descriptor, 0);
    cudnnCreateOpTensorDescriptor(&descriptor);
    return torch::empty_like(x);
}
""",
    "vectorized": """
#include <ATen/cpu/vec/vec.h>
at::Tensor g(at::Tensor x) { using V = at::vec::Vectorized<float>;
    auto v = V::loadu(x.data_ptr<float>());
    auto y = v.exp();
    auto s = at::vec::vec_reduce_all<float>([](V a, V b) { return a + b;
    }, v, 8);
    auto z = at::vec::fmadd(v, v, v);
    auto r = at::vec::maximum(v, y);
    return x;
    }
""",
    "threads, and code that is not compiled": """
#include <torch/extension.h>
extern "C" void mkl_set_num_threads(int);
#if 0
torch::Tensor old(torch::Tensor x) {
#ifdef FAST
    return x.softmax(1);
#else
    return at::softmax(x, -1);
#endif
}
#else
torch::Tensor old(torch::Tensor x);
#endif
torch::Tensor f(torch::Tensor x) {
    mkl_set_num_threads(1);
    mkl_set_dynamic(0);
    omp_set_num_threads(8);
    openblas_set_num_threads(1);
    at::set_num_threads(1);
#  if 0  // slower
    return torch::relu(x);
#  endif
    return torch::empty_like(x);
}
""",
    "pointer math": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const float* p = x.data_ptr<float>(); float* q = out.data_ptr<float>(); p += 3; float a = *p * 2 + *q; for (auto it = p; it != p + 3; ++it) a += *it; return x;
}
""",
    "sizes": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t n = x.size(0) * x.size(1) + 3; auto m = x.numel() / 2; int b = (x.size(0) + 255) / 256; if (x.dim() != 2 || x.size(0) < 1) throw 1; return x.view({x.size(0) * 2, -1});
}
""",
    "auto size": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto n = x.size(0), m = x.size(1); auto t = n * m - 1; return x;
}
""",
    "accessor": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto a = x.accessor<float, 2>(); auto b = y.packed_accessor32<float, 2>(); float v = a[0][1] * b[1][0] + a[0][0]; a[0][0] += v; return x;
}
""",
    "item": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float a = x.item<float>() * 2; double b = 3 * y.item().toDouble(); int c = -x.item<int>(); return x;
}
""",
    "strides": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto st = x.strides(); int64_t o = st[0] * 3 + st[1]; auto sz = x.sizes(); int64_t p = sz[0] * sz[1]; return x;
}
""",
    "comparison of meta": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
TORCH_CHECK(x.sizes() == y.sizes() && x.dtype() == y.dtype() && x.device() == y.device()); TORCH_CHECK(x.scalar_type() == torch::kFloat32, "a" + std::to_string(x.dim())); return x;
}
""",
    "defined": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
if (!x.defined() || !y.is_contiguous()) return x; bool b = !x.is_cuda() && x.numel() > 0; return x;
}
""",
    "addresses": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = &x; auto& r = x; foo(&x, &y); return *p;
}
""",
    "deref of optional": r"""

at::Tensor f(c10::optional<at::Tensor> o) {
at::Tensor t = o.has_value() ? *o : at::empty({0}); const float* p = o ? o->data_ptr<float>() : nullptr; return t;
}
""",
    "stream out": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::cout << x << "\n" << x.sizes() << std::endl; TORCH_CHECK(false, "got ", x.sizes()); return x;
}
""",
    "stream string": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::ostringstream o; o << "x" << x; std::cerr << y; return x;
}
""",
    "templates": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::vector<at::Tensor> v; std::map<int, at::Tensor> m; std::tuple<at::Tensor, at::Tensor> t{x, y}; return std::get<0>(t);
}
""",
    "lambda floats": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto g = [](float x, float y) { return x * y + x; }; float a = g(1, 2); at::parallel_for(0, 3, 1, [&](int64_t b, int64_t e) { for (auto i = b; i < e; ++i) q[i] = p[i] * 2; }); return x;
}
""",
    "local shadows": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
{ float x = 3; x *= 2; s = -x + x; } for (int y = 0; y < 3; ++y) { s += y * 2; } return x;
}
""",
    "int64 cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto n = static_cast<int>(x.size(0)) * 2; int k = (int)x.size(1) * 3; auto r = float(x.numel()) / 2; return x;
}
""",
    "options": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto o = torch::empty({x.size(0) + 1, y.size(1) * 2}, x.options()); auto o2 = at::zeros({(x.size(0) + 3) / 4}, y.options().dtype(at::kInt)); return o;
}
""",
    "smem": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
size_t bytes = 2 * x.size(1) * sizeof(float) + y.element_size() * 3; k<<<dim3(x.size(0), 2), 256, bytes, st>>>(x.data_ptr<float>() + 3, y.const_data_ptr<float>() + x.size(1) * 2, s * 2); return x;
}
""",
    "pointer cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = reinterpret_cast<const float4*>(x.data_ptr<float>()) + 1; auto q = (float*)x.data_ptr() + 3; auto r = static_cast<float*>(y.data_ptr()) - 1; return x;
}
""",
    "data_ptr plus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float* p = x.data_ptr<float>() + 1; auto q = x[0].data_ptr<float>() + 3; auto r = x.view({-1}).data_ptr<float>() + 4; auto t = x.contiguous().size(0) * 2; return x;
}
""",
    "bool check of tensor ids": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
if (x.is_same(y)) return x; if (x.data_ptr() == y.data_ptr()) return y; return x;
}
""",
    "vector size": r"""

at::Tensor f(std::vector<at::Tensor> v) {
int n = v.size() * 2 - 1; for (size_t i = 0; i < v.size() - 1; ++i) g(v[i].data_ptr<float>() + i, v[i].size(0) * 2); return v[0];
}
""",
    "iterators": r"""

at::Tensor f(std::vector<at::Tensor> v) {
for (auto it = v.begin(); it != v.end(); ++it) g(*it); auto a = v.begin() + 1; auto n = v.end() - v.begin(); g(*(v.begin() + 1)); return v[0];
}
""",
    "index math": r"""

at::Tensor f(std::vector<at::Tensor> v, int s) {
int i = 0; auto r = v[i + 1]; auto q = v[2 * i - 1].narrow(0, i * 2, s - 1); return r;
}
""",
    "default args": r"""

at::Tensor f(at::Tensor x, double s = -1.0, int64_t n = 2 * 3, bool b = !false) {
return x;
}
""",
    "map": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
static std::map<int, at::Tensor> cache; auto it = cache.find(3); if (it != cache.end() && it->second.size(0) > 2) return it->second; return cache[1 + 2];
}
""",
    "names sum mean": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float sum = 0, mean = 0; double exp = 2; int max = x.size(0); sum += mean * exp; mean = sum / max; auto norm = -sum; return x;
}
""",
    "out in one source, pointers": r"""
static void run(const float* in, float* out, const float* weight, const float* bias, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = in[i] * weight[i] + bias[i]; }
torch::Tensor forward(torch::Tensor in, torch::Tensor weight, torch::Tensor bias) { auto out = torch::empty_like(in); run(in.data_ptr<float>(), out.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), in.numel()); return out; }
""",
    "tuple type": r"""

std::tuple<at::Tensor, at::Tensor> f(at::Tensor x, at::Tensor y) {
return {x, y};
}
""",
    "ptr and multiply decl": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const at::Tensor *px = &x; at::Tensor *py{nullptr}; using T = at::Tensor; T *pz = &x; return *px;
}
""",
    "arrow": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto *impl = x.unsafeGetTensorImpl(); auto n = impl->numel() * 2; auto k = x.storage().nbytes() * 2; auto st = x.storage_offset() + 1; return x;
}
""",
    "const cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto n = x.size(-1); auto m = x.size( - 1) * n; auto z = x.select(-1, 0); return z.transpose(-2, -1).narrow(-1, 0, n - 1);
}
""",
    "tensoroptions eq": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto dt = x.dtype() == torch::kHalf ? 2 : 4; int e = dt * 2; bool half = x.scalar_type() == at::kHalf; return x;
}
""",
    "simd avx": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
__m256 a = _mm256_loadu_ps(p); a = a * a + a; __m512 b = _mm512_setzero_ps(); b += b; return x;
}
""",
    "auto loads": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto a = _mm256_loadu_ps(x.data_ptr<float>()); auto b = _mm256_mul_ps(a, a); auto c = a * b; return x;
}
""",
    "auto of data": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto xp = x.data_ptr<float>(); auto v = xp[0] * xp[1]; auto yp = y.data<float>(); auto w = -yp[0]; xp += 2; return x;
}
""",
    "lambda binding": r"""
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](at::Tensor x, int64_t n) { auto y = at::empty_like(x); launch(x.data_ptr<float>(), y.data_ptr<float>(), n * 2, x.size(0) - 1); return y; }); }
""",
    "same name across fns": r"""
static float dot(const float* a, const float* b, int n) { float s = 0; for (int i = 0; i < n; ++i) s += a[i] * b[i]; return s; }
at::Tensor mv(at::Tensor a, at::Tensor b) { auto s = at::empty({a.size(0)}, a.options()); s.data_ptr<float>()[0] = dot(a.data_ptr<float>(), b.data_ptr<float>(), 3) * 2; return s; }
""",
    "members named as tensors": r"""
struct Args { const float* w; float* y; int n; }; struct State { at::Tensor w, y; }; static void run(const Args& a) { for (int i = 0; i < a.n; ++i) a.y[i] = a.w[i] * 2 + a.w[0]; }
at::Tensor f(State s) { Args a{s.w.data_ptr<float>(), s.y.data_ptr<float>(), 3}; run(a); return s.y; }
""",
    "class with scalar members": r"""
class C { at::Tensor w_; int n_; float s_; public: float g(float x) { return x * s_ + n_; } int64_t rows() const { return w_.size(0) * n_; } };
""",
    "float overload": r"""
float mix(float x, float y) { return x * y; }
at::Tensor mix(at::Tensor x, at::Tensor y) { auto o = at::empty_like(x); float v = mix(1.f, 2.f) * 3; return o; }
""",
    "template dispatch": r"""
template <typename scalar_t> void run(const at::Tensor& x, at::Tensor& out) { const scalar_t* in = x.data_ptr<scalar_t>(); scalar_t* o = out.data_ptr<scalar_t>(); for (int64_t i = 0; i < x.numel(); ++i) o[i] = in[i] * in[i] - scalar_t(1); }
""",
    "sum var is tensor in other fn": r"""
static float total(const std::vector<float>& sum) { float s = 0; for (auto v : sum) s += v * v; return s; }
at::Tensor f(at::Tensor sum) { return sum.view({-1}); }
""",
    "int tensors names a b c": r"""
void gemm(const float* a, const float* b, float* c, int m, int n, int k) { for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) { float s = 0; for (int p = 0; p < k; ++p) s += a[i * k + p] * b[p * n + j]; c[i * n + j] = s; } }
at::Tensor f(at::Tensor a, at::Tensor b) { auto c = at::empty({a.size(0), b.size(1)}, a.options()); gemm(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(0), b.size(1), a.size(1)); return c; }
""",
}
"""Sources of an extension whose function `f` is called: they allocate, ask, and compute on numbers
and registers.
"""

VIOLATIONS = {
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
    "a function imported under another name": (
        "torch_compute",
        """
from torch.nn.functional import gelu as fast
class ModelNew(nn.Module):
    def forward(self, x):
        return fast(x)  # HERE
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
    "an operator of torch.ops": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.ops.aten.mm.default(x, w)  # HERE
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
    "map": (
        "torch_compute",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        return list(map(torch.tanh, [x]))[0]  # HERE
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
    "the forward of a layer by super with two arguments": (
        "torch_compute",
        """
class ModelNew(nn.Linear):
    def forward(self, x):
        return ext.f(super(ModelNew, self).forward(x))  # HERE
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
