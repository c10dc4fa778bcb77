"""Names that torch's full headers declare globally: what `kevin_env/extension/names.txt`
is made from.

    python tests/extension/global_names.py    # adds names of this machine's headers

Headers are preprocessed, not compiled, and their text is cut into declarations at global scope.
What the file has was found with torch 2.11 and 2.13 and nvcc 13.0. That nothing is missed was once
asked of g++, by `using ::name;` for each of the 48 thousand words of the preprocessed headers.
"""

import re
import subprocess
import sysconfig
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch

from kevin_env.extension import final, sources
from kevin_env.extension.sources import HEADERS

TORCH = Path(torch.__file__).parent / "include"
FOLDERS = [TORCH, TORCH / "torch/csrc/api/include", Path(sysconfig.get_paths()["include"])]
STANDARD = ["-std=c++20"] if torch.__version__ > "2.12" else ["-std=c++17"]
NVCC = ["nvcc", "-arch=sm_90", "--expt-relaxed-constexpr", *(
    f"-D__CUDA_NO_{name}__" for name in (
        "HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS",
    )
)]  # fmt: skip
LIBRARIES = (
    "cublas_v2.h", "cublasLt.h", "cusparse.h", "cusolverDn.h", "cusolver_common.h",
    "c10/cuda/impl/cuda_cmake_macros.h",
)  # fmt: skip
"""Headers that may lack; their names have forms that are doubtful anyway."""
BASE = '#include "short/types.h"\n'
"""Which all short headers include: what it declares, torch's own declare as well."""
NEWER = {"arc4random", "arc4random_buf", "arc4random_uniform", "c8rtomb", "free_aligned_sized",
    "free_sized", "mbrtoc8",
         "memalignment", "memset_explicit", "strlcat", "strlcpy", "timespec_getres", "wcslcat",
         "wcslcpy"}  # fmt: skip
"""Of C libraries that are newer than the one the file was made with."""
_TOKEN = re.compile(
    r'^[ \t]*#.*$|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|::|->|[^\s\w]', re.MULTILINE
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_KINDS = {"struct", "class", "union", "enum"}
_BEFORE_BODY = {")", "const", "noexcept", "volatile"}
_NO_NAMES = {"const", "noexcept", "decltype", "alignas", "throw", "asm", "__asm__",
    "__attribute__", "__attribute",
             "requires", "int", "unsigned", "long", "char", "__extension__", "__restrict",
             "void"}  # fmt: skip


def full(cuda: bool) -> str:
    """A source that includes every header of torch that there is in short."""
    found = sorted((str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*.h")), reverse=True)
    torch_headers = [
        name for name in found if "short/" not in name and (cuda or "cuda" not in name)
    ]
    standard = [
        name
        for name in sorted(set(sources._headers().values()))
        if STANDARD != ["-std=c++17"] or name not in ("numbers", "span")
    ]
    return "".join(f"#include <{name}>\n" for name in (*torch_headers, *standard))


def preprocess(text: str, cuda: bool, macros: bool = False) -> str:
    """What the compiler makes of a source before it parses it, or the macros that are defined at
    its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / ("all.cu" if cuda else "all.cpp")
        source.write_text(text)
        for name in LIBRARIES:
            (Path(folder) / "stubs" / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / "stubs" / name).touch()
        includes = [f"-I{place}" for place in (*FOLDERS, HEADERS)] + [
            "-idirafter" if not cuda else "-I",
            f"{folder}/stubs",
        ]
        command = [
            *(NVCC if cuda else ["g++"]),
            "-E",
            *(["-Xcompiler"] * (macros and cuda)),
            *(["-dM"] * macros),
        ]
        done = subprocess.run(
            [*command, *STANDARD, *includes, str(source)], capture_output=True, text=True
        )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


def declarations(text: str) -> dict[str, set[str]]:
    """Names that a preprocessed source has at global scope, each with the declarations of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for tokens in _statements(token for token in _TOKEN.findall(text) if token.lstrip()[:1] != "#"):
        words = " ".join(tokens)
        for name in _declared(tokens):
            found[name].add(words)
    return found


def macros(text: str) -> dict[str, str]:
    """Macros and what they stand for."""
    return {m[1]: m[2] for m in re.finditer(r"^#define (\w+)(.*)$", text, re.MULTILINE)}


def changed(cuda: bool) -> tuple[set[str], set[str]]:
    """Names, and macros, that the full headers have and the base has not, or otherwise."""
    base, everything = (declarations(preprocess(text, cuda)) for text in (BASE, full(cuda)))
    less, more = (macros(preprocess(text, cuda, macros=True)) for text in (BASE, full(cuda)))
    return (
        {
            name
            for name, ways in everything.items()
            if name.isidentifier() and _may_differ(base.get(name), ways)
        },
        {name for name, meaning in more.items() if less.get(name) != meaning},
    )


def _may_differ(base: set[str] | None, ways: set[str]) -> bool:
    return base != ways or any(way.startswith(("namespace", "inline namespace")) for way in ways)


def listed(names: set[str]) -> set[str]:
    """Of these, the names that have to be in the file: all others are doubtful by their form."""
    return (
        {name for name in names if not final.FORM.fullmatch(name)} - final.KEYWORDS - {"operator"}
    )


def main() -> None:
    """Adds to the file."""
    (cuda, cuda_macros), (cpp, cpp_macros) = changed(True), changed(False)
    old = (
        [set(group) for group in final.groups()] if final.NAMES.exists() else [set(), set(), set()]
    )
    everywhere = old[0] | listed(cuda) | NEWER
    groups = [
        everywhere,
        (old[1] | listed(cpp)) - everywhere,
        old[2] | listed(cuda_macros | cpp_macros),
    ]
    text = "\n\n".join(
        textwrap.fill(" ".join(sorted(group)), 120, break_on_hyphens=False) for group in groups
    )
    final.NAMES.write_text(text + "\n", encoding="utf-8")


def _statements(tokens: Iterator[str]) -> Iterator[list[str]]:
    """Declarations at global scope: without bodies, but with what an enumeration lists."""
    current: list[str] = []
    nested, body = 0, False
    for token in tokens:
        if nested:
            nested += (token == "{") - (token == "}")
            if "enum" in current and not body:
                current.append(token)
            if body and not nested:
                yield current
                current = []
        elif token == "{":
            transparent = (current[:1] == ["extern"] and len(current) == 2) or current == [
                "namespace"
            ]
            if transparent or current[:2] == ["inline", "namespace"]:
                current = []
            else:
                nested, body = (
                    1,
                    current[:1] == ["namespace"] or bool(_BEFORE_BODY & {*current[-1:]}),
                )
                if "enum" in current and not body:
                    current.append(token)
        elif token == ";":
            yield current
            current = []
        elif token != "}":
            current.append(token)


def _declared(tokens: list[str]) -> Iterator[str]:
    if tokens[:2] == ["using", "namespace"]:
        yield " ".join(tokens)
        return
    for place, token in enumerate(tokens):
        if token in _KINDS or token == "namespace":
            until = place + 1
            while until < len(tokens) and (
                token == "enum" or tokens[until] not in (";", ",", ")", "=", ":", "{")
            ):
                until += 1
            yield from filter(_WORD.fullmatch, tokens[place + 1 : until])
    for place, (token, following) in enumerate(zip(tokens, [*tokens[1:], ";"], strict=True)):
        if (
            following in ("(", "=", ";", ",", "[", ")", ":", "<")
            and _WORD.fullmatch(token)
            and token not in _NO_NAMES
        ):
            inside = tokens[:place].count("(") - tokens[:place].count(")")
            returned = tokens[place + 1 : place + 3] == [
                "(",
                "*",
            ]  # by a function that is pointed to
            if (not inside and not returned) or tokens[place - 2 : place] == ["(", "*"]:
                yield token
        if token == "operator":
            yield " ".join(tokens[place : place + 3])


if __name__ == "__main__":
    main()
