"""What is wrong with an output: its structure, its scalars, its tensors' form; and with a call.

Rows about the values of one tensor are in `test_values`.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from comparison import wrong

from kevin_env.candidate import tree
from kevin_env.candidate.region import FILLING, extent, spec_of
from kevin_env.judge.compare.check import check_answer, find_unwritten, unwritten
from kevin_env.judge.compare.outputs import Allowed
from kevin_env.judge.compare.values import PIECE, Mismatch
from kevin_env.judge.handshake.claims import CallClaim, Output, TensorClaim
from kevin_env.judge.handshake.handshake import Answer
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.outcome import Difference
from kevin_env.problem import Problem

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(5)
PAIR = {"a": X, "b": [X + 1, {"c": Y, "d": 2}]}


def in_every_other_column(x: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


RIGHT: dict[str, tuple[Any, Any]] = {  # the expected output and the submission's
    "a tensor": (X, X.clone()),
    "integers": (Y, Y.clone()),
    "a list": ([X, Y], [X, Y]),
    "a tuple": ((X,), (X,)),
    "a dict": (PAIR, PAIR),
    "nothing": ([], []),
    "a list for a tuple": ((X, {"a": [X], "b": Y}), [X, {"a": (X,), "b": Y}]),
    "a dict in another order": (PAIR, {"b": [X + 1, {"d": 2, "c": Y}], "a": X}),
    **{f"the scalar {value!r}": (value, value) for value in (3, None, "text", 0.1, True, 1j)},
    "the scalar NaN": (float("nan"), float("nan")),
    "columns first": (X, X.t().contiguous().t()),
    "rows first": (X.t().contiguous().t(), X),
    "gaps between elements": (X, in_every_other_column(X)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_output_passes(name: str) -> None:
    expected, got = RIGHT[name]
    assert wrong(expected, got) is None


SCALARS = [(3, 4), (True, 1), (1.0, 1), ("a", "b"), (None, 0), (0.1, 0.1000001), (0.0, -0.0)]
WRONG: dict[str, tuple[Any, Any, str, str]] = {  # expected, submission's, kind and path
    "too few": ([X, Y], [X], "arity", ""),
    "too many": ([X, Y], [X, Y, Y], "arity", ""),
    "none": ([X], [], "arity", ""),
    "one instead of two": ([X, Y], X, "arity", ""),
    "a key too few": ({"a": X, "b": Y}, {"a": X}, "arity", ""),
    "too many in a list within": ([X], [[X, Y]], "arity", ""),
    "a list around it": (X, [X], "type", ""),
    "no tuple around it": ((X,), X, "type", ""),
    "another key": ({"b": X}, {"a": X}, "type", ""),
    "one of two keys": ({"a": X, "b": Y}, {"c": Y, "a": X}, "type", ""),
    "another key of two": (PAIR, {"a": X, "c": PAIR["b"]}, "type", ""),
    "a list for a dict": ({"a": X}, [X], "type", ""),
    "a scalar for a tensor": (X, 3, "type", ""),
    "a tensor for a scalar": (3, X, "type", ""),
    "a set": (X, {1, 2}, "type", ""),
    "a key that is no string": ({"1": X}, {1: X}, "type", ""),
    "another order of a list": ([X, X + 1], [X + 1, X], "values", "[0]"),
    "another order of outputs": ((X, Y), [X, X], "shape", "[1]"),
    "one of a nested output": ([X, {"mean": (Y, Y)}], [X, {"mean": (Y, Y + 1)}], "values",
                               "[1]['mean'][1]"),
    "one entry of a dict in another order": (PAIR, {"b": [X, PAIR["b"][1]], "a": X}, "values",
                                             "['b'][0]"),
    **{f"{got!r} for {value!r}": ([X, {"n": value}], [X, {"n": got}], "values", "[1]['n']")
       for got, value in SCALARS},
    "transposed": (X, X.t(), "shape", ""),
    "flattened": (X, X.reshape(24), "shape", ""),
    "one dimension more": (X, X[None], "shape", ""),
    "float64": (X, X.double(), "dtype", ""),
    "int32": (Y, Y.int(), "dtype", ""),
    "another shape and dtype": (X, X.double().t(), "shape", ""),
    "on another device": (X, X.to("meta"), "device", ""),
    "on another device and of another shape": (X, X.t().to("meta"), "device", ""),
    "sparse": (X, X.to_sparse(), "type", ""),
    "the second is sparse": ([X, X], [X, X.to_sparse()], "type", "[1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_output_has_its_kind_and_path(name: str) -> None:
    expected, got, kind, path = WRONG[name]
    found = wrong(expected, got)
    assert found is not None and (found.kind, found.output) == (kind, path)
    assert found.message


def test_a_message_says_what_was_expected() -> None:
    def message(expected: Any, got: Any) -> str:
        found = wrong(expected, got)
        assert found is not None
        return found.message

    assert message([X, Y], X) == "expected a list of (a tensor, a tensor), got a tensor"
    assert message((X,), {"a": 3}) == "expected a tuple of (a tensor), got a dict with 'a'"
    assert message(X, X.to("meta")) == "expected a tensor on cpu, got one on meta"
    assert message(X, X.to_sparse()) == "expected a strided tensor, got layout torch.sparse_coo"
    assert len(message("x", "y" * 100_000)) < 1000 > len(message({"a": X}, {"k" * 100_000: X}))


@pytest.mark.parametrize("unfit", ["none", "shape", "float32", "number", "text"])
def test_an_oracle_is_used_only_where_it_has_the_right_form(unfit: str) -> None:
    exact = X.double() + 1e-3  # the reference's own error, 64 times of which is allowed
    got = X + 0.05
    assert wrong(X, got, oracle=lambda: exact) is None
    assert wrong([X, Y], [got, Y], oracle=lambda: [exact, Y]) is None
    oracle = {
        "none": None, "shape": exact.reshape(24), "float32": exact.float(),
        "number": [exact, exact], "text": "text",
    }[unfit]  # fmt: skip
    found = wrong(X, got, oracle=lambda: oracle)
    assert found is not None and found.kind == "values"


def test_the_problems_tolerance_scales_what_is_allowed() -> None:
    exact = X.double() + 1e-3
    assert wrong(X, X + 0.1, oracle=lambda: exact) is not None
    assert wrong(X, X + 0.1, 2.0, oracle=lambda: exact) is None
    assert wrong(Y, Y + 1, 1e9) is not None


def test_integers_that_come_from_floats_may_be_others_where_rounding_decides() -> None:
    whole = torch.arange(-2000, 2000).to(torch.int16).view(40, 100)

    def right(changed: int, by: int, integers: str, tolerance: float = 1.0) -> bool:
        got = whole.clone()
        got.view(-1)[:changed] += by
        return wrong(whole, got, tolerance, integers=integers) is None

    assert right(4, 1, "rounded") and right(4, -1, "rounded") and not right(5, 1, "rounded")
    assert right(8, 1, "rounded", 2.0) and not right(1, 2, "rounded")
    assert right(4, 500, "chosen") and not right(5, 500, "chosen")
    assert not right(1, 1, "exact")


def test_exact_outputs_need_no_oracle() -> None:
    for got, right in ((Y, True), (Y + 1, False)):
        found = wrong(Y, got, oracle=lambda: pytest.fail("an oracle was computed"))
        assert (found is None) is right


class Oracle:
    """Counts how often it is computed."""

    def __init__(self, exact: Any) -> None:
        self.exact = exact
        self.count = 0

    def __call__(self) -> Any:
        self.count += 1
        return self.exact


def test_an_oracle_is_computed_once_for_all_tensors() -> None:
    oracle = Oracle([X.double()] * 3)
    assert wrong([X] * 3, [X] * 3, oracle=oracle) is None
    assert oracle.count == 1


def test_an_output_close_to_the_reference_needs_no_oracle_once_an_allowance_is_known() -> None:
    allowed: Allowed = {}

    def found(got: torch.Tensor, name: str = "own", exact: Any = None) -> tuple[bool, int]:
        """Whether it is right, and how often the oracle was computed."""
        oracle = Oracle(X.double() if exact is None else exact)
        right = wrong(X, got, oracle=oracle, input_set=name, allowed=allowed) is None
        return right, oracle.count

    assert found(X) == (True, 1) and list(allowed) == [("own", 0)]
    worst = allowed["own", 0].worst
    assert found(X + 0.4 * worst) == (True, 0)
    assert found(X, "wide") == (True, 1), "each distribution has its own"
    assert found(X + 0.8 * worst) == (True, 1)
    assert found(X + 0.8 * worst, exact=X.double() + 1e-3) == (True, 1)
    assert allowed["own", 0].worst == worst, "the first one's stays"
    assert found(X * float("nan")) == (False, 1)
    assert found(X + 3 * worst) == (False, 1)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16])
def test_a_number_that_is_rounded_to_the_next_one_is_close(dtype: torch.dtype) -> None:
    exact = 10 * torch.randn(64, 64, generator=torch.Generator().manual_seed(5)).double()
    reference, allowed = exact.to(dtype), Allowed()
    beside = (exact * (1 + torch.finfo(dtype).eps / 16)).to(dtype)
    assert 0 < (beside.float() != reference.float()).sum() < 0.5 * exact.numel()

    def found(got: torch.Tensor) -> tuple[bool, int]:
        """Whether it is right, and how often the oracle was computed."""
        oracle = Oracle(exact)
        return wrong(reference, got, oracle=oracle, allowed=allowed) is None, oracle.count

    assert found(reference) == (True, 1)
    assert found(beside) == (True, 0)
    one, largest = beside.float(), int(exact.abs().argmax())
    one.view(-1)[largest] *= -1
    assert found(one.to(dtype)) == (False, 1)


def test_a_small_error_everywhere_is_not_close() -> None:
    """Also where each element is within half of what one may be off by: all of them are held to a
    tighter budget.
    """
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(5))
    exact = x.double() + 1e-6 * torch.randn(
        64, 64, generator=torch.Generator().manual_seed(6), dtype=torch.float64
    )
    allowed: Allowed = {}

    def passes(got: torch.Tensor) -> bool:
        return wrong(x, got, oracle=lambda: exact, allowed=allowed) is None

    assert passes(x)
    worst = allowed["", 0].worst
    assert allowed["", 0].rms < 0.45 * worst
    assert not passes(x + 0.45 * worst)
    x_but_one = x.clone()
    x_but_one[3, 4] += 0.45 * worst
    assert passes(x_but_one)


def second_call(before: torch.Tensor, now: torch.Tensor, right: torch.Tensor) -> Mismatch | None:
    """What is unwritten in a wrong output of a call before which memory was filled."""
    found = wrong(right, now)
    assert found is not None
    return find_unwritten(before, now, found.differences)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_uninitialized_memory_is_distinguished_from_wrong_values(
    monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    monkeypatch.setitem(PIECE, "cpu", 8)
    right = X.to(dtype)
    filled = torch.full((4, 6 * right.itemsize), FILLING, dtype=torch.uint8).view(dtype)
    found = second_call(torch.zeros_like(right), filled, right)
    assert found is not None
    assert (found.kind, found.wrong, found.total) == ("not_written", 24, 24)
    assert found.message.startswith("the output holds uninitialized memory")
    found = second_call(torch.zeros_like(right), torch.cat((right[:3], filled[3:])), right)
    assert found is not None and found.wrong == 6
    assert found.message.startswith("6 of 24 elements (25 %) hold uninitialized memory")
    assert found.differences[0].got == "uninitialized" and found.differences[0].index[0] == 3
    assert second_call(right, right + 1, right) is None
    assert second_call(right, torch.full_like(right, float("nan")), right) is None
    assert find_unwritten(right[:2], filled, ()) is None, "of another shape"
    assert second_call(filled, filled, right) is None, "the call writes these bytes every time"


def test_a_number_is_an_answer_unless_it_came_with_the_filling() -> None:
    bytes_of = torch.full((Y.nbytes,), FILLING, dtype=torch.uint8)
    filled = bytes_of.view(Y.dtype).view_as(Y)
    assert second_call(filled, filled, Y) is None
    found = second_call(Y + 7, filled, Y)
    assert found is not None and found.kind == "not_written"


# of a call


SOURCE = """
import torch
TOLERANCE = 2.0
class Model(torch.nn.Module):
    pass
def get_inputs():
    return []
def get_init_inputs():
    return []
"""
CASE = Case(Problem(id="p", source=SOURCE, name="p"), "main", torch.device("cpu"))


def output(tensor: torch.Tensor) -> Output:
    claim = TensorClaim.model_validate({**spec_of(tensor, 0), "device": "cpu", "in": "outbox"})
    flat = tensor.as_strided([extent(claim.shape, claim.stride)], [1]).clone().view(torch.uint8)
    return Output(claim, flat)


def call(value: Any, **change: Any) -> Answer:
    """The call of an honest candidate; `change` replaces fields."""
    skeleton, tensors = tree.flatten(value)
    outputs = [output(tensor) for tensor in tensors]
    return replace(Answer(CallClaim(skeleton=skeleton), outputs, outputs, 1.0), **change)


def checked(answer: Answer, expected: Expected) -> tuple[str, str] | None:
    found = check_answer(answer, expected, CASE, "main/own", {})
    return None if found is None else (found.kind, found.output)


def test_a_call_is_compared_with_the_oracle_within_the_cases_tolerance() -> None:
    expected = Expected([Y, X], lambda: [Y, X.double() + 1e-3])
    assert checked(call([Y, X + 0.1]), expected) is None
    assert checked(call([Y, X + 0.2]), expected) == ("values", "[1]")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"unchanged": False}, "inputs_changed"),
        ({"early": True}, "early_done"),
        ({"claim": CallClaim(unsupported="a value of type set")}, "type"),
    ],
)
def test_a_call_may_be_wrong_whatever_its_output_is(change: Any, kind: str) -> None:
    assert checked(call(X, **change), Expected(X, lambda: None)) == (kind, "")


def test_expected_values_are_shown_in_the_outputs_dtype() -> None:
    tiny = torch.tensor([1.5e-300, 1 + 2**-20], dtype=torch.float64)
    found = wrong(tiny.float(), tiny.float() + 1, oracle=lambda: tiny)
    assert found is not None
    assert [each.expected for each in found.differences] == ["0", "1.000001"]


def test_unwritten_memory_of_a_call_is_reported_for_its_output() -> None:
    filled = torch.full((4, 24), FILLING, dtype=torch.uint8).view(torch.float32)
    calls = call([Y, torch.zeros_like(X)]), call([Y, filled])
    found = check_answer(calls[1], Expected([Y, X], lambda: None), CASE, "main/own", {})
    assert found is not None
    found = unwritten(*calls, found.model_copy(update={"passed": ("odd/own",)}))
    assert found is not None
    assert (found.kind, found.input_set, found.output) == ("not_written", "main/own", "[1]")
    assert found.passed == ("odd/own",) and found.differences[0] == Difference(
        index=(0, 0), expected=f"{float(X[0, 0]):.7g}", got="uninitialized"
    )


def test_a_refused_launch_is_told_beside_a_wrong_output_and_not_beside_a_right_one() -> None:
    filled = torch.full((4, 6), FILLING, dtype=torch.uint8).repeat_interleave(4, 1)
    refused = "invalid configuration argument"
    wrong, stale, right = (
        replace(each, claim=each.claim.model_copy(update={"cuda_error": refused}))
        for each in (call(X + 1), call(filled.view(torch.float32)), call(X))
    )
    expected = Expected(X, lambda: None)
    assert checked(right, expected) is None
    for before, answer in ((call(X), wrong), (call(X), stale)):
        found = check_answer(answer, expected, CASE, "main/own", {})
        assert found is not None
        found = unwritten(before, answer, found) or found
        assert found.kind == ("not_written" if answer is stale else "values")
        assert found.message.endswith(f"; CUDA refused a kernel launch in this call: {refused}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex128])
def test_of_elements_that_lie_apart_only_they_are_taken(dtype: torch.dtype) -> None:
    values = torch.arange(5).to(dtype)
    taken = output(torch.stack([values, torch.full_like(values, 7)], dim=1)[:, 0]).taken()
    assert taken.flat is not None and taken.size == taken.flat.numel() == 5 * values.element_size()
    again = taken.tensor()
    assert again is not None and torch.equal(again, values)


@pytest.mark.parametrize(("given", "changed"), [(X, False), (X + 1, True)])
def test_an_output_that_changes_after_it_was_taken_is_noticed(
    given: torch.Tensor, changed: bool
) -> None:
    assert call(X, placed=[output(given)]).changed_since() is changed


def test_an_infinity_that_is_missing_is_told_without_a_largest_error() -> None:
    expected = torch.tensor([1.0, -math.inf, 2.0, math.nan])
    for got in (torch.tensor([1.0, 3.0, 2.0, math.nan]), torch.tensor([1.0, math.nan, 9.0, 0.0])):
        found = wrong(expected, got)
        assert found is not None and found.kind == "values" and found.worst_error is None
        assert "differ from an expected infinity or NaN" in found.message


def test_a_missing_return_is_told_as_none() -> None:
    found = wrong((X, Y), None)
    assert found is not None
    assert found.message == "expected a tuple of (a tensor, a tensor), got None"


def test_indices_of_complex_numbers_are_explained() -> None:
    expected = torch.randn(4, 4, dtype=torch.complex64)
    found = wrong(expected, expected.conj().resolve_conj())
    assert found is not None and "1 for the imaginary part" in found.message
