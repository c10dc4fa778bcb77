"""What the benchmarks rely on: submissions that no cache has seen, and resource usage."""

import ast
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from episodes import WRONG, another, correct, problem_file

from kevin_env.episode import Episode
from kevin_env.judge import Options, Submission
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.scripted import ScriptedPool
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
    assert entry.met_by(judgement.outcome, judgement.device.device)


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
        assert new.met_by(judgement.outcome, judgement.device.device), judgement.outcome.message
    error = Submission(code=cases.compile_errors(500)[0])
    assert (
        pool.submit(new.task, error, Options(device="cuda")).result().outcome.category == "compile"
    )


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
