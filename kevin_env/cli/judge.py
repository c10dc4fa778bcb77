"""`kevin-env judge`: judges submissions, recorded turns, or a whole KernelBench run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kevin_env.cli.options import JUDGE, Given, RequireSandbox, print_json, settings_options

if TYPE_CHECKING:
    from kevin_env.settings import Settings


@settings_options(JUDGE)
def judge(
    settings: Given,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Submissions (.py) or trajectories (.jsonl)."),
    ] = None,
    problem: Annotated[
        str | None, typer.Option(help="Problem ID or file; optional for trajectories.")
    ] = None,
    turn: Annotated[int | None, typer.Option(help="Turn of the trajectory to judge again.")] = None,
    episode: Annotated[
        str, typer.Option(help="Episode of the trajectory file, by the first letters of its ID.")
    ] = "",
    kernelbench_run: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Judge all kernels of a KernelBench run, by default with --rules open.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results of --kernelbench-run.")
    ] = None,
    require_sandbox: RequireSandbox = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per file, or one for a run.")
    ] = False,
) -> None:
    """Compile, run, check and time submissions.

    The exit code is 0 whatever the verdicts are.

    With --kernelbench-run, writes kevin_verdicts.jsonl and kevin_report.md to the folder of the run
    (or to --out) and prints how the verdicts compare with KernelBench's. Run it again to judge only
    what is missing.
    """
    from kevin_env.app.arguments import read_settings
    from kevin_env.app.errors import BadInput

    default = {"rules": "open"} if kernelbench_run else {}
    chosen = read_settings(**{**default, **settings})
    if kernelbench_run is None:
        if out is not None:
            raise BadInput("--out is for --kernelbench-run")
        _judge_files(files or [], problem, (turn, episode), chosen, require_sandbox, as_json)
    elif files or problem or turn is not None or episode or chosen.profile != "none":
        raise BadInput(
            "--kernelbench-run judges all kernels of its folder against KernelBench's problems: "
            "leave out FILE, --problem, --turn, --episode and --profile"
        )
    else:
        _judge_run(kernelbench_run, out or kernelbench_run, chosen, require_sandbox, as_json)


def _judge_files(
    files: list[Path],
    problem: str | None,
    turn: tuple[int | None, str],
    settings: "Settings",
    require_sandbox: bool,
    as_json: bool,
) -> None:
    from kevin_env.app.arguments import open_pool
    from kevin_env.app.errors import JUDGE_FAILED, BadInput
    from kevin_env.app.judging import Failed, judge, print_result, read_requests
    from kevin_env.app.screen import make_console

    if not files:
        raise BadInput("give files to judge, or --kernelbench-run FOLDER")
    requests = read_requests(files, problem, turn, settings, require_sandbox)
    console, failed = make_console(), False
    with open_pool(settings.device) as pool:
        for result in judge(requests, pool):
            failed = failed or isinstance(result, Failed)
            if as_json:
                print_json(result.row())
            else:
                print_result(console, result)
    raise typer.Exit(JUDGE_FAILED if failed else 0)


def _judge_run(
    folder: Path, out: Path, settings: "Settings", require_sandbox: bool, as_json: bool
) -> None:
    from kevin_env.app.arguments import open_pool
    from kevin_env.app.errors import JUDGE_FAILED
    from kevin_env.app.judging import options_of
    from kevin_env.app.rejudge.comparison import Report
    from kevin_env.app.rejudge.run import Terms, read_run, rejudge
    from kevin_env.app.screen import make_console, show

    errors = make_console(stream="stderr")
    kernels = read_run(folder, errors)
    with open_pool(settings.device) as pool:
        terms = Terms.of(settings, pool.device(settings.device).name)
        kernels = rejudge(kernels, out, pool, options_of(settings, require_sandbox), terms, errors)
    report = Report(folder.resolve().name, terms, kernels)
    if as_json:
        print_json(report.row())
    else:
        report.print(make_console())
    show(errors, f"wrote {report.write(out)}")
    raise typer.Exit(JUDGE_FAILED if report.unjudged else 0)
