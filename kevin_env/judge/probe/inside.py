"""Reading what a candidate's own profiler claims."""

import math
from collections import defaultdict
from typing import Annotated, Any

from pydantic import Field, ValidationError

from kevin_env.frozen import Frozen
from kevin_env.judge.probe.names import is_library, shorten
from kevin_env.profile import CodeFacts, Dimensions, Kernel, KernelProfile, Operator

KERNELS = 8
OPERATORS = 8
"""How many are kept, by their time."""
_LONGEST = 3600.0

_Seconds = Annotated[float, Field(ge=0, le=_LONGEST)]
_Count = Annotated[int, Field(ge=0, le=1 << 40)]
_Launch = tuple[
    str, float, _Seconds, Dimensions | None, Dimensions | None, _Count | None, _Count | None
]


class _Claim(Frozen):
    """What `kevin_env.candidate.profiling.look` gives."""

    calls: int = Field(ge=1, le=1000)
    seconds: _Seconds
    cores: Annotated[float, Field(ge=0, le=1e5)] | None
    host: _Seconds
    operators: list[tuple[str, _Count, _Seconds | None]] = Field(max_length=1000)
    launches: list[_Launch] = Field(max_length=10_000)


def read_claim(claim: dict[str, Any], code: tuple[CodeFacts, ...] = ()) -> KernelProfile | None:
    """The profile that a candidate claims; None when it is none.

    Args:
        claim: Its answer to the order `profile`.
        code: What is known of its kernels' machine code; it tells what local memory they use.
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
        kernels=tuple(_kernels(read, code)[:KERNELS]),
        operators=tuple(_operators(read)[:OPERATORS]),
        coverage=_coverage(read.launches) if read.launches else outside,
        idle=_idle(read),
        cores=read.cores,
    )


def _kernels(read: _Claim, code: tuple[CodeFacts, ...]) -> list[Kernel]:
    local = {facts.kernel: facts.local_memory for facts in code}
    launches = defaultdict[tuple[str, bool], list[_Launch]](list)
    for launch in read.launches:
        launches[shorten(launch[0]), not is_library(launch[0])].append(launch)
    kernels = [
        Kernel(
            name=name, own=own, launches=math.ceil(len(found) / read.calls),
            seconds=sum(launch[2] for launch in found) / read.calls, grid=found[0][3], block=found[0][4],
            registers=found[0][5], shared_memory=found[0][6], local_memory=local.get(name) if own else None,
        )
        for (name, own), found in launches.items()
    ]  # fmt: skip
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _operators(read: _Claim) -> list[Operator]:
    found = [
        Operator(
            name=shorten(name),
            calls=calls,
            seconds=None if seconds is None else seconds / read.calls,
        )
        for name, calls, seconds in read.operators
    ]
    return sorted(found, key=lambda operator: -(operator.seconds or 0.0))


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
