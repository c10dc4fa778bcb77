"""A sparse matrix in compressed row format (CSR) times a vector.

    y[i] = sum over k in row_ptrs[i] .. row_ptrs[i + 1] - 1 of values[k] * x[col_indices[k]]

values is (total_nnz,) and x is (num_cols,), float32; col_indices is (total_nnz,) and row_ptrs is (num_rows + 1,),
int64; y is (num_rows,), float32; all are contiguous. The constructor takes num_rows and num_cols.
row_ptrs begins with 0, ends with total_nnz and never decreases. Rows have very different lengths: some are empty, the
longest of the main case is about fifteen times the mean. The columns of one row are distinct and increase. The three
sizes vary between cases. There are no parameters.
Differs from kernrl: a larger matrix, more uneven rows, and a reference without a loop over rows.
"""

import torch
import torch.nn as nn

num_rows = 2**20
num_cols = 2**20
total_nnz = 48 * 2**20

CASES: dict[str, dict] = {
    "cpu": {"num_rows": 30_000, "num_cols": 20_000, "total_nnz": 1_000_000},
    "odd": {"num_rows": 1010, "num_cols": 1021, "total_nnz": 17_171},
    "empty": {"num_rows": 20_000, "num_cols": 3000, "total_nnz": 5000},
    "long": {"num_rows": 4, "num_cols": 65_536, "total_nnz": 40_000},
}
TAGS: tuple[str, ...] = ("sparse", "irregular")


class Model(nn.Module):
    def __init__(self, num_rows: int, num_cols: int):
        super().__init__()
        self.num_rows = num_rows
        self.num_cols = num_cols

    def forward(
        self, values: torch.Tensor, col_indices: torch.Tensor, row_ptrs: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        return torch.segment_reduce(values * x[col_indices], "sum", offsets=row_ptrs)


def get_inputs() -> list[torch.Tensor]:
    borders = torch.randint(0, total_nnz + 1, (num_rows - 1,)).sort().values
    row_ptrs = torch.cat([torch.zeros(1, dtype=torch.int64), borders, torch.full((1,), total_nnz)])
    lengths = row_ptrs.diff()
    rows = torch.repeat_interleave(lengths, output_size=total_nnz)
    # one column from each of as many equal pieces of the row as it has entries
    places, counts = torch.arange(total_nnz) - row_ptrs[rows], lengths[rows]
    first, end = places * num_cols // counts, (places + 1) * num_cols // counts
    col_indices = first + torch.randint(0, 2**31, (total_nnz,)) % (end - first)
    return [torch.randn(total_nnz), col_indices, row_ptrs, torch.randn(num_cols)]


def get_init_inputs() -> list:
    return [num_rows, num_cols]
