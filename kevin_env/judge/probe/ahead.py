"""A program under Nsight Compute that has imported what takes long, and waits for the next
submission to look into.
"""

import threading
from contextlib import suppress

from kevin_env.judge.api import JudgeError, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.probe import ncu
from kevin_env.judge.probe.counting import NAME, START_SECONDS
from kevin_env.judge.probe.target import Target
from kevin_env.judge.probe.tools import find_tool
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.judge.workers.worker import Worker


def take(bench: Bench, tool: str, options: Options) -> Target:
    """A candidate in which Nsight Compute has begun a program that will hold at `ready`; it has run
    nothing else.
    """
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
    """Begins one when a digest is first going to be asked for, so that no submission waits for the
    tool's start.
    """
    wanted = (
        options.profile == "ncu"
        and bench.device.type == "cuda"
        and not bench.profiler.refusals.get("ncu")
    )
    tool = find_tool("ncu") if wanted and not bench.profiler.has_begun else None
    if tool is not None:
        prepare(bench, tool, options)


def prepare(bench: Bench, tool: str, options: Options) -> None:
    """Begins one for the next who asks. Nobody waits for it, and it stands still once it is ready."""
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
    """In a thread of its own, with `bench.profiler.beginning` held for it."""
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
    except (
        JudgeError,
        CandidateError,
    ):  # whoever needs one next meets the error where it can be raised
        return
    finally:
        bench.profiler.beginning.release()
