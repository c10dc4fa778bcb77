"""What profiler, Nsight Compute and compute-sanitizer tell of submissions whose limits are known.
Needs a GPU.
"""

import pytest
from corpus import FOLDER

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.verdict import flag_name
from kevin_env.outcome import NcuDigest, Profile
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem

pytestmark = [pytest.mark.gpu, pytest.mark.full]

KERNELS = {
    "memory_naive": "relu_in_pieces", "memory_good": "relu_in_rows", "compute_naive": "one_each",
    "compute_good": "linear_in_tiles", "spilling": "relu_that_spills",
}  # fmt: skip
UNUSABLE = ("cannot be used here",)


def metric(found: NcuDigest, name: str) -> float | None:
    return next((each.value for each in found.metrics if each.name == name), None)


def looked_into(pool: LocalPool, name: str, **options) -> Judgement:
    code = (FOLDER / "profile" / f"{name}.py").read_text()
    problem = next(
        line.removeprefix("problem: ") for line in code.splitlines() if line.startswith("problem: ")
    )
    asked = Options(
        device="cuda", inputs="shipped" if name.startswith("compute") else "varied", **options
    )
    return pool.submit(
        load_problem(str(FOLDER / "problems" / problem)), Submission(code=code), asked
    ).result(280)


def profiled(pool: LocalPool, name: str, **options) -> Profile:
    judgement = looked_into(pool, name, **options)
    assert judgement.outcome.category == "correct", judgement.outcome
    assert judgement.profile is not None
    return judgement.profile


def counted(pool: LocalPool, name: str) -> NcuDigest:
    profile = profiled(pool, name, profile="ncu")
    if profile.ncu is None and any(sign in note for note in profile.notes for sign in UNUSABLE):
        pytest.skip(profile.notes[0])
    assert profile.ncu is not None, profile.notes
    return profile.ncu


@pytest.mark.parametrize("name", KERNELS)
def test_own_kernels_take_the_time(pool: LocalPool, name: str) -> None:
    found = profiled(pool, name, profile="kernels").kernels
    assert found is not None and found.coverage is not None and found.coverage > 0.95
    kernel = found.kernels[0]
    assert (kernel.name, kernel.own, kernel.launches) == (KERNELS[name], True, 1)
    assert kernel.grid and kernel.block and kernel.registers and kernel.seconds > 1e-5
    assert any(each.name.startswith("aten::") for each in found.operators)


def test_kernels_that_spill_show_it(pool: LocalPool) -> None:
    for name, spills in (("spilling", True), ("memory_good", False)):
        found = profiled(pool, name, profile="kernels").kernels
        assert found is not None and bool(found.kernels[0].local_memory) == spills


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("memory_naive", {"memory"}),
        ("memory_good", {"memory"}),
        (
            "compute_naive",
            {"memory", "compute"},
        ),  # its loads keep the L1 as busy as its arithmetic the cores
        ("compute_good", {"compute"}),
        ("spilling", {"memory"}),
    ],
)
def test_nsight_compute_names_the_bound(pool: LocalPool, name: str, bounds: set[str]) -> None:
    found = counted(pool, name)
    assert (found.kernel, found.own) == (KERNELS[name], True)
    assert found.bound in bounds and found.coverage is not None and found.coverage > 0.95
    assert len(found.metrics) >= 12 and found.stalls and found.lines


def test_nsight_compute_tells_good_from_naive(pool: LocalPool) -> None:
    naive, good = counted(pool, "memory_naive"), counted(pool, "memory_good")
    assert (metric(good, "DRAM throughput") or 0) > 0.7
    assert (metric(naive, "sectors a global load") or 0) > (
        metric(good, "sectors a global load") or 32
    )
    assert (metric(counted(pool, "compute_good"), "tensor pipe") or 0) > 0.2
    assert (metric(counted(pool, "spilling"), "local memory bytes") or 0) > 0


def test_the_coverage_of_an_outcome_is_what_nsight_compute_saw(pool: LocalPool) -> None:
    judgement = looked_into(pool, "memory_good", profile="ncu")
    if judgement.profile is None or judgement.profile.ncu is None:
        pytest.skip(str(judgement.profile and judgement.profile.notes))
    assert getattr(judgement.outcome, "coverage", None) == judgement.profile.ncu.coverage
    assert "profile_differs" not in map(flag_name, judgement.flags)


def test_an_illegal_access_is_found_with_its_line(pool: LocalPool) -> None:
    judgement = looked_into(pool, "reads_past_the_end", sanitize=True)
    assert judgement.outcome.kind == "illegal_access" and judgement.profile is not None
    found = judgement.profile.sanitizer
    if found is None and any(sign in note for note in judgement.profile.notes for sign in UNUSABLE):
        pytest.skip(judgement.profile.notes[0])
    assert found is not None, judgement.profile.notes
    assert (found.tool, found.kernel, found.file) == ("memcheck", "reads_on", "relu.cu")
    assert found.line in (5, 6), "nvcc may read only where the value is used"
    assert (
        found.error.startswith("Invalid __global__ read of size 4")
        and found.thread
        and found.block
        and found.size == 4
    )


def test_a_race_is_found_with_its_line(pool: LocalPool) -> None:
    judgement = looked_into(pool, "races", sanitize=True)
    if judgement.outcome.category == "correct" or judgement.profile is None:
        pytest.skip(f"it raced and won: {judgement.outcome.kind}")
    found = judgement.profile.sanitizer
    if found is None and any(sign in note for note in judgement.profile.notes for sign in UNUSABLE):
        pytest.skip(judgement.profile.notes[0])
    assert found is not None, judgement.profile.notes
    assert (found.tool, found.kernel, found.file) == ("racecheck", "races", "means.cu")
    assert found.line in (6, 7, 8, 9, 10)
