"""The files of tests/submissions/languages on a GPU: verdicts, speedups and seconds by language.

Honest files are judged one after the other; `turn` is the time from the reply to the verdict. The
first one of a language also waits for its fork server (`first turn`). Broken and hostile files are
judged at once. Reference solutions in Triton for the same problems come first, for comparison.
Languages whose package is not installed are left out.

    python benchmarks/languages.py [--language NAME]... \\
        [--json benchmarks/results/languages.h200.json]
"""

import argparse
import sys
import time
from pathlib import Path

from honest import FOLDER, Entry, read_entry, solution_entries, warm
from resultfile import Results, Row, device_name, plain_row

from kevin_env.extract import extract_file
from kevin_env.judge import Judgement, Options
from kevin_env.languages import LANGUAGES, installed, obstacle
from kevin_env.outcome import Correct, FormatError, Outcome
from kevin_env.pools.local import LocalPool
from kevin_env.rules import check_rules

CUDA = Options(device="cuda", require_sandbox=True)
PATIENCE = 280.0
"""Seconds for a verdict."""


def read_files(language: str) -> list[Entry]:
    """The files of a language, honest ones first; for Triton also solutions of their problems."""
    paths = sorted((FOLDER / "languages" / language).glob("*.py"))
    entries = [read_entry(path) for path in paths]
    if language == "triton":
        wanted = {each.problem for each in read_files("gluon") if each.expect == "correct"}
        entries += [
            each
            for each in solution_entries("cuda")
            if each.problem in wanted and each.path.name.endswith(".triton.py")
        ]
    return sorted(entries, key=lambda each: each.expect != "correct")


def refused(entry: Entry) -> Outcome | None:
    """The verdict of what reads the file only, if there is one."""
    found = extract_file(entry.code)
    return found if isinstance(found, FormatError) else check_rules(entry.code, entry.rules)


def described(entry: Entry, outcome: Outcome, judgement: Judgement | None, turn: float) -> Row:
    """The row of a file: its value is 1 if it ended as expected."""
    met = entry.met_by(outcome, "cuda")
    row = plain_row(f"{entry.path.parent.name}/{entry.path.stem}", float(met))
    row |= {"verdict": f"{outcome.category}/{outcome.kind}", "expected": entry.expect}
    row |= {"problem": entry.problem, "message": outcome.message[:200], "turn": turn}
    row |= {"line": getattr(outcome, "line", None)}
    if isinstance(outcome, Correct):
        row |= {"speedup": outcome.speedup, "interval": outcome.speedup_interval}
    if judgement is not None:
        seconds = judgement.seconds.model_dump()
        row |= {"run": judgement.run, "unrecorded": judgement.unrecorded, "seconds": seconds}
        row |= {"log": "" if met else judgement.log[-1500:]}
    print(row, flush=True)
    return row


def measure(pool: LocalPool, language: str) -> list[Row]:
    """All files of a language."""
    entries, rows = read_files(language), list[Row]()
    honest = [each for each in entries if each.expect == "correct"]
    for number, entry in enumerate(honest):
        warm(pool, entry.task, CUDA)
        began = time.perf_counter()
        outcome, judgement = refused(entry), None
        if outcome is None:
            submission = extract_file(entry.code)
            judgement = pool.submit(entry.task, submission, CUDA).result(PATIENCE)  # type: ignore[arg-type]
            outcome = judgement.outcome
        rows.append(described(entry, outcome, judgement, time.perf_counter() - began))
        if number == 0:  # again, with its fork server running
            rows[-1]["name"] += ", first turn"
            honest.append(entry)
    waiting = []
    for entry in entries:
        if entry.expect == "correct":
            continue
        if (outcome := refused(entry)) is not None:
            rows.append(described(entry, outcome, None, 0.0))
            continue
        options = CUDA.model_copy(update={"rules": entry.rules})
        submission = extract_file(entry.code)
        waiting.append((entry, pool.submit(entry.task, submission, options)))  # type: ignore[arg-type]
    for entry, future in waiting:
        judgement = future.result(PATIENCE)
        rows.append(described(entry, judgement.outcome, judgement, judgement.seconds.total))
    return rows


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["triton", *(each.name for each in LANGUAGES.values() if not each.collected)]
    parser.add_argument("--language", action="append", choices=names)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    versions, rows = installed(), list[Row]()
    with LocalPool() as pool:
        info = pool.describe(read_files("gluon")[0].task, CUDA).result().device
        results = Results(arguments.json, device_name(info), info.versions)
        for language in arguments.language or names:
            if why := obstacle(language, on_gpu=True, versions=versions):
                print(why, flush=True)
                continue
            found = measure(pool, language)
            version = versions.get(LANGUAGES[language].package, "")
            results.put(*(row | {"version": version} for row in found))
            rows += found
    unmet = [row["name"] for row in rows if not row["value"]]
    print(f"{len(rows) - len(unmet)} of {len(rows)} as expected; not: {', '.join(unmet) or 'none'}")
    return 1 if unmet else 0


if __name__ == "__main__":
    sys.exit(main())
