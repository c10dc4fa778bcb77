"""How long a turn takes, from submission to verdict, on a warm judge with new submissions.

Submissions are the honest corpus by language, with reference solutions where there are fewer than
`--least`, each with unique source text. Each problem is judged once with its reference before.
`cuda_turn` is CUDA through `load_inline`, `cuda_nvcc_turn` CUDA by nvcc or nvrtc. Sources from the
tests of the short compile path, which are built and loaded but not called, have their own rows:
`cuda_extension_build_turn` and `cpp_extension_build_turn`. Rows contain submissions that ended as
expected; others are listed at the end, and the script exits with 1.

Further rows: compiler errors, submissions without a kernel (`overhead`: everything but a compiler),
KernelBench's full-size softmax, the client's part after a thousand turns, memory, the first turn of
a new pool (`*_turn_cold`), and torch's own headers: sources that short headers serve, compiled with
full ones (`cuda_turn_full_headers`), and for a source that needs full headers the time with short
ones tried first, over the time without (`cuda_turn_full_headers_ratio`).

With `--against`, a peer's evaluator gets some of the same submissions, and ratios are reported. It
runs in one of our warm candidates, with torch and triton imported already; its time is that of the
evaluation alone.

    python benchmarks/turn_latency.py [--device cpu|cuda] [--json FILE] [--seconds S] [--least N] \\
        [--full N] [--against kernelbench=PATH] [--against kernrl=PATH/envs/kernrl] \\
        [--peer-count 4] [NAME...]

With names, such as `honest/softmax_triton`, only those are judged, by our judge and the peers.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from pathlib import Path

from evaluators import evaluate, read_peers
from honest import (
    FOLDER,
    Entry,
    by_problem,
    extension_entries,
    filled_up,
    freshened,
    honest_entries,
    is_built_only,
    kind_of,
    read_entry,
)
from latency_cases import (
    FULL_SIZE,
    FULL_SIZE_KERNEL,
    client_rows,
    compile_errors,
    full_headers,
    memory_rows,
)
from machine import device_memory
from resultfile import Results, device_name, median_row, plain_row
from turns import Turns, row_name

from kevin_env.judge import Options, Submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem

KINDS = {"cpu": ("cpp", "triton", "torch"), "cuda": ("triton", "cuda", "torch")}
ROOM = 60 << 30
"""Device memory that the full-size softmax takes, on both sides."""


def cold_row(turns: Turns) -> None:
    """The first turn of a pool, its start included."""
    device, kind = turns.device, KINDS[turns.device][0]
    entry = next(each for each in honest_entries(device) if kind_of(each.code) == kind)
    code = freshened(entry, random.randrange(1, 1 << 29)).code
    start = time.perf_counter()
    with LocalPool() as pool:
        judgement = pool.submit(entry.task, Submission(code=code), Options(device=device)).result()
        seconds = time.perf_counter() - start
    if turns.require(entry.met_by(judgement.outcome, device), f"{entry.name}, cold", judgement):
        turns.results.report(plain_row(f"{kind}_turn_cold", seconds, "s"))


def error_rows(turns: Turns) -> None:
    """Time to report compiler errors."""
    if turns.device == "cuda":
        relu, codes = (
            load_problem(str(FOLDER / "problems" / "relu.py")),
            compile_errors(turns.number()),
        )
    else:
        entry = read_entry(FOLDER / "hostile" / "compile_error.py")
        relu, codes = entry.task, [entry.code] * 3
    name = "cuda_compile_error" if turns.device == "cuda" else "cpp_compile_error"
    for code in codes:
        seconds, judgement = turns.judge(relu, code)
        print(
            f"{name:20} {seconds:7.2f} s  {judgement.outcome.category}/{judgement.outcome.kind}",
            flush=True,
        )
        if turns.require(judgement.outcome.category == "compile", name, judgement):
            turns.take(name, seconds, judgement)


def full_headers_rows(turns: Turns, count: int) -> None:
    """Turns with torch's own headers: sources supported by the short ones, and an unsupported one
    both ways.
    """
    relu = load_problem(str(FOLDER / "problems" / "relu.py"))
    language = "cuda" if turns.device == "cuda" else "cpp"
    for entry in extension_entries(turns.device)[:count]:
        seconds, judgement = turns.judge(
            entry.task, freshened(entry, turns.number()).code, headers="full"
        )
        print(
            f"full headers {seconds:7.2f} s  {judgement.outcome.category:12} {entry.name}",
            flush=True,
        )
        if turns.require(
            entry.met_by(judgement.outcome, turns.device),
            f"{entry.name} with full headers",
            judgement,
        ):
            turns.take(f"{language}_turn_full_headers", seconds, judgement)
    ratios: list[float] = []
    for _ in range(count):
        both = {
            how: turns.judge(relu, full_headers(language, turns.number()), headers=how)
            for how in ("full", "short")
        }
        summary = ", ".join(
            f"{how} {seconds:.2f} s {judgement.outcome.category}"
            for how, (seconds, judgement) in both.items()
        )
        print(f"not served by short headers: {summary}", flush=True)
        if not all(
            turns.require(done.outcome.category == "correct", how, done)
            for how, (_, done) in both.items()
        ):
            continue
        ratios.append(both["short"][0] / both["full"][0])
        turns.results.put(
            median_row(
                f"{language}_turn_full_headers_ratio", ratios, "times the plain build's turn"
            )
        )


def full_size_rows(turns: Turns, memory: int) -> None:
    """KernelBench's softmax at full size, three times."""
    if turns.device == "cpu" or memory < ROOM:
        return
    for _ in range(3):
        code = FULL_SIZE_KERNEL.format(number=turns.number())
        seconds, judgement = turns.judge(FULL_SIZE, code)
        print(
            f"full size {seconds:7.2f} s  {judgement.outcome.category}: "
            f"{judgement.outcome.message}",
            flush=True,
        )
        if turns.require(judgement.outcome.category == "correct", "full size", judgement):
            turns.take("full_size_softmax_turn", seconds, judgement)


def peer_rows(options: argparse.Namespace, turns: Turns, entries: list[Entry]) -> None:
    """The time of each peer's evaluator for the same submissions, also relative to our judge."""
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    device = torch.device("cuda", 0) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.zeros(1, device=device)
    bench = Bench(device, inform(device))
    try:
        for name, peer in read_peers(options).items():
            walls, ratios = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
            for entry in entries:
                seconds, new = turns.taken[entry.name]
                evaluation = evaluate(bench, new, peer)
                answer, wall = evaluation.answer, evaluation.seconds
                end = (
                    evaluation.failure
                    if answer is None
                    else "correct"
                    if answer.correct
                    else "rejected"
                )
                print(
                    f"{name:12} {wall:7.2f} s ({wall / seconds:.1f} x ours)  {end:10} {entry.name}",
                    flush=True,
                )
                if answer and answer.correct:  # a rejected one was not timed
                    row, of = f"{row_name(entry, turns.device)}: {name}", {"commit": peer.commit}
                    walls[row].append(wall)
                    ratios[row].append(wall / seconds)
                    turns.results.put(median_row(row, walls[row]) | of)
                    turns.results.put(median_row(f"{row} takes", ratios[row], "times ours") | of)
    finally:
        bench.close()


def for_peers(entries: list[Entry], count: int, judged: set[str]) -> list[Entry]:
    """`count` of the judged files, one of each row in turn."""
    kinds: dict[str, list[Entry]] = defaultdict(list)
    for entry in (
        each for each in entries if each.name in judged and kind_of(each.code) != "torch"
    ):
        how = "built only" if is_built_only(entry) else "inline" * ("load_inline" in entry.code)
        kinds[kind_of(entry.code) + how].append(entry)
    ranked = [(place, kind) for kind, of in kinds.items() for place in range(len(of))]
    return [kinds[kind][place] for place, kind in sorted(ranked)[:count]]


def corpus_rows(turns: Turns, entries: list[Entry], seconds: float) -> None:
    """Judges files until time is up; rows cover the judged ones."""
    end = time.monotonic() + seconds
    for number, entry in enumerate(entries):
        if time.monotonic() > end:
            print(
                f"{seconds:.0f} s are over: {len(entries) - number} files were not judged",
                flush=True,
            )
            return
        turns.entry(entry)


def chosen(options: argparse.Namespace) -> list[Entry]:
    """The files that are judged: those with the names, else `least` of every kind."""
    device, extensions = options.device, extension_entries(options.device)
    if options.names:
        return [
            each for each in (*honest_entries(device), *extensions) if each.name in options.names
        ]
    kinds = {
        kind: filled_up(kind, options.least if kind == "triton" else 0, device)
        for kind in KINDS[device]
    }
    kinds["extension"] = extensions
    ranked = [(place, kind) for kind, of in kinds.items() for place in range(len(of))]
    return by_problem(kinds[kind][place] for place, kind in sorted(ranked))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="such as honest/softmax_triton; by default all honest files"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=150, help="start no file after this")
    parser.add_argument("--least", type=int, default=20, help="files of each language")
    parser.add_argument(
        "--full", type=int, help="builds with full headers: by default 1 on a GPU, 0 on a CPU"
    )
    parser.add_argument(
        "--against", action="append", default=[], metavar="kernrl=PATH|kernelbench=PATH"
    )
    parser.add_argument("--peer-count", type=int, default=4, help="number of files for a peer")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    paths = dict(each.partition("=")[::2] for each in options.against)
    options.kernrl, options.kernelbench = (
        Path(paths[name]) if name in paths else None for name in ("kernrl", "kernelbench")
    )
    entries, before = chosen(options), device_memory(options.device)
    client = () if options.names else client_rows()  # while no judge is starting
    with LocalPool() as pool:
        info = pool.device(options.device)
        results = Results(options.json, device_name(info), info.versions)
        turns = Turns(pool, options.device, results)
        if not options.names:
            results.report(*memory_rows(options.device, before))
            results.report(*client)
            error_rows(turns)
            full_size_rows(turns, info.memory)
            full_headers_rows(
                turns, options.full if options.full is not None else int(options.device == "cuda")
            )
        corpus_rows(turns, entries, options.seconds)
    if not options.names:
        cold_row(turns)
    if paths:
        peer_rows(options, turns, for_peers(entries, options.peer_count, set(turns.taken)))
    print()
    results.print_all()
    for fault in turns.faults:
        print(f"UNEXPECTED: {fault}")
    sys.exit(bool(turns.faults))


if __name__ == "__main__":
    main()
