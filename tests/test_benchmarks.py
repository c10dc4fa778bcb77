"""What the measuring scripts rest on: submissions that no cache has seen, and what a machine is found to use."""

import ast
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kevin_env.judge import Options, Submission
from kevin_env.judge.pool import LocalPool

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
    for entry in (*honest.honest_entries(device), *honest.solution_entries(device), *honest.extension_entries(device)):
        one, two = honest.fresh(entry.code, 101), honest.fresh(entry.code, 202)
        ast.parse(one)
        assert one != two
        if honest.kind_of(entry.code) in ("cuda", "triton"):
            assert "fresh_101" in one, entry.name  # inside what is compiled, not beside it


def test_triton_hashes_what_is_added_to_a_kernel(script: Script) -> None:
    honest = script("honest")
    code = honest.fresh("@triton.autotune(configs=[])\n@triton.jit\ndef add(\n    x,\n):\n    y = x\n    return y\n", 7)
    (kernel,) = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    assert ast.unparse(kernel.body[0]) == "fresh_7 = 7"


def test_a_changed_kernel_is_still_right(pool: LocalPool, script: Script) -> None:
    honest = script("honest")
    entry = next(each for each in honest.honest_entries("cpu") if each.name == "honest/softmax_online")
    changed = honest.freshened(entry, 303)
    assert "static const int fresh_303" in changed.code
    judgement = pool.submit(changed.task, Submission(code=changed.code), Options(device="cpu")).result()
    assert honest.is_right(entry, judgement)


def test_submissions_are_spread_over_problems_and_given_to_peers_by_kind(script: Script) -> None:
    honest = script("honest")
    throughput = script("throughput")
    turn_latency = script("turn_latency")
    entries = honest.filled_up("triton", 20, "cuda")
    assert len(entries) >= 20 and len({each.problem for each in entries}) >= 10
    first = throughput.mixed(entries, 64)
    assert len(first) == 64 and len({each.problem for each in first[:10]}) == 10
    both = honest.filled_up("cuda", 0, "cuda") + entries
    given = turn_latency.for_peers(both, 3, {each.name for each in both})
    assert {honest.kind_of(each.code) + "inline" * ("load_inline" in each.code) for each in given} == {
        "cuda", "cudainline", "triton",
    }  # fmt: skip


def test_processes_of_an_idle_judge_are_told_apart(pool: LocalPool, script: Script) -> None:
    machine = script("machine")
    pool.device("cpu")
    found = machine.processes_of_judge(os.getpid())
    assert found["judge"] and found["fork server"]
    assert machine.proportional_size(found["judge"]) > 10 << 20


def test_rows_of_an_earlier_run_are_kept(tmp_path: Path, script: Script) -> None:
    resultfile = script("resultfile")
    file = tmp_path / "x.cpu.json"
    resultfile.Results(file, "cpu", {}).put(resultfile.plain_row("a: one", 1.0), resultfile.plain_row("a: two", -3.0))
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
        judgement = pool.submit(new.task, Submission(code=new.code), Options(device="cuda")).result()
        assert honest.is_right(new, judgement), judgement.outcome.message
    error = Submission(code=cases.compile_errors(500)[0])
    assert pool.submit(new.task, error, Options(device="cuda")).result().outcome.category == "compile"


@pytest.mark.gpu
def test_kernels_are_timed_from_inside(script: Script) -> None:
    import torch

    from kevin_env.judge.bench import Bench
    from kevin_env.judge.device import inform

    kernels, device = script("kernels"), torch.device("cuda", 0)
    bench = Bench(device, inform(device))
    try:
        problem, code = kernels.kernel_case("relu", 4096, 8192)
        cold, rotated, alone = kernels.times_inside(bench, problem, code)
        assert 0 < alone < 2 * rotated and rotated < 2 * cold
    finally:
        bench.close()
