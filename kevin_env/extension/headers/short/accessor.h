// Tensors by index: what Tensor::accessor and Tensor::packed_accessor give.
#pragma once

#include "types.h"

namespace at {

template <typename T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
#ifdef __CUDACC__
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
#endif

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class TensorAccessor {
  typename PtrTraits<T>::PtrType data_;
  const index_t* sizes_;
  const index_t* strides_;

 public:
  typedef typename PtrTraits<T>::PtrType PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST ArrayRef<index_t> sizes() const { return ArrayRef<index_t>(sizes_, N); }
  C10_HOST ArrayRef<index_t> strides() const { return ArrayRef<index_t>(strides_, N); }
  C10_HOST_DEVICE index_t stride(index_t i) const { return strides_[i]; }
  C10_HOST_DEVICE index_t size(index_t i) const { return sizes_[i]; }
  C10_HOST_DEVICE PtrType data() { return data_; }
  C10_HOST_DEVICE const PtrType data() const { return data_; }
  C10_HOST_DEVICE auto operator[](index_t i) -> std::conditional_t<
      N == 1, T&, TensorAccessor<T, N == 1 ? 1 : N - 1, PtrTraits, index_t>> {
    if constexpr (N == 1) {
      return data_[strides_[0] * i];
    } else {
      return {data_ + strides_[0] * i, sizes_ + 1, strides_ + 1};
    }
  }
  C10_HOST_DEVICE auto operator[](index_t i) const -> std::conditional_t<
      N == 1, const T&, const TensorAccessor<T, N == 1 ? 1 : N - 1, PtrTraits, index_t>> {
    if constexpr (N == 1) {
      return data_[strides_[0] * i];
    } else {
      return {data_ + strides_[0] * i, sizes_ + 1, strides_ + 1};
    }
  }
};

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class GenericPackedTensorAccessor {  // carries its sizes and strides, so that it can be handed to a kernel
  typename PtrTraits<T>::PtrType data_;
  index_t sizes_[N];
  index_t strides_[N];

 public:
  typedef typename PtrTraits<T>::PtrType PtrType;
  C10_HOST GenericPackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) sizes_[i] = sizes[i], strides_[i] = strides[i];
  }
  C10_HOST_DEVICE index_t stride(index_t i) const { return strides_[i]; }
  C10_HOST_DEVICE index_t size(index_t i) const { return sizes_[i]; }
  C10_HOST_DEVICE PtrType data() { return data_; }
  C10_HOST_DEVICE const PtrType data() const { return data_; }
  C10_DEVICE auto operator[](index_t i) -> std::conditional_t<
      N == 1, T&, TensorAccessor<T, N == 1 ? 1 : N - 1, PtrTraits, index_t>> {
    return TensorAccessor<T, N, PtrTraits, index_t>(data_, sizes_, strides_)[i];
  }
  C10_DEVICE auto operator[](index_t i) const -> std::conditional_t<
      N == 1, const T&, const TensorAccessor<T, N == 1 ? 1 : N - 1, PtrTraits, index_t>> {
    const TensorAccessor<T, N, PtrTraits, index_t> all(data_, sizes_, strides_);
    return all[i];
  }
};

template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;

}  // namespace at
