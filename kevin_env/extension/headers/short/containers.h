// Lists, optional values, pairs and tuples from Python to C++ and back, as casters.h has the rest.
#pragma once

#include "casters.h"

namespace kevin_short {

inline bool iterates(_object* source) {  // without being a sequence, and yet fit for a vector
  if (derives(source, PyGen_Type) || derives(source, PySet_Type) || derives(source, PyFrozenSet_Type)) return true;
  Owned name(PyObject_GetAttrString(reinterpret_cast<_object*>(type_of(source)), "__name__"));
  for (const char* known : {"dict_keys", "dict_values", "dict_items", "map", "zip"})
    if (name && PyUnicode_CompareWithASCIIString(name.get(), known) == 0) return true;
  return false;
}

#ifdef _GLIBCXX_VECTOR
template <typename T>
struct Caster<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> takes the full headers");
  std::vector<T> value;
  bool load(_object* source, bool convert) {
    if (PySequence_Check(source) ? derives(source, PyUnicode_Type) || derives(source, PyBytes_Type) : !iterates(source))
      return false;
    Owned items(PySequence_Tuple(source));
    if (!items) throw ErrorIsSet();
    for (ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
      Caster<T> item;
      if (!item.load(PyTuple_GetItem(items.get(), i), convert)) return false;
      value.push_back(std::move(item.value));
    }
    return true;
  }
  static _object* give(const std::vector<T>& values) {
    _object* list = PyList_New(values.size());
    for (size_t i = 0; list && i < values.size(); ++i) PyList_SetItem(list, i, Caster<T>::give(values[i]));
    return list;
  }
  static void name(Text& text, bool out) {
    text.put(out ? "list[" : "collections.abc.Sequence[");
    Caster<T>::name(text, out);
    text.put(']');
  }

};
#endif

template <typename T>
struct Caster<std::optional<T>> {
  std::optional<T> value;
  bool load(_object* source, bool convert) {
    if (is_none(source)) return true;
    Caster<T> inner;
    if (!inner.load(source, convert)) return false;
    value.emplace(std::move(inner.value));
    return true;
  }
  static _object* give(const std::optional<T>& value) { return value ? Caster<T>::give(*value) : none(); }
  static void name(Text& text, bool out) {
    Caster<T>::name(text, out);
    text.put(" | None");
  }
};

template <typename A, typename B>
struct Caster<std::pair<A, B>> {  // only given
  static _object* give(const std::pair<A, B>& values) {
    _object* tuple = PyTuple_New(2);
    PyTuple_SetItem(tuple, 0, Caster<A>::give(values.first));
    PyTuple_SetItem(tuple, 1, Caster<B>::give(values.second));
    return tuple;
  }
  static void name(Text& text, bool out) {
    text.put("tuple["), Caster<A>::name(text, out), text.put(", "), Caster<B>::name(text, out), text.put(']');
  }
};

#ifdef _GLIBCXX_TUPLE
template <typename... T>
struct Caster<std::tuple<T...>> {  // only given
  static _object* give(const std::tuple<T...>& values) {
    return std::apply(
        [](const T&... each) {
          _object* tuple = PyTuple_New(sizeof...(T));
          ssize_t i = 0;
          (PyTuple_SetItem(tuple, i++, Caster<T>::give(each)), ...);
          return tuple;
        },
        values);
  }
  static void name(Text& text, bool out) {
    text.put("tuple[");
    bool first = true;
    ((first ? void(first = false) : text.put(", "), Caster<T>::name(text, out)), ...);
    text.put(']');
  }
};
#endif

}  // namespace kevin_short
