"""The low-precision references of level 4, against loops over values that are decoded by hand."""

import itertools
import math
from typing import Any

import pytest
import torch
from test_problem_files import call, small


def fp8(tensor: torch.Tensor) -> list[float]:
    """The values of 8-bit floats from their bits: 1 sign, 4 or 5 bits of exponent, a fraction."""
    exponent, bias = (5, 15) if tensor.dtype == torch.float8_e5m2 else (4, 7)
    fraction = 7 - exponent
    values: list[float] = []
    for byte in tensor.contiguous().view(torch.uint8).flatten().tolist():
        power, rest = byte >> fraction & (1 << exponent) - 1, byte & (1 << fraction) - 1
        size = rest / (1 << fraction) + (power > 0)
        values.append((-1) ** (byte >> 7) * size * 2.0 ** (max(power, 1) - bias))
    return values


def decoded(tensor: torch.Tensor) -> torch.Tensor:
    eight = tensor.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    values = fp8(tensor) if eight else tensor.double().flatten().tolist()
    return torch.tensor(values, dtype=torch.float64).reshape(tensor.shape)


def e2m1(packed: torch.Tensor) -> torch.Tensor:
    """The values of packed 4-bit floats, the low four bits first."""
    sizes = [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]
    rows = [
        [(-1) ** (code >> 3) * sizes[code & 7] for byte in row for code in (byte % 16, byte // 16)]
        for row in packed.tolist()
    ]
    return torch.tensor(rows, dtype=torch.float64)


def made(id: str, **sizes: int) -> tuple[Any, list[torch.Tensor]]:
    """A reference of these sizes, whose buffers have no type that is known, and its inputs."""
    return small(id, **sizes)


def near(actual: torch.Tensor, expected: torch.Tensor, eps: float = 2.0**-6) -> None:
    """Within a few roundings to bfloat16 of the largest value."""
    assert actual.shape == expected.shape
    assert (decoded(actual) - expected).abs().max() <= eps * expected.abs().max()


def test_a_scale_per_row_and_channel() -> None:
    for id in ("L4_14_FP8_GEMM_RowScales", "L4_24_INT8_GEMM_ChannelScales"):
        model, (x, x_scale) = made(id, M=3, K=17, N=5)
        expected = decoded(x) @ decoded(model.weight).T * x_scale * model.weight_scale
        near(call(model, [x, x_scale])[0], expected + getattr(model, "bias", 0))


def test_a_scale_per_group_and_block() -> None:
    model, (x, x_scale) = made("L4_15_FP8_GEMM_BlockScales", M=3, K=9, N=7, GROUP=4)
    assert x_scale.shape == (3, 3) and model.weight_scale.shape == (2, 3)
    a, b = decoded(x), decoded(model.weight)
    for m, k in itertools.product(range(3), range(9)):
        a[m, k] *= float(x_scale[m, k // 4])
    for n, k in itertools.product(range(7), range(9)):
        b[n, k] *= float(model.weight_scale[n // 4, k // 4])
    near(call(model, [x, x_scale])[0], a @ b.T)


def test_the_gradient_sums_over_the_rows_of_the_weight() -> None:
    model, (dy, scale) = made("L4_16_FP8_GEMM_E5M2_Gradient", M=3, N=11, K=5)
    assert dy.dtype == torch.float8_e5m2
    expected = decoded(dy) @ decoded(model.weight) * float(scale) * float(model.weight_scale)
    near(call(model, [dy, scale])[0], expected)


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """One query to some keys."""
    scores = [scale * float(q @ key) for key in k]
    powers = [math.exp(score - max(scores)) for score in scores]
    values = [power / sum(powers) * value for power, value in zip(powers, v, strict=True)]
    return torch.stack(values).sum(0)


def test_attention_to_earlier_keys_of_the_group() -> None:
    sizes = {"batch_size": 2, "num_heads": 4, "num_kv_heads": 2, "seq_len": 5, "head_dim": 8}
    model, (q, k, v, *scales) = made("L4_17_FP8_CausalAttention", **sizes)
    expected = torch.empty(q.shape, dtype=torch.float64)
    for b, h, i in itertools.product(range(2), range(4), range(5)):
        a, c, d = (float(scale[h // 2]) for scale in scales)
        keys, values = decoded(k[b, h // 2, : i + 1]), decoded(v[b, h // 2, : i + 1])
        expected[b, h, i] = d * attended(decoded(q[b, h, i]), keys, values, a * c / math.sqrt(8))
    near(call(model, [q, k, v, *scales])[0], expected, 2.0**-4)


def test_decoding_stops_at_the_end_of_each_sequence() -> None:
    sizes = {"batch_size": 3, "num_heads": 4, "num_kv_heads": 2, "max_len": 9, "head_dim": 8}
    model, (q, k, v, lens, a, c) = made("L4_18_FP8_KVCacheDecode", **sizes)
    expected = torch.empty(q.shape, dtype=torch.float64)
    for b, h in itertools.product(range(3), range(4)):
        g, end = h // 2, int(lens[b])
        keys, values = decoded(k[b, :end, g]), decoded(v[b, :end, g])
        scale = float(a[g]) / math.sqrt(8)
        expected[b, h] = float(c[g]) * attended(decoded(q[b, h]), keys, values, scale)
    near(call(model, [q, k, v, lens, a, c])[0], expected)


def test_each_row_has_the_matrix_of_its_expert() -> None:
    for id in ("L4_19_MoE_GroupedGEMM_BF16", "L4_20_MoE_GroupedGEMM_FP8"):
        model, (x, *scale, offsets) = made(id, num_rows=13, num_experts=4, K=6, N=5)
        assert offsets.tolist()[0] == 0 and offsets.tolist()[-1] == 13
        offsets = torch.tensor([0, 2, 2, 9, 13], dtype=torch.int32)
        weight = decoded(model.weight)
        expert = [0, 0, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3]
        expected = torch.stack([weight[e] @ row for e, row in zip(expert, decoded(x), strict=True)])
        if scale:
            expected *= scale[0] * model.weight_scale[expert]
        near(call(model, [x, *scale, offsets])[0], expected)


def test_weights_of_four_bits() -> None:
    model, (x,) = made("L4_21_MXFP4_GEMM", M=3, K=64, N=5)
    power = 2.0 ** (model.exponents.double() - 127)
    near(call(model, [x])[0], decoded(x) @ (e2m1(model.weight_packed) * spread(power, 32)).T)
    model, (x,) = made("L4_22_NVFP4_GEMM", M=3, K=64, N=5)
    weight = e2m1(model.weight_packed) * spread(decoded(model.scales), 16)
    near(call(model, [x])[0], float(model.global_scale) * decoded(x) @ weight.T)
    model, (x,) = made("L4_23_INT4_GEMM_ZeroPoints", M=3, K=12, N=5, group_size=6)
    q = torch.tensor(
        [[c for b in row for c in (b % 16, b // 16)] for row in model.weight_packed.tolist()]
    )
    weight = (q - spread(model.zeros.long(), 6)) * spread(model.scales.double(), 6)
    near(call(model, [x])[0], decoded(x) @ weight.T)


def spread(scales: torch.Tensor, count: int) -> torch.Tensor:
    return torch.stack([scales[:, k // count] for k in range(scales.shape[1] * count)], dim=1)


def nearest(values: torch.Tensor, known: list[float]) -> list[float]:
    """Each value's nearest of some, of two that are as near the one at an even place."""

    def one(value: float) -> float:
        order = sorted(range(len(known)), key=lambda i: (abs(known[i] - value), i % 2))
        return known[order[0]]

    return [one(value) for value in values.flatten().tolist()]


E4M3 = fp8(torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn))


def check_quantized(y: torch.Tensor, scale: torch.Tensor, h: torch.Tensor, size: int) -> None:
    """Groups of `size` are as large as fits, and values the nearest of 8 bits."""
    for m, g in itertools.product(range(h.shape[0]), range(scale.shape[1])):
        group, given = h[m, g * size : (g + 1) * size], y[m, g * size : (g + 1) * size]
        torch.testing.assert_close(float(scale[m, g]), float(max(group.abs().max(), 1e-4)) / 448)
        scaled = group.float() / scale[m, g]
        wrong = decoded(given).abs() - torch.tensor(nearest(scaled.abs().double(), E4M3)).double()
        assert (wrong != 0).sum() <= 1 and ((scaled < 0) <= (decoded(given) <= 0)).all()


def test_groups_are_quantized_with_their_largest_value() -> None:
    model, (x,) = made("L4_25_FP8_QuantizeGroups", M=3, K=11, GROUP=4)
    x[1, :4] = 0
    y, scale = call(model, [x])
    assert scale.shape == (3, 3)
    check_quantized(y, scale, x.double(), 4)
    model, (x,) = made("L4_28_SwiGLU_FP8Quantize", num_tokens=3, intermediate_size=11, GROUP=4)
    gate, up = x.double().chunk(2, dim=1)
    y, scale = call(model, [x])
    check_quantized(y, scale, gate / (1 + torch.exp(-gate)) * up, 4)


def test_a_norm_is_quantized_row_by_row() -> None:
    model, (x, residual) = made("L4_27_RMSNorm_FP8Quantize", num_tokens=3, hidden_size=11)
    y, scale, s = call(model, [x, residual])
    assert torch.equal(s, (x.float() + residual.float()).bfloat16())
    wide = s.double()
    weight = model.weight.detach().double()
    norm = wide / (1e-5 + wide.square().mean(1, keepdim=True)).sqrt() * weight
    check_quantized(y, scale, norm, 11)


def test_mxfp4_takes_the_nearest_code_of_a_power_of_two() -> None:
    model, (x,) = made("L4_26_MXFP4_Quantize", M=4, K=64)
    x[1, :32], x[2, :4] = 0, torch.tensor([7.0, -0.25, 5.0, 2.5])
    packed, exponents = call(model, [x])
    for m, g in itertools.product(range(4), range(2)):
        group = x[m, 32 * g : 32 * g + 32].double()
        values = e2m1(packed[m : m + 1, 16 * g : 16 * g + 16])[0]
        if not group.any():
            assert not values.any() and exponents[m, g] == 0
            continue
        power = math.floor(math.log2(float(group.abs().max()))) - 2
        assert exponents[m, g] == power + 127
        wanted = nearest(group.abs() / 2.0**power, [0, 0.5, 1, 1.5, 2, 3, 4, 6])
        assert torch.equal(values.abs(), torch.tensor(wanted).double())
        assert ((group < 0) == (torch.signbit(values))).all()


def test_a_block_is_multiplied_by_its_scale() -> None:
    model, (x, scale) = made("L4_29_FP8_BlockDequantize", rows=7, columns=9, BLOCK=4)
    assert scale.shape == (2, 3)
    expected = decoded(x)
    for i, j in itertools.product(range(7), range(9)):
        expected[i, j] *= float(scale[i // 4, j // 4])
    near(call(model, [x, scale])[0], expected)


def test_the_decoders_of_this_file() -> None:
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        every = torch.arange(120, dtype=torch.uint8).view(dtype)
        assert torch.equal(decoded(every), every.double())
    assert pytest.approx(E4M3[-1]) == 448
