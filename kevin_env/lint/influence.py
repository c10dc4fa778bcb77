"""Which inputs and weights do not matter: each is changed alone, and the output must follow."""

import torch

from kevin_env.candidate import tree
from kevin_env.judge.compare.values import mapped, pieces, size_of
from kevin_env.judge.inputs.reference import Case
from kevin_env.lint.target import InputSet, inputs_of, spread_of_all
from kevin_env.problem import ProblemError


def find_inert(case: Case) -> set[str]:
    """Names of inputs and weights whose change alters no output beyond the tolerance.

    A buffer that the call writes, such as running statistics in training mode, is state and left
    out. A change that makes the reference fail (an invalid index) counts as an effect.

    Raises:
        ProblemError: if the reference fails on its own inputs.
    """
    first = InputSet.draw(case, "own", 0)
    _, others = inputs_of(case, "own", 1)
    inert: set[str] = set()
    names = input_names(case, first)
    for i, tensor in enumerate(first.tensors):
        changed = _exchanged(tensor, others[i] if i < len(others) else tensor)
        if changed is not None and not _felt(
            case, first, [*first.tensors[:i], changed, *first.tensors[i + 1 :]]
        ):
            inert.add(names[i])
    for name, weight in _weights(case, first).items():
        kept = weight.clone()
        weight.copy_(_shaken(weight))
        if not _felt(case, first, first.tensors):
            inert.add(name)
        weight.copy_(kept)
    return inert


def _felt(case: Case, base: InputSet, tensors: list[torch.Tensor]) -> bool:
    try:
        outputs = tree.flatten(case.answer(base.skeleton, tensors, 0))[1]
    except ProblemError:
        return True
    if len(outputs) != len(base.outputs):
        return True
    return any(not target.accepts(outputs[target.index]) for target in base.targets)


def _weights(case: Case, base: InputSet) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, without those that the call writes."""
    before = {name: tensor.clone() for name, tensor in case.model.state_dict().items()}
    case.answer(base.skeleton, base.tensors, 0)
    after = case.model.state_dict()
    return {
        name: tensor
        for name, tensor in after.items()
        if tensor.numel() and torch.equal(before[name], tensor)
    }


def _exchanged(tensor: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor | None:
    """An input from another seed, or a perturbed one where the seed does not decide."""
    if tensor.numel() == 0:
        return None
    same = drawn.shape == tensor.shape and all(
        torch.equal(_bytes(one), _bytes(other)) for one, other in pieces(drawn, tensor)
    )
    return _shaken(tensor) if same else drawn


def _shaken(tensor: torch.Tensor) -> torch.Tensor:
    """Perturbed values of the same kind: noise as large as the spread for floats, else permuted."""
    generator = torch.Generator(tensor.device).manual_seed(1)
    if tensor.is_complex():
        return torch.view_as_complex(_shaken(torch.view_as_real(tensor)).contiguous())
    if tensor.is_floating_point():
        return _noisy(tensor, generator)
    if tensor.dtype == torch.bool:
        return ~tensor
    flat = tensor.flatten()
    moved = flat[torch.randperm(flat.numel(), generator=generator, device=tensor.device)].view(
        tensor.shape
    )
    return tensor + 1 if torch.equal(moved, tensor) else moved


def _noisy(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    scale = spread_of_all(tensor) or size_of(torch.Tensor.double, tensor).largest or 1.0

    def noisy(values: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(
            values.shape, generator=generator, device=tensor.device, dtype=torch.float64
        )
        return noise.mul_(scale).add_(values.double())

    return mapped(noisy, tensor.dtype, tensor)


def input_names(case: Case, drawn: InputSet) -> list[str]:
    """The name of each input tensor: the parameter of `forward`, and the place within it."""
    names: list[str] = []
    for i, argument in enumerate(drawn.skeleton["list"]):  # get_inputs gives a list
        name = case.argument_name(i)
        names += [f"{name}{path}" for path, leaf in tree.leaves(argument) if "t" in leaf]
    return names


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)
