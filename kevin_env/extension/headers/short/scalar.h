// at::Scalar: a number of any dtype, with the layout and the conversions of torch's own.
#pragma once

#include "check.h"

#ifdef KEVIN_SHORT_HALF
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>
#endif

namespace c10 {

[[noreturn]] void report_overflow(const char* name);
ScalarType get_default_dtype_as_scalartype();

class Scalar {
  enum class Tag { HAS_d, HAS_i, HAS_u, HAS_z, HAS_b };
  Tag tag_;
  union alignas(16) {
    double d;
    int64_t i;
    uint64_t u;
    double z[2];
  } value_ = {};

  template <typename To, typename From>
  static To checked(From value, double lowest, double most, const char* name) {
    if (!(value >= lowest && value <= most)) report_overflow(name);
    return static_cast<To>(value);
  }
  template <typename T>
  void set(T value) {
    if constexpr (std::is_integral_v<T>) {
      tag_ = Tag::HAS_i, value_.i = value;
    } else {
      tag_ = Tag::HAS_d, value_.d = static_cast<double>(value);
    }
  }

 public:
  Scalar() { set(0); }
  Scalar(uint8_t value) { set(value); }
  Scalar(int8_t value) { set(value); }
  Scalar(int16_t value) { set(value); }
  Scalar(int value) { set(value); }
  Scalar(int64_t value) { set(value); }
  Scalar(float value) { set(value); }
  Scalar(double value) { set(value); }
  Scalar(long long value) { set(value); }
  Scalar(uint16_t value) { set(value); }
  Scalar(uint32_t value) { set(value); }
  Scalar(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      tag_ = Tag::HAS_u, value_.u = value;
    } else {
      set(static_cast<int64_t>(value));
    }
  }
#ifdef KEVIN_SHORT_HALF
  Scalar(Half value) { set(static_cast<float>(value)); }
  Scalar(BFloat16 value) { set(static_cast<float>(value)); }
#endif
  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, bool>* = nullptr>
  Scalar(T value) : tag_(Tag::HAS_b) {
    value_.i = value;
  }
  Scalar(const Scalar& other) : tag_(other.tag_), value_(other.value_) {}
  Scalar& operator=(const Scalar&) = default;
  ~Scalar() {}

  bool isFloatingPoint() const { return tag_ == Tag::HAS_d; }
  bool isIntegral(bool with_bool) const { return tag_ == Tag::HAS_i || tag_ == Tag::HAS_u || (with_bool && isBoolean()); }
  bool isBoolean() const { return tag_ == Tag::HAS_b; }

  template <typename T>
  T to() const = delete;
  double toDouble() const { return as<double>("double"); }
  float toFloat() const { return as<float>("float"); }
  int64_t toLong() const { return as<int64_t>("int64_t"); }
  int toInt() const { return as<int>("int"); }
  bool toBool() const { return as<bool>("bool"); }

 private:
  template <typename T>
  T as(const char* name) const {
    TORCH_CHECK(tag_ != Tag::HAS_z && tag_ <= Tag::HAS_b, "this number takes the full headers");
    if (std::is_same_v<T, bool> || isBoolean()) return isFloatingPoint() ? value_.d != 0 : value_.i != 0;
    if (isFloatingPoint()) return from_double<T>(value_.d, name);
    if (tag_ == Tag::HAS_u) {
      if (std::is_integral_v<T>) report_overflow(name);
      return static_cast<T>(value_.u);
    }
    if (static_cast<int64_t>(static_cast<T>(value_.i)) != value_.i && std::is_integral_v<T>) report_overflow(name);
    return static_cast<T>(value_.i);
  }
  template <typename T>
  static T from_double(double value, const char* name) {
    if constexpr (std::is_same_v<T, double>) {
      return value;
    } else if constexpr (std::is_same_v<T, float>) {
      return value - value == 0 ? checked<float>(value, -__FLT_MAX__, __FLT_MAX__, name) : static_cast<float>(value);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return checked<int64_t>(value, -0x1p63, 0x1p63, name);  // both bounds as doubles, as torch compares them
    } else {
      return checked<T>(value, -0x1p31, 0x1p31 - 1, name);
    }
  }
};

template <>
inline double Scalar::to<double>() const { return toDouble(); }
template <>
inline float Scalar::to<float>() const { return toFloat(); }
template <>
inline int64_t Scalar::to<int64_t>() const { return toLong(); }
template <>
inline int Scalar::to<int>() const { return toInt(); }
template <>
inline bool Scalar::to<bool>() const { return toBool(); }

}  // namespace c10
