"""Lists and shows problems."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.console import Console

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.describe import Code
from kevin_env.app.replay.panes import lines_of_blocks
from kevin_env.app.replay.pieces import GAP, Column, Look, heading, table_line, text, that_fit
from kevin_env.app.screen import counted, show, show_lines
from kevin_env.difficulty import by_difficulty, family_of, measured, measured_on, tags_of
from kevin_env.outcome import visible
from kevin_env.problem import Problem, list_problems
from kevin_env.selection import SEED, Side, find_problems, our_problems, our_sides

TASK, TAGS = 20, 38
"""Least width of the column of tasks, and width of that of tags."""
_COLUMNS = (Column("split", 8), Column("difficulty", 10, "right"))


def choose_problems(
    level: int | None = None,
    tag: str | None = None,
    side: Side | None = None,
    seed: int = SEED,
    order: Literal["level", "difficulty"] = "level",
    search: str = "",
    names: Sequence[str] = (),
) -> list[Problem]:
    """The built-in problems that match every filter.

    Args:
        level: 1 to 10.
        tag: a family, a trait, a bound or a dtype.
        side: of the split.
        seed: of the split.
        order: `level`, or `difficulty` with the easiest first.
        search: words that must all occur in the ID, the task or the tags, in any case.
        names: as of `find_problems`; by default all.

    Raises:
        BadInput: if nothing matches.
    """
    words = search.lower().split()
    among = {each.id for each in find_problems(names)} if names else None
    chosen = [
        each
        for each in our_problems(level, side, seed)
        if (among is None or each.id in among)
        and (tag is None or tag in tags_of(each))
        and all(word in _text(each) for word in words)
    ]
    if chosen:
        return by_difficulty(chosen) if order == "difficulty" else chosen
    tags = sorted({each for problem in list_problems() for each in tags_of(problem)})
    if tag not in (None, *tags):
        raise BadInput(f"unknown tag {tag!r}; tags are {', '.join(tags)}")
    raise BadInput("no problem matches; `kevin-env problems` lists all")


def named_problems(names: Sequence[str], level: int | None) -> list[Problem]:
    """The distinct problems of these names, or all built-in ones, of one level if `level` is set.

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


def print_problems(
    console: Console, problems: Sequence[Problem], sides: Mapping[str, Side]
) -> None:
    """Prints a line per problem: cut to the width of a terminal, separated by tabs elsewhere."""
    rows = [
        {
            "id": each.id,
            "split": sides.get(each.id, ""),
            "difficulty": f"{figures.difficulty:.2f}" if (figures := measured(each)) else "",
            "task": _first_line(each),
            "tags": ",".join(tags_of(each)),
        }
        for each in problems
    ]
    if not console.is_terminal:
        lines = "\n".join("\t".join(row) for row in (rows[0], *(row.values() for row in rows)))
        console.file.write(f"{visible(lines)}\n")  # `print` would replace the tabs
        return
    columns = [Column("id", max(len(row["id"]) for row in rows)), *_COLUMNS]
    left = console.width - sum(column.width + GAP for column in columns)
    task = left - GAP - TAGS if left >= TASK + GAP + TAGS else max(left, TASK)
    columns = that_fit([*columns, Column("task", task), Column("tags", TAGS)], console.width)
    console.print(heading(columns))
    for row in rows:
        console.print(table_line(columns, {name: text(cell) for name, cell in row.items()}))
    hidden = [name for name in rows[0] if name not in {column.name for column in columns}]
    more = f"; a wider terminal shows {', '.join(hidden)}" if hidden else ""
    show(console, counted(len(rows), "problem") + more)


def show_problem(console: Console, problem: Problem) -> None:
    """Prints a problem's properties and source."""
    figures = measured(problem)
    show(console, problem.id, "bold")
    show(console, f"  cases       {', '.join(problem.cases)}")
    for name, told in (
        ("held out", ", ".join(problem.hidden)),
        ("baseline", problem.baseline and problem.baseline.name),
        ("start", problem.start and problem.start.name),
    ):
        if told:
            show(console, f"  {name:11} {told}")
    show(console, f"  tags        {', '.join(tags_of(problem)) or 'none'}")
    if figures:
        operators = counted(figures.operations, "operator")
        times = figures.seconds / figures.roofline_seconds
        time = f"{figures.seconds * 1e3:.3g} ms on {measured_on(problem)}"
        time = f"{time}, {times:.3g} times the roofline"
        show(console, f"  difficulty  {figures.difficulty:.2f} ({operators}; reference {time})")
    show(console, f"  file        {problem.path}")
    console.print()
    look = Look(console.width, wrap=console.is_terminal)
    show_lines(console, lines_of_blocks([Code(problem.source)], look))


def _first_line(problem: Problem) -> str:
    return problem.statement.partition("\n")[0]


def _text(problem: Problem) -> str:
    return " ".join((problem.id, _first_line(problem), *tags_of(problem))).lower()
