"""Names of kernels, the local memory that they use, and the claims of a candidate's profiler."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from kevin_env.frozen import Frozen
from kevin_env.outcome import Dimensions, Kernel, KernelProfile, Operator
from kevin_env.rules.vocabulary import is_library

LENGTH = 48

_MANGLED = re.compile(r"_ZN?K?(?P<rest>.*)", re.DOTALL)
_LONGEST = 4096


def shorten(name: str) -> str:
    """A kernel's demangled name on one line, without return type and arguments."""
    name = " ".join(name[:_LONGEST].replace("`", "'").split())
    mangled = _MANGLED.fullmatch(name)
    if mangled:
        name = "::".join(_identifiers(mangled["rest"])) or name
    else:
        name = _without_brackets(name).removeprefix("void ").strip() or name
    return name if len(name) <= LENGTH else f"{name[: LENGTH - 3]}..."


def _identifiers(rest: str) -> list[str]:
    """The parts of a qualified name in the Itanium ABI's mangling.

    Each has its length before it.
    """
    parts: list[str] = []
    while (match := re.match(r"(\d{1,4})(?=[A-Za-z_])", rest)) is not None:
        length = int(match[1])
        rest = rest[match.end() :]
        if length == 0 or length > len(rest):
            break
        parts.append("(anonymous)" if rest.startswith("_GLOBAL__N") else rest[:length])
        rest = rest[length:]
    return parts


def _without_brackets(name: str) -> str:
    """`f` of `void a::f<b<int>, 3>(float *, c)`; namespaces in parentheses stay."""
    kept: list[str] = []
    depth = 0
    for character in name.replace("(anonymous namespace)", "{anonymous}"):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    return "".join(kept).replace("{anonymous}", "(anonymous)")


KERNELS = 8
_LONGEST_LINE = 2000
_FUNCTION = re.compile(r"^\s*Function\s*:?\s*(?P<name>[^\s:]{1,1000})(?::\s*$|\s*$)")
_RESOURCES = re.compile(
    r"^\s*REG:\d{1,9} STACK:(?P<stack>\d{1,9}) SHARED:\d{1,9} LOCAL:(?P<local>\d{1,9})\b"
)


def read_local_memory(text: str) -> dict[str, int]:
    """Bytes of local memory per thread by kernel, from the output of `cuobjdump -res-usage`."""
    found, kernel = dict[str, int](), ""
    for line in text.splitlines():
        line = line[:_LONGEST_LINE]
        if (function := _FUNCTION.match(line)) is not None:
            kernel = shorten(function["name"])
        elif kernel and (resources := _RESOURCES.match(line)) is not None:
            found[kernel] = int(resources["stack"]) + int(resources["local"])
    return found


OPERATORS = 8
"""How many are kept, by their time."""

_Seconds = Annotated[float, Field(ge=0, le=3600.0)]
_Count = Annotated[int, Field(ge=0, le=1 << 40)]
_Launch = tuple[
    str, float, _Seconds, Dimensions | None, Dimensions | None, _Count | None, _Count | None
]


class _Claim(Frozen):
    """What `kevin_env.candidate.profiling.profile_calls` gives."""

    calls: int = Field(ge=1, le=1000)
    seconds: _Seconds
    cores: Annotated[float, Field(ge=0, le=1e5)] | None
    host: _Seconds
    operators: list[tuple[str, _Count, _Seconds | None]] = Field(max_length=1000)
    launches: list[_Launch] = Field(max_length=10_000)


def read_claim(
    claim: dict[str, Any], local: Mapping[str, int] | None = None
) -> KernelProfile | None:
    """The profile that a candidate claims; None if it is malformed.

    Args:
        claim: Its answer to the order `profile`.
        local: Bytes of local memory of its kernels, as far as they are known.
    """
    try:
        read = _Claim.model_validate(claim)
    except ValidationError:
        return None
    outside = (
        max(0.0, 1 - read.host / read.seconds) if read.seconds and read.cores is not None else None
    )
    return KernelProfile(
        seconds=read.seconds / read.calls,
        kernels=tuple(_kernels(read, local or {})[:KERNELS]),
        operators=tuple(_operators(read)[:OPERATORS]),
        coverage=_coverage(read.launches) if read.launches else outside,
        idle=_idle(read),
        cores=read.cores,
    )


def _kernels(read: _Claim, local: Mapping[str, int]) -> list[Kernel]:
    launches = defaultdict[tuple[str, bool], list[_Launch]](list)
    for launch in read.launches:
        launches[shorten(launch[0]), not is_library(launch[0])].append(launch)
    kernels = [
        Kernel(
            name=name, own=own, launches=math.ceil(len(group) / read.calls),
            seconds=sum(launch[2] for launch in group) / read.calls, grid=group[0][3],
            block=group[0][4], registers=group[0][5], shared_memory=group[0][6],
            local_memory=local.get(name) if own else None,
        )
        for (name, own), group in launches.items()
    ]  # fmt: skip
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _operators(read: _Claim) -> list[Operator]:
    operators = [
        Operator(
            name=shorten(name),
            calls=calls,
            seconds=None if seconds is None else seconds / read.calls,
        )
        for name, calls, seconds in read.operators
    ]
    return sorted(operators, key=lambda operator: -(operator.seconds or 0.0))


def _coverage(launches: list[_Launch]) -> float | None:
    """Share of the device's time in kernels that are no library's."""
    total = sum(launch[2] for launch in launches)
    own = sum(launch[2] for launch in launches if not is_library(launch[0]))
    return min(1.0, own / total) if total > 0 else None


def _idle(read: _Claim) -> float | None:
    """Time in which nothing ran, from the first launch to the end of the last, of one call."""
    if not read.launches:
        return None
    first = min(launch[1] for launch in read.launches)
    last = max(launch[1] + launch[2] for launch in read.launches)
    idle = (last - first - sum(launch[2] for launch in read.launches)) / read.calls
    return max(0.0, idle) if math.isfinite(idle) else None
