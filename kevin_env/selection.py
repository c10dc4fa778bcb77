"""Which problems are meant, by whatever names them."""

import re
from collections.abc import Sequence
from pathlib import Path

from kevin_env.problem import Problem, ProblemError, list_problems, load_problem, parse_problem

ProblemChoice = str | Path | Problem | Sequence[str | Path | Problem]
"""An id, a level such as `L1`, a path, a `Problem`, or several of these."""


def find_problems(choice: ProblemChoice) -> tuple[Problem, ...]:
    """The problems that are meant, at least one.

    Args:
        choice: an id, a level such as `L1`, a path, a `Problem`, or several of these.

    Raises:
        ProblemError: if one is unknown or cannot be read, or there is none.
    """
    if isinstance(choice, Problem):
        return (choice,)
    if isinstance(choice, Path):
        return (parse_problem(choice),)
    if not isinstance(choice, str):
        found = tuple(problem for one in choice for problem in find_problems(one))
    elif level := re.fullmatch(r"L(\d+)", choice):
        found = tuple(list_problems(int(level.group(1))))
    else:
        found = (load_problem(choice),)
    if not found:
        raise ProblemError(f"no problems in {choice!r}; `kevin-env problems` lists what there is")
    return found
