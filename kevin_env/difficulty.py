"""Tags and measured difficulty of problems.

Family and traits are the `TAGS` of a file. Bound, dtypes and difficulty are measured by
`benchmarks/difficulty.py` and stored in `problems/difficulty.json`.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kevin_env.outcome import Frozen
from kevin_env.problem import Problem, ProblemError

FAMILIES = {
    "matmul": "dense matrix products, also batched, grouped, quantized or fused",
    "conv": "convolutions, also fused",
    "attention": "softmax attention and its linear relatives, with or without their projections",
    "elementwise": "elementwise",
    "normalization": "division by a norm or a deviation",
    "reduction": "sums, maxima and softmax along an axis or over segments",
    "pooling": "reductions over windows",
    "loss": "losses and their gradients",
    "scan": "prefix sums, other recurrences, and algorithms built on them",
    "sort": "sorting, selecting and searching",
    "indexing": "gather, scatter and embedding",
    "sparse": "products with sparse matrices",
    "stencil": "every element from its neighborhood: grid methods and image filters",
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
"""The kinds of operation. Exactly the first tag of each shipped problem is one of these."""

TRAITS = {
    "activation": "has a nonlinearity",
    "atomics": "many threads add to the same place",
    "backward": "computes gradients",
    "decode": "one new token against a long cache",
    "fused": "several operations that belong in one kernel",
    "image": "its data are images",
    "irregular": "the data determine the amount of work per element",
    "moe": "a mixture of experts",
    "physics": "simulates something",
    "quantized": "values are quantized to eight bits or fewer",
    "recurrent": "each step needs the previous one",
    "signal": "its data are signals in time",
    "video": "its data are video frames",
}
"""Further properties of a problem."""

BOUNDS = ("memory-bound", "compute-bound")
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "complex64"),
)
"""Of inputs, weights and outputs, by torch's names."""


def family_of(problem: Problem) -> str | None:
    """The family of a problem; None if its file has none, such as KernelBench's."""
    return next((tag for tag in problem.tags if tag in FAMILIES), None)


def tags_of(problem: Problem) -> tuple[str, ...]:
    """All tags of a problem: those of its file, then its bound and dtypes if measured."""
    figures = measured(problem)
    return problem.tags if figures is None else (*problem.tags, figures.bound, *figures.dtypes)


FILE = "difficulty.json"


class Measured(Frozen):
    """Measurements of one problem's reference."""

    seconds: float
    """Of one call in the main case."""
    roofline_seconds: float
    """Seconds for its operations, and for moving each byte once, at the device's peak rates."""
    bound: Literal["memory-bound", "compute-bound"]
    """The longer of the two."""
    dtypes: tuple[str, ...]
    """Of inputs, weights and outputs, by torch's names."""
    operations: int
    """Operators dispatched by one call without views, counted in the case `cpu`."""
    slowest_speedup: float | None = None
    """Of the slowest known correct kernel over the reference; None if none is known."""
    difficulty: float
    """0 (easy) to 1; the formula is in `benchmarks/difficulty.py`."""


class Source(Frozen):
    """The source of figures."""

    file: str
    device: str
    date: str
    versions: dict[str, str]


class Measurements(Frozen):
    """The file: the sources of its figures, and those of each problem by ID.

    The first source is where references were timed.
    """

    sources: tuple[Source, ...]
    problems: dict[str, Measured]


def measured(problem: Problem) -> Measured | None:
    """The measurements of a problem; None if there are none.

    Raises:
        ProblemError: if the file of measurements cannot be read.
    """
    measurements = _beside(problem)
    return measurements and measurements.problems.get(problem.id)


def measured_on(problem: Problem) -> str:
    """The device, such as `H200`, on which the reference of a measured problem was timed."""
    measurements = _beside(problem)
    assert measurements is not None
    return measurements.sources[0].device.upper()


def by_difficulty(problems: Iterable[Problem]) -> list[Problem]:
    """The problems from easy to hard, with those not measured at the end."""

    def key(problem: Problem) -> tuple[bool, float]:
        figures = measured(problem)
        return figures is None, figures.difficulty if figures else 0.0

    return sorted(problems, key=key)


def _beside(problem: Problem) -> Measurements | None:
    if problem.level is None or not problem.path:
        return None
    return _measurements(Path(problem.path).parents[1] / FILE)


@functools.cache
def _measurements(file: Path) -> Measurements | None:
    try:
        return Measurements.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        what = str(error).partition("\n")[0]
        raise ProblemError(
            f"cannot read {file}: {what}; regenerate it with benchmarks/difficulty.py"
        ) from error
