"""Values that leave the sight of who reads names: by hooks, exceptions, reflection, nesting. In each, torch computes."""

# ruff: noqa: E501

INDIRECT = {
    "nested 5": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return [[[[[torch.softmax]]]]][0][0][0][0][0](x, 1)
""",
    "nested tensor 5": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return [[[[[x]]]]][0][0][0][0][0].softmax(1)
""",
    "deep calls 40": """
def f0(x):
    return f1(x)
def f1(x):
    return f2(x)
def f2(x):
    return f3(x)
def f3(x):
    return f4(x)
def f4(x):
    return f5(x)
def f5(x):
    return f6(x)
def f6(x):
    return f7(x)
def f7(x):
    return f8(x)
def f8(x):
    return f9(x)
def f9(x):
    return f10(x)
def f10(x):
    return f11(x)
def f11(x):
    return f12(x)
def f12(x):
    return f13(x)
def f13(x):
    return f14(x)
def f14(x):
    return f15(x)
def f15(x):
    return f16(x)
def f16(x):
    return f17(x)
def f17(x):
    return f18(x)
def f18(x):
    return f19(x)
def f19(x):
    return f20(x)
def f20(x):
    return f21(x)
def f21(x):
    return f22(x)
def f22(x):
    return f23(x)
def f23(x):
    return f24(x)
def f24(x):
    return f25(x)
def f25(x):
    return f26(x)
def f26(x):
    return f27(x)
def f27(x):
    return f28(x)
def f28(x):
    return f29(x)
def f29(x):
    return f30(x)
def f30(x):
    return f31(x)
def f31(x):
    return f32(x)
def f32(x):
    return f33(x)
def f33(x):
    return f34(x)
def f34(x):
    return f35(x)
def f35(x):
    return f36(x)
def f36(x):
    return f37(x)
def f37(x):
    return f38(x)
def f38(x):
    return f39(x)
def f39(x):
    return f40(x)
def f40(x):
    return torch.softmax(x,1)

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return f0(x)
""",
    "exception carries fn": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        try:
            raise ValueError(torch.softmax)
        except ValueError as e:
            return e.args[0](x, 1)
""",
    "exception carries tensor": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        try:
            raise ValueError(x)
        except ValueError as e:
            return e.args[0].softmax(1)
""",
    "getattr at module": """
n = ''.join(['soft','max'])
soft = getattr(torch, n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return soft(x, 1)
""",
    "getattr in init": """
n = ''.join(['soft','max'])

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = getattr(torch, n)
    def forward(self, x):
        y = ext.f(x)
        return self.s(x, 1)
""",
    "eval at module": """
soft = eval('torch.' + ''.join(['soft','max']))

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return soft(x, 1)
""",
    "exec at module": """
exec('def work(x): return torch.%s(x, 1)' % 'softmax')

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return work(x)
""",
    "methodcaller dyn": """
n = ''.join(['soft','max'])

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return operator.methodcaller(n, 1)(x)
""",
    "__bases__": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return type(x).__bases__[0].softmax(x, 1)
""",
    "annotation holder": """
class H:
    s: torch.softmax

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return H.__annotations__['s'](x, 1)
""",
    "func __defaults__": """
def g(a=torch.softmax): ...

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return g.__defaults__[0](x, 1)
""",
    "func attr unlisted": """
def g(): ...
g.op = torch.multiply

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return g.op(x, x)
""",
    "closure cell": """
def mk(op):
    def g(): return op
    return g
g = mk(torch.softmax)

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return g.__closure__[0].cell_contents(x, 1)
""",
    "enum member2": """
import enum
class E(enum.Enum):
    S = (torch.softmax,)

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return E.S.value[0](x, 1)
""",
    "property call": """
class ModelNew(nn.Module):
    def _impl(self):
        return torch.softmax(self.x, 1)
    out = property(_impl)
    def forward(self, x):
        ext.f(x)
        self.x = x
        return self.out
""",
    "property lambda": """
class ModelNew(nn.Module):
    out = property(lambda self: torch.softmax(self.x, 1))
    def forward(self, x):
        ext.f(x)
        self.x = x
        return self.out
""",
    "forward hook object": """
class Hook:
    def __call__(self, m, a, o):
        return torch.softmax(a[0], 1)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(Hook())
    def forward(self, x):
        return ext.f(x)
""",
    "forward hook in dict": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._forward_hooks[0] = lambda m, a, o: torch.softmax(a[0], 1)
    def forward(self, x):
        return ext.f(x)
""",
    "forward hook update": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._forward_hooks.update({0: lambda m, a, o: torch.softmax(a[0], 1)})
    def forward(self, x):
        return ext.f(x)
""",
    "submodule hook": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Identity()
        self.i.register_forward_hook(lambda m, a, o: torch.softmax(o, 1))
    def forward(self, x):
        ext.f(x)
        return self.i(x)
""",
    "getattr on TorchModule param": """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.h, 'weight', nn.Softmax(1))
    def forward(self, x):
        ext.f(x)
        self.h.parametrizations.weight.original.data = x
        return self.h.weight
""",
    "callable instance in kernel": """
class Op:
    def __call__(self, a, b):
        return torch.softmax(a, 1)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, Op())
""",
    "signal with object": """
import signal
class H:
    def __call__(self, *a):
        H.y = torch.softmax(H.x, 1)
signal.signal(signal.SIGUSR1, H())

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        self.x = x
        signal.raise_signal(signal.SIGUSR1)
        return H.y
""",
    "triton pre_hook": """
def hook(nargs):
    nargs['o'].copy_(torch.softmax(nargs['x'], 1))
@triton.autotune(configs=[triton.Config({'B': 16}, pre_hook=hook)], key=[])
@triton.jit
def k(x, o, B: tl.constexpr):
    pass
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out)
        return out
""",
    "triton prune": """
def prune(configs, nargs, **kw):
    nargs['o'].copy_(torch.softmax(nargs['x'], 1))
    return configs
@triton.autotune(configs=[triton.Config({'B': 16}), triton.Config({'B': 32})], key=[], prune_configs_by={'early_config_prune': prune})
@triton.jit
def k(x, o, B: tl.constexpr):
    pass
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(1,)](x, out)
        return out
""",
    "triton grid lambda": """
@triton.jit
def k(o, B: tl.constexpr):
    tl.store(o, 0.0)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[lambda meta: (out.copy_(torch.softmax(x, 1)).dim(),)](out, B=16)
        return out
""",
    "triton grid function": """
@triton.jit
def k(o, B: tl.constexpr):
    tl.store(o, 0.0)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        def grid(meta):
            out.copy_(torch.softmax(x, 1))
            return (1,)
        k[grid](out, B=16)
        return out
""",
    "triton do_bench": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        triton.testing.do_bench(lambda: y.copy_(torch.softmax(x, 1)), warmup=0, rep=1)
        return y
""",
    "triton interp np": """
import triton.runtime.interpreter as interp

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return torch.from_numpy(interp.np.exp(x.numpy()))
""",
    "from triton import np": """
from triton.runtime.interpreter import np as np2

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return torch.from_numpy(np2.exp(x.numpy()))
""",
    "math.prod": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import math
        return math.prod([x, x])
""",
    "math.fsum": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import math
        return math.fsum([x, x])
""",
    "statistics.mean": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import statistics
        return statistics.fmean([x, x])
""",
    "itertools.accumulate plain": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import itertools
        return list(itertools.accumulate([x, x]))[-1]
""",
    "heapq": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import heapq
        return heapq.nlargest(1, list(x.unbind(0)))[0]
""",
    "contextlib nullcontext": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        import contextlib
        with contextlib.nullcontext(x) as t:
            return t.softmax(1)
""",
    "iter sentinel": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        for t in iter(lambda: torch.softmax(x, 1), None):
            return t
""",
    "list subclass": """
class L(list): pass

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        L([torch.softmax])[0](x, 1)
        return L([torch.softmax])[0](x, 1)
""",
    "dict subclass": """
class D(dict): pass

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return D(s=torch.softmax)['s'](x, 1)
""",
    "dataclass default_factory": """
import dataclasses
@dataclasses.dataclass
class P:
    op: object = dataclasses.field(default_factory=lambda: torch.softmax)

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return P().op(x, 1)
""",
    "type() inline": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return type('C', (), {'op': torch.softmax}).op(x, 1)
""",
    "type() inline2": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return type('C', (), dict(op=staticmethod(torch.softmax)))().op(x, 1)
""",
    "np via memoryview": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        a = np.asarray(memoryview(x.numpy()))
        return torch.from_numpy(np.exp(a))
""",
    "np.vectorize": """
class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return torch.from_numpy(np.vectorize(np.exp)(x.numpy()))
""",
    "dynamo np": """
import torch._dynamo.utils

class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.f(x)
        return torch.from_numpy(torch._dynamo.utils.np.exp(x.numpy()))
""",
    "second arg None-typed annotation alias": """
from typing import Any
class ModelNew(nn.Module):
    def forward(self, x, w: Any):
        ext.f(x)
        return w.softmax(1)
""",
    "annotation T": """
from torch import Tensor as T
class ModelNew(nn.Module):
    def forward(self, x: T, w: T):
        ext.f(x)
        return w.softmax(1)
""",
    "annotation ndarray jaxtyping": """
class ModelNew(nn.Module):
    def forward(self, x, w: 'Float32'):
        ext.f(x)
        return w + w
""",
}
