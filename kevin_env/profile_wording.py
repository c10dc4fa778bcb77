"""How a profile is put into words, a phrase for each of its parts. What tools and compilers wrote
stays on one line.
"""

from collections.abc import Callable, Mapping

from kevin_env.profile import (
    CodeFacts,
    Dimensions,
    HotLine,
    Kernel,
    KernelProfile,
    Metric,
    NcuDigest,
    Operator,
    Profile,
    SanitizerDigest,
)
from kevin_env.wording import binary_size, decimal, duration, inline

NAME_LIMIT = 40
TEXT_LIMIT = 60
FILE_LIMIT = 24


def quoted(name: str, limit: int = NAME_LIMIT) -> str:
    """A name in backticks that nothing in it can close."""
    return f"`{' '.join(inline(name, 10 * limit).replace('`', chr(39)).split())[:limit] or '?'}`"


def percent(share: float) -> str:
    """A share of one in per cent."""
    return f"{100 * share:.3g} %" if share < 0.995 else f"{100 * share:.0f} %"


def dimensions(size: Dimensions) -> str:
    """`132`, `64 x 8`: without ones at the end."""
    kept = size if size[2] != 1 else size[:2] if size[1] != 1 else size[:1]
    return " x ".join(map(str, kept))


def kernel(found: Kernel) -> str:
    """One kernel: its name and time, how it is launched, what it takes."""
    parts = [
        f"{quoted(found.name)}{'' if found.own else ' (of a library)'} {duration(found.seconds)}"
    ]
    parts += [f"{found.launches} launches"] if found.launches != 1 else []
    parts += [f"grid {dimensions(found.grid)}"] if found.grid else []
    parts += [f"block {dimensions(found.block)}"] if found.block else []
    parts += [f"{found.registers} registers"] if found.registers else []
    parts += [f"{binary_size(found.shared_memory)} shared"] if found.shared_memory else []
    parts += [f"{binary_size(found.local_memory)} of local memory"] if found.local_memory else []
    return ", ".join(parts)


def operator(found: Operator) -> str:
    """One operator of PyTorch: how often, and how long."""
    often = "" if found.calls == 1 else f" {found.calls} times"
    return f"{quoted(found.name)}{often}" + (
        f" ({duration(found.seconds)})" if found.seconds is not None else ""
    )


def machine_code(found: CodeFacts) -> str:
    """What the machine code of one kernel shows."""
    parts: list[str] = []
    if found.load_bytes:
        parts.append(f"a thread loads {_either(found.load_bytes)} B of global memory at once")
    if found.store_bytes:
        parts.append(f"stores {_either(found.store_bytes)} B")
    tensor = (
        f"tensor cores ({', '.join(found.tensor_cores)})"
        if found.tensor_cores
        else "no tensor cores"
    )
    parts += [tensor, *(["bulk copies (TMA)"] if found.bulk_copies else [])]
    if found.local_accesses or found.local_memory:
        size = f"{binary_size(found.local_memory)} of " if found.local_memory else ""
        parts.append(f"{size}local memory (spills or arrays), {found.local_accesses} accesses")
    return f"{quoted(found.kernel)}: {', '.join(parts)}"


def metric(found: Metric) -> str:
    """One figure of Nsight Compute."""
    if found.unit == "fraction":
        return f"{found.name} {percent(found.value)}"
    if found.unit == "bytes":
        return f"{found.name} {decimal(found.value, 'B')}"
    return (
        f"{found.name} {duration(found.value) if found.unit == 'seconds' else f'{found.value:.4g}'}"
    )


def bound(found: NcuDigest) -> str:
    """What limits the kernel, as a clause."""
    return {
        "memory": "it is bound by memory",
        "compute": "it is bound by arithmetic",
        "latency": "neither memory nor arithmetic is busy, so latency or too few threads limit it",
    }[found.bound]


def hot_line(found: HotLine) -> str:
    """A line of source that costs."""
    code = f" {quoted(found.text, TEXT_LIMIT)}" if found.text.strip() else ""
    place = f" of {quoted(found.file, FILE_LIMIT)}" if found.file else ""
    return f"line {found.line}{place}{code} ({percent(found.share)} of the samples)"


def place(found: SanitizerDigest) -> str:
    """Where an error was found: kernel, line, thread and block."""
    parts = [f"in kernel {quoted(found.kernel)}"] if found.kernel else []
    if found.line is not None:
        parts.append(
            f"line {found.line}" + (f" of {quoted(found.file, FILE_LIMIT)}" if found.file else "")
        )
    parts += [f"thread ({_numbers(found.thread)})"] if found.thread else []
    parts += [f"block ({_numbers(found.block)})"] if found.block else []
    return ", ".join(parts)


def profile_lines(found: Profile) -> list[str]:
    """All of a profile, a line for each thing that is known, with where it was taken."""
    lines: list[str] = []
    if (seen := found.kernels) is not None:
        lines += [f"{seen.source}: {kernel(each)}" for each in seen.kernels]
        lines += [f"{seen.source}: PyTorch's {operator(each)}" for each in seen.operators]
        lines += [f"{seen.source}: {each}" for each in _shares(seen)]
    lines += [f"{each.source}: machine code of {machine_code(each)}" for each in found.code]
    if (counted := found.ncu) is not None:
        lines.append(
            f"{counted.source}: Nsight Compute on {quoted(counted.kernel)}: {bound(counted)}"
        )
        lines += [f"{counted.source}: {metric(each)}" for each in counted.metrics]
        lines += [
            f"{counted.source}: warps wait for {each.reason} {percent(each.share)}"
            for each in counted.stalls
        ]
        lines += [f"{counted.source}: {hot_line(each)}" for each in counted.lines]
    if (error := found.sanitizer) is not None:
        told = f"{error.error or 'no error'} {place(error)} {error.details}"
        lines.append(f"{error.source}: {error.tool}: {told.strip()}")
    return [*lines, *found.notes]


FILTERS: Mapping[str, Callable[..., str]] = {
    "bound": bound,
    "hot_line": hot_line,
    "kernel": kernel,
    "machine_code": machine_code,
    "metric": metric,
    "operator": operator,
    "percent": percent,
    "quoted": quoted,
}
"""For the templates."""


def _shares(seen: KernelProfile) -> list[str]:
    told = [f"own share of the time {percent(seen.coverage)}"] if seen.coverage is not None else []
    told += [f"idle between launches {duration(seen.idle)}"] if seen.idle is not None else []
    return told + ([f"{seen.cores:.1f} cores busy"] if seen.cores is not None else [])


def _either(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers[:4]))


def _numbers(size: Dimensions) -> str:
    return ", ".join(map(str, size))
