// Types to accumulate and to compute in.
#pragma once

#include "dispatch.h"

#ifdef __CUDACC__
#include <cuda.h>
#include <cuda_fp16.h>
#endif

namespace at {

template <typename T, bool is_cuda>
struct AccumulateType {};
#define KEVIN_SHORT_ACCUMULATE(type_, on_cpu, on_cuda) \
  template <>                                          \
  struct AccumulateType<type_, false> {                \
    using type = on_cpu;                               \
  };                                                   \
  template <>                                          \
  struct AccumulateType<type_, true> {                 \
    using type = on_cuda;                              \
  };
KEVIN_SHORT_ACCUMULATE(c10::BFloat16, float, float)
KEVIN_SHORT_ACCUMULATE(c10::Half, float, float)
KEVIN_SHORT_ACCUMULATE(float, double, float)
KEVIN_SHORT_ACCUMULATE(double, double, double)
KEVIN_SHORT_ACCUMULATE(int8_t, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(uint8_t, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(char, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(int16_t, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(int32_t, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(int64_t, int64_t, int64_t)
KEVIN_SHORT_ACCUMULATE(bool, bool, bool)
#undef KEVIN_SHORT_ACCUMULATE
#ifdef __CUDACC__
template <>
struct AccumulateType<half, true> {
  using type = float;
};
#endif
template <typename T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;

template <typename T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<c10::Half> {
  using type = float;
};
template <>
struct OpMathType<c10::BFloat16> {
  using type = float;
};
template <typename T>
using opmath_type = typename OpMathType<T>::type;

}  // namespace at
