// New tensors: what ATen/Functions.h brings of it.
#pragma once

#include "tensor.h"

namespace at {

inline Tensor empty(IntArrayRef size, TensorOptions options = {}) {
  return _ops::empty_memory_format::call(
      short_sizes(size), options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt, std::nullopt);
}
inline Tensor zeros(IntArrayRef size, TensorOptions options = {}) {
  return _ops::zeros::call(
      short_sizes(size), options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt);
}
inline Tensor ones(IntArrayRef size, TensorOptions options = {}) {
  return _ops::ones::call(
      short_sizes(size), options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt);
}
inline Tensor empty_like(const Tensor& self, TensorOptions options = {}) {
  return _ops::empty_like::call(
      self, options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt, std::nullopt);
}
inline Tensor zeros_like(const Tensor& self, TensorOptions options = {}) {
  return _ops::zeros_like::call(
      self, options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt, std::nullopt);
}
inline Tensor ones_like(const Tensor& self, TensorOptions options = {}) {
  return _ops::ones_like::call(
      self, options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt, std::nullopt);
}

}  // namespace at
