"""The level 2 references, each against its statement written out with numpy in float64."""

import itertools
import math

import numpy as np
import torch
from test_problem_files import call, close, small

Weights = dict[str, np.ndarray]


def wide(x: torch.Tensor) -> np.ndarray:
    return x.detach().double().numpy()


def weights(model: torch.nn.Module) -> Weights:
    return {name: wide(value) for name, value in model.named_parameters()}


def same(model: torch.nn.Module, x: torch.Tensor, expected: np.ndarray) -> None:
    close(call(model, [x])[0], torch.from_numpy(np.ascontiguousarray(expected)))


def linear(x: torch.Tensor, w: Weights, layer: str = "matmul") -> np.ndarray:
    return np.einsum("bi,oi->bo", wide(x), w[f"{layer}.weight"]) + w[f"{layer}.bias"]


def conv(x: torch.Tensor, w: Weights) -> np.ndarray:
    """The convolution of maps with `conv.weight`, and `conv.bias` where there is one."""
    kernel = w["conv.weight"]
    seen = np.lib.stride_tricks.sliding_window_view(wide(x), kernel.shape[2:], axis=(2, 3))
    return (
        np.einsum("bcijrs,ocrs->boij", seen, kernel)
        + w.get("conv.bias", np.zeros(1))[:, None, None]
    )


def blocks(x: np.ndarray, size: int) -> np.ndarray:
    """Maps cut in blocks of size x size, the rest left out: (batch, channels, height, width, size *
    size).
    """
    high, wide_ = (length // size for length in x.shape[2:])
    cut = x[:, :, : high * size, : wide_ * size].reshape(*x.shape[:2], high, size, wide_, size)
    return cut.transpose(0, 1, 2, 4, 3, 5).reshape(*x.shape[:2], high, wide_, size * size)


def normalized(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def swish(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


MAPS = {"batch_size": 2, "in_channels": 3, "out_channels": 6, "height": 9, "width": 12}


def test_conv3d_softmax_and_two_poolings() -> None:
    sizes = {
        "batch_size": 2, "in_channels": 2, "out_channels": 5, "depth": 8, "height": 11, "width": 7,
    }  # fmt: skip
    model, (x,) = small("L2_6_Conv3d_Softmax_MaxPool_MaxPool", **sizes)
    w = weights(model)
    seen = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3, 3), axis=(2, 3, 4))
    z = (
        np.einsum("bcdijqrs,ocqrs->bodij", seen, w["conv.weight"])
        + w["conv.bias"][:, None, None, None]
    )
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    expected = np.empty((2, 5, 1, 2, 1))
    for d, i, j in itertools.product(*map(range, expected.shape[2:])):
        expected[:, :, d, i, j] = p[
            :, :, 4 * d : 4 * d + 4, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4
        ].max((2, 3, 4))
    same(model, x, expected)


def test_conv_instance_norm_divide() -> None:
    model, (x,) = small("L2_17_Conv2d_InstanceNorm_Divide", **MAPS, divide_by=-3.0)
    same(model, x, normalized(conv(x, weights(model)), (2, 3)) / -3)


def test_matmul_swish_sum_group_norm() -> None:
    model, (x,) = small(
        "L2_37_Matmul_Swish_Sum_GroupNorm",
        batch_size=3,
        in_features=7,
        out_features=12,
        num_groups=4,
    )
    w = weights(model)
    t = (swish(linear(x, w)) + w["bias"]).reshape(3, 4, 3)
    same(
        model, x, normalized(t, (2,)).reshape(3, 12) * w["group_norm.weight"] + w["group_norm.bias"]
    )


def test_matmul_scaling_residual_add() -> None:
    sizes = {"batch_size": 3, "in_features": 7, "out_features": 5, "scaling_factor": 0.5}
    model, (x,) = small("L2_40_Matmul_Scaling_ResidualAdd", **sizes)
    same(model, x, 1.5 * linear(x, weights(model)))


def test_conv_subtract_tanh_subtract_average_pooling() -> None:
    values = {"subtract1_value": 0.5, "subtract2_value": -0.2, "kernel_size_pool": 3}
    model, (x,) = small("L2_46_Conv2d_Subtract_Tanh_Subtract_AvgPool", **MAPS, **values)
    same(model, x, blocks(np.tanh(conv(x, weights(model)) - 0.5) + 0.2, 3).mean(4))


def mish(z: np.ndarray) -> np.ndarray:
    return z * np.tanh(np.logaddexp(0, z))


def test_conv_mish_batch_norm() -> None:
    model, (x,) = small("L2_52_Conv2d_Activation_BatchNorm", **MAPS)
    w = weights(model)
    for mode in (model.train(), model.eval()):  # the batch's own statistics in both
        n = normalized(mish(conv(x, w)), (0, 2, 3))
        same(mode, x, n * w["bn.weight"][:, None, None] + w["bn.bias"][:, None, None])


def test_matmul_max_pooling_sum_scale() -> None:
    sizes = {
        "batch_size": 4, "in_features": 7, "out_features": 11, "kernel_size": 3,
        "scale_factor": -0.5,
    }  # fmt: skip
    model, (x,) = small("L2_55_Matmul_MaxPool_Sum_Scale", **sizes)
    same(model, x, -0.5 * linear(x, weights(model))[:, :9].reshape(4, 3, 3).max(2).sum(1))


def test_matmul_swish_scaling() -> None:
    sizes = {"batch_size": 4, "in_features": 7, "out_features": 5, "scaling_factor": -2.5}
    model, (x,) = small("L2_59_Matmul_Swish_Scaling", **sizes)
    same(model, x, -2.5 * swish(linear(x, weights(model))))


def mixed(n: int) -> int:
    n = ((n ^ (n >> 16)) * 0x85EBCA6B) % 2**32
    n = ((n ^ (n >> 13)) * 0xC2B2AE35) % 2**32
    return n ^ (n >> 16)


def test_matmul_dropout_mean_softmax() -> None:
    sizes = {"batch_size": 5, "in_features": 7, "out_features": 40, "dropout_p": 0.35}
    model, (x, seed) = small("L2_66_Matmul_Dropout_Mean_Softmax", **sizes)
    kept = np.array([mixed(n ^ int(seed)) >= math.floor(0.35 * 2**32) for n in range(200)]).reshape(
        5, 40
    )
    means = (linear(x, weights(model)) / 0.65 * kept).mean(1)
    close(
        call(model, [x, seed])[0], torch.from_numpy((np.exp(means) / np.exp(means).sum())[:, None])
    )


def test_conv_batch_norm_scaling() -> None:
    model, (x,) = small("L2_73_Conv2d_BatchNorm_Scaling", **MAPS, scaling_factor=-2.0)
    w = weights(model)
    for mode in (model.train(), model.eval()):
        n = normalized(conv(x, w), (0, 2, 3))
        same(mode, x, -2 * (n * w["bn.weight"][:, None, None] + w["bn.bias"][:, None, None]))


def test_conv_tanh_scaling_bias_max_pooling() -> None:
    for factor in (2.0, -1.5):
        model, (x,) = small(
            "L2_82_Conv2d_Tanh_Scaling_BiasAdd_Max",
            **MAPS,
            scaling_factor=factor,
            pool_kernel_size=3,
        )
        w = weights(model)
        same(model, x, blocks(factor * np.tanh(conv(x, w)) + w["bias"], 3).max(4))


def test_conv_group_norm_scale_max_pooling_clamp() -> None:
    id = "L2_85_Conv2d_GroupNorm_Scale_MaxPool_Clamp"
    model, (x,) = small(id, **MAPS, num_groups=2, clamp_min=-0.3, clamp_max=0.4)
    w = weights(model)
    z = conv(x, w)
    n = normalized(z.reshape(2, 2, -1), (2,)).reshape(z.shape)
    n = n * w["group_norm.weight"][:, None, None] + w["group_norm.bias"][:, None, None]
    same(model, x, np.clip(blocks(n * w["scale"], 2).max(4), -0.3, 0.4))


def test_matmul_divide_gelu() -> None:
    model, (x,) = small(
        "L2_86_Matmul_Divide_GELU", batch_size=4, input_size=7, output_size=5, divisor=-8.0
    )
    same(model, x, gelu(linear(x, weights(model), "linear") / -8))


def test_matmul_average_pooling_gelu_scale_max() -> None:
    sizes = {"batch_size": 4, "in_features": 7, "out_features": 14, "pool_kernel_size": 4}
    for factor in (2.0, -3.0):
        model, (x,) = small("L2_98_Matmul_AvgPool_GELU_Scale_Max", **sizes, scale_factor=factor)
        means = linear(x, weights(model))[:, :12].reshape(4, 3, 4).mean(2)
        same(model, x, (factor * gelu(means)).max(1))
