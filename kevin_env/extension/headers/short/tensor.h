// at::Tensor: the members that make, copy and view, by torch's operators.
#pragma once

#include "operators.h"
#include "tensor_base.h"

namespace at {

inline std::optional<MemoryFormat> short_format(const TensorOptions& options, std::optional<MemoryFormat> format) {
  TORCH_CHECK(
      !(options.short_format() && format),
      "Cannot set memory_format both in TensorOptions and explicit argument; please delete the redundant setter.");
  return format ? format : options.short_format();
}

struct ShortProperties {  // the supported part of what Tensor::type() returns
  ScalarType type;
  bool cuda;
  ScalarType scalarType() const { return type; }
  bool is_cuda() const { return cuda; }
};

#define KEVIN_SHORT_OPTIONS options.short_dtype(), options.short_layout(), options.short_device(), std::nullopt

class Tensor : public TensorBase {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor& operator=(const Scalar& value) && { return fill_(value); }  // to a temporary, such as a view: its elements
  Tensor& operator=(const Tensor& source) && { return copy_(source); }
  Tensor& operator=(Tensor&& source) && { return copy_(source); }
  Tensor operator[](int64_t index) const { return select(0, index); }

  Tensor contiguous() const { return is_contiguous() ? *this : _ops::contiguous::call(*this, MemoryFormat::Contiguous); }
  Tensor contiguous(MemoryFormat format) const {
    return format == MemoryFormat::Contiguous ? contiguous() : _ops::contiguous::call(*this, format);
  }
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false) const {
    return _ops::to_dtype::call(*this, dtype, non_blocking, copy, std::nullopt);
  }
  Tensor to(TensorOptions options, bool non_blocking = false, bool copy = false) const {
    return _ops::to_dtype_layout::call(
        *this, KEVIN_SHORT_OPTIONS, non_blocking, copy, short_format(options, std::nullopt));
  }
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false) const {
    return _ops::to_device::call(*this, device, dtype, non_blocking, copy, std::nullopt);
  }
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false) const {
    return _ops::to_other::call(*this, other, non_blocking, copy, std::nullopt);
  }
  Tensor toType(ScalarType type) const { return to(options().dtype(type)); }
  Tensor type_as(const Tensor& other) const { return _ops::type_as::call(*this, other); }
  Tensor cpu() const { return to(options().device(DeviceType::CPU)); }
  Tensor cuda() const { return to(options().device(DeviceType::CUDA)); }
  ShortProperties type() const { return {scalar_type(), is_cuda()}; }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }
  Tensor clone() const { return _ops::clone::call(*this, std::nullopt); }
  Tensor view(IntArrayRef size) const { return _ops::view::call(*this, short_sizes(size)); }
  Tensor reshape(IntArrayRef shape) const { return _ops::reshape::call(*this, short_sizes(shape)); }
  Tensor permute(IntArrayRef dims) const { return _ops::permute::call(*this, dims); }
  Tensor transpose(int64_t first, int64_t second) const { return _ops::transpose_int::call(*this, first, second); }
  Tensor t() const { return _ops::t::call(*this); }
  Tensor unsqueeze(int64_t dim) const { return _ops::unsqueeze::call(*this, dim); }
  Tensor squeeze() const { return _ops::squeeze::call(*this); }
  Tensor squeeze(int64_t dim) const { return _ops::squeeze_dim::call(*this, dim); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const {
    return _ops::flatten_using_ints::call(*this, first, last);
  }
  Tensor select(int64_t dim, int64_t index) const { return _ops::select_int::call(*this, dim, index); }
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const {
    return _ops::narrow::call(*this, dim, start, length);
  }
  Tensor slice(
      int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
      int64_t step = 1) const {
    return _ops::slice_Tensor::call(*this, dim, short_place(start), short_place(end), step);
  }
  Tensor expand(IntArrayRef size, bool implicit = false) const {
    return _ops::expand::call(*this, short_sizes(size), implicit);
  }
  Tensor expand_as(const Tensor& other) const { return _ops::expand_as::call(*this, other); }
  Tensor view_as(const Tensor& other) const { return _ops::view_as::call(*this, other); }
  Tensor reshape_as(const Tensor& other) const { return _ops::reshape_as::call(*this, other); }
  Tensor movedim(int64_t source, int64_t destination) const { return _ops::movedim_int::call(*this, source, destination); }
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const { return _ops::unfold::call(*this, dim, size, step); }
#ifdef _GLIBCXX_VECTOR
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
#endif
  Tensor detach() const { return _ops::detach::call(*this); }
  Tensor& copy_(const Tensor& source, bool non_blocking = false) const {
    return _ops::copy_::call(const_cast<Tensor&>(*this), source, non_blocking);
  }
  Tensor& zero_() const { return _ops::zero_::call(const_cast<Tensor&>(*this)); }
  Tensor& fill_(const Scalar& value) const { return _ops::fill__Scalar::call(const_cast<Tensor&>(*this), value); }
  Tensor new_empty(IntArrayRef size, TensorOptions options = {}) const {
    return _ops::new_empty::call(*this, short_sizes(size), KEVIN_SHORT_OPTIONS);
  }
  Tensor new_zeros(IntArrayRef size, TensorOptions options = {}) const {
    return _ops::new_zeros::call(*this, short_sizes(size), KEVIN_SHORT_OPTIONS);
  }
  Tensor new_ones(IntArrayRef size, TensorOptions options = {}) const {
    return _ops::new_ones::call(*this, short_sizes(size), KEVIN_SHORT_OPTIONS);
  }
  Tensor new_full(IntArrayRef size, const Scalar& value, TensorOptions options = {}) const {
    return _ops::new_full::call(*this, short_sizes(size), value, KEVIN_SHORT_OPTIONS);
  }
  Scalar item() const { return _ops::item::call(*this); }
  template <typename T>
  T item() const;  // exported, as data_ptr

 private:
  static std::optional<SymInt> short_place(std::optional<int64_t> place) {
    if (place) return SymInt(*place);
    return std::nullopt;
  }
};
using TensorList = ArrayRef<Tensor>;

#ifdef _GLIBCXX_VECTOR
inline std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const { return _ops::chunk::call(*this, chunks, dim); }
inline std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
  return _ops::split_Tensor::call(*this, size, dim);
}
inline std::vector<Tensor> Tensor::unbind(int64_t dim) const { return _ops::unbind_int::call(*this, dim); }
#endif

inline std::optional<Device> device_of(const Tensor& tensor) {
  if (tensor.defined()) return tensor.device();
  return std::nullopt;
}

}  // namespace at
