"""`profile="ncu"` of five submissions against Nsight Compute at a shell.

The submissions are those of `tests/submissions/profile`; `by_hand.py` runs Nsight Compute. A row
for each figure has both values and their difference, in points or relative. Further rows: the
bound, the time of the profile, and the length of the feedback with and without it.

    python benchmarks/profiles.py --json benchmarks/results/profiles.h200.json [--keep FOLDER]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from by_hand import ByHand, NoAnswer, read_details, read_page
from resultfile import Results, Row, device_name, plain_row

from kevin_env.context import count_characters
from kevin_env.feedback import render_feedback
from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.outcome import NcuDigest
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.profile.tools import find_tool

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "submissions"
NAMES = ("memory_naive", "memory_good", "compute_naive", "compute_good", "spilling")


def paths(name: str) -> tuple[Path, Path]:
    """The submission and its problem."""
    file = FOLDER / "profile" / f"{name}.py"
    lines = file.read_text().splitlines()
    problem = next(line.removeprefix("problem: ") for line in lines if line.startswith("problem: "))
    return file, FOLDER / "problems" / problem


def judge(pool: LocalPool, name: str, device: str) -> tuple[Judgement, NcuDigest]:
    """The judgement with its digest."""
    file, problem = paths(name)
    inputs = "shipped" if name.startswith("compute") else "varied"
    options = Options(device=device, inputs=inputs, profile="ncu")
    judgement = pool.submit(
        load_problem(str(problem)), Submission(code=file.read_text()), options
    ).result()
    outcome, profile = judgement.outcome, judgement.profile
    if outcome.category != "correct":
        raise NoAnswer(f"{name} was judged {outcome.category}: {outcome.message}")
    if profile is None or profile.ncu is None:
        raise NoAnswer(
            f"the judge's ncu has no result for {name}: "
            f"{'; '.join(profile.notes if profile else ())}"
        )
    return judgement, profile.ncu


def compare(name: str, ncu: NcuDigest, by_hand: ByHand) -> Iterator[Row]:
    """A row for each figure that both have, and one for the bound."""
    figures = {"duration": (ncu.seconds * ncu.share, "s")}
    figures |= {each.name: (each.value, each.unit) for each in ncu.metrics}
    for figure, (measured, unit) in figures.items():
        expected = by_hand.figures.get(figure)
        if expected is None:
            continue
        kind, relative = (
            ("points" if unit == "fraction" else "relative"),
            (measured / expected - 1 if expected else None),
        )
        difference = (
            100 * (measured - expected)
            if kind == "points"
            else 0.0
            if measured == expected
            else relative
        )
        row = plain_row(f"{name}: {figure}", measured, unit)
        yield {**row, "by_hand": expected, "difference": difference, "difference_in": kind}
    if by_hand.bound is not None:
        bounds = {
            "bound": ncu.bound,
            "by_hand": by_hand.bound,
            "kernel": ncu.kernel,
            "kernel_by_hand": by_hand.kernel,
        }
        yield plain_row(f"{name}: bound", int(ncu.bound == by_hand.bound), "same") | bounds


def cost(name: str, judgement: Judgement) -> Iterator[Row]:
    """The cost of a profile: seconds, and tokens of the feedback at four characters each."""
    yield plain_row(f"{name}: ncu took", judgement.seconds.profile, "s")
    for label, profile in (("with profile", judgement.profile), ("without", None)):
        text = render_feedback(judgement.outcome, log=judgement.log, profile=profile)
        yield plain_row(f"{name}: feedback {label}", count_characters(text), "tokens") | {
            "text": text
        }


def row_text(row: Row) -> str:
    """A row as a line of the table."""
    line = f"{row['name']:40} {row['value']:10.4g} {row['unit']:8}"
    if "bound" in row:
        by_hand = f"by hand {row['by_hand']} in {row['kernel_by_hand']}"
        return f"{line}  {row['bound']} in {row['kernel']}, {by_hand}"
    if "by_hand" not in row:
        return line.rstrip()
    difference, points = row["difference"], row["difference_in"] == "points"
    shown = (
        "-"
        if difference is None
        else f"{difference:+.2f} points"
        if points
        else f"{difference:+.2%}"
    )
    return f"{line}  by hand {row['by_hand']:10.4g}  {shown}"


def measure(tool: str, device: str, file: Path | None, keep: Path | None) -> list[str]:
    """Judges all, then runs ncu on the idle device; returns why some could not be compared."""
    judged: dict[str, tuple[Judgement, NcuDigest]] = {}
    faults: list[str] = []
    with LocalPool() as pool:
        info = pool.device(device)
        for name in NAMES:
            try:
                judged[name] = judge(pool, name, device)
            except NoAnswer as fault:
                faults.append(str(fault))
    results = Results(file, device_name(info), info.versions)
    for name, (judgement, ncu) in judged.items():
        rows = list(cost(name, judgement))
        try:
            page = read_details(tool, *paths(name))
            if keep is not None:
                (keep / f"{name}.csv").write_text(page)
            rows = [*compare(name, ncu, read_page(page)), *rows]
        except NoAnswer as fault:
            faults.append(str(fault))
        results.put(*rows)
        print("\n".join(map(row_text, rows)), flush=True)
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=("cuda",))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="an existing folder for what ncu prints by hand")
    options = parser.parse_args()
    tool = find_tool("ncu")
    if tool is None:
        sys.exit("ncu is not installed here; put Nsight Compute on PATH")
    try:
        faults = measure(tool, options.device, options.json, options.keep)
    except JudgeError as error:
        sys.exit(" ".join(str(error).split()))
    if faults:
        sys.exit(" ".join("; ".join(faults).split()))


if __name__ == "__main__":
    main()
