"""The sandbox as an ordinary user has it, and as root has it without capabilities, as in a container."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ("test_sandbox.py", "test_levels.py", "test_readable.py")
SCRIPT = """
import os, sys, tempfile
from pathlib import Path
from kevin_env.judge.sandbox.system import LIBC, MNT_DETACH, MS_BIND, MS_PRIVATE, MS_REC
from kevin_env.judge.sandbox.system import check, drop_privileges, mount

who, *command = sys.argv[1:]
needed = [Path(place) for place in (sys.prefix, sys.base_prefix, os.getcwd())]
check("unshare", LIBC.unshare(0x20000))
mount(None, "/", None, MS_REC | MS_PRIVATE)
for parent in sorted({parent for place in needed for parent in place.parents}):
    if not parent.stat().st_mode & 1:  # such as /root: shows what is needed, and nothing beside it
        with tempfile.TemporaryDirectory() as whole:
            mount(str(parent), whole, None, MS_BIND | MS_REC)
            mount("tmpfs", str(parent), "tmpfs", 0, "mode=0755")
            for place in needed:
                if place.is_relative_to(parent):
                    place.mkdir(parents=True)
                    mount(f"{whole}/{place.relative_to(parent)}", str(place), None, MS_BIND)
            check("umount", LIBC.umount2(whole.encode(), MNT_DETACH))
if who == "user":
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
drop_privileges()
os.execv(command[0], command)
"""


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become another user")
@pytest.mark.parametrize("who", ["user", "root without capabilities"])
def test_all_of_it_holds(who: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        _run(who, folder)


def _run(who: str, folder: str) -> None:
    tests = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        f"--basetemp={folder}/inner", *(str(Path(__file__).with_name(name)) for name in TESTS),
    ]  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/home", "TMPDIR": folder,
        "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, who, *tests],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]
