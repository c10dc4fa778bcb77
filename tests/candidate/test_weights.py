import gc

import pytest
import torch
from torch import nn

from kevin_env.candidate.creation import Creation
from kevin_env.candidate.weights import State, Unmatched, hand_over, match


class Linear(nn.Module):
    """Two layers of one shape."""

    def __init__(self, names: tuple[str, str] = ("first", "second"), dim: int = 4) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, nn.Linear(dim, dim))


def given(model: nn.Module) -> tuple[State, list[str]]:
    return dict(model.state_dict()), [name for name, _ in model.named_parameters()]


def test_weights_go_by_name() -> None:
    reference, model = Linear(), Linear(("second", "first"))
    hand_over(model, *given(reference))
    for name, tensor in reference.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_renamed_weights_go_one_to_one_in_order() -> None:
    reference, model = Linear(), Linear(("one", "two"))
    assert match(model, *given(reference)) == {
        "one.weight": "first.weight", "one.bias": "first.bias", "two.weight": "second.weight",
        "two.bias": "second.bias",
    }  # fmt: skip
    hand_over(model, *given(reference))
    assert torch.equal(model.state_dict()["two.weight"], reference.state_dict()["second.weight"])


def test_a_name_wins_over_the_order() -> None:
    places = match(Linear(("other", "first")), *given(Linear()))
    assert (places["first.weight"], places["other.weight"]) == ("first.weight", "second.weight")


def test_the_same_name_with_another_shape_is_no_match() -> None:
    reference, model = nn.ParameterDict({"w": torch.ones(3)}), nn.ParameterDict({"w": torch.ones(4)})
    with pytest.raises(Unmatched, match=r"reference's w float32\[3\] found no place.*has w float32\[4\] left"):
        hand_over(model, *given(reference))


def test_more_holders_than_weights_of_a_shape_are_ambiguous() -> None:
    reference = nn.ParameterDict({"w": torch.ones(3)})
    model = nn.ParameterDict({"a": torch.zeros(3), "b": torch.zeros(3)})
    with pytest.raises(Unmatched, match=r"w float32\[3\].*a float32\[3\], b float32\[3\]"):
        hand_over(model, *given(reference))
    assert not model["a"].any() and not model["b"].any()


def test_a_missing_weight_is_told_with_what_is_free() -> None:
    with pytest.raises(Unmatched, match=r"first\.weight float32\[4, 4\].*has nothing left"):
        hand_over(nn.ReLU(), *given(Linear()))


class Normed(nn.Module):
    def __init__(self, buffers: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(3))
        if buffers:
            self.register_buffer("mean", torch.zeros(3))


def test_buffers_are_handed_over_where_there_is_a_place_and_optional_otherwise() -> None:
    reference = Normed(buffers=True)
    reference.load_state_dict({"scale": torch.full((3,), 2.0), "mean": torch.full((3,), 5.0)})
    full, bare = Normed(buffers=True), Normed(buffers=False)
    for model in (full, bare):
        hand_over(model, *given(reference))
        assert torch.equal(model.scale, reference.scale)
    assert torch.equal(full.get_buffer("mean"), torch.full((3,), 5.0))


def test_a_parameter_may_go_to_a_buffer() -> None:
    model = nn.Module()
    model.register_buffer("packed", torch.zeros(3))
    hand_over(model, {"scale": torch.ones(3)}, ["scale"])
    assert torch.equal(model.get_buffer("packed"), torch.ones(3))


def test_a_model_may_pack_the_references_state_itself() -> None:
    class Packed(Linear):
        def load_state_dict(self, state_dict, strict=True, assign=False):  # type: ignore[override]
            self.packed = torch.cat([state_dict["first.weight"], state_dict["second.weight"]])

    reference, model = Linear(), Packed(("a", "b"))
    hand_over(model, *given(reference))
    state = reference.state_dict()
    assert torch.equal(model.packed, torch.cat([state["first.weight"], state["second.weight"]]))


def test_what_is_no_module_can_hold_no_weights() -> None:
    hand_over(lambda x: x, {}, [])
    with pytest.raises(Unmatched, match=r"no torch\.nn\.Module"):
        hand_over(lambda x: x, *given(Linear()))


def test_another_dtype_of_the_same_shape_takes_the_values() -> None:
    model = nn.ParameterDict({"w": torch.zeros(3, dtype=torch.float16)})
    hand_over(model, *given(nn.ParameterDict({"w": torch.tensor([1.0, 2.0, 3.0])})))
    assert model["w"].tolist() == [1.0, 2.0, 3.0]


def test_sides_of_length_one_make_no_difference() -> None:
    reference = nn.ParameterDict({"bias": torch.randn(3, 1, 1), "scale": torch.randn(3)})
    model = nn.ParameterDict({"bias": torch.zeros(3), "other": torch.zeros(1, 3, 1)})
    hand_over(model, *given(reference))
    assert torch.equal(model["bias"], reference["bias"].flatten())
    assert torch.equal(model["other"], reference["scale"].view(1, 3, 1))


def pack(module: nn.Module, state: State, *_: object) -> None:
    state["packed"] = torch.cat([state.pop("first.weight"), state.pop("second.weight")])


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("packed", torch.zeros(8, 4))
        self.register_load_state_dict_pre_hook(pack)


class Overriding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("packed", torch.zeros(8, 4))

    def _load_from_state_dict(self, state_dict: State, *rest: object) -> None:
        pack(self, state_dict)
        super()._load_from_state_dict(state_dict, *rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Hooked, Overriding])
def test_a_model_may_pack_the_references_state_before_it_is_loaded(kind: type[nn.Module]) -> None:
    reference, model = Linear(), kind()
    hand_over(model, *given(reference))
    state = reference.state_dict()
    assert torch.equal(model.get_buffer("packed"), torch.cat([state["first.weight"], state["second.weight"]]))


class Biased(nn.Module):
    """A layer, then a parameter of its own, then another layer; a state has the parameter first."""

    def __init__(self) -> None:
        super().__init__()
        self.matmul = nn.Linear(4, 3)
        self.shift = nn.Parameter(torch.randn(3))
        self.norm = nn.BatchNorm1d(3)


class Flat(nn.Module):
    """The same weights by other names, declared in the same order."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(3))
        self.s, self.scale, self.add = (nn.Parameter(torch.zeros(3)) for _ in range(3))


def test_renamed_weights_go_in_the_order_in_which_they_were_declared() -> None:
    with Creation() as creation:
        reference, model = Biased(), Flat()
    theirs = creation.names(reference)
    state = {name: reference.state_dict()[name] for name in theirs}
    assert theirs[:3] == ["matmul.weight", "matmul.bias", "shift"], "not as in the state"
    parameters = [name for name in theirs if name in dict(reference.named_parameters())]
    places = match(model, state, parameters, creation.names(model))
    assert places == {
        "w": "matmul.weight",
        "b": "matmul.bias",
        "s": "shift",
        "scale": "norm.weight",
        "add": "norm.bias",
    }


def test_modules_that_are_gone_do_not_change_the_order() -> None:
    with Creation() as creation:
        model, passing = nn.Module(), nn.Sequential(*(nn.Linear(2, 2) for _ in range(3)))
        model.first = nn.Parameter(torch.zeros(2))
        del passing
        gc.collect()
        model.second = nn.Linear(2, 2)
    assert creation.names(model) == ["first", "second.weight", "second.bias"]


def test_creation_has_all_names_once_and_leaves_no_hook() -> None:
    with Creation() as creation:
        model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
        model[1].weight = nn.Parameter(torch.ones(3, 3))
        model.tied = model[1].bias
    late = nn.Linear(2, 2)
    assert sorted(creation.names(model)) == sorted(model.state_dict())
    assert creation.names(model)[-1] == "1.weight", "it was replaced last"
    assert creation.names(late) == ["weight", "bias"], "what was not seen stays as it is"
