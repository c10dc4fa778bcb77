"""C++ by names that only torch's full headers may declare: an error in the marked line is never
final.
"""

BODIES = {
    "tensor": "at::Tensor x = at::sum(at::ones({2}));",
    "torch namespace": "return torch::sum(torch::ones({2})).item<float>();",
    "c10 helper": "for (auto i : c10::irange(3)) y[i] = 0;",
    "torch's macro": "TORCH_INTERNAL_ASSERT_DEBUG_ONLY(n > 0);",
    "unused macro": "C10_ALWAYS_INLINE_ATTRIBUTE auto f = [] { return 1; }; return f();",
    "pybind": "py::list a; return a.size();",
    "pybind11": "pybind11::dict a; return a.size();",
    "python object": "PyObject* a = nullptr; return a == nullptr;",
    "python function": "return PyLong_Check(static_cast<PyObject*>(nullptr));",
    "python type": "Py_ssize_t a = 1; return a;",
    "torch's python": "THPVariable* a = nullptr; return a == nullptr;",
    "standard function": "return std::adjacent_find(y, y + n) != y + n;",
    "standard type": "std::byte a{}; return static_cast<int>(a);",
    "standard math": "return std::lerp(1.f, 2.f, y[0]);",
    "bits": "return std::popcount(3u);",
    "list": "std::list<int> a; return a.size();",
    "integer limit": "int most = INT_MAX; return most;",
    "long limit": "long most = LONG_MAX; return most;",
    "assert": "assert(n > 0);",
    "errno": "return errno;",
    "time": "return time(nullptr);",
    "clock": "return clock();",
    "time of day": "timeval a; return gettimeofday(&a, nullptr);",
    "time type": "timespec a{}; return a.tv_sec;",
    "process": "return getpid();",
    "terminal": "return isatty(0);",
    "letters": "return isdigit(48) + tolower(65);",
    "wide text": 'return wcslen(L"a");',
    "wide text of one kind": "wint_t a = 0; return a;",
    "threads": "return pthread_self() != 0;",
    "sleep": "return usleep(0);",
    "signals": "pid_t a = fork(); return a;",
    "format": 'return sizeof("%" PRId64);',
    "arguments": "va_list a; return sizeof(a);",
    "locale": "return localeconv() != nullptr;",
    "numbers": 'return strtoimax("1", nullptr, 10);',
    "type information": "return typeid(n).name() != nullptr;",
    "file": 'struct stat a; return stat("a", &a);',
    "semaphore": "sched_param a{}; return a.sched_priority;",
    "comparison": "return (n <=> 3) < 0;",
}
"""In a function of `int n` and `float* y` that returns an int."""
SOURCES = {
    "typedef": "typedef torch::nn::Module other;\nint g(int n) {\n  return sizeof(other); // !\n}",
    "alias": "using other = at::IValue;\nint g(int n) {\n  return sizeof(other); // !\n}",
    "alias of an alias": "using some = c10::IValue;\nusing other = some;\nint g(int n) {\n  return "
    "sizeof(other); // !\n}",
    "using": "using c10::irange;\nint g(int n) {\n  for (auto i : irange(n)) n += i; // !\n  "
    "return n;\n}",
    "macro": "#define LENGTH(x) at::numel(x)\nint g(int n) {\n  return LENGTH(at::ones({n})); "
    "// !\n}",
    "macro in small "
    "letters": "#define each c10::irange\nint g(int n) {\n  for (int i : each(n)) n += i; // !\n"
    "  return n;\n}",
    "macro by the name of a "
    "variable": "#define y (int)at::ones({3}).sum().item<int>()\nint g(int n) {\n  return y; // "
    "!\n}",
    "macro in lines": "#define SUM(x) \\\n  at::sum(x)\nint g(int n) {\n  return "
    "SUM(at::ones({n})).item<int>(); // !\n}",
    "macro that "
    "glues": "#define GLUE(a, b) a##b\nint g(int n) {\n  return sizeof(GLUE(Py, Object)); // !\n}",
    "member": "struct Own { c10::IValue value; };\nint g(int n) {\n  Own own;\n  return "
    "own.value.isNone(); // !\n}",
    "global": "static c10::IValue value;\nint g(int n) {\n  return value.isNone(); // !\n}",
    "two globals": "struct Own { c10::IValue a; } value, other;\nint g(int n) {\n  return "
    "other.a.isNone(); // !\n}",
    "constant": "constexpr auto last = at::ScalarType::NumOptions;\nint g(int n) {\n  return "
    "static_cast<int>(last); // !\n}",
    "enumerator": "enum { last = static_cast<int>(at::kQInt8) };\nint g(int n) {\n  return "
    "last; // !\n}",
    "function": "auto made(int n) { return at::ones({n}).sum(); }\nint g(int n) {\n  return "
    "made(n).item<int>(); // !\n}",
    "operator": "struct Own {};\nat::IValue operator+(Own, Own) { return {}; }\nint g(int n) {\n"
    "  return (Own() + Own()).isNone(); // !\n}",
    "conversion": "struct Own { operator c10::IValue() { return {}; } };\nint g(int n) {\n  Own "
    "own;\n  return static_cast<c10::IValue>(own).isNone(); // !\n}",
    "base": "struct Own : torch::CustomClassHolder {};\nint g(int n) {\n  Own own;\n  return "
    "sizeof(own); // !\n}",
    "template": "template <typename T> int g(T n) {\n  return at::numel(n); // !\n}\nint "
    "h(at::Tensor x) { return g(x); }",
    "own template": "template <typename T> T same(T n) { return n; }\nint g(int n) {\n  return "
    "same(c10::IValue(n)).toInt(); // !\n}",
    "lambda": "int g(int n) {\n  auto f = [](auto x) { return x.isNone(); };\n  return "
    "f(c10::IValue()); // !\n}",
    "member function": "struct Own {\n  int g(int n) {\n    return value.isNone(); // !\n  }\n  "
    "c10::IValue value;\n};",
    "condition": "#ifndef TORCH_VERSION\nusing some = int;\n#else\nusing some = at::IValue;\n"
    "#endif\nint g(int n) {\n  return some().isNone(); // !\n}",
    "condition inside": "int g(int n) {\n#ifdef assert\n  n += 1;\n#endif\n  return 1; // !\n}",
    "a comment that goes "
    "on": '// some \\\n int f(int n) { /* "\nint g(int n) {\n  return n; // !\n}\n// */ }',
    "a comment that goes on and "
    "hides": "// some \\\n/*\n#define each c10::irange\n// */\nint g(int n) {\n  for (int i : "
    "each(n)) n += i; // !\n  return n;\n}",
    "a raw string that "
    "hides": 'const char* a = (R"(")" "/*");\n#define each c10::irange\n// */ ;\nint g(int n) '
    "{\n  for (int i : each(n)) n += i; // !\n  return n;\n}",
    "raw string": 'const char* a = R"(")"; using T = at::IValue; const char* b = R"(")";\nint '
    "g(int n) {\n  return T().isNone(); // !\n}",
    "another line": "#line 100\nint g(int n) {\n  return n; // !\n}",
    "poison": "#pragma GCC poison n\nint g(int m) {\n  return m; // !\n}",
    "a header of its "
    "own": '#include "own.h"\nint g(int n) {\n  return own_value().isNone(); // !\n}',
    "a namespace": "namespace a { using namespace at; }\nusing namespace a;\nint g(int n) {\n  "
    "return IValue().isNone(); // !\n}",
    "a namespace's "
    "function": "namespace a { inline c10::IValue f() { return {}; } }\nint g(int n) {\n  "
    "return a::f().isNone(); // !\n}",
    "extern "
    "C": 'extern "C" {\ntypedef PyTypeObject some;\n}\nint g(int n) {\n  return sizeof(some); '
    "// !\n}",
    "on the line of "
    "another": "int g(int n) {\n  return n;\n} int h() { return at::ones({1}).numel(); } // !",
    "of two on a "
    "line": "int h() {\n return 1; } int g(int n) {\n  return c10::IValue(n).toInt(); } // !",
    "hidden elsewhere": "int g(int n) {\n  { float errno_ = 0, time = 1; n += time + errno_; }\n  "
    "return time(nullptr); // !\n}",
    "a digraph": "int h() <% return at::ones({1}).numel(); %>\nint g(int n) {\n  return n; // !\n}",
    "a suffix": 'c10::IValue operator""_v(unsigned long long n) { return '
    "c10::IValue(int64_t(n)); }\nint g(int n) {\n  return (3_v).toInt(); // !\n}",
}
"""Behind the header; with `own.h` beside."""
OWN = "#include <ATen/core/ivalue.h>\ninline c10::IValue own_value() { return {}; }\n"


def sources() -> dict[str, str]:
    """All of them, whole, each with one line that ends in `// !`."""
    functions = {
        name: f"int g(int n, float* y) {{\n  {body} // !\n  return 0;\n}}"
        for name, body in BODIES.items()
    }
    return {
        name: f"#include <torch/extension.h>\n{text}\n"
        for name, text in (functions | SOURCES).items()
    }
