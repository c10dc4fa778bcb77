// The current stream and checks of CUDA calls, done by torch's own functions.
#pragma once

#include <cuda_runtime_api.h>

#include "tensor.h"

#ifndef KEVIN_SHORT_LINE
#define KEVIN_SHORT_LINE uint32_t  // the type that this torch gives a line number in its check
#endif

namespace c10::cuda {

void c10_cuda_check_implementation(
    const int32_t error, const char* file, const char* function, const KEVIN_SHORT_LINE line, const bool assertions);

class CUDAStream {
  Device device_;  // with what follows: c10::Stream
  int64_t id_;

 public:
  operator cudaStream_t() const { return stream(); }
  cudaStream_t stream() const;
  void synchronize() const;
  DeviceIndex device_index() const { return device_.index(); }
  Device device() const { return Device(DeviceType::CUDA, device_index()); }
  int64_t id() const { return id_; }
  friend bool operator==(const CUDAStream& a, const CUDAStream& b) { return a.device_ == b.device_ && a.id_ == b.id_; }
  friend bool operator!=(const CUDAStream& a, const CUDAStream& b) { return !(a == b); }
};

CUDAStream getCurrentCUDAStream(DeviceIndex device_index = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex device_index = -1);

}  // namespace c10::cuda

namespace at::cuda {
using namespace c10::cuda;
}  // namespace at::cuda

#define C10_CUDA_CHECK(EXPR)                                                                              \
  do {                                                                                                    \
    const cudaError_t __err = EXPR;                                                                       \
    c10::cuda::c10_cuda_check_implementation(                                                             \
        static_cast<int32_t>(__err), __FILE__, __func__, static_cast<KEVIN_SHORT_LINE>(__LINE__), true);   \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
