"""Whether verdicts accept float32 accumulation, and reject products and sums in less precision.

Looks at problems with a matrix product, convolution, normalization or reduction on float32 inputs
and outputs that are not random. On the input sets of a verdict, each reference runs with its sums
added term by term (on a GPU at most 32768 terms), and with the operands of its products, or its
inputs if it has none, rounded to TF32, bfloat16 and float16. A row's value is 1 if the first is
accepted on every input set and each of the others is rejected on one. A problem that fails, such as
for lack of memory, has no value, and `not_run` says why.

Takes every `STRIDE`-th problem, then the next ones, so that a partial run covers all kinds. With
`--seconds`, repeat the same command to continue.

    python benchmarks/accumulators.py --device cpu \\
        --json benchmarks/results/accumulators.cpu.json L1_1... L1_40...
    python benchmarks/accumulators.py --device cuda --batch 16 --label kernelbench --seconds 330 \\
        --json benchmarks/results/accumulators.h200.json KernelBench/level1 KernelBench/level2
"""

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from resultfile import Results, device_name, known_rows, plain_row
from torch.nn.attention import SDPBackend, sdpa_kernel

from kevin_env.app.catalogue import named_problems
from kevin_env.candidate import tree
from kevin_env.judge.api import PACES
from kevin_env.judge.compare.outputs import alike, in_float64
from kevin_env.judge.device import inform
from kevin_env.judge.inputs.cases import open_cases, plan, usable_distributions
from kevin_env.judge.inputs.reference import Case, Expected, seed_from
from kevin_env.problem import Problem, ProblemError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from arithmetic import Replaced, rounded_operands, running, summed_by  # pyright: ignore[reportMissingImports]
from comparison import wrong as fault_of  # pyright: ignore[reportMissingImports]
from rounding import ROUNDINGS, Rounding  # pyright: ignore[reportMissingImports]

SECRET = "accumulators"
PLAIN = "one accumulator"
STRIDE = 10
Answer = Callable[[], Any]


def variants(case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor]) -> dict[str, Answer]:
    """Variants of the reference in other arithmetic, by name."""

    def run(rules: Any, inputs: list[torch.Tensor]) -> Any:
        with sdpa_kernel(SDPBackend.MATH), Replaced(rules) if rules else nullcontext():
            return case.answer(skeleton, inputs, 1)

    def narrowed(rounding: Rounding) -> list[torch.Tensor]:
        return [rounding(t) if t.is_floating_point() else t for t in tensors]

    answers: dict[str, Answer] = {PLAIN: lambda: run(summed_by(running()), tensors)}
    products = touched(case, skeleton, tensors, rounded_operands(lambda x: x))
    for name, rounding in ROUNDINGS.items():
        if name != "tf32" or case.precision == "ieee":
            rules = rounded_operands(rounding) if products else {}
            inputs = (
                (lambda: tensors) if products else (lambda rounding=rounding: narrowed(rounding))
            )
            answers[name] = lambda rules=rules, inputs=inputs: run(rules, inputs())
    return answers


def touched(case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor], rules: Any) -> bool:
    """Whether the reference runs an operator of the rules."""
    with sdpa_kernel(SDPBackend.MATH), Replaced(rules) as mode:
        case.answer(skeleton, tensors, 1)
    return mode.touched > 0


def wrong(answer: Any, expected: Expected, case: Case) -> str | None:
    """The fault that a verdict finds in an answer; empty if it is bitwise the reference's."""
    references, outputs = tree.flatten(expected.output)[1], tree.flatten(answer)[1]
    if all(torch.equal(a, b) for a, b in zip(outputs, references, strict=True)):
        return ""
    for i, (reference, oracle) in enumerate(
        zip(references, in_float64(expected.oracle, references), strict=True)
    ):
        plain = lambda draw, i=i: alike(expected.plain(draw), references)[i]  # noqa: E731
        double = lambda oracle=oracle: oracle  # noqa: E731
        tolerance, precision = case.tolerance, case.precision
        fault = fault_of(reference, outputs[i], tolerance, precision, oracle=double, plain=plain)
        if fault is not None:
            return fault.message
    return None


def judged(problem: Problem, device: torch.device) -> dict[str, dict[str, str | None]] | None:
    """The fault of each variant on each input set; None for a problem without float32 sums."""
    faults: dict[str, dict[str, str | None]] = {}
    cases = list(open_cases(problem, device))
    for case in cases:
        case.draw_weights(seed_from(SECRET, case.name, "weights"))
        skeleton, tensors = case.draw_inputs("own", 0)
        outputs = tree.flatten(case.answer(skeleton, tensors, 1))[1]
        whole = all(t.dtype == torch.float32 for t in (*tensors, *outputs) if t.is_floating_point())
        if (
            case.stochastic
            or not whole
            or not touched(case, skeleton, tensors, summed_by(running()))
        ):
            return None
        del tensors
        usable = usable_distributions(case, seed_from(problem.sha256, case.name, "probe"))
        planned = plan(usable, True, SECRET, case.name, PACES[device.type], len(cases) == 1)
        for distribution in dict.fromkeys(planned):
            exposed = {
                name for name, sets in faults.items() if name != PLAIN and any(sets.values())
            }
            for name, message in _on(case, distribution, exposed):
                faults.setdefault(name, {})[f"{case.name}/{distribution}"] = message
    return faults


def _on(case: Case, distribution: str, exposed: set[str]) -> Iterator[tuple[str, str | None]]:
    skeleton, tensors = case.draw_inputs(distribution, seed_from(SECRET, case.name, distribution))
    expected = case.expect(skeleton, tensors, 1)
    for name, answer in variants(case, skeleton, tensors).items():
        if name not in exposed:
            yield name, wrong(answer(), expected, case)


def row_of(
    label: str, problem: Problem, faults: dict[str, dict[str, str | None]], seconds: float
) -> dict[str, Any]:
    """One problem as a row."""
    refused = {name: text for name, text in faults[PLAIN].items() if text}
    unchanged = [
        name
        for name, sets in faults.items()
        if name != PLAIN and all(text == "" for text in sets.values())
    ]
    exposed = {
        name: [each for each, text in sets.items() if text]
        for name, sets in faults.items()
        if name != PLAIN
    }
    survived = [name for name, sets in exposed.items() if not sets and name not in unchanged]
    row = plain_row(f"{label}/{problem.id}", int(not refused and not survived), "right")
    return row | {
        "refused": refused,
        "survived": survived,
        "unchanged": unchanged,
        "exposed": exposed,
        "took": seconds,
    }


def total_rows(label: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Totals over the problems of a label."""
    yield plain_row(
        f"{label}: not run", sum("not_run" in row for row in rows), "problems", len(rows)
    )
    rows = [row for row in rows if "not_run" not in row]
    accepted = sum(not row["refused"] for row in rows)
    yield plain_row(f"{label}: {PLAIN} accepted", accepted, "problems", len(rows))
    for name in ROUNDINGS:
        relevant = [row for row in rows if name in row["exposed"] and name not in row["unchanged"]]
        yield plain_row(
            f"{label}: {name} rejected",
            sum(name not in r["survived"] for r in relevant),
            "problems",
            len(relevant),
        )


def with_batch(problem: Problem, most: int | None) -> Problem:
    """The problem with a smaller `batch_size`, if it has one; only sums over the batch change."""
    if most is None:
        return problem
    smaller = re.sub(
        r"(?m)^batch_size = (\d+)", lambda m: f"batch_size = {min(most, int(m[1]))}", problem.source
    )
    return problem.model_copy(update={"source": smaller})


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="ids, paths of files or folders; by default the shipped ones"
    )
    parser.add_argument("--label", default="ours", help="name of the set in the result")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--batch", type=int, help="largest batch_size of a problem")
    parser.add_argument(
        "--seconds",
        type=float,
        help="only missing rows, and start none after this many seconds",
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    options, start = read_options(), time.monotonic()
    device = torch.device(options.device)
    info = inform(device)
    results = Results(options.json, device_name(info), info.versions)
    rows = {
        name: row
        for name, row in known_rows(options.json, info.versions).items()
        if row["unit"] == "right"
    }
    problems = named_problems(options.names, None)
    for number, problem in enumerate(
        (each for i in range(STRIDE) for each in problems[i::STRIDE]), 1
    ):
        known = rows.get(f"{options.label}/{problem.id}", {"not_run": ""})
        if options.seconds is not None and "not_run" not in known:
            continue
        if time.monotonic() - start > (options.seconds or float("inf")):
            print(f"stopped before {number} of {len(problems)}")
            break
        row = measured(options.label, with_batch(problem, options.batch), device)
        print(
            f"{number} of {len(problems)}, {time.monotonic() - start:.0f} s: {problem.id}:",
            row_text(row),
            flush=True,
        )
        if row is not None:
            rows[row["name"]] = row
            results.put(row)
    results.report(
        *total_rows(
            options.label, [r for n, r in rows.items() if n.startswith(f"{options.label}/")]
        )
    )


def row_text(row: dict[str, Any] | None) -> str:
    """A row as a line of text."""
    if row is None:
        return "left out"
    return (
        row.get("not_run") or f"{row['value']} refused {row['refused']} survived {row['survived']}"
    )


def measured(label: str, problem: Problem, device: torch.device) -> dict[str, Any] | None:
    """The row of a problem; None if it is skipped."""
    start = time.monotonic()
    try:
        faults = judged(problem, device)
    except (ProblemError, RuntimeError) as error:  # such as a lack of memory
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return plain_row(f"{label}/{problem.id}", None, "right") | {"not_run": text}
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return None if faults is None else row_of(label, problem, faults, time.monotonic() - start)


if __name__ == "__main__":
    with torch.no_grad():
        main()
