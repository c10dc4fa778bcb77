import gc
from pathlib import Path

import pytest
import torch

from kevin_env.candidate.region import POISON
from kevin_env.judge.handshake.memory import ALIGNMENT, Image, SharedRegion, image_size

CPU = torch.device("cpu")
TENSORS = [
    torch.randn(3, 5),
    torch.tensor(2.5),
    torch.randn(4, 0),
    torch.randn(5, 3).t(),
    torch.randn(6, 6)[::2],
    torch.randn(4, 1).expand(4, 6),
    torch.arange(7),
    torch.tensor([True, False, True]),
    torch.randn(130).bfloat16(),
    torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
]


def test_an_image_arrives_in_the_region_as_it_is() -> None:
    image, region = Image(TENSORS, CPU), SharedRegion(image_size(TENSORS), CPU)
    image.write_to(region)
    for tensor, spec, own in zip(TENSORS, image.specs, image.tensors, strict=True):
        assert torch.equal(region.tensor(spec), tensor) and torch.equal(own, tensor)
    assert image.end == image_size(TENSORS) == region.size
    assert image.unchanged_in(region)
    region.close()


def test_a_dense_tensor_keeps_its_strides_and_others_are_packed() -> None:
    strides = [t.stride() for t in Image(TENSORS, CPU).tensors]
    assert (strides[3], strides[9]) == (TENSORS[3].stride(), TENSORS[9].stride())
    assert (strides[4], strides[5]) == ((6, 1), (6, 1))


def test_between_tensors_lies_poison_and_a_change_of_one_byte_there_is_noticed() -> None:
    image = Image(TENSORS, CPU)
    region = SharedRegion(image.end, CPU)
    covered = torch.zeros(image.end, dtype=torch.bool)
    for spec, tensor in zip(image.specs, image.tensors, strict=True):
        covered[spec["offset"] : spec["offset"] + tensor.nbytes] = True
    gaps = (~covered).nonzero().flatten().tolist()
    assert len(gaps) >= len(TENSORS) * ALIGNMENT
    for byte in (gaps[0], gaps[-1], *gaps[:: len(gaps) // 20], 0):
        image.write_to(region)
        assert byte == 0 or int(region.bytes[byte]) == POISON
        region.bytes[byte] ^= 1
        assert not image.unchanged_in(region) and bool(image.differs_from(region))
    image.write_to(region)
    assert not image.differs_from(region)
    region.close()


def test_every_tensor_is_followed_by_a_guard_band() -> None:
    image = Image(TENSORS, CPU)
    starts = [spec["offset"] for spec in image.specs] + [image.end]
    for i, tensor in enumerate(image.tensors):
        assert starts[i + 1] - (starts[i] + tensor.nbytes) >= ALIGNMENT


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn]
)
def test_poison_is_nan_in_every_float(dtype: torch.dtype) -> None:
    assert torch.full((64,), POISON, dtype=torch.uint8).view(dtype).double().isnan().all()


def test_a_closed_region_leaves_no_descriptor() -> None:
    gc.collect()  # what tests before it left in cycles
    before = regions_open()
    region = SharedRegion(1 << 20, CPU)
    assert regions_open() > before
    region.close()
    region.close()
    del region
    gc.collect()
    assert regions_open() == before


def regions_open() -> int:
    """Descriptors of regions in this process, where other tests' judges may be ending."""
    links = (each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum(str(link).startswith("/memfd:kevin") for link in links)
