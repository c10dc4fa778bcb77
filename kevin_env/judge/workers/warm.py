"""A first use of Triton's compiler, before forking: it takes seconds, a later one a tenth."""

import os
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

WARP = 32


@triton.jit
def _softmax(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=-float("inf"))
    weight = tl.exp(value - tl.max(value, 0))
    tl.store(y + at, weight / tl.sum(weight, 0), mask=at < n)


def _load_utils() -> None:
    """Loads Triton's C library for all forks; each would compile it again, which takes 0.2 s."""
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()  # the only one there ever is
    setattr(CudaUtils, "__init__", lambda self: None)  # noqa: B010


def warm_triton(capability: int) -> None:
    """Compiles a kernel and Triton's launcher for an architecture, such as 90.

    Makes no context on a device. The files go into a temporary folder.
    """
    before = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        source = ASTSource(fn=_softmax, signature=signature, constexprs={(3,): 128})
        triton.compile(source, target=GPUTarget("cuda", capability, WARP))
        _load_utils()
    os.environ.pop("TRITON_CACHE_DIR")
    if before is not None:
        os.environ["TRITON_CACHE_DIR"] = before
