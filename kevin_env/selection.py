"""Which problems are meant, by whatever names them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from kevin_env.kernelbench import PREFIX
from kevin_env.outcome import Outcome
from kevin_env.problem import Problem, ProblemError, list_problems, load_kernelbench, load_problem, parse_problem
from kevin_env.split import SEED, split

ProblemChoice = str | Path | Problem | Sequence[str | Path | Problem]
"""An id, a level such as `L1`, a side of the split such as `train` or `held_out:L1`, a path to a file or a folder, a
`Problem`, or several of these."""


_FORMS = (
    "give an id such as 'L1_23_Softmax', a level ('L1'), 'train', 'held_out', a path, a Problem, or a list of these"
)


@runtime_checkable
class ProblemSource(Protocol):
    """Chooses problems by how earlier episodes went, as `kevin_env.curriculum.Curriculum` does."""

    def sample(self, n: int = 1) -> Sequence[Problem]:
        """The next `n` problems."""
        ...

    def record(self, problem: Problem, result: Sequence[Outcome]) -> object:
        """Takes note of an episode that has ended: the outcomes of its turns."""
        ...


def find_problems(choice: ProblemChoice) -> tuple[Problem, ...]:
    """The problems that are meant, at least one.

    Args:
        choice: an id, a level such as `L1` or `kernelbench:level1`, a side of the split (`train`, `held_out`, or of one
            level `train:L1`), a path to a file or to a folder of them (which may lie in folders `level1`, `level2`,
            ...), a `Problem`, or several of these.

    Raises:
        ProblemError: if one is unknown or cannot be read, or there is none.
    """
    if isinstance(choice, Problem):
        return (choice,)
    if isinstance(choice, Path):
        return tuple(map(parse_problem, _files(choice)))
    if choice == "" or not isinstance(choice, str | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProblemError(f"problem is {choice!r}; {_FORMS}")
    if not isinstance(choice, str):
        found = tuple(problem for one in choice for problem in find_problems(one))
    elif named := re.fullmatch(r"L(?P<level>\d+)|(?P<side>train|held_out)(:L(?P<of>\d+))?", choice):
        level = named["level"] or named["of"]
        found = our_problems(int(level) if level else None, named["side"])
    elif choice.startswith(PREFIX):
        found = tuple(load_kernelbench(choice))
    elif Path(choice).is_dir():
        return find_problems(Path(choice))
    else:
        found = (load_problem(choice),)
    if not found:
        raise ProblemError(f"no problems in {choice!r}; `kevin-env problems` lists what there is")
    return found


def our_problems(level: int | None = None, side: str | None = None, seed: int = SEED) -> tuple[Problem, ...]:
    """Our own problems in order: of a level, and of a side of the split with that seed, where these are given.

    The split is always that of all our problems, so that a level has the same sides alone and among the others.
    """
    if side is None:
        return tuple(list_problems(level))
    sides = split(list_problems(), seed)
    return tuple(each for each in list_problems(level) if sides[each.id] == side)


def problem_source(choice: ProblemChoice | ProblemSource) -> tuple[Problem, ...] | ProblemSource:
    """What problems are drawn from: the source itself, or the problems that are meant.

    Raises:
        ProblemError: as `find_problems`.
    """
    return choice if isinstance(choice, ProblemSource) else find_problems(choice)


def draw_problem(source: tuple[Problem, ...] | ProblemSource, random: Generator) -> Problem:
    """The next problem: what the source chooses, or one of several at random."""
    if isinstance(source, ProblemSource):
        return source.sample(1)[0]
    return source[int(random.integers(len(source)))]


def _files(path: Path) -> list[Path]:
    """The file itself, or the problem files of a folder, in the order of their numbers."""
    if not path.is_dir():
        return [path]
    found = [file for pattern in ("*.py", "level*/*.py") for file in path.glob(pattern) if file.name[0].isdigit()]
    if not found:
        raise ProblemError(f"no problems in {path}: their files are named like 23_Softmax.py")
    return sorted(found, key=lambda file: [int(n) for n in re.findall(r"\d+", f"{file.parent.name}/{file.name}")])
