"""The benchmark that trains a policy with TRL and a judge server: its toy, in two parts."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="TRL is not installed: pip install 'kevin-env[trl]'")

from kevin_env.extract import extract
from kevin_env.judge import Options
from kevin_env.pools.local import LocalPool
from kevin_env.problem import parse_problem

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def play(folder: Path, *more: str) -> dict[str, float]:
    """Values of the rows by name."""
    results = folder / "grpo.json"
    command = [sys.executable, str(BENCHMARKS / "grpo.py"), "--smoke", "--device", "cpu"]
    subprocess.run(
        [*command, "--out", str(folder / "run"), "--json", str(results), *more],
        check=True,
        timeout=280,
    )
    return {row["name"]: row["value"] for row in json.loads(results.read_text())["rows"]}


@pytest.mark.timeout(600)
def test_a_run_is_logged_by_step_and_resumed(tmp_path: Path) -> None:
    first = play(tmp_path, "--steps", "1")
    assert "step 001: correct" in first and "step 002: correct" not in first
    both = play(tmp_path, "--steps", "2", "--final")
    assert both.items() >= first.items()
    assert {"step 002: correct", "step 002: score", "held out, after: correct"} <= both.keys()
    assert sum(value for name, value in both.items() if name.endswith("judged turns")) > 0
    assert both["warm start: loss"] < 2.0  # nats per token: it writes whole kernels of the mixture


@pytest.mark.parametrize("name", ["Gelu", "Row_Max", "Layer_Norm"])
def test_a_kernel_of_the_mixture_is_right_unless_it_has_a_defect(
    name: str, pool: LocalPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from kernel_mixture import draw_kernel, source  # pyright: ignore[reportMissingImports]

    file, draw = tmp_path / f"{name}.py", random.Random(name)
    file.write_text(source(name))
    kernels = [draw_kernel(name, draw) for _ in range(8)]
    assert 0 < sum(each.defect == "none" for each in kernels) < 8
    options, problem = Options(device="cpu", rules="kernel"), parse_problem(file)
    found: list[Any] = [extract(each.reply) for each in kernels]
    futures = [pool.submit(problem, each.submission, options) for each in found]
    for kernel, future in zip(kernels, futures, strict=True):
        assert (future.result().outcome.category == "correct") == (kernel.defect == "none")
