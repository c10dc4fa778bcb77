"""Nsight Compute's tables as 2025.3 prints them, and text that a submission wrote in between."""

import pytest
from scripted_runner import ScriptedRunner

from kevin_env.outcome import NcuDigest
from kevin_env.profile import ncu
from kevin_env.profile.ncu import (
    LAUNCHES,
    digest,
    hot_lines,
    read_raw,
    read_tables,
)
from kevin_env.profile.tools import Ran

BASE = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
        "Device", "CC"]  # fmt: skip
VALUES = {
    "gpu__time_duration.sum": ("ns", "1,000"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "91.20"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "23.45"),
    "dram__bytes.sum": ("byte", "268,435,456"),
    "l1tex__t_sector_hit_rate.pct": ("%", "0.01"),
    "launch__registers_per_thread": ("register/thread", "40"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": ("%", "n/a"),
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": ("warp", "600"),
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": ("warp", "590"),
    "smsp__pcsamp_warps_issue_stalled_lg_throttle": ("warp", "300"),
    "smsp__pcsamp_warps_issue_stalled_wait": ("warp", "60"),
    "smsp__pcsamp_warps_issue_stalled_branch_resolving": ("warp", "40"),
    "smsp__pcsamp_warps_issue_stalled_selected": ("warp", "9000"),
}
SOURCE = """"File Path","/tmp/kevin-run-1/submission.py"
"Function Name","other"
"Line No","Source","Address","Source","group:smsp__pcsamp_warp_stall_reasons","launch__registers_per_thread"
"3","    not this","-","-","999","0"
"File Path","/tmp/kevin-run-1/softmax.cu"
"Function Name","softmax_kernel(const float *, float *, int)"
"Line No","Source","Address","Source","group:smsp__pcsamp_warp_stall_reasons","launch__registers_per_thread"
"12","    most = fmaxf(most, in[i]);","-","-","300","0"
"","","0x10","LDG.E R4, desc[UR4][R2.64]","290","40"
"20","    out[i] = expf(in[i] - most) / sum;","-","-","100","0"
"21","    }","-","-","0","0"
"""


def quoted(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def raw(*kernels: tuple[str, str], **changes: str) -> str:
    """A table of launches: names and durations."""
    values = VALUES | {name: (VALUES[name][0], value) for name, value in changes.items()}
    rows = [[*BASE, *values], [*([""] * len(BASE)), *(unit for unit, _ in values.values())]]
    for at, (name, duration) in enumerate(kernels):
        row = [
            str(at), "1234", "python3.12", "127.0.0.1", name, "1", "7", "(256, 1, 1)",
            "(128, 1, 1)", "0", "9.0",
        ]  # fmt: skip
        rows.append([*row, duration, *(value for _, value in list(values.values())[1:])])
    return (
        "==PROF== Connected to process 1234\n"
        + "\n".join(map(quoted, rows))
        + "\n==PROF== Disconnected\n"
    )


SOFTMAX = ("softmax_kernel(const float *, float *, int)", "9,000")
ADD = ("void at::native::vectorized_elementwise_kernel<4, float>(int)", "1,000")


def test_the_kernel_that_takes_most_is_told_of() -> None:
    found = digest(read_raw(raw(SOFTMAX, ADD)))
    assert found is not None
    assert (found.kernel, found.own, found.bound, found.source) == (
        "softmax_kernel",
        True,
        "memory",
        "outside",
    )
    assert (found.seconds, found.share, found.coverage) == pytest.approx((10e-6, 0.9, 0.9))
    values = {each.name: each.value for each in found.metrics}
    assert values["memory throughput"] == pytest.approx(0.912)
    assert (values["DRAM bytes"], values["registers a thread"]) == (268435456, 40)
    assert not {"tensor pipe", "occupancy"} & values.keys()
    assert [(stall.reason, stall.share) for stall in found.stalls] == [
        ("long scoreboard", 0.6), ("lg throttle", 0.3), ("wait", pytest.approx(0.06)),
    ]  # fmt: skip


def test_launches_of_one_kernel_count_together_and_its_longest_is_told_of() -> None:
    twice = [("own(int)", "600"), ("own(int)", "700"), ADD]
    found = digest(read_raw(raw(*twice)))
    assert found is not None and found.kernel == "own"
    assert (found.share, found.coverage) == pytest.approx((1300 / 2300, 1300 / 2300))


def test_a_librarys_kernel_is_no_coverage() -> None:
    found = digest(read_raw(raw(ADD)))
    assert found is not None and (found.own, found.coverage) == (False, 0.0)


def test_where_not_every_launch_was_seen_there_is_no_coverage() -> None:
    found = digest(read_raw(raw(*[SOFTMAX] * LAUNCHES)))
    assert found is not None and found.coverage is None


@pytest.mark.parametrize(
    ("memory", "compute", "bound"), [(20, 30, "latency"), (80, 90, "compute"), (50, 10, "memory")]
)
def test_the_bound(memory: int, compute: int, bound: str) -> None:
    changes = {
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": str(memory),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": str(compute),
    }
    found = digest(read_raw(raw(SOFTMAX, **changes)))
    assert found is not None and found.bound == bound


@pytest.mark.parametrize(("unit", "seconds"), [("us", 1e-3), ("nsecond", 1e-6), ("ms", 1.0)])
def test_times_have_units(unit: str, seconds: float) -> None:
    text = raw(("own(int)", "1,000")).replace('"ns"', f'"{unit}"')
    assert [launch.seconds for launch in read_raw(text)] == [pytest.approx(seconds)]
    assert not read_raw(text.replace(f'"{unit}"', '"parsec"'))


def test_the_lines_that_cost_most_are_those_of_the_kernel() -> None:
    first, second = hot_lines(SOURCE, "softmax_kernel")
    assert (first.line, first.file, first.share) == (12, "softmax.cu", 0.75)
    assert (second.line, second.text) == (20, "out[i] = expf(in[i] - most) / sum;")
    assert hot_lines(SOURCE, "nobody") == () == hot_lines(SOURCE[:300], "softmax_kernel")


@pytest.mark.parametrize("text", [
    "", "\0\x1b[2J" * 1000, '"' * 2_000_000, '"Kernel Name","gpu__time_duration.sum"\n' * 3,
    '"Kernel Name","gpu__time_duration.sum"\n"","ns"\n"k","1e999"\n"k","nan"\n"k"\n"k","-5"\n',
    '"' + "x" * 5_000_000 + '"\n', raw(SOFTMAX)[:400], '"File Path"\n"Function Name"\n"Line No"\n"1"\n"9e99","a"\n',
    f'"Function Name","k"\n"Line No","Source","{ncu.SAMPLES}"\n"1","a"\n"1e300","a","5"\n"2","a","nan"\n"3","a","-1"\n',
])  # fmt: skip
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert digest(read_raw(text)) is None
    assert hot_lines(text, "k") == ()


def test_a_hostile_name_stays_a_name() -> None:
    found = digest(read_raw(raw(("evil`\x1b[2J\x07" + "z" * 100_000 + "(int)", "10"))))
    assert found is not None and len(found.kernel) <= 50
    assert not any(sign in found.kernel for sign in "`\x1b\x07")


def test_a_metric_that_the_device_does_not_have_is_not_asked_for_again() -> None:
    text = "==PROF== Connected\n==ERROR== Failed to find metric regex:^sm__pipe_tensor_cycles_active(\\.|$)\n"
    missing = ncu.missing_in(text + "==ERROR== Failed to find metric regex:^not_ours")
    assert missing == {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"}
    words = ncu.command("ncu", "report", ["python"], missing)[1:]
    assert not any("sm__pipe_tensor" in word for word in words) and any(
        "dram__bytes.sum" in word for word in words
    )
    assert ncu.missing_in(f"==ERROR== Failed to find metric {ncu.SAMPLES}\n") == {ncu.SAMPLES}


RUN = {"raw": Ran(0, raw(SOFTMAX)), "source": Ran(0, SOURCE)}


def test_both_tables_make_a_digest_with_lines() -> None:
    runner = ScriptedRunner(RUN)
    found = read_tables(runner, "/usr/bin/ncu", "/f/report", "")
    assert isinstance(found, NcuDigest) and [line.line for line in found.lines] == [12, 20]
    assert all("/f/report.ncu-rep" in command for command in runner.commands)


@pytest.mark.parametrize(("output", "why"), [
    ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
     "RestrictProfilingToAdminUsers"),
    ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "gVisor"),
    ("==ERROR== The application returned an error code (11).", "The application returned an error code (11)."),
    ("==WARNING== No kernels were profiled.", "no kernel"),
    ("", "no kernel"),
])  # fmt: skip
def test_a_refusal_is_told_in_a_line(output: str, why: str) -> None:
    found = read_tables(ScriptedRunner({}), "ncu", "r", output)
    assert isinstance(found, str) and why in found and "\n" not in found


def test_a_table_that_takes_too_long_is_missed_alone() -> None:
    late = read_tables(ScriptedRunner(RUN | {"source": Ran(None)}), "ncu", "r", "")
    assert isinstance(late, NcuDigest) and not late.lines
    assert "no kernel" in str(read_tables(ScriptedRunner(RUN | {"raw": Ran(None)}), "ncu", "r", ""))
