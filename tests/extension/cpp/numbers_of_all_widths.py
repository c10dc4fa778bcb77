"""Numbers of every width, whose limits are looked at as pybind11 looks at them."""

import pytest
import torch

CPP = r"""
int64_t small(int8_t a, uint8_t b, short c) { return a + b + c; }
uint64_t large(uint64_t x) { return x; }
int middle(int x, unsigned y) { return x - static_cast<int>(y); }
double real(float x, double y) { return x + y; }
bool flag(bool x) { return !x; }
size_t size(size_t x) { return x; }
"""
BUILD = {"cpp_sources": CPP, "functions": ["small", "large", "middle", "real", "flag", "size"]}


class Index:
    def __index__(self):
        return 5


class Number:
    def __int__(self):
        return 6

    def __float__(self):
        return 0.5


def check(ext):
    assert ext.small(-128, 255, 7) == 134 and ext.large(2**64 - 1) == 2**64 - 1
    assert ext.middle(Index(), Number()) == -1 and ext.middle(True, torch.tensor(3)) == -2
    assert ext.real(1, Number()) == 1.5 and ext.real(torch.tensor(0.5), True) == 1.5
    assert ext.flag(0) is True and ext.flag(None) is True and ext.flag(2.5) is False
    for call in (
        lambda: ext.small(128, 0, 0), lambda: ext.small(0, -1, 0), lambda: ext.large(-1), lambda: ext.large(2**64),
        lambda: ext.middle(1.0, 1), lambda: ext.middle(2**31, 0), lambda: ext.middle("1", 0), lambda: ext.real("1", 0),
        lambda: ext.flag("yes"), lambda: ext.size(-1), lambda: ext.size(), lambda: ext.size(1, 2), lambda: ext.size(x=1),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"incompatible function arguments\. The following"):
            call()
