"""Kernels that are compiled in copies of a candidate are those that its calls need. Triton compiles
without a GPU.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rehearsal

from kevin_env.candidate.compilations import Compilations as Compiler
from kevin_env.candidate.precompile import TUNING, prepare_kernels
from kevin_env.candidate.tape import Tape

pytest.importorskip("triton")
KERNELS = {"plain": 4, "shifted": 2, "tuned": 4, "guessed": 2, "operated": 2}
"""How often each is compiled for all cases: sizes that 16 divides are compiled for, and types, and
constants.
"""
Compilations = list[tuple[str, bool]]


@dataclass(frozen=True)
class Rehearsed:
    """A candidate's folder as the copies left it.

    Attributes:
        folder: The folder.
        files: What lay in it then.
        compiled: The kernels, and whether they were there already.
    """

    folder: Path
    files: frozenset[Path]
    compiled: Compilations


def run(what: str, folder: Path, library: Path | None = None) -> Compilations:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if library is not None:
        environment |= {"TRITON_LIBCUDA_PATH": str(library), "LD_LIBRARY_PATH": str(library)}
    command = [sys.executable, str(rehearsal.__file__), what, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [(name, was_there) for name, was_there in json.loads(done.stdout)]


def stub_of_the_driver(folder: Path) -> Path:
    """A `libcuda.so.1` with every function that Triton's C sources call: enough to link and to load
    them.
    """
    from triton.backends import nvidia

    source = (Path(next(iter(nvidia.__path__))) / "driver.c").read_text()
    functions = sorted(set(re.findall(r"\bcu[A-Z]\w+(?=\()", source)))
    (folder / "stub.c").write_text(
        "\n".join(f"int {name}(void) {{ return 999; }}" for name in functions)
    )
    target = folder / "libcuda.so.1"
    subprocess.run(
        ["gcc", "-shared", "-o", target, "-Wl,-soname,libcuda.so.1", folder / "stub.c"], check=True
    )
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return (
        stub_of_the_driver(tmp_path_factory.mktemp("driver"))
        if shutil.which("gcc") and headers.exists()
        else None
    )


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory, library: Path | None) -> Rehearsed:
    folder = tmp_path_factory.mktemp("candidate")
    compiled = run("copies", folder, library)
    return Rehearsed(folder, frozenset(folder.rglob("*")), compiled)


@pytest.mark.full
def test_each_kernel_is_compiled_once_and_nothing_but_the_cache_is_left(
    rehearsed: Rehearsed,
) -> None:
    assert Counter(name for name, _ in rehearsed.compiled) == KERNELS
    assert not any(was_there for _, was_there in rehearsed.compiled)
    assert len([each for each in rehearsed.files if each.suffix == ".cubin"]) == len(
        rehearsed.compiled
    )
    assert not [each for each in rehearsed.files if each.match("*.autotune.json")], (
        "times of configurations that never ran"
    )
    at_the_top = {path.name for path in rehearsed.files if path.parent == rehearsed.folder}
    assert at_the_top == {"submission.py", "triton", "copies.log"}


@pytest.mark.full
def test_calls_on_true_tensors_find_everything_compiled(rehearsed: Rehearsed) -> None:
    found = run("calls", rehearsed.folder)
    assert {name for name, _ in found} == set(KERNELS)
    assert all(was_there for _, was_there in found)


@pytest.mark.full
def test_copies_of_a_warm_process_do_not_compile_the_c_of_triton_again(
    library: Path | None, tmp_path: Path
) -> None:
    if library is None:
        pytest.skip("no C compiler, or no headers of Python, here")
    code = f"""
import os
from triton.backends.nvidia.driver import CudaUtils
from kevin_env.judge.workers.warm import warm_triton
warm_triton(90)
os.environ |= {{"PATH": "", "TRITON_CACHE_DIR": {str(tmp_path)!r}}}
if os.fork() == 0:
    os._exit(callable(CudaUtils().load_binary))
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_LIBCUDA_PATH": str(library), "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "1\n", done.stderr
    assert not list(tmp_path.iterdir())


def test_a_process_with_several_threads_compiles_without_a_fork(tmp_path: Path) -> None:
    (reader, writer), ran = os.pipe(), list[int]()
    os.write(writer, b".")  # there is room for a fork
    begin = Compiler(tmp_path, reader, writer, Tape()).begin
    thread = threading.Thread(target=begin, args=("a", lambda: ran.append(os.getpid())))
    thread.start()
    thread.join(20)
    assert ran == [os.getpid()]


def test_what_was_compiled_is_loaded_once_and_tuners_take_less_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime import driver
    from triton.testing import do_bench

    loads = list[tuple[Any, ...]]()
    utils = SimpleNamespace(load_binary=lambda *given: loads.append(given) or given)
    device = SimpleNamespace(utils=utils, get_current_device=lambda: 0)
    monkeypatch.setattr(driver, "_active", device)
    monkeypatch.setattr(do_bench, "__defaults__", do_bench.__defaults__)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    (tmp_path / "hash").mkdir()
    (tmp_path / "hash" / "kernel.cubin").write_bytes(b"code")
    (tmp_path / "hash" / "kernel.json").write_text('{"name": "kernel", "shared": 64}')
    prepare_kernels()
    assert loads == [("kernel", b"code", 64, 0)]
    assert utils.load_binary(*loads[0]) == loads[0] and len(loads) == 1
    assert utils.load_binary("kernel", b"other", 64, 0) and len(loads) == 2
    assert do_bench.__defaults__ and do_bench.__defaults__[:2] == TUNING
