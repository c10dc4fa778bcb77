"""Giving a submission the reference's own weights.

By name where name and shape agree; what is left, one to one by shape and order of creation, parameters before buffers.
Sides of length one make no difference to a shape. A parameter of the reference that finds no place, or more than one,
is an error with a clear message, never a guess. A model that overrides `load_state_dict` gets the reference's state
and may pack it as it likes; so does one with hooks before loading, where a parameter finds no place without them.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import nn

State = dict[str, torch.Tensor]
Form = tuple[int, ...]
"""A shape without its sides of length one."""


class Unmatched(ValueError):
    """The reference's weights cannot be placed in the submission's model."""


def hand_over(model: object, weights: State, parameters: Iterable[str], order: Iterable[str] = ()) -> None:
    """Loads the reference's `weights` (parameters and buffers by name) into `model`, in place.

    Args:
        model: The submission's model.
        weights: The reference's state, in the order in which it was created.
        parameters: Which names of `weights` are parameters; each of them must find a place, buffers need not.
        order: The names of the model's own state in the order in which it was created.

    Raises:
        Unmatched: when a parameter finds no place or several.
    """
    required = list(parameters)
    if not isinstance(model, nn.Module):
        if required:
            raise Unmatched("the reference has weights, and ModelNew is no torch.nn.Module that could hold them")
        return
    if type(model).load_state_dict is not nn.Module.load_state_dict:
        model.load_state_dict(weights)
        return
    try:
        places = match(model, weights, required, order)
    except Unmatched:
        if not _has_hooks(model):
            raise
        model.load_state_dict(weights, strict=False)
        return
    state = model.state_dict()
    model.load_state_dict({own: weights[of].reshape(state[own].shape) for own, of in places.items()}, strict=False)


def match(model: nn.Module, weights: State, required: list[str], order: Iterable[str] = ()) -> dict[str, str]:
    """Which of the reference's weights goes to which entry of the model's state.

    Raises:
        Unmatched: see `hand_over`.
    """
    state = model.state_dict()
    own = {name: state[name] for name in dict.fromkeys((*order, *state)) if name in state}
    places = {name: name for name in own if name in weights and _form(own[name]) == _form(weights[name])}
    own_parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    optional = [name for name in weights if name not in set(required)]
    for given in (required, optional):
        for holders in (own_parameters, set(own) - own_parameters):
            _pair_by_shape(places, own, weights, [n for n in own if n in holders], given)
    lost = [name for name in required if name not in places.values()]
    if lost:
        raise Unmatched(_explain(lost, own, weights, places))
    return places


def _pair_by_shape(places: dict[str, str], own: State, weights: State, holders: list[str], given: list[str]) -> None:
    """Pairs what is left of both, in order, for each shape of which both have the same number."""
    taken = set(places.values())
    ours, theirs = defaultdict[Form, list[str]](list), defaultdict[Form, list[str]](list)
    for name in holders:
        if name not in places:
            ours[_form(own[name])].append(name)
    for name in given:
        if name not in taken:
            theirs[_form(weights[name])].append(name)
    for shape, names in theirs.items():
        if len(names) == len(ours[shape]):
            places.update(zip(ours[shape], names, strict=True))


def _form(tensor: torch.Tensor) -> Form:
    return tuple(side for side in tensor.shape if side != 1)


def _has_hooks(model: nn.Module) -> bool:
    own = type(model)._load_from_state_dict is not nn.Module._load_from_state_dict
    return own or any(module._load_state_dict_pre_hooks for module in model.modules())


def _explain(lost: list[str], own: State, weights: State, places: dict[str, str]) -> str:
    wanted = ", ".join(_label(name, weights[name]) for name in lost[:4])
    free = ", ".join(_label(name, own[name]) for name in own if name not in places) or "nothing"
    return (
        f"the reference's {wanted} found no place in ModelNew, which has {free} left. Weights are handed over by name, "
        "else one to one by shape and order: keep a parameter of the same name and shape, or override load_state_dict"
    )


def _label(name: str, tensor: torch.Tensor) -> str:
    return f"{name} {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
