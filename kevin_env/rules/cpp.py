"""Which operations of torch or of a vendor's library C++ and CUDA sources call, by their names."""

import re
from collections.abc import Iterator

from kevin_env.rules import vocabulary as words

_BLANK = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Strings and comments."""
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|el|endif)\w*[ \t]*(0\b)?")
_IS_CPP = re.compile(
    r"\b(?:torch|at|c10)::|\bcu(?:blas|dnn|sparse|fft|solver)\w|\bcblas_|\bdnnl|\bmkl_|__global__"
)
_ALIAS = re.compile(r"\bnamespace (\w+) ?= ?(?:::)?((?:torch|at)(?:::\w+)*) ?;")
_CALL = re.compile(r"\b(\w+)((?:::\w+){1,8}) ?(?:<[^<>;(){}]{0,80}> ?)?\(")
_TENSOR = re.compile(
    r"\b(?:torch|at)::Tensor (?:const )?&?(\w+)|\bauto&? (\w+) ?= ?(?:torch|at)::(?:empty|zeros|ones|full)"
)
_OTHER = re.compile(
    r"(?<![:\w])(?!(?:Tensor|auto|const|return|else|case|new|delete|throw|not|and|or)\b)"
    r"\w+(?:<[^<>;(){}]{0,80}>)?[ &*]{1,4}(\w+)\b"
)
"""Names that are declared as something else."""
_METHOD = re.compile(r"(?<![\w.>])(\w+)(?:\.|->)(\w+) ?\(")
_VENDOR = re.compile(
    r"\b((?:cublas|hipblas)(?:Xt)?[SDHCZ](?:ge(?!t)|sy|tr|he|dot|axpy|scal|asum|nrm2|dgmm)\w*|rocblas_[sdcz]ge\w+"
    r"|(?:cublas|hipblas)(?:Lt)?(?:Gemm\w*|Matmul|DotEx|AxpyEx|ScalEx)|cusparseSp\w+"
    r"|(?:cudnn|miopen)\w{0,60}(?:Forward|Execute|AddTensor|OpTensor|ReduceTensor|TransformTensor)\w*"
    r"|cufftExec\w+|cusolverDn[SDCZ]\w+|cutensorContract\w*|(?:scipy_)?cblas_[sdcz]\w+|LAPACKE_\w+|[sdcz]gemm_"
    r"|dnnl_primitive_execute|dnnl::(?:matmul|inner_product|convolution_forward|softmax\w*)|vm?s?[sd](?:Exp|Mul|Add|Tanh)"
    r"|DftiCompute\w+|at::cuda::blas::\w+|at::native::cpublas::\w+) ?(?:<\w+> ?)?\("
)
_SETTINGS = re.compile(r"(?:Create|Destroy|Set|Get)(?![a-z])")
_DEFINED = re.compile(r"\b(?:void|int|float|double) (\w+) ?\([^;{}]{0,2000}\{")


def is_cpp(text: str) -> bool:
    """Whether a text is a source that may call torch or a vendor's library."""
    return "{" in text and ";" in text and _IS_CPP.search(text) is not None


def operations(source: str, glue: bool = False) -> Iterator[tuple[int, str]]:
    """Each with the number of its line in the source, from 0.

    Those of torch only without `glue`: a name does not tell on how large a tensor it works.
    """
    code = _without_dead(_BLANK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source))
    aliases = {"torch": "torch", "at": "at"} | dict(_ALIAS.findall(code))
    for call in () if glue else _CALL.finditer(code):
        if call[1] in aliases and _is_operation(f"{aliases[call[1]]}{call[2]}"):
            yield code.count("\n", 0, call.start()), call[1] + call[2]
    for begin, function in () if glue else _functions(code):
        tensors = {name for names in _TENSOR.findall(function) for name in names if name}
        for call in _METHOD.finditer(function):
            if call[1] in tensors - set(_OTHER.findall(function)) and _computes(call[2]):
                yield code.count("\n", 0, begin + call.start()), f".{call[2]}"
    defined = set(_DEFINED.findall(code))
    for call in _VENDOR.finditer(code):
        if not _SETTINGS.search(call[1]) and call[1] not in defined:
            yield code.count("\n", 0, call.start()), call[1]


def _functions(code: str) -> Iterator[tuple[int, str]]:
    """Pieces of the code that end with the bracket of a function or a class, with their places."""
    begin, depth = 0, 0
    for bracket in re.finditer(r"\bnamespace[^{};]{0,80}\{|[{}]", code):
        depth += {"{": 1, "}": -1}.get(bracket[0], 0)
        if depth <= 0 and bracket[0] == "}":
            yield begin, code[begin : bracket.end()]
            begin, depth = bracket.end(), 0


def _without_dead(source: str) -> str:
    """The source with empty lines in the place of those behind `#if 0`."""
    lines, dead = source.split("\n"), 0
    for place, line in enumerate(lines):
        condition = _CONDITION.match(line)
        if dead:
            lines[place] = ""
            if condition:
                dead += {"if": 1, "el": -1 if dead == 1 else 0, "endif": -1}[condition[1]]
        elif condition and condition[1] == "if" and condition[2]:
            dead = 1
    return "\n".join(lines)


def _is_operation(path: str) -> bool:
    """Whether `at::softmax`, `torch::nn::functional::relu` or `at::_ops::exp::call` computes."""
    _, *spaces, last = path.split("::")
    if "vec" in spaces:  # works on the processor's registers
        return False
    if spaces[-1:] == ["call"] or last in ("call", "redispatch"):
        last = spaces[-1] if spaces else last
    if spaces[:1] == ["nn"] and last[0].isupper():
        return last not in ("Module", "Cloneable") and not last.endswith(("Options", "Impl"))
    functional = spaces[:2] == ["nn", "functional"] and last[0].islower()
    return functional or _computes(last)


def _computes(name: str) -> bool:
    return words.computes(name) and words.stem(name) not in words.MOVES | words.ALLOCATE
