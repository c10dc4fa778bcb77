from typing import Any

import pytest
import torch
from torch import nn

from kevin_env.candidate.weights import Creation, State, Unmatched, holders, load_weights, match


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
    load_weights(model, *given(reference))
    for name, tensor in reference.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_renamed_weights_go_one_to_one_in_order() -> None:
    reference, model = Linear(), Linear(("one", "two"))
    assert match(model, *given(reference)) == {
        "one.weight": "first.weight", "one.bias": "first.bias", "two.weight": "second.weight",
        "two.bias": "second.bias",
    }  # fmt: skip
    load_weights(model, *given(reference))
    assert torch.equal(model.state_dict()["two.weight"], reference.state_dict()["second.weight"])


def test_gradients_are_taken_at_the_parameters_that_hold_the_weights() -> None:
    reference, model = Linear(), Linear(("one", "two"))
    weights, names = given(reference)
    own = {
        name.replace("one", "first").replace("two", "second"): each
        for name, each in model.named_parameters()
    }
    found = holders(model, weights, names)
    assert {name: id(each) for name, each in found.items()} == {n: id(p) for n, p in own.items()}
    folded = nn.Module()
    folded.register_buffer("folded", torch.zeros(3, 3))
    weights, names = given(nn.ParameterDict({"weight": torch.ones(3, 3)}))
    with pytest.raises(Unmatched, match="needs a parameter, not a buffer: weight"):
        holders(folded, weights, names)


def test_the_same_name_with_another_shape_is_no_match() -> None:
    reference, model = (
        nn.ParameterDict({"w": torch.ones(3)}),
        nn.ParameterDict({"w": torch.ones(4)}),
    )
    with pytest.raises(
        Unmatched, match=r"not matched: w float32\[3\]; unmatched in ModelNew: w float32\[4\]"
    ):
        load_weights(model, *given(reference))


def test_more_holders_than_weights_of_a_shape_are_ambiguous() -> None:
    reference = nn.ParameterDict({"w": torch.ones(3)})
    model = nn.ParameterDict({"a": torch.zeros(3), "b": torch.zeros(3)})
    with pytest.raises(Unmatched, match=r"w float32\[3\].*a float32\[3\], b float32\[3\]"):
        load_weights(model, *given(reference))
    assert not model["a"].any() and not model["b"].any()


STATISTICS = ("weight", "bias", "running_mean", "running_var")


class Registered(nn.Module):
    """As models write it: a layer is an attribute, and is also part of a fused module."""

    def __init__(self, kept: bool) -> None:
        super().__init__()
        self.expand, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        if not kept:
            self.fused, self.first = nn.Sequential(self.expand), self.second
            del self.second
        self.last = nn.Linear(3, 3)


@pytest.mark.parametrize("kept", [True, False])
def test_a_layer_with_several_names_counts_once(kept: bool) -> None:
    reference: Any = nn.Sequential(*(nn.Linear(3, 3) for _ in range(3)))
    model: Any = Registered(kept)
    model.again = model.expand
    if kept:
        model.add_module("1", model.second)  # the name that the reference has, beside another
    load_weights(model, *given(reference))
    second = model.second if kept else model.first
    for layer, of in zip((model.expand, second, model.last), reference, strict=True):
        assert torch.equal(layer.weight, of.weight) and torch.equal(layer.bias, of.bias)


def test_statistics_do_not_go_to_the_further_names_of_weights() -> None:
    reference = nn.Sequential(nn.Conv2d(3, 3, 1, bias=False), nn.BatchNorm2d(3))
    reference[1].load_state_dict({name: torch.rand(3) for name in STATISTICS}, strict=False)
    model: Any = nn.Module()
    model.conv, model.norm = nn.Conv2d(3, 3, 1, bias=False), nn.BatchNorm2d(3)
    model.block = nn.Sequential(model.conv, model.norm)
    load_weights(model, *given(reference))
    for name in STATISTICS:
        assert torch.equal(model.norm.state_dict()[name], reference[1].state_dict()[name]), name


def test_one_tensor_under_two_names_holds_no_two_weights() -> None:
    model: Any = nn.Module()
    model.x = model.y = nn.Parameter(torch.zeros(3))
    with pytest.raises(Unmatched, match="weights not matched: a"):
        load_weights(model, *given(nn.ParameterDict({"a": torch.ones(3), "b": torch.ones(3)})))


def test_state_that_is_no_tensor_is_left_alone() -> None:
    class Counting(nn.Linear):
        def get_extra_state(self) -> dict[str, int]:
            return {"calls": 0}

        def set_extra_state(self, state: object) -> None:
            raise AssertionError(f"given {state}")

    reference: Any = nn.Sequential(nn.Linear(3, 3))
    model: Any = Counting(3, 3)
    load_weights(model, *given(reference))
    assert torch.equal(model.weight, reference[0].weight)


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
        load_weights(model, *given(reference))
        assert torch.equal(model.scale, reference.scale)
    assert torch.equal(full.get_buffer("mean"), torch.full((3,), 5.0))


def test_a_model_may_pack_the_references_state_itself() -> None:
    class Packed(Linear):
        def load_state_dict(self, state_dict, strict=True, assign=False):  # type: ignore[override]
            self.packed = torch.cat([state_dict["first.weight"], state_dict["second.weight"]])

    reference, model = Linear(), Packed(("a", "b"))
    load_weights(model, *given(reference))
    state = reference.state_dict()
    assert torch.equal(model.packed, torch.cat([state["first.weight"], state["second.weight"]]))


def test_what_is_no_module_can_hold_no_weights() -> None:
    load_weights(lambda x: x, {}, [])
    with pytest.raises(Unmatched, match=r"not a torch\.nn\.Module"):
        load_weights(lambda x: x, *given(Linear()))


def test_sides_of_length_one_make_no_difference() -> None:
    reference = nn.ParameterDict({"bias": torch.randn(3, 1, 1), "scale": torch.randn(3)})
    model = nn.ParameterDict({"bias": torch.zeros(3), "other": torch.zeros(1, 3, 1)})
    load_weights(model, *given(reference))
    assert torch.equal(model["bias"], reference["bias"].flatten())
    assert torch.equal(model["other"], reference["scale"].view(1, 3, 1))


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
        "w": "matmul.weight", "b": "matmul.bias", "s": "shift", "scale": "norm.weight",
        "add": "norm.bias",
    }  # fmt: skip


def test_creation_has_all_names_once_and_leaves_no_hook() -> None:
    with Creation() as creation:
        model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
        model[1].weight = nn.Parameter(torch.ones(3, 3))
        model.tied = model[1].bias
    late = nn.Linear(2, 2)
    assert sorted(creation.names(model)) == sorted(model.state_dict())
    assert creation.names(model)[-1] == "1.weight", "it was replaced last"
    assert creation.names(late) == ["weight", "bias"], "what was not seen stays as it is"


class Custom(nn.Module):
    """One layer of its own: parameters by these names and shapes, each with a value of its own."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.full(shape, float("nan"))))


class Reference(nn.Module):
    def __init__(self, inputs: int = 4, outputs: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    @property
    def weight(self) -> torch.Tensor:
        return self.get_parameter("linear.weight")

    @property
    def bias(self) -> torch.Tensor:
        return self.get_parameter("linear.bias")


def transpose(state: State, prefix: str) -> None:
    if prefix + "linear.weight" in state:
        state[prefix + "weight_t"] = state.pop(prefix + "linear.weight").t().contiguous()
        state[prefix + "shift"] = state.pop(prefix + "linear.bias")


class Transposed(Custom):
    def _load_from_state_dict(self, state_dict: State, prefix: str, *rest: object) -> None:  # type: ignore[override]
        transpose(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[arg-type]


class TransposedByHook(Custom):
    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__(**shapes)
        self._register_load_state_dict_pre_hook(lambda state, prefix, *_: transpose(state, prefix))


class TransposedByWriting(Custom):
    """Leaves the state as it is and writes its parameters itself."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__(**shapes)
        self.register_buffer("limits", torch.ones(4))
        self.register_load_state_dict_pre_hook(type(self).fill)

    def fill(self, state: State, *_: object) -> None:
        self.get_parameter("weight_t").data.copy_(state["linear.weight"].t())
        self.get_parameter("shift").data.copy_(state["linear.bias"])


class TransposedOnLoad(Custom):
    def load_state_dict(self, state_dict, strict=True, assign=False):  # type: ignore[override]
        try:
            return super().load_state_dict(state_dict, strict, assign)
        except RuntimeError:
            state = dict(state_dict)
            transpose(state, "")
            return super().load_state_dict(state, strict, assign)


KINDS = [Transposed, TransposedByHook, TransposedByWriting, TransposedOnLoad]


@pytest.mark.parametrize("inputs", [3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_reads_the_references_names_is_given_them_where_shapes_fit_too(
    kind: type[Custom], inputs: int
) -> None:
    reference, model = Reference(inputs), kind(weight_t=(inputs, 4), shift=(4,))
    load_weights(model, *given(reference))
    assert torch.equal(model.get_parameter("weight_t"), reference.weight.t())
    assert torch.equal(model.get_parameter("shift"), reference.bias)
    if kind is TransposedByWriting:
        assert torch.equal(model.get_buffer("limits"), torch.ones(4)), (
            "its own, which nothing of the reference is for"
        )


@pytest.mark.parametrize("inputs", [3, 4])
def test_a_submodule_may_pack_what_is_loaded_into_it(inputs: int) -> None:
    class Layer(Custom):
        def _load_from_state_dict(self, state_dict: State, prefix: str, *rest: object) -> None:  # type: ignore[override]
            state_dict[prefix + "weight"] = state_dict[prefix + "weight"].t().contiguous()
            super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[arg-type]

    reference, model = Reference(inputs), nn.Module()
    model.linear = Layer(weight=(inputs, 4), bias=(4,))
    load_weights(model, *given(reference))
    assert torch.equal(model.get_parameter("linear.weight"), reference.weight.t())
    assert torch.equal(model.get_parameter("linear.bias"), reference.bias)


def test_a_hook_that_renames_is_called_once_with_the_references_names() -> None:
    calls: list[list[str]] = []

    def rename(state: State, prefix: str, *_: object) -> None:
        calls.append(sorted(state))
        for name in ("weight", "bias"):
            state[prefix + name] = state.pop(prefix + "linear." + name)

    reference, model = Reference(), Custom(weight=(4, 4), bias=(4,))
    model._register_load_state_dict_pre_hook(rename)
    load_weights(model, *given(reference))
    assert torch.equal(model.get_parameter("weight"), reference.weight)
    assert calls == [["linear.bias", "linear.weight"]]


def count(module: Any, state: State, *_: object) -> None:
    module.loads = getattr(module, "loads", 0) + 1
    print(sorted(state))


def insist(module: nn.Module, state: State, *_: object) -> None:
    assert set(state) == set(module.state_dict())


def look_up(module: nn.Module, state: State, *_: object) -> None:
    state["matrix"] = state["matrix"].contiguous()


@pytest.mark.parametrize("hook", [count, insist, look_up])
def test_hooks_that_change_nothing_leave_it_to_shapes(hook) -> None:
    reference, model = Reference(3), Custom(matrix=(4, 3), shift=(4,))
    model.register_load_state_dict_pre_hook(hook)
    load_weights(model, *given(reference))
    assert torch.equal(model.get_parameter("matrix"), reference.weight)
    assert torch.equal(model.get_parameter("shift"), reference.bias)


def test_what_a_hook_took_without_removing_it_is_not_lost() -> None:
    def keep(module: nn.Module, state: State, *_: object) -> None:
        module.packed = torch.cat([state["linear.weight"], state["linear.bias"][:, None]], dim=1)

    def fold(module: nn.Module, state: State, *_: object) -> None:
        state["linear.weight"] = state["linear.weight"] + state["linear.bias"][:, None]

    reference = Reference()
    keeping: Any = nn.Module()
    folding: Any = nn.Module()
    keeping.register_load_state_dict_pre_hook(keep)
    load_weights(keeping, *given(reference))
    assert torch.equal(keeping.packed[:, -1], reference.bias)
    folding.linear = nn.Linear(4, 4, bias=False)
    folding.register_load_state_dict_pre_hook(fold)
    load_weights(folding, *given(reference))
    assert torch.equal(folding.linear.weight, reference.weight + reference.bias[:, None])


def test_a_hook_that_knows_neither_names_is_told_by_its_own_error() -> None:
    model = Custom(matrix=(4, 3), shift=(4,))
    model._register_load_state_dict_pre_hook(lambda state, *_: state.pop("liner.weight"))
    with pytest.raises(KeyError, match=r"liner\.weight"):
        load_weights(model, *given(Reference(3)))


class Several(nn.Module):
    """Modules of torch's with load hooks and overrides of torch's own."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        layers = (nn.BatchNorm1d(4), nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
        for name, layer in zip(names, layers, strict=True):
            self.add_module(name, layer)


def test_what_torchs_own_modules_do_at_a_load_does_not_count() -> None:
    reference, model = Several("norm", "linear"), Several("first", "second")
    load_weights(model, *given(reference))
    for mine, theirs in zip(
        model.state_dict().values(), reference.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, theirs)
    lacking = nn.Module()
    lacking.other = nn.BatchNorm1d(4, affine=False)
    with pytest.raises(Unmatched, match=r"weight float32\[5\]"):
        load_weights(lacking, *given(nn.BatchNorm1d(5)))


def test_parameters_without_a_shape_take_it_from_the_reference_by_name() -> None:
    reference, model = Reference(3), nn.Module()
    with Creation() as creation:
        model.linear = nn.LazyLinear(4)
    load_weights(model, *given(reference), creation.names(model))
    assert torch.equal(model.linear.weight, reference.weight)
    assert torch.equal(model.linear(torch.ones(2, 3)), reference.linear(torch.ones(2, 3)))
    other = nn.Module()
    other.fc = nn.LazyLinear(4)
    with pytest.raises(Unmatched, match=r"linear\.weight.*: fc\.weight float32 without a shape"):
        load_weights(other, *given(reference))


def test_a_weight_that_goes_by_shape_into_a_buffer_is_told() -> None:
    reference = nn.ParameterDict({"weight": torch.ones(3, 3), "bias": torch.zeros(3)})
    model = nn.Module()
    model.register_buffer("folded", torch.zeros(3, 3))
    model.register_parameter("shift", nn.Parameter(torch.ones(3)))
    assert load_weights(model, *given(reference)) == [("weight", "folded")]
    crossed = load_weights(Linear(), *given(Linear(("one", "two"))))
    assert ("one.weight", "first.weight") in crossed and ("two.bias", "second.bias") in crossed
    assert (
        load_weights(
            nn.ParameterList([torch.zeros(3)]), *given(nn.ParameterDict({"w": torch.ones(3)}))
        )
        == []
    )
