"""Triton submissions judged twice: their recorded launches are played, and in their own process.

Rows: how many are recorded, how many get the same verdict both ways, and the median of the played
speedup over the other. Each file that is not recorded, and each pair of different verdicts, is
printed. Exits with 1 if verdicts differ.

    python benchmarks/replayed.py [FILE ...] [--at-once 8] [--json FILE]

Without FILE: all honest files of the corpus and reference solutions in Triton. Other FILEs are of
the corpus, such as `hostile/illegal_access`.
"""

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from honest import FOLDER, Entry, honest_entries, kind_of, read_entry, solution_entries
from resultfile import device_name, plain_row, write_result

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.outcome import Correct, speedup_of
from kevin_env.parsing import as_submission
from kevin_env.pools.local import LocalPool

SECONDS = 300.0
"""For one judgement, in a queue with others."""
Pair = tuple[Entry, Judgement, Judgement]


def judged(pool: LocalPool, entry: Entry) -> Pair:
    """One file: played where possible, then in its own process."""
    played, own = (
        pool.submit(
            entry.task,
            Submission(code=as_submission(entry.code)),
            Options(device="cuda", rules=entry.rules, replay=how),  # type: ignore[arg-type]
        ).result(SECONDS)
        for how in ("auto", "never")
    )
    return entry, played, own


def agree(one: Judgement, other: Judgement) -> bool:
    """Whether both are the same verdict, with speedups within their intervals."""
    a, b = one.outcome, other.outcome
    if not isinstance(a, Correct) or not isinstance(b, Correct):
        return (a.category, a.kind) == (b.category, b.kind)
    if a.speedup_interval is None or b.speedup_interval is None:
        return a.kind == b.kind
    (low, high), (least, most) = a.speedup_interval, b.speedup_interval
    return low <= most and least <= high


def described(judgement: Judgement) -> str:
    """The verdict in a few words."""
    outcome = judgement.outcome
    speed = speedup_of(outcome)
    text = outcome.message if speed is None else f"{speed:.3f}x"
    return f"{outcome.category}/{outcome.kind} {text} in {judgement.seconds.total:.2f} s"[:100]


def main() -> None:
    """Judges, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    entries = [read_entry(FOLDER / f"{name}.py") for name in arguments.files] or [
        each
        for each in (*solution_entries("cuda"), *honest_entries("cuda"))
        if kind_of(each.code) == "triton"
    ]
    pairs = list[Pair]()
    with LocalPool() as pool, ThreadPoolExecutor(arguments.at_once) as threads:
        for entry, played, own in threads.map(partial(judged, pool), entries):
            pairs.append((entry, played, own))
            note = "" if agree(played, own) else "  DIFFERENT"
            how = played.unrecorded or played.run
            text = f"{entry.name:48} {how:30} {described(played)} | {described(own)}{note}"
            print(text, flush=True)
    recorded = [pair for pair in pairs if pair[1].run == "replayed"]
    different = sum(not agree(played, own) for _, played, own in pairs)
    ratios = list[float]()
    for _, played, own in pairs:
        one, other = speedup_of(played.outcome), speedup_of(own.outcome)
        if played.run == "replayed" and one and other:
            ratios.append(one / other)
    rows = [
        plain_row("files", len(pairs)),
        plain_row("replayed", len(recorded) / len(pairs), "share", len(pairs)),
        plain_row("same verdict", 1 - different / len(pairs), "share", len(pairs)),
    ]
    if ratios:
        name = "speedup when played over that in its own process"
        rows.append(plain_row(name, statistics.median(ratios), "share", len(ratios)))
    info = pairs[0][1].device
    write_result(arguments.json, device_name(info), info.versions, rows)
    for row in rows:
        print(f"{row['name']:50} {row['value']:.4g} {row['unit']}")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
