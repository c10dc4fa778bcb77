// What a submission writes in a binding: PYBIND11_MODULE, py::arg, call_guard, gil_scoped_release.
#pragma once

#include "module.h"

namespace pybind11 {

class gil_scoped_release {
  void* state_ = PyEval_SaveThread();

 public:
  gil_scoped_release() {}
  gil_scoped_release(const gil_scoped_release&) = delete;
  gil_scoped_release& operator=(const gil_scoped_release&) = delete;
  ~gil_scoped_release() { PyEval_RestoreThread(state_); }
};

template <typename Guard>
struct call_guard {
  static_assert(std::is_same_v<Guard, gil_scoped_release>);
  using type = Guard;
};

struct none {};

struct arg_v {
  const char* name;
  _object* value;
};
struct arg {
  const char* name;
  constexpr explicit arg(const char* name) : name(name) {}
  template <typename T>
  arg_v operator=(const T& value) const {
    return arg_v{name, kevin_short::Caster<T>::give(value)};
  }
  arg_v operator=(const char* text) const { return arg_v{name, PyUnicode_FromString(text)}; }
  arg_v operator=(none) const { return arg_v{name, kevin_short::none()}; }
};

}  // namespace pybind11

namespace kevin_short {

template <typename T>
struct Wrapped {  // by torch::wrap_pybind_function: raises errors as torch does
  T target;
};

struct NoGuard {
  NoGuard() {}
};

template <typename... Extra>
struct GuardOf {
  using type = NoGuard;
};
template <typename Guard, typename... Extra>
struct GuardOf<pybind11::call_guard<Guard>, Extra...> {
  using type = Guard;
};
template <typename First, typename... Extra>
struct GuardOf<First, Extra...> : GuardOf<Extra...> {};

class Definition {
  Function& function_;
  int described_ = 0;

 public:
  explicit Definition(Function& function) : function_(function) {}
  void add(const char* doc) {
    function_.doc.put(doc);
  }
  void add(const pybind11::arg& argument) { add(pybind11::arg_v{argument.name, nullptr}); }
  void add(const pybind11::arg_v& argument) {
    function_.named = true;
    function_.arguments[described_++] = Argument{argument.name, argument.value};
  }
  template <typename Guard>
  void add(const pybind11::call_guard<Guard>&) {}
};

template <typename T>
constexpr bool is_argument = std::is_same_v<T, pybind11::arg> || std::is_same_v<T, pybind11::arg_v>;

template <bool wrapped, typename Return, typename... Args, typename... Extra>
Function* describe(const char* name, Return (*target)(Args...), const Extra&... extra) {
  static_assert(sizeof...(Args) <= MAX_ARGUMENTS);
  constexpr int arguments = (0 + ... + is_argument<std::decay_t<const Extra>>);
  static_assert(arguments == 0 || arguments == sizeof...(Args), "The number of annotations does not match");
  auto* f = new Function;  // lives as long as the module, which is as long as the process
  f->name = name;
  f->count = sizeof...(Args);
  f->target = reinterpret_cast<void*>(target);
  f->call = &call<typename GuardOf<std::decay_t<const Extra>...>::type, wrapped, Return, Args...>;
  Text doc;
  Definition definition(*f);
  (definition.add(extra), ...);
  f->signature.put('(');
  put_arguments<Args...>(f->signature, *f);
  f->signature.put(") -> ");
  Caster<std::decay_t<Return>>::name(f->signature, true);
  return f;
}

inline void finish(Function& f) {
  Text whole;
  whole.put(f.name), whole.put(f.signature.c_str()), whole.put('\n');
  if (*f.doc.c_str()) whole.put('\n'), whole.put(f.doc.c_str()), whole.put('\n');
  f.method = MethodDef{f.name, reinterpret_cast<void*>(&dispatch), FASTCALL_KEYWORDS, strdup(whole.c_str())};
}

struct Attribute {  // of a module, to be given a value
  _object* module;
  const char* name;
  void set(_object* value) const {
    Owned owned(value);
    if (!owned || PyObject_SetAttrString(module, name, owned.get())) throw ErrorIsSet();
  }
  void operator=(const char* text) const { set(PyUnicode_FromString(text)); }
  template <typename T>
  void operator=(const T& value) const {
    set(Caster<T>::give(value));
  }
};

}  // namespace kevin_short

namespace pybind11 {

class module_ {
  _object* object_;

  void bind(kevin_short::Function* f) {
    kevin_short::finish(*f);
    kevin_short::Owned known(PyObject_GetAttrString(object_, f->name));
    if (known) {  // overloads take the full headers
      PyErr_SetString(PyExc_ImportError, "a function is defined twice");
      throw kevin_short::ErrorIsSet();
    }
    PyErr_Clear();
    kevin_short::Owned self(PyCapsule_New(f, nullptr, nullptr));
    kevin_short::Owned name(PyModule_GetNameObject(object_));
    kevin_short::Owned function(kevin_short::PyCMethod_New(&f->method, self.get(), name.get(), nullptr));
    if (!function || PyObject_SetAttrString(object_, f->name, function.get())) throw kevin_short::ErrorIsSet();
  }

 public:
  explicit module_(_object* object) : object_(object) {}

  template <typename Return, typename... Args, typename... Extra>
  module_& def(const char* name, Return (*target)(Args...), const Extra&... extra) {
    bind(kevin_short::describe<false>(name, target, extra...));
    return *this;
  }
  template <typename Return, typename... Args, typename... Extra>
  module_& def(const char* name, kevin_short::Wrapped<Return (*)(Args...)> wrapped, const Extra&... extra) {
    bind(kevin_short::describe<true>(name, wrapped.target, extra...));
    return *this;
  }
  template <typename Lambda, typename... Extra, typename = decltype(+std::declval<Lambda>())>
  module_& def(const char* name, Lambda lambda, const Extra&... extra) {
    return def(name, +lambda, extra...);
  }
  kevin_short::Attribute doc() { return {object_, "__doc__"}; }
  kevin_short::Attribute attr(const char* name) { return {object_, name}; }
};
using module = module_;

}  // namespace pybind11

#define PYBIND11_MODULE(name, variable) KEVIN_SHORT_MODULE(name, variable)
#define KEVIN_SHORT_MODULE(name, variable)                                                          \
  static void kevin_short_init(::pybind11::module_&);                                               \
  extern "C" __attribute__((visibility("default"))) _object* PyInit_##name() {                       \
    static ::kevin_short::ModuleDef definition = {1, nullptr, nullptr, 0, nullptr, #name, nullptr, -1, {}}; \
    _object* module = ::kevin_short::PyModule_Create2(&definition, ::kevin_short::API_VERSION);      \
    if (!module) return nullptr;                                                                    \
    try {                                                                                           \
      ::pybind11::module_ wrapper(module);                                                          \
      kevin_short_init(wrapper);                                                                    \
    } catch (...) {                                                                                 \
      ::kevin_short::translate_exception();                                                         \
      return nullptr;                                                                               \
    }                                                                                               \
    return module;                                                                                  \
  }                                                                                                 \
  void kevin_short_init([[maybe_unused]] ::pybind11::module_& variable)
