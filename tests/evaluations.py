"""Evaluations with a scripted judge, in this process or in a child process that may be killed."""

import io
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from episodes import REPLY, WRONG, correct, problem_file
from rich.console import Console

from kevin_env.app.evaluate.config import parse_config, read_values
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.players import Player, make_player
from kevin_env.app.evaluate.session import Ended, evaluate, resolve
from kevin_env.judge import Submission
from kevin_env.outcome import CompileError
from kevin_env.pools.scripted import SCRIPTED_CPU, Answer, ScriptedPool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

Judge = Callable[[Problem, Submission], Answer]


def coded(number: int) -> str:
    """A reply whose code has a number, by which `by_number` judges it."""
    return REPLY.replace("BLOCK=1024", f"BLOCK=1024, num_warps={number}")


def number_in(code: str) -> int:
    found = re.search(r"num_warps=(\d+)", code)
    return int(found[1]) if found else 0


def by_number(problem: Problem, submission: Submission) -> Answer:
    """The verdict on a kernel by its number; on the reference, a speedup of 0.8."""
    number = number_in(submission.code)
    if number == 0:
        return correct(0.8)
    if number % 5 == 0:
        return CompileError(kind="syntax", message="It does not parse.")
    return WRONG if number % 3 == 0 else correct(number / 8)


def problems_in(folder: Path, count: int) -> list[str]:
    """Paths of problems."""
    folder.mkdir(parents=True, exist_ok=True)
    return [problem_file(folder, f"{number}_Double").path for number in range(1, count + 1)]


def replies_in(folder: Path, problems: Sequence[str], samples: int, turns: int) -> Path:
    """A folder of scripted replies, other ones for every problem, sample and turn."""
    for at, path in enumerate(problems):
        for sample in range(samples):
            place = folder / Path(path).stem / str(sample)
            place.mkdir(parents=True, exist_ok=True)
            for turn in range(turns):
                number = (at * 31 + sample * 17 + turn * 7) % 97 + 1
                (place / f"{turn + 1}.md").write_text(coded(number))
    return folder


def values_of(
    folder: Path, problems: int = 3, samples: int = 2, turns: int = 3, **more: Any
) -> dict[str, Any]:
    """The values of a configuration with scripted replies; its run folder is `run`."""
    paths = problems_in(folder / "problems", problems)
    parallel = more.get("search", {}).get("kind") == "parallel"
    replies = replies_in(folder / "replies", paths, samples * turns if parallel else samples, turns)
    return {
        "problem": paths,
        "samples": samples,
        "settings": {"max_turns": turns},
        "policy": {"kind": "scripted", "replies": str(replies)},
        "concurrency": 4,
        "out": str(folder / "run"),
    } | more


@dataclass
class Evaluated:
    """A finished evaluation."""

    ended: Ended
    said: str
    folder: RunFolder
    pool: ScriptedPool

    @property
    def trajectories(self) -> list[Trajectory]:
        read = read_trajectories(self.folder.trajectories_file)
        return [each for each in read if isinstance(each, Trajectory)]

    @property
    def stops(self) -> list[str]:
        return sorted(str(each.stop_reason) for each in self.trajectories)


def run(
    values: Mapping[str, Any],
    judge: Judge = by_number,
    player: Player | None = None,
    device: str = SCRIPTED_CPU.name,
    stream: TextIO | None = None,
) -> Evaluated:
    """Evaluates in this process, with progress to `stream` or else to `said`."""
    config, problems = resolve(parse_config(values))
    page, folder = io.StringIO(), RunFolder(config.out or Path())
    console = Console(file=stream or page, width=160, markup=False, highlight=False, emoji=False)
    device_info = SCRIPTED_CPU.model_copy(update={"name": device})
    with folder.locked(), closing(ScriptedPool(judge, device_info)) as pool:
        player = player or make_player(config, problems)
        ended = evaluate(config, problems, lambda: nullcontext(pool), player, console)
    return Evaluated(ended, page.getvalue(), folder, pool)


def start(config: Path, seconds: float) -> subprocess.Popen[str]:
    """Evaluates in a child process, whose judge takes `seconds` per turn."""
    words = [sys.executable, __file__, str(config), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def tells_of_a_turn(line: str) -> bool:
    return re.search(r"sample \d+ turn \d+", line) is not None


def wait_for_turns(process: subprocess.Popen[str], count: int) -> list[str]:
    """Reads its output until it has reported that many turns."""
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        count -= tells_of_a_turn(line)
        if count <= 0:
            return said
    raise AssertionError("the process ended early:\n" + "".join(said))


def _main(config: Path, seconds: float) -> int:
    def slowly(problem: Problem, submission: Submission) -> Answer:
        time.sleep(seconds)
        return by_number(problem, submission)

    return run(read_values(config), slowly, stream=sys.stdout).ended.code


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), float(sys.argv[2])))
