// at::Tensor as one pointer, which is what torch's own is. What it can do is done by torch: by the C functions of its
// stable interface (aoti_torch_*), by members that torch exports under the same names, and by its operators.
#pragma once

#include <new>

#include "accessor.h"
#include "check.h"

extern "C" {
struct AtenTensorOpaque;
int32_t aoti_torch_new_tensor_handle(AtenTensorOpaque*, AtenTensorOpaque**);
int32_t aoti_torch_delete_tensor_object(AtenTensorOpaque*);
int32_t aoti_torch_get_data_ptr(AtenTensorOpaque*, void**);
int32_t aoti_torch_get_dim(AtenTensorOpaque*, int64_t*);
int32_t aoti_torch_get_numel(AtenTensorOpaque*, int64_t*);
int32_t aoti_torch_get_sizes(AtenTensorOpaque*, int64_t**);
int32_t aoti_torch_get_strides(AtenTensorOpaque*, int64_t**);
int32_t aoti_torch_get_storage_offset(AtenTensorOpaque*, int64_t*);
int32_t aoti_torch_get_dtype(AtenTensorOpaque*, int32_t*);
int32_t aoti_torch_get_device_type(AtenTensorOpaque*, int32_t*);
int32_t aoti_torch_get_device_index(AtenTensorOpaque*, int32_t*);
int32_t aoti_torch_get_layout(AtenTensorOpaque*, int32_t*);
int32_t aoti_torch_is_contiguous(AtenTensorOpaque*, bool*);
size_t aoti_torch_dtype_element_size(int32_t);
}

namespace c10 {
struct UndefinedTensorImpl {
  static char _singleton;  // what a tensor without a value points to; only its address is used
};
namespace detail {
template <typename T>
T maybe_wrap_dim_slow(T dim, T count, bool wrap_scalar);
extern template int64_t maybe_wrap_dim_slow<int64_t>(int64_t, int64_t, bool);
}  // namespace detail
inline int64_t maybe_wrap_dim(int64_t dim, int64_t count, bool wrap_scalar = true) {
  if (-count <= dim && dim < count) return dim < 0 ? dim + count : dim;
  return detail::maybe_wrap_dim_slow<int64_t>(dim, count, wrap_scalar);
}
}  // namespace c10

namespace at {

inline SymIntArrayRef short_sizes(IntArrayRef sizes) {
  return SymIntArrayRef(reinterpret_cast<const SymInt*>(sizes.data()), sizes.size());
}

class TensorBase {
 protected:
  void* impl_;
  explicit TensorBase(void* impl) : impl_(impl) {}

  AtenTensorOpaque* handle() const {
    return reinterpret_cast<AtenTensorOpaque*>(const_cast<void**>(&impl_));
  }
  template <typename T, typename C>
  T ask(int32_t (*what)(AtenTensorOpaque*, C*)) const {
    C value{};
    if (what(handle(), &value)) TORCH_CHECK(false, "this cannot be asked of the tensor");
    return static_cast<T>(value);
  }
  static void* share(const TensorBase& other) {  // one more owner: torch makes it, in a cell of its heap
    AtenTensorOpaque* cell;
    if (aoti_torch_new_tensor_handle(other.handle(), &cell)) TORCH_CHECK(false, "the tensor cannot be shared");
    void* impl = *reinterpret_cast<void**>(cell);
    ::operator delete(cell);
    return impl;
  }
  static void* undefined() { return &c10::UndefinedTensorImpl::_singleton; }

 public:
  TensorBase() : impl_(undefined()) {}
  TensorBase(const TensorBase& other) : impl_(share(other)) {}
  TensorBase(TensorBase&& other) noexcept : impl_(other.impl_) { other.impl_ = undefined(); }
  TensorBase& operator=(TensorBase other) & noexcept {
    void* impl = impl_;
    impl_ = other.impl_;
    other.impl_ = impl;
    return *this;
  }
  ~TensorBase() {
    if (impl_ == undefined()) return;
    void** cell = static_cast<void**>(::operator new(sizeof(void*)));
    *cell = impl_;
    aoti_torch_delete_tensor_object(reinterpret_cast<AtenTensorOpaque*>(cell));
  }

  bool defined() const { return impl_ != undefined(); }
  bool is_same(const TensorBase& other) const noexcept { return impl_ == other.impl_; }
  int64_t dim() const { return ask<int64_t>(aoti_torch_get_dim); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return ask<int64_t>(aoti_torch_get_numel); }
  IntArrayRef sizes() const { return IntArrayRef(ask<int64_t*>(aoti_torch_get_sizes), dim()); }
  IntArrayRef strides() const { return IntArrayRef(ask<int64_t*>(aoti_torch_get_strides), dim()); }
  int64_t size(int64_t index) const { return sizes()[maybe_wrap_dim(index, dim(), false)]; }
  int64_t stride(int64_t index) const { return strides()[maybe_wrap_dim(index, dim())]; }
  int64_t storage_offset() const { return ask<int64_t>(aoti_torch_get_storage_offset); }
  ScalarType scalar_type() const { return ask<ScalarType>(aoti_torch_get_dtype); }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
  size_t itemsize() const { return aoti_torch_dtype_element_size(static_cast<int32_t>(scalar_type())); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  size_t nbytes() const { return numel() * itemsize(); }
  Device device() const {
    return Device(ask<DeviceType>(aoti_torch_get_device_type), ask<DeviceIndex>(aoti_torch_get_device_index));
  }
  DeviceIndex get_device() const { return ask<DeviceIndex>(aoti_torch_get_device_index); }
  bool is_cuda() const { return ask<DeviceType>(aoti_torch_get_device_type) == DeviceType::CUDA; }
  bool is_cpu() const { return ask<DeviceType>(aoti_torch_get_device_type) == DeviceType::CPU; }
  Layout layout() const { return ask<Layout>(aoti_torch_get_layout); }
  bool is_contiguous() const { return ask<bool>(aoti_torch_is_contiguous); }
  TensorOptions options() const {
    return TensorOptions().dtype(scalar_type()).device(device()).layout(ask<Layout>(aoti_torch_get_layout));
  }

  void* data_ptr() const { return ask<void*>(aoti_torch_get_data_ptr); }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <typename T>
  T* data_ptr() const;  // torch exports these for every dtype, and says there what is wrong with another
  template <typename T>
  T* mutable_data_ptr() const;
  template <typename T>
  const T* const_data_ptr() const {
    return mutable_data_ptr<T>();
  }

  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    check_dim<N>();
    return TensorAccessor<T, N>(mutable_data_ptr<T>(), sizes().data(), strides().data());
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() const& {
    check_dim<N>();
    return {mutable_data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const& {
    TORCH_CHECK(numel() <= 2147483647, "numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64");
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() && = delete;
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const& {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() && = delete;

 private:
  template <size_t N>
  void check_dim() const {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
  }
};

}  // namespace at
