"""The level 5 references against loops in float64, written from the statements."""

import itertools
import math

import numpy as np
import torch
from test_problem_files import call, close, small


def numbers(*tensors: torch.Tensor) -> list[np.ndarray]:
    """As numpy arrays; floating-point ones in float64."""
    return [(t.double() if t.is_floating_point() else t).numpy() for t in tensors]


def expect(output: torch.Tensor, expected: object) -> None:
    close(output, torch.tensor(np.asarray(expected), dtype=torch.float64))


def test_n_body_pulls_along_the_offset_by_mass_over_softened_distance_cubed() -> None:
    model, (positions, masses) = small("L5_1_NBody_Gravitational", num_particles=9)
    expected = np.zeros((9, 3))
    for (i, a), (j, b) in itertools.product(enumerate(positions.tolist()), repeat=2):
        distance = math.sqrt(math.dist(a, b) ** 2 + 0.1**2)
        expected[i] += [masses[j].item() * (q - p) / distance**3 for p, q in zip(a, b, strict=True)]
    expect(call(model, [positions, masses])[0], expected)


def around(u: np.ndarray, i: int, j: int) -> float:
    return u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


def test_heat_is_the_mean_of_four_neighbours_and_keeps_its_boundary() -> None:
    model, (u,) = small("L5_2_Stencil_2D_Heat", grid_height=6, grid_width=9)
    (values,) = numbers(u)
    expected = values.copy()
    for i, j in itertools.product(range(1, 5), range(1, 8)):
        expected[i, j] = around(values, i, j) / 4
    expect(call(model, [u])[0], expected)


def test_sparse_vector_product_is_the_dense_one() -> None:
    model, inputs = small("L5_3_SpMV_CSR", num_rows=30, num_cols=20, total_nnz=50)
    values, columns, ends, x = numbers(*inputs)
    dense = np.zeros((30, 20))
    for row in range(30):
        for k in range(ends[row], ends[row + 1]):
            dense[row, columns[k]] += values[k]
    expect(call(model, inputs)[0], (dense * x).sum(1))


def test_conjugate_gradient_steps_along_the_direction() -> None:
    model, inputs = small("L5_4_ConjugateGradient_Step", matrix_size=24)
    a, x, r, p, old = numbers(*inputs)
    product = np.array([sum(row * p) for row in a])
    alpha = old / sum(p * product)
    left = r - alpha * product
    new = sum(left * left)
    for output, expected in zip(
        call(model, inputs), (x + alpha * p, left, left + new / old * p, new), strict=True
    ):
        expect(output, expected)


def test_deposit_shares_a_charge_among_four_points_exactly() -> None:
    model, (positions, charges) = small(
        "L5_5_ParticleInCell_Deposit", num_particles=400, grid_size=5
    )
    positions[0] = torch.tensor([4.0, 4.0])  # the last point itself
    expected = np.zeros((5, 5))
    for (x, y), charge in zip(positions.tolist(), charges.tolist(), strict=True):
        for i, j in itertools.product(range(5), repeat=2):
            expected[i, j] += charge * max(0, 1 - abs(x - i)) * max(0, 1 - abs(y - j))
    assert np.array_equal(call(model, [positions, charges])[0].double().numpy(), expected)


def test_wave_is_a_leapfrog_step_with_a_zero_boundary() -> None:
    model, (now, before) = small("L5_6_WaveEquation_2D", grid_height=6, grid_width=9)
    u, last = numbers(now, before)
    expected = np.zeros((6, 9))
    for i, j in itertools.product(range(1, 5), range(1, 8)):
        laplacian = (around(u, i, j) - 4 * u[i, j]) / 0.1**2
        expected[i, j] = 2 * u[i, j] - last[i, j] + (1.0 * 0.05) ** 2 * laplacian
    expect(call(model, [now, before])[0], expected)


def test_pi_is_four_times_the_share_of_points_in_the_circle() -> None:
    model, (points,) = small("L5_7_MonteCarlo_Pi", num_samples=5000)
    squares = [[round(4096 * value) ** 2 for value in point] for point in points.tolist()]
    count = sum(x + y < 2**24 for x, y in squares)
    estimate, hits = call(model, [points])
    assert hits.item() == count
    expect(estimate, 4 * count / 5000)
    assert 3.0 < estimate < 3.3


def entry(low: list, high: list, origin: list, direction: list) -> float:
    """Where a ray enters a box, at 0 if it begins inside; infinity if it misses."""
    near, far = -math.inf, math.inf
    for a, b, o, d in zip(low, high, origin, direction, strict=True):
        near, far = (
            max(near, min((a - o) / d, (b - o) / d)),
            min(far, max((a - o) / d, (b - o) / d)),
        )
    return max(near, 0) if near <= far and far >= 0 else math.inf


def test_traversal_with_a_stack_finds_the_same_leaves() -> None:
    model, inputs = small("L5_8_BVH_Traversal", num_rays=80, num_bvh_nodes=31)
    origins, directions, lows, highs, left, right, leaf = (value.tolist() for value in inputs)
    expected = []
    for origin, direction in zip(origins, directions, strict=True):
        stack, nearest = [0], math.inf
        while stack:
            node = stack.pop()
            found = entry(lows[node], highs[node], origin, direction)
            if found < nearest and leaf[node]:
                nearest = found
            elif found < nearest:
                stack += [left[node], right[node]]
        expected.append(-1 if nearest == math.inf else nearest)
    output = call(model, inputs)[0]
    assert output.tolist() == expected
    assert 10 < (output < 0).sum() < 70


def test_lattice_boltzmann_collides_bounces_and_streams() -> None:
    model, (f, solid) = small("L5_9_LatticeBoltzmann_D2Q9", height=4, width=5)
    velocities = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    values, wall = numbers(f, solid)
    expected = np.zeros((9, 4, 5))
    for y, x, (i, c) in itertools.product(range(4), range(5), enumerate(velocities)):
        cell = values[:, y, x]
        rho = sum(cell)
        u = [
            sum(value * v[k] for value, v in zip(cell, velocities, strict=True)) / rho
            for k in (0, 1)
        ]
        along = c[0] * u[0] + c[1] * u[1]
        weight = {0: 4 / 9, 1: 1 / 9, 2: 1 / 36}[abs(c[0]) + abs(c[1])]
        equal = weight * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u[0] ** 2 + u[1] ** 2))
        back = cell[velocities.index((-c[0], -c[1]))]
        expected[i, (y + c[1]) % 4, (x + c[0]) % 5] = (
            back if wall[y, x] else cell[i] - (cell[i] - equal) / 0.8
        )
    assert wall.any()
    expect(call(model, [f, solid])[0], expected)


def residual(u: np.ndarray, f: np.ndarray) -> np.ndarray:
    padded = np.pad(u, 1)
    shape = range(u.shape[0]), range(u.shape[1])
    values = [
        f[i, j] - 4 * u[i, j] + around(padded, i + 1, j + 1) for i, j in itertools.product(*shape)
    ]
    return np.reshape(values, u.shape)


def test_multigrid_smooths_twice_and_restricts_by_full_weighting() -> None:
    for height, width in ((7, 8), (3, 6)):
        model, inputs = small(
            "L5_10_Poisson_Multigrid_Smooth_Restrict", grid_height=height, grid_width=width
        )
        u, f = numbers(*inputs)
        for _ in range(2):
            u = u + 0.8 / 4 * residual(u, f)
        fine, coarse = residual(u, f), np.zeros(((height - 1) // 2, (width - 1) // 2))
        for i, j, a, b in itertools.product(*map(range, coarse.shape), (-1, 0, 1), (-1, 0, 1)):
            coarse[i, j] += (2 - abs(a)) * (2 - abs(b)) / 16 * fine[2 * i + 1 + a, 2 * j + 1 + b]
        for output, expected in zip(call(model, inputs), (u, coarse), strict=True):
            expect(output, expected)


def test_block_sparse_product_is_the_dense_one() -> None:
    sizes = {"block_size": 3, "block_rows": 6, "block_columns": 5, "num_blocks": 8, "width": 4}
    model, inputs = small("L5_11_BlockSparse_SpMM", **sizes)
    blocks, columns, ends, dense = numbers(*inputs)
    matrix = np.zeros((18, 15))
    for row in range(6):
        for k in range(ends[row], ends[row + 1]):
            matrix[3 * row : 3 * row + 3, 3 * columns[k] : 3 * columns[k] + 3] = blocks[k]
    expect(call(model, inputs)[0], (matrix[:, :, None] * dense).sum(1))


def potential(r: float) -> float:
    return 4 * (r**-12 - r**-6)


def push(r: float) -> float:
    return 24 * (2 * r**-13 - r**-7)


def test_lennard_jones_is_shifted_to_zero_at_the_cutoff() -> None:
    model, inputs = small(
        "L5_12_LennardJones_NeighborList", side=6, num_particles=100, max_neighbors=80
    )
    positions, neighbors = numbers(*inputs)
    box, cutoff = 6.75, 2.5
    forces, energies = np.zeros((100, 3)), np.zeros(100)
    left_out = within = 0
    for i, j in itertools.permutations(
        range(100), 2
    ):  # all pairs: but for a few the lists must be complete
        d = [x - box * round(x / box) for x in positions[i] - positions[j]]
        r = math.hypot(*d)
        within += r < cutoff
        left_out += r < cutoff and j not in neighbors[i]
        if r < cutoff and j in neighbors[i]:
            forces[i] += [(push(r) - push(cutoff)) * x / r for x in d]
            energies[i] += 0.5 * (potential(r) - potential(cutoff) + (r - cutoff) * push(cutoff))
    assert 0.02 < left_out / within < 0.12
    outputs = call(model, inputs)
    torch.testing.assert_close(outputs[0].double(), torch.tensor(forces), rtol=1e-5, atol=2e-4)
    torch.testing.assert_close(outputs[1].double(), torch.tensor(energies), rtol=1e-5, atol=1e-5)
