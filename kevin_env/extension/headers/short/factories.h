// New tensors: what ATen/Functions.h brings of it.
#pragma once

#include "tensor.h"

namespace at {

inline Tensor empty(IntArrayRef size, TensorOptions options = {}, std::optional<MemoryFormat> format = std::nullopt) {
  return _ops::empty_memory_format::call(short_sizes(size), KEVIN_SHORT_OPTIONS, short_format(options, format));
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions options = {}) {
  return _ops::empty_strided::call(short_sizes(size), short_sizes(stride), KEVIN_SHORT_OPTIONS);
}
inline Tensor zeros(IntArrayRef size, TensorOptions options = {}) {
  return _ops::zeros::call(short_sizes(size), KEVIN_SHORT_OPTIONS);
}
inline Tensor ones(IntArrayRef size, TensorOptions options = {}) {
  return _ops::ones::call(short_sizes(size), KEVIN_SHORT_OPTIONS);
}
inline Tensor full(IntArrayRef size, const Scalar& value, TensorOptions options = {}) {
  return _ops::full::call(short_sizes(size), value, KEVIN_SHORT_OPTIONS);
}
inline Tensor scalar_tensor(const Scalar& value, TensorOptions options = {}) {
  return _ops::scalar_tensor::call(value, KEVIN_SHORT_OPTIONS);
}

#define KEVIN_SHORT_MADE_LIKE(name)                                                                             \
  inline Tensor name(                                                                                           \
      const Tensor& self, TensorOptions options = {}, std::optional<MemoryFormat> format = std::nullopt) {      \
    return _ops::name::call(self, KEVIN_SHORT_OPTIONS, short_format(options, format));                          \
  }
KEVIN_SHORT_MADE_LIKE(empty_like)
KEVIN_SHORT_MADE_LIKE(zeros_like)
KEVIN_SHORT_MADE_LIKE(ones_like)
#undef KEVIN_SHORT_MADE_LIKE
inline Tensor full_like(
    const Tensor& self, const Scalar& value, TensorOptions options = {},
    std::optional<MemoryFormat> format = std::nullopt) {
  return _ops::full_like::call(self, value, KEVIN_SHORT_OPTIONS, short_format(options, format));
}

}  // namespace at

namespace torch {

template <typename T>
constexpr bool short_is_value =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, bool>;

template <typename T>
at::TensorOptions short_options_of(const at::TensorOptions& options) {
  if (options.short_dtype()) return options;
  if (std::is_same_v<T, bool>) return options.dtype(at::kBool);
  return options.dtype(std::is_integral_v<T> ? at::kLong : c10::get_default_dtype_as_scalartype());
}
template <typename T, typename = std::enable_if_t<short_is_value<T>>>
at::Tensor tensor(T value, const at::TensorOptions& options = {}) {
  return at::scalar_tensor(value, short_options_of<T>(options));
}
template <typename T, typename = std::enable_if_t<short_is_value<T>>>
at::Tensor tensor(std::initializer_list<T> values, const at::TensorOptions& options = {}) {
  const int64_t count = values.size();
  auto made = at::empty(count, short_options_of<T>(options).device(at::kCPU));  // filled there, as torch does
  for (int64_t i = 0; i < count; ++i) made[i].fill_(values.begin()[i]);
  return made.to(options.short_device().value_or(at::kCPU));
}

}  // namespace torch
