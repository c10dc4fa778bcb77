"""How hard a problem is, as measured: what `benchmarks/difficulty.py` found and wrote to
`problems/difficulty.json`.
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kevin_env.outcome import Frozen
from kevin_env.problem import Problem, ProblemError

FILE = "difficulty.json"


class Measured(Frozen):
    """What was measured of one problem's reference."""

    seconds: float
    """Of one call in the main case."""
    roofline_seconds: float
    """What its operations and its bytes, each moved once, take at the device's peak rates."""
    bound: Literal["memory-bound", "compute-bound"]
    """Which of the two takes longer there."""
    dtypes: tuple[str, ...]
    """Of inputs, weights and outputs, by torch's names."""
    operations: int
    """Operators that one call dispatches, views left out, counted in the case `cpu`."""
    slowest_speedup: float | None = None
    """Of the slowest kernel known to be right, over the reference; None where none is known."""
    difficulty: float
    """From 0, easy, to 1: `benchmarks/difficulty.py` has the formula."""


class Source(Frozen):
    """Where figures come from."""

    file: str
    device: str
    date: str
    versions: dict[str, str]


class Measurements(Frozen):
    """The file: where its figures come from, and those of each problem by id."""

    sources: tuple[Source, ...]
    problems: dict[str, Measured]


def measured(problem: Problem) -> Measured | None:
    """What was measured of a problem; None for one that was not, such as a file of your own.

    Raises:
        ProblemError: if the file of figures beside the problem's level cannot be read.
    """
    if problem.level is None or not problem.path:
        return None
    return _figures(Path(problem.path).parents[1] / FILE).get(problem.id)


def by_difficulty(problems: Iterable[Problem]) -> list[Problem]:
    """The problems from the easiest to the hardest; those that were not measured come last, in the
    order given.
    """

    def key(problem: Problem) -> tuple[bool, float]:
        figures = measured(problem)
        return figures is None, figures.difficulty if figures else 0.0

    return sorted(problems, key=key)


@functools.cache
def _figures(file: Path) -> Mapping[str, Measured]:
    try:
        return Measurements.model_validate_json(file.read_bytes()).problems
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        what = str(error).partition("\n")[0]
        raise ProblemError(
            f"cannot read {file}: {what}; write it anew with benchmarks/difficulty.py"
        ) from error
