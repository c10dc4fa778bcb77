"""Ways of saying what computes without a call of it in sight. In each, torch computes in what `forward` reaches."""

DISGUISES = {
    "match capture": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        match x:
            case t:
                return t.softmax(1)
""",
    "match guard": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        match 1:
            case _ if y.copy_(torch.softmax(x, 1)) is not None:
                return y
""",
    "while else": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        while False:
            pass
        else:
            y = torch.softmax(x, 1)
        return y
""",
    "nonlocal": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        g = None
        def put():
            nonlocal g
            g = torch.softmax
        put()
        return g(x, 1)
""",
    "default arg": """
class ModelNew(nn.Module):
    def forward(self, x, op=torch.softmax):
        ext.f(x)
        return op(x, 1)
""",
    "self.__class__.op": """
class ModelNew(nn.Module):
    op = torch.softmax
    def forward(self, x):
        ext.f(x)
        return self.__class__.op(x, 1)
""",
    "globals()": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return globals()["torch"].softmax(x, 1)
""",
    "globals() fn": """
soft = torch.softmax
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return globals()["soft"](x, 1)
""",
    "locals()": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return locals()["x"].softmax(1)
""",
    "attrgetter": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return operator.attrgetter("softmax")(torch)(x, 1)
""",
    "methodcaller": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return operator.methodcaller("softmax", 1)(x)
""",
    "accumulate": """
import itertools
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return list(itertools.accumulate([x, w], torch.matmul))[-1]
""",
    "MethodType": """
import types
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return types.MethodType(torch.softmax, x)(1)
""",
    "getattr_static": """
import inspect
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return inspect.getattr_static(torch, "softmax")(x, 1)
""",
    "copy": """
import copy
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return copy.copy(x).softmax(1)
""",
    "deque": """
import collections
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return collections.deque([x])[0].softmax(1)
""",
    "generator": """
class ModelNew(nn.Module):
    def parts(self, x):
        yield x
    def forward(self, x):
        ext.f(x)
        for t in self.parts(x):
            return t.softmax(1)
""",
    "contextmanager": """
import contextlib
@contextlib.contextmanager
def held(x):
    yield x
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        with held(x) as t:
            return t.softmax(1)
""",
    "__getattr__": """
class Ops:
    def __getattr__(self, name):
        return torch.softmax
ops = Ops()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops.anything(x, 1)
""",
    "__getitem__": """
class Ops:
    def __getitem__(self, name):
        return torch.softmax
ops = Ops()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops["a"](x, 1)
""",
    "__mul__": """
class W:
    def __init__(self, t):
        self.t = t
    def __mul__(self, other):
        return torch.matmul(self.t, other.t)
class ModelNew(nn.Module):
    def forward(self, x, y):
        ext.f(x)
        return W(x) * W(y)
""",
    "__enter__": """
class W:
    def __init__(self, t):
        self.t = t
    def __enter__(self):
        return torch.softmax(self.t, 1)
    def __exit__(self, *a):
        pass
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        with W(x) as y:
            return y
""",
    "__new__": """
class W:
    def __new__(cls, t):
        return torch.softmax(t, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return W(x)
""",
    "__iter__": """
class W:
    def __init__(self, t):
        self.t = t
    def __iter__(self):
        return iter([torch.softmax(self.t, 1)])
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        y, = W(x)
        return y
""",
    "__class_getitem__": """
class W:
    def __class_getitem__(cls, t):
        return torch.softmax(t, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return W[x]
""",
    "descriptor": """
class D:
    def __get__(self, obj, owner):
        return torch.softmax(obj.t, 1)
class ModelNew(nn.Module):
    y = D()
    def forward(self, x):
        ext.f(x)
        self.t = x
        return self.y
""",
    "__post_init__": """
import dataclasses
@dataclasses.dataclass
class W:
    t: object
    def __post_init__(self):
        self.y = torch.softmax(self.t, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return W(x).y
""",
    "dataclass field": """
import dataclasses
@dataclasses.dataclass
class W:
    t: object
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return W(x).t.softmax(1)
""",
    "class decorator": """
def patch(cls):
    cls.forward = lambda self, x: torch.softmax(x, 1)
    return cls
@patch
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "globals rebound": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
globals()["ModelNew"] = Other
""",
    "setattr module": """
import sys
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
setattr(sys.modules[__name__], "ModelNew", Other)
""",
    "type()": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
ModelNew = type("ModelNew", (nn.Module,), {"forward": lambda self, x: torch.softmax(x, 1)})
""",
    "self.__class__ =": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__class__ = Other
    def forward(self, x):
        return ext.f(x)
""",
    "__dict__ update": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__.update(forward=lambda x: torch.softmax(x, 1))
    def forward(self, x):
        return ext.f(x)
""",
    "__dict__[]": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__["forward"] = lambda x: torch.softmax(x, 1)
    def forward(self, x):
        return ext.f(x)
""",
    "vars()[]": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        vars(self)["forward"] = lambda x: torch.softmax(x, 1)
    def forward(self, x):
        return ext.f(x)
""",
    "patch nn.Module.__call__": """
nn.Module.__call__ = lambda self, x: torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "patch torch.empty_like lambda": """
torch.empty_like = lambda x: torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.empty_like(x)
""",
    "patch torch.empty_like alias": """
torch.empty_like = torch.relu
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.empty_like(x)
""",
    "patch Tensor.contiguous": """
torch.Tensor.contiguous = torch.Tensor.relu
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x.contiguous())
""",
    "setattr torch": """
setattr(torch, 'empty_like', torch.relu)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.empty_like(x)
""",
    "global hook": """
from torch.nn.modules.module import register_module_forward_hook
register_module_forward_hook(lambda m, a, o: torch.softmax(a[0], 1))
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "handle_torch_function": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.overrides.handle_torch_function(torch.softmax, (x,), x, 1)
""",
    "amp.custom_fwd": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.amp.custom_fwd(torch.softmax, device_type="cpu")(x, 1)
""",
    "_dynamo.disable": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch._dynamo.disable(torch.softmax)(x, 1)
""",
    "allow_in_graph in init": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.compiler.allow_in_graph(torch.softmax)
    def forward(self, x):
        ext.f(x)
        return self.f(x, 1)
""",
    "fx trace in init": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.fx.symbolic_trace(nn.Softmax(1))
    def forward(self, x):
        ext.f(x)
        return self.f(x)
""",
    "jit.freeze in init": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.jit.freeze(torch.jit.script(nn.Softmax(1).eval()))
    def forward(self, x):
        ext.f(x)
        return self.f(x)
""",
    "Module.__call__": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Softmax(1)
    def forward(self, x):
        ext.f(x)
        return nn.Module.__call__(self.f, x)
""",
    "_call_impl": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Softmax(1)
    def forward(self, x):
        ext.f(x)
        return self.f._call_impl(x)
""",
    "type(layer)": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Softmax(1)
    def forward(self, x):
        ext.f(x)
        return type(self.f)(1)(x)
""",
    "deepcopy layer": """
import copy
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = copy.deepcopy(nn.Softmax(1))
    def forward(self, x):
        ext.f(x)
        return self.f(x)
""",
    "Tensor subclass": """
class T(torch.Tensor):
    pass
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return T(x).softmax(1)
""",
    "Tensor subclass op": """
class T(torch.Tensor):
    pass
class ModelNew(nn.Module):
    def forward(self, x, y):
        ext.f(x)
        return T(x) * T(y)
""",
    "module exec literal": """
exec('def work(x): return torch.softmax(x, 1)')
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return work(x)
""",
    "eval lambda module": """
work = eval('lambda x: torch.softmax(x, 1)')
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return work(x)
""",
    "aten override clone": """
lib = torch.library.Library('aten', 'IMPL')
lib.impl('clone', lambda x, memory_format=None: torch.softmax(x, 1), 'CPU')
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return x.clone()
""",
    "einops": """
import einops
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return einops.einsum(x, w, 'i j, j k -> i k')
""",
    "opt_einsum": """
import opt_einsum
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return opt_einsum.contract('ij,jk->ik', x, w)
""",
    "jax": """
import jax.numpy as jnp
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return torch.from_dlpack(jnp.dot(jnp.from_dlpack(x), jnp.from_dlpack(w)))
""",
    "ctypes mkl": """
mkl = ctypes.CDLL('libmkl_rt.so')
class ModelNew(nn.Module):
    def forward(self, x, w):
        out = torch.empty(3, 3)
        mkl.cblas_sgemm(101, 111, 111, 3, 3, 3, x.data_ptr(), w.data_ptr(), out.data_ptr())
        return out
""",
    "cpp at::": """
lib = load_inline(name="l", cpp_sources=r'''#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return at::softmax(x, 1); }''', functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
""",
    "cpp method": """
SRC = r'''#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return x.softmax(1); }'''
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
""",
    "cpp nn functional": """
SRC = r'''#include <torch/torch.h>
namespace F = torch::nn::functional;
torch::Tensor work(torch::Tensor x) { return F::softmax(x, 1); }'''
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
""",
    "atexit-like callback": """
import contextlib
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        with contextlib.ExitStack() as s:
            s.callback(lambda: y.copy_(torch.softmax(x, 1)))
        return y
""",
    "weakref finalize": """
import weakref
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        class O: pass
        weakref.finalize(O(), lambda: y.copy_(torch.softmax(x, 1)))
        return y
""",
    "sorted key": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        sorted([0], key=lambda _: y.copy_(torch.softmax(x, 1)).numel())
        return y
""",
    "sys.modules attr": """
import sys
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return sys.modules.get("torch").softmax(x, 1)
""",
    "__builtins__": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return __builtins__["__import__"]("torch").softmax(x, 1)
""",
    "importlib.__import__": """
import importlib
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return importlib.__import__("torch").softmax(x, 1)
""",
    "x.__class__": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return x.__class__.softmax(x, 1)
""",
    "kwonly op": """
class ModelNew(nn.Module):
    def forward(self, x, *, op=torch.softmax):
        ext.f(x)
        return op(x, 1)
""",
}
