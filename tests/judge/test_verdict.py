"""Outcomes of failed submissions, and the compiler output that they show."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kevin_env.judge.verdict import (
    LIMIT,
    Place,
    Step,
    diagnostics,
    first_line,
    is_link_error,
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


# what the submission did; and what that is while it is built, constructed and called
ENDS: list[tuple[Any, ...]] = [
    (failed("exception"), "compile/import", *["runtime/exception"] * 2),
    (failed("compiler", output=GCC), *["compile/compiler"] * 3),
    (failed("compiler", output="ld: a.o: undefined reference to `f'"), *["compile/link"] * 3),
    (failed("link"), *["compile/link"] * 3),
    (failed("jit"), *["compile/jit"] * 3),
    (failed("illegal_access"), "compile/import", *["runtime/illegal_access"] * 2),
    (failed("out_of_memory"), "compile/import", *["runtime/out_of_memory"] * 2),
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


CRASH = Ended(-signal.SIGSEGV)


@pytest.mark.parametrize("step", STEPS)
def test_the_line_of_a_crash_or_a_hang_is_reported_and_decides_nothing(step: Step) -> None:
    crash, hang = (verdict(trouble, Place(step), "/f", 33) for trouble in (CRASH, TimedOut(2)))
    assert (crash.line, hang.line) == (33, 33)
    assert crash.message == "Segmentation fault (SIGSEGV) in native code called from line 33"
    assert hang.message.endswith("took longer than 2 s (stopped at line 33)")
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


def test_escape_codes_are_removed() -> None:
    flood = failed(
        "exception", message="\x1b[2J\x1b]0;title\x07red\x00", frames=[(1, "\x1b[31mf", "\x07")]
    )
    outcome = verdict(flood, Place("call"), "/f")
    assert not any(ord(c) < 32 and c not in "\n\t" for c in outcome.message + outcome.details)


RULES = """
rule cxx
  command = g++ -Wall -DTORCH_EXTENSION_NAME=k -DTORCH_API_INCLUDE_EXTENSION_H -c $in -o $out
rule nvcc
  command = nvcc -DTORCH_EXTENSION_NAME=k -arch=sm_90 $how $in -o $out
rule link
  command = g++ $in -shared -Wl,--no-undefined -o $out $flags
"""


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


def built(folder: Path, rules: str, **files: str) -> str:
    """What a build of `files` prints, which fails."""
    inner = folder / "extensions" / "k"
    inner.mkdir(parents=True)
    for name, text in files.items():
        (inner / name.replace("_", ".")).write_text(text)
    (inner / "build.ninja").write_text(f"{RULES}{rules.format(inner=inner)}\n")
    done = subprocess.run(
        [sys.executable, "-m", "ninja", "-v"],
        cwd=inner,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


def assert_clean(text: str, folder: Path) -> None:
    assert str(folder) not in text
    for noise in ("ninja", "FAILED", "-DTORCH", "-shared", "[1/", "warning"):
        assert noise not in text


GCC_RULES = "build main.o: cxx {inner}/main.cpp\n"


def test_an_error_of_gcc_has_its_line_and_no_warnings(tmp_path: Path) -> None:
    source = "int f(int a) {\n    int never;\n    return undefined_name;\n}\nint g() { return 1 }\n"
    output = built(tmp_path, GCC_RULES, main_cpp=source)
    text = diagnostics(output, str(tmp_path))
    assert (
        first_line(text) == "main.cpp:3:12: error: 'undefined_name' was not declared in this scope"
    )
    assert "return undefined_name;" in text and "^~~~" in text
    assert "main.cpp:5:" in text
    assert "never" in output and "never" not in text
    assert_clean(text, tmp_path)
    assert not is_link_error(output)


def test_an_error_inside_a_template_shows_its_instantiation(tmp_path: Path) -> None:
    source = (
        "#include <algorithm>\n#include <vector>\nstruct Odd {};\nvoid f(std::vector<Odd>& v) {\n"
        + ("    std::sort(v.begin(), v.end());\n}\n")
    )
    output = built(tmp_path, GCC_RULES, main_cpp=source)
    text = diagnostics(output, str(tmp_path))
    assert "error: no match for 'operator<'" in first_line(text) and not first_line(
        text
    ).startswith("/")
    assert "main.cpp:5:14:   required from here" in text
    assert "note:" not in text and len(text) < len(output) / 3
    assert_clean(text, tmp_path)


def test_a_missing_symbol_is_a_link_error(tmp_path: Path) -> None:
    rules = GCC_RULES + "build k.so: link main.o\n"
    output = built(
        tmp_path,
        rules,
        main_cpp="int missing(int);\nint main() { int unused; return missing(3); }\n",
    )
    text = diagnostics(output, str(tmp_path))
    assert is_link_error(output)
    assert "undefined reference to `missing(int)'" in text
    assert_clean(text, tmp_path)


def test_a_missing_library_is_a_link_error(tmp_path: Path) -> None:
    rules = GCC_RULES + "build k.so: link main.o\n  flags = -lno_such_library\n"
    output = built(tmp_path, rules, main_cpp="int x;\n")
    assert is_link_error(output) and "cannot find -lno_such_library" in diagnostics(
        output, str(tmp_path)
    )


def test_a_compile_error_is_no_link_error_though_it_names_one(tmp_path: Path) -> None:
    output = built(tmp_path, GCC_RULES, main_cpp="#error undefined reference to nothing\n")
    assert not is_link_error(output)


@needs_nvcc
def test_errors_of_nvcc_show_their_instantiations(tmp_path: Path) -> None:
    source = """template <typename T> __global__ void f(T* x) { x[0].nothing(); }
void go(float* x) { int unused; f<<<1, 1>>>(x); }
"""
    output = built(tmp_path, "build k.o: nvcc {inner}/k.cu\n  how = -c\n", k_cu=source)
    text = diagnostics(output, str(tmp_path))
    assert 'k.cu(1): error: expression must have class type but it has type "float"' in text
    assert 'instantiation of "void f(T *) [with T=float]" at line 2' in text
    assert "unused" not in text
    assert_clean(text, tmp_path)
    assert not is_link_error(output)


@needs_nvcc
@pytest.mark.parametrize(
    ("how", "link"), [("-rdc=true", True), ("-c", False)], ids=["nvlink", "ptxas"]
)
def test_a_missing_device_function_is_shown(tmp_path: Path, how: str, link: bool) -> None:
    source = "extern __device__ int other(int);\n__global__ void f(int* x) { x[0] = other(3); }\n"
    output = built(tmp_path, f"build k.o: nvcc {{inner}}/k.cu\n  how = {how}\n", k_cu=source)
    text = diagnostics(output, str(tmp_path))
    assert is_link_error(output) is link
    assert "_Z5otheri" in text
    assert_clean(text, tmp_path)


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
    ],
)  # fmt: skip
def test_sources_and_libraries_are_named_without_their_folders(text: str, shown: str) -> None:
    assert without_paths(text, "/tmp/run") == shown
