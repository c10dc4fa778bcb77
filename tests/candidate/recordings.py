"""Records submissions as a candidate does, without a GPU. Started by `test_replay`, on its own.

Reads JSON from stdin, submissions by name, and prints what `precompile` answers for each. All of
them have the weights `w`, and `x` of the same shape as their input.
"""

import json
import socket
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from triton.runtime.cache import triton_key

from kevin_env.candidate import fake_cuda, precompile, tree
from kevin_env.candidate.region import spec_of
from kevin_env.candidate.runtime import Runtime
from kevin_env.candidate.wire import Channel
from kevin_env.rules.recorded import recording

PROPERTIES = SimpleNamespace(
    name="a GPU", major=9, minor=0, multi_processor_count=132, warp_size=32,
    shared_memory_per_block_optin=232448,
)  # fmt: skip
SIZE = 1000
SECONDS = 120.0


def case(size: int = SIZE) -> dict[str, Any]:
    """What the judge would send."""
    init, _ = tree.flatten([[], {}])
    inputs, tensors = tree.flatten([torch.empty(size, device="meta")])
    spec = spec_of(tensors[0], 0)
    return {
        "construct": {
            "init": init, "tensors": [], "state": {"w": spec}, "parameters": ["w"], "seed": 0,
            "compiled": False, "precision": "ieee", "record": recording("kernel"),
        },
        "stage": {"inputs": inputs, "specs": [spec]},
    }  # fmt: skip


def recorded(code: str) -> dict[str, Any]:
    """The answer for a submission."""
    with tempfile.TemporaryDirectory() as folder:
        channel, _ = socket.socketpair()
        runtime = Runtime(Channel(channel))
        runtime.load(str(Path(folder, "submission.py")), code, "ModelNew")
        runtime.device = torch.device("cuda", 0)
        return precompile.precompile(runtime, {"main": case()}, vars(PROPERTIES), SECONDS)


if __name__ == "__main__":
    fake_cuda.warm()
    triton_key()  # reads Triton's libraries for a second: once, instead of in each fork
    print(json.dumps({name: recorded(code) for name, code in json.load(sys.stdin).items()}))
