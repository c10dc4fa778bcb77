"""The short compile path: it builds what models write, computes the same as torch, and steps aside
for the rest.
"""

import importlib.util
import inspect
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from extension_traps import BODIES
from torch.utils import cpp_extension

from kevin_env.extension import ShortPath, build, install
from kevin_env.extension.build import NICENESS, run_ninja_build, with_low_priority
from kevin_env.extension.sources import HEADERS, read_sources

FOLDER = Path(__file__).parent
CPP = sorted(path.stem for path in (FOLDER / "cpp").glob("*.py"))
CUDA = sorted(path.stem for path in (FOLDER / "cuda").glob("*.py"))
REPLACED = (
    *("_write_ninja_file_and_build_library", "_import_module_from_library", "_run_ninja_build"),
    "_check_and_build_extension_h_precompiler_headers",
)
TENSOR = "torch::Tensor f(torch::Tensor x) { %s }"
WITH_HEADER = "#include <torch/extension.h>\n"


class Plain(Exception):
    """Raised in place of a build with the full headers."""


def _entry(folder: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(name: str, **asked: Any) -> Any:
    copied: dict[str, Any] = {
        key: list(value) if isinstance(value, list) else value for key, value in asked.items()
    }
    return cpp_extension.load_inline(
        name=f"{name}_{uuid.uuid4().hex[:8]}", **copied
    )  # which adds to the lists


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
        patch.setenv("MAX_JOBS", "1")
        yield


@pytest.fixture(scope="module")
def path(folder: None) -> Iterator[ShortPath]:
    with pytest.MonkeyPatch.context() as patch:
        for name in REPLACED:
            patch.setattr(cpp_extension, name, getattr(cpp_extension, name))
        installed = install()
        assert installed is not None, "this version of torch was not tested"
        yield installed


@pytest.fixture
def plain(path: ShortPath, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked of torch's own build, which is not run."""
    asked: list[dict[str, Any]] = []
    signature = inspect.signature(path._build)

    def record(*args: Any, **kwargs: Any) -> None:
        asked.append(signature.bind(*args, **kwargs).arguments)
        raise Plain

    record.__signature__ = signature  # type: ignore[attr-defined]
    monkeypatch.setattr(path, "_build", record)
    return asked


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.full] * (at % 15 > 0)
            + [pytest.mark.xdist_group(f"headers {at % 4}")],
        )
        for at, name in enumerate(CPP)
    ],
)
def test_short_headers_serve_and_compute_the_same(name: str, path: ShortPath) -> None:
    entry = _entry("cpp", name)
    module = _build(name, **entry.BUILD)
    assert any(Path(key).name == module.__name__ for key in path.served)
    entry.check(module)


@pytest.mark.full
def test_full_headers_throw_the_same_and_cure_the_traps(folder: None) -> None:
    """One source for both, as it takes half a minute. All others were once built one by one, and
    passed their checks.
    """
    entry = _entry("cpp", "errors_of_all_kinds")
    traps = "".join(
        f"static int g{at}(int n, float* y) {{\n{body}\nreturn 0;\n}}\n"
        for at, body in enumerate(BODIES.values())
    )
    entry.check(_build("full", **entry.BUILD | {"cpp_sources": entry.CPP + traps}))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CUDA)
def test_short_headers_serve_cuda(
    name: str, path: ShortPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_JOBS", "2")
    entry = _entry("cuda", name)
    module = _build(name, **entry.BUILD)
    assert any(Path(key).name == module.__name__ for key in path.served)
    entry.check(module)


@pytest.mark.gpu
@pytest.mark.full
@pytest.mark.parametrize("name", CUDA)
def test_full_headers_serve_cuda(name: str, folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "2")
    entry = _entry("cuda", name)
    entry.check(_build(name, **entry.BUILD))


@pytest.mark.full
@pytest.mark.parametrize(
    "code",
    [
        TENSOR % "return x + x;",
        TENSOR % "return torch::matmul(x, x);",
        TENSOR % "return torch::rand({2});",
        TENSOR % "return x.is_contiguous(at::MemoryFormat::ChannelsLast) ? x : x;",
        TENSOR % 'TORCH_CHECK(false, "x is ", x); return x;',
        TENSOR % "TORCH_CHECK_VALUE(x.dim() > 5); return x;",  # a text is missing
        TENSOR % 'TORCH_WARN("slow"); return x;',
        TENSOR % "x += 1; return x;",
        TENSOR % "return x[x];",
        TENSOR % "return torch::tensor({{1, 2}, {3, 4}});",
        TENSOR % "return torch::tensor({1, 2.5});",
        TENSOR % "return torch::zeros({2}, x.type());",
        TENSOR % "return x.item().toHalf() > 0 ? x : x;",
        TENSOR % "try { x.size(9); } catch (const c10::Error&) {} return x;",
        "torch::Tensor f(torch::Tensor x, py::list y) { return x; }",
        "torch::Tensor f(torch::Tensor x, at::Scalar y) { return x; }",
        "torch::Tensor f(std::pair<int, int> y) { return torch::zeros({y.first}); }",
        "int f(int& x) { return x",
    ],
)
def test_what_the_short_headers_lack_is_built_by_torch(
    code: str, plain: list[dict[str, Any]], path: ShortPath, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Plain) as raised:
        _build("refused", cpp_sources=code, functions=["f"], extra_cflags=["-O1"], verbose=True)
    assert not path.served.keys() & {
        str(Path(asked["build_directory"]) / asked["name"]) for asked in plain
    }
    assert (
        len(plain) == 1
        and plain[0]["extra_cflags"] == ["-O1"]
        and plain[0]["extra_include_paths"] == []
    )
    assert raised.value.__context__ is None and "short" not in "".join(capfd.readouterr())


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "functions"),
    [
        ("extern void nowhere(); int f() { nowhere(); return 1; }", "f"),
        ("int f(torch::Tensor x) { return *x.data_ptr<long long>(); }", "f"),
        (
            'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [] {}); m.def("f", [](int) '
            "{}); }",
            None,
        ),
    ],
)
def test_a_library_that_does_not_load_is_built_by_torch(
    code: str, functions: str | None, plain: list[dict[str, Any]], path: ShortPath
) -> None:
    with pytest.raises(Plain):
        _build("unloadable", cpp_sources=code, functions=functions)
    assert len(plain) == 1 and not any("unloadable" in key for key in path.served)


@pytest.mark.parametrize(
    "code",
    [
        "int f() { return 1; }",  # nothing of torch's is included
        "#include <torch/library.h>\n" + WITH_HEADER,
        "#include <ATen/ATen.h>\n#include <ATen/cuda/Atomic.cuh>\n",
        WITH_HEADER + "#if TORCH_VERSION_MAJOR > 2\n#endif\n",
        WITH_HEADER + "#if __has_include(<torch/nn.h>)\n#endif\n",
        WITH_HEADER + "using namespace std;",
        WITH_HEADER + "using namespace at;",
        WITH_HEADER + "auto o = torch::TensorOptions().requires_grad(true);",
        WITH_HEADER + "torch::Tensor softmax(torch::Tensor x, int d);\nauto y = softmax(x, d);",
        '#include "beside.h"\n' + WITH_HEADER,
    ],
)  # fmt: skip
def test_code_that_could_mean_something_else_is_left_to_torch(code: str, tmp_path: Path) -> None:
    (tmp_path / "beside.h").write_text("#include <torch/nn.h>\n")
    source = tmp_path / "main.cpp"
    source.write_text(code)
    assert read_sources([str(source)], [], build.torch_functions()) is None


@pytest.mark.parametrize(
    "code",
    [
        WITH_HEADER + '// using namespace std;\nconst char* a = "using namespace std;";',
        WITH_HEADER + "torch::Tensor relu(torch::Tensor x);\nauto y = at::relu(x), z = x.relu();",
        '#include "torch/extension.h"\n#ifdef __CUDACC__\n#endif\n',
        WITH_HEADER + "auto o = torch::TensorOptions().requires_grad(false);",
    ],
)
def test_code_that_only_looks_like_it_is_served(code: str, tmp_path: Path) -> None:
    source = tmp_path / "main.cpp"
    source.write_text(code)
    assert read_sources([str(source)], [], build.torch_functions()) is not None


@pytest.mark.full
def test_files_with_headers_of_their_own(path: ShortPath, tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(
        "#pragma once\n#include <torch/types.h>\ntorch::Tensor doubled(const torch::Tensor& x);\n"
    )
    (tmp_path / "own.cpp").write_text(
        '#include "own.h"\ntorch::Tensor doubled(const torch::Tensor& x) { auto y = '
        "torch::empty_like(x);\n"
        "for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * "
        "x.data_ptr<float>()[i]; return y; }\n"
    )
    (tmp_path / "bind.cpp").write_text(
        '#include <torch/extension.h>\n#include "own.h"\n'
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("doubled", &doubled); }\n'
    )
    sources = [str(tmp_path / "own.cpp"), str(tmp_path / "bind.cpp")]
    module: Any = cpp_extension.load("own_files", sources, build_directory=str(tmp_path))
    x = torch.randn(5)
    assert torch.equal(module.doubled(x), x * 2) and str(tmp_path / "own_files") in path.served


@pytest.mark.full
@pytest.mark.timeout(25)
@pytest.mark.parametrize("verbose", [True, False])
def test_a_compiler_that_fails_ends_the_others(
    verbose: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build.ninja").write_text(
        "rule fail\n  command = sleep 0.1; echo broken; exit 1\nrule last\n  command = sleep 30\n"
        "build a: fail\nbuild b: last\ndefault a b\n"
    )
    with (
        pytest.raises(RuntimeError, match=r"^Error building 'x'") as raised,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("MAX_JOBS", "2")
        run_ninja_build(str(tmp_path), verbose, "Error building 'x'")
    assert isinstance(raised.value.__cause__, subprocess.CalledProcessError)
    assert b"\nbroken\n" in raised.value.__cause__.output
    assert ("\nbroken\n" in str(raised.value)) is not verbose
    assert ("\nbroken\n" in capfd.readouterr().out) is verbose


def test_compilers_let_others_go_first() -> None:
    asked = with_low_priority([sys.executable, "-c", "import os; print(os.nice(0))"])
    assert int(subprocess.check_output(asked)) == min(19, os.nice(0) + NICENESS)


@pytest.mark.full
def test_no_header_is_precompiled_beside_those_of_torch(path: ShortPath) -> None:
    module = _build(
        "precompiled",
        cpp_sources="int64_t f(int64_t n) { return n + 1; }",
        functions=["f"],
        use_pch=True,
    )
    assert module.f(1) == 2
    assert not any((Path(torch.__file__).parent / "include").rglob("*.gch"))


def test_other_versions_of_torch_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_extension, REPLACED[-1], None)  # to be put back
    monkeypatch.setattr(build, "TESTED", ("1.0",))
    assert install() is None


def test_every_header_stands_for_one_of_torch() -> None:
    torch_headers = Path(torch.__file__).parent / "include"
    places = (torch_headers, torch_headers / "torch" / "csrc" / "api" / "include")
    for header in HEADERS.rglob("*.h"):
        name = header.relative_to(HEADERS)
        assert name.parts[0] == "short" or any((place / name).exists() for place in places), name
