"""The commands that show and convert trajectories: replay, export, import."""

from pathlib import Path
from typing import Annotated

import typer

from kevin_env.cli.options import TRAJECTORIES, Json, Plain

FileOrFolder = Annotated[
    Path, typer.Argument(metavar="FILE|FOLDER", help="A trajectory file, or a folder of them.")
]
Episode = Annotated[str, typer.Option(help="Only the trajectory whose id begins so.")]
Filter = Annotated[
    str,
    typer.Option("--filter", help="Only these, such as 'L3 category:compile speedup>1.5 -qwen'."),
]


def replay(
    file: FileOrFolder,
    turn: Annotated[int | None, typer.Option(help="Only this turn of every episode.")] = None,
    diff: Annotated[
        tuple[int, int] | None, typer.Option(help="What changed from one turn to another.")
    ] = None,
    episode: Episode = "",
    words: Filter = "",
    follow: Annotated[bool, typer.Option("--follow", help="Watch the file as it grows.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write OUT.html, .md, .svg or .txt instead.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="Of a screen written to .svg or .txt, columns x rows.")
    ] = "140x42",
    plain: Plain = False,
    as_json: Json = False,
) -> None:
    """Look at trajectories turn by turn: code, diffs, verdicts, scores, feedback and returns. ?
    shows the keys.
    """
    import sys

    from kevin_env.app.replay import plain as text
    from kevin_env.app.replay.library import Library
    from kevin_env.app.replay.query import require_query
    from kevin_env.app.screen import make_console

    errors, console = make_console(plain, "stderr"), make_console(plain)
    library, choice = Library(file, export), text.Choice(require_query(words), episode, turn)
    if as_json:
        text.write_json(text.chosen(library, choice, errors), sys.stdout)
    elif export is not None:
        from kevin_env.app.replay.export import export as write

        typer.echo(f"wrote {write(library, choice, export, size, errors)}", err=True)
    elif diff is not None:
        text.print_diff(text.only_one(library, choice, errors), diff, console)
    elif follow and (plain or not console.is_terminal):
        text.follow(library, choice, console)
    elif (
        plain
        or turn is not None
        or console.is_dumb_terminal
        or not (console.is_terminal and sys.stdin.isatty())
    ):
        text.print_episodes(text.chosen(library, choice, errors), console)
    else:
        from kevin_env.app.replay.loop import Replay

        Replay(library, follow, words, episode).run(console)


def export(
    file: FileOrFolder,
    to: Annotated[
        str, typer.Option(help="atif, chat, inspect, csv, or turns: a training sample a turn.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File, or folder for one file an episode; else stdout.")
    ] = None,
    episode: Episode = "",
    words: Filter = "",
) -> None:
    """Convert trajectories to other formats."""
    from kevin_env.app.convert import convert
    from kevin_env.app.replay import plain as text
    from kevin_env.app.replay.library import Library
    from kevin_env.app.replay.query import require_query
    from kevin_env.app.screen import make_console

    choice = text.Choice(require_query(words), episode)
    convert(text.chosen(Library(file, out), choice, make_console(stream="stderr")), to, out)


def import_file(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A KernelBench run folder, or ATIF: a file or folder."),
    ],
    out: Annotated[Path, typer.Option(help="Trajectory file to append to.")] = TRAJECTORIES,
) -> None:
    """Read other formats into a trajectory file."""
    from kevin_env.app.convert import read_foreign
    from kevin_env.app.errors import BadInput
    from kevin_env.app.screen import make_console, show
    from kevin_env.recorder import Recorder

    if out.exists() and path.exists() and out.samefile(path):
        raise BadInput(f"{out} is what is to be read: give --out another file")
    recorder, count, errors = Recorder(out), 0, make_console(stream="stderr")
    for each in read_foreign(path, lambda words: show(errors, words, "red")):
        recorder.finish(each)
        count += 1
    many = f"{count} {'trajectory' if count == 1 else 'trajectories'}"
    typer.echo(f"{many} from {path} appended to {out}; kevin-env replay {out} shows them", err=True)
