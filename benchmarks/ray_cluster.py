"""Judging on a Ray cluster of several node processes on this machine.

`kills`: submissions with known verdicts are judged while nodes are killed at random and replaced.
Each must get one verdict, its own. `overhead`: the time that Ray adds to a judgement, compared with
a local pool. `scale`: stub judges that sleep for the time that a GPU takes for a judgement; each
actor stands for several devices. With 0, a part is skipped and keeps its rows.

    python benchmarks/ray_cluster.py [--kills 1000] [--overhead 200] [--scale 100000] [--json FILE]
"""

import argparse
import asyncio
import contextlib
import functools
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import ray
from faults import KNOWN, PROBLEM
from ray.cluster_utils import Cluster
from resultfile import Results, Row, median_row, plain_row
from rich.progress import track

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import DeviceInfo, OnStage, Pace, Sandbox, Seconds
from kevin_env.judge.protocol import Request
from kevin_env.outcome import Correct
from kevin_env.pools.base import RequestPool
from kevin_env.pools.local import LocalPool
from kevin_env.pools.ray_pool import RayPool, RaySettings

FOLDER = Path(__file__).resolve().parent
CPU = Options(device="cpu")
QUICK = Pace(pairs=(1, 1), seconds=0.0, warm_ups=1, sets=2, sets_of_others=1)
"""This measures what happens around a judgement, not how exact it is."""
NODES = 3
KILL_SECONDS = 10.0, 30.0
"""Least and most seconds between kills of nodes."""
DEVICES = (8, 32, 64, 128, 256, 512)
ACTORS = 4
"""Actors in `scale`; each simulates an equal share of the devices."""
SCALE_SECONDS = 40.0
"""Each number of devices but the last gets as many submissions as they can judge in this time."""


class LoggedPool(LocalPool):
    """Appends the ID of each request that it begins to a file."""

    def __init__(self, file: Path) -> None:
        super().__init__(pace=QUICK)
        self._file = file

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        with self._file.open("a") as file:
            file.write(f"{request['do']} {request['id']}\n")
        super()._send(request, future, on_stage)


class Stub(RequestPool):
    """Devices that take between half and one and a half times `seconds` for a judgement."""

    info = DeviceInfo(device="cpu", name="stub")

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def device(self, name: str = "auto") -> DeviceInfo:
        return self.info

    def close(self) -> None:
        pass

    def _send(self, request: Request, future: Future[Any], on_stage: OnStage | None) -> None:
        seconds = self._seconds * random.uniform(0.5, 1.5)
        asyncio.get_running_loop().call_later(seconds, self._end, future, seconds)

    def _end(self, future: Future[Any], seconds: float) -> None:
        held = Sandbox(
            network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
        )
        future.set_result(Judgement(
            outcome=Correct(kind="timed", message="right", speedup=2.0), secret="0" * 32,
            seconds=Seconds(time=seconds), sandbox=held, device=self.info,
        ))  # fmt: skip


@contextlib.contextmanager
def cluster(nodes: int, cpus: int) -> Iterator[Cluster]:
    """A head node that does not judge, and `nodes` others."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(nodes):
        started.add_node(num_cpus=cpus, object_store_memory=100 << 20)
    path = {"env_vars": {"PYTHONPATH": str(FOLDER)}}
    ray.init(started.address, runtime_env=path, log_to_driver=False, logging_level="ERROR")
    try:
        yield started
    finally:
        ray.shutdown()
        started.shutdown()


def row_of(name: str, value: float, unit: str = "count", n: int = 1, **more: Any) -> Row:
    """A figure, with the load of the machine."""
    return plain_row(name, value, unit, n) | more | load()


def load() -> dict[str, float]:
    return {"load": round(os.getloadavg()[0], 1)}


def kills(count: int, results: Results) -> bool:
    """Judges `count` submissions while nodes are killed; returns whether all verdicts are right."""
    names, lost = [random.choice(list(KNOWN)) for _ in range(count)], 0
    with tempfile.TemporaryDirectory() as folder, cluster(NODES, 1) as nodes:
        file, start = Path(folder) / "begun", time.monotonic()
        settings = RaySettings(judges=NODES)
        with RayPool(settings, functools.partial(logged_pool, file)) as pool:
            submitted = [
                pool.submit(
                    PROBLEM, Submission(code=f"print('submission {n}')\n{KNOWN[name]}"), CPU
                )
                for n, name in enumerate(names)
            ]
            while open_ones := wait(submitted, random.uniform(*KILL_SECONDS)).not_done:
                print(f"{len(open_ones)} of {count} are open; a node is killed", flush=True)
                nodes.remove_node(random.choice(list(nodes.worker_nodes)), allow_graceful=False)
                nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
                lost += 1
        begun = len(file.read_text().splitlines())
        seconds = time.monotonic() - start
    results.report(
        row_of("kills: nodes killed", lost),
        row_of("kills: judgements begun", begun, n=count),
        row_of("kills: seconds", seconds, "s", count, nodes=NODES),
    )
    return report_ends(results, names, submitted)


def report_ends(results: Results, names: list[str], ended: list[Future[Judgement]]) -> bool:
    """Counts how the submissions ended; returns whether each has its own, correct verdict."""
    ends, secrets = Counter[str](), set[str]()
    for number, (name, future) in enumerate(zip(names, ended, strict=True)):
        if (error := future.exception()) is not None:
            ends["with a JudgeError"] += 1
            print(f"submission {number}: {error}", file=sys.stderr)
            continue
        judgement = future.result()
        right = judgement.outcome.category == name
        own = f"submission {number}\n" in f"{judgement.log}\n" and judgement.secret not in secrets
        ends["with its verdict" if own and right else "otherwise"] += 1
        secrets.add(judgement.secret)
    for end in ("with its verdict", "with a JudgeError", "otherwise"):
        results.report(row_of(f"kills: submissions that ended {end}", ends[end], n=len(names)))
    return ends["with its verdict"] == len(names)


def logged_pool(file: Path, device: str) -> RequestPool:
    return LoggedPool(file)


def quick(device: str) -> RequestPool:
    return LocalPool(pace=QUICK)


def stub(seconds: float, device: str) -> RequestPool:
    return Stub(seconds)


def overhead(count: int, results: Results) -> None:
    """Time outside the judge, of the same submissions in both pools."""
    with (
        cluster(1, 1),
        RayPool(RaySettings(judges=1), quick) as ray_pool,
        LocalPool(pace=QUICK) as local,
    ):
        outside = {"local": list[float](), "ray": list[float]()}
        pools = {"local": local, "ray": ray_pool}
        for pool in pools.values():
            pool.submit(PROBLEM, Submission(code=KNOWN["correct"]), CPU).result()
        for number in track(range(count), "overhead"):
            code = f"# {number}\n{KNOWN['runtime']}"
            for name, pool in pools.items():
                start = time.perf_counter()
                judgement = pool.submit(PROBLEM, Submission(code=code), CPU).result()
                outside[name].append(time.perf_counter() - start - judgement.seconds.total)
        for name, seconds in outside.items():
            results.report(median_row(f"overhead: {name}", seconds) | load())
        extra = statistics.median(outside["ray"]) - statistics.median(outside["local"])
        results.report(row_of("overhead: added by Ray", extra, "s", count))


def scale(count: int, results: Results) -> None:
    """Judgements per second of a number of devices, and where the time goes."""
    file = FOLDER / "results" / "throughput.h200x2.json"
    rows = {row["name"]: row["value"] for row in json.loads(file.read_text())["rows"]}
    seconds = 1 / rows["all_right"]
    with cluster(1, 1000):
        for devices in DEVICES:
            many = count if devices == DEVICES[-1] else int(SCALE_SECONDS * devices / seconds)
            settings = RaySettings(judges=ACTORS, in_flight=devices // ACTORS)
            with RayPool(settings, functools.partial(stub, seconds)) as pool:
                pool.device("cpu")
                results.report(scaled(pool, devices, min(many, count), seconds))


def scaled(pool: RayPool, devices: int, count: int, seconds: float) -> Row:
    code, done = KNOWN["correct"] + "#" * 4000, threading.Semaphore(2 * devices)
    began, client, others = time.perf_counter(), time.process_time(), cpu_seconds()
    for number in track(range(count), f"{devices} devices"):
        done.acquire()  # at most twice as many are under way as there are devices
        future = pool.submit(PROBLEM, Submission(code=f"# {number}\n{code}"), CPU)
        future.add_done_callback(lambda done_one: done_one.result() and done.release())
    for _ in range(2 * devices):
        done.acquire()
    wall = time.perf_counter() - began
    spent = {name: (now - others.get(name, 0)) / count for name, now in cpu_seconds().items()}
    return row_of(
        f"scale: {devices} devices", count / wall, "judgements/s", count,
        actors=ACTORS, seconds=seconds, busy=count / wall * seconds / devices,
        client_cpu=(time.process_time() - client) / count, dispatcher_cpu=spent["Dispatcher"],
        actors_cpu=spent["JudgeActor"],
    )  # fmt: skip


def cpu_seconds() -> dict[str, float]:
    """CPU time of Ray's actors by their class."""
    seconds = Counter[str]()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_text()
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            for name in ("Dispatcher", "JudgeActor"):
                if words.startswith(f"ray::{name}"):
                    seconds[name] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="submissions")
    parser.add_argument("--overhead", type=int, default=200, help="submissions in either pool")
    parser.add_argument("--scale", type=int, default=100_000, help="submissions at most")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with LocalPool() as pool:
        versions = pool.device("cpu").versions | {"ray": ray.__version__}
    results, fine = Results(options.json, "cpu", versions), True
    if options.kills:
        fine = kills(options.kills, results)
    if options.overhead:
        overhead(options.overhead, results)
    if options.scale:
        scale(options.scale, results)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
