import gc
import json
import weakref
from typing import Any

import pytest
import torch

from kevin_env.candidate import tree

T = torch.ones(2)


@pytest.mark.parametrize(
    "value",
    [
        3, -(10**30), True, None, "text", 0.1, float("inf"), 1 + 2j, torch.bfloat16, [], (), {},
        [1, (2.5, None), {"a": [True], "": ()}],
    ],
    ids=repr,
)  # fmt: skip
def test_scalars_and_containers_survive_json(value: Any) -> None:
    skeleton, tensors = tree.flatten(value)
    back = tree.unflatten(json.loads(json.dumps(skeleton, allow_nan=False)), tensors)
    assert back == value and type(back) is type(value) and tensors == []


def test_tensors_are_taken_out_in_order_and_put_back_where_they_were() -> None:
    a, b, c = (torch.full((2,), float(i)) for i in range(3))
    value = {"x": [a, 7], "y": (b, {"z": c})}
    skeleton, tensors = tree.flatten(value)
    assert [t is o for t, o in zip(tensors, (a, b, c), strict=True)] == [True] * 3
    back = tree.unflatten(skeleton, tensors)
    assert back["x"][0] is a and back["x"][1] == 7 and back["y"][0] is b and back["y"][1]["z"] is c
    assert isinstance(back["y"], tuple)


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), b"bytes", {1: T}, [T, {"a": range(3)}], torch.device("cpu")]
)
def test_anything_else_is_unsupported(value: Any) -> None:
    with pytest.raises(tree.Unsupported, match="neither a tensor"):
        tree.flatten(value)


def test_leaves_are_told_with_their_paths() -> None:
    skeleton, _ = tree.flatten([T, {"mean": T, "n": (3,)}])
    assert [path for path, _ in tree.leaves(skeleton)] == ["[0]", "[1]['mean']", "[1]['n'][0]"]
    assert tree.leaves(tree.flatten(T)[0]) == [("", {"t": 0})]


@pytest.mark.parametrize("skeleton", [{"no": 1}, {"float": "x"}, {"dtype": "no_such"}])
def test_an_unknown_tag_or_value_is_refused(skeleton: Any) -> None:
    with pytest.raises((ValueError, AttributeError)):
        tree.unflatten(skeleton, [])


def test_taking_apart_leaves_no_cycle_that_would_hold_the_tensors() -> None:
    gc.disable()
    try:
        tensor = torch.ones(4)
        gone = weakref.ref(tensor)
        skeleton, tensors = tree.flatten([tensor, {"a": (tensor,)}])
        back = tree.unflatten(skeleton, tensors)
        del tensor, tensors, back
        assert gone() is None
    finally:
        gc.enable()
