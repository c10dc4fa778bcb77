"""What a submission tries against the machine it runs on: one attack a test, which says itself if
it got through.

Every attack is tried at every level of the sandbox that this machine can be made to use.
"""

import os
import socket
import subprocess
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from judges import SECRET
from loaded import Submit

import kevin_env
from kevin_env.judge.sandbox.attempts import PROTECTIONS
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.protection import find_held
from kevin_env.judge.workers.worker import Worker

LEVELS: tuple[LevelName, ...] = ("root", "user", "container", "landlock")
PACKAGE = Path(kevin_env.__file__).parent
TRY = """
def attempt(what):
    try:
        print("GOT THROUGH", repr(what())[:200])
    except OSError as error:
        print("refused", error)
import os, pathlib, signal, socket, sys, time
"""


@pytest.fixture(
    scope="module",
    params=[LEVELS[0], *(pytest.param(each, marks=pytest.mark.full) for each in LEVELS[1:])],
)
def level(request: pytest.FixtureRequest) -> LevelName:
    return request.param


def attempted(submit: Submit, code: str, times: int = 1) -> str:
    """What the attacks in `code` print, of which none may get through and so many are refused."""
    ran = submit(TRY + code)
    assert ran.end is None, ran.closed().log
    log = ran.closed().log
    assert "GOT THROUGH" not in log and log.count("refused") >= times, log
    return log


def in_its_own_tmp(path: str, level: LevelName) -> bool:
    """Whether a candidate has a file system of its own there, as it has where a checkout lies in
    /tmp.
    """
    return Path(path).is_relative_to("/tmp") and level != "landlock"


def test_every_protection_holds_where_the_kernel_gives_namespaces(server: ForkServer) -> None:
    user = [] if os.geteuid() == 0 else ["--user"]
    if subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", *user, "true"], check=False
    ).returncode:
        pytest.skip("no namespaces here")
    assert find_held(partial(Worker, server, "cpu")) == set(PROTECTIONS)


SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/hostname", "/root/.bashrc")
OURS = (PACKAGE / "judge/judge.py", PACKAGE / "outcome.py", PACKAGE.parent / "pyproject.toml")
KERNEL = ("/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/kcore", "/proc/kmsg")


def test_it_reads_no_file_of_ours(submit: Submit) -> None:
    paths = [*SYSTEM, *map(str, OURS), *KERNEL]
    code = f"for path in {paths}: attempt(lambda: open(path, 'rb').read(1))"
    attempted(submit, code, len(paths))


def test_it_lists_no_folder_of_ours(submit: Submit, level: LevelName) -> None:
    folders = [*map(str, (Path.home(), PACKAGE.parent, PACKAGE / "judge")), "/home", "/var", "/"]
    # a checkout in /tmp has its place in the candidate's own /tmp, with what is bound there
    tried = [folder for folder in folders if not in_its_own_tmp(folder, level)]
    attempted(submit, f"for path in {tried}: attempt(lambda: os.listdir(path))", len(tried))


def test_it_finds_no_secret_in_any_environment(submit: Submit) -> None:
    code = """
attempt(lambda: pathlib.Path("/proc/1/environ").read_bytes())
print(dict(os.environ), pathlib.Path("/proc/self/environ").read_bytes())
"""
    log = attempted(submit, code)
    assert "PATH" in log and SECRET not in log and "KEVIN_TEST_SECRET" not in log


def test_it_sees_no_process_but_its_own(submit: Submit, level: LevelName) -> None:
    if level not in ("root", "user"):
        pytest.skip("it may see others, and do nothing to them")
    ran = submit(
        "import os\nprint(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getpid())"
    ).closed()
    assert (
        ran.log.split("]")[0].strip("[").split(", ")[0] == "1" and len(ran.log.split(",")) <= 3
    ), ran.log


def test_it_writes_nothing_outside_its_own_folders(submit: Submit, level: LevelName) -> None:
    folders = [
        "/usr/lib",
        "/etc",
        "/var/tmp",
        str(Path.home()),
        str(PACKAGE),
        "/opt",
        "/sys",
        "/dev",
    ]
    names = [f"{folder}/escaped-{uuid.uuid4().hex}" for folder in folders]
    own = [name for name in names if in_its_own_tmp(name, level)]
    tried = [name for name in names if name not in own]
    code = "attempt(lambda: open(path, 'w')), attempt(lambda: os.mkdir(path))"
    attempted(submit, f"for path in {tried}: {code}", 2 * len(tried))
    submit(f"{TRY}for path in {own}: {code}").closed()
    assert not any(Path(name).exists() for name in names)


def test_it_opens_nothing_of_the_machine_for_writing(submit: Submit) -> None:
    settings = ("kernel/core_pattern", "vm/drop_caches", "kernel/hostname")
    paths = [*(f"/proc/sys/{name}" for name in settings), "/proc/sysrq-trigger"]
    paths += ["/proc/1/oom_score_adj", "/proc/1/comm", "/usr/bin/env", "/etc/passwd", os.__file__]
    code = f"for path in {paths}: attempt(lambda: os.open(path, os.O_WRONLY))"
    attempted(submit, code, len(paths))


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_what_it_writes_to_shared_folders_nobody_sees(
    submit: Submit, level: LevelName, place: str
) -> None:
    name = f"{place}/kevin-test-{uuid.uuid4().hex}"
    code = f"try:\n    open({name!r}, 'w').write('x')\n    print('written')\nexcept PermissionError:\n    print('refused')"
    done = "refused" if level == "landlock" else "written"
    ran = submit(code)
    assert ran.end is None and not Path(name).exists()
    other = submit(f"import os\nprint(os.path.exists({name!r}))")
    assert ran.closed().log == f"{done}\n" and other.closed().log == "False\n"


def test_its_folder_goes_with_it(submit: Submit) -> None:
    ran = submit("open('left_behind', 'w').write('x')")
    assert ran.end is None
    ran.closed()
    assert not ran.worker.folder.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "::1"])
def test_it_reaches_no_network(submit: Submit, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        attempted(submit, f"attempt(lambda: socket.create_connection(({host!r}, {port}), 2))")


def test_it_gains_no_privilege(submit: Submit) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*what):
    if libc.__getattr__(what[0])(*what[1:]) < 0:
        raise OSError(ctypes.get_errno(), what[0])
attempt(lambda: call("unshare", 0x20000))
attempt(lambda: call("mount", b"tmpfs", b"/mnt", b"tmpfs", 0, None))
attempt(lambda: call("umount2", b"/proc", 2))
attempt(lambda: call("ptrace", 16, 1, 0, 0))
attempt(lambda: call("chroot", b"/tmp"))
attempt(lambda: os.setgid(12345))
print(pathlib.Path("/proc/self/status").read_text())
"""
    log = attempted(submit, code)
    assert (
        "CapEff:\t0000000000000000" in log
        and "CapPrm:\t0000000000000000" in log
        and "NoNewPrivs:\t1" in log
    )


def test_killing_everything_reaches_nothing_outside(submit: Submit) -> None:
    neighbour = submit("")
    code = "import os, signal\nif os.fork() == 0: time.sleep(99)\nos.kill(-1, signal.SIGKILL)\nprint('still here')"
    ran = submit(f"import time\n{code}")
    assert ran.end is None and ran.closed().log == "still here\n"
    neighbour.worker.ask("prepare", 5, device="cpu", threads=1)


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
def test_the_keeper_cannot_be_signalled(submit: Submit, number: str) -> None:
    ran = submit(
        f"import os, signal\ntry:\n    os.kill(1, signal.{number})\nexcept OSError:\n    pass"
    )
    assert ran.end is None
    ran.worker.freeze(True)
    ran.worker.freeze(False)


def test_a_detached_grandchild_dies_with_it(submit: Submit, tmp_path: Path) -> None:
    code = """
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import ctypes; ctypes.CDLL(None).prctl(15, b"kevin-orphan", 0, 0, 0)
        os.write(writer, b"x")
        time.sleep(1000)
    os._exit(0)
os.read(reader, 1)
"""
    ran = submit(code)
    assert ran.end is None and _named("kevin-orphan")
    ran.closed()
    assert not _named("kevin-orphan")


def _named(name: str) -> list[str]:
    """Processes of this name that run; one that is dead may not have been reaped yet."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while we looked
            before, _, after = place.read_text().rpartition(") ")
            found += [place.parent.name] if before.endswith(f"({name}") and after[0] != "Z" else []
    return found


def test_the_machines_clock_and_name_stay(submit: Submit) -> None:
    attempted(
        submit,
        "attempt(lambda: time.clock_settime(0, 1e9))\nattempt(lambda: socket.sethostname('x'))",
    )


def test_a_candidate_reads_nothing_of_another(submit: Submit) -> None:
    first = submit("open('mine', 'w').write('x')")
    attempted(submit, f"attempt(lambda: os.listdir({str(first.worker.folder)!r}))")


def test_it_never_gets_files_that_are_open_here(submit: Submit) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    look = "print(os.readlink(fd.path) if os.path.islink(fd.path) else '')"
    ran = submit(f"import os\nfor fd in os.scandir('/proc/self/fd'): {look}")
    links = ran.closed().log.split()
    assert sum("socket:" in link for link in links) == 1  # its channel
    assert str(Path(f"/proc/self/fd/{writer}").readlink()) not in links
    os.close(reader)
    os.close(writer)
