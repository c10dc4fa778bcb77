"""Profiles through real judges on the CPU: what is asked for is told, and never changes the
verdict.
"""

from types import SimpleNamespace

import pytest
import torch
from corpus import FOLDER, read_entry

from kevin_env.feedback import render_feedback
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Sandbox, Seconds
from kevin_env.judge.bench import ProfilerState
from kevin_env.judge.verdict import flag_name
from kevin_env.outcome import Correct, NcuDigest, Profile
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import SCRIPTED_GPU
from kevin_env.profile.kernels import read_claim
from kevin_env.profile.look import with_profile
from kevin_env.profile.outside import Outside

RELU = read_entry(FOLDER / "honest" / "relu_in_place_on_a_copy.py").task
TORCH = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
OWN = """import numpy, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        numpy.maximum(x.numpy(), 0, out=out.numpy())
        return out
"""
WATCHED = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            raise RuntimeError("I am being watched")
        return torch.relu(x)
"""
CLAIM = {
    "calls": 2, "seconds": 4e-4, "cores": None, "host": 1e-4,
    "operators": [["aten::empty_like", 1, 2e-5]],
    "launches": [
        ["own_kernel(float *)", 1.0, 80e-6, [132, 1, 1], [256, 1, 1], 40, 4096],
        ["void at::native::fill<4>(int)", 1.0001, 20e-6, [1, 1, 1], [32, 1, 1], 16, 0],
        ["own_kernel(float *)", 1.00015, 80e-6, [132, 1, 1], [256, 1, 1], 40, 4096],
        ["Memcpy DtoD (Device -> Device)", 1.00028, 20e-6, None, None, None, None],
    ],
}  # fmt: skip


def judged(pool: LocalPool, code: str, **options) -> Judgement:
    return pool.submit(RELU, Submission(code=code), Options(device="cpu", **options)).result(240)


@pytest.mark.full
def test_operators_and_their_share_of_the_time(pool: LocalPool) -> None:
    stages: list[str] = []
    options = Options(device="cpu", profile="ncu", sanitize=True)
    judgement = pool.submit(RELU, Submission(code=TORCH), options, stages.append).result(240)
    assert (
        judgement.outcome.category == "correct"
        and stages[-1] == "profile"
        and judgement.seconds.profile > 0
    )
    profile = judgement.profile
    assert profile and profile.kernels and profile.kernels.source == "inside"
    found = profile.kernels
    assert [(each.name, each.calls) for each in found.operators] == [("aten::relu", 1)]
    assert found.operators[0].seconds and 0 < found.operators[0].seconds <= 1.1 * found.seconds
    assert found.coverage == pytest.approx(
        max(0.0, 1 - found.operators[0].seconds / found.seconds), abs=0.001
    )
    assert found.cores and 0 < found.cores < 1000 and not found.kernels
    (note,) = profile.notes
    assert note == "Nsight Compute needs a GPU, and this is a CPU"
    text = render_feedback(judgement.outcome, profile=profile)
    assert "`aten::relu`" in text and "not verified; not part of the score" in text and note in text
    assert getattr(judgement.outcome, "coverage", 1) is None


@pytest.mark.full
def test_own_kernels_are_the_time_outside_of_operators(pool: LocalPool) -> None:
    found = judged(pool, OWN, profile="kernels").profile
    assert found and found.kernels and not found.notes
    assert found.kernels.coverage is not None and found.kernels.coverage > 0.6
    assert "aten::empty_like" in [each.name for each in found.kernels.operators]


@pytest.mark.full
def test_what_fails_under_the_profiler_keeps_its_verdict(pool: LocalPool) -> None:
    judgement = judged(pool, WATCHED, profile="kernels")
    assert judgement.outcome.category == "correct"
    assert judgement.profile and judgement.profile.kernels is None
    assert "I am being watched" in judgement.profile.notes[0]


@pytest.mark.full
@pytest.mark.parametrize("code", [TORCH.replace("relu(x)", "relu(x) * 0"), "class ModelNew(:"])
def test_nothing_is_looked_into_where_there_is_nothing_to_find(pool: LocalPool, code: str) -> None:
    judgement = judged(pool, code, profile="kernels", sanitize=True)
    assert judgement.outcome.category != "correct" and judgement.profile is None


def test_launches_become_kernels_with_shares() -> None:
    found = read_claim(CLAIM, {"own_kernel": 256, "at::native::fill": 8})
    assert found is not None
    own, fill, copy = found.kernels
    assert (own.local_memory, fill.local_memory) == (256, None)
    assert (own.name, own.own, own.launches, own.seconds) == (
        "own_kernel",
        True,
        1,
        pytest.approx(80e-6),
    )
    assert (own.grid, own.block, own.registers, own.shared_memory) == (
        (132, 1, 1),
        (256, 1, 1),
        40,
        4096,
    )
    assert (fill.own, copy.own, copy.grid) == (False, False, None)
    assert found.coverage == pytest.approx(0.8) and found.idle == pytest.approx(50e-6)
    assert (found.seconds, found.cores) == (pytest.approx(2e-4), None)


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": float("nan")},
        {"launches": [["x"]]},
        {"launches": [["k", float("inf"), 1.0, None, None, None, None]]},
        {"launches": CLAIM["launches"] * 5000},
        {"more": 1},
    ],
)
def test_a_claim_that_is_none_is_not_read(change: dict) -> None:
    assert read_claim(CLAIM | change) is None


def test_a_claim_that_lies_stays_within_bounds() -> None:
    lies = {
        "seconds": 1e-9, "host": 3.0, "cores": 1.0, "launches": [],
        "operators": [["\x1b[2J`" * 999, 9, None]],
    }  # fmt: skip
    found = read_claim(CLAIM | lies)
    assert found is not None and found.coverage == 0.0
    assert len(found.operators[0].name) < 60 and "\x1b" not in found.operators[0].name


def test_coverage_enters_an_outcome_only_from_outside_and_of_what_was_timed() -> None:
    enforced = Sandbox(
        network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
    )
    timed = Correct(kind="timed", message="right", speedup=2.0, submission_seconds=100e-6)
    before = Judgement(
        outcome=timed, seconds=Seconds(), device=SCRIPTED_GPU, sandbox=enforced, secret="0" * 32
    )
    seen = NcuDigest(kernel="k", own=True, seconds=120e-6, share=1.0, coverage=0.9, bound="memory")
    found = with_profile(before, Profile(ncu=seen), "kernel")
    assert found.outcome == timed.model_copy(update={"coverage": 0.9}) and not found.flags
    longer = with_profile(
        before, Profile(ncu=seen.model_copy(update={"seconds": 300e-6})), "kernel"
    )
    assert (
        longer.outcome == timed
        and "300 us" in longer.flags[0]
        and flag_name(longer.flags[0]) == "profile_differs"
    )
    inside = with_profile(before, Profile(kernels=read_claim(CLAIM)), "kernel")
    assert inside.outcome == timed and inside.profile and not inside.flags
    others = Profile(ncu=seen.model_copy(update={"coverage": 0.04}))
    assert [flag_name(each) for each in with_profile(before, others, "kernel").flags] == [
        "record_contradicted"
    ]
    assert not with_profile(before, others, "partial").flags
    kernels = read_claim(CLAIM | {"launches": CLAIM["launches"][1:2]})
    assert "0.0% of the time" in with_profile(before, Profile(kernels=kernels), "kernel").flags[0]


def outside(notes: list[str], **refusals: str) -> Outside:
    """The tools' side of a judge whose device is said to be a GPU."""
    profiler = ProfilerState()
    profiler.refusals |= refusals
    bench = SimpleNamespace(device=torch.device("cuda"), profiler=profiler)
    return Outside(bench, RELU, TORCH, Options(), notes)  # type: ignore[arg-type]


def test_a_tool_that_cannot_look_into_the_device_is_not_started_again() -> None:
    notes: list[str] = []
    assert outside(notes, ncu="Nsight Compute cannot be used here: no").ncu() is None
    assert notes == ["Nsight Compute cannot be used here: no"]
