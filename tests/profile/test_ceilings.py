"""What a device reaches is measured once, kept in a file, and never in the way."""

import json
import time
from pathlib import Path

import pytest
import torch

from kevin_env.judge.api import DeviceInfo
from kevin_env.profile import ceilings
from kevin_env.profile.ceilings import CPU_SETS, CeilingStore
from kevin_env.roofline import Work

CPU = torch.device("cpu")
INFO = DeviceInfo(device="cpu", name="some CPU", processors=1, versions={"torch": "2"})
WORK = Work(read=1000, written=1000, products={}, operations=10)
HALVES = WORK.model_copy(update={"products": {"bf16": 10}})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kevin-env"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was measured; the n-th figure is n."""
    found: list[object] = []

    def memory(device: torch.device, size: int) -> tuple[float, float]:
        found.append(size)
        return float(len(found)), float(len(found))

    def product(device: torch.device, kind: str) -> float:
        found.append(kind)
        return float(len(found))

    monkeypatch.setattr(ceilings, "memory_rates", memory)
    monkeypatch.setattr(ceilings, "product_rate", product)
    return found


def store(info: DeviceInfo = INFO) -> CeilingStore:
    return CeilingStore(CPU, info)


def test_all_of_a_gpu_is_known_beforehand_and_never_in_the_way(
    measured: list[object], monkeypatch
) -> None:
    store().find_all()
    assert measured == [ceilings.GPU_SET, "fp32", "tf32", "fp16", "bf16", "fp64"]
    store().find_all()
    assert len(measured) == 6

    def full(*_: object) -> float:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(ceilings, "memory_rates", full)
    store(INFO.model_copy(update={"name": "a full one"})).find_all()


def test_each_figure_is_measured_when_it_is_needed_and_once(measured: list[object]) -> None:
    own = store()
    for _ in range(2):
        assert own.of(WORK).rates == {"fp32": 2.0}
    assert measured == [CPU_SETS[0], "fp32"]
    assert own.of(HALVES).rates == {"fp32": 2.0, "bf16": 3.0}
    own.of(WORK.model_copy(update={"read": 5 << 20}))
    own.of(WORK.model_copy(update={"read": 1 << 40}))
    assert measured == [CPU_SETS[0], "fp32", "bf16", CPU_SETS[2], CPU_SETS[-1]]


def test_the_next_judge_finds_them(measured: list[object], folder: Path) -> None:
    first = store().of(HALVES)
    assert store().of(HALVES) == first
    assert len(measured) == 3
    assert [oct(path.stat().st_mode)[-3:] for path in (folder, *folder.iterdir())] == ["700", "600"]


@pytest.mark.parametrize(
    "other",
    [
        INFO.model_copy(update={"name": "another CPU"}),
        INFO.model_copy(update={"versions": {"torch": "2", "driver": "13.0"}}),
    ],
)
def test_another_device_driver_or_torch_measures_for_itself(
    measured: list[object], other: DeviceInfo
) -> None:
    store().of(WORK)
    store(other).of(WORK)
    assert len(measured) == 4


def test_what_is_doubted_is_measured_once_more_and_the_higher_figure_counts(
    measured: list[object],
) -> None:
    store().of(WORK)
    later = store()
    assert later.of(WORK).reading == 1.0
    for _ in range(2):
        assert (later.of(WORK, again=True).reading, later.of(WORK).rates) == (3.0, {"fp32": 4.0})
    assert len(measured) == 4
    measured.clear()  # now it measures less than before
    latest = store()
    assert latest.of(WORK, again=True).reading == 3.0


@pytest.mark.parametrize("change", [{"value": {"rates": {"fp32": -1}}}, {"key": {}}])
def test_a_file_with_figures_that_cannot_be_is_measured_anew(
    measured: list[object], folder: Path, change: dict[str, object]
) -> None:
    store().of(WORK)
    (file,) = folder.iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert store().of(WORK).reading == 3.0


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_device_is_measured_in_a_moment(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    threads = torch.get_num_threads()
    place = torch.device(device)
    ceilings.product_rate(place, "fp32")  # loads the libraries
    own = CeilingStore(place, INFO.model_copy(update={"processors": threads + 1}))
    start = time.perf_counter()
    found = own.of(HALVES)
    taken = time.perf_counter() - start
    least = 1e12 if device == "cuda" else 1e8
    assert (
        found.reading > least and found.copying > least and min(found.rates.values()) > 10 * least
    )
    assert taken < (0.5 if device == "cuda" else 3.0)  # on a CPU that others use
    assert torch.get_num_threads() == threads


@pytest.mark.gpu
def test_ceilings_of_a_gpu_are_near_its_data_sheet() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    from kevin_env.judge.device import inform

    place = torch.device("cuda", 0)
    info = inform(place)
    found = CeilingStore(place, info).of(
        WORK.model_copy(update={"products": {"fp32": 1, "tf32": 1, "bf16": 1, "fp16": 1}})
    )
    assert 0.7 * info.bandwidth < found.reading < info.bandwidth
    assert 0.6 * info.bandwidth < found.copying < info.bandwidth
    assert found.rates["fp32"] < found.rates["tf32"] < min(found.rates["bf16"], found.rates["fp16"])
