"""The level 6 references against loops in float64 or in integers, written from the statements."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from test_level5 import expect
from test_problem_files import call, small


def sphere_hit(origin: list, direction: list, center: list, radius: float) -> tuple[float, float]:
    """Where a ray meets a sphere, and how far its line passes from grazing, in radii; from the foot
    on the line.
    """
    foot = sum(d * (c - o) for o, d, c in zip(origin, direction, center, strict=True))
    nearest = math.dist([o + foot * d for o, d in zip(origin, direction, strict=True)], center)
    if nearest > radius:
        return math.inf, nearest / radius - 1
    half = math.sqrt(radius**2 - nearest**2)
    t = foot - half if foot > half else foot + half
    return (t if t > 0 else math.inf), 1 - nearest / radius


def test_rays_meet_the_first_sphere() -> None:
    model, inputs = small("L6_1_RayTracing_Spheres", num_rays=60, num_spheres=40)
    origins, directions, centers, radii = (value.tolist() for value in inputs)
    t_hit, index, points, normals = call(model, inputs)
    for ray, (origin, direction) in enumerate(zip(origins, directions, strict=True)):
        found = [sphere_hit(origin, direction, c, r) for c, r in zip(centers, radii, strict=True)]
        assert min(margin for _, margin in found) > 0.03
        t, first = min((t, j) for j, (t, _) in enumerate(found))
        if t == math.inf:
            assert index[ray] == -1
            assert t_hit[ray] == points[ray].abs().sum() == normals[ray].abs().sum() == 0
            continue
        point = [o + t * d for o, d in zip(origin, direction, strict=True)]
        normal = [(p - c) / radii[first] for p, c in zip(point, centers[first], strict=True)]
        assert index[ray] == first
        assert [t, *point, *normal] == pytest.approx(
            [t_hit[ray].item(), *points[ray].tolist(), *normals[ray].tolist()], abs=1e-3
        )
    assert 5 < (index < 0).sum() < 55


def test_histogram_counts_values_and_clamps_the_rest() -> None:
    model, (data,) = small("L6_2_Histogram_256", num_pixels=3000)
    data[:3] = torch.tensor([-5, 300, 255])
    expected = [0] * 256
    for value in data.tolist():
        expected[min(max(value, 0), 255)] += 1
    assert call(model, [data])[0].tolist() == expected


def test_gaussian_blur_is_a_blur_along_rows_and_along_columns() -> None:
    model, (image,) = small("L6_3_GaussianBlur_2D", image_height=6, image_width=11, kernel_size=7)
    g = np.array([math.exp(-(step**2) / 18) for step in range(-3, 4)])
    g /= g.sum()
    padded = np.pad(image.double().numpy(), 3)
    along = np.array([[g @ row[j : j + 7] for j in range(11)] for row in padded])
    expect(
        call(model, [image])[0], [[g @ column[i : i + 7] for column in along.T] for i in range(6)]
    )


def test_bilateral_filter_weighs_by_place_and_value() -> None:
    model, (image,) = small("L6_4_BilateralFilter", image_height=6, image_width=7, kernel_size=5)
    padded = np.pad(image.double().numpy(), 2, mode="reflect")
    expected = np.zeros((6, 7))
    for i, j in itertools.product(range(6), range(7)):
        total = weight = 0.0
        for r, c in itertools.product(range(-2, 3), repeat=2):
            pixel = padded[i + 2 + r, j + 2 + c]
            w = math.exp(-(r * r + c * c) / 18 - (pixel - padded[i + 2, j + 2]) ** 2 / 0.08)
            total, weight = total + w * pixel, weight + w
        expected[i, j] = total / weight
    expect(call(model, [image])[0], expected)


def test_erosion_is_the_least_pixel_inside_the_image() -> None:
    model, (image,) = small("L6_6_MorphologyErode", image_height=6, image_width=9, kernel_size=5)
    image += 10  # a zero from outside would win
    rows: list[list[float]] = [row.tolist() for row in image]
    for i, j in itertools.product(range(6), range(9)):
        window = [
            value for row in rows[max(i - 2, 0) : i + 3] for value in row[max(j - 2, 0) : j + 3]
        ]
        assert call(model, [image])[0][i, j] == min(window)


def test_box_filter_divides_by_the_whole_window() -> None:
    model, (image,) = small("L6_7_BoxFilter", image_height=6, image_width=9, kernel_size=3)
    padded = np.pad(image.double().numpy(), 1)
    sums = [padded[i : i + 3, j : j + 3].sum() for i, j in itertools.product(range(6), range(9))]
    expect(call(model, [image])[0], np.reshape(sums, (6, 9)) / 9)


def test_yuv_has_grey_on_its_first_axis() -> None:
    model, (rgb,) = small("L6_8_ColorSpaceConvert_RGB_YUV", image_height=3, image_width=5)
    rgb[0, 0] = torch.tensor([1.0, 1.0, 1.0])
    red, green, blue = rgb.double().numpy().transpose(2, 0, 1)
    y = 0.299 * red + 0.587 * green + 0.114 * blue
    u = -0.147 * red - 0.289 * green + 0.436 * blue
    v = 0.615 * red - 0.515 * green - 0.100 * blue
    output = call(model, [rgb])[0]
    expect(output, np.stack([y, u, v], axis=2))
    assert output[0, 0].tolist() == pytest.approx([1, 0, 0], abs=1e-6)


def equalize(values: list[int]) -> list[int]:
    least = values.count(min(values))
    rest = max(len(values) - least, 1)
    ranks = {v: sum(other <= v for other in values) for v in set(values)}
    return [
        math.floor(Fraction(255 * (ranks[v] - least), rest) + Fraction(rest // 2, rest))
        for v in values
    ]


def test_equalization_spreads_the_ranks_over_all_values() -> None:
    model, (image,) = small("L6_9_HistogramEqualization", image_height=12, image_width=17)
    output = call(model, [image])[0]
    assert output.flatten().tolist() == equalize(image.flatten().tolist())
    assert (output.min(), output.max()) == (0, 255)


def test_splats_are_blended_front_to_back() -> None:
    model, inputs = small(
        "L6_10_GaussianSplat_TileBlend", tiles_y=2, tiles_x=3, splats_per_tile=1, tile_size=4
    )
    splats, lists = (value.tolist() for value in inputs)
    expected = np.zeros((8, 12, 3))
    for py, px in itertools.product(range(8), range(12)):
        light = 1.0
        for number in lists[py // 4][px // 4]:
            x, y, a, b, c, opacity, *color = splats[number]
            alpha = opacity * math.exp(
                -(a * (px - x) ** 2 + 2 * b * (px - x) * (py - y) + c * (py - y) ** 2) / 2
            )
            expected[py, px] += light * alpha * np.array(color)
            light *= 1 - alpha
    expect(call(model, inputs)[0], expected)


def covered(triangle: list, px: int, py: int) -> Fraction | None:
    """The exact height of a triangle over a pixel, from its barycentric coordinates; None beside
    the triangle.
    """
    (x0, y0, z0), (x1, y1, z1), (x2, y2, z2) = triangle
    whole = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if whole == 0:
        return None
    s = Fraction((px - x0) * (y2 - y0) - (x2 - x0) * (py - y0), whole)
    t = Fraction((x1 - x0) * (py - y0) - (px - x0) * (y1 - y0), whole)
    return z0 + s * (z1 - z0) + t * (z2 - z0) if s >= 0 and t >= 0 and s + t <= 1 else None


def test_nearest_triangle_wins_and_the_first_of_equals() -> None:
    model, (vertices,) = small(
        "L6_11_Rasterize_ZBuffer", image_height=9, image_width=12, num_triangles=9
    )
    vertices[3, :, 1] = 4  # no area
    vertices[5] = vertices[4]
    vertices[6, :, 2] = 0
    depth, ids = call(model, [vertices])
    for py, px in itertools.product(range(9), range(12)):
        heights = [covered(triangle, px, py) for triangle in vertices.tolist()]
        found = min(
            ((math.floor(z), k) for k, z in enumerate(heights) if z is not None),
            default=(65536, -1),
        )
        assert (depth[py, px].item(), ids[py, px].item()) == found


def test_distance_is_to_the_nearest_set_pixel() -> None:
    model, (mask,) = small(
        "L6_12_DistanceTransform_Euclidean", image_height=17, image_width=23, density=0.05
    )
    seeds = mask.nonzero().tolist()
    expected = [
        min((i - r) ** 2 + (j - c) ** 2 for r, c in seeds)
        for i, j in itertools.product(range(17), range(23))
    ]
    output = call(model, [mask])[0]
    assert output.dtype == torch.int32
    assert output.flatten().tolist() == expected
