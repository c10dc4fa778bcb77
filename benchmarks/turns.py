"""Turns on one warm judge and their wall time, as rows. Used by `turn_latency.py`."""

import random
import time
from collections import defaultdict
from typing import Any

from honest import Entry, Fresh, freshened, is_built_only, kind_of, warm
from resultfile import Results, median_row

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem

STAGES = ("queue", "build", "load", "verify", "time")
REST = 0.5
"""Seconds between turns for starting the next candidate, as while a model generates."""


class Turns:
    """Judges on one warm judge, and measures the wall time.

    Attributes:
        taken: Seconds of each file by its name, and the submission; of those that ended as they
            must.
        faults: Submissions that did not end as expected; they are in no row.
    """

    def __init__(self, pool: LocalPool, device: str, results: Results) -> None:
        self.device, self.results = device, results
        self.taken: dict[str, tuple[float, Fresh]] = {}
        self.faults: list[str] = []
        self._pool = pool
        self._options = Options(device=device, require_sandbox=True)
        self._warm: set[str] = set()
        self._wall: dict[str, list[float]] = defaultdict(list)
        self._stages: dict[str, list[dict[str, float]]] = defaultdict(list)
        self._number = random.SystemRandom().randrange(1, 1 << 29)

    def judge(self, problem: Problem, code: str, **how: Any) -> tuple[float, Judgement]:
        """Seconds from the submission to the verdict, and the verdict; `how` are options."""
        if problem.sha256 not in self._warm:
            self._warm.add(problem.sha256)
            warm(self._pool, problem, self._options)
        time.sleep(REST)
        start = time.perf_counter()
        options = self._options.model_copy(update=how)
        judgement = self._pool.submit(problem, Submission(code=code), options).result()
        return time.perf_counter() - start, judgement

    def number(self) -> int:
        """A new submission."""
        self._number += 10
        return self._number

    def entry(self, entry: Entry) -> None:
        """Judges a file and updates the rows of its kind."""
        new, name = freshened(entry, self.number()), row_name(entry, self.device)
        seconds, judgement = self.judge(new.task, new.code)
        print(
            f"{name:16} {seconds:7.2f} s  {judgement.outcome.category:12} {entry.name}", flush=True
        )
        if self.require(entry.met_by(judgement.outcome, self.device), entry.name, judgement):
            self.taken[entry.name] = seconds, new
            self.take(name, seconds, judgement)

    def require(self, right: bool, what: str, judgement: Judgement) -> bool:
        """Records a fault if a turn did not end as expected; returns whether it did."""
        if not right:
            outcome = judgement.outcome
            self.faults.append(f"{what}: {outcome.category}/{outcome.kind}: {outcome.message}")
            print(f"UNEXPECTED: {self.faults[-1]}", flush=True)
        return right

    def take(self, name: str, seconds: float, judgement: Judgement) -> None:
        """Adds a turn that ended as expected to a row of that name and those of its stages."""
        self._wall[name].append(seconds)
        self._stages[name].append(judgement.seconds.model_dump())
        self.results.put(median_row(name, self._wall[name]))
        parts = self._stages[name]
        self.results.put(
            *(median_row(f"{name}: {stage}", [each[stage] for each in parts]) for stage in STAGES)
        )


def row_name(entry: Entry, device: str) -> str:
    """The row that a file counts for."""
    kind, inline = kind_of(entry.code), "load_inline" in entry.code
    if is_built_only(entry):
        return f"{'cpp' if device == 'cpu' else 'cuda'}_extension_build_turn"
    match kind:
        case "torch":
            return "overhead"
        case "cuda":
            return "cuda_turn" if inline else "cuda_nvcc_turn"
        case "cpp" if inline:
            return "cpp_inline_turn"
        case "triton" if device == "cpu":
            return "interpreted_triton_turn"
        case _:
            return f"{kind}_turn"
