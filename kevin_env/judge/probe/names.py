"""Names of kernels: shortened, and told apart into the submission's own and those of libraries.

A library's kernels are known by their names, which a submission cannot change: it can call its own
kernel anything, but only lose by calling it as a library does. So what is not known as a library's
is the submission's. Copying a library's machine code under another name would pass; such a kernel
is timed like any other and gains no time by it.
"""

import re

LENGTH = 48

_LIBRARIES = re.compile(
    r"^(?:Mem(?:cpy|set)\b|memcpy|memset)"  # what profilers call copies and fills
    r"|\b(?:at|at_cuda_detail|c10|torch|thrust|cub)::|\bpytorch_flash|\bfmha_cutlass"  # PyTorch, what it is built on
    r"|^triton_(?:poi|red|per|tem|for|unk)_fused"  # Inductor
    r"|\bcublas|\bcudnn|\bcusparse|\bcufft|\bcusolver|\bnvjet_|\bgemv2[TN]_|\bgemvNSP|\bgemmk1_|\bgemmSN_"
    r"|\bcutlass_\d\d_|\bcutlass__\d|sm\d+_xmma|\b(?:volta|turing|ampere|maxwell|hopper|blackwell)_[a-z0-9_]*(?:gemm|cudnn)"
    r"|\b(?:vector|regular)_fft|\bimplicit_convolve|\bsplitKreduce_kernel|\bncclDevKernel|\bncclKernel"
)
_MANGLED = re.compile(r"_ZN?K?(?P<rest>.*)", re.DOTALL)
_LONGEST = 4096


def is_library(name: str) -> bool:
    """Whether a kernel is PyTorch's, Inductor's or the vendor's; also a copy or a fill."""
    return bool(_LIBRARIES.search(name[:_LONGEST]))


def shorten(name: str) -> str:
    """A kernel's name on one line: without return type, arguments and template arguments; mangled
    ones unmangled.
    """
    name = " ".join(name[:_LONGEST].replace("`", "'").split())
    mangled = _MANGLED.fullmatch(name)
    if mangled:
        name = "::".join(_identifiers(mangled["rest"])) or name
    else:
        name = _without_brackets(name).removeprefix("void ").strip() or name
    return name if len(name) <= LENGTH else f"{name[: LENGTH - 3]}..."


def _identifiers(rest: str) -> list[str]:
    """The parts of a qualified name in the Itanium ABI's mangling: each with its length before it."""
    found: list[str] = []
    while (match := re.match(r"(\d{1,4})(?=[A-Za-z_])", rest)) is not None:
        length = int(match[1])
        rest = rest[match.end() :]
        if length == 0 or length > len(rest):
            break
        found.append("(anonymous)" if rest.startswith("_GLOBAL__N") else rest[:length])
        rest = rest[length:]
    return found


def _without_brackets(name: str) -> str:
    """`f` of `void a::f<b<int>, 3>(float *, c)`; namespaces in parentheses stay."""
    kept: list[str] = []
    depth = 0
    for character in name.replace("(anonymous namespace)", "{anonymous}"):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    return "".join(kept).replace("{anonymous}", "(anonymous)")
