"""The own root directory by itself, as on a kernel without Landlock: what is left of the machine,
and it is fixed.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from kevin_env.judge.sandbox import filesystem, levels
from kevin_env.judge.sandbox.readable import find_readable

SCRIPT = """
import os, socket, sys
from pathlib import Path
from kevin_env.judge.sandbox import filesystem, system
from kevin_env.judge.sandbox.readable import find_readable
system._MOUNT_SETATTR = int(sys.argv[2]) or system._MOUNT_SETATTR
if os.fork() != 0:  # what was imported may have started threads, and then there is no new user namespace
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
system.enter_namespaces(sys.argv[3] == "user", True)
if os.fork() != 0:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
folder = Path(sys.argv[1])
print(*map(str, filesystem.change_root(find_readable(), folder, 1 << 30, True)))
system.drop_privileges()
print(*sorted(os.listdir("/")))
print(*sorted(os.listdir("/dev")))
for place in ("/usr", "/etc", "/sys", "/", "/dev", sys.prefix):
    try:
        os.mkdir(f"{place}/kevin-escaped")
        print("WRITTEN", place)
    except OSError:
        pass
for place in ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/sys/kernel/mm/transparent_hugepage/enabled",
              "/etc/passwd", "/usr/bin/env"):
    try:
        os.open(place, os.O_WRONLY)
        print("OPENED", place)
    except OSError:
        pass
for place in Path("/proc").iterdir():
    if place.name.isdigit() or place.is_symlink() or os.statvfs(place).f_flag & os.ST_RDONLY:
        continue
    if place.is_dir() or place.stat().st_mode & 0o222:
        print("WRITABLE", place)
for place in ("..", "/..", "/proc/1/root/", "/proc/self/cwd/.."):
    print(*sorted(os.listdir(place)))
(folder / "mine").write_text("x")
Path("/tmp/mine").write_text("x")
print("done")
"""


@pytest.fixture(params=["root", "user"])
def how(request: pytest.FixtureRequest) -> str:
    if levels.find(find_readable(), request.param).name != request.param:
        pytest.skip("no such namespaces here")
    return request.param


@pytest.mark.parametrize("setattr_number", [0, 9999], ids=["mount_setattr", "before Linux 5.12"])
def test_nothing_of_the_machine_can_be_written_or_named(
    how: str, setattr_number: int, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(folder), str(setattr_number), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    scratch, top, dev, *rest = done.stdout.splitlines()
    assert scratch.split() == [str(folder), "/dev/shm", "/tmp"]
    hidden = {"home", "var", "mnt", "boot", "run", "srv", "media", "root"} - {
        Path(p).parts[1] for p in _known()
    }
    assert not hidden & set(top.split()) and {"usr", "proc", "dev", "tmp"} <= set(top.split())
    assert {"null", "urandom", "shm"} <= set(dev.split()) and not {
        "zero",
        "kmsg",
        "mem",
        "pts",
    } & set(dev.split())
    assert rest == [top] * 4 + ["done"]
    assert not list(folder.iterdir()) and not Path("/tmp/mine").exists()


def _known() -> list[str]:
    """Where this Python and these tests lie."""
    return [sys.prefix, sys.base_prefix, *(p for p in sys.path if Path(p).is_absolute())]


@pytest.mark.parametrize(
    ("gpu", "seen"),
    [(None, {"nvidia0", "nvidia1", "nvidia10"}), ("nvidia1", {"nvidia1"}), ("", set[str]())],
)
def test_a_candidate_sees_one_gpu_and_on_a_cpu_none(
    tmp_path: Path, gpu: str | None, seen: set[str]
) -> None:
    always = {"null", "urandom", "nvidiactl", "nvidia-uvm", "nvidia-caps"}
    for name in (*always, "nvidia0", "nvidia1", "nvidia10", "sda"):
        (tmp_path / name).touch()
    assert {path.name for path in filesystem.devices(gpu, tmp_path)} == always | seen
