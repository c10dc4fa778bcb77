// PYBIND11_MODULE and module.def for functions: docstrings, conversions, defaults and errors as pybind11 has them.
#pragma once

#include <exception>
#include <stdexcept>
#include <typeinfo>

#include "containers.h"
#include "dispatch.h"

namespace torch {
void translate_exception_to_python(const std::exception_ptr& error);
}

namespace kevin_short {

struct Argument {
  const char* name;
  _object* value;  // the default, owned for ever, or null
};

constexpr int MAX_ARGUMENTS = 40;

struct Function {
  const char* name = nullptr;
  int count = 0;
  bool named = false;
  Argument arguments[MAX_ARGUMENTS] = {};
  Text signature;
  Text doc;
  MethodDef method = {};
  void* target = nullptr;  // the C++ function
  bool (*call)(const Function&, _object* const* given, _object** result) = nullptr;  // false: an argument does not fit
};

inline void put_repr(Text& text, _object* object) {
  Owned repr(PyObject_Repr(object));
  const char* shown = repr ? PyUnicode_AsUTF8AndSize(repr.get(), nullptr) : nullptr;
  PyErr_Clear();
  text.put(shown ? shown : "<repr raised Error>");
}

inline void put_mismatch(Text& text, const Function& f, _object* const* args, ssize_t count, _object* keywords) {
  text.put(f.name), text.put("(): incompatible function arguments. The following argument types are supported:\n    1. ");
  text.put(f.signature.c_str()), text.put("\n\nInvoked with: ");
  for (ssize_t i = 0; i < count; ++i) {
    if (i) text.put(", ");
    put_repr(text, args[i]);
  }
  const ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  if (named) text.put(count ? "; kwargs: " : "kwargs: ");
  for (ssize_t i = 0; i < named; ++i) {
    if (i) text.put(", ");
    text.put(PyUnicode_AsUTF8AndSize(PyTuple_GetItem(keywords, i), nullptr)), text.put('=');
    put_repr(text, args[count + i]);
  }
}

inline ssize_t keyword_index(_object* keywords, const char* name) {
  for (ssize_t i = 0; keywords && i < PyTuple_Size(keywords); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, i), name) == 0) return i;
  return -1;
}

inline bool match(const Function& f, _object* const* args, ssize_t count, _object* keywords, _object** given) {
  if (count > f.count || (count < f.count && !f.named)) return false;
  ssize_t used = 0;
  for (int i = 0; i < f.count; ++i) {
    const ssize_t keyword = f.named ? keyword_index(keywords, f.arguments[i].name) : -1;
    if (i < count) {
      if (keyword >= 0) return false;
      given[i] = args[i];
    } else if (keyword >= 0) {
      given[i] = args[count + keyword], ++used;
    } else if (!(given[i] = f.arguments[i].value)) {
      return false;
    }
  }
  return used == (keywords ? PyTuple_Size(keywords) : 0);
}

inline void put_error(const c10::detail::ShortError& error) {
  _object* const kinds[] = {PyExc_IndexError, PyExc_ValueError, PyExc_TypeError, PyExc_NotImplementedError};
  PyErr_SetString(kinds[static_cast<int>(error.kind)], error.what());
}

inline bool is_of_torch(const std::exception& error) {  // torch registers their translation with pybind11
  const char* name = typeid(error).name();
  return !strncmp(name, "N3c10", 5) || !strncmp(name, "N5torch", 7) || !strcmp(name, "12python_error");
}

inline void translate_exception() {  // of a function that is not wrapped by torch
  try {
    throw;
  } catch (const ErrorIsSet&) {
  } catch (const c10::detail::ShortError& error) {
    put_error(error);
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::domain_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::length_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::range_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::exception& error) {
    if (is_of_torch(error)) return torch::translate_exception_to_python(std::current_exception());
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "Caught an unknown exception!");
  }
}

inline _object* dispatch(_object* self, _object* const* args, ssize_t count, _object* keywords) {
  const Function& f = *static_cast<Function*>(PyCapsule_GetPointer(self, nullptr));
  _object* given[MAX_ARGUMENTS];
  _object* result = nullptr;
  try {
    if (match(f, args, count, keywords, given) && f.call(f, given, &result)) return result;
  } catch (...) {
    translate_exception();
    return nullptr;
  }
  Text text;
  put_mismatch(text, f, args, count, keywords);
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return nullptr;
}

template <bool wrapped, typename Return, typename... Args>
Return guarded(Return (*target)(Args...), Args... args) {
  if constexpr (!wrapped) {
    return target(std::forward<Args>(args)...);
  } else {
    try {
      return target(std::forward<Args>(args)...);
    } catch (const ErrorIsSet&) {
      throw;
    } catch (const c10::detail::ShortError& error) {
      put_error(error);
    } catch (const std::exception&) {
      torch::translate_exception_to_python(std::current_exception());
    }
    throw ErrorIsSet();
  }
}

template <size_t, typename T>
struct Slot {
  Caster<std::decay_t<T>> caster;
};
template <typename Indices, typename... Args>
struct Slots;
template <size_t... I, typename... Args>
struct Slots<std::index_sequence<I...>, Args...> : Slot<I, Args>... {};

template <typename Guard, bool wrapped, typename Return, typename... Args, size_t... I>
bool load_and_call(
    Return (*target)(Args...), std::index_sequence<I...> indices, [[maybe_unused]] _object* const* given,
    _object** result) {
  Slots<decltype(indices), Args...> slots;
  if (!(static_cast<Slot<I, Args>&>(slots).caster.load(given[I], true) && ...)) return false;
  const auto run = [&]() -> Return {
    [[maybe_unused]] Guard guard;
    return guarded<wrapped, Return, Args...>(
        target, static_cast<Args&&>(static_cast<Slot<I, Args>&>(slots).caster.value)...);
  };
  if constexpr (std::is_void_v<Return>) {
    run();
    *result = none();
  } else {
    decltype(auto) value = run();
    *result = Caster<std::decay_t<Return>>::give(value);
  }
  return true;
}

template <typename Guard, bool wrapped, typename Return, typename... Args>
bool call(const Function& f, _object* const* given, _object** result) {
  auto* target = reinterpret_cast<Return (*)(Args...)>(f.target);
  return load_and_call<Guard, wrapped>(target, std::index_sequence_for<Args...>(), given, result);
}

template <typename... Args>
void put_arguments(Text& text, const Function& f) {
  int i = 0;
  [[maybe_unused]] const auto put_one = [&](void (*name)(Text&, bool)) {
    if (i) text.put(", ");
    if (f.named) {
      text.put(f.arguments[i].name);
    } else {
      text.put("arg"), text.put(i);
    }
    text.put(": ");
    name(text, false);
    if (_object* value = f.arguments[i].value) text.put(" = "), put_repr(text, value);
    ++i;
  };
  (put_one(&Caster<std::decay_t<Args>>::name), ...);
}

}  // namespace kevin_short
