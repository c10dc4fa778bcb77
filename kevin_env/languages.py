"""The languages of kernels, in one table.

A further one is an entry here and in `Name`, `prompts/languages/NAME.j2`, and an example in
`prompts/examples/NAME.py`; a package that is not a dependency is an extra in `pyproject.toml`. Its
caches are in `judge.workers.launcher`, and how to compile it without a device, if it can be, in
`candidate.fake_cuda`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

Name = Literal["cuda", "triton", "cpp", "gluon", "cute", "tilelang", "cutile", "helion"]


@dataclass(frozen=True)
class Language:
    """A language that kernels may be written in.

    Attributes:
        name: As in `language=`.
        title: As in a sentence.
        module: What a submission imports for it; empty for C++ and CUDA, which are in strings.
        package: The distribution that has the module.
        extra: That installs it; empty if kevin-env depends on it.
        on_cpu: How kernels run without a GPU; empty if they cannot.
        preloaded: Whether the import takes seconds, so that a fork server of its own has done it.
        collected: Whether there are kernels for `examples="few"` and `"retrieved"`.
        nvcc: Whether kernels are compiled by nvcc, which may be missing.
        compilers: Where compiling begins, as the ends of files with a function.
        allowed: Libraries that its kernels may use under the rules "kernel".
    """

    name: Name
    title: str
    module: str = ""
    package: str = ""
    extra: str = ""
    on_cpu: Literal["", "compiled", "interpreted"] = ""
    preloaded: bool = False
    collected: bool = False
    nvcc: bool = False
    compilers: tuple[str, ...] = ()
    allowed: str = ""


_TRITON = ("/triton/compiler/compiler.py:compile",)
LANGUAGES: dict[str, Language] = {
    each.name: each
    for each in (
        Language("cuda", "CUDA", collected=True, allowed="CUB and Thrust are"),
        Language(
            "triton",
            "Triton",
            "triton",
            "triton",
            on_cpu="interpreted",
            collected=True,
            compilers=_TRITON,
        ),
        Language(
            "cpp", "C++", on_cpu="compiled", collected=True, allowed="the standard library is"
        ),
        Language("gluon", "Gluon", "triton.experimental.gluon", "triton", compilers=_TRITON),
        Language(
            "cute",
            "CuTe DSL",
            "cutlass",
            "nvidia-cutlass-dsl",
            "cute",
            preloaded=True,
            compilers=(
                "/cutlass/base_dsl/compiler.py:__call__",
                "/cutlass/base_dsl/dsl.py:generate_mlir_function_types",
                "/cutlass/base_dsl/dsl.py:generate_original_ir",
                "/cutlass/base_dsl/dsl.py:compile_and_cache",
            ),
        ),
        Language(
            "tilelang",
            "TileLang",
            "tilelang",
            "tilelang",
            "tilelang",
            preloaded=True,
            nvcc=True,
            compilers=(
                "/tilelang/jit/__init__.py:compile",
                "/tilelang/language/eager/builder.py:impl",  # `T.prim_func` outside of a jit
            ),
        ),
        Language(
            "cutile",
            "cuTile",
            "cuda.tile",
            "cuda-tile",
            "cutile",
            compilers=("/cuda/tile/_compile.py:compile_tile",),
        ),
        Language(
            "helion",
            "Helion",
            "helion",
            "helion",
            "helion",
            preloaded=True,
            compilers=tuple(
                f"/helion/runtime/kernel.py:{each}" for each in ("bind", "compile_config")
            ),
        ),
    )
}


def installed() -> dict[str, str]:
    """Versions of the languages' packages in this Python, by distribution."""
    found = dict[str, str]()
    for package in dict.fromkeys(each.package for each in LANGUAGES.values() if each.package):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def available(on_gpu: bool, versions: Mapping[str, str]) -> list[Language]:
    """The languages that a judge can run, given its packages."""
    return [each for each in LANGUAGES.values() if not obstacle(each.name, on_gpu, versions)]


def obstacle(name: str, on_gpu: bool, versions: Mapping[str, str] | None) -> str:
    """Why a judge cannot run kernels in a language, and the remedy; empty if it can.

    Args:
        name: The language, or `auto` or `any`.
        on_gpu: Whether its device is a GPU.
        versions: Of its packages; None if they are not known.
    """
    language = LANGUAGES.get(name)
    if language is None:
        return ""
    if not on_gpu and not language.on_cpu:
        others = "language='auto' (C++ there) or 'triton' (interpreted)"
        return f"language={name!r} needs a GPU, and this device is cpu; use {others}"
    if language.package and versions is not None and language.package not in versions:
        what = f"'kevin-env[{language.extra}]'" if language.extra else language.package
        where = f"needs the package {language.package} where kernels are judged"
        return f"language={name!r} {where}: pip install {what}"
    if language.nvcc and (versions or {}).get("compiler") == "":
        return f"language={name!r} needs nvcc where kernels are judged"
    return ""


def preloaded_for(modules: Iterable[str]) -> str:
    """The module that a process should have imported before code with these imports; or empty."""
    return next((each.module for each in imported_by(modules) if each.preloaded), "")


def imported_by(modules: Iterable[str]) -> list[Language]:
    """The languages whose module is among dotted names, or above one; the narrower ones first."""
    names = [f"{each}." for each in modules]
    found = [
        each
        for each in LANGUAGES.values()
        if each.module and any(name.startswith(f"{each.module}.") for name in names)
    ]
    return sorted(found, key=lambda each: -each.module.count("."))
