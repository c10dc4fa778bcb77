"""Formats figures, profiles and untrusted text: units, durations, phrases, fenced blocks."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

from kevin_env.extract import fenced
from kevin_env.judge.api import InputFacts
from kevin_env.outcome import (
    HELD_OUT,
    Difference,
    Dimensions,
    HotLine,
    Kernel,
    KernelProfile,
    Metric,
    NcuDigest,
    Operator,
    Pattern,
    Profile,
    SanitizerDigest,
    Span,
    printable,
)

MESSAGE_LIMIT = 300
BLOCK_LIMIT = 1700
"""Limits in characters of a message, and of one block of untrusted text."""
SETS_LIMIT = 150
"""Limit in characters of the names of input sets."""
LONGEST_FENCE = 12
"""Longest run of backticks that a block keeps, since its fence must be longer."""


def elide(text: str, limit: int) -> str:
    """Shortens `text` to its head and tail, with a line that counts the characters left out."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 5], text[-(limit * 2 // 5) :]
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    elided = f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"
    return min(text, elided, key=len)


@functools.lru_cache(maxsize=1024)  # every prompt repeats the code of earlier turns
def block(text: str, language: str = "", limit: int | None = BLOCK_LIMIT) -> str:
    """`text` as a fenced block that it cannot close, elided to `limit` characters (None: whole)."""
    text = printable(text).strip("\n")
    if limit is not None:
        text = elide(re.sub(f"`{{{LONGEST_FENCE},}}", "`" * LONGEST_FENCE, text), limit)
    return fenced(text, language)


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


def describe_input(facts: InputFacts) -> str:
    """Such as `x`: int64[128, 64], values from 0 to 9 (sorted along dimension 1).

    Distributions say which values floating-point inputs take.
    """
    shape = "" if facts.shape is None else str(list(facts.shape))
    values = "" if facts.low is None else f" from {facts.low}"
    values += "" if facts.high is None else f" {'to' if values else 'up to'} {facts.high}"
    values = f", values{values}" if values else ""
    structure = f" ({', '.join(facts.structure)})" if facts.structure else ""
    return f"`{facts.name}`: {facts.dtype}{shape}{values}{structure}"


def describe_software(versions: Mapping[str, str]) -> str:
    """Python, torch, triton and CUDA, or a CPU's compiler, with major and minor version."""
    names = {"python": "Python", "torch": "torch", "triton": "triton", "cuda": "CUDA"}
    if "cuda" not in versions and "compiler" in versions:
        names["compiler"] = versions["compiler"].partition(" ")[0]
    found = {key: re.search(r"\d+(?:\.\d+)?", versions.get(key, "")) for key in names}
    return ", ".join(f"{names[key]} {short[0]}" for key, short in found.items() if short)


def describe_input_set(name: str) -> str:
    """Case `odd`, inputs `wide`: from `odd/wide`."""
    if name == HELD_OUT:
        return "a held-out case"
    case, _, distribution = name.partition("/")
    return f"case `{case}`, inputs `{distribution}`" if distribution else f"case `{case}`"


def describe_input_sets(names: Sequence[str]) -> str:
    """Formats `odd/own`, `odd/wide`, `main/own` as case `odd` (own, wide), case `main` (own)."""
    cases: dict[str, list[str]] = {}
    for name in names:
        case, _, distribution = name.partition("/")
        cases.setdefault(case, []).append(distribution)
    text = ", ".join(
        f"case `{case}` ({', '.join(distributions)})" for case, distributions in cases.items()
    )
    return inline(text, SETS_LIMIT)


def describe_pattern(pattern: Pattern) -> str:
    """What all wrong elements have in common, in a sentence."""
    where = pattern.where
    return f"All wrong elements are in `output{_sliced(where)}`." if where else ""


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
    """A number with that many significant digits, such as `1.50`, `0.000601` and `1270`."""
    rounded = f"{value:#.{digits}g}".rstrip(".")
    return f"{float(rounded):.0f}" if 10**digits <= abs(float(rounded)) < 1e6 else rounded


def sentence(text: str) -> str:
    """`text`, ending with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


NAME_LIMIT = 40
TEXT_LIMIT = 60
FILE_LIMIT = 24


def quoted(name: str, limit: int = NAME_LIMIT) -> str:
    """A name in backticks, without backticks in it."""
    return f"`{' '.join(inline(name, 10 * limit).replace('`', chr(39)).split())[:limit] or '?'}`"


def percent(share: float) -> str:
    """A fraction in percent."""
    return f"{100 * share:.3g} %" if share < 0.995 else f"{100 * share:.0f} %"


def dimensions(size: Dimensions) -> str:
    """`132`, `64 x 8`: without ones at the end."""
    kept = size if size[2] != 1 else size[:2] if size[1] != 1 else size[:1]
    return " x ".join(map(str, kept))


def describe_kernel(kernel: Kernel) -> str:
    """One kernel: name, time, launch configuration and resources."""
    parts = [
        f"{quoted(kernel.name)}{'' if kernel.own else ' (of a library)'} {duration(kernel.seconds)}"
    ]
    parts += [f"{kernel.launches} launches"] if kernel.launches != 1 else []
    parts += [f"grid {dimensions(kernel.grid)}"] if kernel.grid else []
    parts += [f"block {dimensions(kernel.block)}"] if kernel.block else []
    parts += [f"{kernel.registers} registers"] if kernel.registers else []
    parts += [f"{binary_size(kernel.shared_memory)} shared"] if kernel.shared_memory else []
    parts += [f"{binary_size(kernel.local_memory)} of local memory"] if kernel.local_memory else []
    return ", ".join(parts)


def describe_operator(operator: Operator) -> str:
    """One operator of PyTorch: number of calls, and time."""
    often = "" if operator.calls == 1 else f" {operator.calls} times"
    return f"{quoted(operator.name)}{often}" + (
        f" ({duration(operator.seconds)})" if operator.seconds is not None else ""
    )


def describe_metric(metric: Metric) -> str:
    """One figure of Nsight Compute."""
    if metric.unit == "fraction":
        return f"{metric.name} {percent(metric.value)}"
    if metric.unit == "bytes":
        return f"{metric.name} {decimal(metric.value, 'B')}"
    return (
        f"{metric.name} "
        f"{duration(metric.value) if metric.unit == 'seconds' else f'{metric.value:.4g}'}"
    )


def describe_bound(digest: NcuDigest) -> str:
    """The limit of the kernel, as a clause."""
    return {
        "memory": "it is memory-bound",
        "compute": "it is compute-bound",
        "latency": "neither memory nor arithmetic is busy, so latency or too few threads limit it",
    }[digest.bound]


def describe_hot_line(line: HotLine) -> str:
    """A line of source that takes time."""
    code = f" {quoted(line.text, TEXT_LIMIT)}" if line.text.strip() else ""
    place = f" of {quoted(line.file, FILE_LIMIT)}" if line.file else ""
    return f"line {line.line}{place}{code} ({percent(line.share)} of the samples)"


def describe_place(digest: SanitizerDigest) -> str:
    """Where an error was found: kernel, line, thread and block."""
    parts = [f"in kernel {quoted(digest.kernel)}"] if digest.kernel else []
    if digest.line is not None:
        parts.append(
            f"line {digest.line}"
            + (f" of {quoted(digest.file, FILE_LIMIT)}" if digest.file else "")
        )
    parts += [f"thread ({_numbers(digest.thread)})"] if digest.thread else []
    parts += [f"block ({_numbers(digest.block)})"] if digest.block else []
    return ", ".join(parts)


def profile_lines(profile: Profile) -> list[str]:
    """The profile in lines, each with its source."""
    lines: list[str] = []
    if (kernels := profile.kernels) is not None:
        lines += [f"{kernels.source}: {describe_kernel(each)}" for each in kernels.kernels]
        lines += [
            f"{kernels.source}: PyTorch's {describe_operator(each)}" for each in kernels.operators
        ]
        lines += [f"{kernels.source}: {each}" for each in _shares(kernels)]
    if (ncu := profile.ncu) is not None:
        lines.append(f"{ncu.source}: Nsight Compute on {quoted(ncu.kernel)}: {describe_bound(ncu)}")
        lines += [f"{ncu.source}: {describe_metric(each)}" for each in ncu.metrics]
        lines += [
            f"{ncu.source}: warps wait for {each.reason} {percent(each.share)}"
            for each in ncu.stalls
        ]
        lines += [f"{ncu.source}: {describe_hot_line(each)}" for each in ncu.lines]
    if (error := profile.sanitizer) is not None:
        report = f"{error.error or 'no error'} {describe_place(error)} {error.details}"
        lines.append(f"{error.source}: {error.tool}: {report.strip()}")
    return [*lines, *profile.notes]


FILTERS: Mapping[str, Callable[..., str]] = {
    "bound": describe_bound,
    "hot_line": describe_hot_line,
    "kernel": describe_kernel,
    "metric": describe_metric,
    "operator": describe_operator,
    "percent": percent,
    "quoted": quoted,
}
"""Filters of the templates."""


def _shares(profile: KernelProfile) -> list[str]:
    shares = (
        [f"own share of the time {percent(profile.coverage)}"]
        if profile.coverage is not None
        else []
    )
    shares += (
        [f"idle between launches {duration(profile.idle)}"] if profile.idle is not None else []
    )
    return shares + ([f"{profile.cores:.1f} cores busy"] if profile.cores is not None else [])


def _numbers(size: Dimensions) -> str:
    return ", ".join(map(str, size))
