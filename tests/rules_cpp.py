"""Sources in C++ in which torch or a vendor computes without a call that looks so, and honest ones that look alike."""

# ruff: noqa: E501

COMPUTING = {
    "a symbol's name": r"""
at::Tensor mine(const at::Tensor&, int64_t) __asm__("_ZN2at4_ops11softmax_int4callERKNS_6TensorEl");
torch::Tensor f(torch::Tensor x) { return mine(x, 1); }
""",
    "a generic lambda": r"""
auto each = [](auto&& t) { return t.softmax(1); };
torch::Tensor f(torch::Tensor x) { return each(x); }
""",
    "an own function of numbers that is called so": r"""
static float softmax(float a) { return a; }
torch::Tensor f(torch::Tensor x) { return softmax(x, 1); }
""",
    "a name that is pasted in two steps": r"""
#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
torch::Tensor f(torch::Tensor x) { return x.CAT(soft, max)(1); }
""",
    "a macro of any arguments": r"""
#define DO(name, ...) at::name(__VA_ARGS__)
torch::Tensor f(torch::Tensor x) { return DO(softmax, x, 1); }
""",
    "an alias of a namespace within torch's": r"""
namespace q = at::_ops;
torch::Tensor f(torch::Tensor x) { return q::exp::call(x); }
""",
    "an operator as a word": r"""
torch::Tensor f(torch::Tensor x, torch::Tensor y) { return x bitand y; }
""",
    "add": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x + y;
}
""",
    "mul": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x * y;
}
""",
    "neg": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return -x;
}
""",
    "iadd": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x += y; return x;
}
""",
    "imul scalar": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x *= 2; return x;
}
""",
    "scalar minus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return 1 - x;
}
""",
    "scalar mul": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return 2.0 * x;
}
""",
    "x times s": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x * s;
}
""",
    "div by call": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x / x.size(0);
}
""",
    "not": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return ~x;
}
""",
    "lt": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x < y;
}
""",
    "gt scalar": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x > 0;
}
""",
    "eq": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x == y;
}
""",
    "and": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x & y;
}
""",
    "paren": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (x) * (y);
}
""",
    "paren expr": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (x - s) / s;
}
""",
    "view times": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.view({-1}) * y.view({-1});
}
""",
    "contig plus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.contiguous() + 1;
}
""",
    "call on right": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return s * x.contiguous();
}
""",
    "right index": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return s + x[0];
}
""",
    "auto derived": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto z = torch::empty_like(x); z += x; return z;
}
""",
    "auto view": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto z = x.view({-1}); return z * s;
}
""",
    "decl init": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
torch::Tensor z = x * s; return z;
}
""",
    "auto init": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto z = x * y; return z;
}
""",
    "assign": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
torch::Tensor z; z = x * y; return z;
}
""",
    "arg": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::empty_like(x).copy_(x * y);
}
""",
    "brace": r"""

std::vector<at::Tensor> f(at::Tensor x, at::Tensor y) {
return {x * y};
}
""",
    "const ref": r"""

at::Tensor f(const torch::Tensor &x) {
return x * x;
}
""",
    "Tensor bare": r"""
using torch::Tensor;
Tensor f(Tensor x) {
return x * x;
}
""",
    "vector": r"""

at::Tensor f(std::vector<at::Tensor> v) {
return v[0] + v[1];
}
""",
    "at": r"""

at::Tensor f(std::vector<at::Tensor> v) {
return v.at(0) + v.at(1);
}
""",
    "loop": r"""

at::Tensor f(std::vector<at::Tensor> v) {
at::Tensor o = at::zeros({3}); for (auto& t : v) o += t; return o;
}
""",
    "loop2": r"""

at::Tensor f(std::vector<at::Tensor> v) {
at::Tensor o; for (const at::Tensor& t : v) o = o + t; return o;
}
""",
    "lambda": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto g = [](at::Tensor a, at::Tensor b) { return a * b; }; return g(x, y);
}
""",
    "own function": r"""
at::Tensor g(at::Tensor t) { return t.contiguous(); }
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return g(x) * g(y);
}
""",
    "own function left": r"""
static inline torch::Tensor g(const torch::Tensor& t) { return t.contiguous(); }
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return g(x) * s;
}
""",
    "member": r"""
struct M { at::Tensor w; at::Tensor f(at::Tensor x) { return w * x; } };
at::Tensor g(at::Tensor x) {
return w * x;
}
""",
    "this member": r"""
struct M { at::Tensor w; at::Tensor f(at::Tensor x) { return this->w * x; } };
""",
    "param member": r"""
struct M { at::Tensor w; }; at::Tensor f(M m, at::Tensor x) { return m.w * x; }
""",
    "pointer": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor* p = &x; return (*p) * y;
}
""",
    "pointer2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor* p = &x; return *p + 1;
}
""",
    "ternary": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.numel() > 3 ? x * y : x;
}
""",
    "ternary2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (x.numel() > 3 ? x : y) * y;
}
""",
    "operator fn": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::operator*(x, y);
}
""",
    "operator fn2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return operator+(x, y);
}
""",
    "operator method2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x.operator+=(y); return x;
}
""",
    "std::multiplies": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return std::multiplies<at::Tensor>()(x, y);
}
""",
    "negate": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return std::negate<at::Tensor>{}(x);
}
""",
    "macro": r"""
#define MUL(a, b) ((a) * (b))
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return MUL(x, y);
}
""",
    "auto copy": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto z = x; return z * z;
}
""",
    "auto ref": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto& z = x; return z * z;
}
""",
    "get relu": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto t = std::make_tuple(x, y); return std::get<0>(t).relu();
}
""",
    "optional": r"""

at::Tensor f(c10::optional<at::Tensor> o) {
return *o * 2;
}
""",
    "optional value": r"""

at::Tensor f(std::optional<at::Tensor> o) {
return o.value() * 2;
}
""",
    "optional relu": r"""

at::Tensor f(std::optional<at::Tensor> o) {
return o->relu();
}
""",
    "Variable": r"""

at::Tensor f(torch::autograd::Variable x) {
return x.relu();
}
""",
    "to half": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.to(at::kHalf) * y;
}
""",
    "after scalar": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return s * 2 + x;
}
""",
    "chain": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x - y - s;
}
""",
    "unary arg": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return g(-x);
}
""",
    "mod": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x % 2;
}
""",
    "sub compound": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x -= x.narrow(0, 0, 1); return x;
}
""",
    "select compound": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x.select(0, 0) *= 3; return x;
}
""",
    "index compound": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x[0] *= 3; return x;
}
""",
    "in if": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
if (x.dim() == 2) { return x * y; } return x;
}
""",
    "zeros plus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::zeros_like(x) + x;
}
""",
    "torch ones": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return torch::ones({3}) - x;
}
""",
    "py operator": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (py::cast(x) * py::cast(y)).cast<at::Tensor>();
}
""",
    "PyNumber": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return g(PyNumber_MatrixMultiply(a, b));
}
""",
    "py globals": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return py::globals()["torch"].attr("foo")(x).cast<at::Tensor>();
}
""",
    "import computed": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::string n = "tor"; auto m = py::module_::import((n + "ch").c_str()); return m.attr("f")(x).cast<at::Tensor>();
}
""",
    "dispatcher computed": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::string n = "mm"; auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + n).c_str(), "");
}
""",
    "dispatcher computed2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::string n = "ten::mm"; auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("a" + n).c_str(), "");
}
""",
    "paste": r"""
#define CALL(a) at::a##max
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return CALL(soft)(x, 1);
}
""",
    "paste2": r"""
#define P(a, b) a##b
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.P(re, lu)();
}
""",
    "macro ns": r"""
#define NS at
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return NS::relu(x);
}
""",
    "macro method": r"""
#define M relu
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.M();
}
""",
    "macro call": r"""
#define RELU(t) t.relu()
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return RELU(x);
}
""",
    "member pointer": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = &at::Tensor::relu; return (x.*p)();
}
""",
    "using ns fn": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
using namespace torch::nn::functional; return softmax(x, SoftmaxFuncOptions(1));
}
""",
    "using fn": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
using at::relu; return relu(x);
}
""",
    "fn ref": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto& g = at::relu; return g(x);
}
""",
    "std invoke": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return std::invoke(&at::Tensor::relu, x);
}
""",
    "jit module": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto m = torch::jit::load("a.pt"); return m.forward({x}).toTensor();
}
""",
    "aoti shim": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
aoti_torch_cpu_mm_out(a, b, c); return x;
}
""",
    "aoti cuda": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
aoti_torch_cuda_convolution(a, b, c); return x;
}
""",
    "index_put": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
x.index_put_({y}, x); return x;
}
""",
    "gather": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.gather(0, y);
}
""",
    "take": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.take(y);
}
""",
    "cutensor": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cutensorContract(h, p, a, b); return x;
}
""",
    "rocblas": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
rocblas_sgemm(h, 1); return x;
}
""",
    "hipblas": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
hipblasSgemm(h, 1); return x;
}
""",
    "miopen": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
miopenConvolutionForward(h); return x;
}
""",
    "cublasLt": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasLtMatmul(h, d); return x;
}
""",
    "cublasGemmEx": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasGemmEx(h, d); return x;
}
""",
    "strided": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasSgemmStridedBatched(h, d); return x;
}
""",
    "gemm batched ex": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasGemmStridedBatchedEx(h, d); return x;
}
""",
    "syrk": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasSsyrk_v2(h); return x;
}
""",
    "cublas Isamax": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasIsamax(h); return x;
}
""",
    "geam": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasSgeam(h); return x;
}
""",
    "cudnn fe": r"""
#include <cudnn_frontend.h>
namespace fe = cudnn_frontend;
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
graph->execute(h, p, w); return x;
}
""",
    "sgemm mkl": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
sgemm("N", "N", &n, &m); return x;
}
""",
    "SGEMM": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
SGEMM(a, b); return x;
}
""",
    "sgemm64": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
sgemm_64_(a, b); return x;
}
""",
    "ssyrk_": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
ssyrk_(a, b); return x;
}
""",
    "saxpy_": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
saxpy_(&n, a, b); return x;
}
""",
    "sdot_": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float q = sdot_(&n, a, b); return x;
}
""",
    "npp": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
nppiAdd_32f_C1R(a, b); return x;
}
""",
    "ipps": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
ippsExp_32f(a, b, n); return x;
}
""",
    "fbgemm": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
fbgemm::fbgemmPacked(a); return x;
}
""",
    "cublasXt": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cublasXtSgemm(a); return x;
}
""",
    "cusolver": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cusolverDnSgeqrf(a); return x;
}
""",
    "cudnnSoftmax": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnSoftmaxForward(a); return x;
}
""",
    "cudnnLRN": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnLRNCrossChannelForward(a); return x;
}
""",
    "cudnnOpTensor": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnOpTensor(a); return x;
}
""",
    "cudnnRNN": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnRNNForward(a); return x;
}
""",
    "cudnnBackendExecute": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnBackendExecute(a); return x;
}
""",
    "cudnnMultiHead": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
cudnnMultiHeadAttnForward(a); return x;
}
""",
    "native": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::native::softmax(x, 1);
}
""",
    "redispatch": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::redispatch::relu(ks, x);
}
""",
    "cpu ns": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::cpu::relu(x);
}
""",
    "meta call": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::_ops::relu::redispatch(ks, x); return x;
}
""",
    "sdp": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::_scaled_dot_product_flash_attention(x, x, x);
}
""",
    "boxed": r"""
auto op = c10::Dispatcher::singleton().findOp({std::string("aten") + "::relu", ""});
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
op.callBoxed(&stack); return x;
}
""",
    "residual": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto out = torch::empty_like(x); k<<<1, 2>>>(x.data_ptr<float>(), out.data_ptr<float>()); return out + x;
}
""",
    "scale after": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto out = at::empty({x.size(0)}, x.options()); run(out.data_ptr<float>()); out *= s; return out;
}
""",
    "bias add": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
torch::Tensor out = torch::zeros({x.size(0), y.size(1)}, x.options()); out += y.view({1, -1}); return out;
}
""",
    "mean by div": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto sum = torch::zeros({1}, x.options()); reduce<<<1, 2>>>(x.data_ptr<float>(), sum.data_ptr<float>()); return sum / x.numel();
}
""",
    "item expr": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float m = (x - y).sum().item<float>(); return x;
}
""",
    "mask": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto mask = x > 0; return mask;
}
""",
    "where": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (x > 0).to(x.dtype()) * x;
}
""",
    "softplus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (1 + x.exp()).log();
}
""",
    "norm": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x / (x * x).sum(-1, true).sqrt();
}
""",
    "const auto": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto& a = x.contiguous(); const auto b = y.contiguous(); return a * b;
}
""",
    "auto star": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto a = x.t(); auto c = a - 1.0f; return c;
}
""",
    "static helper": r"""
static at::Tensor gate(const at::Tensor& g, const at::Tensor& u) {
  return g * u;
}

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return gate(x, y);
}
""",
    "multiline": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x
      * y;
}
""",
    "multiline2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
torch::Tensor z =
    x +
    y;
return z;
}
""",
    "class": r"""
class Net {
 public:
  explicit Net(at::Tensor w) : w_(std::move(w)) {}
  at::Tensor forward(const at::Tensor& x) { return x * w_; }
 private:
  at::Tensor w_;
};
""",
    "namespace": r"""
namespace mine {
at::Tensor f(at::Tensor a, at::Tensor b) { return a - b; }
}
""",
    "lambda bind": r"""
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](torch::Tensor a, torch::Tensor b) { return a * b; }); }
""",
    "dispatch lambda": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor o; AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", [&] { o = x * static_cast<scalar_t>(2); }); return o;
}
""",
    "for rows": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
for (int64_t i = 0; i < x.size(0); ++i) { x[i] += y[i]; } return x;
}
""",
    "for rows2": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
for (int i = 0; i < 3; i++) out[i].copy_(x[i] * 2); return x;
}
""",
    "op chain": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return (x.view({2, -1}).transpose(0, 1) * s).contiguous();
}
""",
    "after template method": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.to(torch::kFloat32) - y.to(torch::kFloat32);
}
""",
    "negated arg": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return at::empty_like(x).copy_(-x);
}
""",
    "pow via mul": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto q = x; for (int i = 0; i < 3; ++i) q = q * x; return q;
}
""",
    "comma decl": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor a = x, b = y; return a * b;
}
""",
    "ref decl": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const at::Tensor &a(x); return a + 1;
}
""",
    "conditional": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor r = s > 0 ? x * s : x; return r;
}
""",
    "return tuple": r"""

std::tuple<at::Tensor, at::Tensor> f(at::Tensor x, at::Tensor y) {
return std::make_tuple(x * 2, y);
}
""",
    "init list": r"""

std::vector<torch::Tensor> f(torch::Tensor x, torch::Tensor y) {
return {x, x * y};
}
""",
    "emplace": r"""

std::vector<torch::Tensor> f(torch::Tensor x, std::vector<torch::Tensor> v) {
v.push_back(x * 2); return v;
}
""",
    "front/back": r"""

at::Tensor f(std::vector<at::Tensor> v) {
return v.front() * v.back();
}
""",
    "TensorList": r"""

at::Tensor f(at::TensorList v) {
return v[0] * 2;
}
""",
    "autograd": r"""
struct Fn : public torch::autograd::Function<Fn> { static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) { return x * 2; } static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::tensor_list g) { return {g[0] * 2}; } };
""",
    "TORCH_LIBRARY lambda": r"""
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor", [](const at::Tensor& x) { return x * 2; }); }
""",
    "optional add": r"""

at::Tensor f(at::Tensor x, c10::optional<at::Tensor> b) {
if (b.has_value()) x += *b; return x;
}
""",
    "optional add2": r"""

at::Tensor f(at::Tensor x, std::optional<torch::Tensor> b) {
return x + b.value();
}
""",
    "using Tensor alias": r"""
using T2 = at::Tensor;
T2 f(T2 a, T2 b) { return a * b; }
""",
    "typedef": r"""
typedef torch::Tensor Mat;
Mat f(Mat a, Mat b) { return a * b; }
""",
    "macro type": r"""
#define TT torch::Tensor
TT f(TT a, TT b) { return a * b; }
""",
    "trailing return": r"""
auto f(at::Tensor a, at::Tensor b) -> at::Tensor { return a * b; }
""",
    "global": r"""
static at::Tensor cache;
at::Tensor f(at::Tensor a) { cache = a; return cache * 2; }
""",
    "aoti": r"""
AOTITorchError e = aoti_torch_cpu_softmax_int(a, 1, &b);
""",
    "stable call": r"""
torch_call_dispatcher("aten::relu", "", stack.data());
""",
    "scalar tensor": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto t = torch::tensor(2.0); return t * x;
}
""",
    "randn": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return torch::randn({3, 3});
}
""",
    "from_blob": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto t = torch::from_blob(p, {3}); return t * 2;
}
""",
}

OWN = {
    "own functions of numbers, and a lambda that takes anything": r"""
static float softmax(float a, float most) { return expf(a - most); }
#define SUM(...) add_up(__VA_ARGS__)
static float add_up(float a, float b) { return a + b; }
torch::Tensor f(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    auto visit = [&](auto&& write) { for (int64_t i = 0; i < x.numel(); ++i) write(i, softmax(in[i], SUM(in[i], 1.0f))); };
    visit([&](int64_t i, float value) { out.data_ptr<float>()[i] = value; });
    return out;
}
""",
    "pointer math": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const float* p = x.data_ptr<float>(); float* q = out.data_ptr<float>(); p += 3; float a = *p * 2 + *q; for (auto it = p; it != p + 3; ++it) a += *it; return x;
}
""",
    "sizes": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t n = x.size(0) * x.size(1) + 3; auto m = x.numel() / 2; int b = (x.size(0) + 255) / 256; if (x.dim() != 2 || x.size(0) < 1) throw 1; return x.view({x.size(0) * 2, -1});
}
""",
    "auto size": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto n = x.size(0), m = x.size(1); auto t = n * m - 1; return x;
}
""",
    "same name in kernel": r"""
__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2 + -x[i]; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
k<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel()); return x;
}
""",
    "same name in device fn": r"""
__device__ float g(float x, float y) { x *= y; return -x + x * y; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "template kernel": r"""
template <typename scalar_t> __global__ void k(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int n) { scalar_t v = x[0] * y[0]; y[0] = x[n] + v; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "k", ([&] { k<scalar_t><<<1, 2>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel()); })); return x;
}
""",
    "accessor": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto a = x.accessor<float, 2>(); auto b = y.packed_accessor32<float, 2>(); float v = a[0][1] * b[1][0] + a[0][0]; a[0][0] += v; return x;
}
""",
    "accessor same name": r"""
__global__ void k(torch::PackedTensorAccessor32<float, 2> x, at::TensorAccessor<float, 1> y) { x[0][1] = x[1][0] * 2 + y[0]; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "item": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float a = x.item<float>() * 2; double b = 3 * y.item().toDouble(); int c = -x.item<int>(); return x;
}
""",
    "strides": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto st = x.strides(); int64_t o = st[0] * 3 + st[1]; auto sz = x.sizes(); int64_t p = sz[0] * sz[1]; return x;
}
""",
    "comparison of meta": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
TORCH_CHECK(x.sizes() == y.sizes() && x.dtype() == y.dtype() && x.device() == y.device()); TORCH_CHECK(x.scalar_type() == torch::kFloat32, "a" + std::to_string(x.dim())); return x;
}
""",
    "defined": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
if (!x.defined() || !y.is_contiguous()) return x; bool b = !x.is_cuda() && x.numel() > 0; return x;
}
""",
    "addresses": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = &x; auto& r = x; foo(&x, &y); return *p;
}
""",
    "deref of optional": r"""

at::Tensor f(c10::optional<at::Tensor> o) {
at::Tensor t = o.has_value() ? *o : at::empty({0}); const float* p = o ? o->data_ptr<float>() : nullptr; return t;
}
""",
    "stream out": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::cout << x << "\n" << x.sizes() << std::endl; TORCH_CHECK(false, "got ", x.sizes()); return x;
}
""",
    "stream string": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::ostringstream o; o << "x" << x; std::cerr << y; return x;
}
""",
    "templates": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::vector<at::Tensor> v; std::map<int, at::Tensor> m; std::tuple<at::Tensor, at::Tensor> t{x, y}; return std::get<0>(t);
}
""",
    "template of params": r"""
template <typename T, int N> struct A { T v[N]; }; std::vector<at::Tensor> g(at::Tensor x); void h(const std::vector<at::Tensor>& x, at::Tensor* y, at::Tensor& z, at::Tensor&& w);
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "unused pointer params": r"""
void g(at::Tensor *x, at::Tensor &y, const at::Tensor *const z);
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "vec ops": r"""
using V = at::vec::Vectorized<float>;
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
V v = V::loadu(p); v = v * v + V(1); auto w = v - v; w += v; (w * v).store(p); return x;
}
""",
    "float4": r"""
__device__ float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
__device__ float4& operator+=(float4& a, const float4& b) { a.x += b.x; return a; }
__global__ void k(float4* x) { float4 y = x[0] * x[1]; y += x[2]; x[0] = y; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "struct operator": r"""
struct C { float re, im; __host__ __device__ C operator*(const C& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; } C operator-() const { return {-re, -im}; } };

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
C x2{1, 2}; C z = x2 * x2; z = -z; return x;
}
""",
    "wmma": r"""
using namespace nvcuda; __global__ void k(half* x, float* y) { wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc; wmma::fill_fragment(acc, 0.f); for (int i = 0; i < acc.num_elements; i++) acc.x[i] = acc.x[i] * 2 + y[i]; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "blockDim x": r"""
__global__ void k(float* o, int y) { int x = threadIdx.x + blockIdx.x * blockDim.x; o[x * y] = x + y; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "lambda floats": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto g = [](float x, float y) { return x * y + x; }; float a = g(1, 2); at::parallel_for(0, 3, 1, [&](int64_t b, int64_t e) { for (auto i = b; i < e; ++i) q[i] = p[i] * 2; }); return x;
}
""",
    "local shadows": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
{ float x = 3; x *= 2; s = -x + x; } for (int y = 0; y < 3; ++y) { s += y * 2; } return x;
}
""",
    "int64 cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto n = static_cast<int>(x.size(0)) * 2; int k = (int)x.size(1) * 3; auto r = float(x.numel()) / 2; return x;
}
""",
    "options": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto o = torch::empty({x.size(0) + 1, y.size(1) * 2}, x.options()); auto o2 = at::zeros({(x.size(0) + 3) / 4}, y.options().dtype(at::kInt)); return o;
}
""",
    "smem": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
size_t bytes = 2 * x.size(1) * sizeof(float) + y.element_size() * 3; k<<<dim3(x.size(0), 2), 256, bytes, st>>>(x.data_ptr<float>() + 3, y.const_data_ptr<float>() + x.size(1) * 2, s * 2); return x;
}
""",
    "pointer cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = reinterpret_cast<const float4*>(x.data_ptr<float>()) + 1; auto q = (float*)x.data_ptr() + 3; auto r = static_cast<float*>(y.data_ptr()) - 1; return x;
}
""",
    "data_ptr plus": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float* p = x.data_ptr<float>() + 1; auto q = x[0].data_ptr<float>() + 3; auto r = x.view({-1}).data_ptr<float>() + 4; auto t = x.contiguous().size(0) * 2; return x;
}
""",
    "bool check of tensor ids": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
if (x.is_same(y)) return x; if (x.data_ptr() == y.data_ptr()) return y; return x;
}
""",
    "vector size": r"""

at::Tensor f(std::vector<at::Tensor> v) {
int n = v.size() * 2 - 1; for (size_t i = 0; i < v.size() - 1; ++i) g(v[i].data_ptr<float>() + i, v[i].size(0) * 2); return v[0];
}
""",
    "iterators": r"""

at::Tensor f(std::vector<at::Tensor> v) {
for (auto it = v.begin(); it != v.end(); ++it) g(*it); auto a = v.begin() + 1; auto n = v.end() - v.begin(); g(*(v.begin() + 1)); return v[0];
}
""",
    "index math": r"""

at::Tensor f(std::vector<at::Tensor> v, int s) {
int i = 0; auto r = v[i + 1]; auto q = v[2 * i - 1].narrow(0, i * 2, s - 1); return r;
}
""",
    "default args": r"""

at::Tensor f(at::Tensor x, double s = -1.0, int64_t n = 2 * 3, bool b = !false) {
return x;
}
""",
    "map": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
static std::map<int, at::Tensor> cache; auto it = cache.find(3); if (it != cache.end() && it->second.size(0) > 2) return it->second; return cache[1 + 2];
}
""",
    "names sum mean": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float sum = 0, mean = 0; double exp = 2; int max = x.size(0); sum += mean * exp; mean = sum / max; auto norm = -sum; return x;
}
""",
    "names sum mean kernel": r"""
__global__ void k(float* out, const float* in, int n) { float sum = 0, max = -INFINITY, exp; for (int i = 0; i < n; ++i) { max = fmaxf(max, in[i]); sum += in[i]; } float mean = sum / n; out[0] = (in[0] - mean) * rsqrtf(sum) + -max; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto out = torch::empty_like(x); auto in = x.contiguous(); k<<<1, 2>>>(out.data_ptr<float>(), in.data_ptr<float>(), 3); return out;
}
""",
    "out in one source, pointers": r"""
static void run(const float* in, float* out, const float* weight, const float* bias, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = in[i] * weight[i] + bias[i]; }
torch::Tensor forward(torch::Tensor in, torch::Tensor weight, torch::Tensor bias) { auto out = torch::empty_like(in); run(in.data_ptr<float>(), out.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), in.numel()); return out; }
""",
    "class with pointers": r"""
class P { public: P(at::Tensor w, at::Tensor b) : w_(w), b_(b) {} float g(const float* w, float b) { return w[0] * b - b; } at::Tensor w_, b_; };

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
P p(x, y); return p.w_;
}
""",
    "tuple type": r"""

std::tuple<at::Tensor, at::Tensor> f(at::Tensor x, at::Tensor y) {
return {x, y};
}
""",
    "ptr and multiply decl": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const at::Tensor *px = &x; at::Tensor *py{nullptr}; using T = at::Tensor; T *pz = &x; return *px;
}
""",
    "arrow": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto *impl = x.unsafeGetTensorImpl(); auto n = impl->numel() * 2; auto k = x.storage().nbytes() * 2; auto st = x.storage_offset() + 1; return x;
}
""",
    "const cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto n = x.size(-1); auto m = x.size( - 1) * n; auto z = x.select(-1, 0); return z.transpose(-2, -1).narrow(-1, 0, n - 1);
}
""",
    "tensoroptions eq": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto dt = x.dtype() == torch::kHalf ? 2 : 4; int e = dt * 2; bool half = x.scalar_type() == at::kHalf; return x;
}
""",
    "simd avx": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
__m256 a = _mm256_loadu_ps(p); a = a * a + a; __m512 b = _mm512_setzero_ps(); b += b; return x;
}
""",
    "auto loads": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto a = _mm256_loadu_ps(x.data_ptr<float>()); auto b = _mm256_mul_ps(a, a); auto c = a * b; return x;
}
""",
    "auto of data": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto xp = x.data_ptr<float>(); auto v = xp[0] * xp[1]; auto yp = y.data<float>(); auto w = -yp[0]; xp += 2; return x;
}
""",
    "auto deref": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto* xp = x.data_ptr<float>(); float v = *xp * *xp; auto z = *xp; z *= 2; return x;
}
""",
    "std::array": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::array<int64_t, 2> d{x.size(0) * 2, x.size(1) + 1}; auto e = d[0] * d[1]; return x;
}
""",
    "indices of ptr": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto* idx = y.data_ptr<int64_t>(); int64_t b = idx[0] * x.size(1); float q = x.data_ptr<float>()[b] * 2; return x;
}
""",
    "const auto& ref sizes": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto& sz = x.sizes(); int64_t total = sz[0] * sz[1]; auto vec = x.sizes().vec(); vec[0] *= 2; return x.view(vec);
}
""",
    "function returning int": r"""
static inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int g2 = ceil_div(x.numel(), 3) * 2; return x;
}
""",
    "helpers by tensor": r"""
static int64_t rows(const at::Tensor& x) { return x.numel() / x.size(-1); } static int64_t cols(const at::Tensor& t) { return t.size(-1); }
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t n = rows(x) * cols(x); return x;
}
""",
    "lambda helper": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto ptr = [](const at::Tensor& t) { return t.data_ptr<float>(); }; float v = ptr(x)[0] * 2; auto len = [&](at::Tensor t) { return t.numel(); }; auto q = len(x) * len(y); return x;
}
""",
    "kernel macros": r"""
#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be on a GPU")
#define CEIL(a, b) (((a) + (b) - 1) / (b))
#define IDX(x, y) ((x) * 4 + (y))

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
CHECK_CUDA(x); int b = CEIL(x.numel(), 256) * 2; return x;
}
""",
    "bindings": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, "f", py::arg("x"), py::arg("s") = -1); }
""",
    "lambda binding": r"""
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](at::Tensor x, int64_t n) { auto y = at::empty_like(x); launch(x.data_ptr<float>(), y.data_ptr<float>(), n * 2, x.size(0) - 1); return y; }); }
""",
    "int8 pack": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto packed = at::empty({x.size(0), x.size(1) / 2}, x.options().dtype(at::kByte)); auto* o = packed.data_ptr<uint8_t>(); o[0] = (o[1] & 15) | (o[2] << 4); return packed;
}
""",
    "bitset": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
unsigned m = 1u << (x.size(0) - 1); m &= ~(m - 1); m ^= y.size(0); return x;
}
""",
    "welford struct": r"""
struct W { float mean, m2; int n; __device__ void add(float x) { n += 1; float d = x - mean; mean += d / n; m2 += d * (x - mean); } };

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "cooperative": r"""
namespace cg = cooperative_groups; __global__ void k(float* x) { auto g = cg::this_grid(); auto t = cg::tiled_partition<32>(cg::this_thread_block()); float v = x[0]; v += t.shfl_down(v, 1) * 2; x[0] = -v; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "cute": r"""
using namespace cute; template <class TA, class TB> __global__ void k(TA const* A, TB* B) { Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(3, 4)); auto x = mA(0, 0) * mA(1, 1); Tensor acc = make_fragment_like(mA); for (int i = 0; i < size(acc); ++i) acc(i) = acc(i) * 2 + x; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "own Tensor class": r"""
struct Tensor { float* p; int n; }; static void g(Tensor a, Tensor b) { for (int i = 0; i < a.n; ++i) a.p[i] = b.p[i] * 2; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "own Matrix": r"""
struct Mat { std::vector<float> d; Mat operator*(const Mat& o) const { Mat r; return r; } }; static Mat chain(Mat x, Mat y) { return x * y; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "half ops": r"""
__global__ void k(__half2* x, __nv_bfloat16* y) { __half2 a = x[0] * x[1] + x[2]; y[0] = y[1] * y[2]; a = -a; x[0] = a; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "complex": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
c10::complex<float> x1(1, 2), y1; auto z = x1 * y1; auto* c = x.data_ptr<c10::complex<float>>(); c[0] = c[1] * c[2]; return x;
}
""",
    "std::complex": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::complex<float> a(1, 2); a *= a; a = -a; return x;
}
""",
    "thread pool": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::vector<std::thread> ts; int64_t step = (x.size(0) + 7) / 8; for (int t = 0; t < 8; ++t) ts.emplace_back([&, t] { for (int64_t i = t * step; i < std::min<int64_t>((t + 1) * step, x.size(0)); ++i) q[i] = p[i] * 2; }); for (auto& t : ts) t.join(); return x;
}
""",
    "time": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto t0 = std::chrono::steady_clock::now(); auto dt = std::chrono::steady_clock::now() - t0; return x;
}
""",
    "scalar": r"""

at::Tensor f(at::Tensor x, at::Scalar a) {
float al = a.toFloat() * 2; auto b = a.to<float>() + 1; return x;
}
""",
    "eye": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto guard = at::cuda::CUDAGuard(x.device()); int dev = x.get_device() * 2; int dev2 = x.device().index() + 1; return x;
}
""",
    "generic lambda": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto ceil = [](auto a, auto b) { return (a + b - 1) / b; }; int n = ceil(x.numel(), 4); return x;
}
""",
    "template min": r"""
template <typename T> T mn(T a, T b) { return a < b ? a : b; } template <typename T> T sq(T x) { return x * x; }
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t m = mn(x.size(0), y.size(1)); return x;
}
""",
    "rows lambda of x": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto row = [&](int64_t r) { return x.data_ptr<float>() + r * x.stride(0); }; float v = row(0)[1] * row(1)[0]; return x;
}
""",
    "comma list": r"""

at::Tensor f(at::Tensor x, int n, int m) {
auto out = torch::empty({n, m}, x.options()), tmp = torch::empty({n * m}, x.options()); int a = n * m, b = -a, c = a + b; return out;
}
""",
    "same name across fns": r"""
static float dot(const float* a, const float* b, int n) { float s = 0; for (int i = 0; i < n; ++i) s += a[i] * b[i]; return s; }
at::Tensor mv(at::Tensor a, at::Tensor b) { auto s = at::empty({a.size(0)}, a.options()); s.data_ptr<float>()[0] = dot(a.data_ptr<float>(), b.data_ptr<float>(), 3) * 2; return s; }
""",
    "ptr alias same name": r"""

at::Tensor f(at::Tensor a, at::Tensor b) {
const float* A = a.data_ptr<float>(); auto B = b.data_ptr<float>(); float c = A[0] * B[0]; return a;
}
""",
    "unpack tuple sizes": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto [n, m] = std::make_tuple(x.size(0), x.size(1)); int64_t t = n * m; auto [q, r] = std::div(n, m); t += q * r; return x;
}
""",
    "indexing slices": r"""

at::Tensor f(at::Tensor x, int n) {
using namespace torch::indexing; auto a = x.slice(0, n / 2, n - 1); auto b = x.index({Slice(0, n * 2), None}); return a;
}
""",
    "constexpr": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
constexpr int BM = 64, BN = 2 * BM; static_assert(BM * BN < 10000); return x;
}
""",
    "launch struct": r"""
struct Params { float* x; float* y; int n; };
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
Params p; p.x = x.data_ptr<float>(); p.n = x.numel() * 2; p.y = y.data_ptr<float>() + p.n; k<<<p.n / 2, 32>>>(p); float v = p.x[0] * p.n; return x;
}
""",
    "members named as tensors": r"""
struct Args { const float* w; float* y; int n; }; struct State { at::Tensor w, y; }; static void run(const Args& a) { for (int i = 0; i < a.n; ++i) a.y[i] = a.w[i] * 2 + a.w[0]; }
at::Tensor f(State s) { Args a{s.w.data_ptr<float>(), s.y.data_ptr<float>(), 3}; run(a); return s.y; }
""",
    "function pointers": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
void (*k)(const float*, float*, int) = &launch; k(p, q, 3); std::function<float(float)> g = [](float x) { return x * x; }; return x;
}
""",
    "bool ops on checks": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const bool ok = x.is_contiguous() & y.is_contiguous(); const int fl = x.is_cuda() << 1 | y.is_cuda(); return ok ? x : y;
}
""",
    "return negative": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x.unsqueeze(-1).squeeze(-1);
}
""",
    "case": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
switch (x.dim()) { case 1: return x; case 2: return y; default: break; } return x;
}
""",
    "rvalue": r"""
void g(at::Tensor&& t); void h(at::Tensor const& t, at::Tensor & u);
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto z = std::move(x); g(std::forward<at::Tensor>(z)); return z;
}
""",
    "nested template": r"""
std::vector<std::vector<at::Tensor>> g(std::vector<std::pair<int, at::Tensor>> & x); template <> at::Tensor h<at::Tensor>(at::Tensor x);
torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "declare multiply": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor* ptrs[4]; float * q = p; int const * r; at::Tensor & z = x; return z;
}
""",
    "kernel arg by ref same name": r"""
template <typename T> __device__ T warp(T x) { for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o); return x * T(2); }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "lambda kernel auto": r"""
template <typename F> __global__ void k(int n, F f) { f(n * 2); }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto p = x.data_ptr<float>(); k<<<1, 2>>>(3, [=] __device__ (int i) { p[i] = p[i] * 2; }); return x;
}
""",
    "shadow loop": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
for (int x = 0; x < 3; ++x) { int y = x * 2 + 1; t += y * x; } return out;
}
""",
    "kernel launch macro": r"""
#define LAUNCH(T, N) k<T, N><<<(n + N - 1) / N, N, 0, stream>>>(x.data_ptr<T>(), n * N)

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t n = x.numel(); auto stream = at::cuda::getCurrentCUDAStream(); LAUNCH(float, 128); return x;
}
""",
    "struct params": r"""
struct P { at::Tensor x; int n; float scale; };

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
P p{x, 3, 2.f}; int m = p.n * 2; float q = p.scale / p.n; return p.x;
}
""",
    "class with scalar members": r"""
class C { at::Tensor w_; int n_; float s_; public: float g(float x) { return x * s_ + n_; } int64_t rows() const { return w_.size(0) * n_; } };
""",
    "float overload": r"""
float mix(float x, float y) { return x * y; }
at::Tensor mix(at::Tensor x, at::Tensor y) { auto o = at::empty_like(x); float v = mix(1.f, 2.f) * 3; return o; }
""",
    "template dispatch": r"""
template <typename scalar_t> void run(const at::Tensor& x, at::Tensor& out) { const scalar_t* in = x.data_ptr<scalar_t>(); scalar_t* o = out.data_ptr<scalar_t>(); for (int64_t i = 0; i < x.numel(); ++i) o[i] = in[i] * in[i] - scalar_t(1); }
""",
    "packed accessor lambda": r"""
template <typename A> __global__ void k(A x, A y) { y[0][0] = x[0][0] * x[1][1]; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
k<<<1, 2>>>(x.packed_accessor32<float, 2>(), y.packed_accessor32<float, 2>()); return x;
}
""",
    "auto sizes destructure": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const auto [B, N, C] = std::tuple{x.size(0), x.size(1), x.size(2)}; const auto total = B * N * C; return x;
}
""",
    "auto by cast": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto n = static_cast<int>(x.size(0)); auto m = int(x.size(1)); auto k = n * m - 1; return x;
}
""",
    "ptr diff": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto a = x.data_ptr<float>(); auto b = a + x.numel(); auto d = b - a; while (a < b) *a++ *= 2; return x;
}
""",
    "sum var is tensor in other fn": r"""
static float total(const std::vector<float>& sum) { float s = 0; for (auto v : sum) s += v * v; return s; }
at::Tensor f(at::Tensor sum) { return sum.view({-1}); }
""",
    "tensor name reused in kernel lambda": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto out = torch::empty_like(x); at::parallel_for(0, n, 64, [&](int64_t begin, int64_t end) { for (int64_t i = begin; i < end; i++) { const float* x = p + i * m; float y = x[0] * 2; for (int j = 0; j < m; j++) { y += x[j] * x[j]; } q[i] = -y; } }); return out;
}
""",
    "auto lambda param floats": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto act = [](auto x) { return x / (1 + std::exp(-x)); }; float v = act(1.0f) * 2; return x;
}
""",
    "functor": r"""
struct Silu { __device__ float operator()(float x) const { return x / (1.f + __expf(-x)); } };
template <typename Op> __global__ void k(float* x, Op op) { x[0] = op(x[0]) * 2; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
k<<<1, 2>>>(x.data_ptr<float>(), Silu{}); return x;
}
""",
    "iterators of tensors": r"""

at::Tensor f(std::vector<at::Tensor> v) {
int64_t total = 0; for (const auto& t : v) total += t.numel(); std::vector<int64_t> off(v.size() + 1); for (size_t i = 0; i < v.size(); ++i) off[i + 1] = off[i] + v[i].numel() * v[i].element_size(); return v[0];
}
""",
    "auto tensor loop ptr": r"""

at::Tensor f(std::vector<at::Tensor> v) {
std::vector<float*> ps; for (auto& t : v) { ps.push_back(t.data_ptr<float>() + 2); auto n = t.size(0) * 3; auto p = t.data_ptr<float>(); float z = p[0] * p[1]; } return v[0];
}
""",
    "options arithmetic": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto opts = x.options(); auto ws = torch::empty({x.numel() * 2 + 16}, opts.dtype(torch::kUInt8)); auto bytes = ws.numel() - 16; return ws.slice(0, 0, bytes);
}
""",
    "checks": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
TORCH_CHECK(x.size(-1) % 8 == 0 && y.stride(-1) == 1, "bad"); TORCH_CHECK(x.data_ptr() != y.data_ptr()); TORCH_CHECK(x.sizes().equals(y.sizes())); if (x.scalar_type() != y.scalar_type()) throw 1; return x;
}
""",
    "tma desc": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
CUtensorMap desc{}; cuuint64_t dims[2] = {(cuuint64_t)x.size(1), (cuuint64_t)x.size(0)}; cuuint64_t strides[1] = {x.size(1) * x.element_size()}; return x;
}
""",
    "workspace ref": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
static thread_local at::Tensor ws; if (!ws.defined() || ws.numel() < x.numel() * 2) ws = at::empty({x.numel() * 2}, x.options()); float* w = ws.data_ptr<float>(); w[0] = w[1] * 2; return ws;
}
""",
    "unordered map": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
static std::unordered_map<int64_t, at::Tensor> cache; auto& t = cache[x.numel() * 31 + y.numel()]; if (!t.defined()) t = at::empty_like(x); return t;
}
""",
    "tuple of sizes": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
int64_t M = x.size(0), N = y.size(1), K = x.size(1); double flops = 2.0 * M * N * K; dim3 grid((N + 63) / 64, (M + 63) / 64); return x;
}
""",
    "int tensors names a b c": r"""
void gemm(const float* a, const float* b, float* c, int m, int n, int k) { for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) { float s = 0; for (int p = 0; p < k; ++p) s += a[i * k + p] * b[p * n + j]; c[i * n + j] = s; } }
at::Tensor f(at::Tensor a, at::Tensor b) { auto c = at::empty({a.size(0), b.size(1)}, a.options()); gemm(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(0), b.size(1), a.size(1)); return c; }
""",
    "openmp": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
float* o = out.data_ptr<float>();
#pragma omp parallel for reduction(+:s)
for (int i = 0; i < n; i++) { s += p[i] * p[i]; }
return x;
}
""",
    "gnu vector": r"""
typedef float v8 __attribute__((vector_size(32)));
static v8 fma8(v8 x, v8 y, v8 z) { return x * y + z; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
v8 a = *(const v8*)p; a += a * a; return x;
}
""",
    "bf16 class": r"""
static inline c10::BFloat16 mul(c10::BFloat16 x, c10::BFloat16 y) { return x * y; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
c10::BFloat16 a = x.data_ptr<c10::BFloat16>()[0]; float b = float(a) * 2; auto c = static_cast<float>(a) * b; return x;
}
""",
    "Scalar": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto v = x.item(); double d = v.toDouble() * 2; return x;
}
""",
    "lambda capture init": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto g = [p = x.data_ptr<float>(), n = x.numel() * 2](int i) { return p[i] * n; }; float v = g(0) * 2; return x;
}
""",
    "string concat": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
std::string k = "a" + std::to_string(x.size(0)) + "_" + y.toString(); return x;
}
""",
    "assignment of const": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
const float* x_ptr = x.data_ptr<float>(), *y_ptr = y.data_ptr<float>(); float a = *x_ptr * *y_ptr; return x;
}
""",
    "decl of type star": r"""
void run(at::Tensor * x, at::Tensor * const y, const at::Tensor & z);
at::Tensor * find(int i);

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
at::Tensor * p = find(1); p->size(0); (*p).size(1); return x;
}
""",
    "half2 names": r"""
__device__ __forceinline__ half2 op(half2 x, half2 y) { return x * y + x; }

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
return x;
}
""",
    "uint ops": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
uint32_t x0 = 1, y0 = 2; x0 ^= y0 << 3; x0 |= ~y0 & 7u; x0 += -x0; return x;
}
""",
    "reinterpret": r"""

torch::Tensor f(torch::Tensor x, const at::Tensor& y, double s) {
auto v = *reinterpret_cast<float4*>(&q[0]); v.x *= 2; v.y = -v.y; auto r = reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0; return x;
}
""",
}
