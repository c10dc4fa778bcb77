"""Runs evaluators of other systems, each in a sandboxed process. Used by other scripts.

They are read from checkouts of their repositories. Each submission has its own process, so that
attacks on the machine are contained.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import Entry

from kevin_env.frozen import printable
from kevin_env.judge.bench import Bench
from kevin_env.judge.inputs.cases import timed_case
from kevin_env.judge.inputs.source import source_of
from kevin_env.judge.workers.errors import CandidateError

SECONDS = 120.0
ERROR_LIMIT = 200
"""Limit of an error in characters."""
REST = 0.5
"""Seconds before each evaluation to start the next candidate, as while a model generates."""
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
enabled = {{f"enable_{{name}}": value for name, value in off.items()}}
evaluator = LocalGPUEvaluator(device={device!r}, **enabled)
result = evaluator.evaluate(SUBMISSION.replace("ModelNew", "Model"), REFERENCE)
correct = result.correctness is not None and result.correctness.correct
say(correct, result.benchmark.speedup if correct and result.benchmark else 0.0)
class ModelNew: pass
"""
KERNELBENCH = """
# Used by its prompts and its data set.
for name in ("requests", "dotenv", "litellm", "openai", "tqdm"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
        for attribute in ("load_dotenv", "completion", "OpenAI", "tqdm"):
            setattr(sys.modules[name], attribute, lambda *_, **__: None)
from kernelbench.eval import eval_kernel_against_ref
result = eval_kernel_against_ref(
    REFERENCE, SUBMISSION, num_correct_trials=5, num_perf_trials=100, measure_performance=True,
    backend="triton" if "triton" in SUBMISSION else "cuda",
    build_dir=str(pathlib.Path.cwd() / "build"),
)
correct = bool(result and result.correctness)
flagged = bool(result and result.metadata.get("excessive_speedup"))
timed = correct and result.runtime > 0
say(correct and not flagged, result.ref_runtime / result.runtime if timed else 0.0)
class ModelNew: pass
"""


@dataclass(frozen=True)
class Peer:
    """Another system's evaluator."""

    files: dict[str, str]
    """Its modules by path."""
    shim: str
    """The script that calls it."""
    commit: str | None
    """None if its folder is not a checkout."""


@dataclass(frozen=True)
class Answer:
    """The result of an evaluator."""

    correct: bool
    speedup: float


@dataclass(frozen=True)
class Evaluation:
    """A peer's answer on a submission, and its seconds; without an answer, `failure` says why."""

    answer: Answer | None
    seconds: float
    failure: str | None = None


def evaluate(bench: Bench, entry: Entry, peer: Peer) -> Evaluation:
    """Runs a peer on a submission, in a process that is warm when the clock starts, as for our
    judge.
    """
    task = entry.task
    reference = source_of(task, timed_case(task, bench.device))
    code = HEAD.format(files=peer.files, submission=entry.code, reference=reference)
    code += peer.shim.format(device=str(bench.device))
    time.sleep(REST)
    worker = bench.candidates.take()
    start = time.perf_counter()
    try:
        if "missing" in bench.candidates.sandbox(worker).model_dump().values():
            raise SystemExit(
                "this machine's sandbox is not whole, and these files attack what they can reach"
            )
        worker.ask(
            "load", SECONDS, path=str(worker.folder / "peer.py"), code=code, entry="ModelNew"
        )
        failure = "it ended without one"
    except CandidateError as error:  # it ended with the attack; earlier output counts
        failure = " ".join(printable(str(error)).split())[:ERROR_LIMIT]
    finally:
        seconds = time.perf_counter() - start
        bench.candidates.retire(worker)
    answers = [line for line in worker.log.splitlines() if line.startswith("PEER ")]
    if not answers:
        return Evaluation(None, seconds, failure)
    return Evaluation(Answer(*json.loads(answers[-1].removeprefix("PEER "))), seconds)


def commit_of(folder: Path) -> str | None:
    """The checked-out commit of a folder; None if it, or all of its files, are in no checkout."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        return (git("rev-parse", "HEAD") or None) if git("ls-files", "--", ".") else None
    except OSError:  # git is not installed
        return None


def read_peers(options: argparse.Namespace) -> dict[str, Peer]:
    """Each peer by its name."""
    peers: dict[str, Peer] = {}
    if options.kernrl:
        names = ("evaluator.py", "profiler.py")
        files = {f"server/{name}": (options.kernrl / "server" / name).read_text() for name in names}
        peers["kernrl"] = Peer(
            {"server/__init__.py": "", **files}, KERNRL, commit_of(options.kernrl)
        )
    if options.kernelbench:
        folder = options.kernelbench / "src" / "kernelbench"
        files = {f"kernelbench/{path.name}": path.read_text() for path in folder.glob("*.py")}
        peers["KernelBench"] = Peer(files, KERNELBENCH, commit_of(options.kernelbench))
    return peers
