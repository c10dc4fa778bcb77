"""`kevin-env judge`: judges submissions, recorded turns, or a whole KernelBench run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kevin_env.cli.options import (
    JUDGE,
    Given,
    complete_problems,
    positive,
    print_json,
    settings_options,
)

if TYPE_CHECKING:
    from kevin_env.app.judging import Failed, Judged
    from kevin_env.settings import Settings


Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE...", help="Submissions (.py) or trajectories (.jsonl)."),
]
Problem = Annotated[
    str | None,
    typer.Option(
        help="Problem ID or file; optional for trajectories.", autocompletion=complete_problems
    ),
]
Turn = Annotated[int | None, typer.Option(help="Turn of the trajectory to judge again.")]
Episode = Annotated[
    str, typer.Option(help="Episode of the trajectory file, by the first letters of its ID.")
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Judge all kernels of a KernelBench run, by default with --rules open.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the results of --kernelbench-run.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        help="Set both --build-timeout and --call-timeout, in seconds.", callback=positive
    ),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Judge again whenever a file is saved, until Ctrl-C.")
]
FailOnWrong = Annotated[
    bool, typer.Option("--fail-on-wrong", help="Exit with 1 if a submission is not correct.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per file, or one for a run.")
]


@settings_options(JUDGE)
def judge(
    settings: Given,
    files: Files = None,
    problem: Problem = None,
    turn: Turn = None,
    episode: Episode = "",
    kernelbench_run: RunFolder = None,
    out: Out = None,
    timeout: Timeout = None,
    again: Watch = False,
    fail_on_wrong: FailOnWrong = False,
    as_json: AsJson = False,
) -> None:
    """Compile, run, check and time submissions.

    With --watch, judges a file again each time that it is saved; the judge stays warm.

    Without --fail-on-wrong, the exit code is 0 whatever the verdicts are.

    With --kernelbench-run, writes kevin_verdicts.jsonl and kevin_report.md to the folder of the run
    (or to --out) and prints how the verdicts compare with KernelBench's. Run it again to judge only
    what is missing.
    """
    from kevin_env.app.arguments import read_settings
    from kevin_env.app.errors import BadInput

    default = {"rules": "open"} if kernelbench_run else {}
    limits = {"build_timeout": timeout, "call_timeout": timeout} if timeout else {}
    chosen = read_settings(**{**default, **limits, **settings})
    how = _How(chosen, fail_on_wrong, as_json)
    if kernelbench_run is None:
        if out is not None:
            raise BadInput("--out is for --kernelbench-run")
        how.files(files or [], problem, (turn, episode), again)
    elif again or files or problem or turn is not None or episode or chosen.profile != "none":
        raise BadInput(
            "--kernelbench-run judges all kernels of its folder against KernelBench's problems: "
            "leave out FILE, --problem, --turn, --episode, --watch and --profile"
        )
    else:
        how.run(kernelbench_run, out or kernelbench_run)


@dataclass(frozen=True, slots=True)
class _How:
    """What judging files and judging a run have in common."""

    settings: "Settings"
    fail_on_wrong: bool
    as_json: bool

    def files(
        self, files: list[Path], problem: str | None, turn: tuple[int | None, str], again: bool
    ) -> None:
        from kevin_env.app.arguments import open_pool
        from kevin_env.app.errors import BadInput
        from kevin_env.app.judging import exit_code, judge, print_result, read_requests, watch
        from kevin_env.app.screen import make_console

        if not files:
            raise BadInput("give files to judge, or --kernelbench-run FOLDER")
        requests = read_requests(files, problem, turn, self.settings)
        console, errors, results = make_console(), make_console(stream="stderr"), []

        def report(result: "Judged | Failed") -> None:
            results.append(result)
            if self.as_json:
                print_json(result.row())
            else:
                print_result(console, result)

        with open_pool(self.settings.device) as pool:
            if again:
                watch(files, problem, self.settings, pool, report, errors)
            for result in judge(requests, pool, errors):
                report(result)
        raise typer.Exit(exit_code(results, self.fail_on_wrong))

    def run(self, folder: Path, out: Path) -> None:
        from kevin_env.app.arguments import open_pool
        from kevin_env.app.errors import JUDGE_FAILED, NOT_CORRECT
        from kevin_env.app.rejudge.comparison import Report
        from kevin_env.app.rejudge.run import Terms, read_run, rejudge
        from kevin_env.app.screen import make_console, show

        errors = make_console(stream="stderr")
        kernels = read_run(folder, errors)
        with open_pool(self.settings.device) as pool:
            terms = Terms.of(self.settings, pool.device(self.settings.device).name)
            kernels = rejudge(kernels, out, pool, self.settings.options(), terms, errors)
        report = Report(folder.resolve().name, terms, kernels)
        if self.as_json:
            print_json(report.row())
        else:
            report.print(make_console())
        show(errors, f"wrote {report.write(out)}")
        if report.unjudged:
            raise typer.Exit(JUDGE_FAILED)
        right = all(each.entry and each.entry.outcome.category == "correct" for each in kernels)
        raise typer.Exit(NOT_CORRECT if self.fail_on_wrong and not right else 0)
