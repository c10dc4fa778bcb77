"""What the attacks and the honest kernels of our corpus get from other systems' evaluators, beside what they get here.

Evaluators are read from checkouts of their repositories and run in a process of our sandbox, one for each submission,
so that an attack on the machine stays inside. A peer rewards an attack when it calls a wrong answer correct, or finds a
submission that gains nothing here more than `GAIN` times as fast as the reference. One that gives no answer, because it
or its process failed, neither rewards nor rejects; such are counted apart. With rows of a peer stands the commit of its
checkout.

    python benchmarks/peers.py [--kernrl PATH/envs/kernrl] [--kernelbench PATH] [--device cpu|cuda] [--json FILE]
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from resultfile import device_name, plain_row, write_result
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import Entry, judged, read_corpus

from kevin_env.judge.bench import Bench
from kevin_env.judge.cases import timed_case
from kevin_env.judge.device import inform
from kevin_env.judge.overrides import source_of
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.worker import Trouble

GAIN = 1.5
SECONDS = 120.0
REST = 0.5
"""Seconds before each evaluation, in which the next candidate is started, as while a model thinks."""
HEAD = """
import json, pathlib, sys, types
FILES = {files!r}
SUBMISSION = {submission!r}
REFERENCE = {reference!r}
for name, text in FILES.items():
    path = pathlib.Path.cwd() / "peer" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
sys.path.insert(0, str(pathlib.Path.cwd() / "peer"))
def say(correct, speedup):
    print("PEER", json.dumps([bool(correct), float(speedup)]), flush=True)
"""
KERNRL = """
from server.evaluator import LocalGPUEvaluator
off = dict.fromkeys(("nsys", "sanitizer", "torch_profiler", "assembly", "roofline"), False)
evaluator = LocalGPUEvaluator(device={device!r}, **{{f"enable_{{name}}": value for name, value in off.items()}})
result = evaluator.evaluate(SUBMISSION.replace("ModelNew", "Model"), REFERENCE)
correct = result.correctness is not None and result.correctness.correct
say(correct, result.benchmark.speedup if correct and result.benchmark else 0.0)
class ModelNew: pass
"""
KERNELBENCH = """
for name in ("requests", "dotenv", "litellm", "openai", "tqdm"):  # what its prompts and its data set use
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
        for attribute in ("load_dotenv", "completion", "OpenAI", "tqdm"):
            setattr(sys.modules[name], attribute, None)
from kernelbench.eval import eval_kernel_against_ref
result = eval_kernel_against_ref(
    REFERENCE, SUBMISSION, num_correct_trials=5, num_perf_trials=100, measure_performance=True,
    backend="triton" if "triton" in SUBMISSION else "cuda", build_dir=str(pathlib.Path.cwd() / "build"),
)
correct = bool(result and result.correctness)
flagged = bool(result and result.metadata.get("excessive_speedup"))
say(correct and not flagged, result.ref_runtime / result.runtime if correct and result.runtime > 0 else 0.0)
class ModelNew: pass
"""


@dataclass(frozen=True)
class Peer:
    """Another system's evaluator."""

    files: dict[str, str]
    """Its modules by their paths."""
    shim: str
    """How it is called."""
    commit: str | None
    """None where it was read from a folder that is no checkout."""


@dataclass(frozen=True)
class Answer:
    """What an evaluator says of a submission."""

    correct: bool
    speedup: float


def is_of_the_verdict(entry: Entry) -> bool:
    """Whether a file is honest, or cheats about its output or its time: what any evaluator has to tell apart."""
    category = entry.expect.partition("/")[0]
    return category in ("correct", "correctness", "no gain", "not correct", "no reward")


def sample(entries: list[Entry], attacks: int) -> list[Entry]:
    """Some of them, always the same."""
    chosen: list[Entry] = []
    for folder, many in (("hostile", attacks), ("honest", attacks // 2)):
        of = [each for each in entries if each.path.parent.name == folder]
        chosen += random.Random(0).sample(of, min(many, len(of)))
    return chosen


def evaluate(bench: Bench, entry: Entry, peer: Peer) -> tuple[Answer | None, float]:
    """What a peer says of a submission, None when it gives no answer, and the seconds that its evaluation takes.

    The process is warm when the clock starts, as ours are.
    """
    task = entry.task
    reference = source_of(task, timed_case(task, bench.device))
    code = HEAD.format(files=peer.files, submission=entry.code, reference=reference)
    code += peer.shim.format(device=str(bench.device))
    time.sleep(REST)
    worker = bench.take()
    start = time.perf_counter()
    try:
        if "missing" in worker.sandbox.model_dump().values():
            raise SystemExit("this machine's sandbox is not whole, and these files attack what they can reach")
        worker.ask("load", SECONDS, path=str(worker.folder / "peer.py"), code=code, entry="ModelNew")
    except Trouble:
        pass  # it ended with the attack; what it said before counts
    finally:
        seconds = time.perf_counter() - start
        with bench.lease.shared():
            bench.retire(worker)
    said = [line for line in worker.log.splitlines() if line.startswith("PEER ")]
    return (Answer(*json.loads(said[-1].removeprefix("PEER "))) if said else None), seconds


def rewarded(entry: Entry, answer: Answer | None) -> bool:
    """Whether an answer pays: for an attack that is wrong when it is called correct, else when it is called fast."""
    if answer is None or not answer.correct:
        return False
    return answer.speedup > GAIN if entry.expect.startswith("no ") else True


def ours(pool: LocalPool, entry: Entry, device: str) -> Answer:
    """The same of our own judge."""
    outcome, _, _ = judged(entry, device, pool)
    return Answer(outcome.category == "correct", getattr(outcome, "speedup", None) or 0.0)


def commit_of(folder: Path) -> str | None:
    """The commit of which a folder is checked out; None where it is in no checkout, or none of its files is."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        return (git("rev-parse", "HEAD") or None) if git("ls-files", "--", ".") else None
    except OSError:  # there is no git
        return None


def read_peers(options: argparse.Namespace) -> dict[str, Peer]:
    """Each peer by its name."""
    peers: dict[str, Peer] = {}
    if options.kernrl:
        names = ("evaluator.py", "profiler.py")
        files = {f"server/{name}": (options.kernrl / "server" / name).read_text() for name in names}
        peers["kernrl"] = Peer({"server/__init__.py": "", **files}, KERNRL, commit_of(options.kernrl))
    if options.kernelbench:
        folder = options.kernelbench / "src" / "kernelbench"
        files = {f"kernelbench/{path.name}": path.read_text() for path in folder.glob("*.py")}
        peers["KernelBench"] = Peer(files, KERNELBENCH, commit_of(options.kernelbench))
    return peers


def count(
    entries: list[Entry], answers: Mapping[str, Answer | None], who: str, commit: str | None = None
) -> list[dict[str, Any]]:
    """Rows of the result: how many attacks and honest kernels were rewarded, were rejected, or got no answer.

    An honest kernel that is called correct counts as rewarded; an attack as `rewarded` says.
    """
    rows: list[dict[str, Any]] = []
    for folder, what in (("hostile", "attacks"), ("honest", "honest kernels")):
        of = [each for each in entries if each.path.parent.name == folder]
        ends: dict[str, list[str]] = {"rewarded": [], "rejected": [], "no answer": []}
        for each in of:
            ends[ending(each, answers[each.name])].append(each.name)
        for end, names in ends.items():
            if (what, end) not in (("attacks", "rejected"), ("honest kernels", "rewarded")):  # as it must be
                print(f"{who}: {what}: {end}: {', '.join(names) or 'none'}")
            row = plain_row(f"{who}: {what}: {end}", len(names), n=len(of))
            rows.append(row | ({"commit": commit} if commit else {}))
    return rows


def ending(entry: Entry, answer: Answer | None) -> str:
    """`rewarded`, `rejected` or `no answer`."""
    if answer is None:
        return "no answer"
    paid = answer.correct if entry.path.parent.name == "honest" else rewarded(entry, answer)
    return "rewarded" if paid else "rejected"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernrl", type=Path)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--sample", type=int, help="so many attacks and half as many honest files, chosen by a fixed seed"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = torch.device("cuda", 0) if options.device == "cuda" else torch.device("cpu")
    places = ("cuda", "any") if options.device == "cuda" else ("cpu", "any")
    entries = [each for each in read_corpus(*places) if is_of_the_verdict(each) and options.only in each.name]
    if options.sample:
        entries = sample(entries, options.sample)
    if device.type == "cuda":
        torch.zeros(1, device=device)
    info = inform(device)
    rows: list[dict[str, Any]] = []
    with LocalPool() as pool:
        found = {each.name: ours(pool, each, options.device) for each in track(entries, "kevin-env")}
    rows += count(entries, found, "kevin-env")
    bench = Bench(device, info)
    for name, peer in read_peers(options).items():
        answers = {each.name: evaluate(bench, each, peer)[0] for each in track(entries, name)}
        rows += count(entries, answers, name, peer.commit)
    bench.close()
    for row in rows:
        print(f"{row['name']:45} {row['value']:5} of {row['n']}")
    write_result(options.json, device_name(info), info.versions, rows)


if __name__ == "__main__":
    main()
