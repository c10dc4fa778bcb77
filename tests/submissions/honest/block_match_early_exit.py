"""Block matching with an early exit per candidate; three outputs as a list that is turned into a tuple at the end.

problem: L8_1_MotionEstimation_BlockMatch
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCES = {
    "match.h": """
#pragma once
#include <cstdint>
struct Frame { const uint8_t* data; int height, width; int at(int i, int j) const {
    return i < 0 || j < 0 || i >= height || j >= width ? 0 : data[i * width + j]; } };
""",
    "match.cpp": """
#include "match.h"
#include <cstdlib>
extern "C" void match(const uint8_t* cur, const uint8_t* ref, int32_t* mx, int32_t* my, int32_t* sad, int h, int w, int B, int R) {
    const Frame c{cur, h, w}, r{ref, h, w};
    for (int m = 0; m < h / B; ++m)
        for (int n = 0; n < w / B; ++n) {
            int best = INT32_MAX, bx = 0, by = 0;
            for (int dy = -R; dy <= R; ++dy)
                for (int dx = -R; dx <= R; ++dx) {
                    int cost = 0;
                    for (int i = 0; i < B && cost < best; ++i)
                        for (int j = 0; j < B; ++j)
                            cost += std::abs(c.at(m * B + i, n * B + j) - r.at(m * B + i + dy, n * B + j + dx));
                    if (cost < best) best = cost, bx = dx, by = dy;
                }
            const int at = m * (w / B) + n;
            mx[at] = bx, my[at] = by, sad[at] = best;
        }
}
""",
}


def build():
    for name, text in SOURCES.items():
        with open(name, "w") as file:
            file.write(text)
    subprocess.run("g++ -O3 -march=native -fPIC -shared match.cpp -o match.so".split(), check=True)
    return ctypes.CDLL("./match.so").match


match_blocks = build()


class ModelNew(nn.Module):
    def __init__(self, block_size: int = 16, search_range: int = 16):
        super().__init__()
        self.block_size, self.search_range = block_size, search_range

    def forward(self, current_frame, reference_frame):
        (h, w), B = current_frame.shape, self.block_size
        shape = (h // B, w // B)
        results = [torch.empty(shape, dtype=torch.int32) for _ in range(3)]
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in [current_frame, reference_frame] + results]
        match_blocks(*pointers, h, w, B, self.search_range)
        return tuple(results)
