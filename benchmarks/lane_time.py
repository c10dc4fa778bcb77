"""Where the time of a lane goes: which function of the judge the submission in it is in.

Honest submissions are judged in this process, first one after the other, then several at once. A
thread looks every two milliseconds at the thread that holds the lane. Rows: seconds in the lane for
each turn, the share of the time that the lane is held, turns per second, and milliseconds per turn
by function, callees included, of those that take at least 2 % of the lane.

    python benchmarks/lane_time.py [--device cpu|cuda] [--count 40] [--at-once 16] [--depth 6] \\
        [--json FILE]
"""

import argparse
import collections
import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from honest import Entry, filled_up, freshened
from resultfile import Row, device_name, plain_row, write_result
from throughput import KINDS, mixed

from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.judge.lane import Lane
from kevin_env.parsing import as_submission

STEP = 0.002
"""Seconds between two looks."""
LEAST = 0.02
"""Share of the lane's time from which a function is shown."""
ENTERED = "_attempt"
"""The function of the judge that enters the lane."""
Stack = tuple[str, ...]


class Watched(Lane):
    """A lane that notes which thread holds it, and for how long."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.thread: int | None = None
        self.stays = list[float]()
        self._since = 0.0

    def _enter(self) -> None:
        super()._enter()
        self.thread, self._since = threading.get_ident(), time.perf_counter()

    def _leave(self) -> None:
        if self.thread is not None:
            self.stays.append(time.perf_counter() - self._since)
        self.thread = None
        super()._leave()


class Sampler:
    """Looks at the thread in a lane.

    Attributes:
        stacks: How often each stack of functions was seen.
    """

    def __init__(self, lane: Watched) -> None:
        self.stacks = collections.Counter[Stack]()
        self._lane = lane

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Looks inside."""
        done = threading.Event()
        thread = threading.Thread(target=self._look, args=(done,))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _look(self, done: threading.Event) -> None:
        while not done.wait(STEP):
            thread = self._lane.thread
            frame = sys._current_frames().get(thread) if thread is not None else None
            names = list[str]()
            while frame is not None:
                module = frame.f_globals.get("__name__", "")
                if module.startswith("kevin_env.judge"):
                    names.append(
                        f"{module.removeprefix('kevin_env.judge.')}:{frame.f_code.co_name}"
                    )
                frame = frame.f_back
            names.reverse()
            start = next((i for i, name in enumerate(names) if name.endswith(ENTERED)), None)
            if start is not None:
                self.stacks[tuple(names[start + 1 :])] += 1

    def rows(self, name: str, seconds: float, depth: int) -> list[Row]:
        """Milliseconds by function; `seconds` are those of a turn in the lane."""
        total = sum(self.stacks.values())
        below = collections.Counter[Stack]()
        for stack, count in self.stacks.items():
            for end in range(1, min(depth, len(stack)) + 1):
                below[stack[:end]] += count
        return [
            plain_row(f"{name}: {' > '.join(stack)}", 1e3 * seconds * count / total, "ms", count)
            for stack, count in sorted(below.items())
            if count >= LEAST * total
        ]


def judged(judge: Judge, entries: list[Entry], at_once: int) -> float:
    """Judges all of them, with new source text, and returns the seconds.

    Raises:
        SystemExit: if one is not correct.
    """
    codes = [freshened(entry, time.time_ns() % (1 << 29) + i) for i, entry in enumerate(entries)]
    options = Options(device=str(judge.device))

    def one(entry: Entry) -> None:
        code = Submission(code=entry.code)
        outcome = judge.judge(entry.task, code, options, lambda _: None).outcome
        if outcome.category != "correct":
            raise SystemExit(f"{entry.name}: {outcome.message}")

    start = time.perf_counter()
    with ThreadPoolExecutor(at_once, initializer=judge.enter_thread) as threads:
        list(threads.map(one, codes))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = filled_up(KINDS[options.device], options.count, options.device)
    entries, rows = mixed(found, options.count), list[Row]()
    device = "cuda:0" if options.device == "cuda" else "cpu"
    with contextlib.closing(Judge(device)) as judge:
        lane = Watched(judge.bench.lane.file.stem)
        judge.bench.lane = lane
        for task in {entry.problem: entry.task for entry in entries}.values():  # warms it up
            code = Submission(code=as_submission(task.source))
            judge.judge(task, code, Options(device=device), lambda _: None)
        for name, at_once in (("alone", 1), (f"{options.at_once} at once", options.at_once)):
            sampler = Sampler(lane)
            lane.stays.clear()
            with sampler.looking():
                wall = judged(judge, entries, at_once)
            held = sum(lane.stays)
            rows += [
                plain_row(f"{name}: turns", len(entries) / wall, "turns/s", len(entries)),
                plain_row(f"{name}: lane", held / len(entries), "s", len(entries)),
                plain_row(f"{name}: lane held", held / wall, "share"),
                *sampler.rows(name, held / len(entries), options.depth),
            ]
        write_result(options.json, device_name(judge.info), judge.info.versions, rows)
    for row in rows:
        print(f"{row['value']:10.3f} {row['unit']:8} {row['name']}")


if __name__ == "__main__":
    main()
