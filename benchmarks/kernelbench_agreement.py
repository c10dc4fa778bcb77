"""Judges KernelBench runs again: agreement with our verdicts by run, level and kind of difference.

Each RUN is a folder as KernelBench writes it, for the version of its problems in
KEVIN_ENV_KERNELBENCH. Verdicts are kept in it (`kevin_verdicts.jsonl`), so that a rerun resumes.
The result holds no kernels, but counts, and both verdicts with their messages where they differ.

    KEVIN_ENV_KERNELBENCH=... python benchmarks/kernelbench_agreement.py --device cuda \\
        --json benchmarks/results/kernelbench_agreement.h200.json RUN...
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from resultfile import Row, device_name, plain_row, write_result

from kevin_env.app.rejudge.comparison import (
    DIFFERENT,
    HEADINGS,
    Agreement,
    Report,
    agreeing,
    counts,
    row_of,
)
from kevin_env.app.rejudge.run import Terms, read_run, rejudge
from kevin_env.app.screen import make_console
from kevin_env.judge import Options
from kevin_env.pools.local import LocalPool


def rows_of(report: Report) -> Iterator[Row]:
    """The counts of a run by level, then its differences."""
    for level, count in counts(report.kernels).items():
        yield from _counted(f"{report.run}.L{level}", count)
    for kernel in report.kernels:
        row = row_of(kernel)
        if row["agreement"] in DIFFERENT:
            speedup = row["kevin_env"]["speedup"]
            name = f"{report.run}.{kernel.sample.file.name.removesuffix('_kernel.py')}"
            yield plain_row(name, speedup, "times the reference") | {key: row[key] for key in _KEPT}


_KEPT = ("problem", "agreement", "kernelbench", "kevin_env")


def _counted(name: str, count: Counter[Agreement]) -> Iterator[Row]:
    share, compared = agreeing(count), count.total() - count["no_verdict"] - count["not_judged"]
    yield plain_row(f"{name}.agreement", share, "fraction", compared)
    yield from (
        plain_row(f"{name}.{each}", count[each], "kernels", count.total()) for each in HEADINGS
    )


def all_rows(reports: Sequence[Report]) -> Iterator[Row]:
    """First the counts over all runs."""
    every = (count for report in reports for count in counts(report.kernels).values())
    yield from _counted("all", sum(every, Counter[Agreement]()))
    for report in reports:
        yield from rows_of(report)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rules", default="open", choices=("kernel", "partial", "open"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    errors, reports = make_console(stream="stderr"), list[Report]()
    runs = {folder: read_run(folder, errors) for folder in arguments.runs}
    with LocalPool() as pool:
        info = pool.device(arguments.device)
        options = Options(device=arguments.device, rules=arguments.rules)
        terms = Terms(
            rules=arguments.rules,
            inputs=options.inputs,
            baseline=options.baseline,
            hardware=info.name,
        )
        for folder, kernels in runs.items():
            ended = rejudge(kernels, folder, pool, options, terms, errors)
            reports.append(Report(folder.resolve().name, terms, ended))
            reports[-1].write(folder)
            write_result(arguments.json, device_name(info), info.versions, all_rows(reports))
    for row in all_rows(reports):
        if row["name"].endswith(".agreement"):
            print(f"{row['name']:40} {row['value'] or 0:7.1%} of {row['n']}")


if __name__ == "__main__":
    main()
