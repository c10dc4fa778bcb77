"""What the comparison of a verdict detects: automatically broken kernels, and honest ones.

Mutants of references, rewrites, outputs and arithmetic go straight to the comparison, on the input
sets of a verdict; one wrong set rejects. On a GPU the cases are a CPU's, and the comparison is that
of a GPU. An accepted mutant is equivalent if, on 20 further input sets, it is bitwise the reference
or errs by at most four times the reference's own error against float64; otherwise it survived.
Mutants that raised do not count. With --candidates, mutants of C++ and Triton kernels go through
the real judge. Rows of other problems in the file are kept.

    python benchmarks/mutants.py --json benchmarks/results/mutants.cpu.json [PROBLEM]...
    python benchmarks/mutants.py --device cuda --json benchmarks/results/mutants.h200.json
    python benchmarks/mutants.py --json benchmarks/results/mutants.cpu.json --candidates
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from resultfile import Row, device_name, known_rows, write_result
from rich.progress import Progress, track

from kevin_env.judge import Options, Submission
from kevin_env.judge.device import inform, resolve
from kevin_env.outcome import Outcome
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, load_problem

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from corpus import read_entry  # noqa: E402 # pyright: ignore[reportMissingImports]
from mutation.findings import Judged, Tally, examine, examine_honest, tallies, total  # noqa: E402 # pyright: ignore[reportMissingImports]
from mutation.tokens import TokenMutant, token_mutants  # noqa: E402 # pyright: ignore[reportMissingImports]

PROBLEMS = (
    "L1_1_Square_matrix_multiplication_", "L1_23_Softmax", "L1_26_GELU_", "L1_36_RMSNorm_",
    "L1_40_LayerNorm",
    "L1_47_Sum_reduction_over_a_dimension", "L1_82_conv_depthwise_2D_square_input_square_kernel",
    "L1_95_CrossEntropyLoss", "L2_37_Matmul_Swish_Sum_GroupNorm", "L3_43_MinGPTCausalAttention",
    "L3_101_FlashAttentionCausal", "L3_106_RMSNormBackward", "L3_107_CrossEntropyWithGradient",
    "L3_108_FusedAdamW",
    "L4_11_SelectiveScan", "L5_2_Stencil_2D_Heat", "L5_9_LatticeBoltzmann_D2Q9",
    "L6_2_Histogram_256",
    "L6_5_Sobel_EdgeDetect", "L7_1_FFT_1D", "L8_9_IntegerTransform_Quantize",
    "L9_1_PrefixSum_ExclusiveScan",
    "L9_9_TopK",
)  # fmt: skip
"""At least one of each kind of computation and level, except level 10, whose references are slow.
"""
MOST = 45
"""Mutants to compare of each source."""
KERNELS = ("softmax_ctypes", "cross_entropy_ctypes", "softmax_triton")
SHARP = 4 / 64
"""TOLERANCE with which an accepted mutant of a kernel is judged again: four times the reference's
error, not 64.
"""
AGAIN = 3
"""Times that it is judged again, each on other inputs."""
STATUS = {
    "correctness": "caught",
    "compile": "crashed",
    "runtime": "crashed",
    "correct": "accepted",
}


def problem_row(problem: Problem, device: torch.device, progress: Progress) -> dict[str, Any]:
    """All mutants of a problem: the share of rejected wrong ones, and results of each class."""
    task = progress.add_task(problem.id, total=None)
    judged = examine(problem, MOST, lambda mutant, verdict: progress.advance(task), device)
    progress.update(task, description=f"{problem.id}: honest ones")
    honest = examine_honest(problem, device)
    progress.update(task, total=len(judged), completed=len(judged), description=problem.id)
    return row_of(problem.id, judged) | {
        "honest": {each.mutant.name: each.row()["share_of_tolerance"] for each in honest},
        "honest_rejected": [
            each.mutant.name
            for each in honest
            if each.verdict.status != "accepted" or each.row()["rejected_later"]
        ],
    }


def row_of(name: str, judged: list[Judged]) -> dict[str, Any]:
    """Judged mutants as a row."""
    parts = tallies(judged)
    return rate_row(name, total(parts), 1) | {
        "classes": {name: part.counts for name, part in sorted(parts.items())},
        "survivors": [each.row() for each in judged if each.status == "survived"],
    }


def rate_row(name: str, tally: Tally, problems: int) -> dict[str, Any]:
    """The share of wrong mutants that was rejected; `n` is the number of wrong ones."""
    return {
        "name": name, "value": tally.rate, "unit": "fraction", "n": tally.wrong,
        "spread": None, **tally.counts,
        "problems": problems,
    }  # fmt: skip


def total_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over all problems: of all mutants, of each family and of each class."""
    groups: dict[str, list[Tally]] = {}
    honest = {"value": 0, "n": 0}
    for row in rows:
        for name, counts in row["classes"].items():
            for group in ("all", name.split("/")[0], name):
                groups.setdefault(group, []).append(Tally(counts))
        honest["value"] += len(row.get("honest_rejected", []))
        honest["n"] += len(row.get("honest", []))
    order = sorted(groups.items(), key=lambda item: (item[0] != "all", "/" in item[0], item[0]))
    totals = [rate_row(f"total: {name}", total(parts), len(parts)) for name, parts in order]
    return [
        *totals,
        {"name": "total: honest rejected", "unit": "variants", "spread": None, **honest},
    ]


def candidate_row(name: str, pool: LocalPool) -> dict[str, Any]:
    """The mutants of an honest submission, each judged in its own candidate."""
    entry = read_entry(TESTS / "submissions" / "honest" / f"{name}.py")
    counts: dict[str, Tally] = {}
    survivors: list[dict[str, Any]] = []
    for mutant in track(list(token_mutants(entry.code)), f"{name} (candidates)"):
        outcome = judged_once(pool, entry.task, mutant, 0)
        status = STATUS.get(outcome.category, "crashed")
        if status == "accepted":
            status = "equivalent" if as_right(pool, entry.task, mutant) else "survived"
        if status == "survived":
            survivors.append({"class": mutant.kind, "change": mutant.name, "line": mutant.line})
        counts.setdefault(f"candidate/{mutant.kind}", Tally()).add(status)
    whole = rate_row(f"candidate: {name}", total(counts), 1)
    return whole | {
        "classes": {kind: each.counts for kind, each in counts.items()},
        "survivors": survivors,
    }


def as_right(pool: LocalPool, problem: Problem, mutant: TokenMutant) -> bool:
    """Whether it passes on further input sets, with no more than four times the reference's own
    error.
    """
    sharp = problem.model_copy(update={"source": f"{problem.source}\nTOLERANCE = {SHARP}\n"})
    return all(judged_once(pool, sharp, mutant, i + 1).category == "correct" for i in range(AGAIN))


def judged_once(pool: LocalPool, problem: Problem, mutant: TokenMutant, number: int) -> Outcome:
    """One judgement, on inputs selected by the number."""
    options = Options(
        device="cpu",
        require_sandbox=True,
        build_timeout=60,
        call_timeout=30,
        secret=f"{number:032x}",
    )
    return pool.submit(problem, Submission(code=mutant.code), options).result().outcome


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", help="ids or paths; by default a selection")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--candidates",
        action="store_true",
        help="mutants of C++ and Triton kernels instead, on a CPU",
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = resolve(options.device)
    info = inform(device)
    known = known_rows(options.json, info.versions)
    rows = {name: row for name, row in known.items() if "classes" in row}

    def keep(row: Row) -> None:
        rows[row["name"]] = row
        if options.json:
            every = [*total_rows(rows.values()), *rows.values()]
            write_result(options.json, device_name(info), info.versions, every)

    if options.candidates:
        with LocalPool() as pool:
            for name in KERNELS:
                keep(candidate_row(name, pool))
    else:
        with Progress() as progress:
            for name in options.problems or PROBLEMS:
                keep(problem_row(load_problem(name), device, progress))
    for row in total_rows(rows.values()):
        print(f"{row['name']:60} {row['value']} of {row['n']}")


if __name__ == "__main__":
    main()
