// What these types print, where the source prints.
#pragma once

#include "check.h"

#ifdef _GLIBCXX_OSTREAM
namespace c10 {
template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out << ", ";
    out << list[i];
  }
  return out << ']';
}
#define KEVIN_SHORT_PRINTS(type)                                    \
  inline std::ostream& operator<<(std::ostream& out, type value) { \
    ::c10::detail::ShortText text;                                  \
    text.put(value);                                                \
    return out << text.c_str();                                     \
  }
KEVIN_SHORT_PRINTS(ScalarType)
KEVIN_SHORT_PRINTS(DeviceType)
KEVIN_SHORT_PRINTS(MemoryFormat)
KEVIN_SHORT_PRINTS(const Device&)
}  // namespace c10
namespace caffe2 {
KEVIN_SHORT_PRINTS(TypeMeta)
}  // namespace caffe2
#undef KEVIN_SHORT_PRINTS
#endif
