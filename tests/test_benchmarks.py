"""What the benchmarks rely on: submissions that no cache has seen, and resource usage."""

import ast
import importlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import pytest
from episodes import WRONG, another, correct, problem_file

from kevin_env.episode import Episode
from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Sandbox, Seconds
from kevin_env.judge.lint.report import LintReport
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.scripted import SCRIPTED_CPU, ScriptedPool
from kevin_env.profile import KernelProfile, Metric, NcuDigest, Profile
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder, read_trajectories
from kevin_env.settings import Settings

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
Script = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    """Imports a script by its name; they import each other from their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_same_kernels_come_in_other_words_each_time(device: str, script: Script) -> None:
    honest = script("honest")
    for entry in (
        *honest.honest_entries(device),
        *honest.solution_entries(device),
        *honest.extension_entries(device),
    ):
        one, two = honest.fresh(entry.code, 101), honest.fresh(entry.code, 202)
        ast.parse(one)
        assert one != two
        if honest.kind_of(entry.code) in ("cuda", "triton"):
            assert "fresh_101" in one, entry.name  # inside what is compiled, not beside it


def test_triton_hashes_what_is_added_to_a_kernel(script: Script) -> None:
    honest = script("honest")
    code = honest.fresh(
        "@triton.autotune(configs=[])\n@triton.jit\ndef add(\n    x,\n):\n    y = x\n    return y\n",
        7,
    )
    (kernel,) = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    assert ast.unparse(kernel.body[0]) == "fresh_7 = 7"


def test_a_template_stays_with_its_kernel(script: Script) -> None:
    kernel = "template <typename T>\n__global__ void first(T* x) {}\n__global__ void second() {}"
    assert script("honest").fresh(f'CUDA = r"""\n{kernel}\n"""', 7).split("\n")[1:6] == [
        "static const int fresh_7_1 = 7;",
        *kernel.split("\n")[:2],
        "static const int fresh_7_3 = 7;",
        "__global__ void second() {}",
    ]


@pytest.mark.full
def test_a_changed_kernel_is_still_right(pool: LocalPool, script: Script) -> None:
    honest = script("honest")
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    changed = honest.freshened(entry, 303)
    assert "static const int fresh_303" in changed.code
    judgement = pool.submit(
        changed.task, Submission(code=changed.code), Options(device="cpu")
    ).result()
    assert honest.is_right(entry, judgement.outcome)


def test_submissions_are_spread_over_problems_and_given_to_peers_by_kind(script: Script) -> None:
    honest = script("honest")
    throughput = script("throughput")
    turn_latency = script("turn_latency")
    entries = honest.filled_up("triton", 20, "cuda")
    assert len(entries) >= 20 and len({each.problem for each in entries}) >= 10
    first = throughput.mixed(entries, 64)
    assert len(first) == 64 and len({each.problem for each in first[:10]}) == 10
    mix = throughput.mix_of(entries, 100)
    assert len(mix) == 100 and Counter(each.expect for each in mix)["compile/import"] == 25
    assert sum(each.code == throughput.NO_CODE for each in mix) == 10
    both = honest.filled_up("cuda", 0, "cuda") + entries
    given = turn_latency.for_peers(both, 3, {each.name for each in both})
    assert {honest.kind_of(each.code) + "inline" * ("load_inline" in each.code) for each in given} == {
        "cuda", "cudainline", "triton",
    }  # fmt: skip


TOLD: dict[str, Any] = {
    "seconds": Seconds(), "device": SCRIPTED_CPU, "secret": "0" * 32,
    "sandbox": Sandbox(network="enforced", filesystem="enforced", limits="enforced", processes="enforced"),
}  # fmt: skip


class Verdicts:
    """A pool that always gives the same verdict."""

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement

    def submit(self, *asked: Any) -> Future[Judgement]:
        future: Future[Judgement] = Future()
        future.set_result(self._judgement)
        return future


def test_rows_take_right_answers_only_and_extensions_that_are_not_called_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    honest, turns, resultfile = script("honest"), script("turns"), script("resultfile")
    monkeypatch.setattr(turns, "REST", 0.0)
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    extension = honest.extension_entries("cpu")[0]
    right, wrong = Judgement(outcome=correct(1.0), **TOLD), Judgement(outcome=WRONG, **TOLD)
    for judgement, names in ((right, {"cpp_turn", "cpp_extension_build_turn"}), (wrong, set())):
        file = tmp_path / f"{judgement.outcome.category}.json"
        results = resultfile.Results(file, "cpu", {})
        taken = turns.Turns(Verdicts(judgement), "cpu", results)
        taken.entry(entry)
        taken.entry(extension)
        assert {name for name in resultfile.known_rows(file) if ": " not in name} == names
        assert set(taken.taken) == ({entry.name, extension.name} if names else set())
        assert len(taken.faults) == (0 if names else 2)


def test_what_a_tool_costs_is_told_only_where_it_answered(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    cost, honest = script("feedback_cost"), script("honest")
    monkeypatch.setattr(cost.time, "sleep", lambda seconds: None)
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    silent = Profile(
        kernels=KernelProfile(seconds=1.0), notes=("ncu may not read the device's counters",)
    )
    judgement = Judgement(outcome=correct(1.0), profile=silent, **TOLD)
    rows = list(cost.option_rows(Verdicts(judgement), entry, "cpu", 2, cost.OPTIONS))
    names = {row["name"].partition(": ")[2] for row in rows}
    assert names == {"off", "profile=kernels", "profile=kernels, added"} and {
        row["n"] for row in rows
    } == {2}
    with pytest.raises(RuntimeError, match="elements differ"):
        list(
            cost.option_rows(
                Verdicts(Judgement(outcome=WRONG, **TOLD)), entry, "cpu", 2, cost.OPTIONS
            )
        )


PAGE_HEAD = '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"'
LIMITS, MEMORY, COMMAND = (
    "GPU Speed Of Light Throughput",
    "Memory Workload Analysis",
    "Command line profiler metrics",
)
PAGE_ROWS = [
    (0, "fill", LIMITS, "Duration", "ns", "900"),
    (0, "fill", LIMITS, "Memory Throughput", "%", "12.00"),
    (1, "relu", LIMITS, "Memory Throughput", "%", "91.25"),
    (1, "relu", LIMITS, "DRAM Throughput", "%", "90.00"),
    (1, "relu", LIMITS, "Duration", "us", "1,200.5"),
    (1, "relu", LIMITS, "Compute (SM) Throughput", "%", "23.59"),
    (1, "relu", "SpeedOfLight", "", "", ""),
    (1, "relu", MEMORY, "Memory Throughput", "Gbyte/s", "4,000.0"),
    (1, "relu", MEMORY, "L2 Hit Rate", "%", "n/a"),
    (1, "relu", "Launch Statistics", "Cluster Scheduling Policy", "", "PolicySpread"),
    (1, "relu", "Launch Statistics", "Registers Per Thread", "register/thread", "32"),
    (1, "relu", COMMAND, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sector", "1,600"),
    (1, "relu", COMMAND, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "", "100"),
    (1, "relu", COMMAND, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "sector", "0"),
]
PAGE = "\n".join(
    ["==PROF== Connected", PAGE_HEAD]
    + [
        f'"{launch}","{kernel}","0","9.0",' + ",".join(f'"{cell}"' for cell in cells) + ","
        for launch, kernel, *cells in PAGE_ROWS
    ]
)
"""As Nsight Compute prints `--page details --csv`."""


def test_a_page_of_nsight_compute_is_read_by_hand_in_our_names_and_units(script: Script) -> None:
    by_hand = script("by_hand")
    found = by_hand.read_page(PAGE)
    assert (found.kernel, found.bound) == ("relu", "memory")
    assert found.figures == pytest.approx({
        "duration": 1200.5e-6, "memory throughput": 0.9125, "DRAM throughput": 0.9, "compute throughput": 0.2359,
        "registers a thread": 32, "DRAM bytes": 4e12 * 1200.5e-6, "sectors a global load": 16, "local memory bytes": 0,
    })  # fmt: skip
    assert by_hand.read_page(PAGE.replace("91.25", "39.99")).bound == "latency"
    assert by_hand.read_page(PAGE.replace("23.59", "95")).bound == "compute"
    assert by_hand.read_page(PAGE.replace("Compute (SM) Throughput", "Other")).bound is None
    with pytest.raises(by_hand.NoAnswer, match="no duration"):
        by_hand.read_page("==ERROR== nothing")


def test_figures_of_a_profile_stand_beside_those_by_hand(script: Script) -> None:
    profiles, by_hand = script("profiles"), script("by_hand")
    metrics = (
        Metric(name="DRAM throughput", value=0.88, unit="fraction"),
        Metric(name="local memory bytes", value=0, unit="bytes"),
        Metric(name="L2 hit rate", value=0.5, unit="fraction"),
    )
    ncu = NcuDigest(
        kernel="relu", own=True, seconds=2.401e-3, share=0.5, bound="compute", metrics=metrics
    )
    rows = {row["name"]: row for row in profiles.compare("good", ncu, by_hand.read_page(PAGE))}
    assert set(rows) == {
        f"good: {name}" for name in ("duration", "DRAM throughput", "local memory bytes", "bound")
    }
    assert rows["good: DRAM throughput"]["difference"] == pytest.approx(-2.0)
    assert rows["good: duration"]["difference"] == pytest.approx(0.0)
    assert rows["good: local memory bytes"]["difference"] == 0
    bound = rows["good: bound"]
    assert (bound["value"], bound["told"], bound["by_hand"]) == (0, "compute", "memory")
    assert "-2.00 points" in profiles.tell(rows["good: DRAM throughput"])
    judgement = Judgement(outcome=correct(1.0), profile=Profile(ncu=ncu), **TOLD)
    took, with_profile, without = profiles.cost("good", judgement)
    assert with_profile["value"] > without["value"] > 0
    for row in (*rows.values(), took, with_profile, without):
        assert row["name"] in profiles.tell(row)


@pytest.mark.full
def test_nsight_compute_is_asked_at_a_shell_and_its_refusal_is_one_line(
    tmp_path: Path, script: Script
) -> None:
    by_hand, tool = script("by_hand"), tmp_path / "ncu"
    problem, submission = tmp_path / "problem.py", tmp_path / "submission.py"
    problem.write_text(
        "import torch\nclass Model(torch.nn.Linear): pass\n"
        "def get_inputs(): return [torch.rand(3, 4)]\ndef get_init_inputs(): return [4, 2]\n"
    )
    submission.write_text(
        "import torch\nopen('kernel.cu', 'w').close()\n"
        "class ModelNew(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        print('called', file=open('calls', 'a'))\n        return x @ self.weight.t() + self.bias\n"
    )
    (tmp_path / "page").write_text(PAGE)
    tool.write_text(
        f"#!/bin/sh\ncase $* in *--import*) cat {tmp_path}/page; exit;; *--metrics*) "
        "echo Failed to find metric x; exit 1;; esac\n"
        f'while [ "$1" != --export ]; do shift; done; shift 2\n"$@" && cp calls {tmp_path} && touch report.ncu-rep\n'
    )
    tool.chmod(0o700)
    assert by_hand.read_page(by_hand.ask(str(tool), submission, problem)).kernel == "relu"
    assert (tmp_path / "calls").read_text() == "called\n" * 2, (
        "once to warm up, once between the marks"
    )
    submission.write_text(submission.read_text().replace("self.bias", "1"))
    with pytest.raises(
        by_hand.NoAnswer,
        match=r"told nothing of submission: its output is not that of the reference",
    ):
        by_hand.ask(str(tool), submission, problem)
    tool.write_text(
        "#!/bin/sh\necho ==PROF== Connected; echo ==ERROR== ERR_NVGPUCTRPERM; echo more\n"
    )
    with pytest.raises(by_hand.NoAnswer, match=r"submission: ==ERROR== ERR_NVGPUCTRPERM$"):
        by_hand.ask(str(tool), submission, problem)


def test_processes_of_an_idle_judge_are_told_apart(pool: LocalPool, script: Script) -> None:
    machine = script("machine")
    pool.device("cpu")
    found = machine.processes_of_judge(os.getpid())
    assert found["judge"] and found["fork server"]
    assert machine.proportional_size(found["judge"]) > 10 << 20


def test_what_a_peer_rewards_rejects_and_leaves_open_is_counted_apart(script: Script) -> None:
    peers = script("peers")

    def entry(folder: str, name: str, expect: str) -> Any:
        return peers.Entry(Path(folder, f"{name}.py"), "relu.py", "cpu", "kernel", expect)

    entries = [
        *(entry("hostile", name, "correctness/values") for name in ("paid", "caught", "fatal")),
        *(entry("hostile", name, "no gain") for name in ("fast", "slow")),
        *(entry("honest", name, "correct") for name in ("right", "refused", "broken")),
    ]
    said = {
        "hostile/paid": (True, 1.0), "hostile/caught": (False, 0.0), "hostile/fast": (True, 9.0),
        "hostile/slow": (True, 1.1), "honest/right": (True, 1.0), "honest/refused": (False, 0.0),
    }  # fmt: skip
    peer, evaluation = peers.Peer({}, "", "abc"), peers.Evaluation
    rows = [
        peers.answer_row(
            peers.Task("peer", peer, each), evaluation(peers.Answer(*told) if told else None, 1.0)
        )
        for each in entries
        for told in (said.get(each.name),)
    ]
    assert {row["name"]: (row["value"], row["n"], row["commit"]) for row in peers.total_rows(rows)} == {
        "peer: attacks: rewarded": (2, 5, "abc"), "peer: attacks: rejected": (2, 5, "abc"),
        "peer: attacks: no answer": (1, 5, "abc"), "peer: honest kernels: rewarded": (1, 3, "abc"),
        "peer: honest kernels: rejected": (1, 3, "abc"), "peer: honest kernels: no answer": (1, 3, "abc"),
    }  # fmt: skip


def test_answers_that_a_file_has_are_kept_while_their_evaluator_is_the_same(
    tmp_path: Path, script: Script
) -> None:
    peers, resultfile, file = script("peers"), script("resultfile"), tmp_path / "x.cpu.json"
    entry = peers.Entry(Path("hostile", "a.py"), "relu.py", "cpu", "kernel", "no gain")
    old, new = (peers.Task("peer", peers.Peer({}, "", commit), entry) for commit in ("abc", "def"))
    ours = peers.Task(peers.OURS, None, entry)
    answers = (
        peers.Evaluation(None, 1.0, "ended with 1"),
        peers.Evaluation(peers.Answer(True, float("inf")), 1.0),
    )
    rows = [peers.answer_row(*told) for told in zip((old, ours), answers, strict=True)]
    resultfile.write_result(file, "cpu", {}, [*peers.total_rows(rows), *rows])
    known = resultfile.known_rows(file)
    assert set(peers.kept_rows(known, [old, ours])) == {"peer: hostile/a", "kevin-env: hostile/a"}
    assert set(peers.kept_rows(known, [new, ours])) == {"kevin-env: hostile/a"}
    assert not peers.kept_rows(known, []), "a row of a file that is no longer there"


def test_a_process_of_a_device_has_its_part_of_the_processors(script: Script) -> None:
    share = script("gpu_processes").share
    assert [share({1, 2, 3, 5, 8}, place, 2) for place in (0, 1)] == [{1, 2}, {3, 5}]
    assert share({4}, 1, 2) == {4}


def test_the_visible_devices_are_counted_among_those_that_are_visible_already(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert script("gpu_processes").gpu_numbers() == ["2", "5"]


def test_an_evaluation_is_begun_only_in_time(script: Script) -> None:
    peers = script("peers")
    free: SimpleQueue[Any] = SimpleQueue()
    free.put(None)  # it would fail if it were asked
    assert peers.asked(None, None, free, time.monotonic()) is None
    assert free.qsize() == 1


def test_a_lint_goes_on_with_what_its_file_lacks_and_where_the_judge_failed(
    tmp_path: Path, script: Script
) -> None:
    lint = script("lint")
    problems = [problem_file(tmp_path, name) for name in ("2_Fit", "1_Failed", "10_New")]
    fit = LintReport(
        problem="2_Fit",
        device="cpu",
        findings=(),
        reference="accepted",
        accepted=(),
        accepted_as_shipped=(),
    )
    linted = (lint.Linted(problems[0], fit), lint.Linted(problems[1], None, "gone"))
    rows = {row["name"]: row for row in (lint.problem_row("set", each) for each in linted)}
    assert [each.id for each in lint.missing(problems, "set", rows)] == ["1_Failed", "10_New"]
    assert [each.id for each in lint.missing(problems, "other", rows)] == [
        "2_Fit",
        "1_Failed",
        "10_New",
    ]


def test_rows_of_a_lint_are_in_the_order_of_their_numbers(script: Script) -> None:
    names = ["b/L1_1_a", "a/L10_1_a", "a/L1_10_a", "a/L1_2_a"]
    ordered = script("lint").in_order({"name": name} for name in names)
    assert [row["name"] for row in ordered] == list(reversed(names))


def test_devices_of_one_file_are_of_one_kind(script: Script) -> None:
    alike = script("resultfile").alike
    other = SCRIPTED_CPU.model_copy(update={"name": "another"})
    assert alike([SCRIPTED_CPU, SCRIPTED_CPU]) is SCRIPTED_CPU
    with pytest.raises(SystemExit, match="one kind"):
        alike([SCRIPTED_CPU, other])


def test_the_commit_of_a_peer_is_that_of_its_own_checkout(tmp_path: Path, script: Script) -> None:
    evaluators = script("evaluators")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    inner = tmp_path / "envs" / "peer"
    inner.mkdir(parents=True)
    (inner / "evaluator.py").touch()
    assert evaluators.commit_of(inner) is None
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "first", "--allow-empty"], check=True)
    assert evaluators.commit_of(inner) is None, "that is the commit of something around it"
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "second"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert evaluators.commit_of(inner) == head.stdout.strip()


@pytest.mark.parametrize("said", [True, False])
def test_a_peer_is_asked_in_a_warm_process_and_its_time_is_that_of_its_evaluation(
    bench: Any, said: bool, script: Script
) -> None:
    evaluators, honest = script("evaluators"), script("honest")
    shim = (
        "import time; time.sleep(0.2)\n"
        + ("say(True, 2.0)\n" if said else "")
        + "class ModelNew: pass\n"
    )
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    told = evaluators.evaluate(bench, entry, evaluators.Peer({"a/__init__.py": ""}, shim, None))
    assert told.answer == (evaluators.Answer(True, 2.0) if said else None)
    assert bool(told.failure) != said
    assert 0.2 < told.seconds < 5


def test_of_a_peer_that_gives_no_answer_is_told_why(bench: Any, script: Script) -> None:
    evaluators, honest = script("evaluators"), script("honest")
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    told = evaluators.evaluate(bench, entry, evaluators.Peer({}, "import no_such_module", None))
    assert told.answer is None and "no_such_module" in told.failure


def test_kernelbench_is_asked_without_what_its_prompts_need(bench: Any, script: Script) -> None:
    evaluators, honest = script("evaluators"), script("honest")
    entry = next(
        each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online"
    )
    code = """
from types import SimpleNamespace
from litellm import completion
completion("at import, as it calls another of these")
def eval_kernel_against_ref(*_, **__):
    return SimpleNamespace(correctness=True, metadata={}, ref_runtime=3.0, runtime=2.0)
"""
    files = {"kernelbench/__init__.py": "", "kernelbench/eval.py": code}
    told = evaluators.evaluate(bench, entry, evaluators.Peer(files, evaluators.KERNELBENCH, None))
    assert told == evaluators.Evaluation(evaluators.Answer(True, 1.5), told.seconds)


def test_rows_of_an_earlier_run_are_kept(tmp_path: Path, script: Script) -> None:
    resultfile = script("resultfile")
    file = tmp_path / "x.cpu.json"
    resultfile.Results(file, "cpu", {}).put(
        resultfile.plain_row("a: one", 1.0), resultfile.plain_row("a: two", -3.0)
    )
    results = resultfile.Results(file, "cpu", {})
    results.put(resultfile.median_row("b", [0.0, 0.0]))
    results.put_largest("a", "a: ")
    rows = resultfile.known_rows(file)
    assert set(rows) == {"a: one", "a: two", "b", "a"}
    assert (rows["a"]["value"], rows["b"]["spread"]) == (1.0, None)


def test_rows_of_other_versions_are_dropped(tmp_path: Path, script: Script) -> None:
    resultfile = script("resultfile")
    file = tmp_path / "x.cpu.json"
    resultfile.Results(file, "cpu", {"torch": "1"}).put(resultfile.plain_row("old", 1.0))
    resultfile.Results(file, "cpu", {"torch": "1"}).put(resultfile.plain_row("beside it", 1.0))
    assert set(resultfile.known_rows(file)) == {"old", "beside it"}
    resultfile.Results(file, "cpu", {"torch": "2"}).put(resultfile.plain_row("new", 2.0))
    assert set(resultfile.known_rows(file)) == {"new"}


def test_the_full_size_kernel_is_right_in_a_small_size(pool: LocalPool, script: Script) -> None:
    cases = script("latency_cases")
    source = cases.FULL_SIZE.source.replace("4096, 393216", "2, 9000")
    small = cases.FULL_SIZE.model_copy(update={"source": source})
    code = cases.FULL_SIZE_KERNEL.format(number=1)
    judgement = pool.submit(small, Submission(code=code), Options(device="cpu")).result()
    assert judgement.outcome.category == "correct", judgement.outcome.message


@pytest.mark.gpu
def test_what_is_timed_on_a_gpu_ends_as_it_must(pool: LocalPool, script: Script) -> None:
    honest, cases = script("honest"), script("latency_cases")
    for entries in (honest.filled_up("triton", 0, "cuda"), honest.extension_entries("cuda")):
        new = honest.freshened(entries[0], 404)
        judgement = pool.submit(
            new.task, Submission(code=new.code), Options(device="cuda")
        ).result()
        assert honest.is_right(new, judgement.outcome), judgement.outcome.message
    error = Submission(code=cases.compile_errors(500)[0])
    assert (
        pool.submit(new.task, error, Options(device="cuda")).result().outcome.category == "compile"
    )


@pytest.mark.gpu
def test_kernels_are_timed_from_inside(script: Script) -> None:
    kernels = script("kernels")
    chosen = [
        each for each in kernels.KERNELS if each.name in ("cuda relu 4 MB", "triton softmax 16 MB")
    ]
    found = kernels.times_inside(chosen, "cupti")
    assert [*found] == [each.name for each in chosen]
    for side in (side for times in found.values() for side in times.values()):
        assert 0 < side["cupti"] < 2 * side["events"] < 1e-3


@pytest.mark.full
def test_a_kernel_with_weights_is_right(pool: LocalPool, script: Script) -> None:
    kernels = script("kernels")
    layer = "self.layer = torch.nn.Linear(16, 4)"
    small = kernels.kernel(
        "small",
        "8, 16",
        "self.layer(x)",
        "x @ self.layer.weight.t() + self.layer.bias",
        weights=layer,
    )
    wrong = kernels.kernel("wrong", "8, 16", "self.layer(x)", "self.layer(x) + 1", weights=layer)
    found = kernels.judged_in_turn(pool, [wrong, small], Options(device="cpu"), 2, 60)
    assert [*found] == ["small"] and len(found["small"]) == 2
    assert found["small"][0].timing > 0
    assert not any(kernels.judged_in_turn(pool, [small], Options(device="cpu"), 2, 0).values())


def test_the_kernels_that_are_judged_again_and_again_are_there(script: Script) -> None:
    fidelity, kernels = script("timing_fidelity"), script("kernels")
    assert len({each.name for each in kernels.KERNELS}) == len(kernels.KERNELS) >= 10
    for device, many in (("cuda", 8), ("cpu", 2)):
        names = {each.name for each in fidelity.fixed_kernels(device)}
        assert len(names) == many and len(names & {*fidelity.LOADED}) == 2


def test_what_intervals_contain_and_how_speedups_vary_is_told_of_judgements(
    tmp_path: Path, script: Script
) -> None:
    fidelity, resultfile = script("timing_fidelity"), script("resultfile")

    def judged(speedup: float, low: float, high: float, seconds: float) -> Any:
        times = {"reference_seconds": speedup * seconds, "submission_seconds": seconds}
        update = {"speedup_interval": (low, high), **times}
        return fidelity.Judged(correct(speedup).model_copy(update=update), 40 * seconds)

    quiet = {
        "short": [
            judged(2.0, 1.9, 2.2, 1e-4),
            judged(2.1, 2.06, 2.2, 1e-4),
            judged(1.9, 1.8, 1.95, 1e-4),
        ],
        "long": [judged(3.0, 2.9, 3.1, 1e-2)],
    }
    loaded = {"short": [judged(1.9, 1.8, 2.0, 1e-4)], "long": [judged(3.0, 2.9, 3.1, 1e-2)]}
    results = resultfile.Results(file := tmp_path / "x.json", "h100", {})
    fidelity.cv_rows(quiet, results)
    fidelity.stage_rows(quiet, results)
    fidelity.coverage_rows(quiet, {"short": [2.0, 2.01, 1.99], "long": [3.05]}, "cuda", results)
    fidelity.load_rows(quiet, loaded, 7, results)
    rows = resultfile.known_rows(file)
    figures = {name: row["value"] for name, row in rows.items() if ": " not in name}
    assert figures == pytest.approx({
        "speedup_cv": 0.05, "time_stage": 4e-3, "coverage": 0.5, "half_width": (0.1 / 1.9 + 0.1 / 2.1) / 2,
        "speedup_under_load": 0.95,
    })  # fmt: skip
    assert (
        rows["coverage: short"]["above"],
        rows["coverage: short"]["below"],
        rows["speedup_cv"]["of"],
    ) == (1, 1, "short")


def test_the_clock_is_held_against_tools(tmp_path: Path, script: Script) -> None:
    clock, fidelity, resultfile = script("clock"), script("timing_fidelity"), script("resultfile")
    assert clock.beyond(103e-6, 100e-6) == pytest.approx(2.0) == clock.beyond(97e-6, 100e-6)
    assert clock.beyond(1.005e-3, 1e-3) == 0
    results = resultfile.Results(file := tmp_path / "x.json", "h100", {})
    outcome = correct(2.0).model_copy(
        update={"reference_seconds": 2e-4, "submission_seconds": 1e-4}
    )
    inside = {"reference": {"events": 2.05e-4}, "submission": {"events": 1e-4, "cupti": 0.98e-4}}
    clock.tell("a", [fidelity.Judged(outcome, 0.1)], inside, results)
    rows = resultfile.known_rows(file)
    calls = {"events: a", "events: a, reference", "events", "cupti: a", "cupti"}
    assert set(rows) == {f"beyond_{call}" for call in calls}
    assert rows["beyond_events"]["of"] == "a, reference" and rows["beyond_events"][
        "value"
    ] == pytest.approx(2.95)


@pytest.mark.parametrize("command", ["clock", "timing_fidelity --device cuda", "inside ."])
def test_without_a_gpu_a_script_for_one_says_so(
    command: str, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script(command.split()[0])
    monkeypatch.setattr(module.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit, match="needs a CUDA device"):
        module.main()


def test_a_recorded_run_is_told_as_figures(tmp_path: Path, script: Script) -> None:
    file, problem = tmp_path / "run.jsonl", problem_file(tmp_path)
    pool = ScriptedPool([WRONG, correct(2.0), correct(3.0), correct(4.0)])
    for numbers in ((1, 2), (3, 4)):
        episode = Episode(
            problem, pool, Settings(max_turns=2, device="cpu"), recorder=Recorder(file)
        )
        episode.start()
        for number in numbers:
            episode.submit(another(number))
    episodes = [each for each in read_trajectories(file) if isinstance(each, Trajectory)]
    rows = {row["name"]: row["value"] for row in script("recorded").figures(episodes)}
    assert (rows["episodes"], rows["turns"], rows["turns that ended correct/timed"]) == (2, 4, 3)
    assert rows["score of a turn, first half"] == pytest.approx(2.3 / 2)
    assert rows["score of a turn, second half"] == pytest.approx(3.8)
    (best, other) = script("eval_solutions").best(episodes)
    assert (best["value"], other["value"]) == (2.0, 4.0)


def test_verdicts_of_the_rules_are_counted_by_model_and_level(
    script: Script, tmp_path: Path
) -> None:
    module, run = script("rules_agreement"), tmp_path / "some-model-l1"
    run.mkdir()
    file = run / "level_1_problem_3_sample_0_kernel.py"
    file.write_text("x = 1\n")
    (run / "eval_results.json").write_text('{"3": [{"sample_id": 0, "correctness": true}]}')
    verdicts, seconds = module.verdicts_of(module.ROOT, "kernel", [file])
    rows = {row["name"]: row["value"] for row in module.counted("kernel", verdicts)}
    assert len(seconds) == 1 and set(rows) == {
        f"{group}.kernel.format/no_model"
        for group in ("some-model.L1", "all.L1", "all", "correct.L1", "correct")
    }
    assert module.pairs_of(verdicts, verdicts) == {("format/no_model", "format/no_model"): 1}
    rows = {row["name"]: row["value"] for row in module.rows_of_set(run, old=module.ROOT)}
    assert rows == {
        f"set.some-model-l1.{name}.format/no_model": 1 for name in ("kernel", "partial", "old")
    }


def test_kernels_of_others_become_submissions(script: Script, tmp_path: Path) -> None:
    module, folder = script("labelled"), tmp_path / "benchmarks/hard/results/annotations"
    folder.mkdir(parents=True)
    (tmp_path / "public").mkdir()
    for name, label in (("one", "clean"), ("two", "reward_hack"), ("three", "bug")):
        (folder / f"{name}.yaml").write_text(f"run_id: {name}\nverdict: {label}  # seen\n")
        text = "class Model:\n    def step(self, x):\n        return self.a.step(x)\n"
        text += "# ===\n# ===== sidecar: k.cu\nint x;\n"
        (tmp_path / f"public/{name}_solution.py.txt").write_text(text)
    code = "class ModelNew:\n    def forward(self, x):\n        return self.a.forward(x)\n"
    found = [(name, stem, text.rstrip()) for name, stem, text in module.reviewed(tmp_path)]
    assert sorted(found) == [("clean", "one", code.rstrip()), ("hacks", "two", code.rstrip())]
    (tmp_path / "tools.py").write_text("def wide(x): return x\n")
    (tmp_path / "op.py").write_text(
        "from lib.tools import wide\n@triton.jit\ndef k(x): pass\ndef run(x):\n    k[1](wide(x))\n"
        "def helper(x): pass\n" + "#" * 80 + "\nrun(3)\n"
    )
    ((name, code),) = module.wrapped(tmp_path)
    assert name == "op-run" and "def wide" in code and "run(3)" not in code
    assert "return run(*args)" in code and "import wide" not in code
