"""Lists problems and shows one."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kevin_env.app.errors import BadInput
from kevin_env.app.screen import show, show_code
from kevin_env.problem import Problem, list_problems
from kevin_env.selection import find_problems


def choose_problems(level: int | None, tag: str | None) -> list[Problem]:
    """Our own problems of a level and with a tag, where these are given.

    Raises:
        BadInput: if there is none.
    """
    chosen = [each for each in list_problems(level) if tag is None or tag in each.tags]
    if chosen:
        return chosen
    every = list_problems()
    levels = sorted({each.level for each in every if each.level is not None})
    tags = sorted({tag for each in every for tag in each.tags})
    raise BadInput(f"no such problem; levels are {', '.join(map(str, levels))}, tags are {', '.join(tags)}")


def named_problems(names: Sequence[str], level: int | None) -> list[Problem]:
    """The problems of these names, each once; our own where there are none. Of a level when given.

    Args:
        names: ids, paths of files or folders, levels such as `L1`, `kernelbench:` and what may follow it.
        level: 1 to 10.

    Raises:
        ProblemError: if one is unknown or cannot be read.
        BadInput: if there is none.
    """
    if not names:
        return choose_problems(level, None)
    found = {each.id: each for each in find_problems(names) if level in (None, each.level)}
    if not found:
        raise BadInput(f"no problem of level {level} among {', '.join(names)}")
    return list(found.values())


def problem_row(problem: Problem) -> dict[str, Any]:
    """A problem as an object of `problems --json`."""
    return {
        "id": problem.id,
        "level": problem.level,
        "number": problem.number,
        "name": problem.name,
        "task": _first_line(problem),
        "cases": list(problem.cases),
        "tags": list(problem.tags),
        "path": problem.path,
        "sha256": problem.sha256,
    }


def problems_table(problems: Sequence[Problem]) -> Table:
    """One row a problem."""
    table = Table()
    table.add_column("id", no_wrap=True)
    table.add_column("task")
    table.add_column("tags")
    for each in problems:
        table.add_row(*map(Text, (each.id, _first_line(each), ", ".join(each.tags))))
    return table


def show_problem(console: Console, problem: Problem) -> None:
    """Prints a problem's facts and its source."""
    show(console, problem.id, "bold")
    show(console, f"  cases  {', '.join(problem.cases)}")
    show(console, f"  tags   {', '.join(problem.tags) or 'none'}")
    show(console, f"  file   {problem.path}")
    console.print()
    show_code(console, problem.source)


def _first_line(problem: Problem) -> str:
    return problem.statement.partition("\n")[0]
