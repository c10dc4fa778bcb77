"""Judges the kernels that our problems name as their baseline, on a GPU.

Each is timed against eager PyTorch; its value is that speedup, null if it is refused. Then a
reference solution of the problem, or without one the reference, is timed against it.

    python benchmarks/baselines.py --device cuda \
        --json benchmarks/results/baselines.h200.json [L2_99_Matmul_GELU_Softmax...]
"""

import argparse
from pathlib import Path

from honest import solution_entries
from resultfile import Results, Row, device_name
from solutions import row_of

from kevin_env.extract import guess_language
from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.parsing import as_submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import KernelFile, Problem, ProblemError, list_problems
from kevin_env.selection import find_problems


def judged(pool: LocalPool, problem: Problem, code: str, options: Options, name: str) -> Row:
    """The row of a submission."""
    submission = Submission(code=code, language=guess_language(code))
    try:
        result = pool.submit(problem, submission, options).result()
    except (JudgeError, ProblemError) as error:
        result = error
    row = row_of(f"{problem.id}: {name}", result)
    return row | {"problem": problem.id, "unit": "times the baseline"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="as of `eval --problems`; by default all of ours")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    problems = find_problems(given.names) if given.names else tuple(list_problems())
    solutions = {each.problem: each.code for each in solution_entries("cuda")}
    eager = Options(device=given.device, baseline="eager", call_timeout=300.0, build_timeout=300.0)
    own = Options(device=given.device, baseline="auto")
    with LocalPool() as pool:
        info = pool.device(given.device)
        results = Results(given.json, device_name(info), info.versions)
        for problem in problems:
            if not isinstance(problem.baseline, KernelFile):
                continue
            kernel = solutions.get(problem.id)
            code = kernel or as_submission(problem.source)
            name = f"{'a solution' if kernel else 'the reference'} against it"
            results.report(
                judged(pool, problem, problem.baseline.code, eager, "baseline against eager"),
                judged(pool, problem, code, own, name),
            )


if __name__ == "__main__":
    main()
