"""Whether torch's full headers could cure what the compiler says of a source that has the short
ones.

They cannot if the first error lies in the body of a function of the device all of whose words mean
the same with both: neither the function nor anything of the source that it uses has a name that the
full headers declare, or could. A compiler has read no more than that when it complains. Found by
reading, and in doubt the answer is no: then the full headers tell. Functions of the host are always
in doubt: they may call whatever a header happens to bring.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kevin_env.extension.declarations import Piece, cut
from kevin_env.extension.plain import Names, names_of
from kevin_env.extension.sources import HEADERS

_SEVERE = re.compile(r"^(?P<file>/[^\s:()]+)\((?P<line>\d+)\): error: ")
"""As nvcc tells it: with a line and no column."""
_ERROR = re.compile(r"^(?!FAILED|ninja|\[|\d+ errors? )\S.*\b(?:error|fatal)\b")
_ELSEWHERE = re.compile(
    r"instantiation|required (?:from|by|for)|detected during|in expansion of|\[-[fW]\S*\]$", re.M
)
_SYSTEM = re.compile(r"[a-z_0-9]+(?:\.h)?|cub/cub\.cuh|cooperative_groups/\w+\.h")
_FLAG = re.compile(
    r"-?-(?:O\w*|g|w|v|W(?!error)[a-z][\w-]*|std=[\w+]+|f(?:openmp|PIC|fast-math|no-[\w-]+|unroll-loops)|m(?:arch|tune|cpu)=[\w-]+"
    r"|use_fast_math|(?:generate-)?line-?info|expt-(?:relaxed-constexpr|extended-lambda)|extended-lambda|res-usage"
    r"|arch=\w+|gencode(?:=\S+)?|Xptxas(?:=\S+)?|Xcompiler|maxrregcount=\d+|ptxas-options=\S+|threads=?\d*|U__CUDA_NO_\w+__"
    r"|(?:ftz|prec-div|prec-sqrt|fmad)=\w+|D\w+(?:=\d*)?)|arch=\w+,code=\S+"
)
_LAST_LINE = re.compile(r"[^}]*\}\s*(//.*)?")
"""Of a function after which nothing begins on the same line."""
_VARIABLES = re.compile(r"CPATH|\w*_INCLUDE_PATH|NVCC_\w+|GCC_EXEC_PREFIX|COMPILER_PATH")


def final_errors(
    output: str, sources: Sequence[str], folders: Sequence[str], flags: Iterable[str]
) -> str | None:
    """What a compiler said that is true with the full headers, too; None when they have to be
    asked.

    Args:
        output: What ninja printed when it built with the short headers.
        sources: The source files, as they were given to it.
        folders: Further places where headers are looked for.
        flags: Flags of the submission for the compilers.
    """
    given = list(flags)
    if any(map(_VARIABLES.fullmatch, os.environ)) or not all(map(_FLAG.fullmatch, given)):
        return None
    errors = list(_errors(output))
    if sum(line.startswith("FAILED: ") for line in output.splitlines()) != 1 or not errors:
        return None
    defined = {
        flag.lstrip("-")[1:].partition("=")[0] for flag in given if flag.lstrip("-").startswith("D")
    }
    final = [_is_final(error, sources, folders, defined) for error in errors]
    kept = (error for error, keep in zip(errors, final, strict=True) if keep)
    return "".join("\n".join(error.lines) + "\n\n" for error in kept) if final[0] else None


@dataclass(frozen=True)
class _Error:
    """An error and what is told of it; `before` is what was printed since the one before."""

    before: str
    lines: tuple[str, ...]


def _errors(output: str) -> Iterator[_Error]:
    lines = output.splitlines()
    start, at = 0, 0
    while at < len(lines):
        end = at + 1
        if _ERROR.match(lines[at]):
            while end < len(lines) and lines[end][:1].isspace():
                end += 1
            yield _Error("\n".join(lines[start:at]), tuple(lines[at:end]))
            start = end
        at = end


def _is_final(
    error: _Error, sources: Sequence[str], folders: Sequence[str], defined: set[str]
) -> bool:
    found = _SEVERE.match(error.lines[0])
    if (
        not found
        or found["file"] not in sources
        or _ELSEWHERE.search("\n".join((error.before, *error.lines)))
    ):
        return False
    path = Path(found["file"])
    if path.suffix != ".cu":
        return False
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _depends_on_nothing(
            path, int(found["line"]), [path.parent, *map(Path, folders)], names_of(defined)
        )
    return False


def _depends_on_nothing(path: Path, line: int, folders: Sequence[Path], names: Names) -> bool:
    """Whether a line lies inside a function that means the same with both, as far as the compiler
    has read.
    """
    text = path.read_text(encoding="utf-8")
    pieces = iter(cut(text))
    for piece in pieces:
        end = piece.tokens[-1].line
        if piece.kind == "include" and not _is_system(piece.tokens[0].text, folders):
            return False
        if piece.body is not None and piece.tokens[piece.body].line < line <= end:
            alone = _LAST_LINE.fullmatch(text.split("\n")[end - 1])
            return bool(alone) and _is_of_the_device(piece) and names.are_plain(piece)
        if end >= line or _opens_namespace(piece):
            return False
        names.learn(piece)
    return False


def _is_system(name: str, folders: Sequence[Path]) -> bool:
    """Whether a header is the compiler's, or one of torch's that there is in short."""
    inner = name[1:-1]
    if name[:1] + name[-1:] not in ("<>", '""'):
        return False
    if (HEADERS / inner).is_file():
        return True
    return bool(_SYSTEM.fullmatch(inner)) and not any(
        (folder / inner).exists() for folder in folders
    )


def _opens_namespace(piece: Piece) -> bool:
    words = [token.text for token in piece.tokens]
    return piece.body is None and ("using", "namespace") in itertools.pairwise(words)


def _is_of_the_device(piece: Piece) -> bool:
    """Whether a function is compiled for the device alone, and no template: its errors may depend
    on what it is for.
    """
    head = {token.text for token in piece.tokens[: piece.body]}
    return not head.isdisjoint(("__global__", "__device__")) and head.isdisjoint(
        ("__host__", "template", "auto", "operator")
    )
