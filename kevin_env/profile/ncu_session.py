"""One call under Nsight Compute, as a program that runs part by part.

Each part has its own lease and time limit. Timing by others waits only for the counted call, never
for imports and compilers. A program is started ahead, imports what takes long, and waits for the
next submission.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass

from kevin_env.judge.api import JudgeError, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.lease import Lease
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import Worker, asleep, ended_on_error
from kevin_env.outcome import NcuDigest
from kevin_env.profile import ncu
from kevin_env.profile.ncu import hot_lines
from kevin_env.profile.target import Target
from kevin_env.profile.tools import Ran, Runner, find_tool, refusal

NCU_SECONDS = 30.0
"""For the counted call and the tool's end. One launch takes 2 to 4 s on an H200.

Only a call that hangs or is replayed forever holds the device for all of it, once.
"""
START_SECONDS = 60.0
"""For the tool's start and torch's import: 2 to 3 s on an H200, more with cold files."""
PAGE_SECONDS = 10.0
"""For a table: 0.8 s on an H200."""
CALLS = 4
"""Construction and calls before the profiled one; each may take as long as a call in a verdict."""
NAME = "ncu"


@dataclass(frozen=True)
class Part:
    """What the program does between two points.

    Attributes:
        doing: In words.
        past: The point at which it begins.
        to: The one at which it ends; empty for the end of the program.
        seconds: After which the program is killed.
        lease: What is held of the device meanwhile.
    """

    doing: str
    past: str
    to: str
    seconds: float
    lease: Callable[[], AbstractContextManager[None]]


def parts_of(options: Options, lease: Lease) -> tuple[Part, ...]:
    """The parts of a program that was begun with `Target.holding`, in order."""
    load, calls = START_SECONDS + options.build_timeout, CALLS * options.limits().first
    return (
        Part("loading the submission", "ready", "loaded", load, nullcontext),
        Part("constructing and calling it", "loaded", "warm", calls, lease.shared),
        # counters of the memory count everyone's traffic
        Part("counting a call", "warm", "", NCU_SECONDS, lease.exclusive),
    )


def run_parts(target: Target, parts: Iterable[Part]) -> Ran | str:
    """Runs the parts of a program that was begun; how it ended, or why it did not finish.

    All of the candidate is stopped while a lease is waited for. A part that is late is killed
    before its lease is released, and so is a candidate that does not answer.

    Raises:
        CandidateError: if the candidate fails.
    """
    with ExitStack() as held:
        for part in parts:
            with asleep(target.worker):
                held.close()
                held.enter_context(part.lease())
            with ended_on_error(target.worker):
                ran = _run(target, part)
            if ran is None:
                continue
            if ran.late:
                target.worker.close()  # with whatever left the session that was killed
                return f"{part.doing} took longer than {part.seconds:g} s"
            if part.to:
                reason = refusal(ran.output)
                return f"{part.doing} ended early{reason and ': '}{reason}"
            return ran
    raise AssertionError("the last part has no end")


def _run(target: Target, part: Part) -> Ran | None:
    if part.to:
        return target.reach(NAME, part.seconds, part.past, part.to)
    return target.finish(NAME, part.seconds, part.past)


def read_tables(runner: Runner, tool: str, report: str, output: str) -> NcuDigest | str:
    """A digest of a report, or why there is none, within `PAGE_SECONDS`.

    Both tables are read at once.

    Args:
        runner: Where the report is.
        tool: Nsight Compute.
        report: Its path, without the suffix.
        output: What the tool printed while it wrote the report.
    """
    end = time.monotonic() + PAGE_SECONDS
    for page in ("raw", "source"):
        runner.begin(page, ncu.show(tool, f"{report}.ncu-rep", page), {})
    digest = ncu.digest(ncu.read_raw(runner.finish("raw", PAGE_SECONDS).output))
    if digest is None:
        return refusal(output) or "it saw no kernel in a call"
    source = runner.finish("source", max(end - time.monotonic(), 0.1))
    return digest.model_copy(update={"lines": hot_lines(source.output, digest.kernel)})


def take(bench: Bench, tool: str, options: Options) -> Target:
    """A candidate in which Nsight Compute has begun a program that will hold at `ready`."""
    with bench.profiler.beginning:  # what has begun is ready before one that begins now
        worker, missing = bench.profiler.take() or (None, None)
    if worker is not None:
        with suppress(CandidateError):
            worker.freeze(False)
            if missing == bench.profiler.missing_metrics:
                return Target(bench.candidates.watched(worker), options, bench.info.processors)
        bench.candidates.retire(worker)
    return _begun(bench.candidates.take_for_tools(), bench, tool, options)


def foresee(bench: Bench, options: Options) -> None:
    """Begins one when a digest will be requested, so that no submission waits for its start."""
    wanted = (
        options.profile == "ncu"
        and bench.device.type == "cuda"
        and not bench.profiler.refusals.get("ncu")
    )
    tool = find_tool("ncu") if wanted and not bench.profiler.has_begun else None
    if tool is not None:
        prepare(bench, tool, options)


def prepare(bench: Bench, tool: str, options: Options) -> None:
    """Begins one for the next request, in the background; it is stopped once it is ready."""
    if bench.profiler.beginning.acquire(blocking=False):
        try:
            threading.Thread(target=_prepare, args=(bench, tool, options), daemon=True).start()
        except RuntimeError:  # no thread more: the next one begins its own
            bench.profiler.beginning.release()


def report_of(target: Target) -> str:
    """Where the tool writes its report, without the ending."""
    return str(target.worker.folder / "report")


def _begun(worker: Worker, bench: Bench, tool: str, options: Options) -> Target:
    target = Target(worker, options, bench.info.processors)
    try:
        target.begin(
            NAME,
            ncu.command(tool, report_of(target), target.holding, bench.profiler.missing_metrics),
            {},
        )
    except CandidateError:
        bench.candidates.retire(worker)
        raise
    return target


def _prepare(bench: Bench, tool: str, options: Options) -> None:
    """Runs in a separate thread; the caller has acquired `bench.profiler.beginning`."""
    try:
        missing, worker = (
            frozenset(bench.profiler.missing_metrics),
            bench.candidates.take_for_tools(),
        )
        target = _begun(worker, bench, tool, options)
        with suppress(CandidateError):
            if target.reach(NAME, START_SECONDS, "", "ready") is None:
                worker.freeze(True)
                if not bench.profiler.keep(worker, missing):
                    bench.candidates.retire(worker)
                return
        bench.candidates.retire(worker)
    except (JudgeError, CandidateError):  # the judgement that needs one next raises it
        return
    finally:
        bench.profiler.beginning.release()
