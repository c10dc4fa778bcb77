"""The difficulty of our problems against how often public answers to them are correct.

Each RUN is a folder as KernelBench writes it, with its verdicts. Only KernelBench's problems that
are also ours count. Rows are each problem's share of correct answers, and the rank correlation
(Spearman) of difficulty and share of wrong answers, over problems and over families (median and
mean).

    python benchmarks/pass_rates.py [--json benchmarks/results/pass_rates.cpu.json] RUN...
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from resultfile import Row, plain_row, write_result

from kevin_env.app.kernelbench_run import read_samples
from kevin_env.difficulty import measured
from kevin_env.judge.device import inform, resolve
from kevin_env.problem import list_problems


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal ones share their mean rank."""
    return [
        sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values
    ]


def correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Of the ranks of difficulty and of the share of wrong answers."""
    hard, correct = zip(*pairs, strict=True)
    return statistics.correlation(ranks(hard), ranks([1 - each for each in correct]))


def rows_of(runs: Sequence[Path]) -> list[Row]:
    """The rows of all runs."""
    correct = defaultdict[tuple[int, int], list[bool]](list)
    for run in runs:
        for sample in read_samples(run, print):
            if sample.verdict is not None:
                found = sample.verdict.category == "correct"
                correct[sample.level, sample.number].append(found)
    rows, families = list[Row](), defaultdict[str, list[tuple[float, float]]](list)
    for problem in list_problems():
        answers, known = correct.get((problem.level or 0, problem.number or 0)), measured(problem)
        if answers and known:
            share, hard = statistics.mean(answers), known.difficulty
            families[problem.tags[0]].append((hard, share))
            row = plain_row(problem.id, share, "share of correct answers", len(answers))
            rows.append(row | {"difficulty": hard, "family": problem.tags[0]})
    pairs = [pair for of in families.values() for pair in of]
    means = [
        (statistics.median(hard for hard, _ in of), statistics.mean(share for _, share in of))
        for of in families.values()
    ]
    return [
        plain_row("rank correlation: problems", correlation(pairs), "", len(pairs)),
        plain_row("rank correlation: families", correlation(means), "", len(means)),
        plain_row("answers", sum(row["n"] for row in rows), "count", len(runs)),
        *rows,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = rows_of(options.runs)
    for row in rows:
        print(f"{row['value']:8.3f} n = {row['n']:3} {row.get('difficulty', '')} {row['name']}")
    write_result(options.json, "cpu", inform(resolve("cpu")).versions, rows)


if __name__ == "__main__":
    main()
