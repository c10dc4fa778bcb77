"""Whole evaluations over a scripted judge, in this process or, to be killed, in one of their own."""

import io
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodes import REPLY, WRONG, correct, problem_file
from rich.console import Console

from kevin_env.app.evaluate.config import EvalConfig, parse_config
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.players import Player, make_player
from kevin_env.app.evaluate.session import Ended, evaluate, resolve
from kevin_env.judge import ScriptedPool, Submission
from kevin_env.judge.scripted import SCRIPTED_CPU, Answer
from kevin_env.outcome import CompileError
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

Judge = Callable[[Problem, Submission], Answer]


def coded(number: int) -> str:
    """A reply whose code has a number, which tells `by_number` how to judge it."""
    return REPLY.replace("BLOCK=1024", f"BLOCK=1024, num_warps={number}")


def number_in(code: str) -> int:
    found = re.search(r"num_warps=(\d+)", code)
    return int(found[1]) if found else 0


def by_number(problem: Problem, submission: Submission) -> Answer:
    """The verdict on a kernel, which depends on its number alone; the reference itself is 0.8 of
    its own speed.
    """
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
        "problems": paths,
        "samples": samples,
        "settings": {"max_turns": turns},
        "policy": {"kind": "scripted", "replies": str(replies)},
        "concurrency": 4,
        "out": str(folder / "run"),
    } | more


@dataclass
class Evaluated:
    """What came of an evaluation."""

    ended: Ended
    said: str
    folder: RunFolder
    pool: ScriptedPool

    @property
    def trajectories(self) -> list[Trajectory]:
        return [
            each
            for each in read_trajectories(self.folder.trajectories_file)
            if isinstance(each, Trajectory)
        ]

    @property
    def stops(self) -> list[str]:
        return sorted(str(each.stop_reason) for each in self.trajectories)


def run(
    values: Mapping[str, Any] | EvalConfig,
    judge: Judge = by_number,
    player: Player | None = None,
    device: str = SCRIPTED_CPU.name,
) -> Evaluated:
    """Evaluates in this process."""
    config, problems = resolve(values if isinstance(values, EvalConfig) else parse_config(values))
    page, folder = io.StringIO(), RunFolder(config.out or Path())
    console = Console(file=page, width=160, markup=False, highlight=False, emoji=False)
    device_info = SCRIPTED_CPU.model_copy(update={"name": device})
    with folder.locked(), closing(ScriptedPool(judge, device_info)) as pool:
        ended = evaluate(config, problems, pool, player or make_player(config, problems), console)
    return Evaluated(ended, page.getvalue(), folder, pool)


def start(config: Path, seconds: float) -> subprocess.Popen[str]:
    """Evaluates in a process of its own, whose judge takes that long for a turn."""
    words = [sys.executable, __file__, str(config), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def tells_of_a_turn(line: str) -> bool:
    return re.search(r"sample \d+ turn \d+", line) is not None


def wait_for_turns(process: subprocess.Popen[str], count: int) -> list[str]:
    """Reads what it says until it has told of that many turns."""
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        count -= tells_of_a_turn(line)
        if count <= 0:
            return said
    raise AssertionError("it ended before:\n" + "".join(said))


def _main(config: Path, seconds: float) -> int:
    def slowly(problem: Problem, submission: Submission) -> Answer:
        time.sleep(seconds)
        return by_number(problem, submission)

    from kevin_env.app.evaluate.config import read_values

    evaluated = run_aloud(read_values(config), slowly)
    return evaluated.code


def run_aloud(values: Mapping[str, Any], judge: Judge) -> Ended:
    """As `run`, telling stdout."""
    config, problems = resolve(parse_config(values))
    folder = RunFolder(config.out or Path())
    console = Console(width=160, markup=False, highlight=False, emoji=False)
    with folder.locked(), closing(ScriptedPool(judge)) as pool:
        return evaluate(config, problems, pool, make_player(config, problems), console)


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), float(sys.argv[2])))
