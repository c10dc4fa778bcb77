"""A layer of torch is one behind every method that gives the module itself; each kind of kernel is
one.
"""

import inspect

import pytest
from rules_corpus import HEAD
from torch import nn

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules
from kevin_env.rules.vocabulary import words

MODEL = """
import copy
{before}
class ModelNew(nn.Module):
    def __init__(self, layer=None):
        super().__init__()
        {made}
    def forward(self, x):
        ext.f(x)
        return {used}
"""
GIVEN = {"to": "'cuda'", "type": "torch.float16", "to_empty": "device='cuda'", "apply": "print"}
METHODS = {
    name
    for name, method in vars(nn.Module).items()
    if inspect.isfunction(method)
    and (
        method.__annotations__.get("return") == "Self"
        or "Self" in str(inspect.signature(method).return_annotation)
    )
} | {"to"}
"""Methods of a module that give the module itself, as the installed torch declares them."""
CALLS = ["", *(f".{name}({GIVEN.get(name, '')})" for name in sorted(METHODS)), ".cuda().eval()"]
LAYERS = {"layer": "nn.Softmax(dim=1)", "recurrent": "nn.LSTM(4, 4)"}

IDIOMS = {
    "attribute": ("", "self.m = LAYER", "self.m(x)"),
    "assigned twice": ("", "m = nn.Softmax(1); m = mCALL; self.m = m", "self.m(x)"),
    "method as a statement": ("", "self.m = nn.Softmax(1); self.mCALL", "self.m(x)"),
    "method in forward": ("", "self.m = nn.Softmax(1)", "self.mCALL(x)"),
    "made in forward": ("", "pass", "LAYER(x)"),
    "called by forward": ("", "self.m = LAYER", "self.m.forward(x)"),
    "called by __call__": ("", "self.m = LAYER", "self.m.__call__(x)"),
    "Sequential": ("", "self.m = nn.Sequential(LAYER, nn.Identity())", "self.m(x)"),
    "Sequential after another": (
        "",
        "self.m = nn.Sequential(nn.Sequential(nn.Identity()), LAYER)",
        "self.m(x)",
    ),
    "Sequential itself": ("", "self.m = nn.Sequential(nn.Softmax(1))CALL", "self.m(x)"),
    "ModuleList": ("", "self.m = nn.ModuleList([LAYER])", "self.m[0](x)"),
    "ModuleList itself": (
        "",
        "self.m = nn.ModuleList([nn.Softmax(1)])CALL",
        "[m(x) for m in self.m]",
    ),
    "ModuleDict": ("", "self.m = nn.ModuleDict({'a': LAYER})", "self.m['a'](x)"),
    "dictionary": ("", "self.m = {'a': LAYER}", "self.m['a'](x)"),
    "global": ("M = LAYER", "pass", "M(x)"),
    "global dictionary": ("M = dict(a=LAYER)", "pass", "M['a'](x)"),
    "function": ("def make():\n    return LAYER", "self.m = make()", "self.m(x)"),
    "default argument": ("def use(x, m=LAYER):\n    return m(x)", "pass", "use(x)"),
    "deepcopy": ("", "self.m = copy.deepcopy(LAYER)", "self.m(x)"),
    "deepcopy itself": ("", "self.m = copy.deepcopy(nn.Softmax(1))CALL", "self.m(x)"),
    "compile": ("", "self.m = torch.compile(LAYER)", "self.m(x)"),
    "compile itself": ("", "self.m = torch.compile(nn.Softmax(1))CALL", "self.m(x)"),
    "add_module": ("", "self.add_module('m', LAYER)", "self.m(x)"),
    "setattr": ("", "setattr(self, 'm', LAYER)", "getattr(self, 'm')(x)"),
    "modules": ("", "self.m = LAYER", "next(self.m.modules())(x)"),
    "children": ("", "self.m = LAYER", "[m(x) for m in self.children()]"),
    "handed to something unknown": ("", "self.m = self.prepared(LAYER)", "self.m(x)"),
    "own class": (
        "class Own(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
        "self.m = Own()CALL",
        "self.m(x)",
    ),
    "own class in forward": (
        "class Own(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
        "self.m = Own()",
        "self.mCALL(x)",
    ),
    "method of the parent": (
        "class Own(nn.Module):\n    def on(self):\n        return super().eval()CALL\n"
        "    def forward(self, x):\n        return torch.relu(x)",
        "self.m = Own().on()",
        "self.m(x)",
    ),
    "class that inherits from a layer": (
        "class Own(nn.Softmax):\n    pass",
        "self.m = Own(1)CALL",
        "self.m(x)",
    ),
}
"""What stands before the model, what its constructor does, and what `forward` returns."""


def submission(idiom: str, layer: str, call: str) -> str:
    before, made, used = (
        text.replace("LAYER", f"{layer}CALL").replace("CALL", call) for text in IDIOMS[idiom]
    )
    code = HEAD + MODEL.format(before=before, made=made, used=used)
    compile(code, "submission.py", "exec")
    return code


def test_every_method_of_torch_that_gives_the_module_is_known() -> None:
    assert {"cuda", "eval", "requires_grad_", "to", "apply"} <= METHODS <= words("itself")


def missed(idiom: str, call: str) -> list[tuple[str, str, str, object]]:
    """Layers that are not found in an idiom, with what was found."""
    found = {name: check_rules(submission(idiom, layer, call)) for name, layer in LAYERS.items()}
    return [
        (idiom, call, name, each)
        for name, each in found.items()
        if not (isinstance(each, RulesViolation) and each.kind == "torch_compute")
    ]


def test_a_layer_is_found_in_every_idiom() -> None:
    """The idioms differ in how they lead to the layer, not in which methods are called on it."""
    calls = ("", ".cuda().eval()")
    assert [each for idiom in IDIOMS for call in calls for each in missed(idiom, call)] == []


def test_a_layer_is_found_behind_every_method() -> None:
    assert [each for call in CALLS for each in missed("attribute", call)] == []


@pytest.mark.parametrize(
    "used",
    [
        "nn.MultiheadAttention(4, 2).out_proj(x)",
        "nn.TransformerEncoderLayer(4, 2).cuda().linear1(x)",
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2).layers[0](x)",
        "nn.Module.cuda(nn.ReLU())(x)",
        "nn.Softmax.cuda(nn.Softmax(1))(x)",
    ],
)
def test_layers_that_are_reached_in_other_ways_are_found(used: str) -> None:
    found = check_rules(HEAD + MODEL.format(before="", made="pass", used=used))
    assert isinstance(found, RulesViolation) and found.kind == "torch_compute"


def test_weights_of_a_layer_may_be_taken_behind_every_method() -> None:
    used = (
        "ext.f(x, self.m.weight.view(-1), self.m.stride[0] * 2, self.n[0].weight.t(), "
        "self.n[0].in_features + 1)"
    )
    refused = {}
    for call in CALLS:
        made = f"self.m = nn.Conv2d(3, 4, 3){call}; self.n = nn.Sequential(nn.Linear(3, 4)){call}"
        if found := check_rules(HEAD + MODEL.format(before="", made=made, used=used)):
            refused[call] = found
    assert refused == {}


KERNELS = {
    "function of an extension": ("", "self.f = ext.f", "self.f(x)"),
    "object of an extension": ("", "self.plan = ext.Plan(3)", "self.plan.run(x)"),
    "name that is put together": ("", "pass", "getattr(ext, 'f_' + str(x.dtype))(x)"),
    "extension of another vendor": (
        "import musa",
        "self.e = musa.load_inline(name='e')",
        "self.e.f(x)",
    ),
    "extension by its file's name": (
        "import importlib",
        "self.e = getattr(importlib.import_module(__name__ + '_ext'), 'f')",
        "self.e(x)",
    ),
    "Triton": ("", "pass", "launch(x, x)"),
    "Triton, kept": ("", "self.k = kernel", "self.k[(1,)](x, x, x, 3)"),
    "Triton, from another file": ("import made_of_text", "pass", "made_of_text.k[(1,)](x)"),
    "autograd": (
        "class F_(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n      "
        "  return ext.f(x)",
        "pass",
        "F_.apply(x)",
    ),
    "operator": ("SRC = 'TORCH_LIBRARY(mine, m) {}'", "pass", "torch.ops.mine.f(x)"),
    "CuPy": (
        "import cupy",
        "self.k = cupy.RawKernel('code', 'k')",
        "self.k((1,), (32,), (x.data_ptr(),))",
    ),
    "CuPy, module": (
        "import cupy",
        "self.m = cupy.RawModule(code='').get_function('k')",
        "self.m((1,), (32,), ())",
    ),
    "PyCUDA": (
        "from pycuda.compiler import SourceModule",
        "self.k = SourceModule('code').get_function('k')",
        "self.k(x.data_ptr())",
    ),
    "ctypes": (
        "",
        "self.lib = ctypes.CDLL('./k.so')",
        "self.lib.run(ctypes.c_void_p(x.data_ptr()))",
    ),
    "ctypes, by the name of a file": (
        "PATH = str(3)",
        "self.lib = ctypes.cdll[PATH]",
        "self.lib.run(x.data_ptr())",
    ),
    "cffi": ("import cffi", "self.lib = cffi.FFI().dlopen('./k.so')", "self.lib.run(x.data_ptr())"),
    "Numba": ("from numba import cuda\n@cuda.jit\ndef k(x): pass", "pass", "k[1, 32](x)"),
    "handed to a launcher": ("import warp", "pass", "warp.launch(kernel, dim=3, inputs=[x])"),
}
"""What launches a kernel, of each kind one."""


def test_each_kind_of_kernel_is_one() -> None:
    model = MODEL.replace("        ext.f(x)\n", "")
    refused = {}
    for name, (before, made, used) in KERNELS.items():
        code = model.format(before=before, made=made, used=used)
        if found := check_rules(HEAD + code):
            refused[name] = found
    assert refused == {}
