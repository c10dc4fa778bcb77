"""The command line. It reads arguments and reports errors; the work is done in `kevin_env.app`.

Results go to stdout, everything else to stderr. `kevin_env.app.errors` has the exit codes. Commands
import what they need themselves, so that `--help` is quick.
"""

import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from kevin_env.cli import (
    agents,
    evaluate,
    index,
    judge,
    judge_server,
    play,
    problems,
    serve,
    trajectories,
)
from kevin_env.cli.options import (
    Command,
    Given,
    Group,
    Json,
    Plain,
    example,
    print_json,
    settings_options,
)

_PATIENCE = 10.0
"""Seconds that `doctor` waits for a judge server."""
PROBLEMS = "Problems and examples"
"""A group of commands."""


class _Commands(Group):
    """Turns known errors into one line and an exit code."""

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
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # they print local variables, which may hold keys
)


def main() -> None:
    """Runs the command line."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kevin-env {version('kevin-env')}")
        raise typer.Exit


@app.callback()
def common(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Refine GPU kernels over several turns."""


@settings_options(("device",))
def demo(
    settings: Given,
    out: Annotated[
        Path, typer.Option(help="Trajectory file; an earlier demo's file is replaced.")
    ] = Path("demo.jsonl"),
    plain: Plain = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the trajectory as a line of JSON.")
    ] = False,
) -> None:
    """Play a real episode with prepared replies.

    They give a compile error, a runtime error, a wrong answer, a right one, a faster one, and a
    cheat.
    """
    from kevin_env.app.arguments import open_pool, read_settings
    from kevin_env.app.demo import clear, demo, show_next, show_result
    from kevin_env.app.errors import episode_code
    from kevin_env.app.play.plain import Narrator
    from kevin_env.app.screen import make_console
    from kevin_env.recorder import Recorder

    device = read_settings(**settings).device
    recorder = Recorder(out)
    recorder.require()
    clear(out)
    console = make_console(plain, "stderr" if as_json else "stdout")
    with open_pool(device) as pool:
        trajectory = demo(pool, Narrator(console, stream=False), device, recorder)
        code = episode_code(trajectory.stop_reason)
        if not code:
            show_result(console, trajectory.turns)
            show_next(console, _program(), out)
    if as_json:
        print_json(trajectory.model_dump(mode="json"))
    raise typer.Exit(code)


def _program() -> str:
    """How a shell starts this program."""
    return sys.argv[0] if shutil.which("kevin-env") is None else "kevin-env"


def doctor(as_json: Json = False) -> None:
    """Check what this machine has for judging kernels."""
    from kevin_env.app.arguments import open_pool
    from kevin_env.app.doctor import checks, show_check, works
    from kevin_env.app.screen import make_console

    console, found = make_console(), []
    with open_pool("auto", patience=_PATIENCE) as pool:
        for check in checks(pool):
            found.append(check)
            if not as_json:
                show_check(console, check)
    if as_json:
        print_json([check.model_dump() for check in found])
    raise typer.Exit(0 if works(found) else 1)


PROBLEM = "--problem L1_36_RMSNorm_"
COMMANDS: dict[str, dict[str, tuple[Callable[..., None], str]]] = {
    "Start here": {
        "demo": (demo, "demo"),
        "doctor": (doctor, "doctor"),
    },
    "Play and evaluate": {
        "play": (play.play, f"play {PROBLEM} --model gpt-5 --max-turns 8 --out run.jsonl"),
        "eval": (evaluate.evaluate, "eval --problem L1 --model gpt-5 --samples 4 --out run"),
        "judge": (judge.judge, f"judge kernel.py {PROBLEM} --timeout 20"),
        "serve": (serve.serve, "serve --problem L1 --port 8000"),
        "mcp": (agents.mcp, f"mcp {PROBLEM} --max-turns 20"),
        "workspace": (agents.workspace, "workspace L1_36_RMSNorm_ work --max-turns 20"),
        "agent": (agents.agent, f"agent {PROBLEM} --max-turns 20 -- claude -p 'Follow AGENTS.md'"),
        "judge-server": (judge_server.judge_server, "judge-server --device cuda:0,1"),
    },
    "Look at the results": {
        "replay": (trajectories.replay, "replay run.jsonl --filter 'category:correct speedup>1'"),
        "report": (trajectories.report, "report run --out report.html"),
        "export": (trajectories.export, "export run.jsonl --to turns --out samples.jsonl"),
        "import": (trajectories.import_file, "import runs/my_run --out run.jsonl"),
    },
    PROBLEMS: {
        "show": (problems.show, "show L1_36_RMSNorm_"),
        "export-problems": (problems.export_problems, "export-problems train --out kevin.parquet"),
    },
}
"""By group: each command with an example."""

for _panel, _commands in COMMANDS.items():
    for _name, (_command, _words) in _commands.items():
        app.command(_name, cls=Command, rich_help_panel=_panel, epilog=example(_words))(_command)
app.add_typer(problems.problems, name="problems", rich_help_panel=PROBLEMS)
app.add_typer(index.index, name="index", rich_help_panel=PROBLEMS)
