// What ATen adds: a device's properties, and its own name for the check.
#pragma once

#include "cuda.h"

namespace at::cuda {
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(DeviceIndex device);
}  // namespace at::cuda

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
