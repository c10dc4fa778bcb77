"""In which order a candidate waits, calls and says that it is through; on no device."""

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.region import DONE, Region
from kevin_env.candidate.runtime import Runtime


class Noted(Runtime):
    """Notes what it does instead of doing it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        super().__init__(SimpleNamespace())  # type: ignore[arg-type]
        self.model = self._called
        self.arguments = [3]
        self.regions["words"] = Region(torch.zeros(2 * DONE, dtype=torch.uint8))
        self.kept: list[list[Any]] = []

    def _called(self, number: int) -> float:
        self.notes.append(f"call {number}")
        self.kept.append(self.held)
        return float(torch.rand(()))

    def _claim(self, output: Any) -> dict[str, Any]:
        self.notes.append("claim")
        return {"output": output}

    def synchronize(self) -> None:
        self.notes.append("device")


def test_each_call_waits_for_its_word_and_writes_it_when_it_is_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Noted()
    start = runtime.regions["words"].start
    for name, place in (("wait_for", start), ("write_word", start + DONE)):
        monkeypatch.setattr(
            cuda,
            name,
            lambda at, value, n=name, to=place: runtime.notes.append(f"{n} {at - to + value}"),
        )
    runtime.go([None, None], behind=7)
    each = [["wait_for", "call 3", "claim", "write_word"]] * 2
    assert runtime.notes == [
        note + f" {number}" * note.startswith("w")
        for number, notes in enumerate(each, 7)
        for note in notes
    ]
    runtime.finish()
    assert runtime.notes[-1] == "device"


def test_without_words_calls_wait_for_nothing_and_outputs_are_kept_until_the_next() -> None:
    runtime = Noted()
    told = json.loads(runtime.go([None, None])[4:])
    assert runtime.notes == ["call 3", "claim"] * 2
    assert runtime.kept == [[], []] and runtime.held == [told["claims"][1]["output"]]


class LastError:
    """The runtime's last error of a thread, which is forgotten when it is read."""

    def __init__(self, code: int) -> None:
        self.code = code

    def cudaGetLastError(self) -> int:
        code, self.code = self.code, 0
        return code

    def cudaGetErrorString(self, code: int) -> bytes:
        return f"error {code}".encode()


def test_an_error_of_the_runtime_is_read_once_and_answers_are_none() -> None:
    runtime = LastError(9)
    assert [cuda.take_error(runtime) for _ in range(2)] == ["error 9", ""]
    assert cuda.take_error(LastError(600)) == ""
    assert cuda.take_error() == ""  # without a GPU


def test_a_launch_that_a_call_had_refused_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    last = LastError(1)  # from before the calls
    runtime = Noted()
    runtime.device = torch.device("cuda")
    monkeypatch.setattr(cuda, "take_error", partial(cuda.take_error, last))
    codes = iter((9, 0))
    runtime.model = lambda _: setattr(last, "code", next(codes))
    told = json.loads(runtime.go([None, None])[4:])["claims"]
    assert [claim.get("cuda_error") for claim in told] == ["error 9", None]


def test_a_call_is_seeded_with_what_is_told_with_it() -> None:
    runtime = Noted()
    same, other, again = (json.loads(runtime.go([seed])[4:]) for seed in (5, 6, 5))
    assert same == again != other
