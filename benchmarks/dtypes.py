"""Whether references run in every type, and accept themselves.

    python benchmarks/dtypes.py --device cuda:0 --json benchmarks/results/dtypes.h100.json \
        [kernelbench: L1 PATH...] [--dtype float16] [--backward] [--jobs 8] [--resume]

Each problem is judged in each type, with its own reference as the submission, on all input sets of
a verdict and without timing. Rows are `TYPE: PROBLEM`, with 1 for what is
accepted and otherwise 0 and the reason, and `TYPE` with the count, for ours and for KernelBench's.
With `--backward` gradients are judged, too, and the names of rows begin with `backward, `. Rows of
other problems in the file are kept.
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import get_args

from resultfile import Results, Row, device_name, known_rows, plain_row

from kevin_env.app.screen import make_console, show
from kevin_env.judge import JudgeError, Options
from kevin_env.judge.judge import Judge
from kevin_env.judge.server import start_judge
from kevin_env.kernelbench import PREFIX
from kevin_env.lint.examine import screen, untimed
from kevin_env.outcome import RuntimeFailure
from kevin_env.problem import Dtype, Problem, ProblemError, list_problems
from kevin_env.selection import find_problems

DTYPES: tuple[Dtype, ...] = get_args(Dtype)
UNIT = "accepted"
SECONDS = 600.0
"""For a call: references on a CPU may be slow."""
LONGEST = 300
"""Characters of a reason."""
_MODEL = re.compile(r"\bModel\b")


def reason(judge: Judge, options: Options, problem: Problem) -> str:
    """Why a reference is not accepted as a submission, in one line; empty if it is."""
    judge.enter_thread()
    code = _MODEL.sub("ModelNew", problem.source)
    try:
        outcome = screen(judge, problem, code, options)
    except (ProblemError, JudgeError) as error:
        return f"{type(error).__name__}: {error}"[:LONGEST]
    if outcome is None:
        return ""
    where = outcome.input_set if not isinstance(outcome, RuntimeFailure) else ""
    return f"{outcome.category}/{outcome.kind} {where}: {outcome.message}"[:LONGEST]


def counts(rows: Iterable[Row], prefix: str) -> Iterator[Row]:
    """The rows with counts, of all rows for problems in one type."""
    for title, of_kernelbench in (("ours", False), ("KernelBench", True)):
        own = [
            row for row in rows
            if row["name"].startswith(f"{prefix}: ")
            and (row["problem"].startswith(PREFIX) is of_kernelbench)
        ]  # fmt: skip
        if own:
            accepted = sum(row["value"] for row in own)
            yield plain_row(f"{prefix}, {title}", accepted, UNIT, len(own))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="as of `eval --problems`; by default all of ours")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--dtype", choices=DTYPES, action="append")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--resume", action="store_true", help="leave out problems that have rows")
    parser.add_argument("--jobs", type=int, default=4, help="judged at once")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    problems = find_problems(given.names) if given.names else tuple(list_problems())
    console, judge = make_console(), start_judge(given.device, None, None, untimed)
    try:
        results = Results(given.json, device_name(judge.info), judge.info.versions)
        rows = known_rows(given.json, judge.info.versions)
        for dtype in given.dtype or DTYPES:
            prefix = f"backward, {dtype}" if given.backward else dtype
            options = Options(
                device=given.device, dtype=dtype, backward=given.backward, call_timeout=SECONDS
            )
            left = [p for p in problems if not (given.resume and f"{prefix}: {p.id}" in rows)]
            with ThreadPoolExecutor(given.jobs) as threads:
                reasons = threads.map(partial(reason, judge, options), left)
                for problem, why in zip(left, reasons, strict=True):
                    row = plain_row(f"{prefix}: {problem.id}", int(not why), UNIT)
                    rows[row["name"]] = row = row | {"problem": problem.id, "reason": why}
                    results.put(row)
                    if why:
                        show(console, f"{prefix}: {problem.id}: {why}")
            results.report(*counts(rows.values(), prefix))
    finally:
        judge.close()


if __name__ == "__main__":
    main()
