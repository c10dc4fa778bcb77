// AT_DISPATCH_*: a lambda instantiated for some dtypes, chosen by a value.
#pragma once

#ifdef KEVIN_SHORT_HALF
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>
#else
namespace c10 {
struct Half;
struct BFloat16;
}  // namespace c10
#endif

#include "check.h"

namespace c10::detail {
template <ScalarType>
struct ShortType;
#define KEVIN_SHORT_TYPE(name, type)      \
  template <>                             \
  struct ShortType<ScalarType::name> {    \
    using type_ = type;                   \
  };
KEVIN_SHORT_TYPE(Byte, uint8_t)
KEVIN_SHORT_TYPE(Char, int8_t)
KEVIN_SHORT_TYPE(Short, int16_t)
KEVIN_SHORT_TYPE(Int, int)
KEVIN_SHORT_TYPE(Long, int64_t)
KEVIN_SHORT_TYPE(Half, c10::Half)
KEVIN_SHORT_TYPE(Float, float)
KEVIN_SHORT_TYPE(Double, double)
KEVIN_SHORT_TYPE(Bool, bool)
KEVIN_SHORT_TYPE(BFloat16, c10::BFloat16)
#undef KEVIN_SHORT_TYPE
}  // namespace c10::detail

#define AT_DISPATCH_CASE(enum_type, ...)                                           \
  case enum_type: {                                                                \
    using scalar_t [[maybe_unused]] = ::c10::detail::ShortType<enum_type>::type_;   \
    return __VA_ARGS__();                                                          \
  }

#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                   \
  [&] {                                                                       \
    const auto& the_type = TYPE;                                              \
    constexpr const char* at_dispatch_name = NAME;                            \
    ::c10::ScalarType _st = the_type;                                         \
    switch (_st) {                                                            \
      __VA_ARGS__                                                             \
      default:                                                                \
        TORCH_CHECK_NOT_IMPLEMENTED(                                          \
            false, '"', at_dispatch_name, "\" not implemented for '", _st, "'"); \
    }                                                                         \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)            \
  AT_DISPATCH_CASE(at::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)  \
  AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__) \
  AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)           \
  AT_DISPATCH_CASE(at::ScalarType::Byte, __VA_ARGS__)  \
  AT_DISPATCH_CASE(at::ScalarType::Char, __VA_ARGS__)  \
  AT_DISPATCH_CASE(at::ScalarType::Int, __VA_ARGS__)   \
  AT_DISPATCH_CASE(at::ScalarType::Long, __VA_ARGS__)  \
  AT_DISPATCH_CASE(at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(FIRST, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(FIRST, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(FIRST, SECOND, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(FIRST, __VA_ARGS__)        \
  AT_DISPATCH_CASE(SECOND, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND(FIRST, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(FIRST, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(FIRST, SECOND, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND(FIRST, __VA_ARGS__)        \
  AT_DISPATCH_CASE(SECOND, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(FIRST, SECOND, THIRD, ...)   \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND2(FIRST, SECOND, __VA_ARGS__)         \
  AT_DISPATCH_CASE(THIRD, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(FIRST, SECOND, THIRD, ...)   \
  AT_DISPATCH_CASE_ALL_TYPES_AND2(FIRST, SECOND, __VA_ARGS__)         \
  AT_DISPATCH_CASE(THIRD, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(FIRST, ...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(FIRST, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) AT_DISPATCH_CASE_FLOATING_TYPES_AND(at::ScalarType::Half, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(at::ScalarType::Half, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(FIRST, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(FIRST, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(FIRST, SECOND, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(FIRST, SECOND, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(FIRST, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(FIRST, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(FIRST, SECOND, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(FIRST, SECOND, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(FIRST, SECOND, THIRD, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND3(FIRST, SECOND, THIRD, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(FIRST, SECOND, THIRD, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(FIRST, SECOND, THIRD, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(FIRST, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(FIRST, __VA_ARGS__))

#define KEVIN_SHORT_INDEX_CASE(enum_type, ...)                                    \
  case enum_type: {                                                               \
    using index_t [[maybe_unused]] = ::c10::detail::ShortType<enum_type>::type_;  \
    return __VA_ARGS__();                                                         \
  }
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                     \
  AT_DISPATCH_SWITCH(                                                \
      TYPE, NAME, KEVIN_SHORT_INDEX_CASE(at::ScalarType::Int, __VA_ARGS__) \
                      KEVIN_SHORT_INDEX_CASE(at::ScalarType::Long, __VA_ARGS__))
