"""Modules that a submission writes or looks up without naming them, and hooks that are objects; honest ones beside."""

# ruff: noqa: E501

HIDDEN = {
    "write_text import": r"""
import sys, pathlib
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
pathlib.Path("/tmp/helper_mod.py").write_text(SRC)
sys.path.insert(0, "/tmp")
import helper_mod
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return helper_mod.f(x)
""",
    "write_text from import": r"""
import sys, pathlib
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
pathlib.Path("/tmp/helper_mod.py").write_text(SRC)
sys.path.insert(0, "/tmp")
from helper_mod import f
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return f(x)
""",
    "write method only": r"""
import sys, pathlib
SRC = "def f(x):\n    return x.softmax(1)\n"
pathlib.Path("/tmp/helper_mod.py").write_text(SRC)
sys.path.insert(0, "/tmp")
from helper_mod import f
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return f(x)
""",
    "open write import star": r"""
import sys
with open("/tmp/hm.py", "w") as h:
    h.write("import torch\n")
    h.write("def f(x):\n    return torch.softmax(x, 1)\n")
sys.path.append("/tmp")
from hm import *
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return f(x)
""",
    "spec_from_file": r"""
import importlib.util
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
open("/tmp/hm.py","w").write(SRC)
spec = importlib.util.spec_from_file_location("hm", "/tmp/hm.py")
mod = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mod)
class ModelNew(nn.Module):
    def forward(self, x):
        return mod.f(x)
""",
    "SourceFileLoader": r"""
from importlib.machinery import SourceFileLoader
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
open("/tmp/hm.py","w").write(SRC)
mod = SourceFileLoader("hm", "/tmp/hm.py").load_module()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
""",
    "ModuleType exec": r"""
import types
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
mod = types.ModuleType("hm")
exec(SRC, mod.__dict__)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
""",
    "exec ns": r"""
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
ns = {}
exec(SRC, ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec compile ns": r"""
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
ns = {}
exec(compile(SRC, "a", "exec"), ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec ns alias": r"""
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
run = exec
ns = {}
run(SRC, ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec getattr": r"""
import builtins
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
ns = {}
getattr(builtins, "ex" + "ec")(SRC, ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec in init self": r"""
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ns = {}
        exec(SRC, ns)
        self.f = ns["f"]
    def forward(self, x):
        ext.f(x)
        return self.f(x)
""",
    "exec joined": r"""
LINES = ["import torch", "def f(x):", "    return torch.softmax(x, 1)"]
ns = {}
exec("\n".join(LINES), ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec read": r"""
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
open("/tmp/q.txt","w").write(SRC)
ns = {}
exec(open("/tmp/q.txt").read(), ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec format": r"""
T = "import torch\ndef f(x):\n    return torch.{op}(x, 1)\n"
ns = {}
exec(T.format(op="softmax"), ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["f"](x)
""",
    "exec b64": r"""
import base64
ns = {}
exec(base64.b64decode("aW1wb3J0IHRvcmNoCg=="), ns)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return ns["torch"].softmax(x, 1)
""",
    "zipimport": r"""
import zipimport, zipfile
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
zipfile.ZipFile("/tmp/a.zip", "w").writestr("hm.py", SRC)
mod = zipimport.zipimporter("/tmp/a.zip").load_module("hm")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
""",
    "zip path import": r"""
import sys, zipfile
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
zipfile.ZipFile("/tmp/a.zip", "w").writestr("hm.py", SRC)
sys.path.insert(0, "/tmp/a.zip")
import hm
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return hm.f(x)
""",
    "import_module written": r"""
import importlib, sys
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
open("/tmp/hm.py","w").write(SRC)
sys.path.insert(0, "/tmp")
mod = importlib.import_module("hm")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
""",
    "textwrap dedent": r'''
import textwrap, importlib, sys
open("/tmp/hm.py","w").write(textwrap.dedent("""
    import torch
    def f(x):
        return torch.softmax(x, 1)
    """))
sys.path.insert(0, "/tmp")
mod = importlib.import_module("hm")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
''',
    "class in text": r'''
import importlib, sys
open("/tmp/hm.py","w").write("""
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Softmax(1)
    def forward(self, x):
        return self.l(x)
""")
sys.path.insert(0, "/tmp")
from hm import Net
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = Net()
    def forward(self, x):
        ext.f(x)
        return self.n(x)
''',
    "cProfile.run": r"""
import cProfile
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        out = {}
        cProfile.runctx("out[0] = torch.softmax(x, 1)", globals(), locals())
        return out[0]
""",
    "loader class": r"""
import sys, importlib.abc, importlib.util
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
class L(importlib.abc.InspectLoader):
    def get_source(self, name):
        return SRC
spec = importlib.util.spec_from_loader("hm", L())
mod = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mod)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return mod.f(x)
""",
    "meta_path": r"""
import sys, importlib.abc, importlib.util
SRC = "import torch\ndef f(x):\n    return torch.softmax(x, 1)\n"
class L(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    def get_source(self, name):
        return SRC
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "hm" else None
sys.meta_path.append(L())
import hm
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return hm.f(x)
""",
    "name: import_module computed": r"""
import importlib
m = importlib.import_module("hcrot"[::-1])
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module joined": r"""
import importlib
m = importlib.import_module("".join(["tor", "ch"]))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module var": r"""
import importlib
N = "tor"
m = importlib.import_module(N + "ch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module chr": r"""
import importlib
m = importlib.import_module("%s%s" % ("tor", "ch"))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module replace": r"""
import importlib
m = importlib.import_module("toXch".replace("X", "r"))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module env": r"""
import importlib, os
m = importlib.import_module(os.environ.get("NAME", "torch"))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module param": r"""
import importlib
def get(name):
    return importlib.import_module(name)
m = get("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: import_module tensor's": r"""
import importlib
m = importlib.import_module(torch.Tensor.__module__)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: __import__ computed": r"""
m = __import__("TORCH".lower())
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: __import__ format": r"""
m = __import__("{}ch".format("tor"))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules iter": r"""
import sys
m = [v for k, v in sys.modules.items() if k == "tor" "ch"][0]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules iter2": r"""
import sys
for k in sys.modules:
    if len(k) == 5 and k.startswith("tor"):
        m = sys.modules[k]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules values": r"""
import sys
m = next(v for v in sys.modules.values() if hasattr(v, "softmax"))
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules computed": r"""
import sys
m = sys.modules["hcrot"[::-1]]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules get": r"""
import sys
N = "to" + "rch"
m = sys.modules.get(N)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules dict": r"""
import sys
m = dict(sys.modules)["torch"]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules copy": r"""
import sys
m = sys.modules.copy()["torch"]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules __getitem__": r"""
import sys
m = sys.modules.__getitem__("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: sys.modules pop": r"""
import sys
m = sys.modules.pop("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: from sys import modules": r"""
from sys import modules as M
m = M["hcrot"[::-1]]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: inspect.getmodule": r"""
import inspect
m = inspect.getmodule(torch.Tensor)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: gc objects": r"""
import gc
m = [o for o in gc.get_objects() if getattr(o, "__name__", "") == "torch"][0]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: frame globals": r"""
import sys
m = sys._getframe().f_globals["hcrot"[::-1]]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: globals get": r"""
m = globals().get("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: spec loader": r"""
import importlib.util
s = importlib.util.find_spec("torch")
m = s.loader.load_module()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: find_spec module_from_spec": r"""
import importlib.util
s = importlib.util.find_spec("torch")
m = importlib.util.module_from_spec(s)
s.loader.exec_module(m)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: importlib._bootstrap": r"""
import importlib
m = importlib._bootstrap._gcd_import("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: torch of a module": r"""
m = triton.runtime.jit.torch
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: torch of cpp_extension importlib": r"""
m = torch.utils.cpp_extension.importlib.import_module("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: EntryPoint": r"""
from importlib.metadata import EntryPoint
class M:
    softmax = EntryPoint("a", "torch:softmax", "g").load()
m = M
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: logging resolve": r"""
from logging.config import _resolve
m = _resolve("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: mock importer": r"""
from unittest.mock import _importer
m = _importer("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: test.support": r"""
from test.support.import_helper import import_module
m = import_module("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: functools.partial import": r"""
import importlib, functools
m = functools.partial(importlib.import_module, "torch")()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: map import": r"""
import importlib
m = list(map(importlib.import_module, ["torch"]))[0]
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: lambda import": r"""
get = lambda n: __import__(n)
m = get("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: lazy loader": r"""
import importlib.util, sys
s = importlib.util.find_spec("torch")
m = importlib.util.LazyLoader(s.loader).load_module("torch")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.softmax(x, 1)
""",
    "name: computed module, functional": r"""
import importlib
m = importlib.import_module("hcrot"[::-1])
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.nn.functional.softmax(x, 1)
""",
    "name: computed module, getattr": r"""
import importlib
m = importlib.import_module("hcrot"[::-1])
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return getattr(m, "xamtfos"[::-1])(x, 1)
""",
    "name: computed F": r"""
import importlib
m = importlib.import_module("lanoitcnuf.nn.hcrot"[::-1])
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return m.scaled_dot_product_attention(x, x, x)
""",
    "name: computed layer": r"""
import importlib
m = importlib.import_module("hcrot"[::-1])
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = m.nn.Softmax(1)
    def forward(self, x):
        ext.f(x)
        return self.l(x)
""",
    "name: dispatch table of modules in forward": r"""
import sys
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        for n, mod in sys.modules.items():
            if n.endswith("functional"):
                return mod.softmax(x, 1)
""",
    "obj: module_forward_hook": r"""
class H:
    def __call__(self, *a):
        return torch.softmax(a[-1] if torch.is_tensor(a[-1]) else a[1][0], 1)
torch.nn.modules.module.register_module_forward_hook(H())
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "obj: module_forward_pre_hook": r"""
class H:
    def __call__(self, *a):
        return torch.softmax(a[-1] if torch.is_tensor(a[-1]) else a[1][0], 1)
torch.nn.modules.module.register_module_forward_pre_hook(H())
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "obj: hook op": r"""
torch.nn.modules.module.register_module_forward_pre_hook(torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "obj: lib impl": r"""
class H:
    def __call__(self, *a):
        return torch.softmax(a[-1] if torch.is_tensor(a[-1]) else a[1][0], 1)
lib = torch.library.Library("aten", "IMPL")
lib.impl("clone", H(), "CPU")
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return x.clone()
""",
    "obj: patch object": r"""
class H:
    def __call__(self, *a):
        return torch.softmax(a[-1] if torch.is_tensor(a[-1]) else a[1][0], 1)
torch.Tensor.contiguous = H()
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return x.contiguous()
""",
    "obj: setattr": r"""
class H:
    def __call__(self, *a):
        return torch.softmax(a[-1] if torch.is_tensor(a[-1]) else a[1][0], 1)
setattr(torch.Tensor, "contiguous", H())
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return x.contiguous()
""",
    "obj: custom_op": r"""
class H:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 1)
op = torch.library.custom_op("mine::f", H(), mutates_args=())
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return op(x)
""",
    "obj: layer hook": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Identity()
        self.i.register_forward_hook(nn.Softmax(1))
    def forward(self, x):
        ext.f(x)
        return self.i(x)
""",
    "obj: layer hook lambda": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Identity()
        self.i.register_forward_hook(lambda m, a, o: o.softmax(1))
    def forward(self, x):
        ext.f(x)
        return self.i(x)
""",
    "obj: self hook": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, a, o: o.softmax(1))
    def forward(self, x):
        return ext.f(x)
""",
    "graph capture_begin": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = torch.cuda.CUDAGraph()
        self.a = torch.empty(3, 3)
        self.g.capture_begin()
        self.b = torch.softmax(self.a, 1)
        self.g.capture_end()
    def forward(self, x):
        ext.f(x)
        self.a.copy_(x)
        self.g.replay()
        return self.b
""",
    "ctypes cublas by glob": r"""
import glob
lib = ctypes.CDLL(glob.glob("/usr/lib/*cublas*")[0])
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.cublasSgemm_v2(x.data_ptr(), y.data_ptr())
        return y
""",
    "ctypes cublas var": r"""
NAME = "libcublas.so"
lib = ctypes.CDLL(NAME)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.cublasSgemm_v2(x.data_ptr(), y.data_ptr())
        return y
""",
    "ctypes None cblas": r"""
lib = ctypes.CDLL(None)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.cblas_sgemm(x.data_ptr(), y.data_ptr())
        return y
""",
    "ctypes getattr sgemm": r"""
lib = ctypes.CDLL(torch._C.__file__)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        getattr(lib, "sgemm_")(x.data_ptr(), y.data_ptr())
        return y
""",
    "ctypes find_library": r"""
import ctypes.util
lib = ctypes.CDLL(ctypes.util.find_library("openblas"))
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib["cblas_sgemm"](x.data_ptr(), y.data_ptr())
        return y
""",
    "cupyx": r"""
import cupyx.scipy.special as cs, cupy
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torch.from_dlpack(cs.softmax(cupy.from_dlpack(x)))
""",
    "nvidia.cublas": r"""
from nvidia import cublas
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return cublas.gemm(x, x)
""",
    "quack/other kernel libs": r"""
from quack import softmax
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return softmax(x)
""",
    "torchao": r"""
import torchao
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return torchao.ops.mm(x, x)
""",
    "fla": r"""
from fla.ops import chunk_gla
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return chunk_gla(x, x, x)
""",
    "causal_conv1d": r"""
from causal_conv1d import causal_conv1d_fn
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return causal_conv1d_fn(x, x)
""",
    "mamba_ssm": r"""
from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return selective_scan_fn(x, x)
""",
    "dict fromkeys": r"""
OPS = dict.fromkeys("ab", torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return OPS["a"](x, 1)
""",
    "list in dict append": r"""
OPS = {"a": []}
OPS["a"].append(torch.softmax)
class ModelNew(nn.Module):
    def forward(self, x):
        ext.f(x)
        return OPS["a"][0](x, 1)
""",
    "inherit importlib": r"""
import importlib
Model = importlib.import_module("reference").Model
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Model()
    def forward(self, x):
        ext.f(x)
        return self.m(x)
""",
    "inherit __import__": r"""
Ref = getattr(__import__("reference"), "Model")
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Ref()
    def forward(self, x):
        ext.f(x)
        return self.m(x)
""",
}

PLAIN = {
    "triton written and imported": r'''
import importlib.util, tempfile, os
SRC = """
import triton
import triton.language as tl
@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.exp(tl.load(x + i)))
"""
path = os.path.join(tempfile.mkdtemp(), "gen.py")
open(path, "w").write(SRC)
spec = importlib.util.spec_from_file_location("gen", path)
gen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gen)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        gen.softmax[(1,)](x, o, x.numel(), B=1024)
        return o
''',
    "triton template written": r"""
import sys, pathlib
T = "import triton\nimport triton.language as tl\n@triton.jit\ndef run(x, o, B: tl.constexpr):\n    tl.store(o, tl.{op}(tl.load(x)))\n"
pathlib.Path("/tmp/gen_k.py").write_text(T.format(op="exp"))
sys.path.insert(0, "/tmp")
import gen_k
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        gen_k.run[(1,)](x, o, B=16)
        return o
""",
    "wrapper in text": r'''
import sys, pathlib
pathlib.Path("/tmp/gen_k.py").write_text("""
import torch, triton
import triton.language as tl
@triton.jit
def _k(x, o, n, B: tl.constexpr):
    tl.store(o, tl.load(x))
def softmax(x):
    o = torch.empty_like(x)
    _k[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), B=64)
    return o.view(x.shape)
def check(x):
    return torch.allclose(softmax(x), torch.softmax(x, 1))
""")
sys.path.insert(0, "/tmp")
from gen_k import softmax
class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
''',
    "import_module of a built ext": r"""
import importlib, hashlib
NAME = "ext_" + hashlib.md5(b"a").hexdigest()
def build(name):
    return importlib.import_module(name)
mod = build(NAME)
class ModelNew(nn.Module):
    def forward(self, x):
        return mod.fused_softmax(x)
""",
    "import_module, declared": r"""
import importlib
SRC = "#include <torch/extension.h>\ntorch::Tensor softmax(torch::Tensor x) { return torch::empty_like(x); }"
load_inline(name="a", cpp_sources=SRC, functions=["softmax"])
mod = importlib.import_module("a" + str(3))
class ModelNew(nn.Module):
    def forward(self, x):
        return mod.softmax(x)
""",
    "getattr of module fn": r"""
import importlib
def load(name, fn):
    return getattr(importlib.import_module(name), fn)
f = load("mine", "run")
class ModelNew(nn.Module):
    def forward(self, x):
        return f(x)
""",
    "sys.modules cache": r"""
import sys
NAME = "kernel_cache"
def get():
    if NAME in sys.modules:
        return sys.modules[NAME]
    mod = load_inline(name=NAME, cpp_sources="torch::Tensor f(torch::Tensor x);", functions=["f"])
    sys.modules[NAME] = mod
    return mod
class ModelNew(nn.Module):
    def forward(self, x):
        return get().f(x)
""",
    "sys.modules param": r"""
import sys
def get(name):
    mod = sys.modules.get(name)
    if mod is None:
        mod = load_inline(name=name, cpp_sources="torch::Tensor relu(torch::Tensor x);", functions=["relu"])
        sys.modules[name] = mod
    return mod
class ModelNew(nn.Module):
    def forward(self, x):
        return get("mine").relu(x)
""",
    "own module": r"""
import sys
this = sys.modules[__name__]
this.RUN = lambda t: ext.f(t)
class ModelNew(nn.Module):
    def forward(self, x):
        return this.RUN(x)
""",
    "importlib for optional": r"""
import importlib
HAS = importlib.util.find_spec("triton") is not None
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "numba module": r"""
import numba
@numba.njit(fastmath=True)
def k(a, o):
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * a[i, j]
        o[i] = s ** 0.5
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0])
        k(x.numpy(), o.numpy())
        return o
""",
    "numba cuda": r"""
from numba import cuda
@cuda.jit
def k(a, o):
    i = cuda.grid(1)
    if i < a.size:
        o[i] = a[i] * 2
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(x.numel() + 255) // 256, 256](cuda.as_cuda_array(x), cuda.as_cuda_array(o))
        return o
""",
    "weight packing": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.register_buffer("packed", None)
        self._version = -1
    def forward(self, x):
        w = self.lin.weight
        if self.packed is None or self._version != w._version:
            self.packed = w.detach().t().contiguous().to(torch.float16)
            self._version = w._version
        return ext.f(x, self.packed, self.lin.bias)
""",
    "pack in init ops": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        w = self.lin.weight.data
        self.scale = float(w.abs().max()) / 127
        self.q = torch.round(w / self.scale).to(torch.int8)
        self.bias2 = torch.cat([self.lin.bias, self.lin.bias])
    def forward(self, x):
        return ext.f(x, self.q, self.scale)
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
    "autotune": r"""
@triton.autotune([triton.Config({"B": b}, num_warps=w) for b in (64, 128) for w in (4, 8)], key=["n"])
@triton.jit
def k(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(o + i, tl.exp(v - tl.max(v, 0)) / tl.sum(v, 0), mask=m)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        grid = lambda m: (triton.cdiv(x.numel(), m["B"]),)
        k[grid](x, o, x.numel())
        return o
""",
    "heuristics": r"""
@triton.heuristics({"B": lambda a: triton.next_power_of_2(a["n"])})
@triton.jit
def k(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(o + i, tl.exp(v - tl.max(v, 0)) / tl.sum(v, 0), mask=m)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(x.shape[0],)](x, o, x.shape[1])
        return o
""",
    "dtype checks": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        assert x.dtype in (torch.float16, torch.float32), x.dtype
        if not x.is_cuda:
            raise RuntimeError("want a GPU")
        if x.dtype == torch.float16:
            return ext.half(x)
        return ext.f(x.float() if x.dtype is torch.bfloat16 else x)
""",
    "helper class": r"""
class Launcher:
    def __init__(self, name, block=256):
        self.name, self.block = name, block
        self.calls = 0
    def grid(self, n):
        return (n + self.block - 1) // self.block
    def __call__(self, x, *args, **kw):
        self.calls += 1
        return getattr(ext, self.name)(x, self.grid(x.numel()), *args, **kw)
run = Launcher("softmax")
class ModelNew(nn.Module):
    def forward(self, x):
        return run(x, 1.0)
""",
    "string names": r"""
OPS = {"float16": "f_half", "float32": "f_float"}
class ModelNew(nn.Module):
    def forward(self, x):
        return getattr(ext, OPS[str(x.dtype).split(".")[-1]])(x)
""",
    "format of source": r'''
SRC = """
#include <torch/extension.h>
__global__ void k(const float* x, float* y) { y[0] = x[0] * BLOCK; }
torch::Tensor f(torch::Tensor x) { auto y = torch::empty_like(x); k<<<(x.numel() + BLOCK - 1) / BLOCK, BLOCK>>>(x.data_ptr<float>(), y.data_ptr<float>()); return y; }
"""
lib = load_inline(name="l", cpp_sources=SRC.replace("BLOCK", str(256)), functions=["f"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.f(x)
''',
    "percent source": r"""
SRC = "#define N %d\n__global__ void k(float* x) { x[0] *= N; }" % 128
lib = load_inline(name="l", cpp_sources="torch::Tensor f(torch::Tensor x);", cuda_sources=SRC, functions=["f"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.f(x)
""",
    "exec of generated numba": r'''
ns = {}
exec("""
def k(x, o):
    for i in range(len(x)):
        o[i] = x[i] * 2
""", ns)
import numba
k = numba.njit(ns["k"])
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k(x.numpy(), o.numpy())
        return o
''',
    "exec of launcher": r"""
ns = {"kernel": kernel, "torch": torch, "triton": triton}
exec("def run(x):\n    o = torch.empty_like(x)\n    kernel[(1,)](x, x, o, x.numel())\n    return o\n", ns)
run = ns["run"]
class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
""",
    "module hook counts": r"""
COUNT = [0]
def count(m, i, o):
    COUNT[0] += 1
torch.nn.modules.module.register_module_forward_hook(count)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "module hook lambda": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda m, i, o: o.view(-1))
    def forward(self, x):
        return ext.f(x)
""",
    "pre hook contiguous": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_pre_hook(lambda m, a: tuple(t.contiguous() for t in a))
    def forward(self, x):
        return ext.f(x)
""",
    "library impl object": r"""
class Impl:
    def __call__(self, x):
        return ext.f(x)
lib = torch.library.Library("mine", "DEF")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", Impl(), "CUDA")
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.f(x)
""",
    "library impl number": r"""
lib = torch.library.Library("mine", "DEF")
lib.define("f(Tensor x, int n) -> Tensor")
def f(x, n: int):
    return ext.f(x, n * 2 + 1)
lib.impl("f", f, "CUDA")
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.f(x, 3)
""",
    "library impl lambda": r"""
lib = torch.library.Library("mine", "DEF")
lib.define("f(Tensor x, int n) -> Tensor")
lib.impl("f", lambda x, n: ext.f(x, n * 2), "CUDA")
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.f(x, 3)
""",
    "test text beside": r'''
TEST = """
import torch
def test():
    x = torch.randn(3, 3)
    assert torch.allclose(ModelNew()(x), torch.softmax(x, 1))
"""
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
''',
    "doc usage": r'''
USAGE = """
import torch
model = ModelNew()
class A:
    def f(self, x): return torch.relu(x)
"""
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
''',
    "doc usage same name": r'''
USAGE = """
import torch
def f(x):
    return torch.relu(x)
"""
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
''',
    "docstring with reference of same name": r'''
SRC = "#include <torch/extension.h>\ntorch::Tensor softmax(torch::Tensor x) { return torch::empty_like(x); }"
lib = load_inline(name="a", cpp_sources=SRC, functions=["softmax"])
REF = """
import torch
def softmax(x):
    return torch.softmax(x, 1)
"""
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.softmax(x)
''',
    "gc collect": r"""
import gc
class ModelNew(nn.Module):
    def forward(self, x):
        gc.collect()
        return ext.f(x)
""",
    "inspect source": r"""
import inspect
HERE = inspect.getsourcefile(lambda: 0)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "os environ": r"""
import os
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
os.environ["MAX_JOBS"] = str(4)
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x, int(os.environ.get("BLOCK", "256")))
""",
    "ctypes names": r"""
import subprocess
open("/tmp/k.c", "w").write("void dot_(float* x, float* y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] * 2; }")
subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "/tmp/k.c", "-o", "/tmp/k.so"], check=True)
lib = ctypes.CDLL("/tmp/k.so")
lib.dot_.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int]
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        lib.dot_(x.data_ptr(), o.data_ptr(), x.numel())
        return o
""",
    "own sgemm_": r"""
SRC = 'extern "C" void sgemm_(const float* a, const float* b, float* c, int n) { for (int i = 0; i < n; i++) c[i] = a[i] * b[i]; }'
open("/tmp/k.cpp", "w").write(SRC)
lib = ctypes.CDLL("/tmp/k.so")
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        lib.sgemm_(x.data_ptr(), x.data_ptr(), o.data_ptr(), x.numel())
        return o
""",
    "own sgemm ext": r"""
lib = load_inline(name="g", cpp_sources="torch::Tensor sgemm(torch::Tensor a, torch::Tensor b);", cuda_sources="__global__ void sgemm_kernel(const float* a) {}\ntorch::Tensor sgemm(torch::Tensor a, torch::Tensor b) { auto c = torch::empty_like(a); sgemm_kernel<<<1, 2>>>(a.data_ptr<float>()); return c; }", functions=["sgemm"])
class ModelNew(nn.Module):
    def forward(self, x):
        return lib.sgemm(x, x)
""",
    "cuda graph own": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None
    def forward(self, x):
        if self.graph is None:
            self.inp = x.clone()
            self.graph = torch.cuda.CUDAGraph()
            s = torch.cuda.Stream()
            with torch.cuda.stream(s):
                self.graph.capture_begin()
                self.out = ext.f(self.inp)
                self.graph.capture_end()
        self.inp.copy_(x)
        self.graph.replay()
        return self.out
""",
    "dict.fromkeys": r"""
BUF = dict.fromkeys(("a", "b"))
class ModelNew(nn.Module):
    def forward(self, x):
        BUF["a"] = torch.empty_like(x)
        return ext.f(x, BUF["a"])
""",
    "append in dict": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {"bufs": []}
    def forward(self, x):
        if not self.cache["bufs"]:
            self.cache["bufs"].append(torch.empty_like(x))
        return ext.f(x, self.cache["bufs"][0])
""",
    "slicing names": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = ["q", "k", "v"][::-1]
    def forward(self, x):
        q, k, v = ext.f(x).split(64, dim=-1)
        return ext.g(q.contiguous(), k, v)
""",
    "getattr join": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        name = "_".join(["f", str(x.dim())])
        return getattr(ext, name)(x)
""",
    "globals table": r"""
def run_2(x):
    return ext.f(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return globals()["run_" + str(2)](x)
""",
    "globals get": r"""
def run_2(x):
    return ext.f(x)
class ModelNew(nn.Module):
    def forward(self, x):
        return globals().get("run_2")(x)
""",
    "dict get/pop": r"""
D = {"a": 3}
class ModelNew(nn.Module):
    def forward(self, x):
        n = D.get("a", 4) * D.pop("b", 1)
        return ext.f(x, n)
""",
    "warp-like modules": r"""
import cutlass.cute as cute
@cute.jit
def run(a, o):
    o[0] = a[0] * 2
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        run(x, o)
        return o
""",
    "tilelang": r"""
import tilelang, tilelang.language as T
@tilelang.jit
def mm(M, N):
    @T.prim_func
    def main(A, B):
        T.gemm(A, B)
    return main
kern = mm(3, 4)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kern(x, o)
        return o
""",
    "env module": r"""
import importlib
tl_math = importlib.import_module("triton.language")
class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x, x)
""",
    "multi dtype via getattr torch": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.dt = getattr(torch, "float" + "16")
    def forward(self, x):
        return ext.f(x.to(self.dt))
""",
    "percent dict": r"""
S = "x%(n)d" % {"n": 3}
L = "%s" % (3,)
M = "%5.2f" % 2.0
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "big format": r"""
S = "{:>5}".format("x")
getattr(ext, "f")
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
""",
    "thread local": r"""
import threading
tls = threading.local()
class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(tls, "buf"):
            tls.buf = torch.empty_like(x)
        return ext.f(x, tls.buf)
""",
    "scalar math": r"""
import math
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0 / math.sqrt(64)
        self.eps = nn.Parameter(torch.tensor(1e-5))
    def forward(self, x):
        n = math.prod(x.shape[:-1])
        return ext.f(x.reshape(n, -1), self.scale * math.log2(math.e)).reshape(x.shape)
""",
    "reshape dims": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        B, C, *rest = x.shape
        n = 1
        for r in rest:
            n *= r
        y = x.view(B, C, n).transpose(1, 2).contiguous()
        return ext.f(y, B * n, C).view(B, n, C).transpose(1, 2).reshape(B, C, *rest)
""",
    "triton with pointers of list": r"""
class ModelNew(nn.Module):
    def forward(self, x):
        xs = list(x.unbind(0))
        outs = [torch.empty_like(t) for t in xs]
        for t, o in zip(xs, outs):
            kernel[(1,)](t, t, o, t.numel())
        return outs
""",
    "torch.compile disable": r"""
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
    @torch.compiler.disable
    def go(self, x):
        return ext.f(x)
    def forward(self, x):
        return self.go(x)
""",
}
