"""How long `kevin-env replay` takes on a large file: first screen, whole index, opening an episode.

Writes a file of many episodes made from those in examples/, runs the command in a pseudo-terminal
and waits for its output. The file is read once before, so that the disk is not measured.

    python benchmarks/replay.py [--episodes N] [--file BIG.jsonl] [--repeats N] [--json FILE]
"""

import argparse
import fcntl
import json
import os
import platform
import pty
import random
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from resultfile import median_row, write_result

EXAMPLE = Path(__file__).parents[1] / "examples" / "demo.h200.jsonl"
ROWS, COLUMNS = 40, 120


def write_episodes(path: Path, many: int, turns: int = 2) -> None:
    """Episodes of some problems and models, with different speedups, so that sorting and filters
    have work.
    """
    whole = json.loads(EXAMPLE.read_text().splitlines()[0])
    draw = random.Random(0)
    with path.open("w") as file:
        for number in range(many):
            kept = [json.loads(json.dumps(turn)) for turn in draw.sample(whole["turns"], turns)]
            for at, turn in enumerate(kept, start=1):
                turn["turn"] = at
                turn["messages"] = [
                    {"role": "user", "content": turn["messages"][0]["content"][:2000]}
                ]
                if turn["outcome"]["category"] == "correct":
                    turn["outcome"]["speedup"] = turn["speedup"] = draw.lognormvariate(0.0, 0.7)
                    turn["outcome"]["speedup_interval"] = turn["speedup_interval"] = [
                        0.9 * turn["speedup"],
                        1.1 * turn["speedup"],
                    ]
                    turn["score"] = 0.3 + turn["speedup"]
            scores = [turn["score"] for turn in kept]
            returns = [
                sum(0.4 ** (i - t) * scores[i] for i in range(t, turns)) for t in range(turns)
            ]
            problem = whole["problem"] | {
                "id": f"L{number % 10 + 1}_{number % 97}_Example",
                "level": number % 10 + 1,
            }
            names = {
                "episode_id": f"{number:032x}",
                "model": f"model-{number % 7}",
                "problem": problem,
            }
            file.write(json.dumps(whole | names | {"turns": kept, "returns": returns}) + "\n")


def measure(path: Path) -> dict[str, float]:
    """Seconds from the start of the command until its screen shows the expected text."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    start = time.perf_counter()
    command = [sys.executable, "-m", "kevin_env", "replay", str(path)]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=os.environ | {"TERM": "xterm"}
    )
    try:
        first = _until(master, "_Example", start)
        read = _until(master, f"{_lines(path):,} trajectories", start, unless="reading")
        os.write(master, b"\r")
        begun = time.perf_counter()
        opened = _until(master, "1 kernel", begun)
        return {"first screen": first, "all read": read, "open an episode": opened}
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _until(master: int, words: str, start: float, unless: str = "\0") -> float:
    seen = ""
    while time.perf_counter() - start < 60:
        if select.select([master], [], [], 0.05)[0]:
            seen += os.read(master, 1 << 16).decode(errors="replace")
            at = seen.rfind(words)
            if at >= 0 and unless not in seen[at : at + 60]:
                return time.perf_counter() - start
    raise TimeoutError(f"{words!r} did not appear")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--file", type=Path, help="kept, and used when it is there already")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "big.jsonl"
        if not path.exists():
            write_episodes(path, options.episodes)
        size, many = path.stat().st_size, _lines(path)
        print(f"{many:,} episodes, {size / 1e9:.2f} GB")
        runs = [measure(path) for _ in range(options.repeats)]
    rows: list[dict[str, Any]] = []
    for name in runs[0]:
        rows.append(
            median_row(f"{name}, {many} episodes, {size} bytes", [run[name] for run in runs])
        )
        print(f"{name:20} {rows[-1]['value']:8.3f} s", flush=True)
    versions = {
        "python": platform.python_version(),
        "textual": version("textual"),
        "pydantic": version("pydantic"),
        "load": f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
    }
    write_result(options.json, "cpu", versions, rows)


if __name__ == "__main__":
    main()
