"""Compares KernelBench's verdicts with kevin-env's: how many agree, and why others differ."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kevin_env.app.rejudge.run import DIFFERENT, HEADINGS, Agreement, Kernel, Terms, agreement_of
from kevin_env.app.report.summary import grid_of
from kevin_env.app.report.write import markdown_page
from kevin_env.app.screen import shown
from kevin_env.app.writing import write_text
from kevin_env.outcome import Correct, Outcome, input_set_of, interval_of, speedup_of
from kevin_env.render import speedup_text

REPORT = "kevin_report.md"
REASON = 200
"""Characters of a message."""


def counts(kernels: Iterable[Kernel]) -> dict[int, Counter[Agreement]]:
    """The number of kernels per agreement, by level."""
    found: dict[int, Counter[Agreement]] = {}
    for kernel in kernels:
        found.setdefault(kernel.sample.level, Counter())[agreement_of(kernel)] += 1
    return dict(sorted(found.items()))


def agreeing(count: Counter[Agreement]) -> float | None:
    """The share of kernels with two verdicts whose verdicts agree; None without such kernels."""
    agree = count["both_accept"] + count["both_refuse"]
    both = agree + sum(count[each] for each in DIFFERENT)
    return agree / both if both else None


def reasons(kernels: Iterable[Kernel]) -> Counter[tuple[int, Agreement, str]]:
    """The number of kernels per level, difference and refusal (`category/kind`)."""
    return Counter(
        (kernel.sample.level, agreement, f"{outcome.category}/{outcome.kind}")
        for kernel, agreement, outcome in _differences(kernels)
    )


def row_of(kernel: Kernel) -> dict[str, Any]:
    """One kernel with both verdicts; if `kevin_env` is null, `error` says why."""
    sample, entry = kernel.sample, kernel.entry
    return {
        "kernel": sample.file.name,
        "problem": kernel.problem.id if kernel.problem else None,
        "agreement": agreement_of(kernel),
        "kernelbench": _verdict(sample.verdict) if sample.verdict else None,
        "kevin_env": _verdict(entry.outcome) | {"took": entry.seconds.total, "flags": entry.flags}
        if entry
        else None,
        "error": kernel.error,
    }


def tables(kernels: Sequence[Kernel]) -> Iterator[Table]:
    """Agreement and the reasons for differences, without empty tables."""
    why = [
        (str(level), HEADINGS[agreement], refusal, str(count))
        for (level, agreement, refusal), count in sorted(reasons(kernels).items())
    ]
    unjudged = [(_name(each), each.error) for each in kernels if each.entry is None]
    levels = ("level", "kernels", "agree", *HEADINGS.values())
    refused = ("kernel", "difference", "refused as", "reason")
    found = (
        _table("Agreement", levels, _level_rows(kernels)),
        _table("Reasons", ("level", "difference", "refused as", "kernels"), why),
        _table("Differences", refused, _difference_rows(kernels)),
        _table("Not judged", ("kernel", "reason"), unjudged),
        _table("Median speedups", ("level", "KernelBench", "kevin-env"), _median_rows(kernels)),
    )
    yield from (table for table in found if table.rows)


def _differences(kernels: Iterable[Kernel]) -> Iterator[tuple[Kernel, Agreement, Outcome]]:
    """Each kernel whose verdicts differ, with the one that refuses it."""
    for kernel in kernels:
        agreement = agreement_of(kernel)
        ours = kernel.entry.outcome if kernel.entry else None
        refusal = kernel.sample.verdict if agreement == "only_kevin_env_accepts" else ours
        if agreement in DIFFERENT and refusal is not None:
            yield kernel, agreement, refusal


def _level_rows(kernels: Sequence[Kernel]) -> Iterator[tuple[str, ...]]:
    for level, count in counts(kernels).items():
        share = agreeing(count)
        agree = "" if share is None else f"{share:.1%}"
        yield (str(level), str(count.total()), agree, *(str(count[each]) for each in HEADINGS))


def _difference_rows(kernels: Sequence[Kernel]) -> Iterator[tuple[str, ...]]:
    for kernel, agreement, outcome in _differences(kernels):
        reason = _reason(outcome)
        input_set = input_set_of(outcome) if agreement == "only_kernelbench_accepts" else None
        reason += f" (input set {input_set})" if input_set else ""
        yield _name(kernel), HEADINGS[agreement], f"{outcome.category}/{outcome.kind}", reason


def _median_rows(kernels: Sequence[Kernel]) -> Iterator[tuple[str, ...]]:
    """Medians over kernels that both accept, for levels with any recorded speedup."""
    accepted = [
        kernel for kernel in kernels if agreement_of(kernel) == "both_accept" and kernel.entry
    ]
    for level in sorted({kernel.sample.level for kernel in accepted}):
        those = [kernel for kernel in accepted if kernel.sample.level == level]
        recorded = [speedup_of(kernel.sample.verdict) for kernel in those if kernel.sample.verdict]
        ours = [speedup_of(kernel.entry.outcome) for kernel in those if kernel.entry]
        if any(medians := (_median(recorded), _median(ours))):
            yield str(level), *medians


def _median(speedups: Sequence[float | None]) -> str:
    known = [speedup for speedup in speedups if speedup is not None]
    return f"{speedup_text(statistics.median(known))} of {len(known)}" if known else ""


def _time(outcome: Outcome | None) -> str:
    """Such as `2.10x [2.05, 2.15], 1.25 ms`, or its known part."""
    if not isinstance(outcome, Correct):
        return ""
    seconds = outcome.submission_seconds
    parts = [
        speedup_text(outcome.speedup, outcome.speedup_interval),
        f"{seconds * 1e3:.3g} ms" if seconds else "",
    ]
    return ", ".join(filter(None, parts))


def _verdict(outcome: Outcome) -> dict[str, Any]:
    timed = outcome if isinstance(outcome, Correct) else None
    return {
        "category": outcome.category,
        "kind": outcome.kind,
        "message": _reason(outcome),
        "line": outcome.line,
        "input_set": input_set_of(outcome),
        "speedup": speedup_of(outcome),
        "speedup_interval": interval_of(outcome),
        "reference_seconds": timed and timed.reference_seconds,
        "submission_seconds": timed and timed.submission_seconds,
    }


def _reason(outcome: Outcome) -> str:
    """The first line of the message, shortened: it may be a compiler's command line."""
    line = outcome.message.strip().partition("\n")[0]
    return line if len(line) <= REASON else f"{line[: REASON - 1]}…"


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*map(shown, row))
    return table


def _name(kernel: Kernel) -> str:
    return kernel.sample.file.name.removesuffix("_kernel.py")


@dataclass(frozen=True, slots=True)
class Report:
    """All kernels of a run with both verdicts and the terms of kevin-env's."""

    run: str
    terms: Terms
    kernels: Sequence[Kernel]

    @property
    def unjudged(self) -> int:
        """The number of kernels without a verdict of kevin-env."""
        return sum(kernel.entry is None for kernel in self.kernels)

    def row(self) -> dict[str, Any]:
        """The object of `judge --kernelbench-run --json`."""
        levels = [
            {"level": level, "kernels": count.total(), "agreement": agreeing(count)}
            | {each: count[each] for each in HEADINGS}
            for level, count in counts(self.kernels).items()
        ]
        why = [
            {"level": level, "agreement": agreement, "refusal": refusal, "kernels": count}
            for (level, agreement, refusal), count in reasons(self.kernels).most_common()
        ]
        kernels = [row_of(kernel) for kernel in self.kernels]
        terms = self.terms.model_dump()
        return {"run": self.run, **terms, "levels": levels, "reasons": why, "kernels": kernels}

    def print(self, console: Console) -> None:
        """Prints the tables."""
        for table in tables(self.kernels):
            console.print(table)

    def write(self, folder: Path) -> Path:
        """Writes the tables in Markdown, with times and speedups of kernels that both accept.

        Returns the file's path, and raises BadInput if it cannot be written.
        """
        both = (each for each in self.kernels if agreement_of(each) == "both_accept")
        rows = [
            (_name(each), _time(each.sample.verdict), _time(each.entry and each.entry.outcome))
            for each in both
        ]
        times = _table("Times and speedups", ("kernel", "KernelBench", "kevin-env"), rows)
        text = markdown_page(
            title=f"KernelBench run {self.run}",
            facts=self.terms,
            grids=[grid_of(each) for each in (*tables(self.kernels), times) if each.rows],
        )
        write_text(folder / REPORT, text)
        return folder / REPORT
