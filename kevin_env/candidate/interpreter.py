"""Tuning and CUDA's device library for Triton's interpreter on a machine without a GPU."""

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
_AS_IN_TORCH = (
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 "
    "expm1 floor fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 nextafter pow round rsqrt "
    "sin sinh sqrt tan tanh trunc"
)
_OTHERS: dict[str, Callable[..., torch.Tensor]] = {
    "cbrt": lambda x: x.sign() * x.abs() ** (1 / 3),
    "div_rn": torch.div,
    "exp10": lambda x: 10**x,
    "fast_cosf": torch.cos,
    "fast_dividef": torch.div,
    "fast_expf": torch.exp,
    "fast_log10f": torch.log10,
    "fast_log2f": torch.log2,
    "fast_logf": torch.log,
    "fast_powf": torch.pow,
    "fast_sinf": torch.sin,
    "fast_tanf": torch.tan,
    "fast_tanhf": torch.tanh,
    "fdim": lambda x, y: (x - y).clamp(min=0),
    "fma": lambda x, y, z: x * y + z,
    "nearbyint": torch.round,
    "normcdf": torch.special.ndtr,
    "rint": torch.round,
    "rsqrt_rn": torch.rsqrt,
    "sqrt_rn": torch.sqrt,
    "tgamma": lambda x: torch.lgamma(x).exp(),
}


def complete() -> None:
    """Makes `triton.autotune` take the first configuration, and implements the device library.

    Tuning measures on a device, and the library's functions are stubs. Functions of floats are
    computed by torch; the others raise NotImplementedError when they are called.
    """
    from triton.runtime.autotuner import Autotuner

    Autotuner.do_bench = property(lambda _: _untimed)  # type: ignore[assignment]
    known = {**{name: getattr(torch, name) for name in _AS_IN_TORCH.split()}, **_OTHERS}
    for path in _MODULES:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(path)
            for name, function in list(vars(module).items()):
                if callable(function) and name[0].islower():
                    setattr(module, name, _computed(name, known.get(name)))


def _untimed(call: Callable[[], None], quantiles: Sequence[float]) -> list[float]:
    return [0.0 for _ in quantiles]


def _computed(name: str, function: Callable[..., torch.Tensor] | None) -> Callable[..., Any]:
    def call(*arguments: Any, **_: Any) -> Any:
        if function is None:
            raise NotImplementedError(
                f"libdevice.{name} is missing in Triton's interpreter: it needs a GPU"
            )
        return _applied(function, arguments)

    return call


def _applied(function: Callable[..., torch.Tensor], arguments: tuple[Any, ...]) -> Any:
    """The result for blocks and numbers: a block of the first block's type."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    blocks = [each for each in arguments if isinstance(each, tl.tensor)]
    if not blocks or not blocks[0].dtype.is_floating():
        raise TypeError("libdevice takes blocks of floats")
    kind = blocks[0].dtype
    wide = [
        torch.as_tensor(each.handle.data if isinstance(each, tl.tensor) else float(each))
        for each in arguments
    ]
    dtype = wide[0].dtype if isinstance(arguments[0], tl.tensor) else torch.float32
    with _disable_current_modes():  # not recorded: Triton computes
        result = function(*(each.to(dtype) for each in wide)).numpy()
    shaped = tl.block_type(kind, list(result.shape)) if result.ndim else kind
    return tl.tensor(TensorHandle(result, kind), shaped)
