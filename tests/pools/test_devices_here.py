"""Names of devices are checked before anything starts."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from kevin_env.judge import JudgeError, Options, Submission, api
from kevin_env.judge.api import device_names, devices_here, most_gpus
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem
from kevin_env.settings import Settings

PROBLEM = Problem(id="any", source="", name="any")


@pytest.mark.parametrize(("choice", "names"), [
    ("cpu", ("cpu",)), ("cuda", ("cuda:0",)), ("cuda:0,1", ("cuda:0", "cuda:1")),
    ("cuda:2,0,2", ("cuda:2", "cuda:0")), ("cuda:01,1", ("cuda:1",)),
])  # fmt: skip
def test_a_choice_means_devices(choice: str, names: tuple[str, ...]) -> None:
    assert device_names(choice) == names


def test_auto_is_the_first_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_names("auto") == ("cpu",)


WRONG = ("cuda:", "cuda:0,", "cuda:a", "cuda:0,cpu", "cuda:1234", "cuda:\u0661", "gpu", "cpu:1", "")


@pytest.mark.parametrize("choice", WRONG)
def test_settings_refuse_what_is_no_choice(choice: str) -> None:
    with pytest.raises(ValidationError, match="device"):
        Settings(device=choice)


@pytest.mark.parametrize("choice", [*WRONG, "cuda:2", "cuda:0,9", "x" * 1000])
def test_no_judge_is_started_for_what_is_not_there(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "most_gpus", lambda: 2)

    def start(*_: object, **__: object) -> Any:
        raise AssertionError("started")

    with LocalPool(start=start) as pool:
        with pytest.raises(JudgeError, match=r"^(unknown|no) device .{,150}$"):
            pool.device(choice)
        with pytest.raises(JudgeError, match=r"^(unknown|no) device .{,150}$"):
            pool.submit(PROBLEM, Submission(code=""), Options(device=choice)).result(20)


def test_the_judge_decides_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "most_gpus", lambda: None)
    assert devices_here("cuda:7") == ("cuda:7",)


@pytest.mark.parametrize(("visible", "files", "most"), [
    (None, ["dev/nvidia0", "dev/nvidia1", "dev/nvidiactl"], 2), ("1", ["dev/nvidia0", "dev/nvidia1"], 1),
    ("GPU-1,GPU-2,GPU-3", ["dev/nvidia0"], 1), ("", ["dev/nvidia0"], 0), ("-1", ["dev/nvidia0"], 0),
    (None, ["proc/driver/nvidia/gpus/0000:06:00.0"], 1), (None, [], 0), (None, ["dev/dxg"], None),
    (None, ["sys/bus/pci/devices/0/vendor"], None),
    ("MIG-1,MIG-2", ["dev/nvidia0", "proc/driver/nvidia/capabilities/gpu0/mig/gi1"], 2),
])  # fmt: skip
def test_gpus_are_found_without_cuda(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, visible: str | None, files: list[str],
    most: int | None,
) -> None:  # fmt: skip
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("0x10de\n")
    find = api._files
    monkeypatch.setattr(api, "_files", lambda folder, pattern: find(f"{tmp_path}{folder}", pattern))
    assert most_gpus() == most
