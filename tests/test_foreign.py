"""Problems of SOL-ExecBench, flashinfer-bench and kernelbot, from small files of our own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kevin_env.extract import Extracted, extract, extract_file
from kevin_env.judge import Options
from kevin_env.judge.api import Submission
from kevin_env.outcome import Correct, FormatError, Incorrect
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, ProblemError, load_problem, shown_source, shown_statement
from kevin_env.record import ProblemRef
from kevin_env.selection import find_problems, name_of
from kevin_env.turn import begin_verdict

DEFINITION: dict[str, Any] = {
    "name": "scaled_rows_w8",
    "description": "Rows times a scale.",
    "axes": {
        "rows": {"type": "var"},
        "pairs": {"type": "expr", "expression": "rows * width // 2"},
        "width": {"type": "const", "value": 8},
    },
    "inputs": {
        "x": {"shape": ["rows", "width"], "dtype": "float32"},
        "scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "width"], "dtype": "float32"}},
    "reference": "import torch\n\n@torch.no_grad()\ndef run(x, scale):\n    return x * scale\n",
}
RANDOM = {"x": {"type": "random"}, "scale": {"type": "scalar", "value": 1.5}}
WORKLOADS = [{"uuid": str(n), "axes": {"rows": n}, "inputs": RANDOM} for n in (3, 64, 64, 17)]

TASK = """\
# name: shifted
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
lang: "py"
description: |
  Add a number to a matrix.

  Input: a tuple of the matrix and the number.
tests:
  - {"size": 5, "seed": 1, "flipped": true}
  - {size: 9, "seed": 2, "flipped": False}   # bare name
benchmarks:
  - {"size": 32, "seed": 3, "flipped": false}
test_timeout: 180
"""
REFERENCE = """\
from utils import make_match_reference, DeterministicContext
import torch
from task import input_t, output_t


def ref_kernel(data: input_t) -> output_t:
    with DeterministicContext():
        matrix, shift = data
        return matrix + shift


def generate_input(size: int, seed: int, flipped: bool) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    matrix = torch.randn(size, size, device='cuda', generator=gen)
    return (matrix.flip(0) if flipped else matrix), 2.5


check_implementation = make_match_reference(ref_kernel, rtol=1e-3)
"""


def sol(folder: Path, workloads: list[dict[str, Any]] | None = None, **changes: Any) -> str:
    lines = WORKLOADS if workloads is None else workloads
    (folder / "definition.json").write_text(json.dumps(DEFINITION | changes))
    (folder / "workload.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return f"sol:{folder}"


def flashinfer(folder: Path) -> str:
    for kind in ("definitions", "workloads"):
        (folder / kind / "scale").mkdir(parents=True)
    file = folder / "definitions" / "scale" / "rows.json"
    file.write_text(json.dumps(DEFINITION))
    lines = [{"definition": "rows", "solution": None, "workload": each} for each in WORKLOADS]
    workloads = folder / "workloads" / "scale" / "rows.jsonl"
    workloads.write_text("\n".join(map(json.dumps, lines)))
    return f"flashinfer:{file}"


def kernelbot(folder: Path, task: str = TASK, reference: str = REFERENCE) -> str:
    (folder / "task.yml").write_text(task)
    (folder / "reference.py").write_text(reference)
    return f"kernelbot:{folder}"


def judged(pool: LocalPool, problem: Problem, code: str) -> object:
    found = extract(f"```python\n{code}```", adapter=problem.adapter)
    assert isinstance(found, Extracted), found
    options = Options(rules="open", device="cpu")
    return begin_verdict(found.submission, problem, options, pool).result().outcome


RETURNS = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, {}):\n        return {}\n"


@pytest.mark.parametrize(
    ("make", "right", "wrong"),
    [
        (sol, RETURNS.format("x, scale", "x * scale"), RETURNS.format("x, scale", "x * 1.4")),
        (flashinfer, "def run(x, scale, y):\n    y.copy_(x * scale)\n", "def run(x, scale, y):\n    y.fill_(1)\n"),
        (kernelbot, "def custom_kernel(data):\n    return data[0] + data[1]\n", RETURNS.format("data", "data[0] + 2.4")),
    ],
)  # fmt: skip
def test_submissions_are_judged_for_real(
    tmp_path: Path, pool: LocalPool, make: Any, right: str, wrong: str
) -> None:
    problem = load_problem(make(tmp_path))
    assert isinstance(verdict := judged(pool, problem, right), Correct), verdict
    assert isinstance(verdict := judged(pool, problem, wrong), Incorrect), verdict


def test_workloads_become_cases(tmp_path: Path) -> None:
    problem = load_problem(sol(tmp_path))
    assert problem.name == "scaled_rows_w8"
    assert problem.cases == ("main", "rows_3", "rows_17")
    assert "rows = 64\n" in problem.source and "pairs = int(rows * width // 2)" in problem.source
    assert "run(x, scale, y)" in shown_statement(problem)
    assert "ADAPTER" in problem.source and "ADAPTER" not in shown_source(problem)


def test_an_output_may_have_an_axis_that_is_computed(tmp_path: Path, pool: LocalPool) -> None:
    """A function gets memory for it, too."""
    twice = {"pairs": {"type": "expr", "expression": "2 * width"}}
    y = {"shape": ["rows", "pairs"], "dtype": DEFINITION["outputs"]["y"]["dtype"]}
    reference = "import torch\ndef run(x, scale):\n    return torch.cat([x, x * scale], dim=1)\n"
    axes = DEFINITION["axes"] | twice
    problem = load_problem(sol(tmp_path, axes=axes, outputs={"y": y}, reference=reference))
    code = "def run(x, scale, y):\n    y[:, : x.shape[1]] = x\n    y[:, x.shape[1] :] = x * scale\n"
    assert isinstance(verdict := judged(pool, problem, code), Correct), verdict


def test_a_description_keeps_its_case(tmp_path: Path) -> None:
    task = re.sub(r"description: \|\n(  .*\n)+", "description: Y = 0.3 R (see RFC)\n", TASK)
    assert "Y = 0.3 R (see RFC)" in shown_statement(load_problem(kernelbot(tmp_path, task)))


def test_tests_and_benchmarks_of_kernelbot_become_cases(tmp_path: Path) -> None:
    problem = load_problem(kernelbot(tmp_path))
    assert problem.cases == ("main", "size_5_flipped_True", "size_9")
    assert "size = 32\n" in problem.source and '"cuda"' not in problem.source
    assert shown_statement(problem).startswith("Add a number to a matrix.\n\nInput: a tuple")


def test_an_adapter_keeps_the_lines_and_needs_the_function(tmp_path: Path) -> None:
    adapter = load_problem(sol(tmp_path)).adapter
    code = "def run(x, scale, y):\n    y.copy_(x * scale)\n"
    for found in (extract(code, adapter=adapter), extract_file(code, adapter)):
        submission = found.submission if isinstance(found, Extracted) else found
        assert isinstance(submission, Submission)
        assert submission.code.startswith(code) and "class ModelNew" in submission.code
    own = code + RETURNS.format("x, scale", "x")
    assert extract_file(own, adapter) == extract_file(own)
    assert isinstance(extract_file("def other(x):\n    return x\n", adapter), FormatError)


def test_a_problem_is_found_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "task").mkdir()
    kernelbot(tmp_path / "task")
    monkeypatch.chdir(tmp_path)
    [problem] = find_problems("kernelbot:task")
    monkeypatch.chdir("/")
    assert problem.id == "kernelbot:task"
    assert load_problem(name_of(problem)).source == problem.source
    assert ProblemRef.of(problem).load() == problem


def test_inputs_may_come_from_the_definitions_own_function(tmp_path: Path, pool: LocalPool) -> None:
    made = (
        "\ndef get_inputs(axes_and_scalars, device):\n"
        "    rows = axes_and_scalars['rows']\n"
        "    return {'x': torch.randn(rows, 8, device=device), 'scale': 0.5}\n"
    )
    custom = {name: {"type": "custom"} for name in RANDOM}
    name = sol(
        tmp_path,
        [{"uuid": "1", "axes": {"rows": 4}, "inputs": custom | {"scale": RANDOM["scale"]}}],
        reference=DEFINITION["reference"] + made,
        custom_inputs_entrypoint="get_inputs",
    )
    right = RETURNS.format("x, scale", "x * scale")
    assert isinstance(judged(pool, load_problem(name), right), Correct)


def test_a_buffer_among_the_inputs_may_be_written_to(tmp_path: Path, pool: LocalPool) -> None:
    reference = (
        REFERENCE.replace("matrix, shift = data", "matrix, shift, out = data")
        .replace("return matrix + shift", "out[...] = matrix + shift\n        return out")
        .replace("else matrix), 2.5", "else matrix), 2.5, torch.empty_like(matrix)")
    )
    problem = load_problem(kernelbot(tmp_path, reference=reference))
    code = (
        "def custom_kernel(data):\n    x, by, out = data\n    out[...] = x + by\n    return out\n"
    )
    assert isinstance(verdict := judged(pool, problem, code), Correct), verdict


def inputs(**changed: Any) -> list[dict[str, Any]]:
    return [{"uuid": "1", "axes": {"rows": 4}, "inputs": RANDOM | changed}]


@pytest.mark.parametrize(
    ("workloads", "changes", "said"),
    [
        (inputs(x={"type": "safetensors", "path": "a.st", "tensor_key": "x"}), {}, "input x comes from a.st"),
        (inputs(x={"type": "custom"}), {}, "input x is custom"),
        (inputs(scale={"type": "random"}), {}, "input scale is random without a value"),
        ([{"uuid": "1", "axes": {}, "inputs": RANDOM}], {}, "no whole number for the axis rows"),
        ([{"uuid": "1", "axes": {"rows": 10**9}, "inputs": RANDOM}], {}, "more than 1 GiB"),
        ([], {}, "no workload"),
        (None, {"reference": "def ran(x):\n    return x\n"}, "does not define run"),
        (None, {"reference": "def run(:"}, "does not parse"),
        (None, {"reference": DEFINITION["reference"] + "class Model: pass\n"}, "defines Model"),
        (None, {"outputs": {"y": {"shape": ["rows"], "dtype": "float4_e2m1"}}}, "y is float4_e2m1"),
        (None, {"outputs": {"y": {"shape": ["other"], "dtype": "float32"}}}, "axis 'other'"),
        (None, {"axes": DEFINITION["axes"] | {"pairs": {"type": "expr", "expression": "open(rows)"}}}, "not arithmetic"),
        (None, {"axes": DEFINITION["axes"] | {"pairs": {"type": "expr", "expression": "pairs + 1"}}}, "by each other"),
        (None, {"axes": None}, "its axes, inputs"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_judged_is_named_with_the_reason(
    tmp_path: Path, workloads: list[dict[str, Any]] | None, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ProblemError, match=said) as caught:
        load_problem(sol(tmp_path, workloads, **changes))
    assert str(caught.value).startswith("sol:") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "reference", "said"),
    [
        (TASK.replace('lang: "py"', 'lang: "cu"'), REFERENCE, "only tasks in Python"),
        (TASK.replace("  - {size: 9", "  - size: 9 #"), REFERENCE, "task.yml line 11: only items"),
        (TASK.replace("tests:", "a:").replace("benchmarks:", "b:"), REFERENCE, "neither tests"),
        (TASK.replace("size", "length"), REFERENCE, "generate_input takes no length"),
        (TASK, REFERENCE.replace("ref_kernel", "kernel"), "does not define ref_kernel"),
        (TASK, REFERENCE.replace("make_match_reference, D", "clear_cache, D"), "imports clear_cache"),
        (
            TASK,
            REFERENCE.partition("check_")[0] + "def check_implementation(data, output):\n    return True\n",
            "several answers are right",
        ),
    ],
)  # fmt: skip
def test_a_task_that_cannot_be_judged_is_named_with_the_reason(
    tmp_path: Path, task: str, reference: str, said: str
) -> None:
    with pytest.raises(ProblemError, match=said) as caught:
        load_problem(kernelbot(tmp_path, task, reference))
    assert str(caught.value).startswith("kernelbot:") and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["sol", "flashinfer", "kernelbot"])
def test_a_folder_without_a_problem_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ProblemError, match=rf"^{kind}:.*cannot read [^\n]*$"):
        load_problem(f"{kind}:{tmp_path}")
