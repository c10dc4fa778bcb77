"""What the attacks and the honest kernels of our corpus get from other systems' evaluators, beside what they get here.

Evaluators are read from checkouts of their repositories and run in a process of our sandbox, one for each submission,
so that an attack on the machine stays inside. A peer rewards an attack when it calls a wrong answer correct, or finds a
submission that gains nothing here more than `GAIN` times as fast as the reference.

    python benchmarks/peers.py [--kernrl PATH/envs/kernrl] [--kernelbench PATH] [--device cpu|cuda] [--json FILE]
"""

import argparse
import ast
import json
import random
import sys
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
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.reference import apply_overrides, overrides_of
from kevin_env.judge.worker import Trouble

GAIN = 1.5
SECONDS = 120.0
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


def evaluate(bench: Bench, entry: Entry, files: dict[str, str], shim: str) -> tuple[bool, float] | None:
    """Whether a peer calls a submission correct, and the speedup it finds; None when it gives no answer."""
    task = entry.task
    reference = ast.unparse(apply_overrides(task.source, overrides_of(task).get(timed_case(task, bench.device), {})))
    head = HEAD.format(files=files, submission=entry.code, reference=reference)
    worker = bench.take()
    try:
        if "missing" in worker.sandbox.model_dump().values():
            raise SystemExit("this machine's sandbox is not whole, and these files attack what they can reach")
        path = str(worker.folder / "peer.py")
        code = head + shim.format(device=str(bench.device))
        worker.ask("load", SECONDS, path=path, code=code, entry="ModelNew")
    except Trouble:
        pass  # it ended with the attack; what it said before counts
    finally:
        worker.close()
    said = [line for line in worker.log.splitlines() if line.startswith("PEER ")]
    if not said:
        return None
    correct, speedup = json.loads(said[-1].removeprefix("PEER "))
    return correct, speedup


def rewarded(entry: Entry, answer: tuple[bool, float] | None) -> bool:
    """Whether an answer pays: for an attack that is wrong when it is called correct, else when it is called fast."""
    if answer is None or not answer[0]:
        return False
    return answer[1] > GAIN if entry.expect.startswith("no ") else True


def ours(pool: LocalPool, entry: Entry, device: str) -> tuple[bool, float]:
    """The same of our own judge."""
    outcome, _, _ = judged(entry, device, pool)
    return outcome.category == "correct", getattr(outcome, "speedup", None) or 0.0


def read_peers(options: argparse.Namespace) -> dict[str, tuple[dict[str, str], str]]:
    """Each peer's files and how it is called."""
    peers: dict[str, tuple[dict[str, str], str]] = {}
    if options.kernrl:
        names = ("evaluator.py", "profiler.py")
        files = {f"server/{name}": (options.kernrl / "server" / name).read_text() for name in names}
        peers["kernrl"] = ({"server/__init__.py": "", **files}, KERNRL)
    if options.kernelbench:
        folder = options.kernelbench / "src" / "kernelbench"
        files = {f"kernelbench/{path.name}": path.read_text() for path in folder.glob("*.py")}
        peers["KernelBench"] = (files, KERNELBENCH)
    return peers


def count(entries: list[Entry], answers: dict[str, tuple[bool, float] | None], who: str) -> list[dict[str, Any]]:
    """Rows of the result: how many attacks were rewarded and how many honest kernels rejected."""
    attacks = [each for each in entries if each.path.parent.name == "hostile"]
    honest = [each for each in entries if each.path.parent.name == "honest"]
    paid = [each.name for each in attacks if rewarded(each, answers[each.name])]
    refused = [each.name for each in honest if not (answers[each.name] or (False, 0.0))[0]]
    for title, names in (("rewarded", paid), ("honest but rejected", refused)):
        print(f"{who}: {title}: {', '.join(names) or 'none'}")
    rows = (
        (f"{who}: attacks rewarded", len(paid), len(attacks)),
        (f"{who}: honest kernels rejected", len(refused), len(honest)),
    )
    return [plain_row(name, value, n=n) for name, value, n in rows]


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
    rows += count(entries, dict(found), "kevin-env")
    bench = Bench(device, info)
    for name, (files, shim) in read_peers(options).items():
        answers = {each.name: evaluate(bench, each, files, shim) for each in track(entries, name)}
        rows += count(entries, answers, name)
    bench.close()
    for row in rows:
        print(f"{row['name']:45} {row['value']:5} of {row['n']}")
    write_result(options.json, device_name(info), info.versions, rows)


if __name__ == "__main__":
    main()
