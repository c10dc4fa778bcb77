"""What makes a head start worthless on a GPU: until just before the word, a few words of every input are false.

Inputs are written some hundred microseconds before a candidate is told to begin, because the L2 is flushed in between.
Whoever watches that memory, from a thread or a waiting kernel, and begins at once computes on values that are not the
ones its output is compared for. False words are taken from elsewhere in the same input, so nothing tells them apart.
"""

from collections.abc import Sequence

import torch

from kevin_env.candidate.region import Region
from kevin_env.judge.memory import Block

WORDS = 4096
"""False four-byte words in each input set."""


class Veil:
    """The false words of one pass; made before its clock starts.

    Args:
        blocks: The inputs that will be written.
        generator: Of random numbers on their device, which nothing else draws from.
    """

    def __init__(self, blocks: Sequence[Block], generator: torch.Generator) -> None:
        places: list[torch.Tensor] = []
        false: list[torch.Tensor] = []
        true: list[torch.Tensor] = []
        for block in blocks:
            words = block.bytes.view(torch.int32)
            each = words.numel() // block.parts
            if not each:
                continue
            here, there = torch.randint(
                each, (2, block.parts, WORDS), device=words.device, generator=generator
            ) + torch.arange(0, words.numel(), each, device=words.device).unsqueeze(1)
            places.append(here.flatten() + block.start // words.element_size())
            false.append(words[there.flatten()])
            true.append(words[here.flatten()])
        self._places, self._false, self._true = (torch.cat(part) if part else None for part in (places, false, true))

    def cover(self, region: Region) -> None:
        """Makes the words false; only queued."""
        self._write(region, self._false)

    def lift(self, region: Region) -> None:
        """Makes them true; only queued."""
        self._write(region, self._true)

    def _write(self, region: Region, values: torch.Tensor | None) -> None:
        if values is not None:
            region.bytes.view(torch.int32)[self._places] = values
