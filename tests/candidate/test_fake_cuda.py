"""The fake device on which kernels are compiled. `benchmarks/languages.py` runs cuTile itself."""

import pytest
import torch

from kevin_env.candidate.fake_cuda import cutile_layout

MATRIX = torch.empty(64, 4096)
NO, ANY = None, 1


@pytest.mark.parametrize(
    ("tensor", "stride_constant", "stride_divisible_by", "shape_divisible_by"),
    [
        (MATRIX, [NO, 1], [4, ANY], [16, 16]),
        (MATRIX.t(), [1, NO], [ANY, 4], [16, 16]),
        (MATRIX[:, ::2], [NO, NO], [4, ANY], [16, 16]),
        (MATRIX.half(), [NO, 1], [8, ANY], [16, 16]),
        (torch.empty(3, 33), [NO, 1], [ANY, ANY], [ANY, ANY]),
        (torch.empty(4, 4, dtype=torch.int64), [NO, 1], [2, ANY], [ANY, ANY]),
        (torch.empty(1, 16).expand(8, 16), [NO, 1], [4, ANY], [ANY, 16]),
        (torch.empty(()), [], [], []),
    ],
)
def test_a_layout_is_described_as_cutile_does_for_a_launch(
    tensor: torch.Tensor,
    stride_constant: list[int | None],
    stride_divisible_by: list[int],
    shape_divisible_by: list[int],
) -> None:
    """As `KernelSignature.from_kernel_args` of cuTile 1.7.0 did on a GPU."""
    layout = cutile_layout(tensor)
    assert layout["stride_constant"] == stride_constant
    assert layout["stride_divisible_by"] == stride_divisible_by
    assert layout["shape_divisible_by"] == shape_divisible_by
    assert layout["may_alias_internally"] is (0 in tensor.stride())


def test_a_misaligned_address_is_reported() -> None:
    tensor = torch.empty(4097)
    assert cutile_layout(tensor)["base_addr_divisible_by"] == 16
    assert cutile_layout(tensor[1:])["base_addr_divisible_by"] == 1
