"""Judges the kernels of a run, many at once. Each verdict is appended to a file, so that a second
start goes on.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kevin_env import kernelbench
from kevin_env.app.kernelbench_run import Sample, read_samples
from kevin_env.app.screen import show
from kevin_env.extract import extract_file
from kevin_env.judge.api import JudgeError, JudgePool, Options, Seconds
from kevin_env.outcome import Frozen, Outcome, printable
from kevin_env.problem import Problem, ProblemError, load_kernelbench
from kevin_env.recorder import append_lines
from kevin_env.rules import Rules
from kevin_env.settings import Settings
from kevin_env.turn import Verdict, begin_verdict

RECORD = "kevin_verdicts.jsonl"
AT_ONCE = 64
"""Kernels handed to the judges at once: more than they take, so that none waits for work."""


class Terms(Frozen):
    """What a verdict holds for. Under other terms a kernel is judged again."""

    rules: Rules
    glue: float = 0.0
    inputs: Literal["varied", "shipped"]
    baseline: Literal["eager", "compile"]
    hardware: str
    """Name of the device's model."""

    @classmethod
    def of(cls, settings: Settings, hardware: str) -> Self:
        """What verdicts by these settings hold for."""
        names = ("rules", "glue", "inputs", "baseline")
        return cls(hardware=hardware, **{name: getattr(settings, name) for name in names})


class Key(Frozen):
    """Which kernel was judged against which reference, and how."""

    kernel: str
    """Name of its file."""
    code_sha256: str
    problem: str
    problem_sha256: str
    terms: Terms


class Entry(Frozen):
    """One line of the record."""

    key: Key
    outcome: Outcome
    seconds: Seconds = Seconds()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel with its problem and, once it was judged, our verdict."""

    sample: Sample
    code: str
    problem: Problem | None
    """None if KernelBench has no such problem here."""
    entry: Entry | None = None
    error: str = ""
    """Why there is no verdict of ours."""


Agreement = Literal[
    "both_accept",
    "both_refuse",
    "only_kernelbench_accepts",
    "only_kevin_env_accepts",
    "no_verdict",
    "not_judged",
]
"""`no_verdict`: KernelBench has none. `not_judged`: the judge or the reference failed, or there is
no such problem.
"""
HEADINGS: dict[Agreement, str] = {
    "both_accept": "both accept",
    "both_refuse": "both refuse",
    "only_kernelbench_accepts": "only KernelBench accepts",
    "only_kevin_env_accepts": "only kevin-env accepts",
    "no_verdict": "no KernelBench verdict",
    "not_judged": "not judged",
}
DIFFERENT: tuple[Agreement, ...] = ("only_kernelbench_accepts", "only_kevin_env_accepts")
_BOTH: dict[tuple[bool, bool], Agreement] = {
    (True, True): "both_accept",
    (False, False): "both_refuse",
    (True, False): "only_kernelbench_accepts",
    (False, True): "only_kevin_env_accepts",
}


def agreement_of(kernel: Kernel) -> Agreement:
    """How the two verdicts on a kernel compare. To accept is to find all outputs right, whatever
    the time.
    """
    if kernel.entry is None:
        return "not_judged"
    if kernel.sample.verdict is None:
        return "no_verdict"
    return _BOTH[
        kernel.sample.verdict.category == "correct", kernel.entry.outcome.category == "correct"
    ]


def read_kernels(samples: Sequence[Sample]) -> list[Kernel]:
    """Reads the kernels and finds their problems.

    Raises:
        BadInput: if a kernel cannot be read.
        ProblemError: if KernelBench is not there.
    """
    levels = {sample.level for sample in samples} & set(kernelbench.LEVELS)
    problems = {
        (each.level, each.number): each for level in sorted(levels) for each in _level(level)
    }
    return [_kernel(sample, problems.get((sample.level, sample.number))) for sample in samples]


def read_record(record: Path) -> dict[Key, Entry]:
    """The verdicts of earlier starts; lines that were not written to their end are left out."""
    entries = []
    for line in (
        record.read_text(encoding="utf-8", errors="replace").splitlines() if record.exists() else ()
    ):
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError:  # judged again
            continue
    return {entry.key: entry for entry in entries}


def judge_kernels(
    kernels: Sequence[Kernel],
    pool: JudgePool,
    options: Options,
    terms: Terms,
    record: Path,
    done: Callable[[Kernel], None],
) -> list[Kernel]:
    """Judges all kernels that the record does not know, and returns all of them in the given order.

    A failure of the judge or of a reference is noted in the kernel's `error`; the next start judges
    that kernel again.

    Args:
        kernels: As `read_kernels` gives them.
        pool: Judges them.
        options: How, in agreement with `terms`.
        terms: What the verdicts hold for.
        record: A JSONL file, to which each verdict is appended as soon as it is there.
        done: Called with each kernel that has ended, in the order in which they end.

    Raises:
        OSError: if the record cannot be written.
    """
    append_lines(record, [])
    known = read_record(record)
    ended: dict[Path, Kernel] = {}

    def end(kernel: Kernel) -> None:
        ended[kernel.sample.file] = kernel
        done(kernel)

    asked: list[tuple[Kernel, Problem, Key]] = []
    for kernel in kernels:
        if kernel.problem is None:
            end(kernel)
        elif (key := _key(kernel, kernel.problem, terms)) in known:
            end(replace(kernel, entry=known[key]))
        else:
            asked.append((kernel, kernel.problem, key))
    for kernel in _judged(asked, pool, options):
        if kernel.entry is not None:
            append_lines(record, [kernel.entry.model_dump_json()])
        end(kernel)
    return [ended[kernel.sample.file] for kernel in kernels]


def _judged(
    asked: Sequence[tuple[Kernel, Problem, Key]], pool: JudgePool, options: Options
) -> Iterator[Kernel]:
    """In the order in which they end."""
    waiting, under_way = deque(asked), dict[Future[Verdict], tuple[Kernel, Key]]()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < AT_ONCE:
                kernel, problem, key = waiting.popleft()
                submission = extract_file(kernel.code)
                under_way[begin_verdict(submission, problem, options, pool)] = kernel, key
            wait(under_way, return_when=FIRST_COMPLETED)
            for future in [each for each in under_way if each.done()]:
                yield _ended(*under_way.pop(future), future)
    finally:
        for future in under_way:
            future.cancel()


def _ended(kernel: Kernel, key: Key, future: Future[Verdict]) -> Kernel:
    try:
        verdict = future.result()
    except (JudgeError, ProblemError) as error:
        return replace(kernel, error=printable(str(error)))
    judgement = verdict.judgement
    if judgement is None:
        return replace(kernel, entry=Entry(key=key, outcome=verdict.outcome))
    entry = Entry(
        key=key, outcome=verdict.outcome, seconds=judgement.seconds, flags=judgement.flags
    )
    return replace(kernel, entry=entry)


def _kernel(sample: Sample, problem: Problem | None) -> Kernel:
    wrong = (
        ""
        if problem
        else f"there is no problem {sample.number} on level {sample.level} of KernelBench here"
    )
    return Kernel(sample, sample.code, problem, error=wrong)


def _key(kernel: Kernel, problem: Problem, terms: Terms) -> Key:
    return Key(
        kernel=kernel.sample.file.name,
        code_sha256=hashlib.sha256(kernel.code.encode("utf-8", "replace")).hexdigest(),
        problem=problem.id,
        problem_sha256=problem.sha256,
        terms=terms,
    )


def _level(level: int) -> list[Problem]:
    return load_kernelbench(f"{kernelbench.PREFIX}level{level}")


def read_run(folder: Path, console: Console) -> list[Kernel]:
    """The kernels of a run folder as KernelBench writes it, with their problems; `console` shows
    what is left out.

    Raises:
        BadInput: if the folder has no kernels, or cannot be read.
        ProblemError: if KernelBench's problems are not there.
    """
    return read_kernels(read_samples(folder, lambda line: show(console, line, "yellow")))


def rejudge(
    kernels: Sequence[Kernel],
    out: Path,
    pool: JudgePool,
    options: Options,
    terms: Terms,
    console: Console,
) -> list[Kernel]:
    """Judges the kernels that have no verdict in `out` yet, and shows progress; gives all of them
    in the same order.

    Args:
        kernels: As `read_run` gives them.
        out: Folder where verdicts are kept; made if missing.
        pool: Judges the kernels.
        options: How to judge, in agreement with `terms`.
        terms: What the verdicts hold for.
        console: Shows progress.

    Raises:
        OSError: if `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(kernels))

        def done(kernel: Kernel) -> None:
            line = f"{kernel.sample.file.name}: {_ending(kernel)}"
            progress.update(task, advance=1, description=line)
            if not console.is_terminal:
                show(console, line)

        return judge_kernels(kernels, pool, options, terms, out / RECORD, done)


def _ending(kernel: Kernel) -> str:
    ours = kernel.entry.outcome if kernel.entry else None
    verdict = f"{ours.category}/{ours.kind}" if ours else kernel.error
    return f"{verdict} ({HEADINGS[agreement_of(kernel)]})"
