"""How a candidate ends, and what it can do to whoever waits for it: real processes, one attack a
test.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from loaded import MEMORY, SECONDS, Ran, Submit
from processes import descendants, outlived

from kevin_env.candidate.wire import LIMIT
from kevin_env.judge.api import JudgeError
from kevin_env.judge.handshake.memory import SharedRegion
from kevin_env.judge.workers import supervisor, supervisor_channel
from kevin_env.judge.workers.errors import Broken, Ended, Failed, TimedOut
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import LOG_HEAD, LOG_TAIL, Patience, Worker

CHANNEL = """
import os, socket
fd = next(int(f) for f in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{f}")
          and os.readlink(f"/proc/self/fd/{f}").startswith("socket:"))
channel = socket.socket(fileno=os.dup(fd))
"""
AT_ONCE = SECONDS / 4
"""Less than any time after which the judge stops waiting, and much more than forking one takes."""


def at_once(submit: Submit, codes: Iterable[str], **more: Any) -> list[Ran]:
    """Loads each into a candidate of its own, all at the same time."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda code: submit(code, **more), codes))


def test_what_it_raises_comes_back_with_its_frames(submit: Submit) -> None:
    end = submit("def f():\n    raise KeyError('x')\nf()").end
    assert isinstance(end, Failed)
    assert (end.failure.kind, end.failure.type) == ("exception", "KeyError")
    assert [(line, name) for line, name, _ in end.failure.frames] == [(3, "<module>"), (2, "f")]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("os._exit(3)", 3),
        ("os._exit(0)", 0),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
        (
            "import threading; threading.Thread(target=os._exit, args=(7,)).start(); time.sleep(99)",
            7,
        ),
    ],
)
def test_its_end_is_known_at_once_and_how(submit: Submit, code: str, expected: int) -> None:
    ran = submit(f"import os, signal, time\n{code}")
    assert isinstance(ran.end, Ended) and (ran.end.code, ran.end.limit) == (expected, None)
    assert ran.seconds < AT_ONCE


@pytest.mark.parametrize(
    "line", ["# -*- coding: latin-1 -*-", "#!python\n# vim: set fileencoding=cp1252 :"]
)
def test_a_source_that_names_another_encoding_means_its_characters(
    submit: Submit, line: str
) -> None:
    ran = submit(f"{line}\ntext = 'Größe'\nassert len(text) == 5, text")
    assert ran.end is None


def test_leaving_python_is_a_failure_of_its_own(submit: Submit) -> None:
    end = submit("import sys\nsys.exit(3)").end
    assert isinstance(end, Failed) and end.failure.kind == "exit"


def test_orders_to_stand_still_that_are_not_waited_for_are_obeyed_one_after_the_other(
    submit: Submit,
) -> None:
    counts = "import threading, time\ndef count():\n    while True:\n        print(end='x', flush=True)\n"
    counts += "        time.sleep(0.002)\n"
    worker = submit(f"{counts}threading.Thread(target=count, daemon=True).start()").worker
    for number in range(1, 8):
        worker.freeze(bool(number % 2), wait=False)
    worker.settle()
    deadline, written = time.monotonic() + SECONDS, -1
    while len(worker.log) != written:  # until the pipe is empty
        assert time.monotonic() < deadline
        written = len(worker.log)
        time.sleep(0.1)
    worker.freeze(False, wait=False)
    assert worker.ask("read", 5, path="/proc/self/stat", limit=10)["text"]


def test_who_dies_before_it_stands_still_is_told_of_to_whoever_waits_for_that(
    submit: Submit,
) -> None:
    worker = submit("").worker
    worker.freeze(True)
    worker.freeze(False, wait=False)
    _kill(worker)
    worker.freeze(True, wait=False)
    with pytest.raises(Ended) as found:
        worker.settle()
    assert found.value.code == -signal.SIGKILL
    with pytest.raises(Ended):
        worker.ask("prepare", 5, device="cpu", threads=1)


@pytest.mark.parametrize(
    "use",
    [
        lambda worker: worker.freeze(True),
        lambda worker: worker.ask("prepare", 5, device="cpu", threads=1),
    ],
    ids=["freeze", "ask"],
)
def test_a_death_between_two_orders_is_known_with_its_code(
    submit: Submit, use: Callable[[Worker], object]
) -> None:
    worker = submit("").worker
    _kill(worker)
    with pytest.raises(Ended) as found:
        use(worker)
    assert found.value.code == -signal.SIGKILL


def _kill(worker: Worker) -> None:
    (keeper,) = (each for each in descendants(os.getpid()) if each.pid == worker.pid)
    os.kill(min(descendants(worker.pid)).pid, signal.SIGKILL)
    assert not outlived({keeper}), "it ends when it has reported that the candidate did"


def test_sleeping_for_ever_times_out(submit: Submit) -> None:
    ran = submit("import time\ntime.sleep(1000)", seconds=0.3)
    assert isinstance(ran.end, TimedOut) and ran.end.seconds == 0.3
    assert 0.25 < ran.seconds < AT_ONCE


LIMITS = {
    ("cpu", "time.sleep(1)"): 0.6,
    ("cpu", "pass"): 2.5,
    ("cuda", "pass"): 0.6,
    ("cuda", "mmap.mmap(-1, 4096, 34).write(b'x')"): 2.5,
}


def test_a_process_that_only_waits_has_no_longer_than_a_usual_call(submit: Submit) -> None:
    """On a GPU it may spin while it waits for a kernel that never ends; one that compiles has page
    faults.
    """

    def limit(device: str, work: str) -> float:
        worker = submit("import time").worker
        worker.device = device
        code = f"import mmap, time\nwhile True:\n    {work}\nclass ModelNew: pass"
        start = time.monotonic()
        with pytest.raises(TimedOut) as found:
            worker.ask("load", Patience(2.5, 0.6), path=worker.path, code=code, entry="ModelNew")
        assert found.value.seconds <= time.monotonic() - start
        return found.value.seconds

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(limit, *zip(*LIMITS, strict=True))) == list(LIMITS.values())


@pytest.fixture
def busy() -> Iterator[None]:
    """Three times as many busy processes as there are processors."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(3 * (os.cpu_count() or 1))
    ]
    yield
    for each in loops:
        each.kill()
        each.wait()


def test_on_a_cpu_limits_count_processor_time_whatever_else_runs(
    submit: Submit, busy: None
) -> None:
    """Also that of programs that it starts."""

    def load(worker: Worker, seconds: float) -> None:
        spin = f"import time\nwhile time.process_time() < {seconds}: pass"
        code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-Sc', {spin!r}])"
        worker.ask(
            "load", Patience(1.5, 99), path=worker.path, code=f"{code}\nclass ModelNew: pass",
            entry="ModelNew",
        )  # fmt: skip

    start = time.monotonic()
    load(submit("").worker, 1.35)
    assert time.monotonic() - start > 1.5
    with pytest.raises(TimedOut):
        load(submit("").worker, 9)
    assert time.monotonic() - start < 60


def test_one_that_sleeps_until_its_limit_is_told_how_long(submit: Submit) -> None:
    worker = submit("").worker
    with pytest.raises(TimedOut) as found:
        worker.ask(
            "load", Patience(0.3, 99), path=worker.path, code="import time\ntime.sleep(99)",
            entry="ModelNew",
        )  # fmt: skip
    assert found.value.asleep and 2 <= found.value.seconds <= 9, "ten times the limit"


def test_stopping_itself_times_out_and_it_still_dies(submit: Submit) -> None:
    ran = submit("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", seconds=0.5)
    assert isinstance(ran.end, TimedOut)
    _close_at_once(ran)


def test_a_candidate_that_reads_nothing_holds_nobody_up(submit: Submit) -> None:
    worker = submit("").worker
    worker.freeze(True)
    start = time.monotonic()
    with pytest.raises(TimedOut):
        worker.ask("prepare", 0.5, device="x" * 5_000_000, threads=1)
    assert time.monotonic() - start < AT_ONCE


def test_orphans_that_have_ended_are_no_processes(submit: Submit) -> None:
    orphans = "os.system('for i in $(seq 30); do (: &); done')"
    ran = submit(
        f"import os, time\nfor _ in range(20):\n    {orphans}\n    time.sleep(0.1)\ntime.sleep(1)"
    )
    assert ran.end is None


def test_a_fork_bomb_is_stopped(submit: Submit) -> None:
    spawn = "os.posix_spawn('/bin/sleep', ['sleep', '99'], {})"
    ran = submit(f"import os, time\nfor _ in range(600): {spawn}\ntime.sleep(99)")
    assert (
        isinstance(ran.end, Ended)
        and ran.end.limit == f"more than {supervisor.MAX_PROCESSES} processes"
    )


HOGS = {
    "heap": "kept = bytearray(b'x') * (400 << 20)",
    "child": "if os.fork() == 0: kept = bytearray(b'x') * (400 << 20); time.sleep(99)",
    "children": "for _ in range(8): kept = os.fork() or bytearray(b'x') * (70 << 20)",
}


def test_memory_hogs_are_stopped(submit: Submit) -> None:
    codes = (f"import os, time\n{code}\ntime.sleep(99)" for code in HOGS.values())
    ran = dict(zip(HOGS, at_once(submit, codes, memory=250 << 20), strict=True))
    ends = {name: (type(each.end), getattr(each.end, "limit", None)) for name, each in ran.items()}
    assert ends == dict.fromkeys(HOGS, (Ended, "more than 250 MiB of memory"))


def test_what_forks_share_counts_once(submit: Submit) -> None:
    code = "kept = bytearray(b'x') * (100 << 20)\nfor _ in range(5):\n    if os.fork() == 0: time.sleep(99)\ntime.sleep(1)"
    assert submit(f"import os, time\n{code}", memory=400 << 20).end is None


def test_a_memory_hog_is_stopped_also_while_it_is_frozen_and_thawed_all_the_time(
    submit: Submit,
) -> None:
    hog = "def hog():\n    global kept\n    kept = bytearray(b'x') * (400 << 20)\n"
    ran = submit(f"import threading\n{hog}threading.Timer(0.1, hog).start()", memory=250 << 20)
    deadline = time.monotonic() + 60
    with pytest.raises(Ended) as found:
        while time.monotonic() < deadline:
            ran.worker.freeze(True)
            ran.worker.freeze(False)
            time.sleep(0.01)
    assert found.value.limit == "more than 250 MiB of memory"


def test_of_endless_output_the_beginning_and_the_end_are_kept_and_it_blocks_nothing(
    submit: Submit,
) -> None:
    code = "import os, sys\nprint('first')\nfor _ in range(5000): sys.stdout.write('x' * 10_000)\n"
    ran = submit(f"{code}print('last words', flush=True)\nos.abort()")
    assert isinstance(ran.end, Ended)
    log = ran.closed().log
    assert log.startswith("first\nxxx") and log.endswith("xxxlast words\n")
    left_out = 5000 * 10_000 + len("first\nlast words\n") - LOG_HEAD - LOG_TAIL
    assert f"\n... {left_out} bytes left out ...\n" in log and len(log) < LOG_HEAD + LOG_TAIL + 100


THREAD = """
libc, start = ctypes.CDLL(None), ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
thread = ctypes.c_ulong()
run = ctypes.byref(thread), None, ctypes.cast(libc.strlen, ctypes.c_void_p), None
libc.pthread_create(*run), libc.pthread_join(thread, None)
"""


NO_HANDLER = "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\ntime.sleep(99)"
LINES = {
    "fault": ("def f():\n    ctypes.string_at(0)\nf()", 3),
    "in a thread": (THREAD, 6),
    "exit": ("os._exit(3)", None),
    "loop": ("while True: pass", 2),
    "native hang": ("ctypes.CDLL(None).pause()", 2),
    "no handler": (NO_HANDLER, None),
}


def test_the_line_of_a_crash_or_a_hang_is_known(submit: Submit) -> None:
    codes = (f"import ctypes, os, sys, time\n{code}" for code, _ in LINES.values())
    ran = dict(zip(LINES, at_once(submit, codes, seconds=2.0), strict=True))
    expected = {name: line for name, (_, line) in LINES.items()}
    assert {name: each.worker.faults.line() for name, each in ran.items()} == expected
    closed = {name: (each.closed().worker.faults.line(), each.log) for name, each in ran.items()}
    assert closed == {name: (line, "") for name, line in expected.items()}


def test_a_false_report_is_a_number_and_no_more(submit: Submit) -> None:
    forged = r"""import os, time
for fd in range(3, 200):
    try:
        if "pipe" in os.readlink(f"/proc/self/fd/{fd}"):
            while True:
                os.write(fd, b'File "' + __file__.encode() + b'", line 99999999 in f\\n' + b'x' * 60_000)
    except OSError:
        pass
os._exit(5)
"""
    ran = submit(forged)
    assert isinstance(ran.end, Ended) and ran.end.code == 5
    assert ran.worker.faults.line() is None


def test_output_of_children_and_of_c_is_in_the_log(submit: Submit) -> None:
    ran = submit(
        "import ctypes, os\nctypes.CDLL(None).puts(b'from c')\nos.system('echo from a child')"
    )
    assert sorted(ran.closed().log.splitlines()) == ["from a child", "from c"]


@pytest.mark.parametrize(
    "code", ["sys.stdout.close()", "os.close(1); os.close(2)", "sys.stdout = None"]
)
def test_without_stdout_it_goes_on(submit: Submit, code: str) -> None:
    assert submit(f"import os, sys\n{code}").end is None


def test_closing_every_descriptor_breaks_its_channel(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_channel, "SECONDS", 1.0)
    ran = submit("import os, time\nos.closerange(0, 4096)\ntime.sleep(99)")
    assert isinstance(ran.end, Broken)


@pytest.mark.parametrize(
    "code",
    [
        "channel.sendall(b'garbage that is no frame at all')",
        "channel.sendall((100_000_000).to_bytes(4, 'big')); channel.sendall(b'x' * 100_000_000)",
        f"channel.sendall(({LIMIT} - 4).to_bytes(4, 'big') + b'[' * ({LIMIT} - 4))",
        'body = b\'{"failure": {"kind": "x"}}\'; channel.sendall(len(body).to_bytes(4, \'big\') + body)',
    ],
    ids=["garbage", "100 MB", "nested", "half a failure"],
)
def test_what_no_honest_candidate_sends_is_broken(submit: Submit, code: str) -> None:
    ran = submit(f"{CHANNEL}{code}")
    assert isinstance(ran.end, Broken)


def test_answering_twice_is_broken_at_the_next_order(submit: Submit) -> None:
    ran = submit(f"{CHANNEL}channel.sendall((2).to_bytes(4, 'big') + b'{{}}')")
    assert ran.end is None
    assert ran.worker.answers_within(SECONDS)  # its true answer, which nobody waits for any more
    with pytest.raises(Broken, match="without an order"):
        ran.worker.ask("prepare", 5, device="cpu", threads=1)


def test_descriptors_that_it_sends_fill_no_table_of_ours(submit: Submit) -> None:
    before = _open_files()
    code = f"""{CHANNEL}
fds = [os.open("/dev/null", 0) for _ in range(8)]
body = b"{{" + b" " * 50 + b"}}"
for byte in len(body).to_bytes(4, "big") + body:
    try:
        socket.send_fds(channel, [bytes([byte])], fds)
    except PermissionError:  # where the kernel has filters
        channel.sendall(bytes([byte]))
"""
    ran = submit(code)
    assert ran.end is None
    assert _open_files() < before + 10


def test_a_keeper_that_was_late_is_asked_nothing_more(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its late answer would be taken for that to the next order."""
    worker = submit("").worker
    monkeypatch.setattr(supervisor_channel, "SECONDS", 0.5)
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(Ended):
        worker.freeze(True)
    os.kill(worker.pid, signal.SIGCONT)
    with pytest.raises(Ended):
        worker.freeze(False)


def test_freezing_stops_all_of_it_and_thawing_lets_it_go_on(submit: Submit) -> None:
    code = """
import gc, os, threading, time
def count():
    while not (found := [r for r in gc.get_objects() if type(r).__name__ == "Runtime" and "counter" in r.regions]):
        time.sleep(0.01)
    memory, at = found[0].regions["counter"].bytes, int(os.fork() == 0)
    while True: memory[at] += 1
threading.Thread(target=count, daemon=True).start()
"""
    ran, region = submit(code), SharedRegion(4096, torch.device("cpu"))
    region.bytes.zero_()
    ran.worker.share("counter", region, 5)
    for _ in range(5):
        before, deadline = region.bytes[:2].tolist(), time.monotonic() + SECONDS
        while any(now == then for now, then in zip(region.bytes[:2].tolist(), before, strict=True)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        ran.worker.freeze(True)
        frozen = []
        while frozen != (
            frozen := region.bytes[:2].tolist()
        ):  # a thread stops once it is scheduled
            assert time.monotonic() < deadline
            time.sleep(0.1)
        ran.worker.freeze(False)
    region.close()


def test_a_program_that_starts_others_all_the_time_is_stopped(submit: Submit) -> None:
    loop = "if os.fork() == 0:\n    while True: subprocess.run(['/bin/echo', '-n', 'x'])"
    worker = submit(f"import os, subprocess\n{loop}").worker
    for _ in range(20):
        worker.freeze(True)
        deadline, written = time.monotonic() + SECONDS, ""
        while written != (written := worker.log):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        worker.freeze(False)
        while worker.log == written:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _processes(of: Worker) -> dict[str, int]:
    """Processor time in ticks of each process whose working folder is the candidate's."""
    found: dict[str, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink() == of.folder:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                found[place.name] = int(fields[11]) + int(fields[12])
        except OSError:  # it ended while we looked
            continue
    return found


def test_a_frozen_candidate_still_ends_with_its_worker(submit: Submit) -> None:
    ran = submit("import threading, time\nthreading.Thread(target=time.sleep, args=(999,)).start()")
    ran.worker.freeze(True)
    _close_at_once(ran)


def _close_at_once(ran: Ran) -> None:
    start = time.monotonic()
    ran.closed()
    assert time.monotonic() - start < AT_ONCE


def test_one_that_is_dismissed_ends_while_nobody_waits_for_it(submit: Submit) -> None:
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(600)\n    os._exit(0)"
    worker = submit(code).worker
    assert len(_processes(worker)) == 2
    worker.dismiss()
    deadline = time.monotonic() + 30
    while _processes(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _processes(worker)
    with pytest.raises(Ended):
        worker.freeze(True)
    assert not worker.shot


def test_closing_leaves_no_process_and_no_descriptor(server: ForkServer) -> None:
    before, processes = _open_files(), _children_of(server)
    for _ in range(3):
        Worker(server, "cpu", 4 << 30).close()
    deadline = time.monotonic() + SECONDS
    while (
        _children_of(server) - processes or _open_files() > before
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _children_of(server) - processes and _open_files() <= before


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _children_of(server: ForkServer) -> set[str]:
    pid = server._process.pid
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_a_worker_dies_with_a_judge_that_is_gone(submit: Submit) -> None:
    ran = submit("import time")
    ran.worker._supervisor._channel.sock.close()  # what the end of the judge's process does
    deadline = time.monotonic() + SECONDS
    while _processes(ran.worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _processes(ran.worker)


def test_its_temporary_files_go_to_its_own_folder_whatever_the_fork_server_remembers(
    submit: Submit,
) -> None:
    ran = submit("import tempfile; print('IN', tempfile.mkdtemp())")
    assert f"IN {ran.worker.folder}/" in ran.closed().log


def test_nothing_survives_into_the_next_candidate(submit: Submit) -> None:
    first = submit(
        "import builtins, os, sys\nbuiltins.left = 1\nos.environ['LEFT'] = '1'\nimport torch\ntorch.left = 1"
    )
    assert first.end is None
    first.closed()
    ran = submit(
        "import builtins, os, torch\nprint(hasattr(builtins, 'left'), 'LEFT' in os.environ, hasattr(torch, 'left'))"
    )
    assert ran.closed().log == "False False False\n"


def test_one_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForkServer("cpu")
    server.close()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = _open_files()
    with pytest.raises(JudgeError, match="fork server did not start"):
        Worker(server, "cpu", 1 << 30)
    assert _open_files() <= before and not list(tmp_path.iterdir())


def test_several_threads_may_close_one_candidate(server: ForkServer) -> None:
    """Such as that of a submission, and that which ends the judge."""
    for _ in range(5):
        worker = Worker(server, "cpu", MEMORY)
        with ThreadPoolExecutor() as threads:
            for closing in [threads.submit(worker.close) for _ in range(3)]:
                closing.result()
        assert not worker.folder.exists()
