// Operators of torch by the names and signatures that it exports: those that make, copy and view tensors.
#pragma once

#include "scalar.h"

namespace at {
class Tensor;
}

namespace at::_ops {
#define KEVIN_SHORT_OPERATOR(name, result, ...) \
  struct name {                                 \
    static result call(__VA_ARGS__);            \
  };
#define KEVIN_SHORT_LIKE \
  std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>, std::optional<bool>
KEVIN_SHORT_OPERATOR(empty_memory_format, Tensor, SymIntArrayRef, KEVIN_SHORT_LIKE, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(zeros, Tensor, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(ones, Tensor, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(empty_like, Tensor, const Tensor&, KEVIN_SHORT_LIKE, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(zeros_like, Tensor, const Tensor&, KEVIN_SHORT_LIKE, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(ones_like, Tensor, const Tensor&, KEVIN_SHORT_LIKE, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(contiguous, Tensor, const Tensor&, MemoryFormat)
KEVIN_SHORT_OPERATOR(to_dtype, Tensor, const Tensor&, ScalarType, bool, bool, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(clone, Tensor, const Tensor&, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(view, Tensor, const Tensor&, SymIntArrayRef)
KEVIN_SHORT_OPERATOR(reshape, Tensor, const Tensor&, SymIntArrayRef)
KEVIN_SHORT_OPERATOR(permute, Tensor, const Tensor&, IntArrayRef)
KEVIN_SHORT_OPERATOR(transpose_int, Tensor, const Tensor&, int64_t, int64_t)
KEVIN_SHORT_OPERATOR(t, Tensor, const Tensor&)
KEVIN_SHORT_OPERATOR(unsqueeze, Tensor, const Tensor&, int64_t)
KEVIN_SHORT_OPERATOR(squeeze, Tensor, const Tensor&)
KEVIN_SHORT_OPERATOR(squeeze_dim, Tensor, const Tensor&, int64_t)
KEVIN_SHORT_OPERATOR(flatten_using_ints, Tensor, const Tensor&, int64_t, int64_t)
KEVIN_SHORT_OPERATOR(detach, Tensor, const Tensor&)
KEVIN_SHORT_OPERATOR(copy_, Tensor&, Tensor&, const Tensor&, bool)
KEVIN_SHORT_OPERATOR(zero_, Tensor&, Tensor&)
KEVIN_SHORT_OPERATOR(fill__Scalar, Tensor&, Tensor&, const Scalar&)
KEVIN_SHORT_OPERATOR(item, Scalar, const Tensor&)
KEVIN_SHORT_OPERATOR(
    to_dtype_layout, Tensor, const Tensor&, KEVIN_SHORT_LIKE, bool, bool, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(to_device, Tensor, const Tensor&, Device, ScalarType, bool, bool, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(to_other, Tensor, const Tensor&, const Tensor&, bool, bool, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(type_as, Tensor, const Tensor&, const Tensor&)
KEVIN_SHORT_OPERATOR(full, Tensor, SymIntArrayRef, const Scalar&, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(full_like, Tensor, const Tensor&, const Scalar&, KEVIN_SHORT_LIKE, std::optional<MemoryFormat>)
KEVIN_SHORT_OPERATOR(empty_strided, Tensor, SymIntArrayRef, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(scalar_tensor, Tensor, const Scalar&, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(new_empty, Tensor, const Tensor&, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(new_zeros, Tensor, const Tensor&, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(new_ones, Tensor, const Tensor&, SymIntArrayRef, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(new_full, Tensor, const Tensor&, SymIntArrayRef, const Scalar&, KEVIN_SHORT_LIKE)
KEVIN_SHORT_OPERATOR(select_int, Tensor, const Tensor&, int64_t, SymInt)
KEVIN_SHORT_OPERATOR(narrow, Tensor, const Tensor&, int64_t, SymInt, SymInt)
KEVIN_SHORT_OPERATOR(slice_Tensor, Tensor, const Tensor&, int64_t, std::optional<SymInt>, std::optional<SymInt>, SymInt)
KEVIN_SHORT_OPERATOR(expand, Tensor, const Tensor&, SymIntArrayRef, bool)
KEVIN_SHORT_OPERATOR(expand_as, Tensor, const Tensor&, const Tensor&)
KEVIN_SHORT_OPERATOR(view_as, Tensor, const Tensor&, const Tensor&)
KEVIN_SHORT_OPERATOR(reshape_as, Tensor, const Tensor&, const Tensor&)
KEVIN_SHORT_OPERATOR(movedim_int, Tensor, const Tensor&, int64_t, int64_t)
KEVIN_SHORT_OPERATOR(unfold, Tensor, const Tensor&, int64_t, int64_t, int64_t)
#ifdef _GLIBCXX_VECTOR
KEVIN_SHORT_OPERATOR(chunk, std::vector<Tensor>, const Tensor&, int64_t, int64_t)
KEVIN_SHORT_OPERATOR(split_Tensor, std::vector<Tensor>, const Tensor&, SymInt, int64_t)
KEVIN_SHORT_OPERATOR(unbind_int, std::vector<Tensor>, const Tensor&, int64_t)
#endif
#undef KEVIN_SHORT_OPERATOR
#undef KEVIN_SHORT_LIKE
}  // namespace at::_ops
