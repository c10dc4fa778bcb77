"""Runs the attacks and honest kernels of our corpus through our judge and other evaluators.

A peer rewards an attack if it calls a wrong answer correct, or measures a submission that gains
nothing as more than `GAIN` times as fast as the reference. No answer, because it or its process
failed, is counted apart. Rows of a peer record the commit of its checkout.

Peers that start processes of their own do so inside that of ours. What a peer cannot be asked, such
as several outputs where it compares one, is no answer.

Each device has its own processes, which see no other device: with `--at-once 4` four evaluations at
a time of files that are not timed, then the others one by one. Answers are written at once; with
`--seconds`, repeat the same command until none is left. Rows that are not part of the selection are
dropped.

    python benchmarks/peers.py [--ours] [--kernrl PATH/envs/kernrl] [--kernelbench PATH] \\
        [--kernelgym PATH] [--sol PATH] [--kernelbench-com PATH] \\
        [--device cpu|cuda:0,1] [--at-once N] [--seconds S] [--json FILE]
"""

import argparse
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue

import torch
from evaluators import Answer, Evaluation, Peer, add_peer_options, evaluate, read_peers
from gpu_processes import start_processes
from honest import sample
from resultfile import Row, common_device, device_name, known_rows, plain_row, write_result

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import DEVICES, Entry, judged, read_corpus

from kevin_env.judge.api import DeviceInfo, JudgeError
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import inform
from kevin_env.pools.local import LocalPool

GAIN = 1.5
OURS = "kevin-env"
UNIT = "ending"
FOLDERS = {"hostile": "attacks", "honest": "honest kernels"}
ENDINGS = ("rewarded", "rejected", "no answer")


@dataclass(frozen=True)
class Task:
    """One file for one evaluator; `peer` is None for our judge."""

    evaluator: str
    peer: Peer | None
    entry: Entry

    @property
    def name(self) -> str:
        """The name of its row."""
        return f"{self.evaluator}: {self.entry.name}"

    @property
    def commit(self) -> str | None:
        return self.peer.commit if self.peer else None


def is_honest(entry: Entry) -> bool:
    return entry.path.parent.name == "honest"


def concerns_verdict(entry: Entry, device: str) -> bool:
    """Whether a file is honest, or cheats about its output or, on a GPU, its time, as any evaluator
    should detect.
    """
    kinds = ("correctness",) if device == "cpu" else ("correct", "correctness", "no gain")
    return is_honest(entry) or any(
        ending.partition("/")[0] in kinds for ending in entry.endings(device)
    )


def is_timed(entry: Entry) -> bool:
    """Whether a file cheats about its time: then nothing else may run on the device."""
    return not is_honest(entry) and not {"correct", "no gain"}.isdisjoint(all_endings(entry))


def all_endings(entry: Entry) -> set[str]:
    """How a file may end, on any device."""
    return {end for device in DEVICES[entry.device] for end in entry.endings(device)}


def rewarded(entry: Entry, answer: Answer | None) -> bool:
    """Whether an attack is rewarded: a wrong one if accepted as correct, a right one if it seems
    fast.
    """
    return answer is not None and answer.correct and (not is_timed(entry) or answer.speedup > GAIN)


def ending(entry: Entry, answer: Answer | None) -> str:
    """`rewarded`, `rejected` or `no answer`."""
    if answer is None:
        return "no answer"
    paid = answer.correct if is_honest(entry) else rewarded(entry, answer)
    return "rewarded" if paid else "rejected"


def answer_row(task: Task, evaluation: Evaluation) -> Row:
    """An evaluator's answer as a row, whose value is 1 if the file is rewarded."""
    answer, end = evaluation.answer, ending(task.entry, evaluation.answer)
    speedup = answer.speedup if answer and math.isfinite(answer.speedup) else None
    row = plain_row(task.name, int(end == "rewarded"), UNIT)
    row |= {
        "evaluator": task.evaluator,
        "file": task.entry.name,
        "ending": end,
        "correct": answer and answer.correct,
    }
    row |= {"speedup": speedup, "took": evaluation.seconds, "failure": evaluation.failure}
    return row | ({"commit": task.commit} if task.commit else {})


def total_rows(rows: Iterable[Row]) -> list[Row]:
    """Numbers of attacks and honest kernels that each evaluator rewards, rejects or does not
    answer.

    An honest kernel that is called correct counts as rewarded; an attack as `rewarded` says.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["evaluator"], FOLDERS[row["file"].partition("/")[0]]), []).append(
            row
        )
    return [
        plain_row(f"{evaluator}: {what}: {end}", sum(row["ending"] == end for row in of), n=len(of))
        | ({"commit": of[0]["commit"]} if "commit" in of[0] else {})
        for (evaluator, what), of in groups.items()
        for end in ENDINGS
    ]


def kept_rows(known: Mapping[str, Row], tasks: Iterable[Task]) -> dict[str, Row]:
    """The rows of a file for these tasks, by the same commit of the evaluator."""
    commits = {task.name: task.commit for task in tasks}
    return {
        name: row
        for name, row in known.items()
        if row["unit"] == UNIT and name in commits and row.get("commit") == commits[name]
    }


@cache
def our_pool() -> LocalPool:
    """The pool of this process; it starts its judge on demand."""
    return LocalPool()


@cache
def bench_of(device: torch.device) -> Bench:
    """The bench for candidates of peers in this process."""
    return Bench(device, inform(device))


def close(device: torch.device) -> None:
    """Stops everything that this process started."""
    our_pool().close()
    if bench_of.cache_info().currsize:
        bench_of(device).close()


def inspect(device: torch.device) -> DeviceInfo:
    """Information on this process's device."""
    if device.type == "cuda":
        torch.zeros(1, device=device)
    return inform(device)


def run_task(task: Task, device: torch.device) -> Row:
    """The row of one answer.

    Raises:
        JudgeError: if our judge fails.
    """
    start = time.perf_counter()
    if task.peer is not None:
        return answer_row(task, evaluate(bench_of(device), task.entry, task.peer))
    outcome, _, _ = judged(task.entry, device.type, our_pool())
    answer = Answer(outcome.category == "correct", getattr(outcome, "speedup", None) or 0.0)
    return answer_row(task, Evaluation(answer, time.perf_counter() - start))


def try_task(
    task: Task, device: torch.device, free: SimpleQueue[ProcessPoolExecutor], until: float
) -> Row | None:
    """The row of one answer by an idle process; None if time is up or our judge fails."""
    process = free.get()
    try:
        return process.submit(run_task, task, device).result() if time.monotonic() < until else None
    except JudgeError as error:
        print(f"{task.name}: the judge failed: {error}", file=sys.stderr, flush=True)
        return None
    finally:
        free.put(process)


def chosen_tasks(options: argparse.Namespace) -> list[Task]:
    """Every file for every selected evaluator, our judge first."""
    places = ("cpu" if options.device == "cpu" else "cuda", "any")
    entries = [
        each
        for each in read_corpus(*places)
        if concerns_verdict(each, options.device) and options.only in each.name
    ]
    if options.sample:
        entries = sample(entries, options.sample)
    evaluators = ({OURS: None} if options.ours else {}) | read_peers(options)
    return [Task(name, peer, each) for name, peer in evaluators.items() for each in entries]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", action="store_true", help="also evaluate with our judge")
    parser.add_argument("--kernrl", type=Path)
    add_peer_options(parser)
    parser.add_argument("--device", default="cpu", help="one, or several as cuda:0,1")
    parser.add_argument(
        "--at-once", type=int, default=1, help="concurrent evaluations on a device of untimed files"
    )
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--sample",
        type=int,
        help="number of attacks, and half as many honest files; a fixed sample",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="only missing rows, and start none after this many seconds",
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def answers(
    tasks: list[Task], device: torch.device, processes: list[ProcessPoolExecutor], until: float
) -> Iterator[Row]:
    """The rows of tasks that are answered in time, as they arrive."""
    free = SimpleQueue[ProcessPoolExecutor]()
    for process in processes:
        free.put(process)
    threads = ThreadPoolExecutor(len(processes))
    try:
        for answered in as_completed(
            [threads.submit(try_task, each, device, free, until) for each in tasks]
        ):
            row = answered.result()
            if row is not None:
                print(f"{row['name']:60} {row['ending']:10} {row['failure'] or ''}", flush=True)
                yield row
    finally:
        threads.shutdown(cancel_futures=True)


def main() -> None:
    options, start = read_options(), time.monotonic()
    until = math.inf if options.seconds is None else start + options.seconds
    device = torch.device("cpu") if options.device == "cpu" else torch.device("cuda", 0)
    tasks = chosen_tasks(options)
    rows: dict[str, Row] = {}

    def most(task: Task) -> int:
        return 1 if is_timed(task.entry) else options.at_once

    for at_once, of in groupby(sorted(tasks, key=most, reverse=True), most):
        with ExitStack() as stack:
            processes = start_processes(stack, options.device, at_once)
            for process in processes:
                stack.callback(lambda one=process: one.submit(close, device).result())
            info = common_device(
                [future.result() for future in [each.submit(inspect, device) for each in processes]]
            )
            if not rows and options.seconds is not None:
                rows = kept_rows(known_rows(options.json, info.versions), tasks)
            missing = [each for each in of if each.name not in rows]
            for row in answers(missing, device, processes, until):
                rows[row["name"]] = row | {"at_once": at_once}
                ordered = [rows[each.name] for each in tasks if each.name in rows]
                write_result(
                    options.json, device_name(info), info.versions, [*total_rows(ordered), *ordered]
                )
    for row in total_rows([rows[each.name] for each in tasks if each.name in rows]):
        print(f"{row['name']:45} {row['value']:5} of {row['n']}")
    print(f"{len(tasks) - len(rows)} of {len(tasks)} left")


if __name__ == "__main__":
    main()
