"""What an index holds: a reference and a kernel that does the same."""

from typing import Literal

from kevin_env.outcome import Frozen

Language = Literal["triton", "cuda", "cpp"]
Origin = Literal["solutions", "kernelbook", "archive", "examples"]


class RetrievalError(ValueError):
    """An index, a source or a model that cannot be used. The message is one line that says what to
    do.
    """


class Pair(Frozen):
    """A reference and a kernel for it. Nobody judged the kernels of other people's collections
    here.
    """

    id: str
    """Such as `L1_23_Softmax.triton`, `kernelbook:17`, `archive:L1_23/softmax_warp_reduce`."""
    origin: Origin
    language: Language
    reference: str
    """Source of a PyTorch module."""
    entry: str = "Model"
    """The class in it that is replaced."""
    kernel: str
    """Source: Python, or CUDA C++ in the archive."""
    level: int | None = None
    number: int | None = None
    """Of the KernelBench problem that it solves, where the collection tells, or of ours."""
    speedup: float | None = None
    """As the collection has it."""

    @property
    def lexer(self) -> Literal["python", "cpp"]:
        """What the kernel is written in, as a fence names it."""
        return "cpp" if self.origin == "archive" else "python"
