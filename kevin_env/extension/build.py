"""Builds an extension with the short headers, or with torch's own if that fails."""

import contextlib
import functools
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch.utils import cpp_extension

from kevin_env.extension.sources import HEADERS, Needs, read_sources

TESTED = ("2.11", "2.13")
"""Versions of torch tested with the short headers; all others use the full headers."""
PYBIND = (3, 0)
"""The version of torch's pybind11 whose conversions and messages the short headers have."""
SECONDS = 120.0
NICENESS = 10
"""Niceness of compilers, so that they yield to timed processes."""
GRACE = 0.2
"""Seconds for ninja to print the failed compiler's output."""
_RULE = "\nrule short_stub\n  command = ld -shared -soname $soname -o $out -b binary /dev/null\n\n"
Request = dict[str, Any]


class ShortPath:
    """Replaces two steps of torch's build: compiling, and importing the result.

    `load` and `load_inline` stay torch's own, with their files, names, locks and caches.

    Attributes:
        served: Extensions built with the short headers, by path, with the request.
    """

    def __init__(self) -> None:
        self.served: dict[str, Request] = {}
        self._build = cpp_extension._write_ninja_file_and_build_library
        self._import = cpp_extension._import_module_from_library

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Builds a library. Raises the errors of torch's own build."""
        request = inspect.signature(self._build).bind(*args, **kwargs).arguments
        key = _key(request["build_directory"], request["name"])
        self.served.pop(key, None)
        if _build_short(request):
            self.served[key] = request
        else:
            self._build(**request)

    def load(self, module_name: str, path: str, is_python_module: bool) -> Any:
        """Imports a library; rebuilds it with the full headers if a short build does not import."""
        request = self.served.get(_key(path, module_name))
        if request is None:
            return self._import(module_name, path, is_python_module)
        try:
            return self._import(module_name, path, is_python_module)
        except Exception:  # the full headers may work, or show the reason
            del self.served[_key(path, module_name)]
            self._build(**request)
            return self._import(module_name, path, is_python_module)


def install() -> ShortPath | None:
    """Makes `load` and `load_inline` try the short headers, on versions of torch tested with them.

    Also disables precompiled headers (`use_pch`): torch would write them beside its own headers.
    """
    cpp_extension._check_and_build_extension_h_precompiler_headers = lambda *args, **kwargs: None
    if not _supported():
        return None
    path = ShortPath()
    cpp_extension._write_ninja_file_and_build_library = path.build
    cpp_extension._import_module_from_library = path.load
    cpp_extension._run_ninja_build = run_ninja_build
    return path


def torch_functions() -> frozenset[str]:
    """Names of torch's functions of tensors."""
    return frozenset(dir(getattr(torch._C, "_VariableFunctions")))  # noqa: B009  (no stub has it)


def _key(folder: str, name: str) -> str:
    return str(Path(folder) / name)


def _supported() -> bool:
    tested = ".".join(torch.__version__.split(".")[:2]) in TESTED
    plain = not sysconfig.get_config_var("Py_GIL_DISABLED") and not torch.version.hip
    return tested and plain and _pybind() // 100 == PYBIND[0] * 100 + PYBIND[1]


@functools.cache
def _pybind() -> int:
    """The version of torch's pybind11 as one number, such as 30004."""
    text = _torch_header("pybind11/detail/common.h")
    parts = (
        re.search(rf"define PYBIND11_VERSION_{part} (\d+)", text)
        for part in ("MAJOR", "MINOR", "MICRO")
    )
    major, minor, micro = (int(match[1]) if match else 0 for match in parts)
    return (major * 100 + minor) * 100 + micro


def _torch_header(name: str) -> str:
    try:
        return (Path(torch.__file__).parent / "include" / name).read_text(encoding="utf-8")
    except OSError:
        return ""


def _build_short(request: Request) -> bool:
    """Whether the library was built with the short headers.

    Raises:
        RuntimeError: as torch's own build, if that would certainly fail as well.
    """
    errors = None
    try:
        needs = _needs(request)
        return needs is not None and _run(request, needs)
    except subprocess.CalledProcessError as failed:
        with contextlib.suppress(Exception):  # in doubt, try the full headers
            errors = _final_errors(request, failed.output)
    except Exception:
        return False
    if errors is not None:
        raise_error(
            f"Error building extension '{request['name']}'",
            ["ninja"],
            errors.encode(),
            request["verbose"],
        )
    return False


def _final_errors(request: Request, output: bytes) -> str | None:
    from kevin_env.extension.final import final_errors

    flags = [*request["extra_cflags"], *request["extra_cuda_cflags"]]
    return final_errors(
        output.decode(errors="replace"), request["sources"], request["extra_include_paths"], flags
    )


def _needs(request: Request) -> Needs | None:
    if request.get("with_sycl") or request.get("is_standalone"):
        return None
    return read_sources(request["sources"], request["extra_include_paths"], torch_functions())


def _run(request: Request, needs: Needs) -> bool:
    folder = Path(request["build_directory"]) / "short"
    folder.mkdir(exist_ok=True)
    library = f"{request['name']}{cpp_extension.LIB_EXT}"
    linked = cpp_extension._prepare_ldflags(
        [*request["extra_ldflags"]], request["with_cuda"], False, False, False
    )
    short = request | _compiler_flags(request, needs) | {
        "extra_ldflags": link_flags(linked, folder),
        "extra_include_paths": [str(HEADERS), *request["extra_include_paths"]],
        "path": str(folder / "build.ninja"),
    }  # fmt: skip
    writer = cpp_extension._write_ninja_file_to_build_library
    writer(
        **{
            name: value
            for name, value in short.items()
            if name in inspect.signature(writer).parameters
        }
    )
    add_stubs(folder / "build.ninja", linked, folder, library)
    workers = cpp_extension._get_num_workers(False)
    command = with_low_priority(["ninja", *(["-j", str(workers)] if workers is not None else ())])
    subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=SECONDS,
    )
    shutil.copyfile(folder / library, folder / "copy")  # ninja's stays: a second build does nothing
    (folder / "copy").replace(Path(request["build_directory"]) / library)
    return True


def _compiler_flags(request: Request, needs: Needs) -> Request:
    flags = [f"-DKEVIN_SHORT_PYBIND={_pybind()}", *(["-DKEVIN_SHORT_HALF"] if needs.half else ())]
    flags += [f"-include {name}" for name in needs.standard]
    cuda = [
        *flags,
        f"-DKEVIN_SHORT_LINE={_line_type()}",
        *(["-DKEVIN_SHORT_PYTHON"] if needs.python else ()),
    ]
    return {
        "extra_cflags": [*flags, *request["extra_cflags"]],
        "extra_cuda_cflags": [*cuda, *_architecture(request), *request["extra_cuda_cflags"]],
    }


def _architecture(request: Request) -> list[str]:
    """Flags for the present GPU alone, unless the submission names architectures."""
    if not request["with_cuda"] or os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return []
    if any("arch" in flag for flag in request["extra_cuda_cflags"]):
        return []
    with contextlib.suppress(Exception):
        return [f for f in cpp_extension._get_cuda_arch_flags() if "code=sm_" in f]
    return []


def _line_type() -> str:
    """The type of a line number in torch's check of CUDA calls, which changed between versions."""
    return (
        "uint32_t" if "uint32_t line_number" in _torch_header("c10/cuda/CUDAException.h") else "int"
    )


def with_low_priority(command: list[str]) -> list[str]:
    """The command at a lower priority, if `nice` exists."""
    nice = shutil.which("nice")
    return [nice, "-n", str(NICENESS), *command] if nice else command


def run_ninja_build(build_directory: str, verbose: bool, error_prefix: str) -> None:
    """Replaces torch's call of ninja: ends the other compilers as soon as one has failed.

    An error in a CUDA source is known after seconds; the C++ source beside it, which includes all
    of torch's headers, takes much longer.

    Raises:
        RuntimeError: if a compiler fails; its cause carries all output, even if that was shown.
    """
    workers = cpp_extension._get_num_workers(verbose)
    command = with_low_priority(
        ["ninja", "-v", *(["-j", str(workers)] if workers is not None else ())]
    )
    sys.stdout.flush()
    sys.stderr.flush()
    with subprocess.Popen(
        command, cwd=build_directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as ninja:
        output = _read(ninja, verbose)
    if ninja.returncode:
        raise_error(error_prefix, command, output, shown=verbose)


def raise_error(error_prefix: str, command: list[str], output: bytes, shown: bool) -> NoReturn:
    """Raises torch's error for a failed build, with the output unless it was shown."""
    text = (
        f"{error_prefix}: {output.decode(errors='replace')}"
        if output and not shown
        else error_prefix
    )
    raise RuntimeError(text) from subprocess.CalledProcessError(1, command, output)


def _read(ninja: "subprocess.Popen[bytes]", verbose: bool) -> bytes:
    lines: list[bytes] = []
    failed = False
    assert ninja.stdout is not None
    for line in ninja.stdout:
        lines.append(line)
        if verbose:
            os.write(1, line)
        if line.startswith(b"FAILED: ") and not failed:
            failed = True
            threading.Timer(GRACE, ninja.send_signal, (signal.SIGINT,)).start()
    return b"".join(lines)


def link_flags(flags: list[str], folder: Path) -> list[str]:
    """Linker flags that find stubs in `folder` before the libraries that they replace."""
    libraries = [f"-l{name}" for name in _libraries(flags)]
    # some linkers drop libraries that seem unused, as stubs do
    return [f"-L{folder}", "-Wl,--push-state,--no-as-needed", *libraries, "-Wl,--pop-state", *flags]


def add_stubs(ninja: Path, flags: list[str], folder: Path, library: str) -> None:
    """Makes a ninja file of torch create stubs before it links `library`.

    A stub is an empty library by the name of one of torch's. Linking reads every exported name,
    which takes longer than compiling a kernel, only to list the libraries needed; those are loaded
    already. A missing name is reported when the extension is loaded.
    """
    stubs = {folder / f"lib{name}.so": f"lib{name}.so" for name in _libraries(flags)}
    edges = "".join(
        f"build {stub}: short_stub\n  soname = {name}\n" for stub, name in stubs.items()
    )
    needed = " ".join(map(str, stubs))
    lines = ninja.read_text(encoding="utf-8").splitlines()
    linked = [
        f"{line} | {needed}" if line.startswith(f"build {library}: link ") else line
        for line in lines
    ]
    ninja.write_text("\n".join(linked) + _RULE + edges, encoding="utf-8")


def _libraries(flags: list[str]) -> list[str]:
    names = [flag[2:] for flag in flags if flag.startswith("-l")]
    return [
        name for name in names if (Path(cpp_extension.TORCH_LIB_PATH) / f"lib{name}.so").exists()
    ]
