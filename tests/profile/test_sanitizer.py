"""compute-sanitizer's reports as 2025.3 and older versions print them, and text that nobody
printed.
"""

import pytest
from scripted_runner import ScriptedRunner

from kevin_env.outcome import CompileError, Correct, Incorrect, RuntimeFailure, SanitizerDigest
from kevin_env.profile.sanitizer import TOOLS, cause_of, read_report, run_sanitizer
from kevin_env.profile.target import DIFFERENT
from kevin_env.profile.tools import Ran

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 16 bytes
=========     at scale(const float4 *, float *, int)+0x70 in /tmp/kevin-run-1/kernel.cu:17
=========     by thread (96,0,0) in block (3906,0,1)
=========     Access to 0x79fd33fd0980 is out of bounds
=========     and is 129 bytes after the nearest allocation at 0x79fd33c00000 of size 4,000,000 bytes
=========
========= Invalid __global__ read of size 4 bytes
=========     at other(int)+0x70 in /tmp/kevin-run-1/kernel.cu:99
=========     by thread (1,0,0) in block (0,0,0)
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call
========= ERROR SUMMARY: 34 errors
"""
OLDER = """========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 4 bytes
=========     at 0x380 in /src/memory_errors.cu:61:unaligned_kernel(int *)
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x400 is misaligned
========= ERROR SUMMARY: 1 error
"""
TRITON = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at add_kernel+0x1b0 in submission.py:12
=========     by thread (31,0,0) in block (7,0,0)
=========     Access to 0x7f00 is out of bounds
========= ERROR SUMMARY: 1 error
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void sum<(bool)0>(int *, int *)+0x90 in /src/block_error.cu:41
=========     and Read access at void sum<(bool)0>(int *, int *)+0x100 in /src/block_error.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INIT = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x88 in kernel(float *)
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 257 errors
========= ERROR SUMMARY: 157 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
REFUSED = "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation\n"


def test_the_first_error_of_a_memory_check() -> None:
    found = read_report(MEMCHECK, "memcheck")
    assert found is not None and found.source == "outside"
    assert (found.error, found.size, found.count) == (
        "Invalid __global__ read of size 16 bytes",
        16,
        34,
    )
    assert (found.kernel, found.file, found.line) == ("scale", "kernel.cu", 17)
    assert (found.thread, found.block) == ((96, 0, 0), (3906, 0, 1))
    assert "129 bytes after the nearest allocation" in found.details


@pytest.mark.parametrize(
    ("text", "kernel", "file", "line"),
    [
        (OLDER, "unaligned_kernel", "memory_errors.cu", 61),
        (TRITON, "add_kernel", "submission.py", 12),
        (RACE, "sum", "block_error.cu", 41),
        (INIT, "kernel", "", None),
    ],
)
def test_where_an_error_is(text: str, kernel: str, file: str, line: int | None) -> None:
    found = read_report(text, "memcheck")
    assert found is not None and (found.kernel, found.file, found.line) == (kernel, file, line)


def test_both_sides_of_a_race_are_told() -> None:
    found = read_report(RACE, "racecheck")
    assert found is not None and found.error == "Error: Race reported between Write access"
    assert "Read access at" in found.details and ":51" in found.details and found.thread is None


def test_a_clean_report_is_one_without_an_error() -> None:
    assert read_report(CLEAN, "memcheck") == SanitizerDigest(tool="memcheck")
    assert read_report(NO_RACE, "racecheck") == SanitizerDigest(tool="racecheck")


def test_a_report_that_was_cut_off_is_no_clean_one() -> None:
    assert read_report("========= COMPUTE-SANITIZER\n", "memcheck") is None
    assert (
        read_report("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 3 errors\n", "memcheck")
        is None
    )
    cut = read_report(MEMCHECK[: MEMCHECK.index("by thread")], "memcheck")
    assert cut is not None and cut.line == 17 and cut.thread is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "========= Invalid __global__ read of size " + "9" * 1_000_000,
        "========= Invalid __global__ read of size 4 bytes\n=========     at \x1b[2J"
        + "(" * 100_000,
        "========= Invalid __global__ read of size 4\n========= by thread (1,2) in block (9999,,,)\n"
        * 10_000,
        "========= Error: Race reported between Write access at " + "a " * 100_000,
        "\0\ud800========= Invalid",
    ],
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = read_report(text, "memcheck")
    assert found is None or (len(found.model_dump_json()) < 2000 and "\x1b" not in found.kernel)


def runner(**reports: str) -> ScriptedRunner:
    return ScriptedRunner({}, {f"{tool}.log": text for tool, text in reports.items()})


def test_tools_are_tried_until_one_finds_something() -> None:
    script = runner(racecheck=NO_RACE, memcheck=MEMCHECK, initcheck=INIT)
    found = run_sanitizer(script, "cs", TOOLS["changing"], "/f", ["python"])
    assert isinstance(found, SanitizerDigest) and (found.tool, found.line) == ("memcheck", 17)
    assert [command[command.index("--tool") + 1] for command in script.commands] == [
        "racecheck",
        "memcheck",
    ]
    assert script.commands[0][-1] == "python"


def test_nothing_found_and_nothing_told_are_two_things() -> None:
    clean = run_sanitizer(runner(memcheck=CLEAN), "cs", ("memcheck",), "/f", ["python"])
    assert clean == SanitizerDigest(tool="memcheck")
    assert "gVisor" in str(
        run_sanitizer(runner(memcheck=REFUSED), "cs", ("memcheck",), "/f", ["python"])
    )
    assert "is truncated" in str(run_sanitizer(runner(), "cs", ("memcheck",), "/f", ["python"]))
    late = ScriptedRunner({"--tool": Ran(None)})
    assert "longer than" in str(run_sanitizer(late, "cs", ("memcheck",), "/f", ["python"]))


def test_a_program_that_ended_early_is_not_called_clean() -> None:
    early = ScriptedRunner({"--tool": Ran(1)}, {"memcheck.log": CLEAN})
    assert "exit code 1" in str(run_sanitizer(early, "cs", ("memcheck",), "/f", ["python"]))
    differs = ScriptedRunner({"--tool": Ran(DIFFERENT)}, {"memcheck.log": CLEAN})
    assert run_sanitizer(differs, "cs", ("memcheck",), "/f", ["python"]) == SanitizerDigest(
        tool="memcheck"
    )


def test_only_what_a_sanitizer_can_explain_is_looked_into() -> None:
    wrong = {
        kind: Incorrect(kind=kind, message="", input_set="main/own")
        for kind in ("values", "nondeterministic", "shape")
    }
    assert cause_of(RuntimeFailure(kind="illegal_access", message="")) == "illegal_access"
    assert (cause_of(wrong["values"]), cause_of(wrong["nondeterministic"])) == (
        "values",
        "nondeterministic",
    )
    others = (
        wrong["shape"],
        RuntimeFailure(kind="exception", message=""),
        CompileError(kind="jit", message=""),
    )
    assert [cause_of(each) for each in (*others, Correct(kind="timed", message=""))] == [None] * 4
