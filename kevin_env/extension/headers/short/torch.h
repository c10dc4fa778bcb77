// What torch/types.h brings: the namespace torch.
#pragma once

#include <torch/cuda.h>

#include "dispatch.h"
#include "factories.h"
#include "grad_mode.h"
#include "parallel.h"
#include "print.h"

namespace torch {
using namespace at;
using std::nullopt;
using std::optional;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt, kInt64 = at::kLong,
               kUInt16 = at::kUInt16, kUInt32 = at::kUInt32, kUInt64 = at::kUInt64, kFloat16 = at::kHalf,
               kFloat32 = at::kFloat, kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8, kU16 = kUInt16, kU32 = kUInt32, kU64 = kUInt64, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32,
               kI64 = kInt64, kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;
}  // namespace torch
