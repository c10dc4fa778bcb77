"""What a record says of the rules: nothing is run."""

import pytest
from pydantic import ValidationError

from kevin_env.rules import Rules
from kevin_env.rules.recorded import Operation, Record, harmless, violation
from kevin_env.rules.vocabulary import pattern

LARGEST = 1000
KERNEL = "softmax_kernel"


def operation(
    name: str, elements: int = LARGEST, line: int | None = 9, weights: bool = False
) -> Operation:
    return Operation(name=f"aten::{name}", line=line, weights=weights, elements=elements)


def record(
    *operations: Operation, kernels: tuple[str, ...] = (KERNEL,), symbols: tuple[str, ...] = ()
) -> Record:
    return Record(operations=list(operations), kernels=list(kernels), symbols=list(symbols))


@pytest.mark.parametrize(
    ("recorded", "mode", "glue", "kind"),
    [
        (record(), "kernel", 0.0, None),
        (record(operation("sum", 1)), "kernel", 0.0, "torch_compute"),
        (record(operation("sum", 9)), "kernel", 0.01, None),
        (record(operation("sum", 10)), "kernel", 0.01, "torch_compute"),
        (record(operation("sum")), "partial", 0.0, None),
        (record(operation("sum"), kernels=()), "partial", 0.0, "no_kernel"),
        (record(kernels=()), "kernel", 0.0, "no_kernel"),
        (record(operation("sum", 9), kernels=()), "kernel", 0.01, "no_kernel"),
        (record(operation("sum"), kernels=()), "open", 0.0, None),
        (record(operation("cat", weights=True)), "kernel", 0.0, None),
        (record(operation("cat")), "kernel", 0.0, "torch_compute"),
        (record(operation("mul", weights=True)), "kernel", 0.0, "torch_compute"),
        (record(operation("randint", 1)), "kernel", 0.0, None),
        (record(operation("randint", 2)), "kernel", 0.0, "torch_compute"),
        (record(operation("view"), operation("_to_copy")), "kernel", 0.0, None),
        (record(symbols=("cublasSgemm_v2",)), "kernel", 0.01, "torch_compute"),
        (record(symbols=("cublasSgemm_v2",)), "partial", 0.0, None),
    ],
)
def test_what_the_rules_say_of_a_record(
    recorded: Record, mode: Rules, glue: float, kind: str | None
) -> None:
    found = violation(recorded, mode, glue, LARGEST)
    assert (found and found.kind) == kind


def test_the_operation_on_most_elements_comes_first_and_others_are_named() -> None:
    found = violation(
        record(operation("prod", 7, 3), operation("mm", 800), *[operation("add", 1)] * 6),
        "kernel",
        0,
        1,
    )
    assert found is not None and found.line == 9
    assert found.message.startswith(
        "In `forward`, torch computed `aten::mm` on 800 elements (line 9); also "
    )
    assert "`aten::prod` on 7 elements (line 3), `aten::add` on 1 element (line 9)" in found.message
    assert found.message.endswith(", 3 more.")


def test_no_operation_of_torch_that_computes_is_taken_for_harmless() -> None:
    computing = (
        "add mul mm addmm bmm _softmax sum mean relu cat stack sort where index gather exp "
        "conv2d _conj repeat"
    )
    assert not {f"aten::{name}" for name in computing.split()} & harmless()


@pytest.mark.parametrize(
    ("symbol", "computes"),
    [
        ("cublasSgemm_v2", True), ("cublasCreate_v2", False), ("cublasSetStream_v2", False),
        ("cudnnConvolutionForward", True), ("cudnnCreate", False), ("cudnnSetTensor4dDescriptor",
        False),
        ("cufftExecC2C", True), ("sgemm_", True), ("cblas_sgemm", True), ("mkl_set_num_threads",
        False),
        ("_ZN2at3cpu7softmaxERKNS_6TensorEl", True), ("_ZN2at4_ops7softmax4callE", False),
        ("vsExp", True),
        ("_ZN2at4cuda20getCurrentCUDAStreamEa", False), ("cudaLaunchKernel", False), ("memcpy",
        False),
        ("aoti_torch_cuda_mm_out", True), ("aoti_torch_empty_strided", False), ("vsnprintf", False),
    ],
)  # fmt: skip
def test_functions_of_vendors_that_compute(symbol: str, computes: bool) -> None:
    assert bool(pattern("vendor_both", "vendor_library").match(symbol)) == computes


@pytest.mark.parametrize(
    "claim",
    [
        {}, {"operations": [], "kernels": []}, {"operations": [], "kernels": ["k"] * 65,
        "symbols": []},
        {"operations": [], "kernels": ["k" * 161], "symbols": []},
        {"operations": [{"name": "x", "line": -1, "weights": False, "elements": 1}],
        "kernels": [], "symbols": []},
        {"operations": [{"name": "x", "line": 1, "weights": False, "elements": 1.5}],
        "kernels": [], "symbols": []},
    ],
)  # fmt: skip
def test_a_malformed_record_is_none(claim: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Record.model_validate(claim)
