"""Judged submissions per second on one GPU, by our judge and by other evaluators.

All get the same honest submissions, Triton and CUDA apart, with source text that no cache has seen,
for problems that all can be asked about.
Ours gets them all at once, twice: first it knows none of the problems, then each was judged before,
as in the second step of a training. A peer gets one at a time, in its own way of isolation: each
has a new process, from a pool that the peer keeps or started for it. Time that a peer needs once,
for its pool and the files of its problems, does not count, and its rate is of what it answered
within the limit. Rows of a peer record the commit of its checkout.

    python benchmarks/peer_rates.py [--kernelbench PATH] [--kernelgym PATH] [--sol PATH] \\
        [--kernelbench-com PATH] [--count 32] [--cuda-count 8] [--seconds S] [--json FILE]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from evaluators import (
    Answer,
    Peer,
    add_peer_options,
    answer_in,
    read_peers,
    reference_of,
    script_of,
)
from honest import Entry, filled_up, freshened
from resultfile import Results, Row, device_name, plain_row
from throughput import mixed, run

from kevin_env.pools.local import LocalPool
from kevin_env.turn import Verdict

DEVICE = "cuda:0"
START_SECONDS = 150.0
"""Limit of what does not count: a peer's start."""
ERROR_LIMIT = 2000
"""Limit in characters of what a peer that answered nothing printed."""


def is_plain(entry: Entry) -> bool:
    """Whether every evaluator can be asked about a file: its problem passes tensors of floats, to
    which KernelBench converts all, and returns one, and it does not use torch's extensions.
    """
    device, space = torch.device(DEVICE), {"__name__": "reference"}
    exec(reference_of(entry, device), space)  # of our own problems
    reference: dict[str, Any] = space
    with torch.no_grad(), device:
        inputs = reference["get_inputs"]()
        output = reference["Model"](*reference["get_init_inputs"]())(*inputs)
    floats = all(isinstance(each, torch.Tensor) and each.is_floating_point() for each in inputs)
    return floats and isinstance(output, torch.Tensor) and "cpp_extension" not in entry.code


def chosen(kind: str, count: int) -> list[Entry]:
    """So many honest files in a language that every evaluator can be asked about."""
    entries = filled_up(kind, 2 * count, "cuda")
    plain = list(islice(filter(is_plain, mixed(entries, len(entries))), count))
    torch.cuda.empty_cache()
    return plain


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    """A script in a new process and folder, where compilers find nothing either."""
    (folder / "peer.py").write_text(script)
    caches = {"TRITON_CACHE_DIR": "triton", "TORCH_EXTENSIONS_DIR": "extensions"}
    env = os.environ | {name: str(folder / of) for name, of in caches.items()}
    with (folder / "errors").open("w") as errors:
        return subprocess.Popen(
            [sys.executable, "peer.py"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def answers_of(script: str, seconds: float, serves: bool) -> Iterator[tuple[float, Answer]]:
    """Answers of a script, with their seconds, until it ends or is stopped.

    Args:
        script: It prints them.
        seconds: Limit.
        serves: Whether it says when its service is ready, from which seconds then count.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        start, answered = time.perf_counter(), False
        process = started(script, Path(name))

        def stop() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(START_SECONDS if serves else seconds, stop)
        timer.start()
        try:
            for line in process.stdout or ():
                if serves and line.startswith("READY"):
                    timer.cancel()
                    timer, start = threading.Timer(seconds, stop), time.perf_counter()
                    timer.start()
                elif answer := answer_in(line):
                    answered = True
                    yield time.perf_counter() - start, answer
        finally:
            timer.cancel()
            stop()
            process.wait()
            if not answered:
                print((Path(name) / "errors").read_text()[-ERROR_LIMIT:], file=sys.stderr)


def served(peer: Peer, jobs: list[tuple[str, str]], seconds: float) -> list[tuple[float, Answer]]:
    """Answers of a peer that keeps a service, with their seconds since that was ready."""
    script = script_of(peer, jobs, torch.device(DEVICE), compares=False)
    return list(answers_of(script, seconds, serves=True))


def one_by_one(
    peer: Peer, jobs: list[tuple[str, str]], seconds: float
) -> list[tuple[float, Answer]]:
    """Answers of a peer that has a new process for each, with their seconds since the first
    started. None is a rejection.
    """
    answers, start = list[tuple[float, Answer]](), time.perf_counter()
    for job in jobs:
        script = script_of(peer, [job], torch.device(DEVICE), compares=False)
        left = start + seconds - time.perf_counter()
        found = [each for _, each in answers_of(script, left, serves=False)] if left > 0 else []
        if (took := time.perf_counter() - start) > seconds:
            break
        answers.append((took, found[-1] if found else Answer(False, 0.0)))
    return answers


def peer_row(name: str, peer: Peer, jobs: list[tuple[str, str]], seconds: float) -> Row:
    """A peer's rate on some submissions, from the first to the last answer within the limit."""
    answers = (served if peer.serves else one_by_one)(peer, jobs, seconds)
    took = answers[-1][0] if answers else seconds
    accepted = sum(answer.correct for _, answer in answers)
    row = rate_row(name, took, len(answers), accepted, len(jobs))
    return row | ({"commit": peer.commit} if peer.commit else {})


def rate_row(name: str, seconds: float, judged: int, accepted: int, asked: int) -> Row:
    """A rate, with the numbers of judged, accepted and all submissions."""
    row = plain_row(name, judged / seconds, "submissions/s", n=judged)
    return row | {"accepted": accepted, "asked": asked, "seconds": seconds}


def our_row(name: str, pool: LocalPool, entries: list[Entry]) -> Row:
    """Our judge's rate on some submissions, all of them at once."""
    seconds, judged = run(pool, entries, DEVICE)
    verdicts = [each for _, each in judged if isinstance(each, Verdict)]
    accepted = sum(each.outcome.category == "correct" for each in verdicts)
    return rate_row(name, seconds, len(verdicts), accepted, len(entries))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_peer_options(parser)
    parser.add_argument("--count", type=int, default=32, help="number of Triton submissions")
    parser.add_argument("--cuda-count", type=int, default=8)
    parser.add_argument(
        "--seconds", type=float, default=600, help="limit for a peer, half of it for each language"
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    if not torch.cuda.is_available():
        raise SystemExit("peer_rates.py: compares rates on a GPU, and there is no CUDA device here")
    counts = {"triton": options.count, "cuda": options.cuda_count}
    entries = {kind: chosen(kind, count) for kind, count in counts.items() if count}
    with LocalPool() as pool:
        info = pool.device(DEVICE)
        results = Results(options.json, device_name(info), info.versions)
        for kind, of in entries.items():
            results.report(our_row(f"kevin-env: {kind}, new problems", pool, of))
            results.report(our_row(f"kevin-env: {kind}", pool, of))
    seed = random.SystemRandom().randrange(1, 1 << 29)
    for kind, of in entries.items():
        jobs = [
            (reference_of(each, torch.device(DEVICE)), freshened(each, seed + number).code)
            for number, each in enumerate(of)
        ]
        for name, peer in read_peers(options).items():
            results.report(peer_row(f"{name}: {kind}", peer, jobs, options.seconds / 2))


if __name__ == "__main__":
    main()
