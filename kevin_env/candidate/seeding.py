"""Seeds of torch's generators, on both sides."""

import random

import torch


def seed_torch(seed: int) -> None:
    """As `torch.manual_seed`, which spends a millisecond on backends that are not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def reseed(seed: int | None) -> None:
    """Seeds, where there is a seed, whatever a model may draw from: a reference with randomness can
    be matched.
    """
    if seed is not None:
        random.seed(seed)
        seed_torch(seed)
