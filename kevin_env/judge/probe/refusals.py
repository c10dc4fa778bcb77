"""Why NVIDIA's tools refuse to work on a machine, in words that help."""

import re

_KNOWN = (
    (
        "ERR_NVGPUCTRPERM",
        "the driver keeps the device's counters for administrators; load it with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        "LibraryNotLoaded",
        "the device's counters cannot be reached on this machine (LibraryNotLoaded, as under gVisor)",
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
"""A program of ours on which every tool works, if it works at all; its argument is the device."""


def refusal(text: str) -> str:
    """Why a tool did not work, from what it printed; empty when it does not say."""
    for sign, meaning in _KNOWN:
        if sign in text:
            return meaning
    found = _ERROR.search(text)
    return " ".join(found["text"].split()) if found else ""
