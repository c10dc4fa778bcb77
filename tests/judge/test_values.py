"""The comparison of tensors: what is allowed, and how it is described."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from comparison import wrong
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kevin_env.judge.compare.tolerance import Tolerance, near, tolerance_of, with_plain_sums
from kevin_env.judge.compare.values import PIECE, Mismatch, all_finite

INF, NAN = float("inf"), float("nan")
NONE, ANY = Tolerance(0.0, 0.0, True), Tolerance(INF, INF, True)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


A, B = drawn(64, 1024, seed=1), drawn(1024, 64, seed=2)
EXACT = A.double() @ B.double()
SQUARE, VECTOR = drawn(64, 64), torch.arange(100)
LOW = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
FLOATS = [torch.float64, torch.float32, *LOW]


def found(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None = None,
    precision: str = "ieee",
) -> Mismatch | None:
    return wrong(reference, got, 1.0, precision, oracle=lambda: oracle)


def kind(
    got: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None = None,
    precision: str = "ieee",
) -> str | None:
    mismatch = found(got, reference, oracle, precision)
    return None if mismatch is None else mismatch.kind


def budget(*given: Any) -> float:
    return tolerance_of(*given)[0].worst


def as_tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounds to the ten mantissa bits of TF32."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def product(rounded: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return rounded(A) @ rounded(B)


def but(x: torch.Tensor, *place: int, value: Any = None, plus: float = 0) -> torch.Tensor:
    """A copy with another element in one place."""
    x = x.clone()
    x[place] = x[place] + plus if value is None else value
    return x


def bytes_as_bool(byte: int) -> torch.Tensor:
    return torch.full((100,), byte, dtype=torch.uint8).view(torch.bool)


def far_element(ulps: float) -> torch.Tensor:
    """Elements of spread 1, and one of 1,000 that is off by some of its ulps."""
    return but(drawn(1000), 5, value=1000.0 * (1 + ulps * torch.finfo(torch.float32).eps))


SIGNAL = 10 * drawn(256, 256)
OFFSET = SIGNAL.double() + 1e6
SUM = drawn(1 << 16).double().sum() + 300
COMPLEX = torch.complex(drawn(64, 64, seed=3), drawn(64, 64, seed=4))
THREES, ZEROS = torch.full((64, 64), 3.0), torch.zeros(64)
FP8 = drawn(64, 64).to(torch.float8_e4m3fn)
TRUE = torch.ones(100, dtype=torch.bool)
FAR = (drawn(4096) + 100).bfloat16()  # whose own rounding is larger than its spread's ulp
Row = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, str | None]
ROWS: dict[str, Callable[[], Row]] = {  # submission's output, reference, oracle and kind
    # sums of products
    "operands in tf32": lambda: (product(as_tf32), A @ B, EXACT, "values"),
    "operands in bf16": lambda: (product(lambda x: x.bfloat16().float()), A @ B, EXACT, "values"),
    "operands in fp16": lambda: (product(lambda x: x.half().float()), A @ B, EXACT, "values"),
    # exact types
    "int8 off by one": lambda: (but(VECTOR.to(torch.int8), 99, plus=1), VECTOR.to(torch.int8),
                                None, "values"),
    "int64 off by one": lambda: (but(VECTOR, 99, plus=1), VECTOR, None, "values"),
    "the same int64": lambda: (VECTOR.clone(), VECTOR, None, None),
    "int64 that is the same float": lambda: (torch.tensor([2**60 + 1]), torch.tensor([2**60]),
                                             None, "values"),
    "the same bools": lambda: (TRUE.clone(), TRUE, None, None),
    "bools of byte 2": lambda: (bytes_as_bool(2), TRUE, None, "values"),
    "bools of byte 255": lambda: (bytes_as_bool(255), TRUE, None, "values"),
    # complex numbers, by part
    "complex, rounded": lambda: (COMPLEX * (1 + 1e-7), COMPLEX, COMPLEX.to(torch.complex128), None),
    "complex, conjugate": lambda: (COMPLEX.conj(), COMPLEX, COMPLEX.to(torch.complex128), "values"),
    "complex, imaginary part": lambda: (COMPLEX + 1e-3j, COMPLEX, COMPLEX.to(torch.complex128),
                                        "values"),
    "complex, a lazy conjugate": lambda: (COMPLEX.conj().resolve_conj().conj(), COMPLEX,
                                          COMPLEX.to(torch.complex128), None),
    # fp8
    "the same fp8": lambda: (FP8.clone(), FP8, None, None),
    "fp8 off by 2": lambda: ((FP8.float() + 2).to(FP8.dtype), FP8, None, "values"),
    # one number
    "a sum, rounded": lambda: (SUM.float() * (1 + 2e-7), SUM.float(), SUM, None),
    "a sum off by a thousandth": lambda: (SUM.float() * 1.001, SUM.float(), SUM, "values"),
    "zero for a sum": lambda: (torch.tensor(0.0), SUM.float(), SUM, "values"),
    # a large common offset hides no error
    "with an offset, right": lambda: ((SIGNAL + 1e6).float(), OFFSET.float(), OFFSET, None),
    "the offset alone": lambda: (torch.full_like(OFFSET.float(), 1e6), OFFSET.float(), OFFSET,
                                 "values"),
    "with an offset, scaled": lambda: ((1.3 * SIGNAL + 1e6).float(), OFFSET.float(), OFFSET,
                                       "values"),
    "with another offset": lambda: ((SIGNAL + 1e6 + 20).float(), OFFSET.float(), OFFSET, "values"),
    # one element far from the others is held to its own rounding
    "far element, rounded": lambda: (far_element(1), far_element(0), far_element(0).double(), None),
    "far element, 60 ulps": lambda: (far_element(60), far_element(0), far_element(0).double(),
                                     "values"),
    "far from zero in bf16": lambda: (torch.nextafter(FAR.float(), FAR.float()).bfloat16(), FAR,
                                      None, None),
    # outputs without spread
    "a constant, rounded": lambda: (THREES + 1e-6, THREES, THREES.double(), None),
    "a constant off by a thousandth": lambda: (THREES + 1e-3, THREES, THREES.double(), "values"),
    "zeros": lambda: (ZEROS.clone(), ZEROS, ZEROS.double(), None),
    "almost zeros": lambda: (ZEROS + 1e-30, ZEROS, ZEROS.double(), "values"),
    "no elements": lambda: (torch.empty(0, 4), torch.empty(0, 4), torch.empty(0, 4).double(), None),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_tensor_is_right_or_wrong(name: str) -> None:
    got, reference, oracle, expected = ROWS[name]()
    assert kind(got, reference, oracle) == expected


@pytest.mark.parametrize("chunk", [1, 7, 32, 512])
def test_another_order_of_summation_passes(chunk: int) -> None:
    total, order = (
        torch.zeros(64, 64),
        torch.randperm(1024, generator=torch.Generator().manual_seed(chunk)),
    )
    for part in order.split(chunk):
        total += A[:, part] @ B[part]
    assert not torch.equal(total, A @ B)
    assert kind(total, A @ B, EXACT) is None


def test_tf32_passes_where_the_problem_allows_it_and_bf16_does_not() -> None:
    assert kind(product(as_tf32), A @ B, EXACT, "tf32") is None
    assert kind(product(lambda x: x.bfloat16().float()), A @ B, EXACT, "tf32") == "values"


def test_one_wrong_element_among_a_million_fails_and_is_shown() -> None:
    reference = drawn(1000, 1000)
    mismatch = found(but(reference, 123, 456, plus=0.01), reference, reference.double())
    assert mismatch is not None
    assert (mismatch.kind, mismatch.wrong, mismatch.total) == ("values", 1, 1_000_000)
    assert mismatch.worst_error == pytest.approx(0.01, rel=1e-3)
    assert mismatch.tolerance is not None and mismatch.tolerance < 1e-4
    (shown,) = mismatch.differences
    assert shown.index == (123, 456)
    assert float(shown.got) - float(shown.expected) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_what_is_not_finite_fails_where_finite_is_expected(
    value: float, dtype: torch.dtype
) -> None:
    reference = drawn(32, 32).to(dtype)
    assert kind(but(reference, 3, 4, value=value), reference, reference.double()) == "not_finite"
    assert kind(torch.full_like(reference, value), reference) == "not_finite"


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
    reference = exact.half()
    got = but(reference, 4, 4, value=65504.0)
    allowed = budget(reference, exact, 1.0, "ieee")
    assert reference[4, 4] == INF and float((got - exact).abs().max()) < allowed
    assert kind(got, reference, exact) == "values"
    assert kind(reference.clone(), reference, exact) is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_passes_when_it_is_rounded_once(dtype: torch.dtype) -> None:
    a, b = A.to(dtype), B.to(dtype)
    exact = a.double() @ b.double()
    reference = (a.float() @ b.float()).to(dtype)
    honest = sum(a[:, i::2].float() @ b[i::2].float() for i in range(2))
    assert isinstance(honest, torch.Tensor)
    assert kind(honest.to(dtype), reference, exact) is None
    ulp = torch.finfo(dtype).eps * float(exact.abs().max())
    in_fp8 = (honest.to(torch.float8_e5m2).float() + 4 * ulp).to(dtype)
    assert kind(in_fp8, reference, exact) == "values"
    assert kind((honest + 8 * ulp).to(dtype), reference, exact) == "values"


@pytest.mark.parametrize(("ulps", "expected"), [(1, None), (8, "values")])
@pytest.mark.parametrize("dtype", LOW)
def test_one_element_of_an_exact_reference_may_be_off_by_an_ulp_of_the_scale(
    dtype: torch.dtype, ulps: int, expected: str | None
) -> None:
    """The reference has no error of its own; the number of elements is too small for a budget of
    all together.
    """
    reference = but(drawn(1000), 5, value=0.0).to(dtype)
    scale = float(reference.double().std())
    got = but(reference.double(), 5, value=ulps * torch.finfo(dtype).eps * scale).to(dtype)
    assert kind(got, reference, reference.double()) == expected


def test_the_budget_follows_the_references_own_error_and_the_problems_tolerance() -> None:
    near, far = SQUARE.double() + 1e-6, SQUARE.double() + 1e-4
    assert budget(SQUARE, near, 1.0, "ieee") == pytest.approx(64e-6, rel=0.1)
    assert budget(SQUARE, far, 1.0, "ieee") == pytest.approx(64e-4, rel=0.01)
    assert budget(SQUARE, far, 3.0, "ieee") == pytest.approx(192e-4, rel=0.01)
    assert 0 < budget(SQUARE, None, 1.0, "ieee") < 1e-4
    assert budget(torch.full((4,), NAN), None, 1.0, "ieee") == 0.0
    assert budget(torch.full((64,), 1e-3), torch.zeros(64).double(), 1.0, "ieee") == 0.0


def test_many_elements_have_a_budget_together() -> None:
    exact = torch.randn(64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    reference = (
        exact + 1e-6 * torch.randn(64, 64, generator=torch.Generator().manual_seed(3))
    ).float()
    everywhere = (exact + 6e-5).float()
    once = but(exact.float(), 3, 5, plus=6e-5)
    assert kind(once, reference, exact) is None, "64 times the largest of its own errors"
    assert kind(everywhere, reference, exact) == "values", "60 times what it is off by on the whole"
    assert kind((exact + 4e-5).float(), reference, exact) is None
    got, wanted, doubles = (t.flatten()[:1000] for t in (everywhere, reference, exact))
    assert kind(got, wanted, doubles) is None, "few elements are held to the largest error alone"
    mismatch = found(everywhere, reference, exact)
    assert mismatch is not None and mismatch.wrong is None and len(mismatch.differences) == 5
    assert "root mean square" in mismatch.message


def test_plain_sums_are_only_computed_where_they_could_matter() -> None:
    """They are expensive, and an error of more than a thousand times the tolerance is no rounding
    error.
    """
    asked = list[None]()
    allowed = budget(SQUARE, SQUARE.double(), 1.0, "ieee")
    for times, count in ((0.5, 0), (500, 1), (2000, 1)):
        got = but(SQUARE, 3, 5, plus=times * allowed)
        mismatch = wrong(
            SQUARE, got, oracle=lambda: SQUARE.double(), plain=lambda _: asked.append(None)
        )
        assert (mismatch is None, len(asked)) == (times < 1, count)


def test_the_error_of_plain_sums_widens_both_budgets() -> None:
    """By multiples of it, without the hundredth of elements that are off most."""
    reference = torch.zeros(10_000)
    tolerance, _ = tolerance_of(drawn(10_000), None, 1.0, "ieee")
    off = torch.full_like(reference, 1e-2)
    off[::2], off[:50] = -1e-2, 1e6
    wide = with_plain_sums(tolerance, reference, lambda _: off)
    assert wide.worst == pytest.approx(6e-2) and wide.rms == pytest.approx(4e-2)
    assert with_plain_sums(tolerance, reference, lambda _: 1e-9 * off) == tolerance
    assert with_plain_sums(tolerance, reference, lambda _: None) == tolerance
    low, _ = tolerance_of(FAR, None, 1.0, "ieee")
    assert with_plain_sums(low, FAR, lambda _: pytest.fail("they are in float32")) == low


def test_the_error_of_plain_sums_is_looked_for_in_the_largest_elements() -> None:
    """Where a sum divides everything, they have the largest error, and may be one in a million."""
    reference = 1e-3 * drawn(1_000_000).abs()
    reference[123_457] = 0.1
    tolerance, _ = tolerance_of(reference, reference.double(), 1.0, "ieee")
    wide = with_plain_sums(tolerance, reference, lambda _: reference * (1 + 2e-6))
    assert wide.worst == pytest.approx(6 * 2e-7, rel=0.1) and wide.worst > 10 * tolerance.worst
    choice = reference.clone()
    choice[123_457] = 0.05
    assert with_plain_sums(tolerance, reference, lambda _: choice).worst == tolerance.worst


def running_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.cumsum(x.numpy(), axis=1, dtype=np.float32)[:, -1:])


@pytest.mark.parametrize("columns", [1000, 8192])
def test_a_running_float32_sum_is_right_and_a_forgotten_epsilon_is_not(columns: int) -> None:
    x = torch.randn(128, columns, generator=torch.Generator().manual_seed(4))
    shape = (columns,)
    reference, exact = torch.layer_norm(x, shape), torch.layer_norm(x.double(), shape)
    mean = running_sum(x) / columns
    variance = running_sum((x - mean).square()) / columns
    assert kind((x - mean) / (variance + 1e-5).sqrt(), reference, exact) is None
    assert kind((x - mean) / variance.sqrt(), reference, exact) == "values"


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


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.float64])
def test_every_floating_point_type_can_be_near(dtype: torch.dtype) -> None:
    values = drawn(2000).to(dtype)
    assert near(values.clone(), values, NONE)
    assert not near(torch.ones(2000).to(dtype), values, Tolerance(0.5, 0.5, True))
    assert near(values[:0], values[:0], NONE)


def test_what_is_not_finite_is_never_near() -> None:
    values = drawn(2000)
    for lost in (NAN, INF):
        got = values.clone()
        got[1234] = lost
        assert not near(got, values, ANY) and near(values, values, ANY)


def apart(x: torch.Tensor) -> torch.Tensor:
    """The same numbers in every other column."""
    return torch.stack((x, torch.zeros_like(x)), -1)[..., 0]


def one_lost(x: torch.Tensor) -> torch.Tensor:
    x.view(torch.uint8)[40, -2:] = 0xFF  # NaN in every floating-point type
    return x


CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "off": lambda x: (x.double() * 1.5).to(x.dtype),
    "off on the whole": lambda x: (x.double() + 5e-5).to(x.dtype),
    "lost": one_lost,
    "turned": lambda x: x.T.contiguous().T,
    "apart": apart,
}


@pytest.mark.parametrize("own", [1e-3, 0.0], ids=["rounded", "exact"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_tolerance_is_what_its_formula_says(
    dtype: torch.dtype, own: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worked out in one step from the whole, also where some elements are not finite.

    Against an exact reference, the ulps of the scale decide.
    """
    monkeypatch.setitem(PIECE, "cpu", 100)
    exact = 2 * drawn(64, 33).double() + 30
    reference = (exact + own * drawn(64, 33, seed=1)).to(dtype)
    if not own:
        exact = reference.double().clone()
    for holes in (False, True):
        if holes:
            reference.view(torch.uint8)[20, -2:] = 0xFF  # NaN in every floating-point type
            exact[7, 7] = INF
        a, b = reference.double().numpy(), exact.numpy()
        off = np.where(np.isfinite(a) & np.isfinite(b), a - b, 0)
        scale, eps, low = b[np.isfinite(b)].std(ddof=1), torch.finfo(dtype).eps, dtype in LOW
        worst = max((4 if low else 64) * np.abs(off).max(), (2 if low else 128) * eps * scale)
        tolerance, _ = tolerance_of(reference, exact, 1.0, "ieee")
        assert tolerance.worst == pytest.approx(worst, rel=1e-12)
        assert tolerance.finite is not holes
        if holes:
            assert tolerance.rms == INF, (
                "an oracle that is not finite where the reference is says nothing of all together"
            )
            continue
        rounding = eps / 4 * np.sqrt(np.square(b).mean()) if low else 0.0
        rms = max(np.sqrt(np.square(off).mean()), rounding)
        assert tolerance.rms == pytest.approx(
            max((4 if low else 48) * rms, (1 if low else 32) * eps * scale), rel=1e-12
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
        wrong(reference, got, oracle=lambda: oracle)
        all_finite([got])
        if got.is_floating_point():
            near(got, reference, Tolerance(1.0, 1.0, True))
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
        peak = held(got, reference, exact if with_oracle else None)
        assert 0 < peak.tensors < 20, (
            "small ones between large ones make the heap grow by as much as the large ones"
        )
        assert 0 < peak.most < 6.5 * 8 * (1 << 12), (
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
    assert (
        kind(got, reference, exact)
        == {"right": None, "off": "values", "lost": "not_finite"}[change]
    )
    assert torch.cuda.max_memory_allocated() - before < 1 << 30
