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

import torch

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
import json, os, pathlib, subprocess, sys, types
FILES = {files!r}
JOBS = {jobs!r}
REFERENCE, SUBMISSION = JOBS[0]
COMPARES = {compares!r}
PEER = pathlib.Path.cwd() / "peer"
for name, text in FILES.items():
    path = PEER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
sys.path.insert(0, str(PEER))
def say(correct, speedup):
    print("PEER", json.dumps([bool(correct), float(speedup)]), flush=True)
"""
OWN_PROCESSES = """
LIMIT = 100
PROGRAMS = [str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
PATHS = dict(PATH=PROGRAMS, PYTHONPATH=sys.path)
ENVIRONMENT = os.environ | dict((name, os.pathsep.join(of)) for name, of in PATHS.items())
def run(folder, *words):
    done = subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT
    )
    return done.returncode, done.stdout
def described(reference):
    import torch
    space = dict(__name__="reference")
    exec(compile(reference, "reference.py", "exec"), space)
    with torch.no_grad(), torch.device("{device}"):
        inputs = space["get_inputs"]()
        output = space["Model"](*space["get_init_inputs"]())(*inputs)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return inputs, output
def require_tensors(values, what):
    import torch
    if not all(isinstance(each, torch.Tensor) for each in values):
        raise NotImplementedError(f"it cannot be asked: {{what}}")
class ModelNew: pass
"""
"""Runs a command of a peer, and describes a problem by its inputs and output."""
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

KERNELGYM = """
# Its GPU worker and server without Redis between them: tasks go straight to the pool.
SERVICE = '''
import asyncio, json, os, sys
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # all others print there
from kernelgym.config import settings
from kernelgym.core import SchedulerAPI
from kernelgym.worker.subprocess_pool import SubprocessWorkerPool
from kernelgym.workflow import KernelBenchWorkflowController
class Scheduler(SchedulerAPI):
    def __init__(self, pool):
        self.pool, self.results = pool, dict()
    async def submit(self, task):
        name = task.payload["task_id"]
        try:
            done = await self.pool.execute_task(task.payload, timeout=task.payload["timeout"])
        except (RuntimeError, TimeoutError) as error:
            done = dict(error_message=str(error))
        failed = dict(error_message=done.get("error_message") or "failed")
        self.results[name] = done["result"] if done.get("success") else failed
        return name
    async def wait(self, task_id, timeout=None):
        return self.results[task_id]
    get_status = cancel = None
async def main(jobs, seconds):
    pool = SubprocessWorkerPool(
        0, settings.worker_pool_size, max_tasks_per_worker=settings.max_tasks_per_worker
    )
    print("READY", file=answers)
    for number, (reference, submission) in enumerate(jobs):
        request = dict(reference_code=reference, kernel_code=submission, timeout=seconds)
        backend = "triton" if "triton" in submission else "cuda"
        # with a profile, it fails after a CUDA kernel is timed and forgets the time
        request |= dict(task_id=str(number), backend=backend, enable_profiling=backend == "triton")
        result = await KernelBenchWorkflowController().handle_request(request, Scheduler(pool))
        correct = result["compiled"] and result["correctness"] and not result["decoy_kernel"]
        print("PEER", json.dumps([bool(correct), float(result["speedup"])]), file=answers)
    await pool.shutdown()
if __name__ == "__main__":
    asyncio.run(main(json.load(open("jobs.json")), int(sys.argv[1])))
'''
for reference, _ in JOBS:
    require_tensors([described(reference)[1]], "it compares one tensor")
pathlib.Path("service.py").write_text(SERVICE)
pathlib.Path("jobs.json").write_text(json.dumps(JOBS))
with open("service.log", "w") as log:
    service = [sys.executable, "service.py", str(LIMIT // 2)]
    code = subprocess.run(service, env=ENVIRONMENT, stderr=log).returncode
if code:
    raise RuntimeError(pathlib.Path("service.log").read_text()[-2000:])
"""
SOL_EXECBENCH = """
import cupti, torch  # its driver measures with CUPTI; without it, it would reject everything
KINDS = dict(bool="bool", int="int64", float="float32")
LEAVES = '''
def peer_leaves(value):
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in peer_leaves(each)]
    return [value]
'''
exec(LEAVES)
RUN = LEAVES + '''
import torch as peer_torch
def peer_model(kind):
    peer_torch.manual_seed(42)
    initial = get_init_inputs()
    peer_torch.manual_seed(42)
    return kind(*initial).cuda()
PEER_MODEL = peer_model(KIND)
def run(NAMES):
    with peer_torch.no_grad():
        return tuple(peer_leaves(PEER_MODEL(NAMES)))
def peer_inputs(axes, device):
    with peer_torch.device(device):
        return dict(zip(INPUTS, get_inputs()))
'''
def spec(value):
    if isinstance(value, torch.Tensor):
        return dict(shape=[str(each) for each in value.shape], dtype=str(value.dtype).split(".")[1])
    return dict(shape=None, dtype=KINDS[type(value).__name__])
def prepared(number, reference, submission):
    if "cpp_extension" in submission:
        raise NotImplementedError("it cannot be asked: it refuses torch's extensions in Python")
    inputs, output = described(reference)
    inputs = dict((f"input_{{place}}", spec(each)) for place, each in enumerate(inputs))
    outputs = enumerate(peer_leaves(output))
    outputs = dict((f"output_{{place}}", spec(each)) for place, each in outputs)
    end = RUN.replace("NAMES", ", ".join(inputs)).replace("INPUTS", repr(list(inputs)))
    definition = dict(name="peer", axes=dict(), inputs=inputs, outputs=outputs)
    definition |= dict(
        reference=reference + end.replace("KIND", "Model"), custom_inputs_entrypoint="peer_inputs"
    )
    names = "from problem import get_init_inputs, get_inputs"
    kernel = "\\n".join([submission, names, end.replace("KIND", "ModelNew")])
    sources = [dict(path="kernel.py", content=kernel), dict(path="problem.py", content=reference)]
    build = dict(languages=["triton" if "triton" in submission else "pytorch"])
    build |= dict(entry_point="kernel.py::run", destination_passing_style=False)
    build |= dict(target_hardware=["LOCAL"])
    solution = dict(name="peer", definition="peer", author="peer", spec=build, sources=sources)
    given = dict((each, dict(type="custom")) for each in inputs)
    workload = dict(axes=dict(), uuid="peer", inputs=given)
    folder = pathlib.Path.cwd() / f"problem_{{number}}"
    folder.mkdir()
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "workload.jsonl").write_text(json.dumps(workload))
    (folder / "solution.json").write_text(json.dumps(solution))
    return folder
folders = [prepared(number, *job) for number, job in enumerate(JOBS)]
print("READY", flush=True)
for folder in folders:
    command = "from sol_execbench.cli import cli; cli()"
    options = [str(folder), "--json", "--timeout", str(LIMIT - 5)]
    _, printed = run(folder, sys.executable, "-c", command, *options)
    found = [json.loads(line)["evaluation"] for line in printed.splitlines() if line[:1] == "{{"]
    correct = bool(found) and all(each["status"] == "PASSED" for each in found)
    say(correct, found[0]["performance"]["speedup_factor"] if correct else 0.0)
"""
KERNELBENCH_COM = """
import re, yaml  # its scripts need YAML; without it, they would reject everything
# The scripts of a problem get ours: its constants unchanged, in their only shape. The score, a
# share of the device's peak, becomes a speedup by the time of the reference as a solution.
SHAPES = "import reference\\nSHAPES = [dict((each, getattr(reference, each, 1)) for each in 'MNK')]"
META = dict(name="peer", regime="memory", flops_formula="1", bytes_formula="1", hardware=["H100"])
META |= dict(peak_tflops_key="fp32")
def prepared(name, reference, submission):
    folder = PEER / "problems-h100" / name
    folder.mkdir()
    for script in ("check.py", "benchmark.py"):
        (folder / script).write_text(FILES["problems-h100/01_fp8_gemm/" + script])
    (folder / "reference.py").write_text(reference)
    (folder / "shapes.py").write_text(SHAPES)
    (folder / "problem.yaml").write_text(yaml.safe_dump(META))
    (folder / "solution.py").write_text(submission.replace("ModelNew", "Model"))
    return folder
def graded(folder, script):
    try:
        return run(folder, sys.executable, str(PEER / "src/eval/trusted_entrypoint.py"), script)
    except subprocess.TimeoutExpired:
        return 1, ""
def milliseconds(folder):
    code, printed = graded(folder, "benchmark.py")
    times = re.findall("event=variant_end .* ms=([0-9.]+)", printed)
    return float(times[-1]) if times and not code else None
for reference, _ in JOBS:
    inputs, output = described(reference)
    require_tensors([output, *inputs], "it passes tensors and compares one")
folders = [prepared(str(number), *job) for number, job in enumerate(JOBS)]
print("READY", flush=True)
for number, folder in enumerate(folders):
    code, printed = graded(folder, "check.py")
    correct = not code and len(re.findall("^PASS$", printed, re.MULTILINE)) == 1
    time = milliseconds(folder) if correct else None
    whole = None
    if time and COMPARES:
        whole = milliseconds(prepared(f"{{number}}_reference", REFERENCE, REFERENCE))
    say(correct, whole / time if time and whole else 0.0)
"""
OWN = {
    "kernelgym": ("KernelGYM", "", ("kernelgym/**/*.py",), KERNELGYM),
    "sol": ("SOL-ExecBench", "src", ("sol_execbench/**/*.py",), SOL_EXECBENCH),
    "kernelbench_com": (
        "kernelbench.com",
        "benchmarks/hard",
        ("src/*.py", "src/eval/*.py", "src/hardware/*.py", "problems-h100/01_fp8_gemm/*.py"),
        KERNELBENCH_COM,
    ),
}
"""Peers with processes of their own by option: name, folder of their modules, these, and shim."""
EMPTIED = {"kernelgym/worker/__init__.py": ""}
"""Modules that only import others, among them clients of Redis."""


@dataclass(frozen=True)
class Peer:
    """Another system's evaluator."""

    files: dict[str, str]
    """Its modules by path."""
    shim: str
    """The script that calls it."""
    commit: str | None
    """None if its folder is not a checkout."""
    serves: bool = False
    """Whether its script takes many submissions, each of which has its own process."""


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


def reference_of(entry: Entry, device: torch.device) -> str:
    """The reference of a file's problem, in the case that is timed."""
    return source_of(entry.task, timed_case(entry.task, device))


def script_of(
    peer: Peer, jobs: list[tuple[str, str]], device: torch.device, compares: bool = True
) -> str:
    """The script in which a peer evaluates submissions, each after its reference.

    Args:
        compares: Whether it times the reference even if its score does not depend on that.
    """
    code = HEAD.format(files=peer.files, jobs=jobs, compares=compares)
    return code + peer.shim.format(device=str(device))


def evaluate(bench: Bench, entry: Entry, peer: Peer) -> Evaluation:
    """Runs a peer on a submission, in a process that is warm when the clock starts, as for our
    judge.
    """
    code = script_of(peer, [(reference_of(entry, bench.device), entry.code)], bench.device)
    time.sleep(REST)
    candidates = bench.candidates  # its own processes use CUDA as NVIDIA's tools do
    worker = candidates.take_for_tools() if peer.serves else candidates.take()
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
    answers = [each for each in map(answer_in, worker.log.splitlines()) if each]
    return Evaluation(answers[-1], seconds) if answers else Evaluation(None, seconds, failure)


def answer_in(line: str) -> Answer | None:
    """The answer in a line that a script printed, if any."""
    return Answer(*json.loads(line.removeprefix("PEER "))) if line.startswith("PEER ") else None


def commit_of(folder: Path) -> str | None:
    """The checked-out commit of a folder; None if it, or all of its files, are in no checkout."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        return (git("rev-parse", "HEAD") or None) if git("ls-files", "--", ".") else None
    except OSError:  # git is not installed
        return None


def add_peer_options(parser: argparse.ArgumentParser) -> None:
    """Adds an option for the checkout of each peer that keeps to KernelBench's form."""
    for option in ("kernelbench", *OWN):
        parser.add_argument(f"--{option.replace('_', '-')}", type=Path)


def read_peers(options: argparse.Namespace) -> dict[str, Peer]:
    """Each peer by its name."""
    peers: dict[str, Peer] = {}
    if getattr(options, "kernrl", None):
        names = ("evaluator.py", "profiler.py")
        files = {f"server/{name}": (options.kernrl / "server" / name).read_text() for name in names}
        peers["kernrl"] = Peer(
            {"server/__init__.py": "", **files}, KERNRL, commit_of(options.kernrl)
        )
    if options.kernelbench:
        folder = options.kernelbench / "src" / "kernelbench"
        files = {f"kernelbench/{path.name}": path.read_text() for path in folder.glob("*.py")}
        peers["KernelBench"] = Peer(files, KERNELBENCH, commit_of(options.kernelbench))
    for option, (name, below, patterns, shim) in OWN.items():
        if path := getattr(options, option, None):
            folder = path / below
            paths = [each for pattern in patterns for each in sorted(folder.glob(pattern))]
            files = {str(each.relative_to(folder)): each.read_text() for each in paths}
            files |= {each: text for each, text in EMPTIED.items() if each in files}
            peers[name] = Peer(files, OWN_PROCESSES + shim, commit_of(path), serves=True)
    return peers
