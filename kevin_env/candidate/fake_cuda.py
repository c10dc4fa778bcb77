"""A fake CUDA device: tensors without bytes, and properties of the real device.

A fork of a process that has a CUDA context cannot use CUDA. To be recorded, a submission only needs
shapes, addresses and device properties. Parts of torch and Triton are replaced permanently: use it
only in a process that ends afterwards.
"""

import ctypes
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial, wraps
from typing import Any

import torch
from torch import nn
from torch._library import custom_ops
from torch._subclasses import fake_tensor
from torch.utils import cpp_extension
from torch.utils._python_dispatch import _disable_current_modes

from kevin_env.candidate.region import Spec
from kevin_env.candidate.tape import Tape

LONGEST_NAME = 500
"""Characters of the name of a tuned kernel with the arguments that it is tuned for."""
_INDEX = torch.device("cuda", 0)
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
"""torch's table of device guards, one address per device type."""
_DEVICE_TYPES = 2
"""The first two entries are the CPU and CUDA."""


class Region:
    """A region without memory: only the shapes of its tensors exist. Enter `imagine` first."""

    def __init__(self, name: str, device: torch.device, tape: Tape) -> None:
        self._name, self._device, self._tape = name, device, tape

    def tensor(self, spec: Spec) -> torch.Tensor:
        """The tensor that `spec` describes."""
        dtype, place = getattr(torch, spec["dtype"]), (spec["shape"], spec["stride"])
        tensor = torch.empty_strided(*place, dtype=dtype, device=self._device)
        return self._tape.place(tensor, self._name, spec)


def imagine(
    properties: Any, compile_kernel: Callable[..., Any], tape: Tape
) -> fake_tensor.FakeTensorMode:
    """Replaces everything that queries or uses the device, permanently.

    Args:
        properties: The result of `torch.cuda.get_device_properties` on the real device.
        compile_kernel: Replaces `triton.compiler.compile`.
        tape: What happens is recorded on.

    Returns:
        The mode in which tensors have no bytes, to be entered.
    """
    _answer(properties, tape)
    _replace_tensors(tape)
    _replace_triton(properties, compile_kernel, tape)
    for module in _COMPILERS.keys() & sys.modules.keys():
        _COMPILERS[module](properties, tape)
    _replace(cpp_extension, _jit_compile=_unbuilt)
    _run_custom_operators()
    return fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)


def warm() -> None:
    """Imports what `imagine` needs; that takes more than a second."""
    fake_tensor.FakeTensorMode()


def _answer(properties: Any, tape: Tape) -> None:
    """Replaces functions of `torch.cuda` by constants; notes those that a tape cannot hold."""
    stream = _Stream()
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None,
        "synchronize": None,
        "get_device_properties": properties, "get_device_name": properties.name,
        "get_device_capability": (properties.major, properties.minor), "_exchange_device": 0,
        "_maybe_exchange_device": 0, "current_stream": stream, "default_stream": stream,
        "is_current_stream_capturing": False, "empty_cache": None,
    }  # fmt: skip
    unrecorded = {
        "Stream": stream, "Event": stream, "CUDAGraph": stream, "stream": nullcontext(),
        "graph": nullcontext(), "_sleep": None,
    }  # fmt: skip
    _replace(torch.cuda, **{name: partial(_constant, answer) for name, answer in answers.items()})
    _replace(
        torch.cuda,
        **{name: partial(_refused, tape, name, answer) for name, answer in unrecorded.items()},
    )


def _replace_tensors(tape: Tape) -> None:
    """Gives tensors without bytes an address, and keeps torch from using a device."""
    table = (ctypes.c_void_p * _DEVICE_TYPES).in_dll(ctypes.CDLL("libc10.so"), _GUARDS)
    table[1] = table[0]
    _replace(fake_tensor, init_gpu_context=partial(_constant, None))
    _replace(fake_tensor.FakeTensorMode, avoid_device_init=True)
    _replace(fake_tensor.FakeTensor, data_ptr=lambda tensor: tape.address(tensor))
    _replace(torch.Tensor, to=_moved, cuda=_on_the_device)
    _replace(nn.Module, _apply=_apply)


def _replace_triton(properties: Any, compile_kernel: Callable[..., Any], tape: Tape) -> None:
    """Has launches recorded, and all configurations of tuned kernels."""
    import triton.compiler
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.errors import OutOfResources, PTXASError

    passed_over = (OutOfResources, CompileTimeAssertionFailure, PTXASError)  # as by an autotuner
    driver.set_active(_driver(properties))
    _replace(triton.compiler, compile=compile_kernel)
    run = Autotuner.run

    def run_all(tuner: Any, *args: Any, **kwargs: Any) -> None:
        configurations = tuner.configs
        if len(configurations) < 2:
            return run(tuner, *args, **kwargs)
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        passed = {**tuner.nargs, **kwargs}
        given = {name: passed[name] for name in tuner.arg_names if name in passed}
        key = [given[name] for name in tuner.keys if name in given]
        key += [each.dtype for each in given.values() if hasattr(each, "dtype")]
        options = list[Any]()
        try:
            for configuration in tuner.prune_configs(kwargs):
                tuner.configs = [configuration]
                with suppress(*passed_over), tape.part() as steps:
                    run(tuner, *args, **kwargs)
                    options.append(steps)
        finally:
            tuner.configs = configurations
        tape.choose(f"{tuner.base_fn.__name__} {key}"[:LONGEST_NAME], options)

    _replace(Autotuner, run=run_all)


def _replace_tilelang(_: Any, tape: Tape) -> None:
    """Has kernels compiled into their cache and not launched; outputs are allocated by torch."""
    from tilelang.jit.adapter.tvm_ffi import TVMFFIKernelAdapter  # pyright: ignore

    def not_launched(*_: Any) -> Callable[..., None]:
        tape.refuse("launches of TileLang")
        return partial(_constant, None)

    _replace(
        TVMFFIKernelAdapter,
        get_exportable_executable=TVMFFIKernelAdapter._get_executable,  # goes into the cache
        _get_executable=not_launched,
        _uses_ffi_callee_allocated_output_abi=partial(_constant, False),
    )


def _replace_helion(properties: Any, _: Tape) -> None:
    """Has kernels translated to Triton without the modes that record: it runs torch to do so."""
    translator = sys.modules["helion.runtime.kernel"]
    for owner, name in ((translator.Kernel, "bind"), (translator.BoundKernel, "compile_config")):
        _replace(owner, **{name: _outside(getattr(owner, name))})
    from torch._dynamo.device_interface import CudaInterface  # has another reference to it

    _replace(CudaInterface, get_device_properties=partial(_constant, properties))


def _replace_cutile(properties: Any, tape: Tape) -> None:
    """Has kernels compiled into their cache and not launched.

    A launch derives the signature through the driver, so it is built here instead.
    """
    import cuda.tile as ct  # pyright: ignore
    from cuda.tile import compilation  # pyright: ignore
    from cuda.tile._cext import default_tile_context  # pyright: ignore

    convention = compilation.CallingConvention.cutile_python_v1()

    def parameter(value: Any, annotation: Any) -> Any:
        if annotation.constant:
            return compilation.ConstantConstraint(value)
        if not isinstance(value, torch.Tensor):
            return compilation.ScalarConstraint(ct.float32 if type(value) is float else ct.int32)
        dtype = getattr(ct, str(value.dtype).removeprefix("torch.").replace("bool", "bool_"))
        return compilation.ArrayConstraint(
            dtype, value.dim(), **cutile_layout(value), index_dtype=ct.int32, alias_groups=()
        )

    def compile_only(_: Any, __: Any, kernel: Any, arguments: Any, /, **___: Any) -> None:
        tape.refuse("launches of cuTile")
        about = kernel._annotated_function
        parameters = map(parameter, arguments, about.parameter_annotations)
        signature = compilation.KernelSignature([*parameters], convention)
        named = signature.with_mangled_symbol(about.pyfunc.__name__)
        kernel._compile(named, default_tile_context, (properties.major, properties.minor))

    launch = ct.launch
    for module in (ct, sys.modules["submission"]):  # which may have imported it by name
        names = [name for name, value in vars(module).items() if value is launch]
        _replace(module, **dict.fromkeys(names, compile_only))


def cutile_layout(tensor: torch.Tensor) -> dict[str, Any]:
    """What cuTile 1.7 assumes of a tensor's layout when it compiles a kernel for a launch.

    Another version may assume something else: the call then compiles again.
    """
    size, strides = tensor.element_size(), tensor.stride()
    return {
        "stride_constant": [1 if stride == 1 else None for stride in strides],
        "stride_lower_bound_incl": 0,
        "stride_divisible_by": [1 if stride * size % 16 else 16 // size for stride in strides],
        "shape_divisible_by": [1 if side % 16 else 16 for side in tensor.shape],
        "base_addr_divisible_by": 1 if tensor.data_ptr() % 16 else 16,
        "may_alias_internally": 0 in strides,
    }


def _outside(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return function(*args, **kwargs)

    return outside


_COMPILERS: dict[str, Callable[[Any, Tape], None]] = {
    "tilelang": _replace_tilelang,
    "helion": _replace_helion,
    "cuda.tile": _replace_cutile,
}
"""What to replace in languages other than Triton whose kernels can be compiled without a device."""


def has_compilers() -> bool:
    """Whether one of these languages has been imported."""
    return any(module in sys.modules for module in _COMPILERS)


def _driver(properties: Any) -> Any:
    """Triton's CUDA driver without a device; its C source is compiled only if used."""
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher

    driver: Any = CudaDriver.__new__(CudaDriver)
    driver.utils, driver.launcher_cls = _Utils(properties), CudaLauncher
    driver.get_current_device = driver.get_current_stream = partial(_constant, 0)
    driver.get_device_capability = partial(_constant, (properties.major, properties.minor))
    driver.set_current_device = partial(_constant, None)
    return driver


def _run_custom_operators() -> None:
    """Has custom operators run on tensors without bytes, unless they say what they return."""
    for operator in list(custom_ops.OPDEFS.values()):
        if operator._abstract_fn is None:
            operator.register_fake(operator._init_fn)


class _Utils:
    """Triton's `CudaUtils`; the original is compiled when anything else is used."""

    def __init__(self, properties: Any) -> None:
        self._properties = properties

    def get_device_properties(self, device: int) -> dict[str, int]:
        """By the names that Triton uses."""
        names = {
            "max_shared_mem": "shared_memory_per_block_optin",
            "max_num_regs": "regs_per_multiprocessor",
            "multiprocessor_count": "multi_processor_count", "warpSize": "warp_size",
            "sm_clock_rate": "clock_rate",
            "mem_clock_rate": "memory_clock_rate", "mem_bus_width": "memory_bus_width",
        }  # fmt: skip
        return {name: getattr(self._properties, of, 0) for name, of in names.items()}

    def __getattr__(self, name: str) -> Any:
        from triton.backends.nvidia.driver import CudaUtils

        return getattr(CudaUtils(), name)


class _Stream:
    """A stream, an event or a graph: its methods do nothing."""

    cuda_stream = 0
    device = _INDEX

    def elapsed_time(self, end: object) -> float:
        """Always 0, so that code with its own tuning compiles all kernels."""
        return 0.0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(_constant, None)


def _replace(owner: Any, **parts: Any) -> None:
    for name, part in parts.items():
        setattr(owner, name, part)


def _constant(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _refused(tape: Tape, name: str, answer: Any, *_: Any, **__: Any) -> Any:
    tape.refuse(f"torch.cuda.{name}")
    return answer


def _indexed(value: Any) -> Any:
    """Adds the index to `cuda`, which device selection would add."""
    is_device = isinstance(value, str | torch.device) and str(value) == "cuda"
    return _INDEX if is_device else value


def _moved(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    args, kwargs = (
        tuple(map(_indexed, args)),
        {name: _indexed(value) for name, value in kwargs.items()},
    )
    return torch._C.TensorBase.to(tensor, *args, **kwargs)


def _on_the_device(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return torch._C.TensorBase.to(tensor, _INDEX)


def _apply(
    model: nn.Module, change: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
) -> nn.Module:
    """`nn.Module._apply` without exchanging the bytes of parameters."""
    for module in model.modules():
        places: list[dict[str, Any]] = [module._parameters, module._buffers]
        for attributes in places:
            for name, tensor in attributes.items():
                if tensor is not None and (changed := change(tensor)) is not tensor:
                    is_parameter = isinstance(tensor, nn.Parameter)
                    attributes[name] = (
                        nn.Parameter(changed, tensor.requires_grad) if is_parameter else changed
                    )
    return model


def _unbuilt(*_: Any, **__: Any) -> None:
    """Refuses to build an extension: a killed fork would leave its lock file behind."""
    raise RuntimeError("an extension cannot be used without a device")
