"""Judges every reference solution on a device, all at once.

A row is a file: its value is the speedup over the reference (null if incorrect or too noisy), its
spread half the width of the 95 % interval over the value. Rows of other files in the JSON are kept.

    python benchmarks/solutions.py --device cuda \\
        --json benchmarks/results/solutions.h200.json [L9...]
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

from resultfile import device_name, known_rows, plain_row, write_result
from rich.console import Console
from rich.progress import Progress

from kevin_env.app.screen import make_console, show
from kevin_env.extract import guess_language
from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.languages import installed, obstacle
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool
from kevin_env.problem import ProblemError, data_folder, load_problem
from kevin_env.render import speedup_text

RUNS_ON = {"cpu": ("cpp", "triton"), "cuda": ("cuda", "triton", "gluon", "helion", "tilelang")}


def chosen(device: str, names: list[str], language: str | None) -> list[Path]:
    """The solutions that run on the device, by level and number; `names` are prefixes to select."""
    everywhere = RUNS_ON[device.split(":")[0]]
    known = [name for name in everywhere if not obstacle(name, device != "cpu", installed())]
    languages = [language] if language else known
    files = [
        path
        for path in (data_folder("problems") / "solutions").glob("*.py")
        if _parts(path)[1] in languages
    ]
    wanted = [
        path
        for path in files
        if not names or any(f"{_parts(path)[0]}_".startswith(f"{n}_") for n in names)
    ]
    return sorted(wanted, key=lambda path: (load_problem(_parts(path)[0]).level, path.name))


def judged(
    files: list[Path], pool: LocalPool, options: Options
) -> Iterator[tuple[Path, Judgement | JudgeError]]:
    """The results, in the order in which they finish."""
    paths: dict[Future[Judgement], Path] = {}
    for path in files:
        code = path.read_text(encoding="utf-8")
        submission = Submission(code=code, language=guess_language(code))
        paths[pool.submit(load_problem(_parts(path)[0]), submission, options)] = path
    for done in as_completed(paths):
        try:
            yield paths[done], done.result()
        except JudgeError as error:
            yield paths[done], error


def row_of(name: str, result: Judgement | JudgeError | ProblemError) -> dict[str, Any]:
    """One row of the result."""
    row = plain_row(name, None, "times the reference")
    if not isinstance(result, Judgement):
        failed = "judge" if isinstance(result, JudgeError) else "problem"
        return row | {"outcome": f"{failed} failed", "message": str(result)}
    outcome = result.outcome
    row |= {
        "outcome": f"{outcome.category}/{outcome.kind}",
        "flags": result.flags,
        "took": result.seconds.total,
    }
    if not isinstance(outcome, Correct):
        return row | {"message": outcome.message}
    low, high = outcome.speedup_interval or (0.0, 0.0)
    spread = (high - low) / 2 / outcome.speedup if outcome.speedup else None
    row |= {"value": outcome.speedup, "spread": spread}
    return row | outcome.model_dump(
        include={"speedup_interval", "reference_seconds", "submission_seconds"}
    )


def print_row(console: Console, row: dict[str, Any]) -> None:
    """A line per file, with its error."""
    speedup = speedup_text(row["value"], row.get("speedup_interval"))
    show(
        console, f"{row['name']:58} {row['outcome']:20} {speedup} {row.get('message', '')}".rstrip()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="L9, L9_5 or a whole id; by default all")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--language", choices=("cpp", *RUNS_ON["cuda"]))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = chosen(options.device, options.names, options.language)
    with (
        LocalPool() as pool,
        Progress(console=make_console(stream="stderr"), transient=True) as progress,
    ):
        info = pool.device(options.device)
        rows = known_rows(options.json, info.versions)
        task = progress.add_task("solutions", total=len(files))
        for path, result in judged(files, pool, Options(device=options.device)):
            row = row_of(".".join(_parts(path)), result)
            rows[row["name"]] = row
            print_row(progress.console, row)
            progress.advance(task)
            write_result(options.json, device_name(info), info.versions, rows.values())
    now = [rows[".".join(_parts(path))] for path in files]
    right = [row for row in now if row["outcome"].startswith("correct")]
    faster = [row for row in right if row["value"] and row["value"] > 1]
    show(
        make_console(),
        f"{len(now)} solutions: {len(right)} right, {len(faster)} faster than the reference",
    )


def _parts(path: Path) -> tuple[str, str]:
    """Problem and language, from the file's name."""
    problem, language, _ = path.name.rsplit(".", 2)
    return problem, language


if __name__ == "__main__":
    main()
