"""`kevin-env report`: a run as a page."""

from pathlib import Path
from typing import Annotated

import typer

from kevin_env.cli.options import print_json

RunOrFile = Annotated[
    Path, typer.Argument(metavar="RUN|FILE", help="A run folder of eval, or a trajectory file.")
]


def report(
    path: RunOrFile,
    out: Annotated[
        Path | None,
        typer.Option(
            help="REPORT.html, or .md for the tables alone; else report.html in the folder."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Write a page about a run: figures with intervals, charts, hacks, failures, and every
    trajectory.

    The page needs nothing else. Only a run of more than 300 trajectories or 30 MB has them in pages
    beside it.
    """
    from rich.progress import Progress

    from kevin_env.app.report.write import default_file, read_run, write_report
    from kevin_env.app.screen import make_console, show

    errors = make_console(stream="stderr")
    run = read_run(path, lambda line: show(errors, f"left out: {line}", "yellow"))
    if as_json:
        print_json(run.metrics.model_dump(mode="json"))
    if out is not None or not as_json:
        with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
            pages = progress.add_task("pages", total=None)
            written = write_report(
                run,
                out or default_file(path),
                lambda number, of: progress.update(pages, completed=number, total=of),
            )
        typer.echo(f"wrote {written}", err=True)
