import os
from typing import Any

import pytest
import torch

from kevin_env.candidate.region import Region, map_file, spec_of


def region(size: int = 4096) -> Region:
    return Region(torch.zeros(size, dtype=torch.uint8))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 5), torch.randn(4, 3, 2).permute(2, 0, 1), torch.randn(8, 8)[::2, 1::3],
        torch.randn(4, 1).expand(4, 6), torch.tensor(3.5), torch.randn(4, 0, 2),
        torch.complex(torch.randn(3), torch.randn(3)), torch.randn(4).bfloat16(),
    ],
    ids=["dense", "permuted", "strided", "expanded", "scalar", "empty", "complex", "bf16"],
)  # fmt: skip
def test_a_tensor_of_any_layout_lies_in_a_region(tensor: torch.Tensor) -> None:
    memory = region()
    spec = spec_of(tensor, 512)
    place = memory.tensor(spec)
    assert (place.shape, place.stride(), place.dtype) == (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
    )
    if 0 not in tensor.stride():  # an expanded tensor cannot be written through
        place.copy_(tensor)
        assert torch.equal(memory.tensor(spec), tensor)
    if tensor.numel():
        assert memory.offset_of(place.data_ptr()) == 512


@pytest.mark.parametrize(
    "change",
    [
        {"offset": -4}, {"offset": 4096}, {"shape": [-1, 4]}, {"shape": [1 << 70, 4]},
        {"stride": [-4, 1]}, {"shape": [256, 4]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_place_outside_the_region_is_refused(change: dict[str, Any]) -> None:
    spec = {"offset": 16, "dtype": "float32", "shape": [4, 4], "stride": [4, 1]} | change
    with pytest.raises(ValueError, match=r"negative numbers|does not lie in a region"):
        region().tensor(spec)


def test_a_mapped_file_is_shared_and_its_descriptor_closed() -> None:
    fd = os.memfd_create("test")
    os.ftruncate(fd, 4096)
    first, second = map_file(os.dup(fd), 4096), map_file(fd, 4096)
    first.bytes[7] = 42
    assert int(second.bytes[7]) == 42
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def test_a_file_that_is_too_short_is_refused_and_its_descriptor_closed() -> None:
    fd = os.memfd_create("test")
    with pytest.raises((OSError, ValueError)):
        map_file(fd, 4096)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)
