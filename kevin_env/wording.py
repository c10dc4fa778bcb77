"""Formats figures, profiles and untrusted text: units, durations, phrases, fenced blocks."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

from kevin_env.judge.api import InputFacts
from kevin_env.outcome import Difference, Pattern, Span, printable
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

MESSAGE_LIMIT = 300
BLOCK_LIMIT = 1700
"""Characters that are shown of a message, and of one block of someone else's text."""
SETS_LIMIT = 150
"""Characters that are shown of the names of input sets."""
LONGEST_FENCE = 12
"""Backticks in a row that such a block keeps: its fence has more of them, twice."""


def elide(text: str, limit: int) -> str:
    """Shortens `text` to its head and tail, with a line that counts the characters left out."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 5], text[-(limit * 2 // 5) :]
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"


@functools.lru_cache(maxsize=1024)  # the code of earlier turns stands in every prompt
def block(text: str, language: str = "", limit: int | None = BLOCK_LIMIT) -> str:
    """`text` as a fenced block that it cannot close, elided to `limit` characters (None: whole)."""
    text = printable(text).strip("\n")
    if limit is not None:
        text = elide(re.sub(f"`{{{LONGEST_FENCE},}}", "`" * LONGEST_FENCE, text), limit)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def inline(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """`text` on one line, elided, so that it stays within its paragraph."""
    return " ".join(elide(printable(text), limit).split())


def table(differences: Sequence[Difference]) -> str:
    """Coordinates, expected and got of wrong elements, in aligned columns."""
    rows = [("index", "expected", "got")]
    rows += [
        (str(list(each.index))[:40], each.expected[:30], each.got[:30]) for each in differences
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def describe_input(given: InputFacts) -> str:
    """Describes an input: `x`: int64[128, 64], values from 0 to 9 (sorted along dimension 1).

    Distributions say which values floating-point inputs take.
    """
    shape = "" if given.shape is None else str(list(given.shape))
    values = ""
    if given.low is not None and given.high is not None:
        values = f", values from {given.low:.6g} to {given.high:.6g}"
    structure = f" ({', '.join(given.structure)})" if given.structure else ""
    return f"`{given.name}`: {given.dtype}{shape}{values}{structure}"


def describe_input_set(name: str) -> str:
    """Case `odd`, inputs `wide`: from `odd/wide`."""
    case, _, distribution = name.partition("/")
    return f"case `{case}`, inputs `{distribution}`" if distribution else f"case `{case}`"


def describe_input_sets(names: Sequence[str]) -> str:
    """Formats `odd/own`, `odd/wide`, `main/own` as case `odd` (own, wide), case `main` (own)."""
    cases: dict[str, list[str]] = {}
    for name in names:
        case, _, distribution = name.partition("/")
        cases.setdefault(case, []).append(distribution)
    told = ", ".join(
        f"case `{case}` ({', '.join(distributions)})" for case, distributions in cases.items()
    )
    return inline(told, SETS_LIMIT)


def describe_pattern(pattern: Pattern) -> str:
    """What all wrong elements have in common, in sentences."""
    told: list[str] = []
    if pattern.where:
        told.append(f"All wrong elements are in `output{_sliced(pattern.where)}`.")
    value = 0.0 if pattern.value is None else pattern.value
    if pattern.what == "constant":
        told.append(f"Every wrong element is {value:.6g}.")
    elif pattern.what == "factor":
        told.append(f"Every wrong element is {value:.5g} times the expected value.")
    elif pattern.what == "offset":
        sign = "plus" if value > 0 else "minus"
        told.append(f"Every wrong element is the expected value {sign} {abs(value):.5g}.")
    elif pattern.what == "transposed":
        told.append("The output is transposed in its last two dimensions.")
    return " ".join(told)


def _sliced(spans: Sequence[Span]) -> str:
    """Such as `[:, 992:]`."""
    if spans[0].dim is None:
        return f".flatten()[{_slice(spans[0])}]"
    by_dimension = {span.dim: _slice(span) for span in spans}
    last = max(dim or 0 for dim in by_dimension)
    return f"[{', '.join(by_dimension.get(dim, ':') for dim in range(last + 1))}]"


def _slice(span: Span) -> str:
    if span.stop - span.start == 1:
        return str(span.start)
    ends = f"{span.start or ''}:{span.stop if span.stop < span.size else ''}"
    return ends if span.step == 1 else f"{ends}:{span.step}"


def binary_size(count: float) -> str:
    """A number of bytes in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def decimal(value: float, unit: str) -> str:
    """A large number with three digits and a decimal unit, such as `3.35 TB/s`."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def duration(seconds: float) -> str:
    """A time with three digits and the unit that fits it."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def ratio(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, such as `1.50`, `0.000601` and `123`."""
    return f"{value:#.{digits}g}".rstrip(".") if abs(value) < 1e6 else f"{value:.{digits}g}"


def sentence(text: str) -> str:
    """`text` with a full stop, for a judge's clause that has none."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


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
    """One kernel: name, time, launch configuration and resources."""
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
    """Findings in the machine code of one kernel."""
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
    """The limit of the kernel, as a clause."""
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
