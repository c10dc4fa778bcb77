"""Linear and ReLU in Triton: grouped tiles, a weight turned by its strides, two configurations to choose from.

problem: linear.py
device: any
rules: kernel
expect: correct
"""

import os

os.environ.setdefault("TRITON_PRINT_AUTOTUNING", "0")

import torch
import torch.nn as nn
import triton
import triton.language as tl


def get_configs():
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": 8}, num_stages=s, num_warps=w)
        for m, n, s, w in [(64, 64, 2, 4), (64, 128, 3, 4)]
    ]


@triton.autotune(configs=get_configs(), key=["M", "N", "K"])
@triton.jit
def linear_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    """C = act(A @ B + bias)."""
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    accumulator += tl.load(bias_ptr + offs_bn)[None, :]
    if ACTIVATION == "relu":
        accumulator = tl.maximum(accumulator, 0.0)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :], accumulator, mask=c_mask)


def linear_relu(x, weight, bias, activation="relu"):
    assert x.shape[1] == weight.shape[1], "Incompatible dimensions"
    assert x.is_contiguous(), "Matrix A must be contiguous"
    M, K = x.shape
    N, K = weight.shape
    c = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)
    linear_kernel[grid](
        x, weight, bias, c,
        M, N, K,
        x.stride(0), x.stride(1), weight.stride(1), weight.stride(0), c.stride(0), c.stride(1),
        ACTIVATION=activation,
    )  # fmt: skip
    return c


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, *, activation="relu"):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.activation = activation

    def forward(self, x):
        return linear_relu(x, self.linear.weight, self.linear.bias, activation=self.activation)
