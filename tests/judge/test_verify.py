from collections.abc import Callable

import numpy as np
import pytest
import torch

from kevin_env.judge.compare.tolerance import budget
from kevin_env.judge.compare.values import compare, near

INF, NAN = float("inf"), float("nan")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


A, B = drawn(64, 1024, seed=1), drawn(1024, 64, seed=2)
EXACT = A.double() @ B.double()


def matmul_kind(got: torch.Tensor, precision: str = "ieee") -> str | None:
    return kind(got, A @ B, EXACT, precision=precision)


def kind(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None = None,
    precision: str = "ieee",
) -> str | None:
    found = compare(got, reference, oracle, 1.0, precision)
    return None if found is None else found.kind


def as_tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounds to the ten mantissa bits of TF32."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("chunk", [1, 7, 32, 512])
def test_another_order_of_summation_passes(chunk: int) -> None:
    total, order = (
        torch.zeros(64, 64),
        torch.randperm(1024, generator=torch.Generator().manual_seed(chunk)),
    )
    for part in order.split(chunk):
        total += A[:, part] @ B[part]
    assert not torch.equal(total, A @ B)
    assert matmul_kind(total) is None


@pytest.mark.parametrize(
    "rounded",
    [as_tf32, lambda x: x.bfloat16().float(), lambda x: x.half().float()],
    ids=["tf32", "bf16", "fp16"],
)
def test_a_matmul_of_rounded_operands_fails(
    rounded: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    assert matmul_kind(rounded(A) @ rounded(B)) == "values"


def test_tf32_passes_where_the_problem_allows_it_and_bf16_does_not() -> None:
    assert matmul_kind(as_tf32(A) @ as_tf32(B), precision="tf32") is None
    assert matmul_kind(A.bfloat16().float() @ B.bfloat16().float(), precision="tf32") == "values"


def test_one_wrong_element_among_a_million_fails_and_is_told() -> None:
    reference = drawn(1000, 1000)
    got = reference.clone()
    got[123, 456] += 0.01
    found = compare(got, reference, reference.double(), 1.0, "ieee")
    assert found is not None and (found.kind, found.wrong, found.total) == ("values", 1, 1_000_000)
    assert found.worst_error == pytest.approx(0.01, rel=1e-3)
    assert found.tolerance is not None and found.tolerance < 1e-4
    assert [d.index for d in found.differences] == [(123, 456)]
    assert float(found.differences[0].got) - float(found.differences[0].expected) == pytest.approx(
        0.01, rel=1e-3
    )


def test_at_most_five_differences_are_shown() -> None:
    found = compare(torch.ones(100), torch.zeros(100), None, 1.0, "ieee")
    assert found is not None and len(found.differences) == 5 and found.wrong == 100


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_what_is_not_finite_fails_where_finite_is_expected(
    value: float, dtype: torch.dtype
) -> None:
    reference = drawn(32, 32).to(dtype)
    got = reference.clone()
    got[3, 4] = value
    assert kind(got, reference, reference.double()) == "not_finite"
    assert kind(torch.full_like(got, value), reference) == "not_finite"


@pytest.mark.parametrize(
    ("got", "passes"), [([1, INF, -INF, NAN], True), ([1, -INF, -INF, NAN], False), ([1, 3e38, -INF, NAN], False),
                        ([1, INF, -INF, 0.0], False), ([1, NAN, -INF, NAN], False), ([1, INF, -INF, INF], False)],
)  # fmt: skip
def test_infinities_and_nan_must_be_met_by_the_same(got: list[float], passes: bool) -> None:
    reference = torch.tensor([1, INF, -INF, NAN])
    assert (kind(torch.tensor(got), reference, reference.double()) is None) is passes
    assert (kind(torch.tensor(got), reference) is None) is passes


def test_an_overflow_of_the_reference_is_not_met_by_the_number_that_overflowed() -> None:
    exact = 1e4 * drawn(30, 30).double().clamp(-6, 6)
    exact[4, 4] = 65520.0  # the least that is infinite in fp16
    reference, got = exact.half(), exact.half()
    got[4, 4] = 65504.0
    allowed = budget(reference, exact, 1.0, "ieee")
    assert reference[4, 4] == INF and float((got - exact).abs().max()) < allowed
    assert kind(got, reference, exact) == "values"
    assert kind(reference.clone(), reference, exact) is None


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    reference = torch.arange(100).to(dtype)
    assert kind(reference.clone(), reference) is None
    got = reference.clone()
    got[99] += 1
    assert kind(got, reference) == "values"


def test_large_integers_are_not_compared_as_floats() -> None:
    assert kind(torch.tensor([2**60 + 1]), torch.tensor([2**60])) == "values"


def test_bools_are_exact() -> None:
    reference = drawn(100) > 0
    assert kind(reference.clone(), reference) is None
    assert kind(~reference, reference) == "values"


def test_complex_numbers_are_compared_by_part() -> None:
    reference = torch.complex(drawn(64, 64, seed=3), drawn(64, 64, seed=4))
    oracle = reference.to(torch.complex128)
    assert kind(reference * (1 + 1e-7), reference, oracle) is None
    assert kind(reference.conj(), reference, oracle) == "values"
    assert kind(reference + 1e-3j, reference, oracle) == "values"
    assert kind(reference.conj().resolve_conj().conj(), reference, oracle) is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_passes_when_it_is_rounded_once(dtype: torch.dtype) -> None:
    a, b = A.to(dtype), B.to(dtype)
    exact = a.double() @ b.double()
    reference = (a.float() @ b.float()).to(dtype)
    honest = sum(a[:, i::2].float() @ b[i::2].float() for i in range(2))
    assert isinstance(honest, torch.Tensor)
    assert kind(honest.to(dtype), reference, exact) is None
    ulp = torch.finfo(dtype).eps * float(exact.abs().max())
    assert (
        kind((honest.to(torch.float8_e5m2).float() + 4 * ulp).to(dtype), reference, exact)
        == "values"
    )
    assert kind((honest + 8 * ulp).to(dtype), reference, exact) == "values"


def test_float8_outputs_are_compared_in_their_own_grid() -> None:
    reference = drawn(64, 64).to(torch.float8_e4m3fn)
    assert kind(reference.clone(), reference) is None
    assert kind((reference.float() + 2).to(torch.float8_e4m3fn), reference) == "values"


def test_a_scalar_is_held_to_its_magnitude() -> None:
    exact = drawn(1 << 16).double().sum() + 300
    reference = exact.float()
    assert kind(reference * (1 + 2e-7), reference, exact) is None
    assert kind(reference * 1.001, reference, exact) == "values"
    assert kind(torch.tensor(0.0), reference, exact) == "values"


def test_a_common_offset_does_not_hide_an_error() -> None:
    signal = 10 * drawn(256, 256)
    exact = signal.double() + 1e6
    reference = exact.float()
    assert kind((signal + 1e6).float(), reference, exact) is None
    assert kind(torch.full_like(reference, 1e6), reference, exact) == "values"
    assert kind((1.3 * signal + 1e6).float(), reference, exact) == "values"
    assert kind((signal + 1e6 + 20).float(), reference, exact) == "values"


def test_a_constant_output_is_held_to_its_magnitude() -> None:
    reference = torch.full((64, 64), 3.0)
    assert kind(reference + 1e-6, reference, reference.double()) is None
    assert kind(reference + 1e-3, reference, reference.double()) == "values"


def test_zeros_are_exact_and_empty_outputs_pass() -> None:
    assert kind(torch.zeros(64), torch.zeros(64), torch.zeros(64).double()) is None
    assert kind(torch.full((64,), 1e-30), torch.zeros(64), torch.zeros(64).double()) == "values"
    assert kind(torch.empty(0, 4), torch.empty(0, 4), torch.empty(0, 4).double()) is None


def test_shape_and_dtype_come_before_values() -> None:
    assert kind(torch.zeros(4, 1), torch.zeros(4)) == "shape"
    assert kind(torch.zeros(4, dtype=torch.float64), torch.zeros(4)) == "dtype"
    assert kind(torch.zeros(4), torch.zeros(4, dtype=torch.int32)) == "dtype"


def test_the_budget_follows_the_references_own_error_and_the_problems_tolerance() -> None:
    reference = drawn(64, 64)
    near, far = reference.double() + 1e-6, reference.double() + 1e-4
    assert budget(reference, near, 1.0, "ieee") == pytest.approx(64e-6, rel=0.1)
    assert budget(reference, far, 1.0, "ieee") == pytest.approx(64e-4, rel=0.01)
    assert budget(reference, far, 3.0, "ieee") == pytest.approx(192e-4, rel=0.01)
    assert 0 < budget(reference, None, 1.0, "ieee") < 1e-4
    assert budget(torch.full((4,), NAN), None, 1.0, "ieee") == 0.0
    assert budget(torch.full((64,), 1e-3), torch.zeros(64).double(), 1.0, "ieee") == 0.0


def test_many_elements_have_a_budget_together() -> None:
    exact = torch.randn(64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    reference = (
        exact + 1e-6 * torch.randn(64, 64, generator=torch.Generator().manual_seed(3))
    ).float()
    everywhere = (exact + 6e-5).float()
    once = exact.float()
    once[3, 5] += 6e-5
    assert kind(once, reference, exact) is None, "64 times the largest of its own errors"
    assert kind(everywhere, reference, exact) == "values", "60 times what it is off by on the whole"
    assert kind((exact + 4e-5).float(), reference, exact) is None
    got, wanted, doubles = (t.flatten()[:1000] for t in (everywhere, reference, exact))
    assert kind(got, wanted, doubles) is None, "few elements are held to the largest error alone"
    found = compare(everywhere, reference, exact, 1.0, "ieee")
    assert found is not None and found.wrong is None and len(found.differences) == 5
    assert "root mean square" in found.message


def running_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.cumsum(x.numpy(), axis=1, dtype=np.float32)[:, -1:])


@pytest.mark.parametrize("columns", [1000, 8192])
def test_a_running_float32_sum_is_right_and_a_forgotten_epsilon_is_not(columns: int) -> None:
    x = torch.randn(512, columns, generator=torch.Generator().manual_seed(4))
    shape = (columns,)
    reference, exact = torch.layer_norm(x, shape), torch.layer_norm(x.double(), shape)
    mean = running_sum(x) / columns
    variance = running_sum((x - mean).square()) / columns
    assert kind((x - mean) / (variance + 1e-5).sqrt(), reference, exact) is None
    assert kind((x - mean) / variance.sqrt(), reference, exact) == "values"


@pytest.mark.parametrize("byte", [2, 255])
def test_a_bool_of_another_byte_than_one_is_not_true(byte: int) -> None:
    unwritten = torch.full((100,), byte, dtype=torch.uint8).view(torch.bool)
    assert kind(unwritten, torch.ones(100, dtype=torch.bool)) == "values"
    assert kind(torch.ones(100, dtype=torch.bool), torch.ones(100, dtype=torch.bool)) is None


def test_what_bfloat16_elements_are_off_by_together_is_held_against_rounding() -> None:
    a, b = drawn(48, 256, seed=3).bfloat16(), drawn(256, 40, seed=4).bfloat16()
    exact = a.double() @ b.double()
    reference = exact.bfloat16()
    parts = [
        (a[:, k : k + 64].float() @ b[k : k + 64].float()).bfloat16() for k in range(0, 256, 64)
    ]
    scales = [
        a.float().abs().amax(1, keepdim=True) / 127,
        b.float().abs().amax(0, keepdim=True) / 127,
    ]
    eight_bits = ((a.float() / scales[0]).round() * scales[0]) @ (
        (b.float() / scales[1]).round() * scales[1]
    )
    assert kind(parts[0] + parts[1] + parts[2] + parts[3], reference, exact) is None
    assert kind(eight_bits.bfloat16(), reference, exact) == "values"
    far = (drawn(4096) + 100).bfloat16()  # whose own rounding is larger than its spread's ulp
    assert kind(torch.nextafter(far.float(), far.float()).bfloat16(), far) is None


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.float64])
def test_every_floating_point_type_can_be_near(dtype: torch.dtype) -> None:
    values = drawn(2000).to(dtype)
    assert near(values.clone(), values, 0.0, 0.0)
    assert not near(torch.ones(2000).to(dtype), values, 0.5, 0.5)
    assert near(values[:0], values[:0], 0.0, 0.0)


def test_what_is_not_finite_is_never_near() -> None:
    values = drawn(2000)
    for lost in (NAN, INF):
        got = values.clone()
        got[1234] = lost
        assert not near(got, values, INF, INF) and near(values, values, INF, INF)
