"""A time that no memory allows is measured once more and then not believed."""

from collections.abc import Callable

import pytest
import torch
from judges import ScriptedClock

from kevin_env.judge import Options, Submission
from kevin_env.judge.doubts import believed
from kevin_env.judge.flags import flag_name
from kevin_env.judge.floor import GATE_ERROR, Floor, Floors, bytes_that_matter
from kevin_env.judge.gate import Drawn
from kevin_env.judge.judge import RETRIES, Judge
from kevin_env.judge.lease import Lease
from kevin_env.judge.memory import Image
from kevin_env.judge.reference import Case
from kevin_env.outcome import Correct
from kevin_env.problem import Problem

CPU = torch.device("cpu")
SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, *more):
        return {expression}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""
MEGABYTE = "torch.randn(1024, 256)"


def matter(expression: str, inputs: str = MEGABYTE) -> int:
    problem = Problem(id="x", name="x", source=SOURCE.format(expression=expression, inputs=inputs))
    case = Case(problem, "main", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    return bytes_that_matter(case, Drawn(skeleton, Image(tensors, CPU), 1))


@pytest.mark.parametrize(
    ("expression", "inputs", "expected"),
    [
        ("torch.softmax(x, 1)", MEGABYTE, 1 << 20),
        ("(x.sum(), x.abs())", MEGABYTE, 1 << 20),
        ("x[:512] * 2", MEGABYTE, 1 << 19),
        ("x[more[0]]", f"{MEGABYTE}, torch.arange(0, 1024, 4)", 1 << 18),
        ("torch.fft.fft(x)", MEGABYTE, 1 << 20),
        ("x + more[0]", f"{MEGABYTE}, torch.randn(1024, 256).half()", 3 << 19),
        ("x.argmax(1)", MEGABYTE, 0),
        ("x.sum() * 0 + 1", MEGABYTE, 0),
        ("x * 2", "torch.arange(1024)", 0),
        ("torch.from_numpy(x.numpy()) * 2", MEGABYTE, 0),
        ("x.mul_(2)", MEGABYTE, 0),
    ],
)
def test_what_matters_of_the_inputs(expression: str, inputs: str, expected: int) -> None:
    assert matter(expression, inputs) == expected


def test_one_element_that_matters_makes_its_sector_matter() -> None:
    assert matter("x[:, ::8]") == 1 << 20
    assert matter("x[:, ::16]") == 1 << 19


def test_a_floor_leaves_room_for_the_clock_and_for_better_kernels() -> None:
    floor = Floor(bytes=10**9, rate=4e12)
    assert floor.seconds == pytest.approx(250e-6)
    assert not floor.rules_out(250e-6) and not floor.rules_out(0.8 * 250e-6 - GATE_ERROR + 1e-9)
    assert floor.rules_out(0.8 * 250e-6 - GATE_ERROR - 1e-9)
    assert not Floor(bytes=0, rate=4e12).rules_out(1e-9)


def timed(seconds: float) -> Correct:
    return Correct(
        kind="timed", message="Right.", speedup=2.0, speedup_interval=(1.9, 2.1), reference_seconds=2 * seconds,
        submission_seconds=seconds, max_unseen_gain=0.0,
    )  # fmt: skip


def test_a_time_below_the_floor_is_not_paid() -> None:
    floor = Floor(bytes=10**9, rate=4e12)
    flags: list[str] = []
    assert believed(timed(250e-6), floor, flags) == timed(250e-6) == believed(timed(250e-6), None, flags)
    assert flags == []
    doubted = believed(timed(50e-6), floor, flags)
    assert [flag_name(flag) for flag in flags] == ["below_floor"]
    assert (doubted.kind, doubted.speedup, doubted.speedup_interval) == ("too_noisy", None, None)
    assert "1000 MB" in doubted.message and "50 us" in doubted.message


def test_no_floor_is_claimed_on_a_cpu() -> None:
    assert Floors(CPU, Lease("cpu"), None).under(1e-9, "x", None, None) is None  # type: ignore[arg-type]


class Reads:
    """A device that reads a megabyte a second."""

    def gpu_reading(self) -> float:
        return float(1 << 20)


class Reference(Case):
    """Tells how often its model was called, and may leave no room for it."""

    def __init__(self, expression: str) -> None:
        super().__init__(
            Problem(id="x", name="x", source=SOURCE.format(expression=expression, inputs=MEGABYTE)), "main", CPU
        )
        self.draw_weights(1)
        self.calls, self.full = 0, False
        self.model.register_forward_pre_hook(self.called)

    def called(self, *_: object) -> None:
        self.calls += 1
        if self.full:
            raise torch.OutOfMemoryError

    def drawn(self) -> Drawn:
        skeleton, tensors = self.draw_inputs("own", 1)
        return Drawn(skeleton, Image(tensors, CPU), 1)


@pytest.fixture
def floors(monkeypatch: pytest.MonkeyPatch) -> Floors:
    """Those of a GPU, found on the CPU."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return Floors(torch.device("cuda"), Lease("test_floor"), Reads())  # type: ignore[arg-type]


def test_gradients_are_asked_for_once_and_only_where_reading_all_inputs_would_take_longer(floors: Floors) -> None:
    case = Reference("x[:512] * 2")
    assert floors.under(0.81, "x", case, case.drawn) is None and case.calls == 0
    assert floors.under(0.41, "x", case, case.drawn) is None and case.calls == 1
    assert floors.under(0.39, "x", case, case.drawn) == Floor(1 << 19, float(1 << 20))
    assert floors.under(0.81, "x", case, case.drawn) is None and case.calls == 1


def test_a_device_without_room_for_gradients_is_asked_again(floors: Floors) -> None:
    case = Reference("x * 2")
    case.full = True
    assert floors.under(0.1, "x", case, case.drawn) is None
    case.full = False
    assert floors.under(0.1, "x", case, case.drawn) == Floor(1 << 20, float(1 << 20))


def test_a_time_is_cleared_by_what_was_found_before_and_by_nothing_that_needs_room(floors: Floors) -> None:
    case = Reference("x[:512] * 2")
    assert not floors.clears(0.81, "x", case)  # nothing was found yet
    floors.under(0.81, "x", case, case.drawn)
    assert floors.clears(0.81, "x", case) and not floors.clears(0.79, "x", case)
    assert not floors.clears(0.81, "y", case) and case.calls == 0
    assert Floors(CPU, Lease("test_floor"), Reads()).clears(1e-9, "x", case)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "kind"), [(1e30, "too_noisy"), (0.0, "timed")])
def test_the_judge_measures_twice_before_it_doubts(
    a_judge: Callable[..., Judge], monkeypatch: pytest.MonkeyPatch, size: float, kind: str
) -> None:
    monkeypatch.setattr(Floors, "under", lambda *_: Floor(int(size), 1.0) if size else None)
    clock = ScriptedClock({"main": timed(1e-3)})
    source = SOURCE.format(expression="torch.softmax(x, 1)", inputs=MEGABYTE)
    code = source.replace("class Model(", "class ModelNew(")
    problem = Problem(id="x", name="x", source=source)
    outcome = a_judge(clock=clock).judge(problem, Submission(code=code), Options(device="cpu"), lambda _: None).outcome
    assert (outcome.category, outcome.kind) == ("correct", kind)
    assert clock.cases == ["main"] * (2 if kind == "too_noisy" else 1)


@pytest.mark.parametrize(("retry", "times"), [(False, 1), (True, 1 + RETRIES)])
def test_a_noisy_time_is_taken_again_where_that_is_asked_for(
    a_judge: Callable[..., Judge], retry: bool, times: int
) -> None:
    clock = ScriptedClock({"main": timed(1e-3).model_copy(update={"kind": "too_noisy"})})
    source = SOURCE.format(expression="torch.softmax(x, 1)", inputs=MEGABYTE)
    code = source.replace("class Model(", "class ModelNew(")
    problem, options = Problem(id="x", name="x", source=source), Options(device="cpu", retry_noisy=retry)
    outcome = a_judge(clock=clock).judge(problem, Submission(code=code), options, lambda _: None).outcome
    assert (outcome.kind, clock.cases) == ("too_noisy", ["main"] * times)
