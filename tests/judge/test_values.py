"""The comparison of outputs: what is allowed, and how it is described."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kevin_env.judge.compare.chunked import PIECE, all_finite
from kevin_env.judge.compare.tolerance import budget, tolerance_of
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


def test_one_wrong_element_among_a_million_fails_and_is_shown() -> None:
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
    ("got", "passes"),
    [
        ([1, INF, -INF, NAN], True), ([1, -INF, -INF, NAN], False), ([1, 3e38, -INF, NAN], False),
        ([1, INF, -INF, 0.0], False), ([1, NAN, -INF, NAN], False), ([1, INF, -INF, INF], False),
    ],
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


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    reference = torch.arange(100).to(dtype)
    assert kind(reference.clone(), reference) is None
    got = reference.clone()
    got[99] += 1
    assert kind(got, reference) == "values"


def test_large_integers_are_not_compared_as_floats() -> None:
    assert kind(torch.tensor([2**60 + 1]), torch.tensor([2**60])) == "values"


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


def apart(x: torch.Tensor) -> torch.Tensor:
    """The same numbers in every other column."""
    return torch.stack((x, torch.zeros_like(x)), -1)[..., 0]


def one_lost(x: torch.Tensor) -> torch.Tensor:
    x.view(torch.uint8)[40, -2:] = 0x7F  # NaN in every floating-point type
    return x


CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "off": lambda x: (x.double() * 1.5).to(x.dtype),
    "off on the whole": lambda x: (x.double() + 5e-5).to(x.dtype),
    "lost": one_lost,
    "turned": lambda x: x.T.contiguous().T,
    "apart": apart,
}


FLOATS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_tolerance_is_what_its_formula_says(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worked out in one step from the whole, also where some elements are not finite."""
    monkeypatch.setitem(PIECE, "cpu", 100)
    exact = 2 * drawn(64, 33).double() + 30
    reference = (exact + 1e-3 * drawn(64, 33, seed=1)).to(dtype)
    for holes in (False, True):
        if holes:
            reference.view(torch.uint8)[20, -2:] = 0x7F
            exact[7, 7] = INF
        a, b = reference.double().numpy(), exact.numpy()
        off = np.where(np.isfinite(a) & np.isfinite(b), a - b, 0)
        scale, eps, low = b[np.isfinite(b)].std(ddof=1), torch.finfo(dtype).eps, dtype.itemsize < 4
        worst = max((4 if low else 64) * np.abs(off).max(), (2 if low else 128) * eps * scale)
        found = tolerance_of(reference, exact, 1.0, "ieee")
        assert found.worst == pytest.approx(worst, rel=1e-12)
        assert found.finite is not holes
        if holes:
            assert found.rms == INF, (
                "an oracle that is not finite where the reference is says nothing of all together"
            )
            continue
        rounding = eps / 4 * np.sqrt(np.square(b).mean()) if low else 0.0
        own = max(np.sqrt(np.square(off).mean()), rounding)
        assert found.rms == pytest.approx(
            max((4 if low else 48) * own, (1 if low else 32) * eps * scale), rel=1e-12
        )


class Held(TorchDispatchMode):
    """Notes how many tensors made meanwhile are held at once, at most, and how many bytes they
    have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.most = self.tensors = 0
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {
            t.untyped_storage()._cdata
            for t in tree_leaves((args, kwargs))
            if isinstance(t, torch.Tensor)
        }
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in given:
                storage = tensor.untyped_storage()
                self._made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._made = {key: made for key, made in self._made.items() if not made[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._made.values()))
        self.tensors = max(self.tensors, len(self._made))
        return result


def held(got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None) -> Held:
    with Held() as held:
        compare(got, reference, oracle, 1.0, "ieee")
        all_finite([got])
        if got.is_floating_point():
            near(got, reference, 1.0, 1.0)
    return held


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("with_oracle", [True, False])
def test_what_a_comparison_holds_does_not_grow_with_the_output(
    name: str, with_oracle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PIECE, "cpu", 1 << 12)
    exact = drawn(256, 512).double()
    for dtype in (torch.float32, torch.bfloat16):
        reference = (exact + 1e-6 * drawn(256, 512, seed=1)).to(dtype)
        got = CHANGES[name](reference.clone())
        found = held(got, reference, exact if with_oracle else None)
        assert 0 < found.tensors < 20, (
            "small ones between large ones make the heap grow by as much as the large ones"
        )
        assert 0 < found.most < 6.5 * 8 * (1 << 12), (
            "six float64 copies of a piece, where the output alone has 32 pieces"
        )


@pytest.mark.gpu
@pytest.mark.parametrize("change", ["right", "off", "lost"])
def test_on_a_gpu_a_comparison_holds_less_than_a_gigabyte(change: str) -> None:
    exact = torch.randn(256, 1 << 19, dtype=torch.float64, device="cuda")
    reference = exact.float()
    got = reference.clone() if change == "right" else 1.5 * reference
    if change == "lost":
        got[200, 5] = NAN
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    found = compare(got, reference, exact, 1.0, "ieee")
    assert (found and found.kind) == {"right": None, "off": "values", "lost": "not_finite"}[change]
    assert torch.cuda.max_memory_allocated() - before < 1 << 30
