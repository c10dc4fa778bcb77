"""The command line. Reads arguments and says what went wrong in one line; what is done is in
`kevin_env.app`.

Results go to stdout, everything else to stderr; exit codes are in `kevin_env.app.errors`. All is
imported where it is used, so that `--help` is quick.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from kevin_env.cli import evaluate, index, judge, play, problems, replay, report, serve
from kevin_env.cli.options import Device, Json, Plain, print_json


class _Commands(typer.core.TyperGroup):
    """Turns what is known to go wrong into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except Exception as error:
            from kevin_env.app.errors import error_code, one_line

            code = error_code(error)
            if code is None:
                raise
            typer.echo(f"kevin-env: {one_line(error)}", err=True)
            raise typer.Exit(code) from error


app = typer.Typer(
    name="kevin-env",
    help="Refine GPU kernels over several turns: judge submissions, play episodes, look at them again.",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they would show local variables, and with them keys
)


def main() -> None:
    """Runs the command line."""
    app()


app.add_typer(problems.problems, name="problems")
app.add_typer(index.index, name="index")


@app.command()
def show(problem: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> None:
    """Show one problem: its task and its reference. ID may be a path to a KernelBench-style file."""
    from kevin_env.app.catalogue import problem_row, show_problem
    from kevin_env.app.screen import make_console
    from kevin_env.problem import load_problem

    found = load_problem(problem)
    if as_json:
        print_json(problem_row(found) | {"statement": found.statement, "source": found.source})
    else:
        show_problem(make_console(), found)


app.command()(judge.judge)
app.command()(play.play)
app.command("eval")(evaluate.evaluate)
app.command()(replay.replay)
app.command()(report.report)
app.command()(replay.export)
app.command("import")(replay.import_file)
app.command()(serve.serve)


@app.command()
def demo(
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Keep the episode in this trajectory file.")
    ] = None,
    plain: Plain = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the trajectory as one line of JSON.")
    ] = False,
) -> None:
    """Play a real episode with prepared replies: errors, a wrong answer, a right one and a faster
    one.
    """
    from kevin_env.app.arguments import open_pool, read_settings
    from kevin_env.app.demo import demo
    from kevin_env.app.errors import episode_code
    from kevin_env.app.play.plain import Narrator
    from kevin_env.app.screen import make_console
    from kevin_env.recorder import Recorder

    read_settings(device=device)
    recorder = Recorder(out) if out else None
    if recorder:
        recorder.require()
    narrator = Narrator(make_console(plain, "stderr" if as_json else "stdout"), stream=False)
    with open_pool(device) as pool:
        trajectory = demo(pool, narrator, device, recorder)
    if as_json:
        print_json(trajectory.model_dump(mode="json"))
    raise typer.Exit(episode_code(trajectory.stop_reason))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Look at what this machine has for judging kernels, and say what to do about what is missing."""
    from kevin_env.app.arguments import open_pool
    from kevin_env.app.doctor import checks, show_check, works
    from kevin_env.app.screen import make_console

    console, found = make_console(), []
    with open_pool("auto") as pool:
        for check in checks(pool):
            found.append(check)
            if not as_json:
                show_check(console, check)
    if as_json:
        print_json([check.model_dump() for check in found])
    raise typer.Exit(0 if works(found) else 1)
