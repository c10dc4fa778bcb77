"""What a candidate's failures are called follows from the class of the exception and the codes that it has."""

import pytest
import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.failure import describe


def of_cuda(code: int) -> torch.AcceleratorError:
    """As torch raises it: the text is the driver's, and the code an attribute."""
    error = torch.AcceleratorError("CUDA error: out of memory")
    error.error_code = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
        (of_cuda(cuda.OUT_OF_MEMORY), "out_of_memory"),
        (cuda.CudaError("cuMemAlloc_v2", cuda.OUT_OF_MEMORY), "out_of_memory"),
        (of_cuda(1), "exception"),
        (cuda.CudaError("cuMemAlloc_v2", 1), "exception"),
        (torch.AcceleratorError("CUDA error: out of memory"), "exception"),
        (RuntimeError("CUDA out of memory"), "exception"),
    ],
)
def test_lacking_memory_is_told_by_what_is_raised_and_never_by_its_text(error: BaseException, kind: str) -> None:
    assert describe(error, "submission.py", None)["kind"] == kind
