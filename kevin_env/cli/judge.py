"""`kevin-env judge`: judges submissions, recorded turns, or a whole run of KernelBench."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kevin_env.cli.options import (
    Baseline,
    BuildTimeout,
    CallTimeout,
    Device,
    Glue,
    Inputs,
    Noisy,
    Precision,
    Profile,
    Sanitize,
    print_json,
)

if TYPE_CHECKING:
    from kevin_env.settings import Settings

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE...", help="Submissions (.py) or trajectories (.jsonl)."),
]
Run = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Judge all kernels of a KernelBench run again."),
]
RulesOrDefault = Annotated[
    str | None,
    typer.Option(
        help="kernel: own kernels do the computing. partial: at least one runs. open: any code, the default for "
        "--kernelbench-run."
    ),
]


def judge(
    files: Files = None,
    problem: Annotated[
        str | None, typer.Option(help="What is answered: an id, or a path. Trajectories know.")
    ] = None,
    turn: Annotated[
        int | None, typer.Option(help="Of a trajectory: the turn to judge again.")
    ] = None,
    episode: Annotated[
        str, typer.Option(help="Of a trajectory with several episodes: how its id begins.")
    ] = "",
    kernelbench_run: Run = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results of --kernelbench-run.")
    ] = None,
    device: Device = "auto",
    rules: RulesOrDefault = None,
    glue: Glue = 0.0,
    baseline: Baseline = "eager",
    inputs: Inputs = "varied",
    noisy: Noisy = "lower",
    call_timeout: CallTimeout = None,
    build_timeout: BuildTimeout = 300.0,
    precision: Precision = None,
    profile: Profile = "none",
    sanitize: Sanitize = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse when a protection fails.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line; one for a run.")
    ] = False,
) -> None:
    """Compile, run, check and time submissions. Exits with 0 whatever the verdicts are.

    With --kernelbench-run: judges every kernel of a run folder, writes kevin_verdicts.jsonl and
    kevin_report.md there (or to --out), and prints how KernelBench's verdicts and ours compare. A
    second start judges only what is missing.
    """
    from kevin_env.app.arguments import read_settings
    from kevin_env.app.errors import BadInput

    default = "open" if kernelbench_run else "kernel"
    settings = read_settings(
        device=device, rules=rules or default, glue=glue, baseline=baseline, inputs=inputs, noisy=noisy,
        call_timeout=call_timeout, build_timeout=build_timeout, precision=precision, profile=profile, sanitize=sanitize,
    )  # fmt: skip
    if kernelbench_run is None:
        if out is not None:
            raise BadInput("--out is for --kernelbench-run")
        _judge_files(files or [], problem, (turn, episode), settings, require_sandbox, as_json)
    elif files or problem or turn is not None or episode or profile != "none":
        raise BadInput(
            "--kernelbench-run judges all kernels of its folder against KernelBench's problems: "
            "leave out FILE, --problem, --turn, --episode and --profile"
        )
    else:
        _judge_run(kernelbench_run, out or kernelbench_run, settings, require_sandbox, as_json)


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
        raise BadInput("say what to judge: files, or --kernelbench-run FOLDER")
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
