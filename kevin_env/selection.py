"""Which problems are meant, by whatever names them."""

import re
from collections.abc import Sequence
from pathlib import Path

from kevin_env.kernelbench import PREFIX
from kevin_env.problem import Problem, ProblemError, list_problems, load_kernelbench, load_problem, parse_problem

ProblemChoice = str | Path | Problem | Sequence[str | Path | Problem]
"""An id, a level such as `L1`, a path to a file or a folder, a `Problem`, or several of these."""


def find_problems(choice: ProblemChoice) -> tuple[Problem, ...]:
    """The problems that are meant, at least one.

    Args:
        choice: an id, a level such as `L1` or `kernelbench:level1`, a path to a file or to a folder of them (which may
            lie in folders `level1`, `level2`, ...), a `Problem`, or several of these.

    Raises:
        ProblemError: if one is unknown or cannot be read, or there is none.
    """
    if isinstance(choice, Problem):
        return (choice,)
    if isinstance(choice, Path):
        return tuple(map(parse_problem, _files(choice)))
    if not isinstance(choice, str):
        found = tuple(problem for one in choice for problem in find_problems(one))
    elif level := re.fullmatch(r"L(\d+)", choice):
        found = tuple(list_problems(int(level.group(1))))
    elif choice.startswith(PREFIX):
        found = tuple(load_kernelbench(choice))
    elif Path(choice).is_dir():
        return find_problems(Path(choice))
    else:
        found = (load_problem(choice),)
    if not found:
        raise ProblemError(f"no problems in {choice!r}; `kevin-env problems` lists what there is")
    return found


def _files(path: Path) -> list[Path]:
    """The file itself, or the problem files of a folder, in the order of their numbers."""
    if not path.is_dir():
        return [path]
    found = [file for pattern in ("*.py", "level*/*.py") for file in path.glob(pattern) if file.name[0].isdigit()]
    if not found:
        raise ProblemError(f"no problems in {path}: their files are named like 23_Softmax.py")
    return sorted(found, key=lambda file: [int(n) for n in re.findall(r"\d+", f"{file.parent.name}/{file.name}")])
