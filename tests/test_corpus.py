import contextlib
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest
from corpus import ATTACKS, FOLDER, Entry, Judged, judged, read_corpus, read_entry
from in_process import InThisProcess

from kevin_env.judge import JudgePool, Options, Submission
from kevin_env.judge.capacity import GIB, Capacity
from kevin_env.judge.choice import gpu_present
from kevin_env.judge.flags import flag_name
from kevin_env.judge.judge import Judge
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.remote import STEADY

AT_ONCE = max(2, min(5, (os.cpu_count() or 1) // 3))
HASTY = {
    "contest.TURNS": {"cpu": (2, 2), "cuda": (2, 2)},
    "timing.STEADY": math.inf,
    "bench.capacity_of": lambda _: Capacity(slots=AT_ONCE, on_device=AT_ONCE, spares=AT_ONCE),
    "bench.host_memory": lambda: 4 * GIB,
}
"""What a judge does otherwise that is to be through soon: few calls are timed, and its memory is full soon."""
NOTES = {"gated_only", "burst_bounded", "above_roofline"}
"""The only flags that honest code may get: no burst can be verified where every call writes to the same buffer, and
none is believed far below the gated calls, which a slow launch makes longer; better algebra may beat the roofline."""


def parameters(*devices: str) -> list:
    return [pytest.param(entry, id=entry.name) for entry in read_corpus(*devices)]


@pytest.fixture(scope="module")
def hasty() -> Iterator[JudgePool]:
    """For honest code, whose times decide nothing here, and for what fills the memory that it may use."""
    with pytest.MonkeyPatch.context() as patch:
        for name, text in STEADY.items():
            patch.setenv(name, text)
        for name, value in HASTY.items():
            patch.setattr(f"kevin_env.judge.{name}", value)
        judge = Judge("cpu")
        yield InThisProcess(judge)
        judge.close()


@pytest.fixture(scope="module")
def endings(
    request: pytest.FixtureRequest, pool: LocalPool, hasty: JudgePool
) -> Iterator[dict[tuple[str, str], Future[Judged]]]:
    """How the files that are to be tested end, by name and device: judged beforehand, several at a time."""
    pools: SimpleQueue[LocalPool] = SimpleQueue()

    def run(entry: Entry, device: str) -> Judged:
        if device == "cpu" and (entry.path.parent.name == "honest" or entry.path.stem == "memory_bomb"):
            return judged(entry, device, hasty)
        free = pools.get()
        try:
            return judged(entry, device, free)
        finally:
            pools.put(free)

    with contextlib.ExitStack() as stack:
        pools.put(pool)
        for _ in range(AT_ONCE - 1):
            pools.put(stack.enter_context(LocalPool()))
        threads = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        wanted = [item for item in request.session.items if item.originalname in DEVICES]  # type: ignore[attr-defined]
        cases = [(item.callspec.params["entry"], DEVICES[item.originalname]) for item in wanted]  # type: ignore[attr-defined]
        here = [(entry, device) for entry, device in cases if device == "cpu" or gpu_present()]
        yield {(entry.name, device): threads.submit(run, entry, device) for entry, device in here}
        threads.shutdown(cancel_futures=True)


def check(entry: Entry, judged: Future[Judged]) -> None:
    outcome, log, flags = judged.result()
    assert entry.met_by(outcome), f"expected {entry.expect}: {outcome}\n{log}"
    assert "BREACH" not in log, log
    assert entry.path.parent.name != "honest" or NOTES.issuperset(map(flag_name, flags)), flags


@pytest.mark.parametrize("entry", parameters("cpu", "any"))
def test_a_submission_ends_as_it_says(entry: Entry, endings: dict) -> None:
    check(entry, endings[entry.name, "cpu"])


@pytest.mark.gpu
@pytest.mark.parametrize("entry", parameters("cuda", "any"))
def test_a_submission_ends_as_it_says_on_a_gpu(entry: Entry, endings: dict) -> None:
    check(entry, endings[entry.name, "cuda"])


DEVICES = {
    test_a_submission_ends_as_it_says.__name__: "cpu",
    test_a_submission_ends_as_it_says_on_a_gpu.__name__: "cuda",
}
"""Where the files of each of these tests are judged."""


def test_there_are_enough_files_of_each_kind() -> None:
    entries = read_corpus("cpu", "cuda", "any")
    assert len([e for e in entries if e.path.parent.name == "honest"]) >= 50
    hostile = [e for e in entries if e.path.parent.name == "hostile"]
    assert len(hostile) >= 200
    assert len([e for e in hostile if e.device != "cuda"]) >= 170
    assert all(e.expect in ("correct", "no gain") for e in entries if e.path.parent.name == "honest")
    assert all(e.expect != "correct" for e in entries if e.path.parent.name == "hostile")
    assert len(list(FOLDER.glob("ho*/*"))) == len(entries)


def test_every_class_of_attack_is_tried_and_every_attack_is_of_a_class() -> None:
    named = [name for names in ATTACKS.values() for name in names.split()]
    assert sorted(named) == sorted(path.stem for path in (FOLDER / "hostile").glob("*.py"))
    assert all(ATTACKS.values()) and len(ATTACKS) >= 90


def test_a_file_that_does_not_say_how_it_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        '"""Does something.\n\nproblem: softmax.py\ndevice: cpu\nrules: open\nexpect: correctness/vlues\n"""\n'
    )
    with pytest.raises(ValueError, match="vlues"):
        read_entry(path)


def test_a_flood_of_output_is_cut_and_cleaned(pool: LocalPool) -> None:
    _, log, _ = judged(read_entry(FOLDER / "hostile/output_flood.py"), "cpu", pool)
    assert 1000 < len(log) <= 16_000 and "\x1b" not in log


def test_a_daemon_ends_with_its_submission(pool: LocalPool) -> None:
    entry = read_entry(FOLDER / "hostile/daemon.py")
    seen = False
    verdict = pool.submit(entry.task, Submission(code=entry.code), Options(device="cpu", require_sandbox=True))
    while not verdict.done():
        if leftovers():
            seen = True
        time.sleep(0.02)
    assert seen, "the daemon never ran"
    assert not leftovers()


def leftovers() -> list[Path]:
    """Processes that call themselves as the daemon does."""
    found = []
    for name in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found += [name] if name.read_text().strip() == "kevin-leftover" else []
    return found
