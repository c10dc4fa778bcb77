"""Seeds of torch's generators, on both sides."""

import torch


def seed_torch(seed: int) -> None:
    """As `torch.manual_seed`, which spends a millisecond on backends that are not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
