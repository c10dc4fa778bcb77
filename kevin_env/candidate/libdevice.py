"""CUDA's device library in Triton's interpreter, where its functions are stubs that give nothing."""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
_AS_IN_TORCH = (
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 floor fmax fmin "
    "fmod hypot ldexp lgamma log log10 log1p log2 nextafter pow round rsqrt sin sinh sqrt tan tanh trunc"
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


def fill_in() -> None:
    """Gives the library's functions of floats a meaning; its others say that they have none."""
    known = {**{name: getattr(torch, name) for name in _AS_IN_TORCH.split()}, **_OTHERS}
    for path in _MODULES:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(path)
            for name in [
                each
                for each in vars(module)
                if callable(getattr(module, each)) and each[0].islower()
            ]:
                setattr(module, name, _computed(name, known.get(name)))


def _computed(name: str, function: Callable[..., torch.Tensor] | None) -> Callable[..., Any]:
    def call(*arguments: Any, **_: Any) -> Any:
        if function is None:
            raise NotImplementedError(
                f"libdevice.{name} is not there in Triton's interpreter: it needs a GPU"
            )
        return _applied(function, arguments)

    return call


def _applied(function: Callable[..., torch.Tensor], arguments: tuple[Any, ...]) -> Any:
    """What the function gives for blocks and numbers: a block of the first one's type."""
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
    given = wide[0].dtype if isinstance(arguments[0], tl.tensor) else torch.float32
    with _disable_current_modes():  # it is Triton that computes: see `kevin_env.candidate.recorder`
        result = function(*(each.to(given) for each in wide)).numpy()
    shaped = tl.block_type(kind, list(result.shape)) if result.ndim else kind
    return tl.tensor(TensorHandle(result, kind), shaped)
