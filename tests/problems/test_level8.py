"""Video problems: each reference at a small size against its statement, pixel by pixel, in float64
or integers.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from test_level7 import mirrored, weights
from test_problem_files import call, case, small

from kevin_env.problem import load_problem


def wide(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float64 if tensor.is_floating_point() else np.int64)


def near(actual: torch.Tensor, expected: np.ndarray, error: float = 1e-5) -> None:
    """Equal but for `error` times the spread of what is expected."""
    assert actual.dtype == torch.float32
    assert tuple(actual.shape) == expected.shape
    assert np.abs(wide(actual) - expected).max() < error * expected.std()


def every(array: np.ndarray) -> itertools.product:
    return itertools.product(*map(range, array.shape))


@pytest.mark.parametrize("grey_levels", [2, 256])
def test_block_matching_finds_the_first_of_the_least_costs(grey_levels: int) -> None:
    sizes = {
        "frame_height": 11, "frame_width": 14, "block_size": 4, "search_range": 2,
        "grey_levels": grey_levels,
    }  # fmt: skip
    model, frames = small("L8_1_MotionEstimation_BlockMatch", **sizes)
    current, reference = map(wide, frames)
    padded = np.pad(reference, 2)
    outputs = call(model, frames)
    for m, n in itertools.product(range(2), range(3)):
        block = current[4 * m : 4 * m + 4, 4 * n : 4 * n + 4]
        costs = {}
        for dy, dx in itertools.product(range(-2, 3), range(-2, 3)):
            y, x = 4 * m + dy + 2, 4 * n + dx + 2
            costs[dy, dx] = np.abs(block - padded[y : y + 4, x : x + 4]).sum()
        dy, dx = min(costs, key=lambda move: (costs[move], move))
        assert [output[m, n].item() for output in outputs] == [dx, dy, costs[dy, dx]]
    assert {(output.dtype, tuple(output.shape)) for output in outputs} == {(torch.int32, (2, 3))}


def test_optical_flow_solves_the_least_squares_of_each_window() -> None:
    model, frames = small(
        "L8_2_OpticalFlow_LucasKanade", frame_height=7, frame_width=9, window_size=5
    )
    one, two = map(wide, frames)
    padded = np.pad((one + two) / 2, 1)
    across, smooth = (-1, 0, 1), (1, 2, 1)
    x, y = np.zeros((7, 9)), np.zeros((7, 9))
    for r, c in itertools.product(range(3), range(3)):
        part = padded[r : r + 7, c : c + 9]
        x, y = x + smooth[r] * across[c] * part, y + across[r] * smooth[c] * part
    flow = np.zeros((2, 7, 9))
    for i, j in itertools.product(range(7), range(9)):
        around = itertools.product(range(i - 2, i + 3), range(j - 2, j + 3))
        window = [(mirrored(r, 7), mirrored(c, 9)) for r, c in around]
        slopes = np.array([[x[at], y[at]] for at in window])
        change = np.array([(two - one)[at] for at in window])
        flow[:, i, j] = np.linalg.lstsq(slopes, -change, rcond=None)[0]
    for actual, expected in zip(call(model, frames), flow, strict=True):
        near(actual, expected, 1e-4)


def bilinear(frame: np.ndarray, a: float, b: float) -> float:
    """The frame at row a, column b; a neighbour outside of it counts as 0."""
    top, left = math.floor(a), math.floor(b)
    total = 0.0
    for r, c in itertools.product((top, top + 1), (left, left + 1)):
        if 0 <= r < frame.shape[0] and 0 <= c < frame.shape[1]:
            total += frame[r, c] * (1 - abs(a - r)) * (1 - abs(b - c))
    return total


def test_frame_interpolation_samples_both_frames_along_the_flow() -> None:
    model, inputs = small("L8_3_FrameInterpolation", frame_height=6, frame_width=9)
    frame0, frame1, flow, t = map(wide, inputs)
    expected = np.zeros((6, 9))
    for i, j in every(expected):
        u, v = flow[i, j]
        for frame, share, way in ((frame0, 1 - t, -t), (frame1, t, 1 - t)):
            a, b = min(max(i + way * v, 0), 5), min(max(j + way * u, 0), 8)
            expected[i, j] += share * bilinear(frame, a, b)
    near(call(model, inputs)[0], expected)


@pytest.mark.parametrize("number", [4, 5])
def test_temporal_denoising_weighs_the_moved_frames(number: int) -> None:
    model, inputs = small(
        "L8_4_VideoDenoising_Temporal", num_temporal_frames=number, frame_height=7, frame_width=6
    )
    frames, flows = map(wide, inputs)
    middle = number // 2
    expected = np.zeros((7, 6))
    for i, j in every(expected):
        total, weights = frames[middle, i, j], 1.0
        for t in range(number):
            if t == middle:
                continue
            steps = flows[t:middle, i, j] if t < middle else -flows[middle:t, i, j]
            u, v = steps.sum(axis=0)
            weight = math.exp(-math.hypot(u, v) / 10)
            total, weights = total + weight * bilinear(frames[t], i - v, j - u), weights + weight
        expected[i, j] = total / weights
    near(call(model, inputs)[0], expected)


def test_stabilization_samples_where_the_inverse_homography_points() -> None:
    model, (frame, homography) = small("L8_5_VideoStabilization", frame_height=9, frame_width=12)
    inverse = np.linalg.inv(wide(homography))
    expected = np.zeros((9, 12))
    for i, j in every(expected):
        a, b, w = inverse @ [j, i, 1]
        expected[i, j] = bilinear(wide(frame), b / w, a / w)
    near(call(model, [frame, homography])[0], expected)


def test_chroma_is_interpolated_and_luma_stretched() -> None:
    model, inputs = small("L8_6_ChromaUpsampling", frame_height=9, frame_width=14)
    y, *chroma = call(model, inputs)
    near(y, (255 * wide(inputs[0]) - 16) / 219)
    for actual, half in zip(chroma, inputs[1:], strict=True):
        near(actual, weights(4, 9) @ wide(half) @ weights(7, 14).T)


def test_deblocking_smooths_small_steps_first_across_then_down() -> None:
    sizes = {"frame_height": 17, "frame_width": 13, "block_size": 4, "alpha": 40, "beta": 8}
    model, (frame,) = small("L8_7_DeblockingFilter", **sizes)
    pixels = wide(frame)
    smoothed = 0
    for _ in range(2):
        for row in pixels:
            for x in range(4, len(row) - 1, 4):
                p1, p0, q0, q1 = map(int, row[x - 2 : x + 2])
                if abs(p0 - q0) < 40 and abs(p1 - p0) < 8 and abs(q1 - q0) < 8:
                    row[x - 1], row[x] = (2 * p1 + p0 + q0 + 2) // 4, (2 * q1 + q0 + p0 + 2) // 4
                    smoothed += 1
        pixels = pixels.T
    edges = 3 * 13 + 2 * 17  # no edge at the last row and the last column
    assert 0.1 * edges < smoothed < 0.9 * edges
    assert call(model, [frame])[0].tolist() == pixels.tolist()


def test_scene_scores_compare_pixels_and_histograms() -> None:
    model, frames = small("L8_8_SceneChangeDetect", frame_height=20, frame_width=31)
    one, two = map(wide, frames)
    sad = np.abs(one - two).sum() / one.sum()
    h1, h2 = ([((b <= 32 * f) & (32 * f < b + 1)).mean() for b in range(32)] for f in (one, two))
    chi = sum((p - q) ** 2 / (p + q + 1e-10) for p, q in zip(h1, h2, strict=True)) / 2
    change, sad_score, hist_diff = call(model, frames)
    assert (sad_score.item(), hist_diff.item()) == pytest.approx((sad, chi), rel=1e-5)
    assert change.item() == (sad > 0.3 or chi > 0.5)


def test_integer_transform_quantizes_and_scans_in_zigzag() -> None:
    model, (residual,) = small(
        "L8_9_IntegerTransform_Quantize", frame_height=149, frame_width=201, qp=17
    )
    module = case(load_problem("L8_9_IntegerTransform_Quantize"), "odd")
    matrix, padded = (
        np.array(module.TRANSFORM),
        np.pad(wide(residual), ((0, 3), (0, 7)), mode="edge"),
    )
    order = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2), (2, 1), (3, 0), (4, 0), (3, 1)]  # fmt: skip
    expected = []
    for m, n in itertools.product(range(19), range(26)):
        block = padded[8 * m : 8 * m + 8, 8 * n : 8 * n + 8]
        w = (matrix @ ((block @ matrix.T + 2) // 4) + 256) // 512
        level = np.sign(w) * (
            (np.abs(w) * 14564 + 171 * 2**11) // 2**20
        )  # qp 17: scale 5, shift 20
        expected.append([level[at] for at in order])
    actual = call(model, [residual])[0]
    assert (actual.dtype, tuple(actual.shape)) == (torch.int16, (494, 64))
    assert actual[:, :12].tolist() == expected
    assert actual[:, 0].any()
    assert actual[:, 8:].any()


@pytest.mark.parametrize("grey_levels", [2, 256])
def test_intra_mode_is_the_first_of_the_least_hadamard_costs(grey_levels: int) -> None:
    sizes = {"frame_height": 33, "frame_width": 47, "grey_levels": grey_levels}
    model, (frame,) = small("L8_10_IntraPrediction_SATD", **sizes)
    hadamard = np.array([[(-1) ** bin(i & j).count("1") for j in range(8)] for i in range(8)])
    framed = np.pad(wide(frame), ((1, 0), (1, 0)), constant_values=128)
    modes, costs = call(model, [frame])
    assert modes.shape == costs.shape == (4, 5)
    for m, n in itertools.product(range(4), range(5)):
        part = framed[8 * m : 8 * m + 9, 8 * n : 8 * n + 9]
        above, left, block = part[:1, 1:], part[1:, :1], part[1:, 1:]
        mean = np.full((8, 8), (above.sum() + left.sum() + 8) // 16)
        predictions = [above, left, mean, np.clip(left + above - part[0, 0], 0, 255)]
        satd = [(np.abs(hadamard @ (block - p) @ hadamard).sum() + 2) // 4 for p in predictions]
        assert (modes[m, n].item(), costs[m, n].item()) == (satd.index(min(satd)), min(satd))


def test_ssim_compares_means_variances_and_covariance() -> None:
    model, frames = small("L8_11_SSIM", num_frames=2, frame_height=13, frame_width=15)
    one, two = map(wide, frames)
    profile = np.array([math.exp(-(d**2) / (2 * 1.5**2)) for d in range(-5, 6)])
    window = np.outer(profile, profile) / profile.sum() ** 2
    expected = np.zeros((2, 3, 5))
    for t, i, j in every(expected):
        a, b = (frame[t, i : i + 11, j : j + 11] for frame in (one, two))
        m1, m2 = (a * window).sum(), (b * window).sum()
        v1, v2 = (window * (a - m1) ** 2).sum(), (window * (b - m2) ** 2).sum()
        v12 = (window * (a - m1) * (b - m2)).sum()
        expected[t, i, j] = (2 * m1 * m2 + 1e-4) * (2 * v12 + 9e-4)
        expected[t, i, j] /= (m1**2 + m2**2 + 1e-4) * (v1 + v2 + 9e-4)
    similarity, mean = call(model, frames)
    near(similarity, expected)
    near(mean, expected.mean(axis=(1, 2)))


def half(samples: list[int], shift: int) -> int:
    return (
        samples[0]
        - 5 * samples[1]
        + 20 * samples[2]
        + 20 * samples[3]
        - 5 * samples[4]
        + samples[5]
    ) >> shift


def test_motion_compensation_interpolates_quarter_pixels() -> None:
    model, inputs = small(
        "L8_12_MotionCompensation_QuarterPel", frame_height=35, frame_width=52, search_range=5
    )
    frame, motion_x, motion_y = map(wide, inputs)

    def at(i: int, j: int) -> int:
        return int(frame[min(max(i, 0), 34), min(max(j, 0), 51)])

    def sample(y: int, x: int) -> int:
        """The frame at whole and half pixels, given in halves."""
        (i, down), (j, right) = divmod(y, 2), divmod(x, 2)
        six = range(-2, 4)
        if down and right:
            rows = [half([at(i + r, j + c) for c in six], 0) for r in six]
            value = (half(rows, 0) + 512) >> 10
        elif down or right:
            value = (half([at(i + k * down, j + k * right) for k in six], 0) + 16) >> 5
        else:
            value = at(i, j)
        return min(max(value, 0), 255)

    def quarter(y: int, x: int) -> int:
        """The mean of the half-pixel samples on either side; if diagonal, of those in the nearest
        row and column.
        """
        if y % 2 and x % 2:
            pair = ((2 * ((y + 1) // 4), x // 2 | 1), (y // 2 | 1, 2 * ((x + 1) // 4)))
        else:
            pair = ((y // 2, x // 2), ((y + 1) // 2, (x + 1) // 2))
        return (sample(*pair[0]) + sample(*pair[1]) + 1) >> 1

    expected = [
        [
            quarter(
                4 * i + int(motion_y[i // 16, j // 16]), 4 * j + int(motion_x[i // 16, j // 16])
            )
            for j in range(52)
        ]
        for i in range(35)
    ]
    assert call(model, inputs)[0].tolist() == expected
