"""Tuning, bfloat16 and CUDA's device library for Triton's interpreter, where there is no GPU.

What Triton's compiler certainly refuses is refused here, too.
"""

import ast
import contextlib
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
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


_ON_FLOATS = re.compile(
    r"create_(f(add|sub|mul|div|rem|neg|ma|cmp\w+)|(min|max)(imum|num)f|precise_(divf|sqrt)|clampf|dot"
    r"|cos|sin|exp2?|log2?|r?sqrt|floor|ceil|erf)"
)
"""Operators of the interpreter that take bits of bfloat16 for integers."""


_UNKNOWN = (
    ast.Try, ast.Raise, ast.Break, ast.Continue, ast.Delete, ast.Global, ast.Nonlocal, ast.Lambda,
    ast.Dict, ast.Set, ast.GeneratorExp,
)  # fmt: skip
"""Constructs of Python that Triton's compiler may not know."""
_MAY_NOT_BE_COMPILED = (ast.If, ast.IfExp, ast.FunctionDef, ast.Lambda, ast.ListComp)


def complete() -> None:
    """Makes `triton.autotune` take the first configuration, and implements the device library.

    Operators on bfloat16 compute in float32 and round, and inline assembly says why it cannot run.
    Kernels that Triton's compiler refuses for their Python raise its errors.
    Tuning measures on a device, and the library's functions are stubs. Functions of floats are
    computed by torch; the others raise NotImplementedError when they are called.
    """
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder

    Autotuner.do_bench = property(lambda _: _untimed)  # type: ignore[assignment]
    _complete_bfloat16()
    InterpreterBuilder.create_inline_asm = _without_assembly  # type: ignore[attr-defined]
    InterpretedFunction.rewrite = _refusing(InterpretedFunction.rewrite)  # type: ignore[method-assign]
    known = {**{name: getattr(torch, name) for name in _AS_IN_TORCH.split()}, **_OTHERS}
    for path in _MODULES:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(path)
            for name, function in list(vars(module).items()):
                if callable(function) and name[0].islower():
                    setattr(module, name, _computed(name, known.get(name)))


def _without_assembly(*_: Any) -> None:
    raise NotImplementedError(
        "inline assembly needs a GPU: Triton's interpreter, which runs this kernel, has none"
    )


def _refusing(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def rewritten(function: Any) -> Any:
        kernel = function.fn
        if kernel not in function.rewritten_fn and not kernel.__module__.startswith("triton."):
            _require_compilable(kernel)
        return rewrite(function)

    return rewritten


def _require_compilable(kernel: Any) -> None:
    """Raises the error of Triton's compiler for a construct or a global that it does not allow."""
    from triton import knobs
    from triton.compiler.code_generator import CodeGenerator
    from triton.compiler.errors import CompilationError, UnsupportedLanguageConstruct

    source = textwrap.dedent(inspect.getsource(kernel))
    source = source[re.search(r"^def\s", source, re.MULTILINE).start() :]  # type: ignore[union-attr]
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    local = {*kernel.__code__.co_varnames, *kernel.__code__.co_freevars}
    for node in (each for statement in function.body for each in _compiled(statement)):
        kind = type(node).__name__
        if isinstance(node, _UNKNOWN) and not hasattr(CodeGenerator, f"visit_{kind}"):
            raise UnsupportedLanguageConstruct(source, node, f"unsupported AST node type: {kind}")
        if not isinstance(node, ast.Name) or node.id in local:
            continue
        plain = type(kernel.__globals__.get(node.id)) in (int, float, bool, str)
        if plain and not knobs.compilation.allow_non_constexpr_globals:
            text = (
                f"Cannot access global variable {node.id} from within @jit'ed function: Triton "
                f"kernels can only access globals such as `{node.id} = tl.constexpr(...)`"
            )
            raise CompilationError(source, node, text)


def _compiled(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, without what may be dead or is no code of the kernel."""
    yield node
    if isinstance(node, _MAY_NOT_BE_COMPILED):
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
            yield from _compiled(child)


def _complete_bfloat16() -> None:
    from triton import language as tl
    from triton.runtime.interpreter import (
        InterpreterBuilder,
        ReduceScanOpInterface,
        TensorHandle,
    )

    def computed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(builder: Any, *arguments: Any) -> Any:
            handles = [each for each in arguments if isinstance(each, TensorHandle)]
            if not any(each.dtype.scalar == tl.bfloat16 for each in handles):
                return original(builder, *arguments)
            result = original(builder, *map(_in_float32, arguments))
            narrow = handles[-1].dtype.scalar == tl.bfloat16 and str(result.data.dtype) == "float32"
            return TensorHandle(_bits(result.data), tl.bfloat16) if narrow else result

        return call

    def cast(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(builder: Any, source: Any, kind: Any) -> Any:
            if source.dtype.scalar == tl.bfloat16:
                return original(builder, _in_float32(source), kind)
            if kind.scalar != tl.bfloat16:
                return original(builder, source, kind)
            return TensorHandle(_bits(source.data.astype("float32")), tl.bfloat16)

        return call

    def reduced(original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(operator: Any, given: Any) -> Any:
            if not isinstance(given, tuple):
                return apply(operator, (given,))[0]
            wide = tuple(_as(each, _in_float32(each.handle)) for each in given)
            results = original(operator, wide)
            narrow = (each.dtype == tl.bfloat16 for each in given)
            return tuple(
                _as(each, TensorHandle(_bits(each.handle.data), tl.bfloat16))
                if low and each.dtype == tl.float32
                else each
                for low, each in zip(narrow, results, strict=False)
            )

        return apply

    for name in filter(_ON_FLOATS.fullmatch, dir(InterpreterBuilder)):
        setattr(InterpreterBuilder, name, computed(getattr(InterpreterBuilder, name)))
    InterpreterBuilder.cast_impl = cast(InterpreterBuilder.cast_impl)  # type: ignore[method-assign]
    ReduceScanOpInterface.apply = reduced(ReduceScanOpInterface.apply)  # type: ignore[method-assign]
    InterpreterBuilder.get_bf16 = lambda _, value: TensorHandle(  # type: ignore[attr-defined]
        _bits(torch.tensor([float(value)]).numpy()), tl.bfloat16
    )


def _in_float32(argument: Any) -> Any:
    """A block of bfloat16, whose bits the interpreter holds as integers, as float32."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    if not isinstance(argument, TensorHandle) or argument.dtype.scalar != tl.bfloat16:
        return argument
    wide = (argument.data.astype("uint32") << 16).view("float32")
    return TensorHandle(wide, tl.float32)


def _as(like: Any, handle: Any) -> Any:
    """A block or number with this handle, of the shape of another."""
    from triton import language as tl

    kind = handle.dtype.scalar
    shaped = tl.block_type(kind, list(like.type.shape)) if like.type.is_block() else kind
    return tl.tensor(handle, shaped)


def _bits(values: Any) -> Any:
    """The bits of float32 numbers rounded to bfloat16, ties to even."""
    with _disable_current_modes():  # not recorded: Triton computes
        return torch.as_tensor(values.copy()).bfloat16().view(torch.int16).numpy().view("uint16")


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
        torch.as_tensor(
            _in_float32(each.handle).data if isinstance(each, tl.tensor) else float(each)
        )
        for each in arguments
    ]
    dtype = wide[0].dtype if isinstance(arguments[0], tl.tensor) else torch.float32
    with _disable_current_modes():  # not recorded: Triton computes
        result = function(*(each.to(dtype) for each in wide)).numpy()
    result = _bits(result) if kind.scalar == tl.bfloat16 else result
    shaped = tl.block_type(kind, list(result.shape)) if result.ndim else kind
    return tl.tensor(TensorHandle(result, kind), shaped)
