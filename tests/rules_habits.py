"""Habits of honest code, for the rules: short submissions, and C++ sources of extensions, all of which must pass.

None of them is run. They follow `HEAD` of `rules_corpus`.
"""

# ruff: noqa: E501

HABITS = {
    "a decorator that forward and backward share": """
def ready(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        return fn(ctx, *[a.contiguous() for a in args], **kwargs)
    return wrapper
class Norm(torch.autograd.Function):
    @staticmethod
    @ready
    def forward(ctx, x, w):
        return ext.f(x, w)
    @staticmethod
    @ready
    def backward(ctx, dy):
        parts = torch.empty(3, 4)
        return parts.sum(0), parts * 2
class ModelNew(nn.Module):
    def forward(self, x, w):
        return Norm.apply(x, w)
""",
    "a graph, or the kernel without it": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None
    def forward(self, x):
        if self.graph is None:
            try:
                self.static, self.graph = torch.empty_like(x), torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.out = launch(self.static, self.static)
            except RuntimeError:
                torch.cuda.synchronize()
                return launch(x, x)
        self.static.copy_(x)
        self.graph.replay()
        return self.out
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
    "a smaller block": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        try:
            kernel[(1,)](x, x, out, 3, BLOCK=2048)
        except triton.runtime.errors.OutOfResources:
            kernel[(1,)](x, x, out, 3, BLOCK=1024)
        return out
""",
    "a list of tensors before numbers": """
def go(a, b, scale, block):
    out = torch.empty_like(a)
    kernel[((a.numel() + block - 1) // block,)](a, b, out, scale * 2)
    return out
class ModelNew(nn.Module):
    def forward(self, x, y):
        ins = [x.contiguous(), y.contiguous()]
        return go(*ins, 0.5, 64)
""",
    "an attribute kept on a tensor": """
def padded(w):
    if not hasattr(w, "_pad_k"):
        w._pad_k = torch.empty(3, 4)
    return w._pad_k.contiguous()
class ModelNew(nn.Module):
    def forward(self, x, w: torch.Tensor):
        held = w._pad_k.view(-1) if hasattr(w, "_pad_k") else padded(w)
        return ext.f(x, held, padded(w))
""",
    "views as a compiler writes them": """
reinterpret_tensor = torch.ops.inductor._reinterpret_tensor
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(torch.ops.inductor._reinterpret_tensor(reinterpret_tensor(x, (3, 4), (4, 1), 0), (12,), (1,), 0))
""",
    "the package of a device": """
import contextlib
@contextlib.contextmanager
def on(device):
    package = getattr(torch, torch.device(device).type, None)
    with package.device(device):
        yield
class ModelNew(nn.Module):
    def forward(self, x):
        with on(x.device), getattr(torch, x.device.type).device(x.device):
            return ext.f(x)
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
    "keeps all arguments": """
class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)
        weight = nn.Parameter(torch.empty(3))
    def forward(self, x):
        return ext.f(x, self.rows * 2, self.columns // 3)
""",
    "bounds of a type": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, torch.finfo(x.dtype).min, torch.iinfo(torch.int32).max, torch.finfo(torch.float32).max / 2)
""",
    "takes the weights of a layer in a class of its own": """
class Packed:
    def __init__(self, layer):
        self.weight, self.features = layer.weight, layer.in_features
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.packed = Packed(self.linear)
    def forward(self, x):
        return ext.f(x, self.packed.weight, self.packed.features * 2)
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
    "a class with odd fields": """
@dataclasses.dataclass
class Odd:
    part.b: int = 0
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
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
    "torch.Event": """
class ModelNew(nn.Module):
    def forward(self, x):
        e = torch.Event(device="cuda", enable_timing=True)
        e.record()
        s = torch.Stream(device="cuda")
        s.wait_event(e)
        s.synchronize()
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
    "super two args": """
class Base(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(Base):
    def __init__(self):
        super(ModelNew, self).__init__()
    def forward(self, x):
        return super(ModelNew, self).forward(x.contiguous())
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
    "status of ext": """
C = "int64_t run_it(torch::Tensor x, torch::Tensor y) {"
C2 = "torch::Tensor g();"
ext = load_inline(name="e", cpp_sources=C)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        status = ext.run_it(x, out)
        if status != 0:
            raise RuntimeError(f"launch failed: {status}")
        return out
""",
    "lib name macro": '''
SRC = r"""
torch::Tensor f(torch::Tensor x);
TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("f", f); }
"""
load_inline(name="softmax_ops", cpp_sources=SRC, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.softmax_ops.f(x)
''',
    "lib name fstring": '''
NS = "softmax_ops"
SRC = f"""
torch::Tensor f(torch::Tensor x);
TORCH_LIBRARY({NS}, m) {{ m.def("f", f); }}
"""
load_inline(name="softmax_ops", cpp_sources=SRC, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.softmax_ops.f(x)
''',
    "lib replace": '''
SRC = r"""
TORCH_LIBRARY(@NS@, m) { m.def("f", f); }
""".replace("@NS@", "softmax_ops")
load_inline(name="softmax_ops", cpp_sources=SRC, is_python_module=False)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.softmax_ops.f(x)
''',
    "lib getattr": '''
SRC = r"""
TORCH_LIBRARY(soft, m) { m.def("f", f); }
"""
load_inline(name="softmax_ops", cpp_sources=SRC, is_python_module=False)
OPS = torch.ops.soft
class ModelNew(nn.Module):
    def forward(self, x):
        return OPS.f(x)
''',
    "python Library": """
from torch.library import Library, impl
lib = Library("mylib", "DEF")
lib.define("soft(Tensor x) -> Tensor")
@impl(lib, "soft", "CUDA")
def soft(x):
    return launch(x, x)
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mylib.soft(x)
""",
    "python Library impl call": """
lib = torch.library.Library("mylib", "FRAGMENT")
lib.define("soft(Tensor x) -> Tensor")
def soft(x):
    return launch(x, x)
lib.impl("soft", soft, "CUDA")
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mylib.soft.default(x)
""",
    "triton_op": """
from torch.library import triton_op, wrap_triton
@triton_op("mylib::soft", mutates_args={})
def soft(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(kernel)[(1,)](x, x, out, x.numel())
    return out
class ModelNew(nn.Module):
    def forward(self, x):
        return soft(x)
""",
    "custom_op call kernel register": """
@torch.library.custom_op("mine::soft", mutates_args=(), device_types="cuda")
def soft(x: torch.Tensor) -> torch.Tensor:
    return launch(x, x)
@soft.register_kernel("cpu")
def _(x):
    return launch(x, x)
@soft.register_fake
def _(x):
    return torch.empty_like(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return soft(x)
""",
    "cuda python": """
from cuda.bindings import driver, nvrtc
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = build_kernel()
    def forward(self, x):
        out = torch.empty_like(x)
        args = np.array([x.data_ptr(), out.data_ptr()], dtype=np.uint64)
        err, = driver.cuLaunchKernel(self.kernel, 1, 1, 1, 256, 1, 1, 0, 0, args.ctypes.data, 0)
        return out
""",
    "cupy RawKernel": """
import cupy as cp
k = cp.RawKernel("src", "k")
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k((x.numel() // 256 + 1,), (256,), (x.data_ptr(), out.data_ptr(), x.numel()))
        return out
""",
    "cuda core": """
from cuda.core.experimental import Device, LaunchConfig, Program, launch as go
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = Program("src", "c++").compile("cubin").get_kernel("k")
    def forward(self, x):
        out = torch.empty_like(x)
        go(Device().default_stream, LaunchConfig(grid=1, block=256), self.k, x.data_ptr(), out.data_ptr())
        return out
""",
    "numba": """
from numba import cuda
@cuda.jit
def k(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * 2
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[1, 256](cuda.as_cuda_array(x), cuda.as_cuda_array(out))
        return out
""",
    "cdll index": """
lib = ctypes.cdll["./libk.so"]
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.run(x.data_ptr(), out.data_ptr())
        return out
""",
    "load then build fallback": """
import subprocess
_lib = None
def lib():
    global _lib
    if _lib is None:
        try:
            _lib = ctypes.CDLL("./k.so")
        except OSError:
            subprocess.check_call(["g++", "k.cpp"])
            _lib = ctypes.CDLL("./k.so")
    return _lib
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib().run(x.data_ptr(), out.data_ptr())
        return out
""",
    "try device props": """
class ModelNew(nn.Module):

    def forward(self, x):
        try:
            sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        except RuntimeError:
            sms = os_cpu_count()
        return ext.f(x, sms * 2)
""",
    "makedirs": """
import os, tempfile
def build():
    try:
        d = os.path.join(os.path.expanduser("~"), ".cache", "k")
        os.makedirs(d, exist_ok=True)
    except OSError:
        d = tempfile.mkdtemp()
    return load_inline(name="k", cpp_sources="", build_directory=d)
class ModelNew(nn.Module):
    _mod = None
    @classmethod
    def mod(cls):
        if cls._mod is None:
            cls._mod = build()
        return cls._mod
    def forward(self, x):
        return self.mod().f(x)
""",
    "is methods": """
class ModelNew(nn.Module):

    def forward(self, x):
        if x.is_inference() or x.is_meta or x._is_view():
            x = x.contiguous()
        return ext.f(x)
""",
    "new": """
class ModelNew(nn.Module):

    def forward(self, x):
        y = x.new(x.shape)
        z = torch.IntTensor([1, 2]).to(x.device)
        kernel[(1,)](x, z, y, 3)
        return y
""",
    "pair": """
class ModelNew(nn.Module):

    def forward(self, x):
        from torch.nn.modules.utils import _pair
        sh, sw = _pair(2)
        return ext.f(x, sh * sw)
""",
    "jit unused": """
class ModelNew(nn.Module):
    @torch.jit.unused
    def run(self, x):
        return ext.f(x)
    @torch.jit.export
    def other(self, x):
        return self.run(x)
    def forward(self, x):
        return self.other(x)
""",
    "custom_fwd": """
class Op(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return ext.f(x, scale)
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ext.g(g, x) * ctx.scale, None
class ModelNew(nn.Module):
    def forward(self, x):
        return Op.apply(x, 2.0)
""",
    "setup_context": """
class Op(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return ext.f(x, w)
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.save_for_backward(x, w)
    @staticmethod
    def backward(ctx, g):
        return None, None
op = Op.apply
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3))
    def forward(self, x):
        return op(x, self.w)
""",
    "lru load_inline": """
@functools.lru_cache(maxsize=None)
def module():
    return load_inline(name="x", cpp_sources="", cuda_sources="", functions=["f"])
class ModelNew(nn.Module):
    def forward(self, x):
        return module().f(x)
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
    "dataclass config": """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Config:
    block: int = 128
    warps: int = 4
    def grid(self, n):
        return ((n + self.block - 1) // self.block,)
    @property
    def threads(self):
        return self.warps * 32
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = Config(block=256)
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[self.cfg.grid(x.numel())](x, x, out, x.numel(), BLOCK=self.cfg.block * self.cfg.threads)
        return out
""",
    "dataclass of tensors": """
from dataclasses import dataclass
@dataclass
class Buffers:
    out: torch.Tensor
    rows: int
    cols: int
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
    def buffers(self, x):
        key = (x.shape, x.device, x.dtype)
        if key not in self.cache:
            self.cache[key] = Buffers(torch.empty_like(x), x.shape[0], x.shape[1])
        return self.cache[key]
    def forward(self, x):
        b = self.buffers(x)
        kernel[(b.rows * b.cols // 128,)](x, x, b.out, b.rows * b.cols)
        return b.out
""",
    "namedtuple plan": """
from collections import namedtuple
from typing import NamedTuple
Plan = namedtuple("Plan", ["buf", "n"])
class Out(NamedTuple):
    y: torch.Tensor
    n: int
class ModelNew(nn.Module):
    def forward(self, x):
        p = Plan(torch.empty_like(x), x.numel())
        kernel[(p.n * 2,)](x, x, p.buf, p.n)
        o = Out(p.buf, p.n + 1)
        return o.y
""",
    "tuple cache": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = None
    def forward(self, x):
        if self._cache is None or self._cache[0] != x.shape:
            self._cache = (x.shape, torch.empty_like(x), x.numel())
        shape, out, n = self._cache
        kernel[(n * 2,)](x, x, out, n)
        return out
""",
    "list cache": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = []
    def forward(self, x):
        if not self._cache:
            self._cache.append((torch.empty_like(x), x.numel()))
        out, n = self._cache[0]
        kernel[(n * 2,)](x, x, out, n)
        return out
""",
    "dict attr cache": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._ws = {}
    def forward(self, x):
        ws = self._ws.setdefault(x.device, {})
        if "out" not in ws:
            ws["out"] = torch.empty_like(x)
            ws["n"] = x.numel()
        kernel[(ws["n"] * 2,)](x, x, ws["out"], ws["n"])
        return ws["out"]
""",
    "dict buffers get": """
class ModelNew(nn.Module):
    def forward(self, x):
        state = dict(out=torch.empty_like(x), n=x.numel(), rows=x.shape[0])
        kernel[(state.get("n") * 2,)](x, x, state.get("out"), state["rows"] * 2)
        return state.pop("out")
""",
    "kwargs dict": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        args = dict(x=x, y=x, out=out, n=x.numel())
        kernel[(args["n"] // 2 + 1,)](**args)
        return out
""",
    "star args": """
class ModelNew(nn.Module):
    def forward(self, *inputs):
        x, y = inputs
        b, n = x.shape[0], x.shape[-1]
        return ext.f(*inputs, b * n)
""",
    "seq inputs": """
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, S, D = q.shape
        scale = 1.0 / (D ** 0.5)
        o = torch.empty_like(q)
        grid = lambda meta: (triton.cdiv(S, meta["BLOCK_M"]), B * H)
        kernel[grid](q, k, v, o, scale * 1.44269504, q.stride(0), q.stride(1), S, D)
        return o
""",
    "math": """
import math
class ModelNew(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.eps = eps
        self.k = math.sqrt(2.0 / math.pi)
    def forward(self, x):
        n = math.prod(x.shape)
        rows = math.ceil(n / x.shape[-1])
        s = 1 / math.sqrt(x.shape[-1]) * self.k
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        ext.f(x, self.scale, out, rows * 2, s + self.eps)
        return out
""",
    "shape algebra": """
class ModelNew(nn.Module):
    def forward(self, x):
        shape = list(x.shape)
        shape[-1] = shape[-1] // 2
        new = x.shape[:-1] + (x.shape[-1] * 2,)
        *batch, n = x.shape
        total = 1
        for s in batch:
            total *= s
        sizes = [s * 2 for s in x.size()]
        m = max(x.shape) + min(x.stride()) + sum(x.shape)
        return ext.f(x, total * n, sizes[0] * 3, m).view(*new).reshape(shape)
""",
    "numel checks": """
class ModelNew(nn.Module):
    def forward(self, x, y):
        if x.numel() == 0:
            return torch.empty_like(x)
        assert x.dim() == 2 and y.dim() == 2 and x.size(1) == y.size(0), "bad"
        assert x.dtype is torch.float32 and x.dtype == y.dtype
        assert x.device == y.device
        if x.stride(-1) != 1:
            x = x.contiguous()
        if not (x.is_cuda and y.is_cuda):
            raise RuntimeError("need cuda")
        if any(t.numel() > 2 ** 31 - 1 for t in (x, y)):
            raise ValueError
        return ext.f(x, y)
""",
    "graph capture lazily": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None
    def capture(self, x):
        self.static_x = torch.empty_like(x)
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            for _ in range(3):
                self.static_out = launch(self.static_x, self.static_x)
        torch.cuda.current_stream().wait_stream(s)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=s):
            self.static_out = launch(self.static_x, self.static_x)
    def forward(self, x):
        if self.graph is None:
            self.capture(x)
        self.static_x.copy_(x)
        self.graph.replay()
        return self.static_out.clone()
""",
    "capture begin": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = torch.cuda.CUDAGraph()
        self.ready = False
    def forward(self, x):
        if not self.ready:
            self.x = x.clone()
            self.g.capture_begin()
            self.y = ext.f(self.x)
            self.g.capture_end()
            self.ready = True
        self.x.copy_(x, non_blocking=True)
        self.g.replay()
        torch.cuda.synchronize()
        return self.y
""",
    "autotune python": """
import time
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = None
    def bench(self, f, x):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        f(x)
        torch.cuda.synchronize()
        start.record()
        for _ in range(5):
            f(x)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 5
    def forward(self, x):
        if self.best is None:
            times = {}
            for name in ("f", "g"):
                fn = getattr(ext, name)
                times[name] = self.bench(fn, x)
            self.best = min(times, key=times.get)
            t0 = time.perf_counter()
            dt = time.perf_counter() - t0
        return getattr(ext, self.best)(x)
""",
    "autotune best time": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = {}
    def forward(self, x):
        key = tuple(x.shape)
        if key not in self.best:
            best_t, best_f = float("inf"), None
            for f in (ext.f, ext.g):
                t0 = torch.cuda.Event(enable_timing=True); t1 = torch.cuda.Event(enable_timing=True)
                t0.record(); f(x); t1.record(); torch.cuda.synchronize()
                t = t0.elapsed_time(t1)
                if t < best_t:
                    best_t, best_f = t, f
            self.best[key] = best_f
        return self.best[key](x)
""",
    "do_bench": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = None
    def forward(self, x):
        out = torch.empty_like(x)
        if self.block is None:
            t = {b: triton.testing.do_bench(lambda: kernel[(1,)](x, x, out, b)) for b in (1, 2)}
            self.block = min(t, key=lambda b: t[b])
        kernel[(self.block * 2,)](x, x, out, 3)
        return out
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
    "decorated property": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
    @functools.cached_property
    def packed(self):
        return self.w.t().contiguous().half()
    @property
    def n(self):
        return self.w.shape[0]
    def forward(self, x):
        return ext.f(x, self.packed, self.n * 2)
""",
    "pack lazily with version": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self._key = None
    def _weights(self):
        w = self.conv.weight
        key = (w.data_ptr(), w._version, w.device)
        if key != self._key:
            self._packed = w.detach().permute(2, 3, 1, 0).contiguous()
            self._key = key
        return self._packed
    def forward(self, x):
        B, C, H, W = x.shape
        kh, kw = self.conv.kernel_size
        ph, pw = self.conv.padding
        OH = (H + 2 * ph - kh) // self.conv.stride[0] + 1
        OW = (W + 2 * pw - kw) // self.conv.stride[1] + 1
        y = torch.empty((B, self.conv.out_channels, OH, OW), device=x.device, dtype=x.dtype)
        ext.conv(x, self._weights(), self.conv.bias, y, OH * OW)
        return y
""",
    "bn attributes": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(8)
        self.gn = nn.GroupNorm(4, 8)
        self.fc = nn.Linear(8, 4, bias=True)
        self.emb = nn.Embedding(10, 4)
        self.rnn = nn.LSTM(4, 4)
    def forward(self, x):
        n = self.gn.num_groups * self.gn.num_channels // 2
        m = self.fc.in_features * self.fc.out_features
        e = self.bn.eps * 2
        return ext.f(x, self.bn.weight, self.bn.bias, self.bn.running_mean, self.bn.running_var, e, n + m,
                     self.emb.weight.data, self.rnn.weight_ih_l0, self.rnn.hidden_size * 4, self.bn.momentum)
""",
    "sequential index": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    def forward(self, x):
        for i in range(0, len(self.net), 2):
            x = ext.linear(x, self.net[i].weight, self.net[i].bias, i + 2 < len(self.net))
        return x
""",
    "sequential isinstance": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    def forward(self, x):
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                x = ext.linear(x, layer.weight, layer.bias)
            elif isinstance(layer, nn.ReLU):
                x = ext.relu(x)
        return x
""",
    "linear subclass": """
class FusedLinear(nn.Linear):
    def forward(self, x):
        return ext.f(x, self.weight, self.bias, self.in_features * self.out_features)
class FusedConv(nn.Conv2d):
    def forward(self, x):
        n = (x.shape[2] + 2 * self.padding[0] - self.kernel_size[0]) // self.stride[0] + 1
        return ext.f(x, self.weight, n)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = FusedLinear(3, 4)
        self.c = FusedConv(3, 4, 3)
    def forward(self, x):
        return self.fc(self.c(x))
""",
    "params iteration": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        dev = next(self.parameters()).device
        if x.device != dev:
            x = x.to(dev)
        ps = dict(self.named_parameters())
        return ext.f(x, ps["fc.weight"], list(self.parameters()))
""",
    "no super init args": """
class ModelNew(torch.nn.Module):
    def __init__(self, *args, **kwargs):
        torch.nn.Module.__init__(self)
        self.w = torch.nn.Parameter(torch.empty(3))
        torch.nn.init.uniform_(self.w, -1, 1)
        self.reset_parameters()
    def reset_parameters(self):
        torch.manual_seed(0)
        bound = 1 / 3 ** 0.5
        nn.init.kaiming_uniform_(self.w.unsqueeze(0), a=5 ** 0.5)
        with torch.no_grad():
            self.w.mul_(2).add_(self.w * bound)
    def forward(self, x):
        return ext.f(x, self.w)
""",
    "warnings logging": """
import logging, warnings
logger = logging.getLogger(__name__)
class ModelNew(nn.Module):
    def forward(self, x):
        if not x.is_contiguous():
            warnings.warn("slow path", stacklevel=2)
            x = x.contiguous()
        logger.debug("shape %s", tuple(x.shape))
        print("calling", x.shape, flush=True)
        try:
            return ext.f(x)
        except Exception as e:
            logger.exception("kernel failed")
            raise
""",
    "templates": '''
import textwrap, string
TEMPLATE = textwrap.dedent("""
    __global__ void k(const float* x) { int b = BLOCK; }
""")
SRC = TEMPLATE.replace("BLOCK", str(256)) + f"// {256 * 2}"
SRC2 = string.Template("$x").substitute(x=3)
SRC3 = "a %d" % 3
def module(block):
    src = SRC % {"b": block} if "%" in SRC else SRC.format()
    return load_inline(name=f"k_{block}", cpp_sources=src, cuda_sources=[src], functions=["f"], extra_cuda_cflags=["-O3", f"-DBLOCK={block}"], with_cuda=True, verbose=True)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mods = {b: module(b) for b in (128, 256)}
    def forward(self, x):
        return self.mods[256 if x.numel() > 1000 else 128].f(x)
''',
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
    "loops over batch slices": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        streams = [torch.cuda.Stream() for _ in range(4)]
        cur = torch.cuda.current_stream()
        for i, (a, b) in enumerate(zip(torch.chunk(x, 4), out.chunk(4))):
            s = streams[i % 4]
            s.wait_stream(cur)
            with torch.cuda.stream(s):
                ext.f(a, b, i * 2)
                a.record_stream(s)
        for s in streams:
            cur.wait_stream(s)
        return out
""",
    "slicing by numbers in out": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], 2 * x.shape[1], device=x.device)
        half = out.shape[1] // 2
        ext.f(x, out[:, :half])
        out[:, half:].copy_(x)
        out[0, 0] = 1.0
        out[..., -1] = x[..., -1]
        return out[:, 1:][:, ::2]
""",
    "item loops": """
class ModelNew(nn.Module):
    def forward(self, x, lens):
        n = int(lens[0].item())
        ls = lens.tolist()
        total = sum(ls) + n * 2
        mx = max(ls)
        start = 0
        for l in ls:
            ext.f(x[start:start + l])
            start += l
        return ext.g(x, total, mx * 2)
""",
    "item sizes": """
class ModelNew(nn.Module):
    def forward(self, x, offsets):
        count = torch.zeros(1, dtype=torch.int32, device=x.device)
        out = torch.empty_like(x)
        ext.f(x, out, count)
        n = count.item()
        assert n <= x.numel()
        return out[:n], torch.tensor(n, device=x.device)
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
    "types": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty(x.shape, dtype=torch.int32)
        y = out.view(torch.float32)
        kernel[(1,)](x.view(torch.int32), x.to(torch.bfloat16).float(), out, 1)
        return y.to(dtype=x.dtype, memory_format=torch.contiguous_format)
""",
    "channels last": """
class ModelNew(nn.Module):
    def forward(self, x):
        x = x.to(memory_format=torch.channels_last)
        if x.is_contiguous(memory_format=torch.channels_last):
            x = x.permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        out = torch.empty((n, c, h, w), device=x.device).contiguous(memory_format=torch.channels_last)
        ext.f(x, out, n * h * w * c)
        return out.contiguous()
""",
    "einops": """
from einops import rearrange
class ModelNew(nn.Module):
    def forward(self, x):
        return rearrange(ext.f(rearrange(x, "b c h w -> b h w c")), "b h w c -> b c h w")
""",
    "cooperative lambda launch": """
def make(fn, **defaults):
    def run(*a, **k):
        return fn(*a, **{**defaults, **k})
    return run
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = make(ext.f, eps=1e-5)
    def forward(self, x):
        return self.op(x)
""",
    "builder class": """
class Builder:
    _instance = None
    def __init__(self, name):
        self.name = name
        self.mod = None
    def __enter__(self):
        return self
    def __exit__(self, *a):
        return False
    def get(self):
        if self.mod is None:
            self.mod = load_inline(name=self.name, cpp_sources="", cuda_sources="")
        return self.mod
    def __getattr__(self, item):
        return getattr(self.get(), item)
BUILDER = Builder("x")
class ModelNew(nn.Module):
    def forward(self, x):
        return BUILDER.f(x)
""",
    "callable class": """
class Softmax:
    def __init__(self, m):
        self.m = m
    def __call__(self, x):
        return self.m.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = Softmax(ext)
    def forward(self, x):
        return self.op(x)
""",
    "torch.compile disabled": """
class ModelNew(nn.Module):
    @torch.compiler.disable
    def forward(self, x):
        torch._check(x.is_cuda, lambda: "no")
        torch._assert(x.dim() == 2, "no")
        with torch.autocast("cuda", enabled=False), torch.profiler.record_function("f"), torch.cuda.nvtx.range("f"):
            return ext.f(x)
""",
    "nvtx push": """
class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.nvtx.range_push("k")
        y = ext.f(x)
        torch.cuda.nvtx.range_pop()
        torch.cuda.empty_cache()
        return y
""",
    "set stuff": """
class ModelNew(nn.Module):
    def forward(self, x):
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("highest")
        prev = torch.get_num_threads()
        torch.set_num_threads(1)
        y = ext.f(x)
        torch.set_num_threads(prev)
        return y
""",
    "inner function kernels": """
class ModelNew(nn.Module):
    def forward(self, x, y):
        def run(out, n):
            kernel[(n // 2,)](x, y, out, n)
            return out
        return run(torch.empty_like(x), x.numel())
""",
    "walrus": """
class ModelNew(nn.Module):
    def forward(self, x):
        if (n := x.numel()) % 4 == 0:
            return ext.f4(x, n // 4)
        return ext.f1(x, n)
""",
    "assert triton pow2": """
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        BLOCK = triton.next_power_of_2(n)
        num_warps = 4
        if BLOCK >= 2048: num_warps = 8
        if BLOCK >= 4096: num_warps = 16
        assert BLOCK & (BLOCK - 1) == 0
        rows = x.numel() // n
        y = torch.empty_like(x)
        pgm = kernel.warmup(x, x, y, n, BLOCK=BLOCK, grid=(1,))
        pgm._init_handles()
        occ = 65536 // (pgm.n_regs * 32 * num_warps)
        kernel[(min(rows, occ * 132), 1, 1)](x, x, y, n, BLOCK=BLOCK, num_warps=num_warps)
        return y
""",
    "gelu constants tensors": """
C = torch.tensor([0.5, 0.7978845608])
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", C * 2 + 1)
    def forward(self, x):
        return ext.f(x, self.c, C)
""",
    "workspace size from ext": """
class ModelNew(nn.Module):
    def forward(self, x):
        n = ext.workspace_bytes(x.shape[0], x.shape[1])
        ws = torch.empty(n // 4 + 1, device=x.device)
        return ext.f(x, ws)
""",
    "workspace size from ext tensor": """
C = '''
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("workspace_bytes", &bytes_of, "x"); }
static int64_t bytes_of(torch::Tensor x) { return 3; }
torch::Tensor f(torch::Tensor x);
'''

class ModelNew(nn.Module):
    def forward(self, x):
        n = ext.workspace_bytes(x)
        ws = torch.empty(n // 4 + 1, device=x.device)
        return ext.f(x, ws)
""",
    "conditional ext": """
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float16 and x.size(-1) % 8 == 0:
            fn = ext.f_half8
        elif x.dtype in {torch.float32, torch.float64}:
            fn = ext.f_float
        else:
            raise TypeError(f"unsupported {x.dtype}")
        return fn(x)
""",
    "try finally": """
class ModelNew(nn.Module):
    def forward(self, x):
        prev = torch.cuda.current_device()
        torch.cuda.set_device(x.device)
        try:
            return ext.f(x)
        finally:
            torch.cuda.set_device(prev)
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
    "pathlib load": """
from torch.utils.cpp_extension import load
from pathlib import Path
import os, hashlib
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")
SRC = "code"
def build():
    h = hashlib.sha256(SRC.encode()).hexdigest()[:8]
    d = Path("/tmp") / f"k_{h}"
    d.mkdir(parents=True, exist_ok=True)
    (d / "k.cu").write_text(SRC)
    return load(name=f"k_{h}", sources=[str(d / "k.cu")], extra_cuda_cflags=["-O3"], build_directory=str(d))
_ext = build()
class ModelNew(nn.Module):
    def forward(self, x):
        return _ext.forward(x)
""",
    "method alias": """
class ModelNew(nn.Module):
    def run(self, x):
        return ext.f(x)
    forward = run
""",
    "forward lambda attr": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = self._impl
    def _impl(self, x):
        return ext.f(x)
""",
    "forward bound ext": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = ext.f
    def forward(self, x): return self.op(x)
""",
    "mixin": """
class KernelMixin:
    def run_kernel(self, x):
        return ext.f(x)
class ModelNew(KernelMixin, nn.Module):
    def forward(self, x):
        return self.run_kernel(x)
""",
    "abc base": """
from abc import ABC, abstractmethod
class Op(ABC, nn.Module):
    @abstractmethod
    def kernel(self, x): ...
    def forward(self, x):
        return self.kernel(x)
class ModelNew(Op):
    def kernel(self, x):
        return ext.f(x)
""",
    "weights in plain list": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ws = nn.ParameterList()
        for i in range(3):
            self.ws.append(nn.Parameter(torch.randn(3)))
        self.ptrs = None
    def forward(self, x):
        if self.ptrs is None:
            self.ptrs = torch.tensor([w.data_ptr() for w in self.ws], dtype=torch.int64, device=x.device)
        for i, w in enumerate(self.ws):
            kernel[(i + 1,)](x, w, x, len(self.ws) * 2)
        return ext.f(x, self.ptrs)
""",
    "setattr loop": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(3):
            setattr(self, f"w{i}", nn.Parameter(torch.randn(3)))
            self.add_module(f"l{i}", nn.Linear(2, 2))
    def forward(self, x):
        for i in range(3):
            x = ext.f(x, getattr(self, f"w{i}"), getattr(self, f"l{i}").weight)
        return x
""",
    "numel mod": """
class ModelNew(nn.Module):
    def forward(self, x):
        pad = (-x.shape[-1]) % 16
        n = x.shape[-1] + pad
        buf = x.new_zeros((*x.shape[:-1], n))
        buf[..., : x.shape[-1]] = x
        buf.narrow(-1, 0, x.shape[-1]).copy_(x)
        return ext.f(buf, ~pad, -n, +n)
""",
    "ctypes arrays": """
lib = ctypes.CDLL("./x.so")
class ModelNew(nn.Module):
    def forward(self, xs, out=None):
        tensors = [x.contiguous() for x in (xs if isinstance(xs, (list, tuple)) else [xs])]
        ptrs = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        n = ctypes.c_int64(sum(t.numel() for t in tensors))
        rc = lib.run(ptrs, ctypes.byref(n), len(tensors) * 2)
        if rc != 0:
            raise RuntimeError(lib.error(rc))
        y = torch.empty(n.value * 2)
        return y
""",
    "cffi": """
import cffi
ffi = cffi.FFI()
lib = ffi.dlopen("./x.so")
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.run(ffi.cast("float*", x.data_ptr()), ffi.cast("float*", y.data_ptr()), x.numel())
        return y
""",
    "np pointers": """
lib = np.ctypeslib.load_library("x", ".")
class ModelNew(nn.Module):
    def forward(self, x):
        a = np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float32)
        out = np.zeros_like(a)
        rows, cols = a.shape
        lib.run(a.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), out.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), ctypes.c_int(rows * cols))
        return torch.from_numpy(out).to(x.device).view_as(x)
""",
    "generator function": """
class ModelNew(nn.Module):
    def tiles(self, x):
        for i in range(0, x.shape[0], 16):
            yield x[i:i + 16], i
    def forward(self, x):
        out = torch.empty_like(x)
        for tile, i in self.tiles(x):
            ext.f(tile, out[i:i + 16], i * 4)
        return out
""",
    "context manager": """
import contextlib
@contextlib.contextmanager
def on(stream):
    prev = torch.cuda.current_stream()
    stream.wait_stream(prev)
    with torch.cuda.stream(stream):
        yield stream
    prev.wait_stream(stream)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = torch.cuda.Stream()
    def forward(self, x):
        with on(self.s) as s:
            y = ext.f(x, s.cuda_stream)
        return y
""",
    "copy module fold in load hook": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.register_buffer("w", torch.empty(3, 4))
        self.register_load_state_dict_post_hook(ModelNew._pack)
    @staticmethod
    def _pack(module, keys):
        module.w.copy_((module.fc.weight * 2).t())
    def load_state_dict(self, sd, strict=True):
        r = super().load_state_dict(sd, strict)
        self.w = (self.fc.weight * 0.5).t().contiguous()
        return r
    def forward(self, x):
        return ext.f(x, self.w)
""",
    "comparison of devices str": """
class ModelNew(nn.Module):
    def forward(self, x):
        if str(x.device) == "cpu" or x.device.type == "cpu":
            raise RuntimeError("CUDA only")
        if x.shape != torch.Size([2, 3]):
            pass
        cc = torch.cuda.get_device_capability(x.device)
        if cc >= (9, 0):
            return ext.f90(x)
        major, minor = cc
        return ext.f80(x, major * 10 + minor)
""",
    "torch.dtype map": """
_T = {torch.float32: tl.float32, torch.float16: tl.float16}
class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        kernel[(1,)](x, y, out, 1, DT=_T[x.dtype])
        return out
""",
    "data assign": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3))
    def forward(self, x):
        self.w.data = self.w.data.contiguous()
        if self.w.dtype != x.dtype:
            self.w.data = self.w.data.to(x.dtype)
        return ext.f(x, self.w.data)
""",
    "helper with scalar returned next to tensor in dict comprehension": """
class ModelNew(nn.Module):
    def forward(self, a, b):
        dims = {n: t.shape[0] for n, t in (("a", a), ("b", b))}
        m = dims["a"] * dims["b"]
        ins = {n: t.contiguous() for n, t in (("a", a), ("b", b))}
        return ext.f(ins["a"], ins["b"], m)
""",
    "zip of tensors and numbers": """
class ModelNew(nn.Module):
    def forward(self, a, b):
        total = 0
        for t, n in zip((a, b), (3, 4)):
            total += t.numel() * n
        for t, n in [(a, 1), (b, 2)]:
            ext.g(t, n * 2)
        return ext.f(a, b, total)
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
    "min over sizes w tensor in tuple": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        cfgs = [(ext.f, 128), (ext.g, 256)]
        fn, block = cfgs[0] if x.numel() < 1024 else cfgs[1]
        fn(x, out, block * 2)
        return out
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
    "gluon": """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
@gluon.jit
def kk(x, c, n, B: gl.constexpr):
    pass
class ModelNew(nn.Module):
    def forward(self, x):
        c = torch.empty_like(x)
        kk[(1,)](x, c, x.numel(), 3)
        return c
""",
    "custom op mutates": """
@torch.library.custom_op("m::f", mutates_args={"out"})
def f(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    kernel[(n * 2,)](x, x, out, n)
f.register_fake(lambda x, out, n: None)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        f(x, out, x.numel())
        return out
""",
    "np many": """
lib = ctypes.CDLL("./k.so")
class ModelNew(nn.Module):
    def forward(self, x):
        a = np.require(x.numpy(), np.float32, ["C", "A"])
        if not a.flags["C_CONTIGUOUS"]:
            a = np.ascontiguousarray(a)
        out = np.empty_like(a)
        n = int(np.prod(a.shape))
        lib.run(a.ctypes.data, out.ctypes.data_as(ctypes.c_void_p), n * a.itemsize, a.size * 2)
        return torch.from_numpy(np.expand_dims(out, 0).squeeze(0).ravel().reshape(a.shape))
""",
    "memoryview": """
lib = ctypes.CDLL("./k.so")
class ModelNew(nn.Module):
    def forward(self, x):
        buf = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
        out = bytearray(x.numel() * 4)
        view = (ctypes.c_char * len(out)).from_buffer(out)
        lib.run(buf, view, x.numel())
        return torch.frombuffer(out, dtype=torch.float32).view(x.shape)
""",
    "ext class": """
class ModelNew(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.plan = ext.Plan(n)
    def forward(self, x):
        out = torch.empty_like(x)
        self.plan.execute(x.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream)
        if self.plan.error() != 0:
            raise RuntimeError(self.plan.message())
        return out
""",
    "closures nonlocal": """
def make():
    count = 0
    def run(x):
        nonlocal count
        count += 1
        if count % 2 == 0:
            return ext.f(x)
        return ext.g(x)
    return run
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.run = make()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return self.run(x)
""",
    "offsets list": """
class ModelNew(nn.Module):
    def forward(self, *ts):
        offsets = [0]
        for t in ts:
            offsets.append(offsets[-1] + t.numel())
        out = torch.empty(offsets[-1] * 2, device=ts[0].device)
        off = torch.tensor(offsets, dtype=torch.int64).to(ts[0].device, non_blocking=True)
        ptrs = torch.tensor([t.data_ptr() for t in ts])
        ext.f(ptrs, off, out)
        return out
""",
    "args list": """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        args = [x, out, x.numel()]
        args.append(x.stride(0))
        args += [x.shape[0], 3]
        kernel[(args[2] // 2 + 1,)](*args)
        return args[1]
""",
    "arg kinds": """
from typing import Optional, Union, List, Tuple
class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, scale: Optional[float] = None, k: "int" = 3, *, causal: bool = False):
        s = scale * 2 if scale is not None else x.shape[-1] ** -0.5
        return ext.f(x, s * k, causal)
""",
    "alignment": """
class ModelNew(nn.Module):
    def forward(self, x):
        vec = 4 if x.data_ptr() % 16 == 0 and x.shape[-1] % 4 == 0 else 1
        blocks = min((x.numel() // vec + 255) // 256, 65535)
        smem = (x.size(-1) + 32) * x.element_size()
        assert smem <= 48 * 1024
        return ext.f(x, blocks, vec, smem)
""",
    "device_of etc": """
class ModelNew(nn.Module):
    def forward(self, x):
        with torch.cuda.device_of(x), torch.cuda.amp.autocast(False):
            stream = torch.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
            free, total = torch.cuda.mem_get_info()
            if free < x.numel() * 8:
                torch.cuda.empty_cache()
            y = ext.f(x)
            torch.cuda.default_stream().synchronize()
            assert not torch.cuda.is_current_stream_capturing()
            del stream
        return y
""",
    "graphed callables": """
class Inner(nn.Module):
    def forward(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.g = None
    def forward(self, x):
        if self.g is None:
            self.g = torch.cuda.make_graphed_callables(self.inner, (x.clone(),), num_warmup_iters=3)
        return self.g(x)
""",
    "graph pool keyed": """
class GraphRunner:
    def __init__(self, fn):
        self.fn = fn
        self.graphs = {}
    def __call__(self, x):
        key = tuple(x.shape)
        if key not in self.graphs:
            inp = torch.empty_like(x)
            inp.copy_(x)
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=torch.cuda.graph_pool_handle()):
                out = self.fn(inp)
            self.graphs[key] = (g, inp, out)
        g, inp, out = self.graphs[key]
        inp.copy_(x)
        g.replay()
        return out
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.runner = GraphRunner(ext.f)
    def forward(self, x):
        return self.runner(x)
""",
    "cached property version, _load_from_state_dict": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.register_buffer("packed", None, persistent=False)
    def _load_from_state_dict(self, state_dict, prefix, *args):
        super()._load_from_state_dict(state_dict, prefix, *args)
        self.packed = None
    def _apply(self, fn):
        super()._apply(fn)
        self.packed = None
        return self
    def forward(self, x):
        if self.packed is None:
            self.packed = self.fc.weight.detach().reshape(2, 2, 3).permute(2, 0, 1).contiguous()
        return ext.f(x, self.packed, self.fc.bias)
""",
    "unused helper classes": """
class Reference(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def check():
    m = ModelNew()
    x = torch.randn(3)
    assert torch.allclose(m(x), Reference()(x))
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
def get_inputs():
    return [torch.randn(3) * 2]
def get_init_inputs():
    return []
if __name__ == "__main__":
    check()
""",
    "pasted Model above": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return torch.relu(x)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return ext.f(x)
""",
    "multi kernels": """
class ModelNew(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])
        self.norms = nn.ModuleList(nn.LayerNorm(4) for _ in range(n))
    def forward(self, x):
        h = x.view(-1, x.shape[-1])
        for layer, norm in zip(self.layers, self.norms):
            h = ext.linear(h, layer.weight, layer.bias)
            h = ext.norm(h, norm.weight, norm.bias, norm.eps * 1.0, norm.normalized_shape[0] * 2)
        return h.view_as(x)
""",
    "qkv split": """
class ModelNew(nn.Module):
    def __init__(self, c=8, h=2):
        super().__init__()
        self.c_attn = nn.Linear(c, 3 * c)
        self.c_proj = nn.Linear(c, c)
        self.register_buffer("bias", torch.tril(torch.ones(4, 4)).view(1, 1, 4, 4))
        self.n_head, self.n_embd = h, c
    def linear(self, x, mod):
        out = x.new_empty(*x.shape[:-1], mod.weight.shape[0])
        ext.gemm(x, mod.weight, mod.bias, out)
        return out
    def forward(self, x):
        B, T, C = x.size()
        qkv = self.linear(x, self.c_attn)
        q, k, v = qkv.split(self.n_embd, dim=2)
        hd = C // self.n_head
        k = k.view(B, T, self.n_head, hd).transpose(1, 2)
        q = q.view(B, T, self.n_head, hd).transpose(1, 2)
        v = v.view(B, T, self.n_head, hd).transpose(1, 2)
        y = torch.empty_like(q)
        ext.attn(q, k, v, y, 1.0 / (hd ** 0.5))
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.linear(y, self.c_proj)
""",
    "lstm weights": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True)
        self.h0 = torch.randn(2, 3, 4)
    def forward(self, x):
        for l in range(self.lstm.num_layers):
            w_ih = getattr(self.lstm, f"weight_ih_l{l}")
            w_hh = getattr(self.lstm, "weight_hh_l" + str(l))
            x = ext.lstm(x, w_ih, w_hh, self.h0.to(x.device)[l])
        for ws in self.lstm.all_weights:
            ext.g(*ws)
        return x
""",
    "conv attributes": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)
        self.pool = nn.MaxPool2d(2)
        self.bn = nn.BatchNorm2d(4)
    def forward(self, x):
        s, p, op = self.conv.stride[0], self.conv.padding[0], self.conv.output_padding[0]
        k = self.conv.kernel_size[0]
        oh = (x.shape[2] - 1) * s - 2 * p + k + op
        b = self.conv.bias
        use_bias = b is not None
        ps = self.pool.kernel_size
        y = ext.f(x, self.conv.weight, b if use_bias else torch.empty(0), oh // ps, self.bn.running_var, self.bn.num_features * 2)
        return y
""",
    "enumerate streams event lists": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream(priority=-1) for _ in range(2)]
        self.events = [torch.cuda.Event() for _ in range(2)]
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.shape[0] // 2
        main = torch.cuda.current_stream()
        for i, s in enumerate(self.streams):
            s.wait_stream(main)
            with torch.cuda.stream(s):
                ext.f(x[i * half:(i + 1) * half], out[i * half:(i + 1) * half])
                self.events[i].record(s)
        for e in self.events:
            main.wait_event(e)
        return out
""",
    "vmap-like loops over heads with index math": """
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, S, D = q.shape
        splits = max(1, min(16, S // 128))
        partial = q.new_empty((splits, B, H, D), dtype=torch.float32)
        lse = partial.new_full((splits, B, H), float("-inf"))
        ext.split(q, k, v, partial, lse, splits)
        o = torch.empty_like(q[:, :, :1]).squeeze(2)
        ext.combine(partial, lse, o)
        return o, lse[0]
""",
    "error string": """
class ModelNew(nn.Module):
    def forward(self, x):
        fmt = "expected %d dims, got %d"
        if x.dim() != 2:
            raise ValueError(fmt % (2, x.dim()))
        msg = "{} {}".format(x.shape, x)
        return ext.f(x)
""",
    "hash/id": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = set()
        self.last = None
    def forward(self, x):
        key = hash((x.shape, x.dtype)) * 31 + x.device.index if x.device.index is not None else 0
        if key not in self.seen:
            self.seen.add(key)
        if self.last is x:
            pass
        return ext.f(x)
""",
    "deque": """
from collections import deque, defaultdict
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring = deque(maxlen=4)
        self.stats = defaultdict(int)
    def forward(self, x):
        out = self.ring.popleft() if len(self.ring) == 4 else torch.empty_like(x)
        self.stats[x.shape] += 1
        ext.f(x, out)
        self.ring.append(out)
        return out
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
    "scalar tensors item": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("alpha", torch.tensor(0.5))
        self._alpha = None
    def forward(self, x):
        if self._alpha is None:
            self._alpha = float(self.alpha.item())
        return ext.f(x, self._alpha * 2 + 1)
""",
    "bias shape numel": """
class ModelNew(nn.Module):
    def __init__(self, shape=(3, 1, 1)):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(shape) * 0.02)
        self.n = self.bias.numel()
    def forward(self, x):
        return ext.f(x, self.bias.view(-1), self.n * 2, self.bias.ndim - 1)
""",
    "split with sizes": """
class ModelNew(nn.Module):
    def forward(self, x):
        a, b, c = torch.split(x, [1, 2, 3], dim=-1)
        parts = x.unbind(0)
        outs = [ext.f(p, i + 1) for i, p in enumerate(parts)]
        first, *rest = outs
        return tuple(outs), first.shape[0] * len(rest)
""",
    "return none and scalars": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return {"y": y, "n": x.numel() * 2, "aux": None}
""",
    "frozen module global": """
_M = None
def _m():
    global _M
    if _M is not None:
        return _M
    import hashlib
    h = hashlib.md5(b"x").hexdigest()
    _M = load_inline(name="a" + h[:8], cpp_sources=[""], cuda_sources=[""], functions=["f"])
    return _M
class ModelNew(nn.Module):
    def forward(self, x):
        return _m().f(x)
""",
    "lock around build": """
import threading
class Lazy:
    def __init__(self):
        self._lock = threading.Lock()
        self._mod = None
    @property
    def mod(self):
        with self._lock:
            if self._mod is None:
                self._mod = load_inline(name="a", cpp_sources="")
        return self._mod
lazy = Lazy()
class ModelNew(nn.Module):
    def forward(self, x):
        return lazy.mod.f(x)
""",
    "try import numba in func": """
def grid_size(n):
    try:
        import psutil
        cores = psutil.cpu_count()
    except ImportError:
        import os
        cores = os.cpu_count()
    return min(n, cores * 2)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, grid_size(x.shape[0]))
""",
    "oom retry of allocation": """
class ModelNew(nn.Module):
    def alloc(self, x):
        try:
            return torch.empty(x.numel() * 4, device=x.device)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            return torch.empty(x.numel() * 4, device=x.device)
    def forward(self, x):
        return ext.f(x, self.alloc(x))
""",
    "suppress": """
import contextlib
class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.suppress(AttributeError):
            x = x.detach()
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            return ext.f(x)
""",
    "nvrtc via torch.cuda._compile_kernel": """
k = torch.cuda._compile_kernel("src", "k")
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k((x.numel() // 256 + 1, 1, 1), (256, 1, 1), (x, out, x.numel()), shared_mem=0)
        return out
""",
    "as_strided, unfold": """
class ModelNew(nn.Module):
    def forward(self, x):
        w = x.unfold(-1, 3, 1)
        v = x.as_strided((3, 4), (4, 1), x.storage_offset() + 2)
        d = torch.diagonal(x, 0, -2, -1)
        return ext.f(w, v, d, torch.atleast_2d(x), x[None, ..., None], x[..., ::2], x[-1], x[:, -1:])
""",
    "half intermediate": """
class ModelNew(nn.Module):
    def forward(self, x):
        h = x.to(torch.float16).contiguous()
        w = self.w16 if hasattr(self, "w16") else None
        out = torch.empty(h.shape, dtype=torch.float32, device=h.device)
        ext.f(h, out)
        return out.to(x.dtype, copy=False).type_as(x)
""",
    "set_ resize": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buf = torch.empty(0)
    def forward(self, x):
        if self.buf.numel() < x.numel():
            self.buf = self.buf.to(x.device)
            self.buf.resize_(x.numel())
        out = self.buf[: x.numel()].view(x.shape)
        ext.f(x, out)
        return out
""",
    "class attributes constants": """
class ModelNew(nn.Module):
    BLOCK = 256
    GRID = property(lambda self: self.BLOCK * 2)
    __constants__ = ["n"]
    n: int
    def __init__(self, n: int = 2):
        super().__init__()
        self.n = n
    def forward(self, x):
        return ext.f(x, self.BLOCK * self.n, self.GRID + 1)
""",
    "torch.compile'd wrapper on own op": """
@torch.library.custom_op("m::f", mutates_args=())
def f(x: torch.Tensor) -> torch.Tensor:
    return launch(x, x)
@torch.compile(fullgraph=True)
def g(x):
    return f(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return g(x)
""",
    "ParameterDict": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({"w": nn.Parameter(torch.randn(3)), "b": torch.zeros(3)})
    def forward(self, x):
        n = self.p["w"].shape[0] * 2
        for k, v in self.p.items():
            ext.g(v, len(k) * 2)
        return ext.f(x, self.p["w"], self.p.b, n)
""",
    "register_parameter": """
class ModelNew(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3))
        if bias:
            self.bias = nn.Parameter(torch.empty(3))
        else:
            self.register_parameter("bias", None)
    def forward(self, x):
        b = self.bias if self.bias is not None else torch.zeros(1)
        has = int(self.bias is not None)
        return ext.f(x, self.weight, b, has * 2)
""",
    "tuple of (tensor, number) returned from helper twice": """
def quant(x):
    q = torch.empty_like(x, dtype=torch.int8)
    ext.q(x, q)
    return q, x.shape[0] * 2
class ModelNew(nn.Module):
    def forward(self, x, w):
        (xq, xs), (wq, ws) = quant(x), quant(w)
        pairs = [quant(t) for t in (x, w)]
        n = pairs[0][1] * pairs[1][1]
        for t, m in pairs:
            n += m * 2
        return ext.f(xq, wq, xs * ws, n)
""",
    "map ptr": """
lib = ctypes.CDLL("./x.so")
ptr = lambda t: ctypes.c_void_p(t.data_ptr())
class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        code = lib.gemm(*map(ptr, [a, b, c]), *a.shape, b.shape[1])
        assert code == 0, lib.last_error()
        return c
""",
    "Struct": """
lib = ctypes.CDLL("./x.so")
class Args(ctypes.Structure):
    _fields_ = [("x", ctypes.c_void_p), ("n", ctypes.c_int64)]
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        args = Args(x.data_ptr(), x.numel())
        args.n = args.n * 2
        lib.run(ctypes.byref(args), out.data_ptr())
        return out
""",
    "if TYPE_CHECKING and version checks": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from types import ModuleType
if tuple(int(v) for v in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 0):
    NEW = True
class ModelNew(nn.Module):
    def forward(self, x):
        if triton.__version__ >= "3" and torch.version.cuda is not None and torch.version.cuda > "12":
            return ext.f(x)
        return ext.g(x)
""",
    "forward calls self.forward_impl by getattr dtype": """
class ModelNew(nn.Module):
    def forward_fp32(self, x):
        return ext.f(x)
    def forward_fp16(self, x):
        return ext.h(x)
    def forward(self, x):
        impl = {torch.float32: self.forward_fp32, torch.float16: self.forward_fp16}.get(x.dtype)
        if impl is None:
            raise TypeError(x.dtype)
        return impl(x)
""",
    "in-forward benchmark list of tuples": """
import time
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.choice = None
    def forward(self, x):
        if self.choice is None:
            results = []
            for block in (64, 128):
                torch.cuda.synchronize()
                t = time.perf_counter()
                ext.f(x, block)
                torch.cuda.synchronize()
                results.append((time.perf_counter() - t, block))
            self.choice = min(results)[1]
            best = sorted(results, key=lambda r: r[0])[0]
            print(best[0] * 1e3)
        return ext.f(x, self.choice * 2)
""",
    "min of results with outputs kept": """
import time
class ModelNew(nn.Module):
    def forward(self, x):
        results = []
        for block in (64, 128):
            y = ext.f(x, block)
            results.append((block * 2, y))
        n, y = min(results, key=lambda r: r[0])
        return y
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
    "numbers that C++ gives": """
more = load_inline(name="more", cpp_sources=r'''
auto rows(const torch::Tensor& x) -> int64_t { return x.size(0); }
std::pair<double, double> moments(const torch::Tensor& x) { return {0, 1}; }
std::vector<double> bounds(torch::Tensor x) { return {0, 1}; }
static inline unsigned long long cycles(torch::Tensor x) { return 1; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("count", [](torch::Tensor x) -> int64_t { return x.numel(); });
}
''', functions=["rows", "moments", "bounds", "cycles"])
class ModelNew(nn.Module):
    def forward(self, x):
        mean, square = more.moments(x)
        bounds = more.bounds(x)
        spread = square - mean * mean
        workspace = torch.empty(4 * more.count(x) + more.rows(x))
        return ext.f(x, workspace, 1 / spread, bounds[1] - bounds[0], more.cycles(x) // 2)
""",
    "a class of C++ that is made of a tensor": """
plans = load_inline(name="plans", cpp_sources=r'''
struct Plan {
  explicit Plan(torch::Tensor x);
  int64_t size() const;
  torch::Tensor run(torch::Tensor x);
};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Plan>(m, "Plan").def(py::init<torch::Tensor>()).def("run", &Plan::run).def("size", &Plan::size);
}
''')
class ModelNew(nn.Module):
    def forward(self, x):
        plan = plans.Plan(x)
        return plan.run(x)[: plan.size() // 2]
""",
    "entries counted from the end": """
class ModelNew(nn.Module):
    def forward(self, x):
        plan = (x, torch.empty_like(x), x.numel())
        kernel[(triton.cdiv(plan[-1], 256) + plan[-1] % 2,)](plan[-3], plan[0], plan[-2], plan[-1])
        return plan[-2]
""",
    "copies and views of other names": """
lib = ctypes.CDLL("./lib.so")
class ModelNew(nn.Module):
    def forward(self, x):
        a, out = x.numpy().copy(), np.empty(x.shape, np.float32)
        out.fill(0)
        starts = torch.arange(0, x.numel() + 1, x.shape[1])
        first, second = x.unsafe_chunk(2, 1)
        halves = x.dsplit(2)
        lib.f(a.ctypes.data, x.numpy().tobytes(), starts.data_ptr(), first.data_ptr(), halves[1].data_ptr(), out.ctypes.data)
        return torch.from_numpy(out)
""",
    "a module that setuptools builds": """
import importlib, sys
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
with open("mine.cpp", "w") as file:
    file.write('''
#include <torch/extension.h>
torch::Tensor relu_of(torch::Tensor x) { return x; }
int64_t width(torch::Tensor x) { return 1; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu_of", &relu_of); m.def("width", &width); }
''')
setup(name="mine", ext_modules=[CppExtension("mine", ["mine.cpp"])], cmdclass={"build_ext": BuildExtension},
      script_args=["build_ext", "--inplace"])
sys.path.insert(0, ".")
mine = importlib.import_module("mine")
class ModelNew(nn.Module):
    def forward(self, x):
        return mine.relu_of(x)[: mine.width(x) * 2]
""",
    "timed by timeit": """
import timeit
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = None
    def forward(self, x):
        if self.block is None:
            seconds = {block: timeit.timeit(lambda: ext.f(x, block), number=3) for block in (64, 128)}
            self.block = min(seconds, key=seconds.__getitem__)
            print(min(timeit.repeat(lambda: ext.f(x, self.block), repeat=2, number=3)) / 3)
        return ext.f(x, self.block * 2)
""",
    "C++ that calls what the CUDA source defines": """
CPP = "torch::Tensor rms_norm(torch::Tensor x, double eps); torch::Tensor forward(torch::Tensor x) { return rms_norm(x, 1e-5); }"
CUDA = "torch::Tensor rms_norm(torch::Tensor x, double eps) { return torch::empty_like(x); }"
mine = load_inline(name="m", cpp_sources=CPP, cuda_sources=CUDA, functions=["forward"])
class ModelNew(nn.Module):
    def forward(self, x):
        return mine.forward(x)
""",
}

CPP = {
    "options": """
torch::Tensor f(torch::Tensor x) { auto y = torch::empty({x.size(0)}, x.options().dtype(torch::kFloat32));
    auto z = torch::zeros_like(x);
    auto w = at::full({1}, 3.0, x.options());
    TORCH_CHECK(x.is_contiguous());
    x = x.contiguous().to(torch::kFloat).view({-1}).reshape({2, 2}).transpose(0, 1).unsqueeze(0).expand({1, 2}).narrow(0, 0, 1).clone();
    y.zero_();
    y.fill_(0);
    y.copy_(x);
    return y;
    }
""",
    "guards": """
#include <c10/cuda/CUDAGuard.h>
torch::Tensor f(torch::Tensor x) { const at::cuda::OptionalCUDAGuard guard(device_of(x));
    auto s = at::cuda::getCurrentCUDAStream();
    int sms = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
    auto p = x.data_ptr<float>();
    auto q = x.const_data_ptr<float>();
    auto a = x.packed_accessor32<float, 2, torch::RestrictPtrTraits>();
    auto n = x.numel() * x.element_size();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "f", [&] { k<scalar_t><<<1, 1, 0, s>>>(x.data_ptr<scalar_t>());
    });
    return x;
    }
""",
    "device code": """
using namespace at;
__device__ float f(float x) { return max(min(x, 1.f), exp(x)) + at::opmath_type<float>(x);
    }
at::Tensor g(const at::Tensor& x) { std::vector<at::Tensor> v;
    v.push_back(x);
    auto t = std::max(x.size(0), x.size(1));
    int64_t m = at::ceil_div(x.numel(), (int64_t)256);
    auto u = at::native::canUse32BitIndexMath(x);
    at::parallel_for(0, 3, 1, [&](int64_t a, int64_t b) {});
    return v[0];
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
    "strings": """
// at::softmax(x, -1)
/* torch::matmul(a, b) */
const char* s = "torch::relu(x)";
torch::Tensor f(torch::Tensor x) { auto out = torch::empty_like(x);
    auto [a, b] = std::make_tuple(x.size(0), x.stride(0));
    return out.t();
    }
""",
    "slices": """
torch::Tensor f(torch::Tensor x) { using namespace torch::indexing;
    auto y = x.index({Slice(), 0});
    auto z = x.slice(0, 0, 2).select(0, 1).squeeze();
    auto [p, q] = std::tuple{x.split(2), x.chunk(2)};
    auto l = x[0].item<float>();
    auto f = torch::from_blob(nullptr, {1});
    auto i = torch::tensor({1, 2});
    auto ar = torch::arange(3);
    return y;
    }
""",
    "cutlass": """
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k() { auto t = make_tensor(p, make_shape(1, 2));
    cute::gemm(m, a, b, c);
    copy(a, b);
    cute::clear(acc);
    }
torch::Tensor f(torch::Tensor a, torch::Tensor b) { return a;
    }
""",
    "cub": """
#include <cub/cub.cuh>
void f(torch::Tensor x, torch::Tensor y) { size_t n = 0;
    cub::DeviceReduce::Sum(nullptr, n, x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    auto ws = torch::empty({(int64_t)n}, x.options().dtype(torch::kUInt8));
    cub::BlockScan<float, 128>(t).ExclusiveSum(a, b);
    thrust::sort(thrust::device, p, p + 3);
    }
""",
    "autograd": """
struct F : torch::autograd::Function<F> { static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) { ctx->save_for_backward({x});
    return x;
    } };
torch::Tensor f(torch::Tensor x) { torch::NoGradGuard g;
    return F::apply(x);
    }
""",
    "one name, a tensor here and a number there": """
#include <torch/extension.h>
namespace {
struct Sum {
    float total = 0;
    void add(float v) { total += v; }
    float mean(int64_t n) const { return total / n; }
};
float row(const float* in, int64_t n) {
    Sum out;
    for (int64_t i = 0; i < n; ++i) out.add(in[i]);
    return out.mean(n);
}
void rows(const float* p, float* q) {
    using Vec = at::vec::Vectorized<float>;
    Vec x = Vec::loadu(p);
    x.exp().store(q);
}
}  // namespace
torch::Tensor f(torch::Tensor x) {
    auto out = torch::empty_like(x);
    out.data_ptr<float>()[0] = row(x.data_ptr<float>(), x.numel());
    return out;
}
""",
    "functions that are variables": """
#include <torch/extension.h>
template <typename F>
void each(const float* x, float* y, int64_t n, F&& silu) {
    for (int64_t i = 0; i < n; ++i) y[i] = silu(x[i]);
}
static std::function<float(float)> gelu = [](float v) { return v / 2; };
torch::Tensor f(torch::Tensor x) {
    auto relu = [](float x) { return x > 0 ? x : 0; };
    const auto sigmoid = [&](auto x) { return relu(x) + gelu(x); };
    float y = sigmoid(x.item<float>());
    return x;
}
""",
    "vectors and numbers by the names of operations": """
#include <torch/extension.h>
using namespace std;
torch::Tensor f(torch::Tensor x) {
    auto out = torch::empty_like(x);
    std::vector<double> mean(x.size(0), 0.0), var(x.size(0));
    vector<int64_t> sort(x.numel()), topk(x[0].numel());
    double sum(x.numel() ? 1.0 : 0.0);
    int64_t threads = clamp(x.size(0), (int64_t)1, (int64_t)8);
    mean[0] = clamp<double>(sum, 0, 1) + var[0];
    return out;
}
""",
    "macros by the names of operations": """
#include <torch/extension.h>
#define div(a, b) (((a) + (b) - 1) / (b))
#define sigmoid(x) (1.0f / (1.0f + expf(-(x))))
#define silu(x) \\
    ((x) * sigmoid(x))
torch::Tensor f(torch::Tensor a, torch::Tensor x) {
    auto out = torch::empty({div(a.numel(), 4)});
    for (int64_t i = 0; i < x.numel(); ++i) out.data_ptr<float>()[i] = silu(x.data_ptr<float>()[i]);
    return out;
}
""",
    "functions of its own in other forms": """
#include <torch/extension.h>
class Op { public: torch::Tensor softmax(torch::Tensor x); torch::Tensor run(torch::Tensor x); };
torch::Tensor Op::softmax(torch::Tensor x) { return torch::empty_like(x); }
torch::Tensor Op::run(torch::Tensor x) { return softmax(x); }
std::tuple<torch::Tensor, torch::Tensor> topk(torch::Tensor x, int64_t k);
void rms_norm(const at::Tensor& x, at::Tensor& out);
static torch::Tensor linear(const torch::Tensor& x, const c10::optional<torch::Tensor>& b = {}) { return torch::empty_like(x); }
struct Gelu { float operator()(torch::Tensor x) { return 1; } };
torch::Tensor f(torch::Tensor x) {
    float (*square)(torch::Tensor) = [](torch::Tensor v) { return 3.f; };
    Gelu gelu;
    auto out = linear(x);
    out.data_ptr<float>()[0] = square(x) + gelu(x);
    rms_norm(x, out);
    auto [values, places] = topk(x, 3);
    return Op().run(values);
}
""",
    "registers by the names of tensors": """
#include <ATen/cpu/vec/functional.h>
using Vec = at::vec::Vectorized<float>;
struct Layer { torch::Tensor w; torch::Tensor forward(torch::Tensor x) { return x; } };
static float dot(const float* a, int64_t n) {
    Vec acc(0), w(0);
    for (int64_t i = 0; i < n; i += Vec::size()) { auto x = Vec::loadu(a + i); acc = acc + w.abs() * x.exp(); }
    return 0;
}
torch::Tensor f(torch::Tensor x, torch::Tensor input) {
    auto out = torch::empty_like(x);
    at::vec::map<float>([](Vec x) { auto y = x.neg(); return x.abs() + y.exp(); }, out.data_ptr<float>(), x.data_ptr<float>(), 8);
    at::parallel_for(0, x.numel(), 1, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) { Vec input = Vec::loadu(x.data_ptr<float>()); input.exp().store(out.data_ptr<float>()); }
    });
    return out;
}
""",
    "classes of its own by the names of tensors": """
#include <torch/extension.h>
struct Tensor { float* p; int64_t n; float max() const { return p[0]; } float mean() const { return p[0] / n; } };
struct Sum { float add(float v) { return v; } float var() const { return 1; } };
struct Holder { Sum x; };
struct Context { torch::Tensor out; };
void finish(const std::vector<Sum>& s, float* o) { Sum out = s[0]; o[0] = out.var(); }
torch::Tensor f(torch::Tensor x) {
    Tensor view{x.data_ptr<float>(), x.numel()};
    Holder h;
    auto out = torch::empty_like(x);
    out.data_ptr<float>()[0] = view.max() + view.mean() + h.x.add(1.f);
    return out;
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
}
