"""Whether judging survives killed processes and thousands of judgements.

`kills`: a client judges submissions with known verdicts, several at once, while candidates,
supervisors, judges, fork servers and the client are killed (SIGKILL) at random. Every judgement
must end with the correct verdict or a `JudgeError`, and leave no process, folder or partial line
behind. `soak`: a long series of judgements, watching the judge's memory and descriptors. With 0, a
part is skipped and keeps its rows.

    python benchmarks/faults.py [--device cpu|cuda] [--kills 500] [--soak 2000] [--json FILE]
"""

import argparse
import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from resultfile import device_name, known_rows, plain_row, write_result
from rich.progress import Progress, track

from kevin_env.episode import Episode
from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.judge.workers.usage import children
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder, read_trajectories
from kevin_env.settings import Settings

PROBLEM = Problem(
    id="Tanh", name="Tanh",
    source="import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return torch.tanh(x) * 2\n"
    "def get_inputs():\n    return [torch.randn(64, 512)]\ndef get_init_inputs():\n    return []\n",
)  # fmt: skip
HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
KNOWN = {
    "correct": f"{HEAD}        return torch.tanh(x) * 2\n",
    "correctness": f"{HEAD}        return torch.tanh(x)\n",
    "runtime": f"{HEAD}        raise ValueError('no')\n",
    "compile": f"import no_such_module\n{HEAD}        return x\n",
}
"""Submissions by expected category."""
ROLES = ("candidate", "supervisor", "judge", "fork server", "client")
CLEANUP_SECONDS = 65.0
"""Seconds after which a judge removes an unlocked folder, with a margin."""
MAX_WAIT = 60.0
"""A kill follows a few answers, or this many seconds without one."""
WORKERS = 4
PR_SET_CHILD_SUBREAPER = 36


def descendants(pid: int) -> dict[int, str]:
    """All descendants with their roles, from their position in the process tree."""
    parents = children()
    roles: dict[int, str] = {}
    pending = [(child, "client") for child in parents.get(pid, [])]
    child_roles = {
        "client": "judge",
        "judge": "fork server",
        "fork server": "supervisor",
        "supervisor": "candidate",
    }
    while pending:
        child, role = pending.pop()
        roles[child] = role
        pending += [(each, child_roles.get(role, "candidate")) for each in parents.get(child, [])]
    return roles


def client(device: str, file: Path) -> None:
    """Plays episodes until killed, and prints how each judgement ended."""
    with LocalPool() as pool:
        threads = [
            threading.Thread(target=play_episodes, args=(pool, device, file))
            for _ in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def play_episodes(pool: LocalPool, device: str, file: Path) -> None:
    """One episode after the other, of all known submissions in random order."""
    while True:
        order = random.sample(list(KNOWN.items()), len(KNOWN))
        episode = Episode(
            PROBLEM,
            pool,
            Settings(max_turns=len(order), device=device, rules="open"),
            recorder=Recorder(file),
        )
        try:
            episode.start()
        except JudgeError:
            print("error", flush=True)
            continue
        for category, code in order:
            print(answer(episode, category, code), flush=True)


def answer(episode: Episode, category: str, code: str) -> str:
    """The end of a judgement, retried after a `JudgeError`."""
    while True:
        try:
            turn = episode.submit(f"```python\n{code}```")
        except JudgeError:
            print("error", flush=True)
            continue
        return "right" if turn.category == category else f"WRONG {category} {turn.outcome!r}"


def kills(device: str, count: int) -> list[dict[str, Any]]:
    """Kills at random until `count` judgements have ended correctly."""
    ctypes.CDLL(None).prctl(
        PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
    )  # orphans become our children, so that they are noticed
    folders = set(Path(tempfile.gettempdir()).glob("kevin-*"))
    killed = dict.fromkeys(ROLES, 0)
    answers: list[str] = []
    with (
        tempfile.TemporaryDirectory() as place,
        Progress(*Progress.get_default_columns(), "{task.fields[text]}") as bar,
    ):
        file = Path(place) / "run.jsonl"
        task = bar.add_task("judgements", total=count, text="")
        while answers.count("right") < count:
            process = start(device, file)
            threading.Thread(target=collect_output, args=(process, answers), daemon=True).start()
            while process.poll() is None and answers.count("right") < count:
                await_answers(answers, process)
                kill_one(killed)
                bar.update(
                    task, completed=answers.count("right"), text=f"{sum(killed.values())} killed"
                )
            process.kill()
            process.wait()
        lines = list(read_trajectories(file))
    time.sleep(CLEANUP_SECONDS)
    with LocalPool() as pool:  # the next judge removes leftovers of killed ones
        pool.device(device)
    turns = sum(len(each.turns) for each in lines if isinstance(each, Trajectory))
    left = [pid for pid in descendants(os.getpid()) if alive(pid)]
    values = {
        "judgements that ended right": answers.count("right"),
        "judgements that ended with a JudgeError": answers.count("error"),
        "judgements that ended wrong": sum(line.startswith("WRONG") for line in answers),
        "turns lost from the trajectory": max(0, answers.count("right") - turns),
        "damaged lines in the trajectory": sum(not isinstance(each, Trajectory) for each in lines),
        "processes left": len(left),
        "folders left": len(set(Path(tempfile.gettempdir()).glob("kevin-*")) - folders),
        **{f"killed: {name}": number for name, number in killed.items()},
    }  # fmt: skip
    print(*(line for line in answers if line.startswith("WRONG")), sep="\n")
    return [plain_row(name, value) for name, value in values.items()]


def collect_output(process: subprocess.Popen[str], answers: list[str]) -> None:
    """Collects the output of a client."""
    assert process.stdout
    answers.extend(line.strip() for line in process.stdout)


def await_answers(answers: list[str], process: subprocess.Popen[str]) -> None:
    """Waits for a few more answers."""
    enough, deadline = len(answers) + random.randint(1, 5), time.monotonic() + MAX_WAIT
    while len(answers) < enough and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)


def start(device: str, file: Path) -> subprocess.Popen[str]:
    """A client process."""
    command = [sys.executable, __file__, "--device", device, "--client", str(file)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def kill_one(killed: dict[str, int]) -> None:
    """Kills one process of a random kind, clients and judges less often than candidates."""
    role = random.choices(ROLES, weights=(8, 4, 2, 2, 1))[0]
    targets = [pid for pid, kind in descendants(os.getpid()).items() if kind == role and alive(pid)]
    if targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(targets), signal.SIGKILL)
            killed[role] += 1


def alive(pid: int) -> bool:
    """Whether a process runs, and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def soak(device: str, count: int) -> list[dict[str, Any]]:
    """Judges continuously and watches the judge's memory and descriptors once it is warm."""
    rows: list[tuple[int, int]] = []
    options = Options(device=device)
    wrong = 0
    with LocalPool() as pool:
        for i in track(range(count), "soak"):
            category = list(KNOWN)[i % len(KNOWN)]
            judgement = pool.submit(PROBLEM, Submission(code=KNOWN[category]), options).result()
            wrong += judgement.outcome.category != category
            if i % 20 == 19 or i == count - 1:
                roles = descendants(os.getpid()).items()
                rows.append(usage(next(pid for pid, role in roles if role == "client")))
    settled = rows[len(rows) // 4 :]
    growth = settled[-1][0] - settled[0][0]
    values = {
        "soak: judgements": (count, "count"), "soak: judgements that ended wrong": (wrong, "count"),
        "soak: growth of the judge's memory": (growth, "B"),
        "soak: growth of the judge's descriptors": (settled[-1][1] - settled[0][1], "count"),
    }  # fmt: skip
    return [plain_row(name, value, unit, count) for name, (value, unit) in values.items()]


def usage(pid: int) -> tuple[int, int]:
    """Resident bytes and open descriptors of the judge, which is a child of this process."""
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--soak", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--client", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.device, options.client)
        return
    with LocalPool() as pool:
        info = pool.device(options.device)
    rows = kills(options.device, options.kills) if options.kills else []
    rows += soak(options.device, options.soak) if options.soak else []
    for row in rows:
        print(f"{row['name']:45} {row['value']:12} {row['unit']}")
    kept = known_rows(options.json, info.versions) | {row["name"]: row for row in rows}
    write_result(options.json, device_name(info), info.versions, kept.values())


if __name__ == "__main__":
    main()
