import pytest
import torch

from kevin_env.candidate.seeding import seed_torch


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_numbers_are_those_of_manual_seed(device: str) -> None:
    if device == "cuda":
        torch.zeros(1, device=device)
    for seed in (0, 5, 2**62 + 1):
        torch.manual_seed(seed)
        wanted = torch.randn(5, device=device)
        torch.randn(3, device=device)
        seed_torch(seed)
        assert torch.equal(torch.randn(5, device=device), wanted)
