"""`kevin-env problems`, `show` and `export-problems`: lists, lints, shows and exports problems."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from kevin_env.cli.options import (
    Command,
    Given,
    Group,
    Json,
    complete_problems,
    example,
    extra,
    is_given,
    of_problems,
    print_json,
    settings_options,
)
from kevin_env.selection import Side

problems = typer.Typer(cls=Group, help="List or lint problems.")

Level = Annotated[int | None, typer.Option(help="Only problems of this level.", min=1, max=10)]
Tag = Annotated[str | None, typer.Option(help="Only this tag: a family, trait, bound or dtype.")]
Search = Annotated[
    str, typer.Option(help="Only problems with these words in their ID, task or tags.")
]
Split = Annotated[Side | None, typer.Option(help="Only this side of the split.")]
SplitSeed = Annotated[int, typer.Option(help="Seed of the split.")]
Order = Annotated[
    Literal["level", "difficulty"],
    typer.Option(help="Sort by level, or by measured difficulty from easy to hard."),
]


@problems.callback(
    invoke_without_command=True,
    epilog=example("problems --search 'layer norm' --split train --order difficulty"),
)
def list_problems(
    context: typer.Context,
    level: Level = None,
    tag: Tag = None,
    search: Search = "",
    split: Split = None,
    split_seed: SplitSeed = 0,
    order: Order = "level",
    problem: Annotated[list[str] | None, of_problems("; by default all")] = None,
    as_json: Json = False,
) -> None:
    """List problems.

    Without a terminal, the fields are separated by tabs: ID, split, difficulty, task, tags.
    """
    from kevin_env.app.catalogue import choose_problems, print_problems, problem_row
    from kevin_env.app.errors import BadInput
    from kevin_env.app.screen import make_console
    from kevin_env.selection import our_sides

    if command := context.invoked_subcommand:
        given = [each for each in context.params if is_given(context, each)]
        if given:
            raise BadInput(f"options for `problems {command}` go after `{command}`")
        return
    chosen = choose_problems(level, tag, split, split_seed, order, search, problem or ())
    sides = our_sides(split_seed)
    if as_json:
        print_json([problem_row(each, sides) for each in chosen])
    else:
        print_problems(make_console(), chosen, sides)


@problems.command("lint", cls=Command, epilog=example("problems lint L5 --device cpu"))
@settings_options(("device", "inputs"))
def lint_problems(
    settings: Given,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|PATH|kernelbench:...",
            help="IDs, levels such as L1, files, folders, or kernelbench:; by default all.",
        ),
    ] = None,
    level: Level = None,
    as_json: Json = False,
) -> None:
    """Check that problems are fit to train on.

    Looks for trivial answers that pass, inputs that do not matter, and failing references. The exit
    code is 0 if all problems are fit, 1 if one is not, 2 if one cannot be read, and 3 if the judge
    itself failed.
    """
    from kevin_env.app.arguments import open_pool, read_settings
    from kevin_env.app.catalogue import named_problems
    from kevin_env.app.errors import WRONG_ARGUMENTS, BadInput
    from kevin_env.app.linting import exit_code, lint, show_lint
    from kevin_env.app.screen import make_console, show
    from kevin_env.judge.api import Options
    from kevin_env.pools.local import LocalPool
    from kevin_env.problem import ProblemError

    chosen, console = read_settings(**settings), make_console(stream="stderr")
    readable, unread = list[str](), dict[str, ProblemError]()
    for name in names or ():
        try:
            named_problems([name], None)
            readable.append(name)
        except ProblemError as error:
            unread[name] = error
    if unread and not readable:
        raise next(iter(unread.values()))
    named = named_problems(readable, level)
    with open_pool(chosen.device) as pool:
        if not isinstance(pool, LocalPool):
            raise BadInput("problems are linted on this machine: unset KEVIN_ENV_POOL")
        options = Options(device=chosen.device, inputs=chosen.inputs)
        linted = list(lint(named, pool, options, console))
    linted.sort(key=lambda each: named.index(each.problem))
    if as_json:
        print_json([each.row() for each in linted])
    else:
        show_lint(make_console(), linted)
    for name, error in unread.items():
        show(console, f"{name} is left out: {error}", "bold red")
    raise typer.Exit(max(exit_code(linted), WRONG_ARGUMENTS if unread else 0))


def show(
    problem: Annotated[str, typer.Argument(metavar="ID", autocompletion=complete_problems)],
    as_json: Json = False,
) -> None:
    """Show one problem: its task and reference.

    ID may be a path to a KernelBench-style file.
    """
    from kevin_env.app.catalogue import problem_row, show_problem
    from kevin_env.app.screen import make_console
    from kevin_env.problem import load_problem

    found = load_problem(problem)
    if as_json:
        print_json(problem_row(found) | {"statement": found.statement, "source": found.source})
    else:
        show_problem(make_console(), found)


def export_problems(
    out: Annotated[
        Path,
        typer.Option(help="A .parquet file for verl or SkyRL, or a folder for the other formats."),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|LEVEL|SPLIT|PATH",
            help="Problems; default: training problems for a file, all for a folder.",
        ),
    ] = None,
    format: Annotated[
        Literal["dataset", "harbor"], typer.Option(help="A data set, or tasks of Harbor.")
    ] = "dataset",
    url: Annotated[
        str,
        typer.Option(help="For harbor: URL of `kevin-env mcp --http` for the containers."),
    ] = "",
) -> None:
    """Export problems as a data set, or as tasks of Harbor for coding agents.

    A parquet file has the problems to train on, without held-out ones unless they are named. A
    folder has both sides of the split, and a card.

    With --format harbor, each problem is a task whose kernel is graded by the server at --url,
    outside of the agent's container. The server must offer the problems; set KEVIN_ENV_MCP_TOKEN to
    its token here, and where Harbor runs. Needs the extra mcp.
    """
    from kevin_env.app.dataset import export_problems
    from kevin_env.app.errors import BadInput
    from kevin_env.app.screen import counted
    from kevin_env.selection import SIDES, find_problems

    if out.suffix in (".csv", ".json", ".jsonl", ".arrow", ".txt", ".zip"):
        raise BadInput(f"--out {out}: give a .parquet file or a folder")
    if (format == "harbor") != bool(url):
        raise BadInput("give --format harbor and --url together")
    if format == "harbor":
        with extra():
            from kevin_env.agents.check import TOKEN
            from kevin_env.agents.harbor import export_harbor
        chosen = find_problems(names or SIDES)
        export_harbor(chosen, out, url, os.environ.get(TOKEN, ""))
        typer.echo(f"wrote {counted(len(chosen), 'task')} to {out}", err=True)
        return
    typer.echo(f"wrote {export_problems(names or [], out)}", err=True)
