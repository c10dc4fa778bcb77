"""The commands that show, convert and report trajectories: replay, export, import, report."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kevin_env.cli.options import TRAJECTORIES, Json, Plain, print_json

FileOrFolder = Annotated[
    Path, typer.Argument(metavar="FILE|FOLDER", help="Trajectory file, or a folder of them.")
]
Episode = Annotated[str, typer.Option(help="Only the episode whose ID starts with this.")]
Filter = Annotated[
    str,
    typer.Option("--filter", help="Only matches, such as 'L3 category:compile speedup>1.5 -qwen'."),
]


Turn = Annotated[int | None, typer.Option(help="Only this turn of every episode.")]
Diff = Annotated[
    str, typer.Option(metavar="TURN,TURN", help="Show the changes from one turn to another.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Follow the file as it grows.")]
Serve = Annotated[bool, typer.Option("--serve", help="Follow it in a browser, on a local server.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Port of --serve; by default any free one.")
]
Export = Annotated[
    Path | None, typer.Option(help="Write a file instead: .html, .md, .svg or .txt.")
]
Size = Annotated[
    str, typer.Option(metavar="COLUMNSxROWS", help="Screen size of an .svg or .txt export.")
]


def replay(
    file: FileOrFolder,
    turn: Turn = None,
    diff: Diff = "",
    episode: Episode = "",
    words: Filter = "",
    follow: Follow = False,
    serve: Serve = False,
    port: Port = 0,
    export: Export = None,
    size: Size = "140x42",
    plain: Plain = False,
    as_json: Json = False,
) -> None:
    """Browse trajectories turn by turn.

    Shows code, diffs, verdicts, scores, feedback and returns. On a terminal, ? shows the keys.
    """
    import sys

    from kevin_env.app.replay import plain as text
    from kevin_env.app.replay.library import Library
    from kevin_env.app.replay.query import require_query
    from kevin_env.app.screen import make_console

    errors, console = make_console(plain, "stderr"), make_console(plain)
    choice = text.Choice(require_query(words), episode, turn)
    on_screen = console.is_terminal and sys.stdin.isatty() and not console.is_dumb_terminal
    on_screen = on_screen and not (plain or as_json or export or serve or diff or turn is not None)
    library = Library(file, export, newest_first=on_screen)
    if as_json:
        text.write_json(text.chosen(library, choice, errors), sys.stdout)
    elif export is not None:
        from kevin_env.app.replay.export import export as write

        typer.echo(f"wrote {write(library, choice, export, size, errors)}", err=True)
    elif serve:
        from kevin_env.app.replay.serve import serve as run

        run(library, choice, port, lambda url: typer.echo(f"{url}  (Ctrl-C ends it)"))
    elif diff:
        turns = _two_turns(diff)
        text.print_diff(text.only_one(library, choice, errors), turns, console)
    elif follow and (plain or not console.is_terminal):
        text.follow(library, choice, console)
    elif not on_screen:
        text.print_episodes(text.chosen(library, choice, errors), console)
    else:
        from kevin_env.app.tui.replay import ReplayApp

        ReplayApp(library, follow, words, episode).run()


def _two_turns(text: str) -> tuple[int, int]:
    from kevin_env.app.errors import BadInput

    first, _, second = text.partition(",")
    try:
        return int(first), int(second)
    except ValueError:
        raise BadInput(f"--diff {text}: give two turns, such as 4,5") from None


def export(
    file: FileOrFolder,
    to: Annotated[
        Literal["chat", "inspect", "csv", "turns"],
        typer.Option(help="Format to convert to; turns is one training sample per turn."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File, or for inspect a folder; by default stdout."),
    ] = None,
    episode: Episode = "",
    words: Filter = "",
) -> None:
    """Convert trajectories to another format."""
    from kevin_env.app.convert import convert
    from kevin_env.app.replay import plain as text
    from kevin_env.app.replay.library import Library
    from kevin_env.app.replay.query import require_query
    from kevin_env.app.screen import make_console

    choice = text.Choice(require_query(words), episode)
    episodes = text.chosen(Library(file, out), choice, make_console(stream="stderr"))
    if written := convert(episodes, to, out):
        typer.echo(f"wrote {written}", err=True)


def import_file(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="KernelBench run folder."),
    ],
    out: Annotated[Path, typer.Option(help="Trajectory file to append to.")] = TRAJECTORIES,
) -> None:
    """Convert KernelBench runs to a trajectory file."""
    from kevin_env.app.errors import BadInput
    from kevin_env.app.kernelbench_run import read_run
    from kevin_env.app.screen import counted, make_console, show
    from kevin_env.recorder import Recorder

    if out.exists() and path.exists() and out.samefile(path):
        raise BadInput(f"{out} is both input and output: give another --out")
    recorder, count, errors = Recorder(out), 0, make_console(stream="stderr")
    for each in read_run(path, lambda words: show(errors, words, "red")):
        recorder.finish(each)
        count += 1
    many = counted(count, "trajectory")
    typer.echo(f"{many} from {path} appended to {out}; kevin-env replay {out} shows them", err=True)


def report(
    path: Annotated[
        Path, typer.Argument(metavar="RUN|FILE", help="Run folder of eval, or trajectory file.")
    ],
    other: Annotated[
        Path | None, typer.Argument(metavar="[RUN|FILE]", help="Another run to compare it with.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .html, or .md for tables only; by default report.html in RUN."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Write an HTML report of a run.

    Shows metrics with intervals, charts, hacks, failures and every trajectory. The report is one
    self-contained file; beyond 300 trajectories or 30 MB, these are in pages next to it. Of two
    runs, prints what changed from the first to the second, per problem and level, with intervals.
    """
    from kevin_env.app.report.write import default_file, read_run, write_report
    from kevin_env.app.screen import make_console, progress_of, show

    errors = make_console(stream="stderr")
    if other is not None:
        _compare((path, other), out, as_json)
        return
    run = read_run(path, lambda line: show(errors, f"left out: {line}", "yellow"))
    if as_json:
        print_json(run.metrics.model_dump(mode="json"))
    if out is not None or not as_json:
        with progress_of(errors) as progress:
            pages = progress.add_task("pages", total=None)
            written = write_report(
                run,
                out or default_file(path),
                lambda number, of: progress.update(pages, completed=number, total=of),
            )
        typer.echo(f"wrote {written}", err=True)


def _compare(paths: tuple[Path, Path], out: Path | None, as_json: bool) -> None:
    from kevin_env.app.report.comparison import compare, show_comparison, write_comparison
    from kevin_env.app.screen import make_console, show

    errors = make_console(stream="stderr")
    found = compare(paths, lambda line: show(errors, f"left out: {line}", "yellow"))
    if out is not None:
        typer.echo(f"wrote {write_comparison(found, out)}", err=True)
    elif as_json:
        print_json(found.model_dump(mode="json"))
    else:
        show_comparison(make_console(), found)
