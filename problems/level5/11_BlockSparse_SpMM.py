"""A block-sparse matrix (BSR: compressed rows of square dense blocks) times a dense matrix.

    Y[I * B + a, n] = sum over k in block_row_ptrs[I] .. block_row_ptrs[I + 1] - 1 and b in 0..B-1 of
                      blocks[k, a, b] * dense[block_cols[k] * B + b, n],    B = block_size

blocks is (num_blocks, B, B) and dense is (block_columns * B, width), float32; block_cols is (num_blocks,) and
block_row_ptrs is (block_rows + 1,), int64; Y is (block_rows * B, width), float32; all are contiguous. The constructor
takes block_size. block_row_ptrs begins with 0, ends with num_blocks and never decreases; rows of blocks have very
different lengths, some may be empty. The block columns of one row are distinct and increase. All five sizes vary
between cases. There are no parameters.
"""

import torch
import torch.nn as nn

block_size = 32
block_rows = 256
block_columns = 512
num_blocks = 8192
width = 1024

CASES: dict[str, dict] = {
    "cpu": {"block_size": 16, "block_rows": 64, "block_columns": 64, "num_blocks": 700, "width": 256},
    "odd": {"block_size": 17, "block_rows": 20, "block_columns": 31, "num_blocks": 201, "width": 67},
    "empty": {"block_rows": 200, "block_columns": 40, "num_blocks": 100, "width": 64},
    "vector": {"block_size": 64, "block_rows": 16, "block_columns": 200, "num_blocks": 150, "width": 1},
}
TAGS: tuple[str, ...] = ("sparse", "irregular")


class Model(nn.Module):
    def __init__(self, block_size: int):
        super().__init__()
        self.block_size = block_size

    def forward(
        self, blocks: torch.Tensor, block_cols: torch.Tensor, block_row_ptrs: torch.Tensor, dense: torch.Tensor
    ) -> torch.Tensor:
        panels = dense.view(-1, self.block_size, dense.shape[1])
        products = torch.bmm(blocks, panels[block_cols])
        return torch.segment_reduce(products, "sum", offsets=block_row_ptrs, axis=0).flatten(0, 1)


def get_inputs() -> list[torch.Tensor]:
    # the places with the highest marks have blocks; a factor for each row makes the rows uneven
    marks = torch.rand(block_rows, block_columns) * torch.rand(block_rows, 1)
    places = marks.flatten().topk(num_blocks).indices.sort().values
    block_row_ptrs = torch.searchsorted(places, block_columns * torch.arange(block_rows + 1))
    blocks = torch.randn(num_blocks, block_size, block_size)
    return [blocks, places % block_columns, block_row_ptrs, torch.randn(block_columns * block_size, width)]


def get_init_inputs() -> list:
    return [block_size]
