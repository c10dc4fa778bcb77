
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void box(const float *in, float *out, int64_t h, int64_t w, int64_t radius) {
    float *sums = calloc(w, sizeof(float));
    const float scale = 1.0f / ((2 * radius + 1) * (2 * radius + 1));
    for (int64_t i = 0; i < radius && i < h; ++i)
        for (int64_t j = 0; j < w; ++j) sums[j] += in[i * w + j];
    for (int64_t i = 0; i < h; ++i) {
        if (i + radius < h) for (int64_t j = 0; j < w; ++j) sums[j] += in[(i + radius) * w + j];
        if (i - radius > 0) for (int64_t j = 0; j < w; ++j) sums[j] -= in[(i - radius - 1) * w + j];
        float run = 0;
        for (int64_t j = 0; j < radius && j < w; ++j) run += sums[j];
        for (int64_t j = 0; j < w; ++j) {
            if (j + radius < w) run += sums[j + radius];
            if (j - radius > 0) run -= sums[j - radius - 1];
            out[i * w + j] = run * scale;
        }
    }
    free(sums);
}
