"""Ways of saying what computes without a call of it in sight. In each, torch computes in what `forward` reaches."""

# ruff: noqa: E501

DISGUISES = {
    "an operator of its own class": """
class Op:
    def __matmul__(self, x):
        return x @ x
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(Op() @ x)
""",
    "an operator that only the tensor has": """
class Op:
    def __add__(self, x):
        return ext.f(x)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return Op() @ x
""",
    "text that is run in what locals() gave": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        space = locals()
        exec(open("f.txt").read(), globals(), space)
        self.f = space["f"]
    def forward(self, x):
        ext.f(x)
        return self.f(x)
""",
    "text that is run in a mapping with entries": """
space = {"torch": torch}
exec(open("f.txt").read(), space)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return space["f"](x)
""",
    "a variable further out by its name": """
class ModelNew(nn.Module):
    def forward(self, x):
        def inner():
            y = 1
            x
            return locals()["x"] * 2
        return ext.f(inner())
""",
    "a local variable by its name": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = x
        return ext.f(locals()["y"] * 2)
""",
    "a table of torch's for tests": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        for function in torch.overrides.get_testing_overrides():
            if function.__name__ == "softmax":
                return function(x, 1)
""",
    "torch's wrapper of an operator": """
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return torch._dynamo.utils.numpy_operator_wrapper(operator.matmul)(x, w)
""",
    "what made a view": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.empty(1, requires_grad=True).expand(x.shape[0]).grad_fn(x)
""",
    "a tree with paths": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.utils._pytree.tree_map_with_path(lambda path, leaf: torch.softmax(leaf, 1), x)
""",
    "cpp name on two lines": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return at::soft\\
max(x, 1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
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
    "__new__ of another class": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def __new__(cls):
        return Other()
    def forward(self, x):
        return ext.f(x)
""",
    "metaclass": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class Meta(type):
    def __call__(cls, *a):
        return Other(*a)
class ModelNew(nn.Module, metaclass=Meta):
    def forward(self, x):
        return ext.f(x)
""",
    "module __getattr__": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
del ModelNew
def __getattr__(name):
    return Other
""",
    "module attribute": """
import sys
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
sys.modules[__name__].ModelNew = Other
""",
    "setattr of a module by name": """
import sys
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
setattr(sys.modules['submission'], 'ModelNew', Other)
""",
    "globals update": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
globals().update({'ModelNew': Other})
""",
    "f_globals": """
import inspect
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
inspect.currentframe().f_globals['ModelNew'] = Other
""",
    "walrus in a comprehension": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
[ModelNew := Other for _ in (0,)]
""",
    "setitem of globals": """
import operator
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
operator.setitem(globals(), 'ModelNew', Other)
""",
    "setattr by a name not written out": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for k, v in {'forward': lambda x: torch.softmax(x, 1)}.items():
            setattr(self, k, v)
    def forward(self, x):
        return ext.f(x)
""",
    "__dict__ update of a dictionary": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__.update({'forward': lambda x: torch.softmax(x, 1)})
    def forward(self, x):
        return ext.f(x)
""",
    "__dict__ __setitem__": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__.__setitem__('forward', lambda x: torch.softmax(x, 1))
    def forward(self, x):
        return ext.f(x)
""",
    "__dict__ |=": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__ |= {'forward': lambda x: torch.softmax(x, 1)}
    def forward(self, x):
        return ext.f(x)
""",
    "CFUNCTYPE": """
kept = []
def compute():
    x, out = kept
    out.copy_(torch.softmax(x, 1))
work = ctypes.CFUNCTYPE(None)(compute)
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kept[:] = x, out
        work()
        return out
""",
    "callback of an extension": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(lambda: torch.softmax(x, 1))
""",
    "function handed to a kernel": """
@triton.jit
def k(x, out, OP: tl.constexpr):
    OP(x, out)
def sneak(x, out):
    out.copy_(torch.softmax(x, 1))
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out, OP=sneak)
        return out
""",
    "torch in a kernel's body": """
kept=[]
@triton.jit
def k(x, BLOCK: tl.constexpr):
    kept[1].copy_(torch.softmax(kept[0], 1))
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kept[:] = x, out
        k[(1,)](x, BLOCK=1)
        return out
""",
    "Python called by a kernel": """
kept=[]
def sneak():
    kept[1].copy_(torch.softmax(kept[0], 1))
@triton.jit
def k(x, BLOCK: tl.constexpr):
    sneak()
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kept[:] = x, out
        k[(1,)](x, BLOCK=1)
        return out
""",
    "Module.apply": """
class ModelNew(nn.Module):
    def work(self, m):
        self.y = torch.softmax(self.x, 1)
    def forward(self, x):
        ext.f(x)
        self.x = x
        self.apply(self.work)
        return self.y
""",
    "signal handler": """
import signal
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGUSR1, self.work)
    def work(self, *a):
        self.y = torch.softmax(self.x, 1)
    def forward(self, x):
        ext.f(x)
        self.x = x
        signal.raise_signal(signal.SIGUSR1)
        return self.y
""",
    "profile hook": """
import sys
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        sys.setprofile(self.work)
    def work(self, *a):
        self.y = torch.softmax(self.x, 1)
    def forward(self, x):
        self.x = x
        ext.f(x)
        return self.y
""",
    "gc callback": """
import gc
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        gc.callbacks.append(self.work)
    def work(self, *a):
        self.y = torch.softmax(self.x, 1)
    def forward(self, x):
        self.x = x
        ext.f(x)
        gc.collect()
        return self.y
""",
    "parametrization": """
class P(nn.Module):
    def forward(self, w):
        return torch.softmax(w, 1)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.lin, 'weight', P())
    def forward(self, x):
        ext.f(x)
        return self.lin.weight
""",
    "pydoc.locate": """
import pydoc
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return pydoc.locate('torch.softmax')(x, 1)
""",
    "pickle": r"""
import pickle
work = pickle.loads(b'ctorch\nsoftmax\n.')
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return work(x, 1)
""",
    "torch.__dict__": """
n = 'xamtfos'[::-1]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.__dict__[n](x, 1)
""",
    "vars(torch)": """
n = 'xamtfos'[::-1]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return vars(torch)[n](x, 1)
""",
    "getmembers": """
import inspect
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return dict(inspect.getmembers(torch))['softmax'](x, 1)
""",
    "__getattribute__": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return object.__getattribute__(x, 'softmax')(1)
""",
    "numpy of an address": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        out = torch.empty(4, 4)
        a = np.frombuffer((ctypes.c_float * 16).from_address(x.data_ptr()), np.float32)
        c = np.frombuffer((ctypes.c_float * 16).from_address(out.data_ptr()), np.float32)
        np.exp(a, out=c)
        return out
""",
    "numpy of a list": """
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return torch.tensor(np.matmul(np.array(x.tolist()), np.array(w.tolist())))
""",
    "cupy": """
import cupy
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return torch.from_dlpack(cupy.matmul(cupy.from_dlpack(x), cupy.from_dlpack(w)))
""",
    "triton.ops": """
import triton.ops
class ModelNew(nn.Module):
    def forward(self, x, w):
        ext.f(x)
        return triton.ops.matmul(x, w)
""",
    "__setitem__ of a container": """
ops = {}
ops.__setitem__('s', torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops['s'](x, 1)
""",
    "namespace": """
import types
ops = types.SimpleNamespace()
ops.s = torch.softmax
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops.s(x, 1)
""",
    "ChainMap": """
import collections
ops = collections.ChainMap({'s': torch.softmax})
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops['s'](x, 1)
""",
    "defaultdict": """
import collections
ops = collections.defaultdict(lambda: torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ops['s'](x, 1)
""",
    "context variable": """
import contextvars
op = contextvars.ContextVar('op', default=torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return op.get()(x, 1)
""",
    "weakref": """
import weakref
op = weakref.ref(torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return op()(x, 1)
""",
    "queue": """
import queue
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        q = queue.Queue()
        q.put(x)
        return q.get().softmax(1)
""",
    "threading.local": """
import threading
l = threading.local()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        l.x = x
        return l.x.softmax(1)
""",
    "singledispatch": """
import functools
@functools.singledispatch
def work(x):
    return x
@work.register
def _(x: torch.Tensor):
    return torch.softmax(x, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return work(x)
""",
    "__init_subclass__": """
class Other(nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
class Base(nn.Module):
    def __init_subclass__(cls):
        cls.forward = Other.forward
class ModelNew(Base):
    def forward(self, x):
        return ext.f(x)
""",
    "starred target": """
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        f, *_ = [torch.softmax]
        return f(x, 1)
""",
    "yield from": """
class ModelNew(nn.Module):
    def g(self, x):
        yield from [torch.softmax]
    def forward(self, x):
        ext.f(x)
        return next(self.g(x))(x, 1)
""",
    "opcheck": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        torch.library.opcheck(torch.ops.aten.exp.out, (x,), {'out': y})
        return y
""",
    "GradScaler": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = torch.amp.GradScaler('cuda', 2.0)
    def forward(self, x):
        ext.f(x)
        return self.s.scale(x)
""",
    "cpp chain": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return x.contiguous().softmax(1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp auto": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { auto y = x.contiguous(); return y.softmax(1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp vector": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(std::vector<torch::Tensor> xs) { return xs[0].softmax(1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work([x])
''',
    "cpp argument-dependent lookup": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return softmax(x, 1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp using": '''
SRC = r"""#include <torch/extension.h>
using at::softmax;
torch::Tensor work(torch::Tensor x) { return softmax(x, 1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp own name of Tensor": '''
SRC = r"""#include <torch/extension.h>
using torch::Tensor;
Tensor work(Tensor x) { return x.softmax(1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp _ops": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return at::_ops::softmax_int::call(x, 1, {}); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp dispatcher": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return c10::Dispatcher::singleton().findSchemaOrThrow("aten::softmax", "int").typed<at::Tensor(const at::Tensor&, int64_t, std::optional<at::ScalarType>)>().call(x, 1, {}); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp layer": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { torch::nn::Linear l(4, 4); return l->forward(x); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp Python": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return py::module_::import("torch").attr("softmax")(x, 1).cast<torch::Tensor>(); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp cblas": '''
SRC = r"""#include <torch/extension.h>
extern "C" void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
torch::Tensor work(torch::Tensor x) { auto o = torch::empty({4, 4}); cblas_sgemm(101, 111, 111, 4, 4, 4, 1.f, x.data_ptr<float>(), 4, x.data_ptr<float>(), 4, 0.f, o.data_ptr<float>(), 4); return o; }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp cublas": '''
SRC = r"""#include <torch/extension.h>
#include <cublas_v2.h>
torch::Tensor work(torch::Tensor x) { cublasSgemm(h, 0, 0, 4, 4, 4, &a, p, 4, p, 4, &b, o, 4); return x; }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp template": '''
SRC = r"""#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return at::OP(x, 1); }"""
lib = load_inline(name='l', cpp_sources=[SRC.replace('OP', 'softmax')], functions=['work'])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp by a compiler of its own": '''
SRC = r"""#include <ATen/ATen.h>
extern "C" void work(void* x, void* o) { *(at::Tensor*)o = at::softmax(*(at::Tensor*)x, 1); }"""
import subprocess
open('w.cpp', 'w').write(SRC)
subprocess.run(['g++', 'w.cpp'])
lib = ctypes.CDLL('./w.so')
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
    "cpp macro": '''
SRC = r"""#include <torch/extension.h>
#define OP softmax
torch::Tensor work(torch::Tensor x) { return at::OP(x, 1); }"""
lib = load_inline(name="l", cpp_sources=[SRC], functions=["work"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.work(x)
''',
}
