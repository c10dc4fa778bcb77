// Guards of the current GPU.
#pragma once

#include "cuda.h"

extern "C" {
struct CUDAGuardOpaque;
int32_t aoti_torch_create_cuda_guard(int32_t, CUDAGuardOpaque**);
int32_t aoti_torch_delete_cuda_guard(CUDAGuardOpaque*);
}

namespace c10::cuda {

class ShortGuard {
  CUDAGuardOpaque* guard_ = nullptr;

 protected:
  ShortGuard() = default;
  ShortGuard(const ShortGuard&) = delete;
  ShortGuard& operator=(const ShortGuard&) = delete;
  ~ShortGuard() {
    if (guard_) aoti_torch_delete_cuda_guard(guard_);
  }
  void set(DeviceIndex index) {
    if (aoti_torch_create_cuda_guard(index, &guard_)) TORCH_CHECK(false, "CUDA error: invalid device ordinal");
  }
  void set(Device device) {
    TORCH_CHECK(device.is_cuda(), "CUDAGuardImpl initialized with non-CUDA DeviceType: ", device.type());
    set(device.index());
  }
};

struct CUDAGuard : private ShortGuard {
  explicit CUDAGuard(DeviceIndex index) { set(index); }
  explicit CUDAGuard(Device device) { set(device); }
};

struct OptionalCUDAGuard : private ShortGuard {
  explicit OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set(*device);
  }
};

}  // namespace c10::cuda
