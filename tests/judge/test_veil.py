import pytest
import torch

from kevin_env.candidate.region import Region
from kevin_env.judge.memory import Image, image_size, joined
from kevin_env.judge.veil import WORDS, Veil

CPU = torch.device("cpu")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def test_until_it_is_lifted_every_input_has_false_words_and_then_none(generator: torch.Generator) -> None:
    first = Image([torch.randn(40_000), torch.randint(0, 9, (30_000,))], CPU)
    second = Image([torch.randn(50_000)], CPU, start=first.end)
    region = Region(torch.zeros(second.end, dtype=torch.uint8))
    veil = Veil([first, second], generator)
    for image in (first, second):
        image.write_to(region)
    veil.cover(region)
    for image in (first, second):
        there = region.bytes[image.start : image.end].view(torch.int32)
        wrong = int((there != image.bytes.view(torch.int32)).sum())
        assert WORDS // 4 < wrong <= WORDS
        assert set(there.tolist()) <= set(image.bytes.view(torch.int32).tolist())
    veil.lift(region)
    assert first.unchanged_in(region) and second.unchanged_in(region)


def test_of_inputs_in_a_row_each_has_as_many_false_words_from_itself(generator: torch.Generator) -> None:
    tensors = [torch.randint(i << 20, (i << 20) + 1000, (40_000,), dtype=torch.int32) for i in range(3)]
    memory, images = torch.empty(3 * image_size(tensors[:1]), dtype=torch.uint8), []
    for tensor in tensors:
        end = images[-1].end if images else 0
        images.append(Image([tensor], CPU, end, memory[end:]))
    (block,) = joined(images)
    region = Region(torch.zeros(block.end, dtype=torch.uint8))
    veil = Veil([block], generator)
    block.write_to(region)
    veil.cover(region)
    for image in images:
        there, own = (each.view(torch.int32) for each in (region.bytes[image.start : image.end], image.bytes))
        assert WORDS // 2 < int((there != own).sum()) <= WORDS
        assert set(there.tolist()) <= set(own.tolist())
    veil.lift(region)
    assert block.unchanged_in(region)


def test_no_inputs_need_no_veil(generator: torch.Generator) -> None:
    region = Region(torch.zeros(512, dtype=torch.uint8))
    for image in ([], [Image([], CPU)]):
        veil = Veil(image, generator)
        veil.cover(region)
        veil.lift(region)
    assert not region.bytes.any()
