"""`kevin-env problems` and `show`: lists, lints and shows problems."""

from typing import Annotated

import typer

from kevin_env.cli.options import Given, Json, print_json, settings_options

problems = typer.Typer(help="List or lint problems.")


@problems.callback(invoke_without_command=True)
def list_problems(
    context: typer.Context,
    level: Annotated[int | None, typer.Option(help="Only this level, 1 to 10.")] = None,
    tag: Annotated[
        str | None, typer.Option(help="Only this tag: a family, trait, bound or dtype.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="train|held_out", help="Only this side of the split."),
    ] = None,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    order: Annotated[
        str,
        typer.Option(
            metavar="level|difficulty",
            help="Sort by level, or by measured difficulty from easy to hard.",
        ),
    ] = "level",
    as_json: Json = False,
) -> None:
    """List problems."""
    from kevin_env.app.catalogue import choose_problems, problem_row, problems_table
    from kevin_env.app.screen import make_console
    from kevin_env.selection import our_sides

    if context.invoked_subcommand:
        return
    chosen = choose_problems(level, tag, split, split_seed, order)
    if as_json:
        sides = our_sides(split_seed)
        print_json([problem_row(each, sides) for each in chosen])
    else:
        make_console().print(problems_table(chosen))


@problems.command("lint")
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
    level: Annotated[int | None, typer.Option(help="Only problems of this level.")] = None,
    as_json: Json = False,
) -> None:
    """Check that problems are fit to train on.

    Looks for trivial answers that pass, inputs that do not matter, and failing references. The exit
    code is 0 if all problems are fit, 1 if one is not, and 3 if the judge itself failed.
    """
    from kevin_env.app.arguments import open_pool, read_settings
    from kevin_env.app.catalogue import named_problems
    from kevin_env.app.linting import exit_code, lint, show_lint
    from kevin_env.app.screen import make_console
    from kevin_env.judge.api import Options

    chosen = read_settings(**settings)
    named = named_problems(names or [], level)
    with open_pool(chosen.device) as pool:
        options = Options(device=chosen.device, inputs=chosen.inputs)
        linted = list(lint(named, pool, options, make_console(stream="stderr")))
    linted.sort(key=lambda each: named.index(each.problem))
    if as_json:
        print_json([each.row() for each in linted])
    else:
        show_lint(make_console(), linted)
    raise typer.Exit(exit_code(linted))


def show(problem: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> None:
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
