"""The level 1 references that test_problem_files.py does not check, against loops and numpy in
float64.
"""

import itertools

import numpy as np
import pytest
import torch
from test_problem_files import call, close, small

MATMULS = {
    "L1_2_Standard_matrix_multiplication_": {"M": 5, "K": 17, "N": 7},
    "L1_4_Matrix_vector_multiplication_": {"M": 6, "K": 41},
    "L1_8_Matmul_with_irregular_shapes_": {"M": 9, "K": 13, "N": 11},
    "L1_9_Tall_skinny_matrix_multiplication_": {"M": 15, "N": 4},
}


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    columns = list(zip(*b.tolist(), strict=True))
    rows = [
        [sum(p * q for p, q in zip(row, column, strict=True)) for column in columns]
        for row in a.tolist()
    ]
    return torch.tensor(rows, dtype=torch.float64)


def test_matmul_is_rows_times_columns() -> None:
    for id, sizes in MATMULS.items():
        model, (a, b) = small(id, **sizes)
        close(call(model, [a, b])[0], product(a, b))


def test_batched_matmul_pairs_the_matrices() -> None:
    model, (a, b) = small("L1_3_Batched_matrix_multiplication", batch_size=4, m=3, k=6, n=5)
    close(
        call(model, [a, b])[0],
        torch.stack([product(one, other) for one, other in zip(a, b, strict=True)]),
    )


POOLINGS = [(4, 1, 1, 1), (3, 2, 1, 1), (2, 2, 1, 3), (4, 3, 2, 1)]


@pytest.mark.parametrize(("kernel_size", "stride", "padding", "dilation"), POOLINGS)
def test_max_pooling_leaves_out_what_lies_outside(
    kernel_size: int, stride: int, padding: int, dilation: int
) -> None:
    settings = {
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
    }
    model, (x,) = small(
        "L1_42_Max_Pooling_2D", batch_size=2, channels=2, height=9, width=12, **settings
    )
    x = x - 5  # all negative: a zero from the padding would win
    high, wide = (
        (size + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 for size in (9, 12)
    )
    expected = torch.empty(2, 2, high, wide, dtype=torch.float64)
    for i, j in itertools.product(range(high), range(wide)):
        rows = [
            r
            for r in (i * stride - padding + k * dilation for k in range(kernel_size))
            if 0 <= r < 9
        ]
        columns = [
            c
            for c in (j * stride - padding + k * dilation for k in range(kernel_size))
            if 0 <= c < 12
        ]
        for b, c in itertools.product(range(2), repeat=2):
            expected[b, c, i, j] = max(
                x[b, c, row, column].item() for row in rows for column in columns
            )
    close(call(model, [x])[0], expected)


def windows(x: torch.Tensor, size: int) -> np.ndarray:
    """(batch, channels, height_out, width_out, size, size), float64."""
    return np.lib.stride_tricks.sliding_window_view(x.double().numpy(), (size, size), axis=(2, 3))


def test_convolution_is_a_cross_correlation() -> None:
    sizes = {"batch_size": 2, "in_channels": 3, "out_channels": 5, "width": 8, "height": 8}
    for kernel_size in (1, 3):
        id = "L1_63_conv_standard_2D__square_input__square_kernel"
        model, (x,) = small(id, kernel_size=kernel_size, **sizes)
        weight = model.get_parameter("conv2d.weight").detach().double().numpy()
        expected = np.einsum("bcijrs,ocrs->boij", windows(x, kernel_size), weight)
        close(call(model, [x])[0], torch.from_numpy(expected))


@pytest.mark.parametrize(("kernel_size", "stride", "padding"), [(3, 1, 0), (3, 2, 1), (5, 1, 2)])
def test_depthwise_convolution_keeps_channels_apart(
    kernel_size: int, stride: int, padding: int
) -> None:
    sizes = {"batch_size": 2, "in_channels": 3, "width": 9, "height": 9}
    settings = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    model, (x,) = small("L1_82_conv_depthwise_2D_square_input_square_kernel", **sizes, **settings)
    padded = torch.zeros(2, 3, 9 + 2 * padding, 9 + 2 * padding)
    padded[:, :, padding : padding + 9, padding : padding + 9] = x
    weight = model.get_parameter("conv2d.weight").detach().double().numpy()[:, 0]
    expected = np.einsum(
        "bcijrs,crs->bcij", windows(padded, kernel_size)[:, :, ::stride, ::stride], weight
    )
    close(call(model, [x])[0], torch.from_numpy(expected))
