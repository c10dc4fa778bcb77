"""Where the processor time of recording a Triton submission goes. Needs no GPU.

Every Triton solution is imported and recorded as on a GPU of compute capability 9.0, in all cases
that a GPU judges. Rows: mean processor seconds of a submission by part, and kernels compiled. The
whole machine's processor time is counted, so run nothing beside it.

    python benchmarks/recording.py [--count 37] [--json benchmarks/results/recording.cpu.json]
"""

import argparse
import contextlib
import itertools
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from machine import processor_seconds
from resultfile import Row, plain_row, write_result

from kevin_env.judge.device import inform, resolve
from kevin_env.judge.precompile import Recording, find_shapes, precompile
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import load_problem

SOLUTIONS = Path(__file__).parents[1] / "problems" / "solutions"
ENDING = ".triton.py"
PROPERTIES = {
    "name": "a GPU", "major": 9, "minor": 0, "multi_processor_count": 132, "warp_size": 32,
    "shared_memory_per_block_optin": 232448,
}  # fmt: skip
WATCHED = """

def _watch() -> None:
    import gc, json, resource
    import torch
    from triton import knobs
    from kevin_env.candidate.runtime import Runtime

    runtime = next(each for each in gc.get_objects() if type(each) is Runtime)
    runtime.device = torch.device("cuda", 0)
    log = open("compilations", "a")

    def note(*, cache_hit: bool, **_: object) -> None:
        if not cache_hit:
            whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
            used = [resource.getrusage(who) for who in whose]
            log.write(json.dumps([each.ru_utime + each.ru_stime for each in used]) + "\\n")
            log.flush()

    knobs.compilation.listener = note

_watch()
"""
"""Has a process without a GPU record, and note what each of its compilers used."""
MEMORY, SECONDS = 16 << 30, 120.0
PARTS = ("a process and its end", "import", "Triton and LLVM", "ptxas", "calls and forks")


def compilations(worker: Worker) -> list[list[float]]:
    """Processor seconds of each compilation: of its own process, and of ptxas."""
    order: dict[str, Any] = {
        "command": ["cat", "compilations"], "seconds": 5, "environment": {}, "limit": 1 << 20,
    }  # fmt: skip
    output = worker.ask("run", SECONDS, **order)["output"]
    return [json.loads(line) for line in output.splitlines() if line.startswith("[")]


def recorded(server: ForkServer, file: Path) -> tuple[list[float], int]:
    """Processor seconds of the parts of recording a solution, and how many kernels it compiles.

    Raises:
        SystemExit: if it cannot be recorded.
    """
    problem = load_problem(file.name.removesuffix(ENDING))
    shapes = find_shapes(problem, torch.device("cpu"))
    names = [case.name for case in shapes.cases if case.name != "cpu"]
    times = [processor_seconds()]
    with contextlib.closing(Worker(server, "cpu", MEMORY)) as worker:
        worker.prepare(1)
        times.append(processor_seconds())
        code = file.read_text() + WATCHED
        worker.ask("load", SECONDS, path=worker.path, code=code, entry="ModelNew", headers="short")
        times.append(processor_seconds())
        found = precompile(worker, shapes, names, PROPERTIES, "kernel", SECONDS)
        times.append(processor_seconds())
        if not isinstance(found, Recording):
            raise SystemExit(f"{file.name}: {found}")
        used = compilations(worker)
        before_end = processor_seconds()
    end = processor_seconds() - before_end
    start, load, build = (late - early for early, late in itertools.pairwise(times))
    own, ptxas = (sum(each) for each in zip(*used, strict=True))
    return [start + end, load, own, ptxas, build - own - ptxas], len(used)


def rows_of(files: list[Path]) -> Iterator[Row]:
    """The rows, of all files."""
    with contextlib.closing(ForkServer("cuda")) as server:
        server.warm("9.0")
        Worker(server, "cpu", MEMORY).close()  # once it has started
        found = [recorded(server, file) for file in files]
    totals = [sum(parts) for parts, _ in found]
    yield plain_row("a submission", statistics.mean(totals), "processor seconds", len(found))
    for name, values in zip(PARTS, zip(*(parts for parts, _ in found), strict=True), strict=True):
        yield plain_row(f"part: {name}", statistics.mean(values), "processor seconds", len(found))
    kernels = [count for _, count in found]
    yield plain_row("kernels compiled", statistics.mean(kernels), "kernels", len(found))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = list(rows_of(sorted(SOLUTIONS.glob(f"*{ENDING}"))[: options.count]))
    for row in rows:
        print(f"{row['value']:8.3f} {row['unit']:18} {row['name']}")
    write_result(options.json, "cpu", inform(resolve("cpu")).versions, rows)


if __name__ == "__main__":
    main()
