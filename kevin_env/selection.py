"""Which problems are meant, by whatever names them."""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from kevin_env.kernelbench import PREFIX
from kevin_env.outcome import Outcome
from kevin_env.problem import (
    Problem,
    ProblemError,
    list_problems,
    load_kernelbench,
    load_problem,
    parse_problem,
)
from kevin_env.split import SEED, Side, split

ProblemChoice = str | Path | Problem | Sequence[str | Path | Problem]
"""An id, a level such as `L1`, a side of the split such as `train` or `held_out:L1`, a path to a
file or a folder, a `Problem`, or several of these.
"""


_FORMS = "give an id such as 'L1_23_Softmax', a level ('L1'), 'train', 'held_out', a path, a Problem, or a list of these"


@runtime_checkable
class ProblemSource(Protocol):
    """Chooses problems by how earlier episodes went, as `kevin_env.curriculum.Curriculum` does."""

    def sample(self, n: int = 1) -> Sequence[Problem]:
        """The next `n` problems."""
        ...

    def record(self, problem: Problem, result: Sequence[Outcome]) -> object:
        """Takes note of an episode that has ended: the outcomes of its turns."""
        ...


def find_problems(choice: ProblemChoice, *, held_out: bool = True) -> tuple[Problem, ...]:
    """The problems that are meant, at least one.

    Args:
        choice: an id, a level such as `L1` or `kernelbench:level1`, a side of the split (`train`,
            `held_out`, or of one level `train:L1`), a path to a file or to a folder of them (which
            may lie in folders `level1`, `level2`, ...), a `Problem`, or several of these.
        held_out: whether a level and a folder, which name no side, mean their held-out problems,
            too. Those that are named alone, or by `held_out`, are always meant.

    Raises:
        ProblemError: if one is unknown or cannot be read, or there is none.
    """
    if isinstance(choice, Problem):
        return (choice,)
    if isinstance(choice, Path):
        found = tuple(map(parse_problem, _files(choice)))
        return found if held_out or not choice.is_dir() else _without_held_out(found, choice)
    if choice == "" or not isinstance(choice, str | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProblemError(f"problem is {choice!r}; {_FORMS}")
    if not isinstance(choice, str):
        found = tuple(
            problem for one in choice for problem in find_problems(one, held_out=held_out)
        )
    elif named := re.fullmatch(r"L(?P<level>\d+)|(?P<side>train|held_out)(:L(?P<of>\d+))?", choice):
        level = named["level"] or named["of"]
        side = named["side"] or (None if held_out else "train")
        found = our_problems(int(level) if level else None, side)
    elif choice.startswith(PREFIX):
        found = tuple(load_kernelbench(choice))
        found = found if held_out or len(found) == 1 else _without_held_out(found, choice)
    elif Path(choice).is_dir():
        return find_problems(Path(choice), held_out=held_out)
    else:
        found = (load_problem(choice),)
    if not found:
        raise ProblemError(f"no problems in {choice!r}; `kevin-env problems` lists what there is")
    return found


def our_problems(
    level: int | None = None, side: str | None = None, seed: int = SEED
) -> tuple[Problem, ...]:
    """Our own problems in order: of a level, and of a side of the split with that seed, where these
    are given.

    The split is always that of all our problems, so that a level has the same sides alone and among
    the others.
    """
    if side is None:
        return tuple(list_problems(level))
    sides = our_sides(seed)
    return tuple(each for each in list_problems(level) if sides[each.id] == side)


@functools.cache
def our_sides(seed: int = SEED) -> Mapping[str, Side]:
    """The side of each of our own problems, by id, in the split with that seed."""
    return split(list_problems(), seed)


def is_held_out(problem: Problem) -> bool:
    """Whether it is one of ours that is held out, or the one in KernelBench whose level and number
    that has.
    """
    if not problem.id.startswith(PREFIX):
        return our_sides().get(problem.id) == "held_out"
    start = f"L{problem.level}_{problem.number}_"
    return any(side == "held_out" and id.startswith(start) for id, side in our_sides().items())


def problem_source(choice: ProblemChoice | ProblemSource) -> tuple[Problem, ...] | ProblemSource:
    """What problems are drawn from: the source itself, or the problems that are meant.

    A level and a folder name no side of the split: their held-out problems are left out.

    Raises:
        ProblemError: as `find_problems`.
    """
    return choice if isinstance(choice, ProblemSource) else find_problems(choice, held_out=False)


def draw_problem(source: tuple[Problem, ...] | ProblemSource, random: Generator) -> Problem:
    """The next problem: what the source chooses, or one of several at random."""
    if isinstance(source, ProblemSource):
        return source.sample(1)[0]
    return source[int(random.integers(len(source)))]


def _without_held_out(problems: Sequence[Problem], choice: str | Path) -> tuple[Problem, ...]:
    found = tuple(problem for problem in problems if not is_held_out(problem))
    if not found:
        raise ProblemError(
            f"all problems in {str(choice)!r} are held out; name one of them alone, or 'held_out'"
        )
    return found


def _files(path: Path) -> list[Path]:
    """The file itself, or the problem files of a folder, in the order of their numbers."""
    if not path.is_dir():
        return [path]
    found = [
        file
        for pattern in ("*.py", "level*/*.py")
        for file in path.glob(pattern)
        if file.name[0].isdigit()
    ]
    if not found:
        raise ProblemError(f"no problems in {path}: their files are named like 23_Softmax.py")
    return sorted(
        found,
        key=lambda file: [int(n) for n in re.findall(r"\d+", f"{file.parent.name}/{file.name}")],
    )
