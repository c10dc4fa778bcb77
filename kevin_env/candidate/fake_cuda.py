"""A CUDA device that is only imagined: tensors without bytes, and answers that were looked up on
the true one before.

A copy of a process that has a CUDA context cannot use CUDA. Until its kernels are compiled, a
submission needs shapes, addresses and properties of the device, and these are here. Parts of torch
and Triton are replaced for good: only for a process that ends afterwards.
"""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._subclasses import fake_tensor
from torch.utils import cpp_extension

from kevin_env.candidate.region import Spec

ADDRESS = 512
"""Where every allocation begins: as far aligned as the judge's inputs and torch's own allocations
are.
"""
_INDEX = torch.device("cuda", 0)
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
"""torch's table of what selects a device before an operator runs, an address for each type of
device.
"""
_DEVICE_TYPES = 2
"""The first two of them are the CPU and CUDA."""


class Region:
    """A region of which nothing is there but the shapes of its tensors. Enter `imagine` first."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def tensor(self, spec: Spec) -> torch.Tensor:
        """The tensor that `spec` describes."""
        dtype = getattr(torch, spec["dtype"])
        return torch.empty_strided(spec["shape"], spec["stride"], dtype=dtype, device=self.device)


def imagine(properties: Any, compile_kernel: Callable[..., Any]) -> fake_tensor.FakeTensorMode:
    """Replaces what asks or uses the device, in this process for good.

    Args:
        properties: What `torch.cuda.get_device_properties` said of the true device.
        compile_kernel: Takes the place of `triton.compiler.compile`.

    Returns:
        The mode in which tensors have no bytes, to be entered.
    """
    _answer(properties)
    _replace_tensors()
    _replace_triton(properties, compile_kernel)
    _replace(cpp_extension, _jit_compile=_unbuilt)
    return fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)


def warm() -> None:
    """Imports what `imagine` needs, which takes more than a second."""
    fake_tensor.FakeTensorMode()


def _answer(properties: Any) -> None:
    """What functions of `torch.cuda` say; those that only wait or select do nothing."""
    stream = _Stream()
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None, "synchronize": None,
        "get_device_properties": properties, "get_device_name": properties.name,
        "get_device_capability": (properties.major, properties.minor), "_exchange_device": 0,
        "_maybe_exchange_device": 0, "current_stream": stream, "default_stream": stream, "Stream": stream,
        "Event": stream, "CUDAGraph": stream, "stream": nullcontext(), "graph": nullcontext(),
        "is_current_stream_capturing": False, "empty_cache": None,
    }  # fmt: skip
    _replace(torch.cuda, **{name: partial(_constant, answer) for name, answer in answers.items()})


def _replace_tensors() -> None:
    """Lets tensors without bytes have addresses, keeps them from asking for a device, and selects
    none for them.
    """
    table = (ctypes.c_void_p * _DEVICE_TYPES).in_dll(ctypes.CDLL("libc10.so"), _GUARDS)
    table[1] = table[0]
    _replace(fake_tensor, init_gpu_context=partial(_constant, None))
    _replace(fake_tensor.FakeTensorMode, avoid_device_init=True)
    _replace(fake_tensor.FakeTensor, data_ptr=_address)
    _replace(torch.Tensor, to=_moved, cuda=_on_the_device)
    _replace(nn.Module, _apply=_apply)


def _replace_triton(properties: Any, compile_kernel: Callable[..., Any]) -> None:
    """Has kernels compiled instead of launched, and all configurations of those that are tuned."""
    import triton.compiler
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    driver.set_active(_driver(properties))
    launch = JITFunction.run

    def prepare(self: Any, *args: Any, warmup: bool = True, **meta: Any) -> Any:
        return launch(self, *args, **meta, warmup=True)

    _replace(triton.compiler, compile=compile_kernel)
    _replace(JITFunction, run=prepare)
    _replace(Autotuner, do_bench=property(lambda _: _untimed), check_disk_cache=_not_remembered)


def _driver(properties: Any) -> Any:
    """Triton's driver of CUDA, which asks no device and compiles its own C source only when that is
    used.
    """
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher

    driver: Any = CudaDriver.__new__(CudaDriver)
    driver.utils, driver.launcher_cls = _Utils(properties), CudaLauncher
    driver.get_current_device = driver.get_current_stream = partial(_constant, 0)
    driver.get_device_capability = partial(_constant, (properties.major, properties.minor))
    driver.set_current_device = partial(_constant, None)
    return driver


class _Utils:
    """Triton's `CudaUtils`, which are compiled when something of them is used that is not here."""

    def __init__(self, properties: Any) -> None:
        self._properties = properties

    def get_device_properties(self, device: int) -> dict[str, int]:
        """By the names that Triton uses."""
        names = {
            "max_shared_mem": "shared_memory_per_block_optin", "max_num_regs": "regs_per_multiprocessor",
            "multiprocessor_count": "multi_processor_count", "warpSize": "warp_size", "sm_clock_rate": "clock_rate",
            "mem_clock_rate": "memory_clock_rate", "mem_bus_width": "memory_bus_width",
        }  # fmt: skip
        return {name: getattr(self._properties, of, 0) for name, of in names.items()}

    def __getattr__(self, name: str) -> Any:
        from triton.backends.nvidia.driver import CudaUtils

        return getattr(CudaUtils(), name)


class _Stream:
    """A stream, an event or a graph: all that is asked of it does nothing."""

    cuda_stream = 0
    device = _INDEX

    def elapsed_time(self, end: object) -> float:
        """None at all: whoever compares kernels has them all compiled, and takes any."""
        return 0.0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(_constant, None)


def _replace(owner: Any, **parts: Any) -> None:
    for name, part in parts.items():
        setattr(owner, name, part)


def _constant(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _address(tensor: torch.Tensor) -> int:
    return ADDRESS + int(tensor.storage_offset()) * tensor.element_size()


def _indexed(value: Any) -> Any:
    """A device's index is told by what selects a device, so that `cuda` alone would be none."""
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
    """`nn.Module._apply`, which exchanges the bytes of parameters: these have none."""
    for module in model.modules():
        places: list[dict[str, Any]] = [module._parameters, module._buffers]
        for held in places:
            for name, tensor in held.items():
                if tensor is not None and (changed := change(tensor)) is not tensor:
                    is_parameter = isinstance(tensor, nn.Parameter)
                    held[name] = (
                        nn.Parameter(changed, tensor.requires_grad) if is_parameter else changed
                    )
    return model


def _untimed(call: Callable[[], None], quantiles: Sequence[float]) -> list[float]:
    """What times a configuration: it is prepared, and as good as any."""
    call()
    return [0.0 for _ in quantiles]


def _unbuilt(*_: Any, **__: Any) -> None:
    """What builds a C++ extension, with a file as its lock: a copy that is killed would leave it
    locked for good.
    """
    raise RuntimeError("an extension cannot be used without a device")


def _not_remembered(tuner: Any, key: Any, configurations: Any, measure: Callable[[], None]) -> bool:
    """What writes a tuner's times to a file, or reads them: these are none."""
    measure()
    return False
