"""Real output of ninja, g++, ld and nvcc, as torch's extension builder runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kevin_env.judge.verdict import (
    LIMIT,
    clip,
    diagnostics,
    first_line,
    is_link_error,
    traceback_of,
    without_paths,
)

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


def test_an_error_of_gcc_is_told_with_its_line_and_without_warnings(tmp_path: Path) -> None:
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


def test_an_error_inside_a_template_tells_where_it_was_asked_for(tmp_path: Path) -> None:
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


def test_a_missing_header_is_told(tmp_path: Path) -> None:
    text = diagnostics(built(tmp_path, GCC_RULES, main_cpp='#include "no_such.h"\n'), str(tmp_path))
    assert text.startswith("main.cpp:1:10: fatal error: no_such.h: No such file")


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


def test_two_definitions_are_a_link_error(tmp_path: Path) -> None:
    rules = GCC_RULES + "build two.o: cxx {inner}/two.cpp\nbuild k.so: link main.o two.o\n"
    output = built(
        tmp_path, rules, main_cpp="int f() { return 1; }\n", two_cpp="int f() { return 2; }\n"
    )
    assert is_link_error(output) and "multiple definition of `f()'" in diagnostics(
        output, str(tmp_path)
    )


def test_a_compile_error_is_no_link_error_though_it_names_one(tmp_path: Path) -> None:
    output = built(tmp_path, GCC_RULES, main_cpp="#error undefined reference to nothing\n")
    assert not is_link_error(output)


@needs_nvcc
def test_errors_of_nvcc_are_told_with_what_was_instantiated(tmp_path: Path) -> None:
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
def test_a_missing_device_function_is_told(tmp_path: Path, how: str, link: bool) -> None:
    source = "extern __device__ int other(int);\n__global__ void f(int* x) { x[0] = other(3); }\n"
    output = built(tmp_path, f"build k.o: nvcc {{inner}}/k.cu\n  how = {how}\n", k_cu=source)
    text = diagnostics(output, str(tmp_path))
    assert is_link_error(output) is link
    assert "_Z5otheri" in text
    assert_clean(text, tmp_path)


def test_output_without_any_known_error_is_shown_without_commands() -> None:
    output = "[1/2] /usr/bin/c++ -DTORCH_X -c x.cpp\nc++: fatal error: Killed signal terminated program cc1plus\nninja: x"
    assert diagnostics(output, "/f") == "c++: fatal error: Killed signal terminated program cc1plus"
    assert diagnostics("", "/f") == ""


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


def test_the_middle_is_left_out_of_what_is_too_long() -> None:
    text = clip("a" * 50 + "b" * 100 + "c" * 50, 100)
    assert text == f"{'a' * 50}\n... 100 characters left out ...\n{'c' * 50}"
    assert clip("short", 100) == "short"


def test_a_traceback_looks_like_pythons() -> None:
    assert traceback_of(
        [(3, "f", "    g(x)"), (9, "g", "1 / 0")], "ZeroDivisionError", "division"
    ) == (
        "Traceback (the submission's own frames):\n  line 3, in f\n    g(x)\n  line 9, in g\n    1 / 0\n"
        "ZeroDivisionError: division"
    )
    assert traceback_of([], "ImportError", "no") == "ImportError: no"
