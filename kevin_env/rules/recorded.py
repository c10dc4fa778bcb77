"""What a call did, as the candidate recorded it, held against the rules. Says nothing of values,
and runs nothing.

Under `kernel`, torch may allocate, fill, view, copy, cast and move; every other operation of it
computes. Operations on fewer elements than a share of the largest tensor, the `glue`, are admitted
where that was asked for. Weights may also be put together (`cat`, `stack`, `pad`): that is
preparation. Under both `kernel` and `partial` a kernel of the submission's own has to run.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from kevin_env.frozen import Frozen, printable
from kevin_env.outcome import RulesViolation


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _operations(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in _words(names))


_ALLOCATE = _operations(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones "
    "ones_like new_ones full full_like new_full arange scalar_tensor tensor clone lift lift_fresh lift_fresh_copy "
    "_efficientzerotensor zero_ fill fill_ resize_ resize_as_ set_ _foreach_zero_"
)
_VIEW = _operations(
    "view view_as _unsafe_view reshape reshape_as _reshape_alias _reshape_copy as_strided as_strided_ transpose "
    "transpose_ t t_ permute expand expand_as squeeze squeeze_ unsqueeze unsqueeze_ select slice narrow split "
    "split_with_sizes unsafe_split unsafe_split_with_sizes tensor_split hsplit vsplit dsplit chunk unsafe_chunk unbind "
    "unfold diagonal detach detach_ alias view_as_real view_as_complex real imag movedim moveaxis swapaxes swapdims "
    "flatten unflatten ravel broadcast_to broadcast_tensors numpy_T mT adjoint matrix_H atleast_1d atleast_2d "
    "atleast_3d resolve_conj resolve_neg set_data requires_grad_ _fw_primal _make_dual"
) | {"inductor::_reinterpret_tensor"}
_COPY = _operations(
    "copy copy_ _copy_from _copy_from_and_resize _to_copy to contiguous type_as _pin_memory pin_memory _foreach_copy_ "
    "_cast_Float _cast_Half _cast_Double record_stream"
)
_ASK = _operations(
    "_local_scalar_dense item is_nonzero size sym_size stride sym_stride sym_numel storage_offset sym_storage_offset "
    "numel dim is_contiguous is_pinned is_same_size is_set_to is_complex is_floating_point is_signed is_conj is_neg "
    "result_type _version _has_same_storage_numel"
) | {
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
}
HARMLESS = _ALLOCATE | _VIEW | _COPY | _ASK
"""Operations that compute nothing, which need not be recorded."""
_MOVING = _operations(
    "cat concat concatenate stack hstack vstack constant_pad_nd pad flip roll repeat tile index_select"
)
"""Those that do what a copy does, in another order: on weights they are preparation."""
_SEEDS = _operations("randint random random_")
"""Those that draw the seed of a kernel that draws itself, where they draw one number."""
NAMESPACES = _words(
    "aten prims prim rngprims debugprims profiler mkl mkldnn mkldnn_prepacked onednn cudnn quantized _quantized "
    "quantization quantized_decomposed sparse static_runtime inductor inductor_prims c10d c10d_functional "
    "_c10d_functional _c10d_functional_autograd _dtensor symm_mem fsdp flex_lib higher_order xnnpack torchvision "
    "torchaudio"
)
"""Those of operators that torch and its packages bring; any other operator is the submission's own.
"""
_BLAS = r"(?:ge(?!t)|sy|tr|he|sp|tb|gb|sb|hb|dot|axpy|scal|asum|nrm2|am|rot|dgmm|matinv)"
VENDORS = (
    rf"(?:scipy_)?cblas_[sdcz]\w|LAPACKE_\w|(?:cublas|hipblas)(?:Xt)?(?:[SDHCZ]|I[sdcz]){_BLAS}|cublasXt[SDCZ]|rocblas_"
    r"|(?:cublas|hipblas)(?:Lt)?(?:Gemm|Matmul|DotEx|AxpyEx|ScalEx|Nrm2Ex)"
    r"|(?:cudnn|miopen)(?!Create|Destroy|Set|Get)\w*(?:Forward|Execute|Tensor|Reduce)|cusparseSp|cufftExec"
    r"|cusolverDn[SDCZ]|cutensor(?:Contract|Reduc|Elementwise)|dnnl_primitive_execute|_ZNK?4dnnl"
    r"|mkl_(?!set_|domain_|disable_)[sd]|vm?s?[sd][A-Z]\w+$|DftiCompute|npp[is][A-Z]|ipp[sim][A-Z]|_ZN6fbgemm"
    r"|[sdcz](?:gem[mv]|symm|symv|syrk|trsm|trmm|ger|axpy|scal|dot|nrm2|asum)(?:_64)?_$"
    r"|_ZN2at(?:3cpu|6native|4cuda4blas)|aoti_torch_(?:cpu|cuda)_"
)
"""Functions that compute, of vendors' libraries and of torch past its dispatcher, as a library
imports them.
"""

Rules = Literal["kernel", "partial", "open"]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=160)]
_Count = Annotated[int, Field(ge=0, lt=1 << 62)]
_MOST = 64
_MOST_NAMED = 4


class Operation(Frozen):
    """An operation that torch dispatched."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: _Name
    """Such as `aten::mm`."""
    line: Annotated[int, Field(ge=1, lt=1 << 31)] | None
    """Of the submission, from which it came; None where none was found."""
    weights: bool
    """Whether all tensors that it was given are weights, or copies of weights."""
    elements: _Count
    """Of the largest tensor that it was given or made."""


class Record(Frozen):
    """What one call did, as the candidate's process claims."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    operations: list[Operation] = Field(max_length=_MOST)
    kernels: list[_Name] = Field(max_length=_MOST)
    """The submission's own that ran: functions of Triton, and libraries that it built."""
    symbols: list[_Name] = Field(max_length=_MOST)
    """What those libraries take of vendors' libraries."""


def recording(mode: Rules) -> dict[str, Any]:
    """What a recorder is to look for, as JSON: the arguments of
    `kevin_env.candidate.recorder.Recorder`.
    """
    return {
        "operations": mode == "kernel", "harmless": sorted(HARMLESS), "namespaces": sorted(NAMESPACES),
        "vendors": VENDORS,
    }  # fmt: skip


def violation(record: Record, mode: Rules, glue: float, largest: int) -> RulesViolation | None:
    """What a call did that the rules forbid.

    Args:
        record: Of a call whose answer was right.
        mode: The rules.
        glue: On what share of `largest` torch may compute under `kernel`.
        largest: Elements of the largest tensor among inputs, weights and outputs.
    """
    if mode == "open":
        return None
    computing = [
        each for each in record.operations if _computes(each) and not each.elements < glue * largest
    ]
    if mode == "kernel" and computing:
        return _of_torch(sorted(computing, key=lambda each: -each.elements))
    if mode == "kernel" and record.symbols:
        text = f"A library that your code built calls `{printable(record.symbols[0])}`"
        return RulesViolation(
            kind="torch_compute", message=f"{text}, which computes instead of your kernels."
        )
    if not record.kernels:
        return RulesViolation(kind="no_kernel", message="None of your kernels ran.")
    return None


def _computes(operation: Operation) -> bool:
    if operation.name in HARMLESS or (operation.weights and operation.name in _MOVING):
        return False
    return not (operation.name in _SEEDS and operation.elements <= 1)


def _of_torch(computing: list[Operation]) -> RulesViolation:
    """Of the operation on most elements; the others are named with it, so that one turn can mend
    them all.
    """
    first, *others = computing
    named = [_told(each) for each in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        named.append(f"{len(others) - _MOST_NAMED} more")
    message = f"In `forward`, torch computed {_told(first)}"
    message += f"; also {', '.join(named)}." if named else "."
    return RulesViolation(kind="torch_compute", message=message, line=first.line)


def _told(operation: Operation) -> str:
    many = "1 element" if operation.elements == 1 else f"{operation.elements} elements"
    return f"`{printable(operation.name)}` on {many}" + (
        f" (line {operation.line})" if operation.line else ""
    )
