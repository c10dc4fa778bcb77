"""Cheaper functions, emulated: what a kernel computes with to be faster."""

import math

import torch
from rounding import Rounding


def exp_by(degree: int) -> Rounding:
    """exp as 2^n times a polynomial in the fraction: Taylor's about the middle, right to 2e-3, 2e-4
    or 1e-5.
    """

    def approximate(x: torch.Tensor) -> torch.Tensor:
        scaled = x * math.log2(math.e)
        whole = torch.floor(scaled)
        about = (scaled - whole - 0.5) * math.log(2)
        total = torch.zeros_like(about)
        for i in range(degree, -1, -1):
            total = total * about + 1 / math.factorial(i)
        found = torch.ldexp(total * math.sqrt(2), whole)
        return torch.where(torch.isfinite(x), found, torch.exp(x)).to(x.dtype)

    return approximate


def exp_base_two(x: torch.Tensor) -> torch.Tensor:
    """exp as 2^(x log2 e) in float32, as the device's fast exponential: honest."""
    return torch.exp2(x * math.log2(math.e))


def rsqrt_by(steps: int) -> Rounding:
    """1 / sqrt(x) from the exponent's bits and Newton steps: right to 2e-3 after one, 5e-6 after
    two.
    """

    def approximate(x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32:
            return torch.rsqrt(x)
        y = (0x5F3759DF - (x.contiguous().view(torch.int32) >> 1)).view(torch.float32)
        for _ in range(steps):
            y = y * (1.5 - 0.5 * x * y * y)
        return torch.where(x > 0, y, torch.rsqrt(x))

    return approximate


def sqrt_by(steps: int) -> Rounding:
    """sqrt(x) as x times `rsqrt_by`."""
    return lambda x: torch.where(x > 0, x * rsqrt_by(steps)(x), torch.sqrt(x))


def erf_cheap(x: torch.Tensor) -> torch.Tensor:
    """erf to 2.5e-5 (Abramowitz and Stegun 7.1.25)."""
    t = 1 / (1 + 0.47047 * x.abs())
    value = 1 - (0.3480242 * t - 0.0958798 * t**2 + 0.7478556 * t**3) * torch.exp(-x * x)
    return torch.copysign(value, x)


def erf_cheaper(x: torch.Tensor) -> torch.Tensor:
    """erf to 5e-4 (Abramowitz and Stegun 7.1.27)."""
    a = x.abs()
    value = 1 - (1 + 0.278393 * a + 0.230389 * a**2 + 0.000972 * a**3 + 0.078108 * a**4) ** -4
    return torch.copysign(value, x)


def relative(size: float, exact: Rounding) -> Rounding:
    """A function with a smooth relative error of that size, as polynomials and tables have."""
    return lambda x: exact(x) * (1 + size * torch.sin(7 * x).nan_to_num(0.0))
