"""Outcomes of failed submissions, and the compiler output that they show."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kevin_env.judge.verdict import (
    LIMIT,
    Place,
    Step,
    diagnostics,
    first_line,
    is_link_error,
    quoted_lines,
    verdict,
    without_paths,
)
from kevin_env.judge.workers.errors import Broken, CandidateError, Ended, Failed, Failure, TimedOut

STEPS: tuple[Step, ...] = ("build", "construct", "call")


GCC = "/tmp/kevin-x/extensions/k/main.cpp:3:1: error: expected ';'\n    3 | int x\n      | ^"


def failed(kind: str, **more: object) -> Failed:
    values = {
        "type": "ValueError",
        "message": "bad",
        "frames": [(7, "forward", "    f(x)")],
        "output": "",
    }
    return Failed(Failure.model_validate({"kind": kind, **values, **more}))


def test_the_headline_of_an_error_of_tritons_compiler_is_its_reason() -> None:
    errors = pytest.importorskip("triton.compiler.errors")
    kernel = "def kernel(x):\n    y = x ^ 1\n    z = y @ y\n"
    node = ast.parse(kernel).body[0].body[1]  # type: ignore[attr-defined]
    for reason, said in (
        ("NameError('FLOOR is not a constexpr')", "NameError('FLOOR is not a constexpr')"),
        ("Mismatched types:\n^ float32\nint8", "Mismatched types:"),
        (None, "at 3:4:"),
    ):
        text = str(errors.CompilationError(kernel, node, reason))
        found = verdict(failed("jit", type="CompilationError", message=text), Place("call"), "/tmp")
        assert found.message == f"CompilationError: {said}"
        assert "z = y @ y" in found.details


# what the submission did; and what that is while it is built, constructed and called
ENDS: list[tuple[Any, ...]] = [
    (failed("exception"), "compile/import", *["runtime/exception"] * 2),
    (failed("compiler", output=GCC), *["compile/compiler"] * 3),
    (failed("compiler", output="ld: a.o: undefined reference to `f'"), *["compile/link"] * 3),
    (failed("link"), *["compile/link"] * 3),
    (failed("jit"), *["compile/jit"] * 3),
    (failed("illegal_access"), "compile/import", *["runtime/illegal_access"] * 2),
    (failed("out_of_memory"), "compile/import", *["runtime/out_of_memory"] * 2),
    (failed("a kind of its own"), "compile/import", *["runtime/exception"] * 2),
    (failed("exit"), "compile/import", *["runtime/exit"] * 2),
    (TimedOut(3), "compile/timeout", *["runtime/timeout"] * 2),
    (Ended(3), "compile/killed", *["runtime/exit"] * 2),
    (Ended(-signal.SIGSEGV), "compile/killed", *["runtime/signal"] * 2),
    (Ended(None), "compile/killed", *["runtime/killed"] * 2),
    (Ended(limit="more than 512 processes"), "compile/killed", *["runtime/killed"] * 2),
    (Broken("garbage"), *["runtime/protocol"] * 3),
]


@pytest.mark.parametrize(
    ("trouble", *STEPS), ENDS, ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
def test_the_stage_and_what_happened_decide(
    trouble: CandidateError, build: str, construct: str, call: str
) -> None:
    for step, expected in zip(STEPS, (build, construct, call), strict=True):
        outcome = verdict(trouble, Place(step), "/tmp/kevin-x")
        assert f"{outcome.category}/{outcome.kind}" == expected
        assert outcome.message


def test_a_failed_call_names_its_input_set() -> None:
    for trouble in (failed("exception"), TimedOut(1), Ended(1), Broken("x")):
        assert (
            verdict(trouble, Place("call", "main/wide"), "/f").model_dump()["input_set"]
            == "main/wide"
        )


def test_a_failed_construction_names_its_case_if_there_are_several() -> None:
    for case, message in ((None, "ValueError: bad"), ("odd", "in case `odd`: ValueError: bad")):
        outcome = verdict(failed("exception"), Place("construct", case=case), "/f")
        assert outcome.message == message


def test_an_exception_has_its_line_and_frames() -> None:
    outcome = verdict(failed("exception"), Place("call", "main/own"), "/f")
    assert outcome.line == 7 and outcome.message == "ValueError: bad"
    assert "line 7, in forward" in outcome.details and "f(x)" in outcome.details


def test_a_compilers_message_names_no_folder() -> None:
    outcome = verdict(failed("compiler", output=GCC), Place("build"), "/tmp/kevin-x")
    assert outcome.message == "main.cpp:3:1: error: expected ';'"
    assert "/tmp" not in outcome.details and "int x" in outcome.details


def test_the_text_of_a_message_decides_nothing() -> None:
    text = "CUDA out of memory. illegal memory access, timeout, error: undefined reference"
    assert (
        verdict(
            failed("exception", message=text, type="OutOfMemoryError"), Place("call"), "/f"
        ).kind
        == "exception"
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_message_explains_why_a_first_call_has_another_limit(first: bool) -> None:
    hang = verdict(TimedOut(32), Place("call", "main/own", first=first), "/f")
    doing = (
        "the first call of ModelNew, including compilation," if first else "one call of ModelNew"
    )
    assert hang.message.startswith(f"{doing} took longer than 32 s: slow code, ")


def test_one_that_does_nothing_is_told_so() -> None:
    hang = verdict(TimedOut(20, asleep=True), Place("call", "main/own", first=True), "/f", 4)
    assert hang.message == (
        "one call of ModelNew used no processor time for 20 s (stopped at line 4): "
        "a deadlock, a wait that never ends, or memory corrupted by an out-of-bounds write"
    )


CRASH = Ended(-signal.SIGSEGV)


@pytest.mark.parametrize("step", STEPS)
def test_the_line_of_a_crash_or_a_hang_is_reported_and_decides_nothing(step: Step) -> None:
    crash, hang = (verdict(trouble, Place(step), "/f", 33) for trouble in (CRASH, TimedOut(2)))
    assert (crash.line, hang.line) == (33, 33)
    assert crash.message == "Segmentation fault (SIGSEGV) in native code called from line 33"
    words = hang.message.partition("took longer than 2 s (stopped at line 33)")[2]
    assert ("corrupted by an out-of-bounds write" in words) is (step == "call")
    aborted = verdict(Ended(-signal.SIGABRT), Place(step), "/f", 33).message
    assert aborted.endswith("or memory corrupted by an out-of-bounds write") or step == "build"
    for trouble in (CRASH, TimedOut(2), Ended(3), Ended(limit="x"), Broken("x")):
        plain, claimed = (
            verdict(trouble, Place(step), "/f"),
            verdict(trouble, Place(step), "/f", 33),
        )
        assert (plain.category, plain.kind) == (claimed.category, claimed.kind)


def test_messages_name_no_machine_paths() -> None:
    symbol, files = "undefined symbol: _Z1f", "/usr/include/c++/12/vector:3 or /etc/motd"
    text = f"/tmp/kevin-x/extensions/k/k.so: {symbol}, see {files}"
    outcome = verdict(
        failed("link", message=text, type="ImportError"), Place("build"), "/tmp/kevin-x"
    )
    assert outcome.message == f"ImportError: k.so: {symbol}, see {files}"
    assert "kevin-x" not in outcome.details


def test_a_megabyte_of_text_is_cut() -> None:
    flood = failed("exception", message="x" * 9_000, frames=[(1, "f" * 1_000_000, "y" * 1_000_000)])
    outcome = verdict(flood, Place("call"), "/f")
    assert len(outcome.message) < 500 and len(outcome.details) < 6_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize("loop", ["/*", "/a", "/a.cu:1:1: error: x\n", "a(", "error "])
def test_compiler_output_of_a_kernel_in_a_loop_is_read_soon(loop: str) -> None:
    diagnostics(loop * 30_000, "/tmp/kevin-x")


def test_a_long_message_is_cut_in_the_traceback_and_more_so_in_the_message() -> None:
    outcome = verdict(failed("exception", message="x" * 3_000), Place("call"), "/f")
    assert 1_500 < len(outcome.details) < 1_800 and "characters left out" in outcome.details
    assert len(outcome.message) <= 300


def test_escape_codes_are_removed() -> None:
    flood = failed(
        "exception", message="\x1b[2J\x1b]0;title\x07red\x00", frames=[(1, "\x1b[31mf", "\x07")]
    )
    outcome = verdict(flood, Place("call"), "/f")
    assert not any(ord(c) < 32 and c not in "\n\t" for c in outcome.message + outcome.details)


class Diagnosis(NamedTuple):
    """What is made of a compiler's output.

    Attributes:
        link: Whether it is an error of the linker.
        shown: Texts that are shown.
        hidden: Texts of the output that are not shown.
    """

    link: bool
    shown: tuple[str, ...]
    hidden: tuple[str, ...] = ()


DIAGNOSES = {  # by the recorded output
    "gcc_error": Diagnosis(
        False,
        (
            "main.cpp:3:12: error: 'undefined_name' was not declared in this scope",
            "return undefined_name;", "^~~~", "main.cpp:5:",
        ),
        ("never",),
    ),
    "gcc_template": Diagnosis(
        False,
        ("error: no match for 'operator<'", "main.cpp:5:14:   required from here"),
        ("note:",),
    ),
    "gcc_linker_words": Diagnosis(False, ("#error undefined reference to nothing",)),
    "ld_symbol": Diagnosis(True, ("undefined reference to `missing(int)'",), ("unused",)),
    "ld_library": Diagnosis(True, ("cannot find -lno_such_library",)),
    "nvcc_template": Diagnosis(
        False,
        (
            'k.cu(1): error: expression must have class type but it has type "float"',
            'instantiation of "void f(T *) [with T=float]" at line 2',
        ),
        ("unused",),
    ),
    "nvlink": Diagnosis(True, ("_Z5otheri",)),
    "ptxas": Diagnosis(False, ("_Z5otheri",)),
}  # fmt: skip


def assert_diagnosed(name: str, output: str, folder: str) -> None:
    diagnosis, text = DIAGNOSES[name], diagnostics(output, folder)
    assert is_link_error(output) is diagnosis.link
    for shown in diagnosis.shown:
        assert shown in text
    for hidden in diagnosis.hidden:
        assert hidden in output and hidden not in text
    assert diagnosis.shown[0] in first_line(text)
    assert diagnosis.link or not first_line(text).startswith("/")
    assert len(text) < max(1_000, len(output) / 3)
    for noise in (folder, "ninja", "FAILED", "-DTORCH", "-shared", "[1/", "warning"):
        assert noise not in text


@pytest.mark.parametrize("name", DIAGNOSES)
def test_the_output_of_a_compiler_is_cut_to_its_errors(name: str) -> None:
    output = (Path(__file__).parent / "compiler_outputs" / f"{name}.txt").read_text()
    assert_diagnosed(name, output, "/tmp/kevin-x")


RULES = """
rule cxx
  command = g++ -Wall -DTORCH_EXTENSION_NAME=k -DTORCH_API_INCLUDE_EXTENSION_H -c $in -o $out
rule nvcc
  command = nvcc -DTORCH_EXTENSION_NAME=k -arch=sm_90 -c $in -o $out
rule link
  command = g++ $in -shared -Wl,--no-undefined -o $out
build main.o: cxx {inner}/main.cpp
build k.so: link main.o
build k.o: nvcc {inner}/k.cu
"""
BUILDS = {  # sources of recorded outputs: target, file and text
    "gcc_error": ("k.so", "main.cpp", "int f(int a) {\n    int never;\n    return undefined_name;\n}\n"
                  "int g() { return 1 }\n"),
    "ld_symbol": ("k.so", "main.cpp", "int missing(int);\n"
                  "int main() { int unused; return missing(3); }\n"),
    "nvcc_template": ("k.o", "k.cu", "template <typename T> __global__ void f(T* x) "
                      "{ x[0].nothing(); }\n"
                      "void go(float* x) { int unused; f<<<1, 1>>>(x); }\n"),
}  # fmt: skip
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


@pytest.mark.parametrize(
    "name",
    ["gcc_error", "ld_symbol", pytest.param("nvcc_template", marks=[pytest.mark.full, needs_nvcc])],
)
def test_the_compilers_of_this_machine_print_what_was_recorded(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "extensions" / "k"
    inner.mkdir(parents=True)
    target, file, source = BUILDS[name]
    (inner / file).write_text(source)
    (inner / "build.ninja").write_text(RULES.format(inner=inner))
    done = subprocess.run(
        [sys.executable, "-m", "ninja", "-v", target],
        cwd=inner,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    assert done.returncode != 0
    assert_diagnosed(name, done.stdout + done.stderr, str(tmp_path))


def test_lines_of_files_outside_the_candidates_folder_are_not_quoted() -> None:
    output = (
        "/home/me/keys.h:1:1: error: 'KEY' does not name a type\n    1 | KEY=hunter2\n      | ^~~\n"
        "/f/main.cpp:7:3: error: expected ';'\n    7 |   mine\n      |   ^~~~\n"
    )
    text = diagnostics(output, "/f")
    assert "hunter2" not in text and "keys.h:1:1" in text and "7 |   mine" in text


def test_a_quoted_line_has_its_number_in_the_submission() -> None:
    """The compiler counts from the beginning of a string."""
    quoted = "main.cpp:3:12: error\n    3 |     return undefined_name;\n      |            ^~~\n"
    assert quoted_lines(
        quoted, f'import torch\nCPP = r"""\n{"a" * 9}\n  return undefined_name;'
    ) == (4,)
    assert quoted_lines("k.cu(3): error\n    return undefined_name;", "return undefined_name;") == (
        1,
    )
    assert quoted_lines(quoted, "return undefined_name;\n" * 2) == (), "which of them?"
    assert quoted_lines("k.cu(3): error\n  }\n\n", "{\n}\n") == (), "many lines end so"


def test_at_most_twelve_errors_are_shown_and_no_more_than_the_limit() -> None:
    output = "\n".join(f"/f/k/a.cpp:{i}:1: error: {'x' * 900}" for i in range(50))
    text = diagnostics(output, "/f")
    assert "a.cpp:0:1" in text and "a.cpp:12:1" not in text and "/f" not in text
    assert len(text) < LIMIT + 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("python: /tmp/run/extensions/k/main.cpp:12: void f(): Assertion `n > 0' failed.",
         "python: main.cpp:12: void f(): Assertion `n > 0' failed."),
        ("/a/.venv/lib/torch/include/c10/util/Half.h:4:2: error", "Half.h:4:2: error"),
        ("open('/etc/passwd'), a/b/c.py, ../k.h and https://pytorch.org/docs/a.py",) * 2,
        ("/usr/lib/libc.so.6(+0x3c)", "libc.so.6(+0x3c)"),
        ('File "/tmp/run/submission.py", line 3', 'File "submission.py", line 3'),
        ("cannot open /tmp/run/extensions/k/weights.bin", "cannot open weights.bin"),
        ("no room in /tmp/run or /tmp/run2/k.bin", "no room in  or /tmp/run2/k.bin"),
    ],
)  # fmt: skip
def test_sources_and_libraries_are_named_without_their_folders(text: str, shown: str) -> None:
    assert without_paths(text, "/tmp/run") == shown
