"""A report as Markdown: its tables, for an issue or a notebook."""

from collections.abc import Iterable, Iterator, Sequence

from kevin_env.app.replay.markdown import inline
from kevin_env.app.report.values import Bin, ProblemLine, Report


def report_markdown(report: Report) -> str:
    """The whole report without its trajectories."""
    return "\n".join(
        [
            f"# {inline(report.title)}",
            "",
            *(f"- {name}: {inline(value)}" for name, value in report.facts),
            "",
            *(
                line
                for each in report.grids
                for line in markdown_table(each.title, each.headings, each.rows)
            ),
            *markdown_table(
                f"Speedups, against {report.baseline}",
                ("speedup", "trajectories"),
                [(_bin(each), str(each.count)) for each in report.bins],
            ),
            *markdown_table("Turns by outcome", ("outcome", "turns", ""), _kinds(report)),
            *_hacks(report),
            *markdown_table(
                f"Problems, against {report.baseline}", _HEADINGS, map(_problem, report.problems)
            ),
            *(f"- {inline(note)}" for note in report.notes),
            *(f"- turns flagged {inline(name)}: {turns}" for name, turns in report.flags),
            "",
        ]
    )


_HEADINGS = (
    "problem",
    "samples",
    "correct",
    "best",
    "mean",
    "fast_1",
    "roofline",
    "hacks",
    "turns",
    "score",
    "device s",
)


def markdown_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    """The lines of a table below its heading."""
    yield from (f"## {inline(title)}", "")
    yield _row(headings)
    yield f"|:--|{'--:|' * (len(headings) - 1)}"
    yield from map(_row, rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(inline, cells))} |"


def _bin(each: Bin) -> str:
    if each.low is None:
        return "none timed"
    return f"{each.low:g} and more" if each.high is None else f"{each.low:g} to {each.high:g}"


def _kinds(report: Report) -> Iterator[tuple[str, str, str]]:
    for each in report.kinds:
        yield f"{each.category}/{each.kind}", str(each.turns), "hack" if each.hack else ""


def _hacks(report: Report) -> Iterator[str]:
    if not report.hacks:
        return
    rows = [
        (
            each.problem,
            _known(each.sample, "d"),
            each.place.id,
            str(each.turn),
            f"{each.category}/{each.kind}",
        )
        for each in report.hacks
    ]
    yield from markdown_table("Hacks", ("problem", "sample", "episode", "turn", "verdict"), rows)
    if report.more_hacks:
        yield from (f"and {report.more_hacks} more", "")


def _problem(each: ProblemLine) -> Sequence[str]:
    return (
        each.problem,
        str(each.samples),
        f"{each.correct:.1%}",
        _known(each.best, ".2f", "x"),
        _known(each.avg, ".2f", "x"),
        _known(each.fast, ".1%"),
        _known(each.roofline, ".1%"),
        f"{each.hack_rate:.1%}",
        str(each.turns),
        f"{each.score:.2f}",
        f"{each.totals.device_seconds:.1f}",
    )


def _known(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"
