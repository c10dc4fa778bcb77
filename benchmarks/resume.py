"""Whether a killed and resumed evaluation ends like an uninterrupted one, with a real judge.

Ten problems x four samples x four turns are played from prepared replies of five kinds (no code, a
syntax error, a compiler error, wrong and correct answers), in a different order per sample: once
without a break, and once killed (SIGKILL) after a third and two thirds of the turns and continued
with `--resume`. Figures that do not depend on the clock must be equal, and no finished turn may be
lost or played again.

    python benchmarks/resume.py [--problems 10] [--samples 4] [--turns 4] [--device cpu|cuda] \\
        [--folder FOLDER] [--json FILE]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resultfile import Row, device_name, plain_row, write_result

from kevin_env.problem import data_folder
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

WRONG = """

_Right = ModelNew


class ModelNew(_Right):
    def forward(self, *inputs):
        return torch.zeros_like(super().forward(*inputs))
"""
CLOCK_FIELDS = frozenset(
    {
        "speed",
        "best_speed",
        "score",
        "discounted_return",
        "totals",
        "untimed",
    }
    | {"best_turn", "best_sample"}
)
TURN = re.compile(r"sample \d+ turn \d+")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, usual in (("problems", 10), ("samples", 4), ("turns", 4)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    config = write_config(folder, options)
    planned = options.problems * options.samples * options.turns
    begun = time.monotonic()
    whole = finish(eval_command(str(config), "--out", str(folder / "whole")), folder / "whole")
    uninterrupted, begun = time.monotonic() - begun, time.monotonic()
    run = folder / "killed"
    kept = kill_after(eval_command(str(config), "--out", str(run)), run, planned // 3)
    kept |= kill_after(eval_command("--resume", str(run)), run, planned // 3)
    resumed = finish(eval_command("--resume", str(run)), run)
    interrupted = time.monotonic() - begun
    rows = list(compared(folder, whole, resumed, kept, planned))
    rows += [
        plain_row("uninterrupted", uninterrupted, "s"),
        plain_row("killed twice and resumed", interrupted, "s"),
    ]
    for row in rows:
        print(f"{row['name']}: {row['value']}")
    if options.json is not None:
        device = next(each.hardware for each in episodes_in(folder / "whole") if each.hardware)
        write_result(options.json, device_name(device), device.versions, rows)
    return any(row["value"] for row in rows if row["unit"] == "wrong")


def compared(
    folder: Path,
    whole: dict[str, Any],
    resumed: dict[str, Any],
    kept: set[tuple[str, int, str]],
    planned: int,
) -> Iterator[Row]:
    """Faults of the killed run, as counts that must be 0."""
    ended = turns_in(folder / "killed")
    yield plain_row("turns", len(ended), "turns")
    yield plain_row("turns on disk when it was killed", len(kept), "turns")
    yield plain_row(
        "turns that were lost or played again",
        len(kept - ended) + abs(len(ended) - planned),
        "wrong",
    )
    yield plain_row(
        "figures that differ",
        len(list(differences(without_times(whole), without_times(resumed)))),
        "wrong",
    )
    for difference in differences(without_times(whole), without_times(resumed)):
        print("differs:", difference)


def without_times(value: Any) -> Any:
    """Figures without those that depend on the clock."""
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_times(each) for key, each in value.items() if key not in CLOCK_FIELDS}
    if "kinds" in kept:  # whether a time is too noisy depends on the clock
        kinds = kept["kinds"]
        right = sum(count for kind, count in kinds.items() if kind.startswith("correct/"))
        kept["kinds"] = {
            kind: count for kind, count in kinds.items() if not kind.startswith("correct/")
        }
        kept["kinds"]["correct"] = right
    return kept


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif one != other:
        yield f"{place}: {one} and {other}"


def turns_in(run: Path) -> set[tuple[str, int, str]]:
    """Every turn: its episode, its number and its reply."""
    return {
        (each.episode_id, turn.turn, turn.reply) for each in episodes_in(run) for turn in each.turns
    }


def episodes_in(run: Path) -> list[Trajectory]:
    return [
        each
        for each in read_trajectories(run / "trajectories.jsonl")
        if isinstance(each, Trajectory)
    ]


def eval_command(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kevin_env", "eval", *words, "--plain"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], run: Path) -> dict[str, Any]:
    """The figures of a run, played to its end."""
    assert process.stderr
    for line in process.stderr:
        print(line, end="", file=sys.stderr)
    if process.wait():
        raise SystemExit(f"kevin-env eval ended with {process.returncode}")
    return json.loads((run / "metrics.json").read_text())


def kill_after(process: subprocess.Popen[str], run: Path, turns: int) -> set[tuple[str, int, str]]:
    """Kills a run after that many turns; returns the recorded turns."""
    assert process.stderr
    for line in process.stderr:
        print(line, end="", file=sys.stderr)
        turns -= TURN.search(line) is not None
        if turns <= 0:
            break
    process.kill()
    process.wait()
    return turns_in(run)


def write_config(folder: Path, options: argparse.Namespace) -> Path:
    """A configuration and its replies."""
    language = "cpp" if options.device == "cpu" else "cuda"
    solutions = sorted((data_folder("problems") / "solutions").glob(f"*.{language}.py"))[
        : options.problems
    ]
    if len(solutions) < options.problems:
        raise SystemExit(
            f"{len(solutions)} solutions in {language}: use --problems {len(solutions)} or less"
        )
    for solution in solutions:
        for sample in range(options.samples):
            place = folder / "replies" / solution.name.removesuffix(f".{language}.py") / str(sample)
            place.mkdir(parents=True, exist_ok=True)
            for turn in range(options.turns):
                (place / f"{turn + 1}.md").write_text(reply(solution.read_text(), sample, turn))
    names = ", ".join(
        f'"{solution.name.removesuffix(f".{language}.py")}"' for solution in solutions
    )
    config = folder / "eval.toml"
    config.write_text(
        f"problem = [{names}]\nsamples = {options.samples}\n"
        f'settings = {{max_turns = {options.turns}, device = "{options.device}", rules = "open"}}\n'
        f"policy = {{kind = \"scripted\", replies = '{folder / 'replies'}'}}\n"
    )
    return config


def reply(right: str, sample: int, turn: int) -> str:
    """One of five kinds, each time with different code, since repeated code is not judged again."""
    codes = (
        "",
        f"class ModelNew(:\n    turn = {turn}\n",
        right.replace("int64_t", "int65_t"),
        right + WRONG,
        right,
    )
    code = codes[(2 * sample + turn) % len(codes)]
    return (
        f"```python\n{code}\n_TURN = {turn}\n```\nTurn {turn}.\n"
        if code
        else "I shall think about it first."
    )


if __name__ == "__main__":
    sys.exit(main())
