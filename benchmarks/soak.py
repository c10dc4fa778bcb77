"""Whether judging stays right and leaks nothing for minutes while its processes are killed.

Three clients judge submissions with known verdicts, several at once: right, wrong, broken, raising,
hanging, and one that leaves children. Two share a judge server over HTTP, one has judges of
its own. Meanwhile a candidate, a fork server, a judge or a client is killed (SIGKILL) at random;
only clients are started again. A submission meets at most one of these kills, so each of a client
that lived must get one verdict, of the known kind.

Every 10 s, memory (of server and judges; shared pages in shares where the kernel tells), open
descriptors, folders, control groups and processes are counted. As judges that start have little,
upper quartiles are compared: the last third's must not exceed the first third's by more than
`GROWTH` and `SHARE` admit. At the end nothing must be left. Exits with 1, and a list, otherwise.

    python benchmarks/soak.py [--minutes 10] [--seed 0] [--json FILE]
"""

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

import faults
from faults import HEAD, KNOWN, alive
from resultfile import Results, Row, plain_row

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.judge.sandbox import cgroups
from kevin_env.judge.workers.launcher import PREFIX
from kevin_env.judge.workers.usage import children, descendants
from kevin_env.pools.http import HttpPool
from kevin_env.pools.local import LocalPool

RIGHT = KNOWN["correct"]
CASES = {
    "right": ("correct", RIGHT),
    "wrong": ("correctness/values", KNOWN["correctness"]),
    "broken": ("compile/import", KNOWN["compile"]),
    "raises": ("runtime/exception", KNOWN["runtime"]),
    "hangs": ("runtime/timeout", f"{HEAD}        while True: pass\n"),
    "forks": ("correct", RIGHT.replace("return", "os.fork() or time.sleep(3600)\n        return")),
}
"""By name: the expected category and kind, and the code."""
OPTIONS = Options(device="cpu", call_timeout=2.0)
ERROR = "error of the judge"
"""What the answer to a submission without a verdict begins with."""
CLIENTS = {"http 1": True, "http 2": True, "local": False}
"""Whether each uses the server."""
AT_ONCE = 2
"""Submissions of a client in progress."""
KILLS = {"candidate": 8, "fork server": 2, "judge": 2, "client": 2}
"""What is killed, and how often relative to each other."""
PAUSE = (2.0, 8.0)
"""Seconds between kills."""
SAMPLE_SECONDS, REPORT_SECONDS = 10.0, 30.0
SETTLE_SECONDS = 5.0
"""Submissions may meet a kill for this long after it."""
ANSWER_SECONDS, END_SECONDS = 240.0, 20.0
"""In which every submission must be answered, and in which everything must be gone at the end."""
GROWTH = {"memory": 1 << 27, "descriptors": 32, "folders": 8, "control groups": 8, "processes": 16}
SHARE = 0.3
"""How much may be added to the first third: a number, and a share of it."""


def client(url: str, seed: str) -> None:
    """Submits until stdin ends, then waits for what is open."""
    over, draw = threading.Event(), random.Random(seed)
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with HttpPool(url) if url else LocalPool() as pool:
        running = dict[Future[Judgement], tuple[int, float]]()
        for number in itertools.count():
            name = draw.choice(list(CASES))
            print(json.dumps({"number": number, "case": name}), flush=True)
            submission = Submission(code=f"import os, time\n{CASES[name][1]}# {seed} {number}\n")
            running[pool.submit(faults.PROBLEM, submission, OPTIONS)] = number, time.monotonic()
            while len(running) == AT_ONCE or (over.is_set() and running):
                done, _ = wait(running, ANSWER_SECONDS, FIRST_COMPLETED)
                if not done:
                    return
                for future in done:
                    print(json.dumps(answer(future, *running.pop(future))), flush=True)
            if over.is_set():
                return


def answer(future: Future[Judgement], number: int, start: float) -> dict[str, object]:
    """How a submission ended, as a client prints it."""
    try:
        outcome = future.result().outcome
        text = f"{outcome.category}/{outcome.kind}: {outcome.message}"
    except JudgeError as error:
        text = f"{ERROR}: {error}"
    return {"number": number, "answer": text, "seconds": time.monotonic() - start}


@dataclass
class Asked:
    """A submission, and what came back."""

    case: str
    at: float
    answers: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether it has a verdict."""
        return bool(self.answers) and not self.answers[0].startswith(ERROR)

    @property
    def wrong(self) -> bool:
        """Whether the verdict is not the expected one."""
        return self.judged and not self.answers[0].startswith(CASES[self.case][0])


class Client:
    """A client process and what it asked. A killed one is replaced, and its open work forgotten."""

    def __init__(self, name: str, url: str, seed: str, place: Path) -> None:
        self.name, self.url, self._seed, self._place = name, url, seed, place
        self.asked: dict[tuple[int, int], Asked] = {}
        """By process and number."""
        self._starts = itertools.count()
        self._start()

    def kill(self) -> None:
        """Kills and replaces the process."""
        self.end(0.0)
        for key in self.open():
            del self.asked[key]
        self._start()

    def end(self, seconds: float) -> int:
        """Waits for the end of the process, then kills it. Returns its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()
        self._reader.join()
        return self.process.wait()

    def open(self) -> dict[tuple[int, int], Asked]:
        """Submissions without an answer."""
        # a list: another thread adds to them
        return {key: each for key, each in list(self.asked.items()) if not each.answers}

    def _start(self) -> None:
        seed = f"{self._seed} {self.name} {next(self._starts)}"
        self.process = start([__file__, "--client", self.url, "--seed", seed], self._place)
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            if not line.endswith("\n"):  # of a killed client
                return
            said = json.loads(line)
            key = process.pid, said["number"]
            if "case" in said:
                self.asked[key] = Asked(said["case"], time.monotonic())
            else:
                asked = self.asked[key]
                asked.answers.append(said["answer"])
                asked.seconds = said["seconds"]
                if asked.wrong:
                    print(f"wrong: {asked.case} in {self.name}: {said['answer']}", flush=True)


def start(words: list[str], place: Path) -> subprocess.Popen[str]:
    """Starts Python with these arguments; its temporary files and its log are in a folder."""
    with (place / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            text=True, env=os.environ | {"TMPDIR": str(place)},
        )  # fmt: skip


def serve(place: Path) -> tuple[subprocess.Popen[str], str]:
    """Starts a judge server. Returns it and its URL."""
    process = start(["-m", "kevin_env", "judge-server", "--device=cpu", "--port=0"], place)
    log = place / "log"
    while (found := re.search(r"judging on .* at (\S+);", log.read_text())) is None:
        if process.poll() is not None:
            raise SystemExit(f"no judge server:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
    return process, found[1]


class Soak:
    """One run. `failures` are the expectations that failed so far."""

    def __init__(self, seed: str, place: Path) -> None:
        self._draw, self._place = random.Random(seed), place
        self.server, self.url = serve(place)
        uses = CLIENTS.items()
        self.clients = [Client(name, self.url if it else "", seed, place) for name, it in uses]
        self.kills: Counter[str] = Counter()
        self.samples: list[dict[str, int]] = []
        self.failures: list[str] = []
        self._hit: dict[int, float] = {}
        """By owner of judges: when one of its processes was last killed."""
        self._names: set[str] = set()
        """Of all folders so far; control groups have the same names."""

    def run(self, seconds: float) -> None:
        """Once every client has an answer, kills, counts and reports until the time is over."""
        while any(len(e.asked) == len(e.open()) for e in self.clients) and self._all_run():
            time.sleep(0.1)
        begin, sample, kill = time.monotonic(), SAMPLE_SECONDS, self._draw.uniform(*PAUSE)
        while (now := time.monotonic() - begin) < seconds and self._all_run():
            self._names |= self._folders()
            if now > kill:
                self._kill_one()
                kill = now + self._draw.uniform(*PAUSE)
            if now > sample:
                self.samples.append(self._sample())
                sample += SAMPLE_SECONDS
                if sample % REPORT_SECONDS == SAMPLE_SECONDS:
                    print(f"{now:5.0f} s: {self.progress()}", flush=True)
            time.sleep(0.1)

    def end(self) -> dict[str, int]:
        """Ends all that runs. Returns what is left then."""
        for each in self.clients:
            assert each.process.stdin
            each.process.stdin.close()
        codes = [each.end(ANSWER_SECONDS + END_SECONDS) for each in self.clients]
        self.failures += [f"a client ended with exit code {code}" for code in codes if code]
        self.server.send_signal(signal.SIGINT)
        deadline = time.monotonic() + END_SECONDS
        while any((left := self._in_use()).values()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return left

    def clean_up(self) -> None:
        """Kills everything below this process, and removes the control groups."""
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name in self._names:
            cgroups.remove(name)

    def progress(self) -> str:
        """What happened so far, as a line."""
        asked = [each for client in self.clients for each in list(client.asked.values())]
        facts = {"judged": sum(e.judged for e in asked), "wrong": sum(e.wrong for e in asked)}
        facts |= {f"killed {kind}": self.kills[kind] for kind in KILLS} | self.samples[-1]
        return ", ".join(f"{name} {many:,}" for name, many in facts.items())

    def _all_run(self) -> bool:
        """Whether server and clients run; a failure if one does not."""
        processes = {"server": self.server} | {each.name: each.process for each in self.clients}
        ended = [name for name, process in processes.items() if process.poll() is not None]
        self.failures += [f"{name} ended by itself" for name in ended]
        return not ended

    def _kill_one(self) -> None:
        kind = self._draw.choices(list(KILLS), list(KILLS.values()))[0]
        if kind == "client":
            self._draw.choice(self.clients).kill()
            self.kills[kind] += 1
            return
        owner = self._draw.choice(self._owners())
        targets = self._family(owner)[kind]
        if targets and self._has_settled(owner):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._draw.choice(targets), signal.SIGKILL)
                self._hit[owner] = time.monotonic()
                self.kills[kind] += 1

    def _owners(self) -> list[int]:
        """The processes that have judges."""
        return [self.server.pid, *(each.process.pid for each in self.clients if not each.url)]

    def _family(self, owner: int) -> dict[str, list[int]]:
        """What can be killed below an owner, by kind."""
        below = children()

        def under(pids: list[int]) -> list[int]:
            return [pid for each in pids for pid in below.get(each, []) if alive(pid)]

        judges = under([owner])
        servers = under(judges)
        return {"judge": judges, "fork server": servers, "candidate": under(under(servers))}

    def _has_settled(self, owner: int) -> bool:
        """Whether all that the last kill may have hit has been answered."""
        clients = [each for each in self.clients if bool(each.url) == (owner == self.server.pid)]
        asked = [each.at for client in clients for each in client.open().values()]
        return min([time.monotonic(), *asked]) > self._hit.get(owner, 0.0) + SETTLE_SECONDS

    def _folders(self) -> set[str]:
        return {path.name for path in self._place.glob(f"{PREFIX}*")}

    def _sample(self) -> dict[str, int]:
        """What server and judges use, and what else there is besides the clients."""
        pids = [pid for owner in self._owners() for pid in self._family(owner)["judge"]]
        memory, many = map(sum, zip(*map(usage, [self.server.pid, *pids]), strict=True))
        others = self._in_use(self.server.pid, *(each.process.pid for each in self.clients))
        return {"memory": memory, "descriptors": many, **others}

    def _in_use(self, *besides: int) -> dict[str, int]:
        """Folders, control groups and processes; zombies count, but for orphans, which are ours."""
        for pid in children().get(os.getpid(), []):
            if pid not in besides and not alive(pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        many = sum((home / name).is_dir() for home in cgroups.homes() for name in self._names)
        count = len(set(descendants(os.getpid())) - set(besides))
        return {"folders": len(self._folders()), "control groups": many, "processes": count}


def usage(pid: int) -> tuple[int, int]:
    """Bytes and open descriptors of a process; shared pages in shares where the kernel tells."""
    with contextlib.suppress(OSError):  # it is gone
        memory, many = faults.usage(pid)
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            memory = sum(map(int, re.findall(r"\nPss: *(\d+)", text))) << 10
        return memory, many
    return 0, 0


def rows_of(soak: Soak, left: dict[str, int]) -> list[Row]:
    """The rows of a run. Adds to its failures what must not be, and growth."""
    asked = [each for client in soak.clients for each in client.asked.values()]
    ended = [each for each in asked if each.judged]
    seconds = sorted(each.seconds for each in ended) or [0.0]
    rows = [
        plain_row("judgements", len(ended)),
        *(plain_row(f"killed: {kind}", soak.kills[kind]) for kind in KILLS),
        plain_row("verdict: median", statistics.median(seconds), "s", len(ended)),
        plain_row("verdict: 99 %", seconds[int(0.99 * len(seconds))], "s", len(ended)),
    ]
    wrong = [each for each in ended if each.wrong]
    never = {f"wrong: {case}": [e.answers[0] for e in wrong if e.case == case] for case in CASES}
    never["errors"] = [e.answers[0] for e in asked if e.answers and not e.judged]
    never["lost"] = [each.case for each in asked if not each.answers]
    never["doubled"] = [str(each.answers) for each in asked if len(each.answers) > 1]
    never |= {f"left: {name}": ["at the end"] * many for name, many in left.items()}
    soak.failures += [f"{name}: {each}" for name, found in never.items() for each in found]
    soak.failures += [] if ended else ["nothing was judged"]
    rows += [plain_row(name, len(found)) for name, found in never.items()]
    third = len(soak.samples) // 3
    for name, more in GROWTH.items() if third else ():
        parts = soak.samples[:third], soak.samples[-third:]
        first, last = (sorted(e[name] for e in part)[3 * third // 4] for part in parts)
        unit = "B" if name == "memory" else "count"
        thirds = (("first", first), ("last", last))
        rows += [plain_row(f"{name}: {which} third", it, unit, third) for which, it in thirds]
        if last > (bound := first * (1 + SHARE) + more):
            soak.failures.append(f"{name} grew from {first:,g} to {last:,g}, over {bound:,g}")
    return rows


def main() -> None:
    """Runs the soak test, or one of its clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client is not None:
        return client(options.client, options.seed)
    # orphans become children of this process, so that they are noticed
    ctypes.CDLL(None).prctl(faults.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="kevin-soak-") as place:
        soak = Soak(options.seed, Path(place))
        try:
            with HttpPool(soak.url) as pool:
                versions = pool.device("cpu").versions
            soak.run(60 * options.minutes)
            rows = rows_of(soak, soak.end())
        finally:
            soak.clean_up()
        log = Path(place, "log").read_text(errors="replace")
    Results(options.json, "cpu", versions).report(*rows)
    if soak.failures:
        print(f"end of the log:\n{log[-3000:]}")
    for failure, many in Counter(soak.failures).items():
        print(f"FAILED: {failure}" + (f" ({many} times)" if many > 1 else ""))
    sys.exit(bool(soak.failures))


if __name__ == "__main__":
    main()
