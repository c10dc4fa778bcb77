"""Checks what this machine provides for judging kernels, and advises on what is missing."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kevin_env.judge.api import JudgeError, Judgement, JudgePool, Options, Submission
from kevin_env.outcome import NOISY, Frozen, Printable, interval_of
from kevin_env.problem import Problem, ProblemError, data_folder
from kevin_env.profile.tools import ToolName, find_tool

_PROBE = Problem(
    id="doctor",
    name="doctor",
    source="""import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
""",
)
_PROBE_ANSWER = Submission(code=_PROBE.source.replace("class Model(", "class ModelNew("))
_LEAST_FREE = 2 << 30
_SECONDS = 20
_PROGRAMS = {
    "nvcc": "CUDA kernels need the CUDA toolkit; Triton kernels do not",
    "g++": "C++ and CUDA kernels need it: install g++",
    "ninja": "C++ and CUDA kernels need it on PATH: pip install ninja, "
    "and activate its environment",
}
_TOOLS: dict[ToolName, str] = {
    "ncu": "profile=ncu needs Nsight Compute, which comes with the CUDA toolkit",
    "compute-sanitizer": "sanitize needs it; it comes with the CUDA toolkit",
}
"""Tools of optional profiles and sanitizer runs, for machines with a GPU."""
_NO_GPU = "nvidia-smi found no GPU: kernels are judged on the CPU, in C++ or interpreted Triton"
_NAMESPACES = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or run as root"
_SANDBOX = {
    "network": "needs a kernel with CONFIG_SECCOMP_FILTER on x86-64 or 64-bit Arm",
    "filesystem": f"{_NAMESPACES}; or use a kernel with Landlock (5.13 or later)",
    "limits": "needs a kernel with CONFIG_SECCOMP_FILTER on x86-64 or 64-bit Arm",
    "processes": f"{_NAMESPACES}; or use a kernel with Landlock 6 (6.12 or later)",
}


class Check(Frozen):
    """The result of one check."""

    name: str
    ok: bool
    found: Printable = ""
    advice: Printable = ""
    """What to do; empty if the check passed."""


def _check(name: str, found: str = "", advice: str = "") -> Check:
    return Check(name=name, ok=not advice, found=found, advice=advice)


def checks(pool: JudgePool) -> Iterator[Check]:
    """Runs the checks one by one. The last ones judge a small submission in a judge process."""
    yield _check("python", platform.python_version())
    gpu = _devices()
    yield gpu
    for name, advice in _PROGRAMS.items():
        yield _program(name, shutil.which(name), advice)
    if gpu.ok:
        for tool, advice in _TOOLS.items():
            yield _program(tool, find_tool(tool), advice)
    for name in ("problems", "prompts"):
        yield _folder(name)
    yield _scratch()
    yield from _judging(pool)


def show_check(console: Console, check: Check) -> None:
    """Prints a line, and a second one with advice; a terminal breaks them between words."""
    line = Text("ok       ", "green") if check.ok else Text("missing  ", "yellow")
    line.append(f"{check.name:<19} {check.found}", "")
    if check.advice:
        line.append(f"\n         {check.advice}", "")
    console.print(line, soft_wrap=not console.is_terminal)


def works(found: list[Check]) -> bool:
    """Whether submissions can be judged at all."""
    return all(check.ok for check in found if check.name == "judge")


def _devices() -> Check:
    """GPUs and driver, as nvidia-smi reports them."""
    query = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    found = "; ".join(_output(*query).splitlines())
    return _check("gpu", found, "" if found else _NO_GPU)


def _program(name: str, path: str | None, advice: str) -> Check:
    if path is None:
        return _check(name, advice=advice)
    lines = _output(path, "--version").splitlines()
    named = [line.strip() for line in lines if "release" in line or "ersion" in line]
    version = [*lines[:1], *named][-1:]  # the first line where none says that it is the version
    return _check(name, f"{path} ({version[0]})" if version else path)


def _folder(name: str) -> Check:
    try:
        return _check(name, str(data_folder(name)))
    except ProblemError as error:
        return _check(name, advice=str(error))


def _scratch() -> Check:
    """The folder where candidates build must be writable and have free space."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return _check("scratch", advice="no folder for temporary files is writable: set TMPDIR")
    named = os.environ.get("TMPDIR")
    if named and folder.resolve() != Path(named).resolve():
        return _check("scratch", str(folder), f"TMPDIR is not used: {named} cannot be written")
    free = shutil.disk_usage(folder).free
    more = f"builds need {_LEAST_FREE >> 30} GiB of free space: set TMPDIR"
    found = f"{folder}, {free / (1 << 30):.1f} GiB free"
    return _check("scratch", found, "" if free >= _LEAST_FREE else more)


def _judging(pool: JudgePool) -> Iterator[Check]:
    """Judges a correct answer to a small problem end to end."""
    try:
        judgement = pool.submit(_PROBE, _PROBE_ANSWER, Options()).result()
    except (JudgeError, ProblemError) as error:
        yield _check("judge", str(error), "no submission can be judged on this machine")
        return
    device, outcome = judgement.device, judgement.outcome
    where = f"in {judgement.seconds.total:.1f} s on {device.name} ({device.device})"
    rejected = f"a correct answer was rejected: {outcome.message}"
    advice = "" if outcome.category == "correct" else rejected
    yield _check("judge", f"{outcome.category} {where}", advice)
    if (interval := interval_of(outcome)) is not None:
        half = (interval[1] / interval[0]) ** 0.5 - 1
        found = f"a speedup is known to within {half:.0%} here"
        more = "; for less, close other programs or use a GPU" if half > NOISY else ""
        yield Check(name="times", ok=True, found=found + more)
    for name, version in device.versions.items():
        if name not in ("python", "compiler"):  # shown above
            yield Check(name=name, ok=bool(version), found=version)
    yield from _sandbox(judgement)


def _sandbox(judgement: Judgement) -> Iterator[Check]:
    """The mechanism of the sandbox on this machine, then each protection in this judgement."""
    made_of = _output(sys.executable, "-P", "-m", "kevin_env.judge.sandbox.levels")
    yield Check(name="sandbox level", ok=bool(made_of), found=made_of)
    for name, level in judgement.sandbox.model_dump().items():
        yield _check(f"sandbox {name}", level, "" if level == "enforced" else _SANDBOX[name])


def _output(*command: str) -> str:
    """The output of a program; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
