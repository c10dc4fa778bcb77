"""In which order a model's parameters and buffers come to be, which is the order that their author
wrote them in.

A state's own order is another: a module's direct parameters come before those of the modules in it.
"""

from collections.abc import MutableMapping
from types import TracebackType

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils.weak import WeakTensorKeyDictionary


class Creation:
    """Watches all modules while it is entered; one at a time in a thread."""

    def __init__(self) -> None:
        self._places: MutableMapping[torch.Tensor, int] = WeakTensorKeyDictionary()
        self._count = 0
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> "Creation":
        registers = (
            register_module_parameter_registration_hook,
            register_module_buffer_registration_hook,
        )
        self._hooks = [register(self._note) for register in registers]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def names(self, model: nn.Module) -> list[str]:
        """The names of a model's state, those that were registered first in front."""
        tensors = dict(model.named_parameters(remove_duplicate=False)) | dict(
            model.named_buffers(remove_duplicate=False)
        )
        places = {name: self._places.get(tensor, self._count) for name, tensor in tensors.items()}
        return sorted(model.state_dict(), key=lambda name: places.get(name, self._count))

    def _note(self, module: nn.Module, name: str, tensor: torch.Tensor | None) -> None:
        if tensor is not None and tensor not in self._places:
            self._places[tensor] = (
                self._count
            )  # how many are left says nothing: they go when their modules do
            self._count += 1
