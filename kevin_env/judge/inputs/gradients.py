"""What is differentiated in a run with `backward`, found from a reference."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from kevin_env.candidate import tree
from kevin_env.candidate.backward import WithGradients
from kevin_env.candidate.weights import CONVERTED
from kevin_env.judge.compare.values import dtype_name

Drawn = tuple[tree.Skeleton, list[torch.Tensor]]
"""An input set: its structure and its tensors."""


@dataclass(frozen=True)
class Gradients:
    """What is differentiated in every call of a case.

    Attributes:
        arguments: How many arguments `forward` takes. An upstream gradient follows for each output.
        outputs: Numbers of the output's tensors that have a gradient.
        upstream: Dtype and shape of each.
        inputs: Numbers of the input tensors that have a gradient, by name.
        parameters: Names of the parameters that have one.
    """

    arguments: int
    outputs: list[int]
    upstream: list[tuple[str, list[int]]]
    inputs: dict[str, int]
    parameters: list[str]

    def order(self) -> dict[str, Any]:
        """What a candidate needs to know of them."""
        return {"outputs": self.outputs, "inputs": self.inputs, "parameters": self.parameters}

    def name(self, argument: int) -> str | None:
        """The name of an argument of the call that is an upstream gradient; None for any other."""
        number = argument - self.arguments
        return None if number < 0 else f"grad_output{number if len(self.outputs) > 1 else ''}"

    def drawn(
        self, skeleton: tree.Skeleton, tensors: list[torch.Tensor], seed: int, device: torch.device
    ) -> Drawn:  # fmt: skip
        """An input set with normal upstream gradients."""
        seeded = device.type != "meta"
        generator = torch.Generator(device).manual_seed(seed ^ 1) if seeded else None
        upstream = [
            torch.randn(shape, dtype=getattr(torch, dtype), device=device, generator=generator)
            for dtype, shape in self.upstream
        ]
        places = [{"t": len(tensors) + number} for number in range(len(upstream))]
        return {"list": [*skeleton["list"], *places]}, [*tensors, *upstream]


def find_gradients(
    model: nn.Module, drawn: Drawn, name_of: Callable[[int], str], parameters: list[str],
    call: Callable[[nn.Module, list[Any]], Any],
) -> Gradients | None:  # fmt: skip
    """All that a gradient of the model's output reaches; None if it reaches nothing.

    Args:
        model: The reference.
        drawn: An input set of it.
        name_of: The name of an argument.
        parameters: Names of the parameters.
        call: Calls a model with these arguments.
    """
    skeleton, tensors = drawn
    inputs = {
        f"{name_of(number)}{path}": leaf["t"]
        for number, argument in enumerate(skeleton["list"])
        for path, leaf in tree.leaves(argument)
        if "t" in leaf and tensors[leaf["t"]].dtype in CONVERTED
    }
    copies = [each.clone().requires_grad_(i in inputs.values()) for i, each in enumerate(tensors)]
    with torch.enable_grad():
        _, made = tree.flatten(call(model, tree.unflatten(skeleton, copies)))
    outputs = {number: each.detach() for number, each in enumerate(made) if each.requires_grad}
    upstream = [(dtype_name(each.dtype), list(each.shape)) for each in outputs.values()]
    every = Gradients(len(skeleton["list"]), [*outputs], upstream, inputs, parameters)
    del made
    ones = [torch.ones_like(each) for each in outputs.values()]
    found = call(passes(model, every), [*tree.unflatten(skeleton, tensors), *ones])
    reached = {name for name, gradient in found.items() if gradient is not None}
    inputs = {name: i for name, i in inputs.items() if f"{name}.grad" in reached}
    parameters = [name for name in parameters if f"self.{name}.grad" in reached]
    return replace(every, inputs=inputs, parameters=parameters) if inputs or parameters else None


def passes(model: nn.Module, gradients: Gradients | None) -> nn.Module:
    """The model whose call is judged: with its backward pass, if anything is differentiated."""
    if gradients is None:
        return model
    parameters = dict(model.named_parameters())
    of = {name: parameters[name] for name in gradients.parameters}
    return WithGradients(model, gradients.outputs, gradients.inputs, of)
