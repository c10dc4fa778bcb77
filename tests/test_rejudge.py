"""Rejudging a KernelBench run: real kernels on the CPU, the rest with scripted verdicts."""

import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from episodes import KERNEL, SOURCE, WRONG, correct
from rich.console import Console
from typer.testing import CliRunner

from kevin_env import kernelbench
from kevin_env.app.kernelbench_run import read_samples
from kevin_env.app.rejudge.comparison import REPORT, Report
from kevin_env.app.rejudge.run import RECORD, Terms, read_run, rejudge
from kevin_env.cli import app
from kevin_env.judge import JudgeError, Options
from kevin_env.outcome import Incorrect
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import ProblemError

CPP = """import torch
from torch.utils.cpp_extension import load_inline

source = '''
#include <torch/extension.h>
torch::Tensor twice(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for (long i = 0; i < x.numel(); i++) to[i] = 2 * from[i];
    return out;
}
'''
twice = load_inline("twice", source, functions=["twice"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return twice.twice(x)
"""
SMALL = SOURCE.replace("N = 1024", "N = 64")
TERMS = Terms(rules="open", inputs="varied", baseline="eager", hardware="scripted CPU")
RIGHT = {
    "sample_id": 0, "compiled": True, "correctness": True, "metadata": {}, "runtime": 2.0,
    "ref_runtime": 5.0,
}  # fmt: skip
NO_HEADER = {"compilation_error": "no such header"}
NOT_BUILT = {"compiled": False, "correctness": False, "metadata": NO_HEADER}
QUIET = Console(quiet=True)


@pytest.fixture(autouse=True)
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in (1, 2):
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for number in range(1, 8):
            (folder / f"{number}_Double.py").write_text(SMALL)
    monkeypatch.setenv(kernelbench.VARIABLE, str(tmp_path))


def run_folder(folder: Path, results: Any, **kernels: str) -> Path:
    """A run with kernels named like `level_1_problem_7_sample_0`, and results unless None."""
    (folder / "run").mkdir()
    for name, code in kernels.items():
        (folder / "run" / f"{name}_kernel.py").write_text(code)
    if results is not None:
        (folder / "run" / "eval_results.json").write_text(json.dumps(results))
    return folder / "run"


def command(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["judge", *map(str, words)])
    return result.exit_code, result.stdout, result.stderr


def scripted(
    run: Path, answers: Any, terms: Terms = TERMS, console: Console = QUIET
) -> tuple[Report, int]:
    """The report, and how many kernels the judges were given."""
    with closing(ScriptedPool(answers)) as pool:
        kernels = rejudge(read_run(run, console), run, pool, Options(device="cpu"), terms, console)
        return Report("run", terms, kernels), len(pool.submissions)


def agreements(report: Report) -> list[str]:
    return [row["agreement"] for row in report.row()["kernels"]]


@pytest.mark.usefixtures("one_pool")
def test_a_run_is_judged_for_real(tmp_path: Path) -> None:
    wrong = CPP.replace("2 * from[i]", "2 * from[i] + (i == 5)").replace("twice", "twice_wrong")
    kernels = {"level_1_problem_2_sample_0": KERNEL, "level_1_problem_3_sample_0": CPP}
    kernels |= {"level_1_problem_10_sample_0": KERNEL, "level_1_problem_4_sample_0": wrong}
    run = run_folder(tmp_path, {"2": [RIGHT], "3": NOT_BUILT, "4": RIGHT}, **kernels)
    code, out, err = command(
        "--kernelbench-run", run, "--device", "cpu", "--json", "--out", tmp_path / "out"
    )
    report = json.loads(out)
    assert [row["agreement"] for row in report["kernels"]] == [
        *("both_accept", "only_kevin_env_accepts", "only_kernelbench_accepts", "not_judged")
    ]
    assert (code, report["rules"]) == (3, "open")
    assert report["kernels"][2]["kevin_env"]["kind"] == "values"
    assert report["kernels"][3]["error"] == "KernelBench has no problem 10 on level 1 here"
    assert report["levels"][0]["agreement"] == pytest.approx(1 / 3)
    assert "level_1_problem_3_sample_0_kernel.py: correct/" in err
    assert len((tmp_path / "out" / RECORD).read_text().splitlines()) == 3
    assert "no such header" in (tmp_path / "out" / REPORT).read_text()


def test_a_second_start_judges_only_what_is_missing(tmp_path: Path) -> None:
    run = run_folder(
        tmp_path, None, **{f"level_1_problem_{number}_sample_0": KERNEL for number in (1, 2, 3)}
    )
    report, asked = scripted(
        run, [correct(2.0), JudgeError("the device is gone"), ProblemError("out of memory")]
    )
    assert (asked, report.unjudged) == (3, 2)
    assert {row["error"] for row in report.row()["kernels"]} == {
        "",
        "the device is gone",
        "out of memory",
    }
    with (run / RECORD).open("a") as file:
        file.write('{"key": {"kernel": "level_1_pro')  # a kill in the middle of a line
    odd = Incorrect(kind="values", input_set="main/own", message="a separator: \u2028")
    report, asked = scripted(run, [odd, correct(3.0)])
    assert (asked, report.unjudged) == (2, 0)
    report, asked = scripted(run, [])
    assert (asked, report.unjudged) == (0, 0)
    other = TERMS.model_copy(update={"rules": "kernel"})
    assert scripted(run, [correct(1.0)] * 3, other)[1] == 3
    (run / "level_1_problem_2_sample_0_kernel.py").write_text(KERNEL + "# another\n")
    (tmp_path / "KernelBench" / "level1" / "3_Double.py").write_text(SOURCE)
    assert scripted(run, [WRONG] * 2)[1] == 2


def test_an_interrupted_run_keeps_its_verdicts(tmp_path: Path) -> None:
    run = run_folder(
        tmp_path, None, **{f"level_1_problem_{number}_sample_0": KERNEL for number in (1, 2, 3)}
    )

    class Interrupting(Console):
        def print(self, *objects: Any, **more: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scripted(run, [correct(2.0)] * 3, console=Interrupting())
    assert len((run / RECORD).read_text().splitlines()) == 1
    assert scripted(run, [correct(2.0)] * 2)[1] == 2


def test_the_report_counts_and_explains(tmp_path: Path) -> None:
    names = [
        f"level_{level}_problem_{number}_sample_{n}"
        for level, number, n in ((1, 1, 0), (1, 1, 1), (1, 2, 0))
    ]
    names += ["level_2_problem_4_sample_0", "level_2_problem_5_sample_0"]
    wrong = {
        "sample_id": 1,
        "compiled": True,
        "correctness": False,
        "metadata": {"runtime_error": "CUDA: no | image"},
    }
    results = {"1": [RIGHT, wrong], "2": [RIGHT], "4": [NOT_BUILT]}
    run = run_folder(tmp_path, results, **dict.fromkeys(names, KERNEL))
    report, _ = scripted(run, [correct(4.0), correct(2.0), WRONG, WRONG, WRONG])
    found = "both_accept only_kevin_env_accepts only_kernelbench_accepts both_refuse no_verdict"
    assert agreements(report) == found.split()
    row = report.row()
    assert [(level["level"], level["agreement"]) for level in row["levels"]] == [
        (1, pytest.approx(1 / 3)),
        (2, 1.0),
    ]
    assert {(each["agreement"], each["refusal"]) for each in row["reasons"]} == {
        *(
            ("only_kevin_env_accepts", "runtime/exception"),
            ("only_kernelbench_accepts", "correctness/values"),
        )
    }
    assert row["kernels"][0]["kernelbench"]["speedup"] == 2.5
    text = report.write(tmp_path).read_text()
    for part in (
        "| level\\_1\\_problem\\_1\\_sample\\_0 | 2.50x, 2 ms | 4.00x \\[3.60, 4.40\\], 0.25 ms |",
        "| 1 | 2.50x of 1 | 4.00x of 1 |",
        "only kevin\\-env accepts | runtime/exception | CUDA: no \\| image |",
        "512 of 1024 elements differ.",
    ):
        assert part in text
    report.print(Console(file=(screen := io.StringIO()), width=200))
    assert "33.3%" in screen.getvalue() and "(input set main/own)" in screen.getvalue()


def test_results_that_fit_several_levels_or_no_kernel_are_left_out(tmp_path: Path) -> None:
    names = [f"level_{level}_problem_1_sample_0" for level in (1, 2)] + [
        "level_1_problem_2_sample_0",
        "notes",
    ]
    run = run_folder(
        tmp_path, {"1": [RIGHT], "2": [RIGHT], "9": [RIGHT]}, **dict.fromkeys(names, KERNEL)
    )
    told: list[str] = []
    samples = read_samples(run, told.append)
    assert [(each.level, each.number, each.verdict is not None) for each in samples] == [
        *((1, 1, False), (1, 2, True), (2, 1, False))
    ]
    assert [
        "problem 9 sample 0 has no kernel file" in told[0],
        "1 results may belong to" in told[1],
    ] == [True, True]


def test_links_to_nowhere_and_keys_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    run = run_folder(tmp_path, {"1": [RIGHT], "total": [RIGHT]}, level_1_problem_1_sample_0=KERNEL)
    (run / "level_1_problem_2_sample_0_kernel.py").symlink_to(tmp_path / "gone.py")
    report, asked = scripted(run, [correct(2.0)])
    assert (asked, agreements(report)[0]) == (1, "both_accept")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kernelbench-run", "{run}", "--problem", "L1_23_Softmax"], "leave out FILE, --problem"),
        (["--kernelbench-run", "{run}/missing"], "kevin-env: {run}/missing: No such file"),
        (["--kernelbench-run", "{run}/empty"], "has no KernelBench kernels"),
        (["--kernelbench-run", "{run}/bad"], "{run}/bad/eval_results.json: it is not an object"),
        (
            ["{run}/a.py", "--problem", "L1_23_Softmax", "--out", "{run}"],
            "--out is for --kernelbench-run",
        ),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    run = run_folder(tmp_path, None, level_1_problem_1_sample_0=KERNEL)
    (run / "empty").mkdir()
    run_folder(run, [1], level_1_problem_1_sample_0=KERNEL).rename(run / "bad")
    code, out, err = command(*(word.format(run=run) for word in words))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said.format(run=run) in err


def test_without_kernelbench_it_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_folder(tmp_path, None, level_1_problem_1_sample_0=KERNEL)
    monkeypatch.setenv(kernelbench.VARIABLE, str(run))
    code, _, err = command("--kernelbench-run", run)
    assert (code, err.count("\n")) == (2, 1) and kernelbench.VARIABLE in err
