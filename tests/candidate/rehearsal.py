"""A submission whose kernels are compiled for a GPU that is not there. Started by
`test_precompile`, on its own.

`copies FOLDER` has them compiled before any call; `calls FOLDER` compiles what true tensors ask
for, without launching. Both print as JSON what was compiled: name of the kernel, and whether it was
there already.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton import knobs
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from kevin_env.candidate import fake_cuda, precompile, tree
from kevin_env.candidate.region import spec_of
from kevin_env.candidate.runtime import Runtime

PROPERTIES = SimpleNamespace(
    name="a GPU", major=9, minor=0, multi_processor_count=132, warp_size=32
)
SIZES = (100, 4096, 8192)
"""What Triton compiles for the last two is the same."""
SECONDS = 120.0
CODE = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def twice(x):
    return x * 2

@triton.jit
def plain(x, y, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, twice(tl.load(x + at * stride, mask=at < n)), mask=at < n)

@triton.jit
def shifted(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)]

@triton.autotune(CONFIGS, ["n"], cache_results=True)
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def guessed(x, y, n, scale, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at) * scale if EVEN else tl.load(x + at, mask=at < n)
    tl.store(y + at, value, mask=EVEN or at < n)

@triton.jit
def operated(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

@torch.library.custom_op("rehearsed::copy", mutates_args=("y",))
def copy(x: torch.Tensor, y: torch.Tensor) -> None:
    operated[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)

def launch(x, y):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    plain[grid](x, y, x.numel(), x.stride(0), BLOCK=triton.next_power_of_2(min(x.numel(), 256)))
    tuned[grid](x, y, x.numel())
    return grid

class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size)).to("cuda")
        self.register_buffer("count", torch.tensor([3.0]))

    def load_state_dict(self, state, strict=True):
        self.weight.copy_(state["of_another_name"] * 2)

    def forward(self, x, half):
        with torch.cuda.device(torch.cuda.current_device()):
            processors = torch.cuda.get_device_properties(x.device).multi_processor_count
            y = torch.empty_like(x.contiguous())
            grid = launch(x, y)
            shifted[(processors,)](x[1:], y, x.numel(), BLOCK=128)
            guessed[grid](x.to("cuda"), self.weight, x.numel(), 0.5, BLOCK=64)
            assert x.to("cuda").device == x.device == x.cuda().device
            torch.ops.rehearsed.copy(x, y)
            plain[grid](x.to(half).cuda(), y, x.numel(), x.stride(0), BLOCK=64)
        return y
"""


def case(size: int) -> dict[str, Any]:
    """What the judge would send for a case of this size."""
    init, _ = tree.flatten([[size], {}])
    inputs, tensors = tree.flatten([torch.empty(size, device="meta"), torch.float16])
    spec = spec_of(tensors[0], 0)
    settings: dict[str, Any] = {
        "parameters": ["of_another_name"],
        "seed": 0,
        "compiled": False,
        "precision": "ieee",
    }
    return {
        "construct": {"init": init, "tensors": [], "state": {"of_another_name": spec}, **settings},
        "stage": {"inputs": inputs, "specs": [spec]},
    }


def listen(log: Path) -> None:
    """Notes compilations in a file, also those of processes that come from this one."""

    def note(*, src: Any, cache_hit: bool, **_: Any) -> None:
        with log.open("a") as file:
            file.write(f"{json.dumps([src.name, cache_hit])}\n")

    knobs.compilation.listener = note


def compile_in_copies(runtime: Runtime) -> None:
    """Does what the order `precompile` does in a candidate that has a GPU."""
    runtime.device = torch.device("cuda", 0)
    assert precompile.has_kernels()
    cases = {str(size): case(size) for size in SIZES}
    precompile.precompile(runtime, cases, vars(PROPERTIES), SECONDS)


def compile_for_calls(runtime: Runtime) -> None:
    """Calls the model on tensors that are there, with everything taken away that needs a device."""
    run, move = JITFunction.run, torch.Tensor.to
    driver.set_active(fake_cuda._driver(PROPERTIES))
    setattr(JITFunction, "run", lambda self, *a, warmup, **k: run(self, *a, warmup=True, **k))  # noqa: B010
    Autotuner.do_bench = property(lambda _: lambda call, quantiles: [call() or 0.0] * 3)  # type: ignore[assignment]
    setattr(torch.Tensor, "to", lambda self, to: self if to == "cuda" else move(self, to))  # noqa: B010
    torch.Tensor.cuda = lambda self: self  # type: ignore[assignment]
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = contextlib.nullcontext  # type: ignore[assignment]
    torch.cuda.get_device_properties = lambda _: PROPERTIES  # type: ignore[assignment]
    for size in SIZES:
        runtime.entry(size)(torch.randn(size), torch.float16)


def main(what: str, folder: Path) -> None:
    """See above."""
    log = folder / f"{what}.log"
    listen(log)
    runtime = Runtime(SimpleNamespace(close=lambda: os.write(1, b"a copy is heard")))  # type: ignore[arg-type]
    runtime.load(str(folder / "submission.py"), CODE, "ModelNew")
    with torch.no_grad():
        (compile_in_copies if what == "copies" else compile_for_calls)(runtime)
    print(json.dumps([json.loads(line) for line in log.read_text().splitlines()]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
