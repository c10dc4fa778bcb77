"""What a problem is about, in a closed vocabulary: one family, any traits, what bounds it, and the
dtypes of its data.

Family and traits are the `TAGS` of its file. The bound and the dtypes are not written by hand: they
are measured.
"""

from kevin_env.difficulty import measured
from kevin_env.problem import Problem

FAMILIES = {
    "matmul": "dense matrix products, also batched, grouped or quantized, and what is fused to them",
    "conv": "convolutions, and what is fused to them",
    "attention": "softmax attention and its linear relatives, with or without their projections",
    "elementwise": "every element on its own",
    "normalization": "division by a norm or a deviation",
    "reduction": "sums, maxima and softmax along an axis or over segments",
    "pooling": "reductions over windows",
    "loss": "losses and their gradients",
    "scan": "prefix sums and other recurrences, and what is built on them",
    "sort": "sorting, selecting and searching",
    "indexing": "gather, scatter and embedding",
    "sparse": "products with sparse matrices",
    "stencil": "every element from its neighbourhood: grid methods and image filters",
    "interpolation": "resampling and warping",
    "transform": "Fourier, cosine, wavelet and number theoretic transforms",
    "particles": "forces between particles, and particles on grids",
    "graphics": "rays, triangles and splats",
    "histogram": "counting by value",
    "matching": "the best of many candidate blocks",
    "dynamic-programming": "tables filled along a wavefront",
    "crypto": "hashes, ciphers and arithmetic on large numbers",
    "coding": "checksums and error-correcting codes",
}
"""The kinds of operation: the first tag of each of our problems is one of these, and no other is.
"""

TRAITS = {
    "activation": "has a nonlinearity",
    "atomics": "many threads add to the same place",
    "backward": "computes gradients",
    "decode": "one new token against a long cache",
    "fused": "several operations that belong in one kernel",
    "image": "its data are images",
    "irregular": "the data decide how much work there is where",
    "moe": "a mixture of experts",
    "physics": "simulates something",
    "quantized": "numbers of eight bits or fewer stand for real ones",
    "recurrent": "each step needs the one before",
    "signal": "its data are signals in time",
    "video": "its data are frames of a film",
}
"""What else may be said of a problem."""

BOUNDS = ("memory-bound", "compute-bound")
DTYPES = (
    *("bool", "uint8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "complex64"),
)
"""Of inputs, weights and outputs, by torch's names."""


def family_of(problem: Problem) -> str | None:
    """The family of a problem; None for one whose file names none, such as KernelBench's."""
    return next((tag for tag in problem.tags if tag in FAMILIES), None)


def tags_of(problem: Problem) -> tuple[str, ...]:
    """All tags of a problem: those of its file, then its bound and its dtypes, where these were
    measured.
    """
    figures = measured(problem)
    return problem.tags if figures is None else (*problem.tags, figures.bound, *figures.dtypes)
