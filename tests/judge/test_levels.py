"""The levels of the sandbox: what each protects, what it rests on, and attacks on each layer by
itself.
"""

import contextlib
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from judges import QUICK, Lent
from loaded import SECONDS, Submit

from kevin_env.judge.api import JudgeError, Options, Submission
from kevin_env.judge.handshake.memory import SharedRegion
from kevin_env.judge.judge import Judge
from kevin_env.judge.sandbox import cgroups, levels, seccomp
from kevin_env.judge.sandbox.attempts import PROTECTIONS
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.protection import find_held
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import Problem

STRONG: tuple[LevelName, ...] = ("root", "user", "container", "landlock")
KEEPS_RANKS = bool(
    int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16) >> 24 & 1
)
"""With CAP_SYS_RESOURCE, a rank that was given is the least that a process may choose."""
TRY = """
import ctypes, mmap, os, pathlib, resource, signal, socket, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, what):
    try:
        print("GOT THROUGH", name, repr(what())[:200])
    except OSError as error:
        print("refused", name, error)
def call(*what):
    if getattr(libc, what[0])(*what[1:]) < 0:
        raise OSError(ctypes.get_errno(), what[0])
"""


@pytest.fixture(
    scope="module",
    params=[STRONG[0], *(pytest.param(each, marks=pytest.mark.full) for each in STRONG[1:])],
)
def level(request: pytest.FixtureRequest) -> LevelName:
    return request.param


@pytest.fixture
def outsider() -> Iterator[int]:
    """A process of the same user outside the sandbox."""
    process = subprocess.Popen(["/bin/sleep", "60"], env={"KEVIN_TEST_KEY": "of-the-outsider"})
    yield process.pid
    process.kill()
    process.wait()


def refused(submit: Submit, code: str, times: int) -> str:
    ran = submit(TRY + code)
    assert ran.end is None, (ran.end, ran.closed().log)
    log = ran.closed().log
    assert (
        "GOT THROUGH" not in log
        and sum(line.startswith("refused") for line in log.splitlines()) == times
    ), log
    return log


SHARED = {
    "root": {"user"},
    "user": set(),
    "container": {"pid"},
    "landlock": {"ipc", "mnt", "net", "pid", "user", "uts"},
    "plain": {"ipc", "mnt", "net", "pid", "user", "uts"},
}
"""The namespaces that a candidate shares with the judge."""
LOOKS = """
import json, os, resource
limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
spaces = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "mnt", "net", "pid", "user", "uts")}
print(json.dumps([limits, spaces]))
class ModelNew: pass
"""


@pytest.mark.parametrize("most", [*STRONG, "plain"])
def test_a_level_gives_what_it_reports(
    servers: Callable[[LevelName], ForkServer], most: LevelName
) -> None:
    worker = Worker(servers(most), "cpu", 1 << 30)
    with contextlib.closing(worker):
        worker.ask("load", SECONDS, path=worker.path, code=LOOKS, entry="ModelNew")
    limits, spaces = json.loads(worker.log)
    ours = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in spaces}
    assert {name for name in spaces if spaces[name] == ours[name]} == SHARED[worker.level]
    # as many as the machine allows where that is less
    most_files, most_signals = (
        resource.getrlimit(each)[1] for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_SIGPENDING)
    )
    files = min(4096, most_files // 2) if most_files != resource.RLIM_INFINITY else 4096
    signals = min(256, most_signals) if most_signals != resource.RLIM_INFINITY else 256
    expected = {
        "CORE": 0, "FSIZE": 4 << 30, "NOFILE": files, "MSGQUEUE": 0, "NICE": 0, "RTPRIO": 0,
        "SIGPENDING": signals,
    }  # fmt: skip
    assert {name: limits[f"RLIMIT_{name}"] for name in expected} == {
        name: [value, value] for name, value in expected.items()
    }
    names = [each.name for each in levels.LEVELS]
    assert names.index(worker.level) >= names.index(most)
    held = find_held(partial(Worker, servers(most), "cpu"))
    if worker.level == "plain":
        assert held == {"network", "limits"}
    elif worker.level in ("root", "user"):
        assert held == set(PROTECTIONS)


def test_a_keeper_cannot_be_read_even_without_a_sandbox(
    servers: Callable[[LevelName], ForkServer],
) -> None:
    """For root its capabilities are enough; for an ordinary user only that it is not dumpable."""
    worker = Worker(servers("plain"), "cpu", 1 << 30)
    code = f"""{TRY}
for name in ("mem", "environ", "maps", "fd/0"):
    attempt(name, lambda: os.open(f"/proc/{worker.pid}/{{name}}", os.O_RDONLY))
class ModelNew: pass
"""
    with contextlib.closing(worker):
        worker.ask("load", SECONDS, path=worker.path, code=code, entry="ModelNew")
    assert worker.log.count("refused") == 4 and "GOT THROUGH" not in worker.log


def test_what_is_missing_can_be_refused_and_is_told(
    servers: Callable[[LevelName], ForkServer],
) -> None:
    judge = Judge("cpu", Lent(servers("plain")), QUICK)
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    source += "def get_inputs(): return [torch.randn(8, 64)]\ndef get_init_inputs(): return []\n"
    problem = Problem(id="x", name="x", source=source)
    submission = Submission(code="print('it ran')\n" + source.replace("Model(", "ModelNew("))
    with contextlib.closing(judge):
        with pytest.raises(JudgeError, match="does not enforce filesystem, processes"):
            judge.judge(problem, submission, Options(require_sandbox=True), lambda stage: None)
        told = judge.judge(problem, submission, Options(), lambda stage: None)
    assert told.outcome.category == "correct"
    assert told.sandbox.model_dump() == {
        "network": "enforced", "filesystem": "missing", "limits": "enforced", "processes": "missing"
    }  # fmt: skip


def test_no_socket_of_the_machine_can_be_reached(submit: Submit) -> None:
    kinds = (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
    path, abstract, datagrams = (socket.socket(socket.AF_UNIX, kind) for kind in kinds)
    with path, abstract, datagrams, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        names = (f"{folder}/path", f"\0kevin-{os.getpid()}", f"{folder}/datagrams")
        for bound, name in zip((path, abstract, datagrams), names, strict=True):
            bound.bind(name)
        path.listen()
        abstract.listen()
        code = f"""
names = {names}
def connect(name, kind):
    with socket.socket(socket.AF_UNIX, kind) as tried: tried.connect(name)
def pair():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", names[2])
for name, kind in zip(names, {tuple(map(int, kinds))}): attempt(name, lambda: connect(name, kind))
attempt("pair", pair)
"""
        refused(submit, code, 4)


def test_other_kinds_of_sockets_are_refused(submit: Submit) -> None:
    families = {"inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "alg": 38, "vsock": 40}
    code = "".join(
        f"attempt({name!r}, lambda: socket.socket({number}, 3))\n"
        for name, number in families.items()
    )
    log = refused(submit, code, len(families))
    assert log.count("[Errno 1]") == len(families), log


def test_a_process_outside_can_be_neither_signalled_nor_read_nor_slowed(
    submit: Submit, outsider: int
) -> None:
    for pid in (outsider, os.getpid()):
        code = f"""
P = {pid}
attempt("kill", lambda: os.kill(P, 0))
attempt("environ", lambda: open(f"/proc/{{P}}/environ", "rb").read())
attempt("memory", lambda: open(f"/proc/{{P}}/mem", "rb"))
attempt("maps", lambda: open(f"/proc/{{P}}/maps").read())
attempt("files", lambda: os.readlink(f"/proc/{{P}}/fd/0"))
attempt("root", lambda: os.listdir(f"/proc/{{P}}/root/"))
attempt("trace", lambda: call("ptrace", 16, P, 0, 0))
attempt("limits", lambda: resource.prlimit(P, resource.RLIMIT_NOFILE, (5, 5)))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, P, 19))
attempt("scheduler", lambda: os.sched_setscheduler(P, os.SCHED_IDLE, os.sched_param(0)))
attempt("cores", lambda: os.sched_setaffinity(P, {{0}}))
"""
        refused(submit, code, 11)
    assert os.getpriority(os.PRIO_PROCESS, outsider) == os.getpriority(os.PRIO_PROCESS, 0)


def test_the_keeper_keeps_its_limits_and_priority(submit: Submit) -> None:
    ran = submit("")
    code = f"""
P = {1 if ran.worker.level in ("root", "user") else ran.worker.pid}
attempt("limits", lambda: resource.prlimit(P, resource.RLIMIT_NOFILE, (5, 5)))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, P, 19))
attempt("user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
attempt("scheduler", lambda: os.sched_setscheduler(P, os.SCHED_IDLE, os.sched_param(0)))
attempt("cores", lambda: os.sched_setaffinity(P, {{0}}))
attempt("disk", lambda: call("syscall", {seccomp.NUMBERS[os.uname().machine]["ioprio_set"]}, 3, 0, 0))
attempt("better", lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1))
attempt("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
"""
    refused(submit, code, 8)


def test_what_a_program_does_to_itself_is_left(submit: Submit) -> None:
    code = """
os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1); resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
import threading, subprocess
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout)
os.kill(os.getpid(), 0); signal.raise_signal(signal.SIGCHLD)
"""
    ran = submit(TRY + code)
    assert ran.end is None and ran.closed().log.split() == ["thread", "child"]


def test_calls_are_refused_by_the_filter_itself(submit: Submit) -> None:
    numbers = {
        name: seccomp.NUMBERS[os.uname().machine].get(name)
        for name in (*seccomp.DENIED, *seccomp.LATER)
    }
    code = f"""
for name, number in {numbers}.items():
    if number is not None:
        libc.syscall(number, 0, 0, 0, 0, 0, 0)
        print("refused" if ctypes.get_errno() == {errno.EPERM} else "GOT THROUGH", name, ctypes.get_errno())
"""
    refused(submit, code, sum(number is not None for number in numbers.values()))


def test_the_kernel_does_nothing_later_and_tells_nothing_of_files_in_memory(submit: Submit) -> None:
    """By the names that libraries call them by: neither a number nor a table of ours decides what
    is tried.
    """
    code = """
page, out = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), ctypes.create_string_buffer(8)
where = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
attempt("timer", lambda: call("timer_create", time.CLOCK_MONOTONIC, None, out))
attempt("timerfd", lambda: call("timerfd_create", time.CLOCK_MONOTONIC, 0))
attempt("epoll", lambda: call("epoll_create", 1))
attempt("epoll1", lambda: call("epoll_create1", 0))
attempt("mincore", lambda: call("mincore", where, ctypes.c_size_t(mmap.PAGESIZE), out))
one, other = socket.socketpair()
attempt("descriptors", lambda: socket.send_fds(one, [b"x"], [0]))
attempt("message", lambda: one.sendmsg([b"x"]))
"""
    refused(submit, code, 7)


def test_new_namespaces_are_refused(submit: Submit) -> None:
    flags = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
    numbers = seccomp.NUMBERS[os.uname().machine]
    code = f"""
def clone(flag):
    pid = libc.syscall({numbers["clone"]}, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid < 0: raise OSError(ctypes.get_errno(), "clone")
for flag in {flags}: attempt(flag, lambda: clone(flag))
print(libc.syscall({numbers["clone3"]}, 0, 0), ctypes.get_errno())
"""
    assert f"-1 {errno.ENOSYS}" in refused(submit, code, len(flags))


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="these are ways round a filter on x86-64"
)
@pytest.mark.parametrize("how", ["x32", "i386"])
def test_other_kinds_of_system_calls_kill(submit: Submit, how: str) -> None:
    i386 = "b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3'"  # mov eax, 20 (getpid); int 0x80; ret
    code = f"""
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write({i386})
run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
pid = os.fork()
if pid == 0:
    libc.syscall(0x40000000 + 39) if {how!r} == "x32" else run()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    ran = submit(TRY + code)
    assert ran.end is None, ran.closed().log
    status = int(ran.closed().log)
    assert status == -signal.SIGSYS or (
        how == "i386" and status == -signal.SIGSEGV
    )  # no such calls in this kernel


def test_memory_that_belongs_to_no_process_is_refused(submit: Submit) -> None:
    code = f"""
attempt("memfd", lambda: os.memfd_create("x"))
attempt("secret", lambda: call("syscall", {seccomp.NUMBERS[os.uname().machine]["memfd_secret"]}, 0))
attempt("shared", lambda: mmap.mmap(-1, 4096))
attempt("zero", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096))
attempt("segment", lambda: call("shmget", 0, 4096, 0o1600))
attempt("queue", lambda: call("msgget", 0, 0o1600))
"""
    refused(submit, code, 6)


def test_files_in_memory_are_bounded(submit: Submit, level: LevelName) -> None:
    if level == "landlock":
        pytest.skip("its folder is on disk, and a file there stops at 4 GiB")
    code = """
import shutil
print(*(shutil.disk_usage(place).total >> 20 for place in (".", "/tmp", "/dev/shm")))
for place in ("/tmp", "/dev/shm", "."):
    handle = os.open(f"{place}/x", os.O_RDWR | os.O_CREAT)
    os.unlink(f"{place}/x")
    os.write(handle, bytes(1 << 20))
print(*(shutil.disk_usage(place).used >> 20 for place in (".", "/tmp", "/dev/shm")))
"""
    ran = submit(TRY + code, memory=1 << 30)
    assert ran.end is None and ran.closed().log.split() == ["2048"] * 3 + ["3"] * 3


def test_one_file_stops_at_four_gibibytes(submit: Submit) -> None:
    code = 'open("x", "w")\nattempt("x", lambda: os.truncate("x", 5 << 30))'
    assert "File too large" in refused(
        submit, f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{code}", 1
    )


@pytest.mark.parametrize("place", ["/dev/shm", "."])
def test_a_hog_of_files_is_stopped(submit: Submit, level: LevelName, place: str) -> None:
    if level == "landlock":
        pytest.skip("it writes to its own folder on disk only")
    hog = f"file = open('{place}/x', 'wb')\nfor _ in range(450): file.write(bytes(1 << 20))\ntime.sleep(9)"
    ran = submit(TRY + hog, memory=250 << 20)
    assert isinstance(ran.end, Ended) and ran.end.limit == "more than 250 MiB of memory"


@pytest.mark.skipif(not cgroups.homes(), reason="no control group can be made here")
def test_memory_that_no_process_shows_is_counted_where_there_is_a_group(submit: Submit) -> None:
    code = """
import socket
kept = [socket.socketpair() for _ in range(1500)]
for one, _ in kept:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    one.setblocking(False)
    try:
        while True: one.send(bytes(1 << 16))
    except BlockingIOError: pass
import time; time.sleep(9)
"""
    ran = submit(code, memory=250 << 20)
    assert isinstance(ran.end, Ended) and ran.end.limit == "more than 250 MiB of memory"


@pytest.mark.skipif(not cgroups.homes(), reason="no control group can be made here")
def test_its_group_goes_with_it(submit: Submit) -> None:
    ran = submit("")
    found = [home / ran.worker.folder.parent.name for home in cgroups.homes()]
    assert all(place.is_dir() for place in found)
    ran.closed()
    assert not any(place.exists() for place in found)


def test_memory_that_the_judge_lends_is_not_its_own(submit: Submit) -> None:
    code = """
import gc, threading, time
def touch():
    while not (found := [r for r in gc.get_objects() if type(r).__name__ == "Runtime" and "lent" in r.regions]):
        time.sleep(0.01)
    found[0].regions["lent"].bytes.fill_(1)
threading.Thread(target=touch, daemon=True).start()
"""
    ran, region = submit(code, memory=250 << 20), SharedRegion(400 << 20, torch.device("cpu"))
    region.bytes.zero_()  # as the judge does before it lends any
    ran.worker.share("lent", region, 5)
    time.sleep(1)
    ran.worker.freeze(True)
    region.close()


RANK = """
with contextlib.suppress(OSError): open("/proc/self/oom_score_adj", "w").write("0")
print(open("/proc/self/oom_score_adj").read())
"""


def test_it_dies_first_when_the_machine_runs_out_of_memory(submit: Submit) -> None:
    ran = submit(f"import contextlib{RANK}")
    assert ran.end is None and int(ran.closed().log) == 500


@pytest.mark.skipif(KEEPS_RANKS, reason="a process of this user cannot lower its rank")
def test_with_cuda_a_process_that_would_die_later_is_killed(
    servers: Callable[[LevelName], ForkServer], level: LevelName
) -> None:
    """CUDA writes to /proc/self."""
    worker = Worker(servers(level), "cuda:0", 1 << 30)
    code = f"import contextlib, time{RANK}time.sleep({SECONDS})\nclass ModelNew: pass\n"
    with contextlib.closing(worker), pytest.raises(Ended) as end:
        worker.ask("load", SECONDS, path=worker.path, code=code, entry="ModelNew")
    assert end.value.limit == "a lower oom_score_adj than it was given"
