"""Checks that raise errors of other kinds, and what dtypes, formats and lists are called in their texts."""

import pytest
import torch

CPP = r"""
int64_t checked(int64_t kind, torch::Tensor x) {
    TORCH_CHECK_VALUE(kind != 0, "value ", x.dim(), " of ", x.sizes());
    TORCH_CHECK_TYPE(kind != 1, "type ", x.dtype(), " in ", x.to(torch::kHalf).dtype());
    TORCH_CHECK_INDEX(kind != 2, "index ", x.size(0));
    TORCH_CHECK_NOT_IMPLEMENTED(kind != 3, "not yet");
    TORCH_CHECK(kind != 4, x.sizes().slice(1), x.sizes().back(), at::MemoryFormat::ChannelsLast);
    if (kind == 5) return x.sizes().slice(1, 5).front();
    if (kind == 6) return torch::zeros({}).sizes().back();
    return x.sizes().front();
}
void name(torch::Tensor x) { TORCH_CHECK_TYPE(false, x.dtype(), " ", x.scalar_type()); }
"""
BUILD = {"cpp_sources": CPP, "functions": ["checked", "name"]}
EXPECTED = [
    (ValueError, r"value 2 of \[2, 3\]"),
    (TypeError, "type float in c10::Half"),
    (IndexError, "index 2"),
    (NotImplementedError, "not yet"),
    (RuntimeError, r"\[3\]3ChannelsLast"),
    (RuntimeError, "ArrayRef: invalid slice, N = 1; M = 5; size = 2"),
    (RuntimeError, r"ArrayRef: attempted to access back\(\) of empty list"),
]
NAMES = {
    torch.uint8: "unsigned char Byte", torch.int8: "signed char Char", torch.int16: "short int Short",
    torch.int32: "int Int", torch.int64: "long int Long", torch.float16: "c10::Half Half", torch.float32: "float Float",
    torch.float64: "double Double", torch.complex64: "c10::complex<float> ComplexFloat", torch.bool: "bool Bool",
    torch.complex128: "c10::complex<double> ComplexDouble", torch.bfloat16: "c10::BFloat16 BFloat16",
    torch.float8_e5m2: "c10::Float8_e5m2 Float8_e5m2", torch.float8_e4m3fn: "c10::Float8_e4m3fn Float8_e4m3fn",
    torch.uint16: "short unsigned int UInt16", torch.uint32: "unsigned int UInt32",
    torch.uint64: "long unsigned int UInt64",
}  # fmt: skip


def check(ext):
    x = torch.randn(2, 3)
    for kind, (error, text) in enumerate(EXPECTED):
        with pytest.raises(error, match=f"^{text}$") as raised:
            ext.checked(kind, x)
        assert type(raised.value) is error
    assert ext.checked(99, x) == 2
    for dtype, name in NAMES.items():
        with pytest.raises(TypeError) as raised:
            ext.name(torch.empty(1, dtype=dtype))
        assert str(raised.value) == name
