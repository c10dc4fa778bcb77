"""One thread per block, in sixteen registers; its 128 bytes of output are written as eight stores of two words."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>

__device__ uint32_t turned(uint32_t x, int by) { return __funnelshift_l(x, x, by); }

__device__ void quarter_round(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
    a += b; d = turned(d ^ a, 16);
    c += d; b = turned(b ^ c, 12);
    a += b; d = turned(d ^ a, 8);
    c += d; b = turned(b ^ c, 7);
}

__global__ void chacha20_kernel(const long long* constants, const long long* key, const long long* nonce,
                                const long long* counter, longlong2* out, int64_t count) {
    const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (number >= count) return;
    uint32_t start[16], x[16];
    #pragma unroll
    for (int i = 0; i < 16; ++i)
        start[i] = x[i] = uint32_t(i < 4 ? constants[i] : i < 12 ? key[i - 4] : i == 12 ? counter[number] : nonce[i - 13]);
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
        #pragma unroll
        for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
    #pragma unroll
    for (int i = 0; i < 16; i += 2)
        out[8 * number + i / 2] = make_longlong2(x[i] + start[i], x[i + 1] + start[i + 1]);
}

void chacha20(int64_t constants, int64_t key, int64_t nonce, int64_t counter, int64_t out, int64_t count,
              int64_t stream) {
    auto words = [](int64_t address) { return reinterpret_cast<const long long*>(address); };
    chacha20_kernel<<<int((count + 127) / 128), 128, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        words(constants), words(key), words(nonce), words(counter), reinterpret_cast<longlong2*>(out), count);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void chacha20(int64_t constants, int64_t key, int64_t nonce, int64_t counter, int64_t out, int64_t count,
              int64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("chacha20", &chacha20); }
"""

extension = load_inline(
    name="chacha20",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("constants", torch.empty(4, dtype=torch.int64))

    def forward(self, key: torch.Tensor, nonce: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
        count = counter.numel()
        out = counter.new_empty(count, 16)
        stream = torch.cuda.current_stream().cuda_stream
        extension.chacha20(
            self.constants.data_ptr(), key.data_ptr(), nonce.data_ptr(), counter.data_ptr(), out.data_ptr(), count,
            stream,
        )  # fmt: skip
        return out
