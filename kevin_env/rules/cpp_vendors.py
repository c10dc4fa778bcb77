"""Operations that C++ calls by their names in strings, through Python, or of a vendor's library."""

import re

from kevin_env.rules.operations import computes, stem, torch_operations

_BY_NAME = re.compile(
    r'"(aten::\w+)|\bmodule_?::import\s*\(\s*"(torch|numpy)\b|\bPyImport_\w+\s*\(\s*"(torch|numpy)\b'
    r"|\b(py::(?:eval|exec|globals)\w*|pybind11::(?:eval|exec|globals)\w*|PyRun_\w+|torch::jit::(?:compile|load)"
    r"|PyNumber_(?:InPlace)?(?:Add|Subtract|Multiply|MatrixMultiply|TrueDivide|Power|Negative|Absolute))\s?\("
)
"""Operations by their names in strings, code in strings, and Python's operators."""
_UNWRITTEN = re.compile(
    r"\b((?:py|pybind11)::module_?::import|PyImport_Import\w*|findSchema\w*|findOp)\s?\((?!\s?\{?\s?\")(?=\s?[\w({])"
)
"""What looks for a module or an operator by a name that is not written out."""
_ATTRIBUTE = re.compile(r'(?:\.attr\s?\(|\bPyObject_(?:CallMethod|GetAttr)\w*\s?\([^;"]*)\s?"(\w+)"')
_SHIM = re.compile(r"\baoti_torch_(?:(?:cpu|cuda|xpu|mps)_)?(\w+)\s?\(")
"""Operators as torch's interface for C has them."""
_BLAS = r"(?:ge(?!t)|sy|tr|he|sp|tb|gb|sb|hb|dot|axpy|scal|asum|nrm2|am|rot|dgmm|matinv)\w*"
_VENDOR = re.compile(
    r"\b((?:scipy_)?cblas_[sdcz]\w+|LAPACKE_\w+|(?:cublas|hipblas)(?:Xt)?(?:[SDHCZ]|I[sdcz])"
    + _BLAS
    + r"|rocblas_[sdcz]\w+"
    r"|(?:cublas|hipblas)(?:Lt)?(?:Gemm\w*|Matmul|DotEx|AxpyEx|ScalEx|Nrm2Ex)|cublasXt[SDCZ]\w+"
    r"|(?:cudnn|miopen)\w*(?:Forward|Execute|Tensor|Reduce\w*)|cusparseSp\w+|cufftExec\w+|cusolverDn[SDCZ]\w+"
    r"|cutensor(?:Contract|Reduc|Elementwise)\w*|dnnl_primitive_execute|dnnl::\w+|xnn_(?:run|invoke)\w+"
    r"|mkl_(?!set_|domain_|disable_)[sd]\w+|vm?s?[sd][A-Z]\w+|DftiCompute\w+|npp[is][A-Z]\w*_\d\w*"
    r"|ipp[sim][A-Z]\w*_\d\w*|fbgemm::\w+|cudnn_frontend::[\w:]+)(?:\s*\(|\")"
)
"""Calls, and strings that are such a name."""
_FORTRAN = re.compile(
    r"\b([sdcz](?:gem[mv]|symm|symv|syrk|trsm|trmm|ger|axpy|scal|dot|nrm2|asum)(?:_64)?_?|[SDCZ]GEM[MV]_?)(?:\s?\(|\")"
)
"""BLAS as in Fortran, unless the file has a function of that name of its own."""
_FRONTEND = re.compile(r"\bnamespace\s\w+\s?=\s?(cudnn_frontend)\b")
_SETTINGS = re.compile(r"(?:Create|Destroy|Set|Get)\w*")


def called_by_name(source: str, file: str) -> list[str]:
    """Their names in a source with its strings; `file` is all code of the file, without strings."""
    found = ["".join(names) for names in _BY_NAME.findall(source)]
    found += [f"{name} of a name that is not written out" for name in _UNWRITTEN.findall(source)]
    found += [f".{name}" for name in _ATTRIBUTE.findall(source) if computes(name)]
    found += [f"aoti_torch_{name}" for name in _SHIM.findall(source) if _begins_with_operation(name)]
    found += [name for name in _VENDOR.findall(source) if not _SETTINGS.search(name)]
    found += _FRONTEND.findall(source)
    return found + [name for name in _FORTRAN.findall(source) if not _has_body(name, file)]


def is_of_vendor(name: str) -> bool:
    """Whether a function of a library is a vendor's that computes, such as `cublasSgemm_v2`."""
    call = f"{name}("
    found = (_VENDOR.match(call) and not _SETTINGS.search(name)) or (name.endswith("_") and _FORTRAN.match(call))
    return bool(found)


def _begins_with_operation(name: str) -> bool:
    """Whether it is `softmax`, or `softmax_int`, where what follows says of which kind."""
    words = stem(name).split("_")
    return any("_".join(words[:end]) in torch_operations() for end in range(1, len(words) + 1))


def _has_body(name: str, file: str) -> bool:
    return re.search(rf"\b{name}\s?\([^;{{}}]{{0,2000}}\)[^;{{}}()]{{0,80}}\{{", file) is not None
