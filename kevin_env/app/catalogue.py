"""Lists and shows problems."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kevin_env.app.errors import BadInput
from kevin_env.app.screen import show, show_code
from kevin_env.difficulty import by_difficulty, family_of, measured, tags_of
from kevin_env.problem import Problem, list_problems
from kevin_env.selection import SEED, Side, find_problems, our_problems, our_sides


def choose_problems(
    level: int | None = None,
    tag: str | None = None,
    side: str | None = None,
    seed: int = SEED,
    order: str = "level",
) -> list[Problem]:
    """The built-in problems, filtered by level, tag and side of the split where given.

    Args:
        level: 1 to 10.
        tag: a family, a trait, a bound or a dtype.
        side: `train` or `held_out`.
        seed: of the split.
        order: `level`, or `difficulty` with the easiest first.

    Raises:
        BadInput: if nothing matches, or the side or order is unknown.
    """
    if side not in (None, *get_args(Side)):
        raise BadInput(f"--split is {side!r}; it may be {' or '.join(get_args(Side))}")
    if order not in ("level", "difficulty"):
        raise BadInput(f"--order is {order!r}; it may be level or difficulty")
    chosen = [
        each for each in our_problems(level, side, seed) if tag is None or tag in tags_of(each)
    ]
    if chosen:
        return by_difficulty(chosen) if order == "difficulty" else chosen
    every = list_problems()
    levels = sorted({each.level for each in every if each.level is not None})
    tags = sorted({tag for each in every for tag in tags_of(each)})
    raise BadInput(
        f"no such problem; levels are {', '.join(map(str, levels))}, tags are {', '.join(tags)}"
    )


def named_problems(names: Sequence[str], level: int | None) -> list[Problem]:
    """The distinct problems of these names, or all built-in ones; of one level if given.

    Args:
        names: ids, files or folders, levels such as `L1`, `train`, or `kernelbench:` names.
        level: 1 to 10.

    Raises:
        ProblemError: if one is unknown or cannot be read.
        BadInput: if nothing matches.
    """
    if not names:
        return choose_problems(level)
    found = {each.id: each for each in find_problems(names) if level in (None, each.level)}
    if not found:
        raise BadInput(f"no problem of level {level} among {', '.join(names)}")
    return list(found.values())


def problem_row(problem: Problem, sides: Mapping[str, Side] | None = None) -> dict[str, Any]:
    """An object of `problems --json`; `sides` is the split, by default that of the default seed."""
    figures, sides = measured(problem), our_sides() if sides is None else sides
    return {
        "id": problem.id,
        "level": problem.level,
        "number": problem.number,
        "name": problem.name,
        "task": _first_line(problem),
        "cases": list(problem.cases),
        "family": family_of(problem),
        "tags": list(tags_of(problem)),
        "split": sides.get(problem.id),
        "measured": figures and figures.model_dump(mode="json"),
        "path": problem.path,
        "sha256": problem.sha256,
    }


def problems_table(problems: Sequence[Problem]) -> Table:
    """A row per problem."""
    table = Table()
    table.add_column("id", no_wrap=True)
    table.add_column("task")
    table.add_column("tags")
    table.add_column("difficulty", justify="right")
    for each in problems:
        figures = measured(each)
        difficulty = f"{figures.difficulty:.2f}" if figures else ""
        table.add_row(
            *map(Text, (each.id, _first_line(each), ", ".join(tags_of(each)), difficulty))
        )
    return table


def show_problem(console: Console, problem: Problem) -> None:
    """Prints a problem's properties and source."""
    figures = measured(problem)
    show(console, problem.id, "bold")
    show(console, f"  cases       {', '.join(problem.cases)}")
    show(console, f"  tags        {', '.join(tags_of(problem)) or 'none'}")
    if figures:
        operators = f"{figures.operations} operator" + "s" * (figures.operations != 1)
        times = figures.seconds / figures.roofline_seconds
        time = f"{figures.seconds * 1e3:.3g} ms, {times:.3g} times the roofline"
        show(console, f"  difficulty  {figures.difficulty:.2f} ({operators}; reference {time})")
    show(console, f"  file        {problem.path}")
    console.print()
    show_code(console, problem.source)


def _first_line(problem: Problem) -> str:
    return problem.statement.partition("\n")[0]
