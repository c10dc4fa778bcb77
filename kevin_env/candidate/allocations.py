"""Memory that the next allocations may get, filled with a pattern: what nobody writes can then be
recognised.
"""

import ctypes

import torch

from kevin_env.candidate import cuda

POISON = 0xFF
"""NaN in every floating-point type, of a kind that no GPU computes; -1 in every signed integer."""
_PERTURB = -6
"""M_PERTURB of glibc's malloc.h: malloc fills what it hands out with the complement of this
option's lowest byte.
"""


def poison(device: torch.device) -> None:
    """Fills what torch keeps for reuse on a GPU; on a CPU, whatever malloc hands out from now on."""
    if device.type == "cpu":
        ctypes.CDLL(None).mallopt(_PERTURB, 0x100 | (POISON ^ 0xFF))  # 0 would turn it off
        return
    torch.cuda.synchronize(device)
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "inactive" and segment["device"] == device.index:
                cuda.as_tensor(address, block["size"], device).fill_(POISON)
            address += block["size"]
    torch.cuda.synchronize(device)
