"""How figures and other people's text are put into words: units, durations, fenced blocks. Pure
text.
"""

import functools
import re
from collections.abc import Sequence

from kevin_env.judge.api import InputFacts
from kevin_env.outcome import Difference, Pattern, Span, printable

MESSAGE_LIMIT = 300
BLOCK_LIMIT = 1700
"""Characters that are shown of a message, and of one block of someone else's text."""
SETS_LIMIT = 150
"""Characters that are shown of the names of input sets."""
LONGEST_FENCE = 12
"""Backticks in a row that such a block keeps: its fence has more of them, twice."""


def elide(text: str, limit: int) -> str:
    """`text`, or its head and tail with a line between them that says how many characters are left
    out.
    """
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 5], text[-(limit * 2 // 5) :]
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"


@functools.lru_cache(maxsize=1024)  # the code of earlier turns stands in every prompt
def block(text: str, language: str = "", limit: int | None = BLOCK_LIMIT) -> str:
    """`text` as a fenced block that nothing in it can close, elided to `limit` characters (None:
    whole).
    """
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
    """`x`: int64[128, 64], values from 0 to 9 (sorted along dimension 1).

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
    """Case `odd` (own, wide), case `main` (own): from `odd/own`, `odd/wide` and `main/own`."""
    cases: dict[str, list[str]] = {}
    for name in names:
        case, _, distribution = name.partition("/")
        cases.setdefault(case, []).append(distribution)
    told = ", ".join(
        f"case `{case}` ({', '.join(distributions)})" for case, distributions in cases.items()
    )
    return inline(told, SETS_LIMIT)


def describe_pattern(pattern: Pattern) -> str:
    """What all wrong elements have in common, as sentences."""
    told: list[str] = []
    if pattern.where:
        told.append(f"All wrong elements are in `output{_sliced(pattern.where)}`.")
    value = 0.0 if pattern.value is None else pattern.value
    if pattern.what == "constant":
        told.append(f"Every wrong element is {value:.6g}.")
    elif pattern.what == "factor":
        told.append(f"Every wrong element is {value:.5g} times the expected value.")
    elif pattern.what == "offset":
        told.append(
            f"Every wrong element is the expected value {'plus' if value > 0 else 'minus'} {abs(value):.5g}."
        )
    elif pattern.what == "transposed":
        told.append("The output is transposed in its last two dimensions.")
    return " ".join(told)


def _sliced(spans: Sequence[Span]) -> str:
    """Such as `[:, 992:]`."""
    if spans[0].dim is None:
        return f".flatten()[{_slice(spans[0])}]"
    by_dimension = {span.dim: _slice(span) for span in spans}
    return f"[{', '.join(by_dimension.get(d, ':') for d in range(max(d or 0 for d in by_dimension) + 1))}]"


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
    """A large number with three digits in decimal units, as data sheets give them, such as `3.35
    TB/s`.
    """
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
