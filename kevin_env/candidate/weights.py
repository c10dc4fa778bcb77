"""Giving a submission the reference's own weights.

By name where name and shape agree; what is left, one to one by shape and order, parameters before buffers. A
parameter of the reference that finds no place, or more than one, is an error with a clear message, never a guess.
A model that overrides `load_state_dict` gets the reference's state as it is and may pack it as it likes.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import nn

State = dict[str, torch.Tensor]


class Unmatched(ValueError):
    """The reference's weights cannot be placed in the submission's model."""


def hand_over(model: object, weights: State, parameters: Iterable[str]) -> None:
    """Loads the reference's `weights` (parameters and buffers by name) into `model`, in place.

    Args:
        model: The submission's model.
        weights: The reference's state.
        parameters: Which names of `weights` are parameters; each of them must find a place, buffers need not.

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
    places = match(model, weights, required)
    model.load_state_dict({own: weights[given] for own, given in places.items()}, strict=False)


def match(model: nn.Module, weights: State, required: list[str]) -> dict[str, str]:
    """Which of the reference's weights goes to which entry of the model's state.

    Raises:
        Unmatched: see `hand_over`.
    """
    own = model.state_dict()
    places = {name: name for name in own if name in weights and own[name].shape == weights[name].shape}
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
    ours, theirs = defaultdict[torch.Size, list[str]](list), defaultdict[torch.Size, list[str]](list)
    for name in holders:
        if name not in places:
            ours[own[name].shape].append(name)
    for name in given:
        if name not in taken:
            theirs[weights[name].shape].append(name)
    for shape, names in theirs.items():
        if len(names) == len(ours[shape]):
            places.update(zip(ours[shape], names, strict=True))


def _explain(lost: list[str], own: State, weights: State, places: dict[str, str]) -> str:
    wanted = ", ".join(_label(name, weights[name]) for name in lost[:4])
    free = ", ".join(_label(name, own[name]) for name in own if name not in places) or "nothing"
    return (
        f"the reference's {wanted} found no place in ModelNew, which has {free} left. Weights are handed over by name, "
        "else one to one by shape and order: keep a parameter of the same name and shape, or override load_state_dict"
    )


def _label(name: str, tensor: torch.Tensor) -> str:
    return f"{name} {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
