"""Runs the lines of a Dockerfile without Docker, on a copy of this machine's files.

    python .ci/image.py [FOLDER]

FOLDER has a Dockerfile and what it copies; by default it is the image for OpenEnv, with a new
wheel. Lines see an overlay of this machine's root that is thrown away, and Docker's PATH. CMD is
started as USER and without a network, until HEALTHCHECK succeeds. Needs Linux, root and 6 GB of
disk. Not checked: the image that FROM names, with its system and its CUDA.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "kevin_env" / "integrations" / "openenv"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONTEXT = "/.context"
ENTER = Template("""
set -e
mkdir $scratch/up $scratch/work $scratch/root
mount -t overlay overlay -o lowerdir=/,upperdir=$scratch/up,workdir=$scratch/work $scratch/root
cd $scratch/root
mkdir .old .context
mount --bind $context .context
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
pivot_root . .old
umount -l .old
mount -t tmpfs tmpfs /tmp
cd /
exec $python $script --inside
""")


def main() -> int:
    """Makes the overlay, and runs this file in it; the exit code of the first line that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return Image().run(instructions(Path(CONTEXT, "Dockerfile").read_text()))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        context = options.folder or prepared(Path(scratch) / "context")
        words = {
            "scratch": scratch,
            "context": context.resolve(),
            "python": sys.executable,
            "script": Path(__file__).resolve(),
        }
        script = ENTER.substitute({key: shlex.quote(str(word)) for key, word in words.items()})
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private"]
        return subprocess.run([*unshare, "bash", "-c", script], check=False).returncode


def prepared(folder: Path) -> Path:
    """A copy of the folder for OpenEnv with a wheel, as its README says."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", "dist"))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True)
    return folder


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with what they say."""
    lines = [line for line in dockerfile.splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [
        (word, rest.strip())
        for word, _, rest in (line.partition(" ") for line in whole.splitlines())
        if word
    ]


class Image:
    """What instructions have said so far."""

    def __init__(self) -> None:
        self.environment = {**os.environ, "PATH": PATH, "HOME": "/root"}
        self.arguments: dict[str, str] = {}
        self.folder, self.user = "/", "0"
        self.command: list[str] = []
        self.check = "true"

    def run(self, steps: list[tuple[str, str]]) -> int:
        """Runs all, and then the command; the exit code of the first that fails."""
        for word, rest in steps:
            print(f"{word} {rest}", flush=True)
            if code := self.step(word, rest):
                print(f"failed with exit code {code}")
                return code
        return self.serve() if self.command else 0

    def step(self, word: str, rest: str) -> int:
        """Runs one instruction, and returns its exit code."""
        if word == "RUN":
            return self.shell(rest)
        said = re.sub(
            r"\$\{?(\w+)\}?", lambda name: {**self.arguments, **self.environment}[name[1]], rest
        )
        if word == "ARG":
            self.arguments |= [said.split("=", 1)]
        elif word == "ENV":
            self.environment |= dict(each.split("=", 1) for each in shlex.split(said))
        elif word == "WORKDIR":
            self.folder = said
            Path(said).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            *sources, target = said.split()
            return any(self.copy(Path(CONTEXT, source), target) for source in sources)
        elif word == "USER":
            self.user = said
        elif word == "HEALTHCHECK":
            self.check = said.partition("CMD ")[2]
        elif word == "CMD":
            self.command = json.loads(said)
        elif word not in ("FROM", "EXPOSE"):
            raise SystemExit(f"{word}: not known here")
        return 0

    def copy(self, source: Path, target: str) -> int:
        """Copies what is in a folder, or a file, as COPY does."""
        folder = source.is_dir() or target.endswith("/")
        made = target if folder else str(Path(target).parent)
        files = f"{source}/." if source.is_dir() else str(source)
        return self.shell(f"mkdir -p {made} && cp -r {files} {target}")

    def shell(self, line: str, *words: str) -> int:
        """Runs a line as RUN does, begun with `words`; its exit code."""
        environment = self.arguments | self.environment
        return subprocess.run(
            [*words, "sh", "-c", line], cwd=self.folder, env=environment, check=False
        ).returncode

    def serve(self) -> int:
        """Starts the command, and returns 0 as soon as its check succeeds."""
        user = f"setpriv --reuid={self.user} --regid={self.user} --clear-groups"
        code = self.shell(
            f"""
            ip link set lo up
            {user} {shlex.join(self.command)} & server=$!
            for _ in $(seq 60); do
                kill -0 $server || exit 1
                {user} sh -c {shlex.quote(self.check)} 2>/dev/null && exit 0
                sleep 2
            done
            exit 1
            """,
            "unshare",
            "--net",
        )
        print("HEALTHCHECK failed" if code else "HEALTHCHECK succeeded")
        return code


if __name__ == "__main__":
    sys.exit(main())
