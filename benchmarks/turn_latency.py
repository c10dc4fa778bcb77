"""How long a turn takes, from the submission to the verdict: warm judge, submissions that it has not seen before.

The submissions are our honest corpus, by what they are written in; each is judged once, after one of its problem's own
has warmed the judge's side of that problem. Beside them: an error of the compiler, a submission without any kernel
(what we add to the compiler and the kernel), KernelBench's full-size softmax where KEVIN_ENV_KERNELBENCH names a
checkout, and the client's own part at a thousand turns of history. With `--against`, a peer's evaluator gets the same
submissions, each in a fresh process, and ratios are given.

    python benchmarks/turn_latency.py [--device cpu|cuda] [--json FILE] [--against kernrl=PATH/envs/kernrl]
        [--against kernelbench=PATH] [NAME...]
"""

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from peers import evaluate, read_peers
from resultfile import Row, device_name, median_row, plain_row, write_result
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import FOLDER, Entry, read_corpus, read_entry

from kevin_env.episode import Episode
from kevin_env.extract import guess_language
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.scripted import ScriptedPool
from kevin_env.outcome import Correct
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem, load_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

STAGES = ("queue", "build", "load", "verify", "time")
FULL_SIZE = "kernelbench:level1/23"
HISTORY, LAST = 1000, 100


def kind_of(entry: Entry) -> str:
    """What a file is written in, such as `triton`; `torch` where it has no kernel of its own."""
    code = entry.code
    if not any(word in code for word in ("triton", "nvcc", "nvrtc", "load_inline", "ctypes", "cpp_extension")):
        return "torch"
    return guess_language(code)


class Turns:
    """Judges on one warm judge, and takes the wall time."""

    def __init__(self, pool: LocalPool, device: str) -> None:
        self._pool = pool
        self._options = Options(device=device, require_sandbox=True)
        self._warm: set[str] = set()

    def judge(self, problem: Problem, code: str) -> tuple[float, Judgement]:
        """Seconds from the submission to the verdict, and the verdict."""
        if problem.sha256 not in self._warm:
            self._warm.add(problem.sha256)
            self._pool.submit(problem, Submission(code=as_submission(problem.source)), self._options).result()
        time.sleep(0.5)  # the next candidate is started off the critical path, as while a model thinks
        start = time.perf_counter()
        judgement = self._pool.submit(problem, Submission(code=code), self._options).result()
        return time.perf_counter() - start, judgement


def corpus_rows(turns: Turns, entries: Iterable[Entry]) -> tuple[list[Row], dict[str, float]]:
    """Medians by what a submission is written in, whole and by stage; and the seconds of each."""
    wall: dict[str, list[float]] = defaultdict(list)
    stages: dict[str, list[dict[str, float]]] = defaultdict(list)
    taken: dict[str, float] = {}
    for entry in entries:
        seconds, judgement = turns.judge(entry.task, entry.code)
        kind = kind_of(entry)
        print(f"{kind:8} {seconds:7.2f} s  {judgement.outcome.category:12} {entry.name}", flush=True)
        wall[kind].append(seconds)
        stages[kind].append(judgement.seconds.model_dump())
        taken[entry.name] = seconds
    names = {kind: "overhead" if kind == "torch" else f"{kind}_turn" for kind in wall}
    rows = [median_row(names[kind], values) for kind, values in wall.items()]
    parts = [
        median_row(f"{names[kind]}: {stage}", [each[stage] for each in of])
        for kind, of in stages.items()
        for stage in STAGES
    ]
    return rows + parts, taken


def single_rows(turns: Turns, device: str) -> list[Row]:
    """The compiler's error, and KernelBench's full-size softmax."""
    error = read_entry(FOLDER / "hostile" / "compile_error.py")
    rows = []
    if error.device in (device, "any"):
        rows.append(median_row("compile_error", [turns.judge(error.task, error.code)[0] for _ in range(3)]))
    if os.environ.get("KEVIN_ENV_KERNELBENCH") and device == "cuda":
        code = (FOLDER / "honest" / "softmax_online.py").read_text()
        rows.append(median_row("full_size_softmax_turn", [turns.judge(load_problem(FULL_SIZE), code)[0]]))
    return rows


def client_row() -> Row:
    """The client's part of a turn (prompt, score, trajectory), at the end of a long history of different kernels."""
    code = (FOLDER / "honest" / "softmax_online.py").read_text()
    outcome = Correct(kind="timed", message="all outputs are right", speedup=1.2, speedup_interval=(1.1, 1.3),
                      reference_seconds=1e-3, submission_seconds=8e-4, max_unseen_gain=0.01)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(max_turns=HISTORY + 1, rules="open")
        recorder = Recorder(Path(folder) / "turns.jsonl")
        episode = Episode(load_problem("L1_23_Softmax"), ScriptedPool([outcome] * HISTORY), settings, recorder=recorder)
        episode.start()
        taken = []
        for turn in track(range(HISTORY), "client"):
            reply = f"Changed again.\n```python\n{code}\nCHANGED = {turn}\n```\nIt is faster."
            start = time.perf_counter()
            episode.submit(reply)
            taken.append(time.perf_counter() - start)
    return median_row("client_turn", taken[-LAST:])


def peer_rows(options: argparse.Namespace, entries: list[Entry], taken: dict[str, float]) -> list[Row]:
    """What each peer's evaluator takes for the same submissions, and how many times ours that is."""
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    device = torch.device("cuda", 0) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.zeros(1, device=device)
    bench, rows = Bench(device, inform(device)), []
    for peer, (files, shim) in read_peers(options).items():
        ratios: dict[str, list[float]] = defaultdict(list)
        for entry in track(entries, peer):
            start = time.perf_counter()
            answer = evaluate(bench, entry, files, shim)
            if answer and answer[0]:  # a rejected one was not timed
                ratios[kind_of(entry)].append((time.perf_counter() - start) / taken[entry.name])
        rows += [median_row(f"{kind}_turn: {peer} takes", values, "times ours") for kind, values in ratios.items()]
    bench.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="such as honest/softmax_triton; all honest files when left out")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--against", action="append", default=[], metavar="kernrl=PATH|kernelbench=PATH")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    paths = dict(each.partition("=")[::2] for each in options.against)
    options.kernrl, options.kernelbench = (
        Path(paths[name]) if name in paths else None for name in ("kernrl", "kernelbench")
    )
    entries = [each for each in read_corpus(options.device, "any") if each.path.parent.name == "honest"]
    entries = [each for each in entries if not options.names or each.name in options.names]
    with LocalPool() as pool:
        info = pool.device(options.device)
        turns = Turns(pool, options.device)
        rows, taken = corpus_rows(turns, entries)
        rows += single_rows(turns, options.device)
    rows.append(client_row())
    rows += peer_rows(options, entries, taken) if paths else []
    rows.append(plain_row("submissions", len(entries)))
    for row in rows:
        spread = "" if row["spread"] is None else f"  (varies by {row['spread']:.0%})"
        print(f"{row['name']:40} {row['value']:9.4g} {row['unit']}  n = {row['n']}{spread}")
    write_result(options.json, device_name(info), info.versions, rows)


if __name__ == "__main__":
    main()
