from dataclasses import replace
from typing import Any

import pytest
import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import POISON, extent, spec_of
from kevin_env.judge.compare.check import Allowed, check_answer, unwritten
from kevin_env.judge.compare.chunked import PIECE
from kevin_env.judge.handshake.claims import CallClaim, Output, TensorClaim
from kevin_env.judge.handshake.handshake import Answer
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.judge.workers.errors import Broken
from kevin_env.outcome import Incorrect
from kevin_env.problem import Problem

SOURCE = """
import torch
class Model(torch.nn.Module):
    pass
def get_inputs():
    return []
def get_init_inputs():
    return []
"""
CASE = Case(Problem(id="p", source=SOURCE, name="p"), "main", torch.device("cpu"))
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(5)


def call(value: Any, **claimed: Any) -> Answer:
    """The call that an honest candidate would have told of `value`; `claimed` replaces fields of
    every tensor.
    """
    skeleton, tensors = tree.flatten(value)
    return answer(CallClaim(skeleton=skeleton, tensors=[]), [output(t, **claimed) for t in tensors])


def answer(claim: CallClaim, outputs: list[Output]) -> Answer:
    return Answer(claim, outputs, outputs, 1.0)


def output(tensor: torch.Tensor, **claimed: Any) -> Output:
    claim = TensorClaim.model_validate(
        {**spec_of(tensor, 0), "device": "cpu", "in": "outbox"} | claimed
    )
    flat = tensor.as_strided([extent(claim.shape, claim.stride)], [1]).clone().view(torch.uint8)
    return Output(claim, flat)


def checked(got: Any, expected: Any, oracle: Any = None, **claimed: Any) -> tuple[str, str] | None:
    right = Expected(expected, lambda: oracle)
    wrong = check_answer(call(got, **claimed), right, CASE, "main/own", {})
    return None if wrong is None else (wrong.kind, wrong.output)


@pytest.mark.parametrize(
    "value", [X, [X, Y], (X,), {"a": X, "b": [Y, 3]}, 3, None, [], "text", 0.1, True]
)
def test_the_same_passes(value: Any) -> None:
    assert checked(value, value) is None


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([X], [X, Y]),
        ([X, Y, Y], [X, Y]),
        ([], [X]),
        (X, [X, Y]),
        ({"a": X}, {"a": X, "b": Y}),
        ([[X, Y]], [X]),
    ],
    ids=range(6),
)
def test_a_wrong_number_of_outputs_is_arity(got: Any, expected: Any) -> None:
    assert checked(got, expected) == ("arity", "")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([X], X),
        (X, (X,)),
        ({"a": X}, {"b": X}),
        ({"c": Y, "a": X}, {"a": X, "b": Y}),
        (3, X),
        (X, 3),
    ],
    ids=range(6),
)
def test_other_containers_are_a_type(got: Any, expected: Any) -> None:
    assert checked(got, expected) == ("type", "")


def test_a_list_is_as_good_as_a_tuple() -> None:
    assert checked([X, {"b": Y, "a": (X,)}], (X, {"a": [X], "b": Y})) is None
    assert checked([X, X], (X, Y)) is not None


@pytest.mark.parametrize(
    ("got", "expected"),
    [(3, 4), (True, 1), (1.0, 1), ("a", "b"), (None, 0), (0.1, 0.1000001)],
    ids=repr,
)
def test_scalars_are_exact(got: Any, expected: Any) -> None:
    assert checked([X, {"n": got}], [X, {"n": expected}]) == ("values", "[1]['n']")


def test_the_output_that_is_wrong_is_named() -> None:
    assert checked([X, {"mean": (Y, Y + 1)}], [X, {"mean": (Y, Y)}]) == ("values", "[1]['mean'][1]")


def test_shape_dtype_device_and_layout_are_distinguished() -> None:
    assert checked(X.t(), X) == ("shape", "")
    assert checked(X.reshape(24), X) == ("shape", "")
    assert checked(X.double(), X) == ("dtype", "")
    assert checked(Y.int(), Y) == ("dtype", "")
    assert checked(X, X, device="cuda") == ("device", "")
    assert checked(X, X, layout="torch.sparse_coo") == ("type", "")


def test_any_strides_will_do() -> None:
    assert checked(X.t().contiguous().t(), X) is None
    assert checked(X, X.t().contiguous().t()) is None
    wide = torch.zeros(4, 12)
    wide[:, ::2] = X
    assert checked(wide[:, ::2], X) is None


def told_apart(before: Any, now: Any, expected: Any) -> Incorrect | None:
    """What is wrong with a second call whose memory was filled before."""
    right = Expected(expected, lambda: None)
    wrong = check_answer(call(now), right, CASE, "main/own", {})
    assert wrong is not None
    return unwritten(call(before), call(now), wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_uninitialized_memory_is_distinguished_from_wrong_values(
    monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    monkeypatch.setitem(PIECE, "cpu", 8)
    right = X.to(dtype)
    filled = torch.full((4, 6 * right.itemsize), POISON, dtype=torch.uint8).view(dtype)
    found = told_apart([Y, torch.zeros_like(right)], [Y, filled], [Y, right])
    assert found is not None and (found.kind, found.output, found.wrong, found.total) == (
        "not_written",
        "[1]",
        24,
        24,
    )
    assert found.message.startswith("the output holds uninitialized memory")
    tail = torch.cat((right[:3], filled[3:]))
    found = told_apart(torch.zeros_like(right), tail, right)
    assert found is not None and found.message.startswith(
        "6 of 24 elements (25 %) hold uninitialized memory"
    )
    assert found.differences[0].got == "uninitialized" and found.differences[0].index[0] == 3
    assert told_apart(right, right + 1, right) is None
    assert told_apart(right, torch.full_like(right, float("nan")), right) is None


def test_a_minus_one_is_an_answer_unless_it_came_with_the_filling() -> None:
    assert told_apart(torch.full_like(Y, -1), torch.full_like(Y, -1), Y) is None
    found = told_apart(Y + 7, torch.full_like(Y, -1), Y)
    assert found is not None and found.kind == "not_written"


def test_an_unsupported_output_says_what_it_is() -> None:
    told = answer(CallClaim(unsupported="a value of type set"), [])
    wrong = check_answer(told, Expected(X, lambda: None), CASE, "main/own", {})
    assert wrong is not None and (wrong.kind, wrong.message) == ("type", "a value of type set")


def test_an_output_of_the_right_size_cannot_have_been_too_large() -> None:
    honest = call(X)
    told = answer(honest.claim, [Output(output(X, **{"in": None}).claim, None)])
    with pytest.raises(Broken, match="too large"):
        check_answer(told, Expected(X, lambda: None), CASE, "main/own", {})


def test_the_oracle_is_used_only_where_it_has_the_right_form() -> None:
    exact = X.double() + 1e-3  # the reference's own error, 64 times of which is allowed
    got = X + 0.05
    assert checked(got, X, exact) is None
    assert checked([got, Y], [X, Y], [exact, Y]) is None
    for unfit in (None, exact.reshape(24), exact.float(), [exact, exact], "text"):
        assert checked(got, X, unfit) == ("values", "")


def test_a_dict_is_the_same_in_any_order_and_its_entries_are_matched_by_key() -> None:
    expected = {"a": X, "b": [X + 1, {"c": Y, "d": 2}]}
    assert checked({"b": [X + 1, {"d": 2, "c": Y}], "a": X}, expected) is None
    assert checked({"b": [X, {"d": 2, "c": Y}], "a": X}, expected) == ("values", "['b'][0]")
    assert checked({"a": X, "c": [X + 1, {"c": Y, "d": 2}]}, expected) == ("type", "")


def column(values: torch.Tensor) -> Output:
    """A column of a matrix, as a claim and the bytes from its first to its last element."""
    wide = torch.stack([values, torch.full_like(values, 7)], dim=1)
    return output(wide[:, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex128])
def test_of_elements_that_lie_apart_only_they_are_taken(dtype: torch.dtype) -> None:
    values = torch.arange(5).to(dtype)
    taken = column(values).taken()
    assert taken.flat is not None and taken.size == taken.flat.numel() == 5 * values.element_size()
    again = taken.tensor()
    assert again is not None and torch.equal(again, values)


def test_exact_outputs_need_no_oracle() -> None:
    expected = Expected(Y, lambda: pytest.fail("an oracle was computed"))
    assert check_answer(call(Y), expected, CASE, "main/own", {}) is None
    assert check_answer(call(Y + 1), expected, CASE, "main/own", {}) is not None


def test_an_output_close_to_the_reference_needs_no_oracle_once_an_allowance_is_known() -> None:
    asked: list[int] = []

    def expected() -> Expected:
        return Expected(X, lambda: asked.append(1) or X.double())

    allowed: Allowed = {}
    assert check_answer(call(X), expected(), CASE, "main/own", allowed) is None
    assert len(asked) == 1 and list(allowed) == [("main/own", 0)]
    worst = allowed["main/own", 0].worst
    assert check_answer(call(X + 0.4 * worst), expected(), CASE, "main/own", allowed) is None
    assert len(asked) == 1
    assert check_answer(call(X), expected(), CASE, "main/wide", allowed) is None
    assert len(asked) == 2, "each distribution has its own"
    assert check_answer(call(X + 0.8 * worst), expected(), CASE, "main/own", allowed) is None
    assert len(asked) == 3
    further = Expected(X, lambda: X.double() + 1e-3)
    assert check_answer(call(X + 0.8 * worst), further, CASE, "main/own", allowed) is None
    assert allowed["main/own", 0].worst == worst, "the first one's stays"
    assert check_answer(call(X * float("nan")), expected(), CASE, "main/own", allowed) is not None
    assert check_answer(call(X + 3 * worst), expected(), CASE, "main/own", allowed) is not None


def test_a_small_error_everywhere_is_not_close() -> None:
    """Also where each element is within half of what one may be off by: all of them are held to a
    tighter budget.
    """
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(5))
    exact = x.double() + 1e-6 * torch.randn(
        64, 64, generator=torch.Generator().manual_seed(6), dtype=torch.float64
    )
    allowed: Allowed = {}
    expected = Expected(x, lambda: exact)
    assert check_answer(call(x), expected, CASE, "main/own", allowed) is None
    worst = allowed["main/own", 0].worst
    assert allowed["main/own", 0].rms < 0.45 * worst
    assert check_answer(call(x + 0.45 * worst), expected, CASE, "main/own", allowed) is not None
    x_but_one = x.clone()
    x_but_one[3, 4] += 0.45 * worst
    assert check_answer(call(x_but_one), expected, CASE, "main/own", allowed) is None


@pytest.mark.parametrize(
    ("how", "kind"), [({"unchanged": False}, "inputs_changed"), ({"early": True}, "early_done")]
)
def test_a_right_answer_to_changed_inputs_or_of_a_call_that_went_on_is_wrong(
    how: Any, kind: str
) -> None:
    found = check_answer(replace(call(X), **how), Expected(X, lambda: None), CASE, "main/own", {})
    assert found is not None and found.kind == kind


@pytest.mark.parametrize(("given", "changed"), [(X, False), (X + 1, True)])
def test_an_output_that_changes_after_it_was_taken_is_noticed(
    given: torch.Tensor, changed: bool
) -> None:
    assert replace(call(X), placed=[output(given)]).changed_since() is changed
