// From Python to C++ and back, by the rules and with the names of pybind11 3.0. A type that is not here is a compile error.
#pragma once

#include <utility>

#include "python.h"
#include "tensor.h"

#if KEVIN_SHORT_PYBIND >= 30002
#define KEVIN_SHORT_OR_INDEX " | typing.SupportsIndex"
#else
#define KEVIN_SHORT_OR_INDEX ""
#endif

namespace pybind11 {

enum class return_value_policy : uint8_t { automatic, automatic_reference, take_ownership, copy, move };

class handle {
  _object* object_ = nullptr;

 public:
  handle() = default;
  handle(_object* object) : object_(object) {}
  _object* ptr() const { return object_; }
};

namespace detail {

template <typename T, typename = void>
struct type_caster;

template <>
struct type_caster<at::Tensor, void> {  // torch's own, which it exports
  at::Tensor value;
  bool load(handle source, bool convert);
  static handle cast(const at::Tensor& source, return_value_policy policy, handle parent);
};

template <>
struct type_caster<c10::IntArrayRef, void> {
  c10::IntArrayRef value;
  bool load(handle source, bool convert);
  static handle cast(c10::IntArrayRef source, return_value_policy policy, handle parent);
  ~type_caster() { ::operator delete(numbers_[0]); }

 private:
  void* numbers_[3] = {};  // a vector of what value points to
};
}  // namespace detail
}  // namespace pybind11

namespace kevin_short {

using Text = c10::detail::ShortText;

template <typename T, typename = void>
struct Caster;

template <>
struct Caster<at::Tensor> : pybind11::detail::type_caster<at::Tensor> {
  static _object* give(const at::Tensor& tensor) {
    return cast(tensor, pybind11::return_value_policy::move, pybind11::handle()).ptr();
  }
  static void name(Text& text, bool) { text.put("torch.Tensor"); }
};

template <>
struct Caster<c10::IntArrayRef> : pybind11::detail::type_caster<c10::IntArrayRef> {
  static _object* give(c10::IntArrayRef list) {
    return cast(list, pybind11::return_value_policy::move, pybind11::handle()).ptr();
  }
  static void name(Text& text, bool) { text.put("Tuple[int, ...]"); }
};

template <>
struct Caster<std::nullopt_t> {
  static _object* give(std::nullopt_t) { return none(); }
};

template <>
struct Caster<void> {
  static void name(Text& text, bool) { text.put("None"); }
};

template <>
struct Caster<bool> {
  bool value = false;
  bool load(_object* source, bool) {
    if (is_none(source)) return value = false, true;
    if (auto* truth = reinterpret_cast<int (*)(_object*)>(PyType_GetSlot(type_of(source), NB_BOOL))) {
      const int found = truth(source);
      if (found == 0 || found == 1) return value = found, true;
    }
    PyErr_Clear();
    return false;
  }
  static _object* give(bool value) { return PyBool_FromLong(value); }
  static void name(Text& text, bool) { text.put("bool"); }
};

template <typename T>
struct Caster<T, std::enable_if_t<std::is_floating_point_v<T> && sizeof(T) <= sizeof(double)>> {
  T value = 0;
  bool load(_object* source, bool convert) {
    if (!convert && !is_float(source)) return false;
    const double found = PyFloat_AsDouble(source);
    if (found == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      if (!convert || !PyNumber_Check(source)) return false;
      Owned number(PyNumber_Float(source));
      PyErr_Clear();
      return number && load(number.get(), false);
    }
    value = static_cast<T>(found);
    return true;
  }
  static _object* give(T value) { return PyFloat_FromDouble(value); }
  static void name(Text& text, bool out) { text.put(out ? "float" : "typing.SupportsFloat" KEVIN_SHORT_OR_INDEX); }
};

#ifdef __cpp_char8_t
using Char8 = char8_t;
#else
using Char8 = char;
#endif
template <typename T>
constexpr bool is_number =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
    !std::is_same_v<T, Char8> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;

template <typename T>
struct Caster<T, std::enable_if_t<is_number<T>>> {
  T value = 0;
  bool load(_object* source, bool convert) {
    if (is_float(source)) return false;
    using Wide = std::conditional_t<std::is_signed_v<T>, long, unsigned long>;
    Wide found;
    if constexpr (std::is_signed_v<T>) {
      found = PyLong_AsLong(source);
    } else {
      found = PyLong_AsUnsignedLong(source);
    }
    const bool failed = found == static_cast<Wide>(-1) && PyErr_Occurred();
    if (failed || found != static_cast<Wide>(static_cast<T>(found))) {
      PyErr_Clear();
      if (!failed || !convert || !PyNumber_Check(source)) return false;
      Owned number(PyNumber_Long(source));
      PyErr_Clear();
      return number && load(number.get(), false);
    }
    value = static_cast<T>(found);
    return true;
  }
  static _object* give(T value) {
    if constexpr (std::is_signed_v<T>) return PyLong_FromLong(value);
    return PyLong_FromUnsignedLong(value);
  }
  static void name(Text& text, bool out) { text.put(out ? "int" : "typing.SupportsInt" KEVIN_SHORT_OR_INDEX); }
};

#ifdef _GLIBCXX_STRING
template <>
struct Caster<std::string> {
  std::string value;
  bool load(_object* source, bool) {
    ssize_t length = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(source, &length)) return value.assign(text, length), true;
    PyErr_Clear();
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(source, &bytes, &length) == 0) return value.assign(bytes, length), true;
    PyErr_Clear();
    return false;
  }
  static _object* give(const std::string& text) { return PyUnicode_DecodeUTF8(text.data(), text.size(), nullptr); }
  static void name(Text& text, bool) { text.put("str"); }
};
#endif

}  // namespace kevin_short
