"""NVIDIA's command line tools: where they are, how they run, why they refuse. Imports no torch."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

ToolName = Literal["ncu", "compute-sanitizer", "cuobjdump"]
OUTPUT_LIMIT = 4 << 20
"""Characters that are read of a tool's output."""


@dataclass(frozen=True)
class Ran:
    """How a command ended.

    Attributes:
        code: Its exit code, negative for a signal; None when it was killed for being late, or did
            not start.
        output: What it printed, stdout and stderr together, the first `OUTPUT_LIMIT` bytes of it.
    """

    code: int | None
    output: str = ""

    @property
    def late(self) -> bool:
        """Whether it was killed because its time was over."""
        return self.code is None


@dataclass
class ProfilerState:
    """What is known of NVIDIA's tools on one device.

    Attributes:
        refusals: By tool that was tried on a trusted program: why it cannot inspect this device;
            empty if it can.
        missing_metrics: Metrics of Nsight Compute that this device does not have, by the same test.
    """

    refusals: dict[str, str] = field(default_factory=dict[str, str])
    missing_metrics: set[str] = field(default_factory=set[str])


class Runner(Protocol):
    """Runs commands where the submission is confined."""

    def run(self, command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Ran:
        """Runs a command to its end; after `seconds` it is killed, with all that it started.

        Args:
            command: The program and its arguments.
            seconds: Its limit.
            environment: Additional variables.
        """
        ...

    def read(self, path: str) -> str:
        """The beginning of a file as text; empty when it is not there."""
        ...


def find_tool(name: ToolName) -> str | None:
    """Where a tool is: on PATH, in CUDA, in Nsight Compute's folder, or in Triton's package."""
    path = shutil.which(name)
    if path:
        return path
    return next((str(place) for place in _places(name) if os.access(place, os.X_OK)), None)


def _places(name: ToolName) -> Iterator[Path]:
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home:
            yield Path(home) / "bin" / name
    if name == "ncu":
        yield from sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)
    package = find_spec("triton") if name == "cuobjdump" else None
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield Path(folder) / "backends" / "nvidia" / "bin" / name


_KNOWN = (
    (
        "ERR_NVGPUCTRPERM",
        "the driver restricts the device's counters to admins; "
        "load it with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        "LibraryNotLoaded",
        "the device's counters cannot be reached on this machine "
        "(LibraryNotLoaded, as under gVisor)",
    ),
    ("Device not supported", "the device is not supported here, as under gVisor"),
    ("driver resource was unavailable", "another profiler holds the device's counters"),
    ("No kernels were profiled", ""),
)
_ERROR = re.compile(
    r"^(?:==ERROR==|========= Error:|========= Internal)\s*(?P<text>.{1,200})", re.MULTILINE
)

TRUSTED = """
import sys
import torch
torch.cuda.set_device(sys.argv[1])
library = torch.cuda.cudart()
library.cudaProfilerStart()
torch.ones(1024, device="cuda").add_(1)
torch.cuda.synchronize()
library.cudaProfilerStop()
"""
"""A trusted program on which every working tool works; its argument is the device."""


def refusal(text: str) -> str:
    """Why a tool did not work, from its output; empty if that does not say."""
    for sign, meaning in _KNOWN:
        if sign in text:
            return meaning
    match = _ERROR.search(text)
    return " ".join(match["text"].split()) if match else ""
