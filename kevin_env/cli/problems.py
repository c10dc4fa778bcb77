"""`kevin-env problems`: lists the problems, and looks for what is wrong with them."""

from typing import Annotated

import typer

from kevin_env.cli.options import Device, Inputs, Json, print_json

problems = typer.Typer(
    help="List the problems, or look for what is wrong with them.", rich_markup_mode=None
)


@problems.callback(invoke_without_command=True)
def list_problems(
    context: typer.Context,
    level: Annotated[int | None, typer.Option(help="Only this level, 1 to 10.")] = None,
    tag: Annotated[
        str | None, typer.Option(help="Only with this tag: a family, a trait, a bound or a dtype.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only this side of the split: train or held_out.")
    ] = None,
    split_seed: Annotated[int, typer.Option(help="The seed of the split.")] = 0,
    order: Annotated[
        str, typer.Option(help="level, or difficulty as measured, the easiest first.")
    ] = "level",
    as_json: Json = False,
) -> None:
    """List the problems."""
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
def lint_problems(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID|PATH|kernelbench:...]...",
            help="Ids, files, folders, or a level such as L1; kernelbench: for all of it. Ours when left out.",
        ),
    ] = None,
    level: Annotated[int | None, typer.Option(help="Only problems of this level.")] = None,
    device: Device = "auto",
    inputs: Inputs = "varied",
    as_json: Json = False,
) -> None:
    """Look for what makes a problem unfit: trivial answers that pass, inputs that do not matter, a
    failing reference.

    Exits with 0 when all are fit, with 1 when one is not, with 3 when the judge itself failed for
    one.
    """
    from kevin_env.app.arguments import open_pool, read_settings
    from kevin_env.app.catalogue import named_problems
    from kevin_env.app.linting import exit_code, lint, show_lint
    from kevin_env.app.screen import make_console
    from kevin_env.judge.api import Options

    settings = read_settings(device=device, inputs=inputs)
    chosen = named_problems(names or [], level)
    with open_pool(device) as pool:
        options = Options(device=settings.device, inputs=settings.inputs)
        linted = list(lint(chosen, pool, options, make_console(stream="stderr")))
    linted.sort(key=lambda each: chosen.index(each.problem))
    if as_json:
        print_json([each.row() for each in linted])
    else:
        show_lint(make_console(), linted)
    raise typer.Exit(exit_code(linted))
