"""Signal problems: each reference at a small size against its statement, in float64 and without
what it is made of.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from test_problem_files import call, small


def wide(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.complex128 if tensor.is_complex() else np.float64)


def buffer(model: torch.nn.Module, name: str) -> np.ndarray:
    return wide(model.state_dict()[name])


def near(actual: torch.Tensor, expected: np.ndarray, error: float = 1e-5) -> None:
    """Equal but for `error` times the spread of what is expected; complex64 for complex numbers."""
    assert actual.dtype == (torch.complex64 if np.iscomplexobj(expected) else torch.float32)
    assert tuple(actual.shape) == expected.shape
    assert np.abs(wide(actual) - expected).max() < error * expected.std()


def waves(n: int) -> np.ndarray:
    """exp(-2 pi i k m / n) as a matrix; k m is reduced to below n, so that the angle is exact."""
    index = np.arange(n)
    return np.exp(-2j * np.pi * (np.outer(index, index) % n) / n)


def mirrored(index: int, size: int) -> int:
    index = abs(index)
    return index if index < size else 2 * (size - 1) - index


def test_fft_is_the_sum_over_waves() -> None:
    model, (signal,) = small("L7_1_FFT_1D", signal_length=105)
    near(call(model, [signal])[0], waves(105) @ wide(signal))


def test_fft_2d_is_the_sum_over_waves_along_both_sides() -> None:
    model, (image,) = small("L7_2_FFT_2D", image_height=21, image_width=10)
    near(call(model, [image])[0], waves(21) @ wide(image) @ waves(10))


def test_convolution_slides_the_kernel_unflipped() -> None:
    model, (signal,) = small("L7_3_Convolution_1D", signal_length=40, kernel_size=7)
    kernel, padded = buffer(model, "kernel")[0, 0], np.pad(wide(signal), 3)
    near(
        call(model, [signal])[0],
        np.array([sum(kernel[k] * padded[n + k] for k in range(7)) for n in range(40)]),
    )


def test_cross_correlation_slides_the_template_over_every_pixel() -> None:
    sizes = {"image_height": 9, "image_width": 12, "template_height": 3, "template_width": 5}
    model, (image,) = small("L7_4_CrossCorrelation_2D", **sizes)
    template, padded = buffer(model, "template")[0, 0], np.pad(wide(image), ((1, 1), (2, 2)))
    expected = np.zeros((9, 12))
    for i, j in itertools.product(range(9), range(12)):
        expected[i, j] = (template * padded[i : i + 3, j : j + 5]).sum()
    near(call(model, [image])[0], expected)


def test_median_is_the_middle_of_the_mirrored_window() -> None:
    model, (image,) = small("L7_5_MedianFilter_2D", image_height=6, image_width=9, kernel_size=5)
    expected = torch.zeros(6, 9)
    for i, j in itertools.product(range(6), range(9)):
        around = itertools.product(range(i - 2, i + 3), range(j - 2, j + 3))
        expected[i, j] = sorted(image[mirrored(r, 6), mirrored(c, 9)].item() for r, c in around)[12]
    assert torch.equal(call(model, [image])[0], expected)


def weights(size: int, target: int) -> np.ndarray:
    """Bilinear interpolation of `size` samples at `target` places, as a matrix."""
    matrix = np.zeros((target, size))
    for i in range(target):
        place = max(0.0, (i + 0.5) * size / target - 0.5)
        low = int(place)
        matrix[i, low] += 1 - (place - low)
        matrix[i, min(low + 1, size - 1)] += place - low
    return matrix


def test_resampling_is_bilinear_between_pixel_centres() -> None:
    sizes = {"input_height": 7, "input_width": 20, "output_height": 11, "output_width": 6}
    model, (image,) = small("L7_6_Resample_Bilinear", **sizes)
    near(call(model, [image])[0], weights(7, 11) @ wide(image) @ weights(20, 6).T)


def test_wiener_filter_divides_by_the_blur_in_the_frequency_domain() -> None:
    model, (blurred,) = small("L7_7_WienerFilter", image_height=14, image_width=15, kernel_size=5)
    kernel, image = buffer(model, "blur_kernel"), wide(blurred)
    profile = [math.exp(-(d**2) / (2 * (5 / 6) ** 2)) for d in range(-2, 3)]
    np.testing.assert_allclose(kernel, np.outer(profile, profile) / sum(profile) ** 2, rtol=1e-5)
    centred = np.zeros((14, 15))
    for r, c in itertools.product(range(5), range(5)):
        centred[(r - 2) % 14, (c - 2) % 15] = kernel[r, c]
    rows, columns = waves(14), waves(15)
    response, spectrum = rows @ centred @ columns, rows @ image @ columns
    variance = ((image - image.mean()) ** 2).sum() / (14 * 15 - 1)
    estimate = spectrum * response.conj() / (np.abs(response) ** 2 + 0.01 / (variance + 1e-10))
    near(call(model, [blurred])[0], (rows.conj() @ estimate @ columns.conj()).real / (14 * 15))


@pytest.mark.parametrize(
    ("name", "a", "b"), [("hann", 0.5, 0.5), ("hamming", 0.54, 0.46), ("none", 1.0, 0.0)]
)
def test_stft_transforms_each_windowed_frame(name: str, a: float, b: float) -> None:
    model, (signal,) = small("L7_8_STFT", signal_length=51, n_fft=15, hop_length=4, window=name)
    window = np.array([a - b * math.cos(2 * math.pi * n / 15) for n in range(15)])
    np.testing.assert_allclose(buffer(model, "window"), window, atol=1e-6)
    padded = np.array([wide(signal)[mirrored(i - 7, 51)] for i in range(51 + 14)])
    frames = np.stack(
        [buffer(model, "window") * padded[m * 4 : m * 4 + 15] for m in range(1 + (65 - 15) // 4)]
    )
    near(call(model, [signal])[0], waves(15)[:8] @ frames.T)


def test_dct_is_the_sum_over_cosines() -> None:
    model, (x,) = small("L7_9_DCT_II", batch_size=3, length=13)
    expected = np.zeros((3, 13))
    for k, j in itertools.product(range(13), range(13)):
        scale = math.sqrt((1 if k == 0 else 2) / 13)
        expected[:, k] += scale * wide(x)[:, j] * math.cos(math.pi / 13 * (j + 0.5) * k)
    near(call(model, [x])[0], expected)


def test_biquads_follow_their_recursion() -> None:
    model, (x,) = small("L7_10_IIR_BiquadCascade", channels=3, sections=2, samples=300)
    b, a, signal = buffer(model, "feedforward"), buffer(model, "feedback"), wide(x)
    for s in range(2):
        output = np.zeros((3, 300))
        for t in range(300):
            past = [(signal[:, t - k] if t >= k else 0) for k in range(3)]
            fed = [(output[:, t - k] if t >= k else 0) for k in (1, 2)]
            output[:, t] = (
                sum(b[:, s, k] * past[k] for k in range(3))
                - a[:, s, 0] * fed[0]
                - a[:, s, 1] * fed[1]
            )
        signal = output
    near(call(model, [x])[0], signal)


def test_wavelets_filter_and_keep_every_second_value() -> None:
    model, (x,) = small("L7_11_WaveletTransform_Daubechies", batch_size=2, length=21, levels=3)
    root, scale = math.sqrt(3), 4 * math.sqrt(2)
    low = [(1 + root) / scale, (3 + root) / scale, (3 - root) / scale, (1 - root) / scale]
    high = [low[3], -low[2], low[1], -low[0]]
    values, parts = wide(x), []
    for _ in range(3):
        size = (values.shape[1] + 3) // 2
        at = [[2 * k - 2 + j for j in range(4)] for k in range(size)]
        taken = np.array(
            [[v[i] if 0 <= i < len(v) else 0 for row in at for i in row] for v in values]
        )
        parts.insert(0, taken.reshape(2, size, 4) @ high)
        values = taken.reshape(2, size, 4) @ low
    near(call(model, [x])[0], np.concatenate([values, *parts], axis=1))


def best_path(emissions: list, transitions: list, initial: list) -> tuple[list[int], int]:
    """Tries every path; among the best the one whose states, compared from the last one backwards,
    are smallest.
    """

    def score(path: tuple[int, ...]) -> int:
        steps = sum(transitions[i][j] for i, j in itertools.pairwise(path))
        return (
            initial[path[0]]
            + steps
            + sum(row[state] for row, state in zip(emissions, path, strict=True))
        )

    paths = itertools.product(range(len(initial)), repeat=len(emissions))
    best = min(paths, key=lambda path: (-score(path), path[::-1]))
    return list(best), score(best)


@pytest.mark.parametrize("score_range", [1, 10_000])
def test_viterbi_finds_the_best_of_all_paths(score_range: int) -> None:
    sizes: dict[str, Any] = {"batch_size": 12, "steps": 5, "states": 4, "score_range": score_range}
    model, inputs = small("L7_12_ViterbiDecoding", **sizes)
    path, score = call(model, inputs)
    emissions, transitions, initial = (value.tolist() for value in inputs)
    expected = [best_path(sequence, transitions, initial) for sequence in emissions]
    assert path.tolist() == [found for found, _ in expected]
    assert score.tolist() == [value for _, value in expected]
    assert (path.dtype, score.dtype) == (torch.int64, torch.int32)
