// dtypes, devices, lists of sizes and options of tensors, with the layout and the mangled names that torch gives them.
// A name that is missing here is a compile error, and the full headers then serve; never give one another meaning.
#pragma once
#pragma GCC system_header  // what the compiler would warn of here is not the submission's

#include <math.h>  // brings abs(float) and the like into the global namespace, as torch's headers do
#include <stdint.h>
#include <stdlib.h>

#include <initializer_list>
#include <optional>
#include <type_traits>

#include <torch/headeronly/macros/Macros.h>
#include <torch/headeronly/version.h>

namespace c10 {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool,
  BFloat16 = 15, Float8_e5m2 = 23, Float8_e4m3fn = 24, UInt16 = 27, UInt32 = 28, UInt64 = 29,
};

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
    kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half, kFloat = ScalarType::Float,
    kDouble = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16,
    kUInt16 = ScalarType::UInt16, kUInt32 = ScalarType::UInt32, kUInt64 = ScalarType::UInt64,
    kComplexFloat = ScalarType::ComplexFloat, kComplexDouble = ScalarType::ComplexDouble;

inline const char* toString(ScalarType type) {
  static const char* const names[] = {
      "Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "ComplexHalf", "ComplexFloat",
      "ComplexDouble", "Bool", "QInt8", "QUInt8", "QInt32", "BFloat16", "QUInt4x2", "QUInt2x4", "Bits1x8", "Bits2x4",
      "Bits4x2", "Bits8", "Bits16", "Float8_e5m2", "Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz", "UInt16",
      "UInt32", "UInt64"};
  const unsigned number = static_cast<uint8_t>(type);
  return number < sizeof(names) / sizeof(*names) ? names[number] : "UNKNOWN_SCALAR";
}

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

using DeviceIndex = int8_t;

struct Device final {
  using Type = DeviceType;
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  bool operator==(const Device& other) const noexcept { return type_ == other.type_ && index_ == other.index_; }
  bool operator!=(const Device& other) const noexcept { return !(*this == other); }
  DeviceType type() const noexcept { return type_; }
  DeviceIndex index() const noexcept { return index_; }
  bool has_index() const noexcept { return index_ != -1; }
  bool is_cuda() const noexcept { return type_ == DeviceType::CUDA; }
  bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

namespace detail {
template <typename... Args>
[[noreturn]] void shortFail(const char* function, const char* file, uint32_t line, const char*, const Args&... args);
}

template <typename T>
class ArrayRef final {
  const T* data_;
  size_t length_;

 public:
  using value_type = T;
  constexpr ArrayRef() : data_(nullptr), length_(0) {}
  constexpr ArrayRef(const T& only) : data_(&only), length_(1) {}
  constexpr ArrayRef(const T* data, size_t length) : data_(data), length_(length) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), length_(end - begin) {}
  template <typename C, typename = std::enable_if_t<std::is_same_v<decltype(std::declval<const C&>().data()), const T*>>>
  constexpr ArrayRef(const C& container) : data_(container.data()), length_(container.size()) {}
  constexpr ArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin() == list.end() ? nullptr : list.begin()), length_(list.size()) {}
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), length_(N) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return length_; }
  constexpr bool empty() const { return length_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + length_; }
  constexpr const T& operator[](size_t index) const { return data_[index]; }
  const T& front() const {
    if (!length_) detail::shortFail(__func__, __FILE__, __LINE__, "", "ArrayRef: attempted to access front() of empty list");
    return data_[0];
  }
  const T& back() const {
    if (!length_) detail::shortFail(__func__, __FILE__, __LINE__, "", "ArrayRef: attempted to access back() of empty list");
    return data_[length_ - 1];
  }
  ArrayRef slice(size_t start, size_t length) const {
    if (start + length > length_)
      detail::shortFail(
          __func__, __FILE__, __LINE__, "", "ArrayRef: invalid slice, N = ", start, "; M = ", length, "; size = ", length_);
    return ArrayRef(data_ + start, length);
  }
  ArrayRef slice(size_t start) const {
    if (start > length_)
      detail::shortFail(__func__, __FILE__, __LINE__, "", "ArrayRef: invalid slice, N = ", start, "; size = ", length_);
    return slice(start, length_ - start);
  }
  bool equals(ArrayRef other) const {
    bool same = length_ == other.length_;
    for (size_t i = 0; same && i < length_; ++i) same = data_[i] == other.data_[i];
    return same;
  }
#ifdef _GLIBCXX_VECTOR
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
#endif
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }
};

using IntArrayRef = ArrayRef<int64_t>;

class SymInt {  // of torch: a number where it is one, as it is wherever tensors have sizes that are known
  int64_t data_;

 public:
  SymInt(int64_t value) : data_(value) {}
  SymInt(const SymInt& other) : data_(other.data_) {}
  ~SymInt() {}  // like torch's it is no trivial type, which are handed over in another way
};
using SymIntArrayRef = ArrayRef<SymInt>;

}  // namespace c10

namespace caffe2 {

class TypeMeta {  // what Tensor::dtype() gives
  c10::ScalarType type_;

 public:
  explicit TypeMeta(c10::ScalarType type) : type_(type) {}
  c10::ScalarType toScalarType() const { return type_; }
  const char* short_name() const {  // of the C++ type
    static const char* const names[] = {
        "unsigned char", "signed char", "short int", "int", "long int", "c10::Half", "float", "double",
        "c10::complex<c10::Half>", "c10::complex<float>", "c10::complex<double>", "bool", "c10::qint8", "c10::quint8",
        "c10::qint32", "c10::BFloat16", "c10::quint4x2", "c10::quint2x4", "c10::bits1x8", "c10::bits2x4", "c10::bits4x2",
        "c10::bits8", "c10::bits16", "c10::Float8_e5m2", "c10::Float8_e4m3fn", "c10::Float8_e5m2fnuz",
        "c10::Float8_e4m3fnuz", "short unsigned int", "unsigned int", "long unsigned int"};
    const unsigned number = static_cast<uint8_t>(type_);
    return number < sizeof(names) / sizeof(*names) ? names[number] : "unknown";
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend bool operator==(TypeMeta a, c10::ScalarType b) { return a.type_ == b; }
  friend bool operator!=(TypeMeta a, c10::ScalarType b) { return a.type_ != b; }
  friend bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.type_; }
  friend bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.type_; }
};

}  // namespace caffe2

namespace c10 {

struct TensorOptions {  // to name pinned memory takes the full headers
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(caffe2::TypeMeta dtype) : dtype_(dtype.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(MemoryFormat format) : format_(format) {}
  [[nodiscard]] TensorOptions dtype(ScalarType dtype) const {
    TensorOptions changed = *this;
    changed.dtype_ = dtype;
    return changed;
  }
  [[nodiscard]] TensorOptions dtype(caffe2::TypeMeta type) const { return dtype(type.toScalarType()); }
  [[nodiscard]] TensorOptions device(Device device) const {
    TensorOptions changed = *this;
    changed.device_ = device;
    return changed;
  }
  [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions requires_grad(bool) const { return *this; }  // never seen with anything but false

  [[nodiscard]] TensorOptions layout(Layout layout) const {
    TensorOptions changed = *this;
    changed.layout_ = layout;
    return changed;
  }
  [[nodiscard]] TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions changed = *this;
    changed.format_ = format;
    return changed;
  }

  std::optional<ScalarType> short_dtype() const { return dtype_; }
  std::optional<Layout> short_layout() const { return layout_; }
  std::optional<Device> short_device() const { return device_; }
  std::optional<MemoryFormat> short_format() const { return format_; }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Layout> layout_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> format_;
};

inline TensorOptions dtype(ScalarType dtype) { return TensorOptions(dtype); }
inline TensorOptions dtype(caffe2::TypeMeta dtype) { return TensorOptions(dtype); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

}  // namespace c10

namespace at {
using namespace c10;
}
