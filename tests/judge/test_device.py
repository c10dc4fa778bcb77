from types import SimpleNamespace

import pytest
import torch

from kevin_env.judge.api import JudgeError
from kevin_env.judge.device import StallWatch, _peaks, inform, resolve


@pytest.mark.parametrize("name", ["cuda:63", "tpu", "cuda:x"])
def test_a_device_that_is_not_there_is_one_clear_line(name: str) -> None:
    with pytest.raises(JudgeError, match=name) as caught:
        resolve(name)
    assert "\n" not in str(caught.value) and "cpu" in str(caught.value)


def test_the_peak_of_a_known_architecture_is_that_of_its_data_sheet() -> None:
    """NVIDIA's H100 SXM: 67 TFLOP/s in FP32 and 989 dense in BF16, the latter at 1.83 GHz."""
    h100 = SimpleNamespace(major=9, minor=0, multi_processor_count=132)
    assert _peaks(h100, 1.98e9)["FP32"] == pytest.approx(67e12, rel=0.01)
    assert _peaks(h100, 1.83e9)["FP16/BF16 tensor cores"] == pytest.approx(989e12, rel=0.01)
    assert _peaks(SimpleNamespace(major=99, minor=0, multi_processor_count=132), 1e9) == {}


def test_a_cpu_names_the_vector_instructions_that_torch_finds() -> None:
    found, named = torch.backends.cpu.get_cpu_capability(), {"AVX2": "AVX2", "AVX512": "AVX-512"}
    if found not in named:
        pytest.skip(f"torch calls this processor's instructions {found}")
    assert named[found] in inform(torch.device("cpu")).instructions


def test_a_queue_that_does_not_go_on_is_noticed_and_one_that_is_only_busy_is_not() -> None:
    now, reached = [0.0], [True]
    mark = SimpleNamespace(query=lambda: reached[0])
    watch = StallWatch(lambda: mark, seconds=100.0, clock=lambda: now[0])
    found = []
    for now[0], reached[0] in ((0, True), (90, False), (110, True), (150, False), (209, False)):
        found.append(watch.stalled())
    assert not any(found)  # no event has waited for longer than 100 s
    now[0] = 211
    assert watch.stalled()
