// TORCH_CHECK and its kin: the texts that torch composes, without iostreams.
#pragma once

#include <stdio.h>
#include <string.h>

#include <exception>

#include "types.h"

namespace c10::detail {

[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const char* message);
[[noreturn]] void torchInternalAssertFail(
    const char* function, const char* file, uint32_t line, const char* condition, const char* message);

class ShortText {
  char* text_ = nullptr;
  size_t length_ = 0;

 public:
  ShortText() = default;
  ShortText(const ShortText&) = delete;
  ShortText& operator=(const ShortText&) = delete;
  ~ShortText() { free(text_); }
  const char* c_str() const { return text_ ? text_ : ""; }

  void add(const char* piece, size_t length) {
    text_ = static_cast<char*>(realloc(text_, length_ + length + 1));
    memcpy(text_ + length_, piece, length);
    text_[length_ += length] = 0;
  }
  template <typename T>
  void format(const char* pattern, T value) {
    char digits[64];
    add(digits, snprintf(digits, sizeof(digits), pattern, value));
  }

  // what an ostream prints; a type that is not here is a compile error
  void put(const char* text) { add(text, strlen(text)); }
  void put(char* text) { add(text, strlen(text)); }
  void put(char letter) { add(&letter, 1); }
  void put(signed char letter) { put(static_cast<char>(letter)); }
  void put(unsigned char letter) { put(static_cast<char>(letter)); }
  void put(bool value) { put(value ? "1" : "0"); }
  void put(short value) { format("%d", value); }
  void put(unsigned short value) { format("%u", value); }
  void put(int value) { format("%d", value); }
  void put(unsigned value) { format("%u", value); }
  void put(long value) { format("%ld", value); }
  void put(unsigned long value) { format("%lu", value); }
  void put(long long value) { format("%lld", value); }
  void put(unsigned long long value) { format("%llu", value); }
  void put(float value) { format("%g", static_cast<double>(value)); }
  void put(double value) { format("%g", value); }
  void put(ScalarType value) { put(toString(value)); }
  void put(DeviceType value) { put(value == DeviceType::CPU ? "cpu" : value == DeviceType::CUDA ? "cuda" : "meta"); }
  void put(const caffe2::TypeMeta& type) { put(type.short_name()); }
  void put(MemoryFormat format) {
    const char* const names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
    put(names[static_cast<int>(format)]);
  }
  void put(const Device& device) {
    put(device.type());
    if (device.has_index()) put(':'), put(static_cast<int>(device.index()));
  }
  template <typename T>
  void put(ArrayRef<T> list) {
    put('[');
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) put(", ");
      put(list[i]);
    }
    put(']');
  }
  template <typename S, typename = std::enable_if_t<std::is_same_v<decltype(std::declval<const S&>().c_str()), const char*>>>
  void put(const S& text) {
    add(text.c_str(), text.size());
  }
  template <typename T>
  void put(const T* pointer) = delete;
};

template <typename... Args>
[[noreturn]] void shortFail(const char* function, const char* file, uint32_t line, const char*, const Args&... args) {
  ShortText text;
  (text.put(args), ...);
  torchCheckFail(function, file, line, text.c_str());
}
[[noreturn]] inline void shortFail(const char* function, const char* file, uint32_t line, const char* fallback) {
  torchCheckFail(function, file, line, fallback);
}

enum class ShortKind { Index, Value, Type, NotImplemented };

class ShortError : public std::exception {  // raised in Python as an error of its kind, like torch's own
  ShortText text_;

 public:
  const ShortKind kind;

  explicit ShortError(ShortKind kind) : kind(kind) {}
  ShortError(const ShortError& other) : ShortError(other.kind) { text_.put(other.what()); }
  const char* what() const noexcept override { return text_.c_str(); }

  template <typename First, typename... Args>
  [[noreturn]] void raise(const First& first, const Args&... args) {
    text_.put(first), (text_.put(args), ...);
    throw *this;
  }
};

template <typename... Args>
[[noreturn]] void shortAssertFail(
    const char* function, const char* file, uint32_t line, const char* condition, const Args&... args) {
  ShortText text;
  (text.put(args), ...);
  torchInternalAssertFail(function, file, line, condition, text.c_str());
}

}  // namespace c10::detail

// the text for no text names the condition after macros in it were expanded, as torch's does
#define KEVIN_SHORT_EXPECTED(cond)      \
  "Expected " #cond                     \
  " to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
#define TORCH_CHECK(cond, ...)                                                                            \
  if (C10_UNLIKELY(!(cond))) {                                                                            \
    ::c10::detail::shortFail(                                                                             \
        __func__, __FILE__, static_cast<uint32_t>(__LINE__), KEVIN_SHORT_EXPECTED(cond), ##__VA_ARGS__);   \
  }

// these have no text for no text: torch's do not compile without, either
#define KEVIN_SHORT_CHECK(kind, cond, text, ...)                                                          \
  if (C10_UNLIKELY(!(cond))) {                                                                            \
    ::c10::detail::ShortError(::c10::detail::ShortKind::kind).raise(text, ##__VA_ARGS__);                 \
  }
#define TORCH_CHECK_INDEX(cond, ...) KEVIN_SHORT_CHECK(Index, cond, __VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) KEVIN_SHORT_CHECK(Value, cond, __VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) KEVIN_SHORT_CHECK(Type, cond, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) KEVIN_SHORT_CHECK(NotImplemented, cond, __VA_ARGS__)

#define TORCH_INTERNAL_ASSERT(cond, ...)                                                               \
  if (C10_UNLIKELY(!(cond))) {                                                                         \
    ::c10::detail::shortAssertFail(                                                                    \
        __func__, __FILE__, static_cast<uint32_t>(__LINE__),                                           \
        #cond " INTERNAL ASSERT FAILED at " C10_STRINGIZE(__FILE__) ":" C10_STRINGIZE(__LINE__)          \
              ", please report a bug to PyTorch. ",                                                    \
        ##__VA_ARGS__);                                                                                \
  }

namespace c10::detail {
template <typename... Args>
[[noreturn]] void shortRaise(const char* function, const char* file, uint32_t line, const Args&... args) {
  ShortText text;
  (text.put(args), ...);
  torchCheckFail(function, file, line, text.c_str());
}
}  // namespace c10::detail

#define AT_ERROR(...)                                                                                     \
  do {                                                                                                    \
    ::c10::detail::shortRaise(__func__, __FILE__, static_cast<uint32_t>(__LINE__), __VA_ARGS__);           \
  } while (false)
#define AT_ASSERT(...)                  \
  do {                                  \
    TORCH_INTERNAL_ASSERT(__VA_ARGS__); \
  } while (false)
#define AT_ASSERTM(cond, ...)                 \
  do {                                        \
    TORCH_INTERNAL_ASSERT(cond, __VA_ARGS__); \
  } while (false)
