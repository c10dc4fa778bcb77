"""Verdicts of the rules on public model outputs: counts by model, level and mode.

Each RUN is a folder of files named as KernelBench names them
(`level_1_problem_23_sample_0_kernel.py`), and is named after its model (`qwen3-l1`). A SET is a
folder of other submissions, as `labelled.py` makes. With --old, a checkout of an earlier version
judges the same files under `kernel`, and pairs of verdicts are counted; --show names the files of
one pair. The result holds no text of submissions.

    python benchmarks/rules_agreement.py RUN... --sets SET... --old ../earlier \\
        --json benchmarks/results/rules_agreement.cpu.json
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from resultfile import Row, median_row, plain_row, write_result

ROOT = Path(__file__).parents[1]
READ = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kevin_env.rules import check_rules
verdicts = []
for name in json.load(sys.stdin):
    code, start = Path(name).read_text(encoding="utf-8"), time.process_time()
    verdict = check_rules(code, sys.argv[2])
    seconds = time.process_time() - start
    name = "accepted" if verdict is None else f"{verdict.category}/{verdict.kind}"
    verdicts.append([name, seconds])
print(json.dumps(verdicts))
"""
Verdicts = dict[Path, str]


def verdicts_of(root: Path, mode: str, files: Sequence[Path]) -> tuple[Verdicts, list[float]]:
    """Verdicts of a checkout on each file, and CPU seconds.

    Runs in a separate process, since both checkouts have the same package name.
    """
    command = [sys.executable, "-c", READ, str(root.resolve()), mode]
    names = json.dumps([str(file) for file in files])
    results = json.loads(
        subprocess.run(command, input=names, capture_output=True, text=True, check=True).stdout
    )
    return {file: verdict for file, (verdict, _) in zip(files, results, strict=True)}, [
        seconds for _, seconds in results
    ]


def correct_in(run: Path) -> set[str]:
    """The files of a run that are correct by KernelBench's results, if there are any."""
    file = run / "eval_results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    samples = {
        problem: each if isinstance(each, list) else [each] for problem, each in results.items()
    }
    return {
        f"problem_{problem}_sample_{sample['sample_id']}_kernel.py"
        for problem, each in samples.items()
        for sample in each
        if sample.get("correctness")
    }


def counted(mode: str, verdicts: Verdicts) -> Iterator[Row]:
    """The share of each verdict by model and level, of all files and of correct ones."""
    groups: dict[str, list[str]] = {}
    correct = {run: correct_in(run) for run in {file.parent for file in verdicts}}
    for file, verdict in verdicts.items():
        _, level, sample = file.name.split("_", 2)
        models = [re.sub(r"-l\d$", "", file.parent.name), "all"]
        models += ["correct"] if sample in correct[file.parent] else []
        for group in (*(f"{model}.L{level}" for model in models), *models[1:]):
            groups.setdefault(group, []).append(verdict)
    for group in sorted(groups):
        for verdict, count in Counter(groups[group]).most_common():
            share = count / len(groups[group])
            yield plain_row(f"{group}.{mode}.{verdict}", share, "fraction", len(groups[group])) | {
                "count": count
            }


def rows_of_set(folder: Path, old: Path | None) -> Iterator[Row]:
    """The number of files of a set with each verdict, by mode and under the old version."""
    files = sorted(folder.absolute().glob("*.py"))
    runs = {mode: (ROOT, mode) for mode in ("kernel", "partial")}
    for name, (root, mode) in (runs | ({"old": (old, "kernel")} if old else {})).items():
        verdicts, _ = verdicts_of(root, mode, files)
        for verdict, count in Counter(verdicts.values()).most_common():
            yield plain_row(f"set.{folder.name}.{name}.{verdict}", count, "files", len(files))


def pairs_of(old: Verdicts, new: Verdicts) -> Counter[tuple[str, str]]:
    """Counts of pairs of verdicts of the old and the new version."""
    return Counter((verdict, new[file]) for file, verdict in old.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--sets", nargs="+", default=[], type=Path, metavar="SET")
    parser.add_argument("--old", type=Path, help="A checkout of an earlier version.")
    parser.add_argument(
        "--show", nargs=2, metavar=("OLD", "NEW"), help="Name the files of this pair of verdicts."
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = [
        file for run in options.runs for file in sorted(run.absolute().glob("level_*_kernel.py"))
    ]
    rows, new, start = list[Row](), Verdicts(), time.perf_counter()
    for mode in ("partial", "kernel"):
        new, seconds = verdicts_of(ROOT, mode, files)
        rows += [*counted(mode, new), median_row(f"{mode}.seconds", seconds)]
        rows.append(
            plain_row(
                f"{mode}.seconds.p99", statistics.quantiles(seconds, n=100)[98], "s", len(seconds)
            )
        )
    if options.old:
        old, _ = verdicts_of(options.old, "kernel", files)
        for (before, after), count in pairs_of(old, new).most_common():
            rows.append(plain_row(f"old.{before}.new.{after}", count, "files", len(files)))
        if options.show:
            print(*(file for file in files if [old[file], new[file]] == options.show), sep="\n")
    for folder in options.sets:
        rows += rows_of_set(folder, options.old)
    write_result(options.json, "cpu", {"python": platform.python_version()}, rows)
    for row in rows:
        if row["name"].startswith(("all", "correct", "old", "kernel", "partial", "set")):
            print(f"{row['name']:60} {row['value']:9.4g} of {row['n']}")
    print(f"{len(files)} files in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
