"""Compiler output and tracebacks, cut down to what helps: pure text.

Only what is shown is chosen here, never a category or a kind.
"""

import re
from collections.abc import Iterable

LIMIT = 4_000
MAX_DIAGNOSTICS = 12
_GCC = re.compile(
    r"^(?P<file>[^\s:()]+):(?P<line>\d+):(?:\d+:)? (?P<level>fatal error|error|warning|note): "
)
_NVCC = re.compile(
    r"^(?P<file>[^\s:()]+)\((?P<line>\d+)\): (?P<level>error|warning|catastrophic error)"
)
_LINKER = re.compile(
    r"([Uu]ndefined reference to|undefined symbol|cannot find -l|multiple definition of|ld returned|^nvlink error)"
)
_PTXAS = re.compile(r"^ptxas (?P<level>error|fatal)\s*:")
_MARKER = re.compile(r"[\s|~]*\^[\s~^]*")
_INSTANTIATION = re.compile(r"\s+(detected during|instantiation of) ?")
_NOISE = re.compile(r"^(\[\d+/\d+\] |ninja: |FAILED: |In file included from|\s+from )")


_PART = r"[^\s:;,'\"`()\[\]<>/]+"
_DIRECTORIES = re.compile(
    rf"(?<![\w.:/])/(?:{_PART}/+)*(?={_PART}\.(?:c|cc|cpp|cu|cuh|h|hpp|inc|inl|ipp|o|py|so)\b)"
)
"""Those of a source, header or library that is named by its full path."""


def diagnostics(output: str, folder: str) -> str:
    """The compiler's errors with their source lines, without command lines and included files'
    chains.

    Below each error of a template stands where the code that does not compile was instantiated.

    Args:
        output: What ninja, nvcc, g++ or ld printed.
        folder: The candidate's folder; paths in it are shortened to the file's name.
    """
    lines = [line.rstrip() for line in output.splitlines()]
    kept: list[str] = []
    count = 0
    for i, line in enumerate(lines):
        if _starts_error(line) and count < MAX_DIAGNOSTICS:
            count += 1
            kept += [line, *_context(lines[i + 1 : i + 9]), *_origin(lines[:i])]
    text = (
        "\n".join(kept)
        if kept
        else "\n".join(line for line in lines if line and not _is_command(line))
    )
    return clip(without_paths(text, folder))


def without_paths(text: str, folder: str) -> str:
    """The text with files of the candidate's folder, sources and libraries as their names alone."""
    return _DIRECTORIES.sub("", re.sub(re.escape(folder) + r"(?:/(?:[^\s:('\"/]+/)*|\b)", "", text))


def is_link_error(output: str) -> bool:
    """Whether no compiler complained but the linker did: then the stage that failed was linking."""
    lines = output.splitlines()
    compiled = not any(
        _severe(_GCC.match(line) or _NVCC.match(line) or _PTXAS.match(line)) for line in lines
    )
    return compiled and any(_LINKER.search(line) for line in lines)


def traceback_of(frames: Iterable[tuple[int, str, str]], kind: str, message: str) -> str:
    """A traceback of the submission's own frames only, as Python prints one."""
    lines = [f"  line {line}, in {name}\n    {source.strip()}" for line, name, source in frames]
    head = ["Traceback (the submission's own frames):"] if lines else []
    return clip("\n".join([*head, *lines, f"{kind}: {message}".strip()]))


def clip(text: str, limit: int = LIMIT) -> str:
    """The text, its middle left out when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def first_line(text: str) -> str:
    """The first line that is not empty, shortened."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]


def _starts_error(line: str) -> bool:
    return _severe(_GCC.match(line) or _NVCC.match(line) or _PTXAS.match(line)) or bool(
        _LINKER.search(line)
    )


def _severe(match: "re.Match[str] | None") -> bool:
    return match is not None and ("error" in match["level"] or match["level"] == "fatal")


def _origin(before: list[str]) -> list[str]:
    """The line above an error in which g++ tells where the code that does not compile was asked
    for.
    """
    return [line for line in before[-1:] if line.endswith("required from here")]


def _context(following: list[str]) -> list[str]:
    """The source line and the marker under it, which follow an error; nvcc then tells what it was
    instantiating.
    """
    context: list[str] = []
    marked = False
    for line in following:
        starts = _GCC.match(line) or _NVCC.match(line) or _starts_error(line)
        if not line or starts or _is_command(line) or (marked and not _INSTANTIATION.match(line)):
            break
        context.append(line)
        marked = marked or bool(_MARKER.fullmatch(line))
    return context


def _is_command(line: str) -> bool:
    return (
        bool(_NOISE.match(line)) or (line.startswith("/") and " -" in line) or " -DTORCH_" in line
    )
