"""Seeds Python's and torch's generators, on both sides."""

import random

import torch


def seed_torch(seed: int) -> None:
    """`torch.manual_seed` without the millisecond it spends on missing backends."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def reseed(seed: int | None) -> None:
    """Seeds all generators a model may draw from; without a seed, nothing."""
    if seed is not None:
        random.seed(seed)
        seed_torch(seed)
