"""Loads the reference's weights into a submission's model.

By name if name and shape agree; the rest by shape and order of creation, parameters before buffers.
Sides of length 1 and further names of a tensor do not count, and lazy parameters (`nn.LazyLinear`)
match by name only. A parameter of the reference without a unique match is an error, never a guess.
A model that overrides `load_state_dict` gets the reference's state. A model with other loading code
first gets that state as a checkpoint; if some of it is unused, it is matched like any other model.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.nn.parameter import is_lazy
from torch.utils.weak import WeakTensorKeyDictionary

State = dict[str, torch.Tensor]
Form = tuple[int, ...]
"""A shape without sides of length 1."""


CONVERTED = frozenset([torch.float64, torch.float32, torch.float16, torch.bfloat16])
"""Types that are converted to the one of a run. 8-bit floats are what a problem is about."""


def as_dtype(tensor: torch.Tensor, dtype: str | None) -> torch.Tensor:
    """The tensor in the type of a run, if there is one and it is floating-point."""
    return tensor.to(getattr(torch, dtype)) if dtype and tensor.dtype in CONVERTED else tensor


def converted(model: nn.Module, dtype: str | None) -> nn.Module:
    """The model with its parameters and buffers in the type of a run, in place."""
    return model._apply(lambda tensor: as_dtype(tensor, dtype)) if dtype else model


class Creation:
    """Records the order in which parameters and buffers are created, while it is entered.

    A state dict has another order: a module's parameters come before those of its submodules. Use
    one at a time in a thread.
    """

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

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def names(self, model: nn.Module) -> list[str]:
        """Names of a model's state in the order of creation."""
        tensors = dict(model.named_parameters(remove_duplicate=False)) | dict(
            model.named_buffers(remove_duplicate=False)
        )
        places = {name: self._places.get(tensor, self._count) for name, tensor in tensors.items()}
        return sorted(model.state_dict(), key=lambda name: places.get(name, self._count))

    def _note(self, module: nn.Module, name: str, tensor: torch.Tensor | None) -> None:
        if tensor is not None and tensor not in self._places:
            # Not the size, since entries vanish with their modules.
            self._places[tensor] = self._count
            self._count += 1


class Unmatched(ValueError):
    """The reference's weights do not fit the submission's model."""


def load_weights(
    model: object, weights: State, parameters: Iterable[str], order: Iterable[str] = ()
) -> list[tuple[str, str]]:  # fmt: skip
    """Loads the reference's weights into `model`, in place.

    Args:
        model: The submission's model.
        weights: The reference's parameters and buffers, in the order of creation.
        parameters: Names of the parameters among them: each must be matched, buffers need not.
        order: Names of the model's state in the order of creation.

    Returns:
        Pairs of a parameter of the reference and what it was matched with, where that can be wrong:
        a buffer, which may have another purpose, or one of several parameters of that shape.

    Raises:
        Unmatched: if a parameter has no match, or several.
    """
    required = list(parameters)
    if not isinstance(model, nn.Module):
        if required:
            raise Unmatched("the reference has weights, but ModelNew is not a torch.nn.Module")
        return []
    if type(model).load_state_dict is not nn.Module.load_state_dict:
        model.load_state_dict(weights)
        return []
    loads_itself = _loads_itself(model)
    if loads_itself and _is_checkpoint_of(model, weights, required):
        return []
    try:
        places = match(model, weights, required, order)
    except Unmatched:
        if not loads_itself:
            raise
        model.load_state_dict(weights, strict=False)
        return []
    state = model.state_dict()
    model.load_state_dict(
        {own: _shaped_like(weights[of], state[own]) for own, of in places.items()}, strict=False
    )
    own_parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    alike = Counter(_form(weights[of]) for own, of in places.items() if own != of)
    return [
        (of, own)
        for own, of in places.items()
        if own != of
        and of in required
        and (own not in own_parameters or alike[_form(weights[of])] > 1)
    ]


def match(
    model: nn.Module, weights: State, required: list[str], order: Iterable[str] = ()
) -> dict[str, str]:
    """Maps entries of the model's state to the reference's weights.

    Raises:
        Unmatched: see `load_weights`.
    """
    state = {name: each for name, each in model.state_dict().items() if torch.is_tensor(each)}
    own = {name: state[name] for name in dict.fromkeys((*order, *state)) if name in state}
    lazy = {name for name, tensor in own.items() if is_lazy(tensor)}
    places = {
        n: n for n in own if n in weights and (n in lazy or _form(own[n]) == _form(weights[n]))
    }
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tensors = {**parameters, **dict(model.named_buffers(remove_duplicate=False))}
    optional = [name for name in weights if name not in set(required)]
    for names in (required, optional):
        for holders in (parameters.keys(), own.keys() - parameters.keys()):
            free = [name for name in own if name in holders - lazy]
            _pair_by_shape(places, own, weights, _distinct(free, tensors, places), names)
    unmatched = [name for name in required if name not in places.values()]
    if unmatched:
        raise Unmatched(_explain(unmatched, own, weights, places))
    return places


def holders(
    model: object, weights: State, names: list[str], order: Iterable[str] = ()
) -> dict[str, nn.Parameter]:  # fmt: skip
    """The model's parameter for each of these parameters of the reference, once it has its weights.

    They are found as `load_weights` finds them; arguments as there.

    Raises:
        Unmatched: if there is none, such as in a model that keeps its weights in another form.
    """
    if not isinstance(model, nn.Module) or not names:
        return {}
    own = dict(model.named_parameters(remove_duplicate=False))
    places = {of: name for name, of in match(model, weights, names, order).items()}
    if others := [name for name in names if places[name] not in own]:
        raise Unmatched(f"a gradient needs a parameter, not a buffer: {', '.join(others[:4])}")
    return {name: own[places[name]] for name in names}


def _distinct(names: list[str], tensors: State, places: Iterable[str]) -> list[str]:
    """The first name of each tensor that has no place yet under another name."""
    seen = {id(tensors[name]) for name in places if name in tensors}
    found = list[str]()
    for name in names:
        key = id(tensors.get(name, name))  # a hook's entry of the state is no tensor of the model
        if key not in seen:
            seen.add(key)
            found.append(name)
    return found


def _pair_by_shape(
    places: dict[str, str], own: State, weights: State, holders: list[str], sources: list[str]
) -> None:
    """Pairs the rest in order, for each shape of which both have the same number."""
    taken = set(places.values())
    free, wanted = defaultdict[Form, list[str]](list), defaultdict[Form, list[str]](list)
    for name in holders:
        if name not in places:
            free[_form(own[name])].append(name)
    for name in sources:
        if name not in taken:
            wanted[_form(weights[name])].append(name)
    for shape, names in wanted.items():
        if len(names) == len(free[shape]):
            places.update(zip(free[shape], names, strict=True))


def _form(tensor: torch.Tensor) -> Form:
    return tuple(side for side in tensor.shape if side != 1)


def _shaped_like(tensor: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return tensor if is_lazy(target) else tensor.reshape(target.shape)


def _loads_itself(model: nn.Module) -> bool:
    """Whether a module has loading code other than torch's."""
    codes = [
        (each._load_from_state_dict, *each._load_state_dict_pre_hooks.values())
        for each in model.modules()
    ]
    return not all(_is_torchs(code) for of_a_module in codes for code in of_a_module)


def _is_torchs(code: Any) -> bool:
    code = getattr(code, "hook", code)
    return str(getattr(code, "__module__", None)).split(".")[0] == "torch"


def _is_checkpoint_of(model: nn.Module, weights: State, required: list[str]) -> bool:
    """Loads the reference's state by its names, and checks whether the model's code used all of it.

    That code may leave entries in the state, and may write to parameters instead of renaming.
    """
    before = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if not is_lazy(parameter)
    }
    with suppress(Exception):  # the names differ: everything is loaded again
        missing, unexpected = model.load_state_dict(weights, strict=False)
        left = {name: parameter for name, parameter in model.named_parameters() if name in missing}
        written = [
            name
            for name, parameter in left.items()
            if not (name in before and _same(parameter, before[name]))
        ]
        return len(written) == len(left) and (bool(written) or set(required).isdisjoint(unexpected))
    return False


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _explain(unmatched: list[str], own: State, weights: State, places: dict[str, str]) -> str:
    missing = ", ".join(_label(name, weights[name]) for name in unmatched[:4])
    free = ", ".join(_label(name, own[name]) for name in own if name not in places) or "none"
    return (
        f"weights not matched: {missing}; unmatched in ModelNew: {free}. Weights are "
        "matched by name, else by shape and order: declare a parameter of the same name and "
        "shape, or override load_state_dict"
    )


def _label(name: str, tensor: torch.Tensor) -> str:
    shape = " without a shape" if is_lazy(tensor) else list(tensor.shape)
    return f"{name} {str(tensor.dtype).removeprefix('torch.')}{shape}"
