"""A model's forward and backward pass as one call, for runs that judge both.

The call takes the model's inputs and an upstream gradient for each of some outputs. It returns the
model's output and the gradients, so that everything else has more inputs and more outputs.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from kevin_env.candidate import tree


class WithGradients(nn.Module):
    """A model whose calls return its output and gradients, without a graph.

    Args:
        model: The model; any callable.
        outputs: Numbers of the output's tensors that an upstream gradient is passed for.
        inputs: Numbers of the input tensors whose gradients are returned, by name.
        parameters: Tensors whose gradients are returned, by name.
    """

    def __init__(
        self, model: Any, outputs: list[int], inputs: Mapping[str, int],
        parameters: Mapping[str, torch.Tensor],
    ) -> None:  # fmt: skip
        super().__init__()
        self.model = model
        self._outputs, self._inputs, self._parameters_of = outputs, inputs, parameters

    def forward(self, *arguments: Any) -> Any:
        """The output as `output`, then `NAME.grad` for inputs and `self.NAME.grad` for parameters.

        A gradient is None where none reaches its tensor.
        """
        count = len(arguments) - len(self._outputs)
        skeleton, given = tree.flatten(list(arguments[:count]))
        # on one thread, where the modes that record it are, and the judge's stream
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            wanted = set(self._inputs.values())
            inputs = [t.detach().requires_grad_(i in wanted) for i, t in enumerate(given)]
            output = self.model(*tree.unflatten(skeleton, inputs))
            try:
                form, outputs = tree.flatten(output)
            except tree.Unsupported:
                return output
            pairs = [
                (outputs[i], gradient)
                for i, gradient in zip(self._outputs, arguments[count:], strict=True)
                if i < len(outputs) and _takes(outputs[i], gradient)
            ]
            of = {f"{name}.grad": inputs[number] for name, number in self._inputs.items()}
            of |= {f"self.{name}.grad": each for name, each in self._parameters_of.items()}
            gradients = _gradients(pairs, list(of.values()))
        detached = tree.unflatten(form, [each.detach() for each in outputs])
        return {"output": detached, **dict(zip(of, gradients, strict=True))}


def _takes(output: torch.Tensor, gradient: torch.Tensor) -> bool:
    """Whether autograd takes this gradient; what is wrong with the output is found elsewhere."""
    same = output.shape == gradient.shape and output.dtype == gradient.dtype
    return output.requires_grad and same and output.device == gradient.device


def _gradients(
    pairs: list[tuple[torch.Tensor, torch.Tensor]], of: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    """The gradients of these tensors; None for all that no output depends on."""
    found: list[torch.Tensor | None] = [None] * len(of)
    places = [place for place, tensor in enumerate(of) if tensor.requires_grad]
    if pairs and places:
        outputs, upstream = zip(*pairs, strict=True)
        made = torch.autograd.grad(
            outputs, [of[place] for place in places], upstream, allow_unused=True
        )
        for place, gradient in zip(places, made, strict=True):
            found[place] = gradient
    return found
