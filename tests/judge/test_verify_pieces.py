"""The comparison piece by piece: as of the whole, and without another tensor as large."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kevin_env.judge.compare.chunked import PIECE, all_finite
from kevin_env.judge.compare.tolerance import Tolerance, tolerance_of
from kevin_env.judge.compare.values import compare, near

INF, NAN = float("inf"), float("nan")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def one_element_off(x: torch.Tensor) -> torch.Tensor:
    x[-1, 3] += 100
    return x


def one_lost(x: torch.Tensor) -> torch.Tensor:
    x.view(torch.uint8)[40, -2:] = 0x7F  # NaN in every floating-point type
    return x


CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "right": lambda x: x,
    "off": lambda x: (x.double() * 1.5).to(x.dtype),
    "off a little": lambda x: (x.double() + 1e-6).to(x.dtype),
    "off on the whole": lambda x: (x.double() + 5e-5).to(x.dtype),
    "one element": lambda x: one_element_off(x.double()).to(x.dtype),
    "lost": one_lost,
}
FLOATS = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


def apart(x: torch.Tensor) -> torch.Tensor:
    """The same numbers in every other column."""
    return torch.stack((x, torch.zeros_like(x)), -1)[..., 0]


def scenes() -> Iterator[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor | None]]:
    """Outputs of every kind: given, expected and, where there is one, the oracle's."""
    exact = drawn(64, 33).double().exp() + 2  # no two of them are off by the same
    for dtype in FLOATS:
        reference = (exact + 1e-6 * drawn(64, 33, seed=1)).to(dtype)
        holed = reference.clone()
        holed.view(torch.uint8)[20, -2:] = 0x7F
        for name, change in CHANGES.items():
            for oracle in (exact, None):
                yield f"{name} {dtype}", change(reference.clone()), reference, oracle
                yield f"{name} {dtype} with NaN", change(holed.clone()), holed, oracle
        yield (
            f"turned {dtype}",
            reference.clone(),
            reference.float().T.contiguous().T.to(dtype),
            exact,
        )
        yield f"apart {dtype}", apart(reference), reference, apart(exact)
        yield f"few {dtype}", reference[:2, :4], reference[1:3, :4], exact[1:3, :4]
        yield f"one {dtype}", reference[3, 4], reference[3, 5], None
    parts = torch.complex(drawn(64, 33), drawn(64, 33, seed=1))
    yield "complex", parts + 1e-3j, parts.conj().resolve_conj().conj(), parts.to(torch.complex128)
    for dtype in (torch.bool, torch.uint8, torch.int64):
        yield (
            f"exact {dtype}",
            (drawn(64, 33) > 0).to(dtype),
            (drawn(64, 33) > 0.5).T.contiguous().T.to(dtype),
            None,
        )


@pytest.mark.full
def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: set[str | None] = set()
    for name, got, reference, oracle in scenes():
        monkeypatch.setitem(PIECE, "cpu", 1 << 30)
        whole, allowed = told(got, reference, oracle), allowances(reference, oracle)
        kinds.add(
            None
            if whole is None
            else f"{whole['kind']} {'alone' if whole['wrong'] else 'on the whole'}"
        )
        for most in (30, 64, 1000):
            monkeypatch.setitem(PIECE, "cpu", most)
            assert told(got, reference, oracle) == whole, (name, most)
            assert allowances(reference, oracle) == pytest.approx(allowed, rel=1e-12), (name, most)
            assert all_finite([reference]) is bool(torch.isfinite(wide(reference)).all())
    assert kinds == {None, "values alone", "values on the whole", "not_finite alone"}


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x


def allowances(reference: torch.Tensor, oracle: torch.Tensor | None) -> list[float]:
    found: Tolerance = tolerance_of(reference, oracle, 1.0, "ieee")
    return [found.worst, found.rms, float(found.finite)]


def told(
    got: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None
) -> dict[str, Any] | None:
    """What is told of an output, but for the last digits of its figures."""
    found = compare(got, reference, oracle, 1.0, "ieee")
    if found is None:
        return None
    figures = {
        name: f"{value:.10g}"
        for name in ("worst_error", "tolerance")
        if (value := getattr(found, name))
    }
    if (
        found.wrong is None and oracle is None
    ):  # many are off by the same, and which of them are shown is open
        figures["differences"] = str(len(found.differences))
    return {**vars(found), **figures}


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


@pytest.mark.parametrize(
    "name", ["right", "off", "off on the whole", "lost", "NaN", "turned", "apart", "bool"]
)
@pytest.mark.parametrize("with_oracle", [True, False])
def test_what_a_comparison_holds_does_not_grow_with_the_output(
    name: str, with_oracle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PIECE, "cpu", 1 << 12)
    exact = drawn(256, 512).double()
    for dtype in (torch.float32, torch.bfloat16):
        reference = (exact + 1e-6 * drawn(256, 512, seed=1)).to(dtype)
        if name == "NaN":
            reference[5, 5] = NAN
        got = CHANGES[name](reference.clone()) if name in CHANGES else reference.clone()
        got = {"turned": got.T.contiguous().T, "apart": apart(got), "bool": got > 0}.get(name, got)
        wanted = (reference > 0.5).T.contiguous().T if name == "bool" else reference
        oracle = exact if with_oracle and name != "bool" else None
        found = held(got, wanted, oracle)
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
