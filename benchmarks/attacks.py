"""Judges every attack and every honest kernel of the corpus on one device.

    python benchmarks/attacks.py [--device cpu|cuda] [--at-once N] [--json FILE] [NAME...] \\
        [--repeats 1] [--beside 0]

A name is such as `hostile/early_done`, or `honest`; the default is all files for the device. Rows
of other files are kept. `--at-once` files are judged at a time: on a GPU by one judge, on a CPU by
as many judges. With `--repeats`, a file has to end as expected every time; with `--beside N`, that
many busy loops run meanwhile. Exits with 1 if a file does not end as expected.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from queue import SimpleQueue

from machine import busy_loops
from resultfile import Row, device_name, known_rows, plain_row, write_result

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import NO_GAIN, Entry, judged, read_corpus

from kevin_env.judge import JudgeError
from kevin_env.outcome import speedup_of
from kevin_env.pools.local import LocalPool
from kevin_env.score import at_bound

UNIT = "as expected"
FOLDERS = {"hostile": "attacks", "honest": "honest kernels"}


def repeated_row(entry: Entry, device: str, pools: SimpleQueue[LocalPool], repeats: int) -> Row:
    """The first row of a file that did not end as expected, else the last one."""
    for number in range(1, repeats + 1):
        row = judged_row(entry, device, pools) | {"n": number}
        if not row["value"]:
            break
    return row


def judged_row(entry: Entry, device: str, pools: SimpleQueue[LocalPool]) -> Row:
    """A file as a row, whose value is 1 if it ended as expected."""
    pool = pools.get()
    try:
        outcome, log, flags = judged(entry, device, pool)
    except JudgeError as error:
        return plain_row(entry.name, 0, UNIT) | {
            "expect": entry.expect,
            "got": f"JudgeError: {error}",
        }
    finally:
        pools.put(pool)
    right = entry.met_by(outcome, device) and "BREACH" not in log
    row = plain_row(entry.name, int(right), UNIT) | {
        "expect": entry.expect,
        "got": f"{outcome.category}/{outcome.kind}",
        "speedup": speedup_of(outcome),
        "paid": speedup_of(at_bound(outcome)),
        "flags": sorted(flags),
    }
    return row if right else row | {"message": outcome.message, "log": log[-1000:]}


def line_of(row: Row) -> str:
    """What a file must get and what it got: a verdict, and of a right kernel its speedup."""
    got, speedup, paid = row["got"], row.get("speedup"), row.get("paid")
    if speedup is not None and paid is not None:
        got = f"correct, {speedup:.2f}x, paid {paid:.2f}x"
        if unpaid_gain(row):
            got += ": the median gains, what is paid does not"
    said = (
        f"{'ok ' if row['value'] else 'BAD'} {row['name']:42} must get {row['expect']}; got {got}"
    )
    return f"{said} {row.get('message', '')}".rstrip()


def unpaid_gain(row: Row) -> bool:
    """Whether a file that must gain nothing does so only by the lower end of its interval."""
    speedup = row.get("speedup") or 0.0
    return bool(row["value"]) and "no gain" in row["expect"] and speedup >= NO_GAIN


def total_rows(rows: Iterable[Row]) -> list[Row]:
    """The numbers of attacks and honest kernels that ended as expected."""
    totals = []
    for folder, what in FOLDERS.items():
        of = [row for row in rows if row["name"].startswith(f"{folder}/")]
        totals.append(
            plain_row(f"{what} that ended as expected", sum(row["value"] for row in of), n=len(of))
        )
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--at-once", type=int, default=max(2, min(5, (os.cpu_count() or 1) // 3)))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--beside", type=int, default=0, help="busy loops")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    entries = [
        each
        for each in read_corpus(options.device, "any")
        if not options.names or {each.name, each.path.parent.name}.intersection(options.names)
    ]
    pools: SimpleQueue[LocalPool] = SimpleQueue()
    with ExitStack() as stack:
        # a judge takes device memory, and judges as many files at a time itself
        judges = 1 if options.device == "cuda" else options.at_once
        started = [stack.enter_context(LocalPool()) for _ in range(judges)]
        for pool, _ in zip(cycle(started), range(options.at_once), strict=False):
            pools.put(pool)
        info = started[0].device(options.device)
        rows = {
            name: row
            for name, row in known_rows(options.json, info.versions).items()
            if row["unit"] == UNIT
        }
        threads = stack.enter_context(ThreadPoolExecutor(options.at_once))
        stack.enter_context(busy_loops(options.beside))
        began = time.monotonic()
        print(
            f"{len(entries)} files, each with what it must get and what it got. 'no gain' is a "
            f"paid speedup below {NO_GAIN:g}x.",
            flush=True,
        )
        futures = [
            threads.submit(repeated_row, each, options.device, pools, options.repeats)
            for each in entries
        ]
        for done, future in enumerate(as_completed(futures), start=1):
            row = future.result()
            rows[row["name"]] = row
            left = (time.monotonic() - began) / done * (len(entries) - done)
            print(f"{done:3}/{len(entries)} {left:4.0f} s left  {line_of(row)}", flush=True)
            if options.json:
                write_result(
                    options.json,
                    device_name(info),
                    info.versions,
                    [*total_rows(rows.values()), *rows.values()],
                )
    unpaid = sum(map(unpaid_gain, rows.values()))
    print(f"{'no gain by the lower end of the interval alone':47} {unpaid:3}")
    for row in total_rows(rows.values()):
        print(f"{row['name']:45} {row['value']:5} of {row['n']}")
    sys.exit(any(not row["value"] for row in rows.values()))


if __name__ == "__main__":
    main()
