"""From a run's episodes and figures to the contents of its report."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

from rich.table import Table

from kevin_env.app.evaluate.figures import AGAINST, Baseline, ProblemMetrics, RunMetrics
from kevin_env.app.evaluate.folder import Recorded
from kevin_env.app.evaluate.samples import Attempts, Sample, gather
from kevin_env.app.evaluate.tables import (
    first_baseline,
    largest_k,
    metric_tables,
    notes,
    plain_table,
)
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.rows import MARKS, mark_of
from kevin_env.judge.verdict import FLAGS, flag_name
from kevin_env.outcome import held_roofline, is_hack
from kevin_env.record import Trajectory, Turn, best_turn
from kevin_env.render import ending_text, speedup_text
from kevin_env.settings import RENAMED, Settings

EDGES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Lower ends of the bins of speedups. They include the p of fast_p."""
MOST_LINES = 24
"""Links per problem in a report whose trajectories are in other pages."""
MOST_HACKS = 500
"""Hacks that are listed."""
MOST_MARKS = 2000
"""Turns in the roofline plot."""

_ALWAYS = ("device", "max_turns", "gamma", "returns", "rules", "language", "baseline", "context")
_UNLESS_DEFAULT = (
    "glue", "inputs", "dtype", "backward", "score", "bound", "noisy", "pay", "pay_repeats",
    "timing_precision", "stop_on",
)  # fmt: skip
SETTINGS = (*_ALWAYS, *_UNLESS_DEFAULT)
"""Settings that decide what the figures of a run mean."""

Pages = Mapping[tuple[str, str], str]
"""Pages of trajectories, by problem and episode id. Others are in the report itself."""


def summarise(title: str, recorded: Recorded, metrics: RunMetrics, pages: Pages) -> dict[str, Any]:
    """The contents of a run's report as JSON, for the scripts of its page and `report.md.j2`.

    Texts are clean, but not escaped. A `place` is the page of a trajectory, empty for the report
    itself, and its id. `pages` says where trajectories are shown.
    """
    problems = gather(recorded.episodes, recorded.ratios)
    baseline = first_baseline(metrics.overall)
    turns = [
        (turn, {"problem": clean(each.problem), "sample": sample.trajectory.sample,
                "turn": number, "place": _place(sample, pages)})
        for each in problems
        for sample, number, turn in _each_turn(each)
    ]  # fmt: skip
    hacks = [
        where
        | {"category": turn.category, "kind": turn.kind, "message": _short(turn.outcome.message)}
        for turn, where in turns
        if is_hack(turn.outcome)
    ]
    held = [(line, where) for turn, where in turns if (line := held_roofline(turn.outcome))]
    marks = [
        where | {"roofline": line.model_dump(mode="json")}
        for line, where in held
        if line.intensity and line.rate
    ][:MOST_MARKS]
    flags = Counter(name for turn, _ in turns for name in set(map(flag_name, turn.flags)) if name)
    return {
        "title": clean(title),
        "facts": list(_facts(recorded.episodes)),
        "baseline": baseline,
        "against": AGAINST,
        "k": largest_k(metrics.overall.correct),
        "overall": metrics.overall.model_dump(mode="json"),
        "levels": {n: each.model_dump(mode="json") for n, each in metrics.levels.items()},
        "grids": list(map(grid_of, (*metric_tables(metrics), *_agents(recorded.episodes)))),
        "notes": [
            *notes(metrics.overall),
            *_left_out(recorded.episodes, problems),
            *(f"turns flagged {name} ({FLAGS[name]}): {many}" for name, many in flags.items()),
        ],
        "bins": _bins([each.speedup(baseline) for problem in problems for each in problem.samples]),
        "roofline": marks,
        "roofline_left_out": len(held) - len(marks),
        "kinds": _kinds([turn for turn, _ in turns]),
        "hacks": hacks[:MOST_HACKS],
        "more_hacks": len(hacks[MOST_HACKS:]),
        "problems": [
            _problem(each, numbers, baseline, pages)
            for each, numbers in zip(problems, metrics.problems, strict=True)
        ],
    }


def grid_of(table: Table) -> dict[str, Any]:
    """A terminal table as plain text; `sections` are the indices of rows followed by a rule."""
    return {
        "title": str(table.title),
        "headings": [" ".join(str(column.header).split()) for column in table.columns],
        "rows": list(zip(*(map(str, column.cells) for column in table.columns), strict=True)),
        "sections": [at for at, row in enumerate(table.rows) if row.end_section],
    }


def _agents(episodes: Sequence[Trajectory]) -> Iterator[Table]:
    """The episodes of coding agents; unconfined ones are listed apart."""
    table = plain_table("Agents", "problem", "agent", "ran", "best speedup", "judged again")
    for kind in ("confined", "unconfined"):
        for each in (each for each in episodes if each.agent == kind):
            best = best_turn(each.turns)
            table.add_row(
                clean(each.problem.id),
                _short(each.model),
                kind,
                speedup_text(best.speedup if best else None),
                ending_text(each.final) if each.final else "",
            )
        table.add_section()
    yield from [table] if table.rows else []


def _facts(episodes: Sequence[Trajectory]) -> Iterator[tuple[str, str]]:
    yield "model", several(each.player for each in episodes)
    defaults = Settings().model_dump(mode="json")
    configs = [settings_of(each) for each in episodes]
    for name in SETTINGS:
        found = [config[name] for config in configs if name in config]
        if name not in _ALWAYS and all(value == defaults[name] for value in found):
            continue
        if values := several(map(setting_text, found)):
            yield name, values
    dates = sorted(each.created for each in episodes)
    yield "played", _short(" to ".join(dict.fromkeys(map(_day, (dates[0], dates[-1])))))


def settings_of(episode: Trajectory) -> dict[str, Any]:
    """The recorded settings by their current names; `device` is the name of the device."""
    config = {RENAMED.get(name, name): value for name, value in episode.config.items()}
    return config | {"device": episode.hardware.name if episode.hardware else "not recorded"}


def setting_text(value: Any) -> str:
    """A recorded value of a setting; a kernel by its name."""
    if isinstance(value, Mapping):
        value = cast("Mapping[str, Any]", value).get("name")
    return "default" if value is None else str(value)


def _day(created: str) -> str:
    """Such as 9 Jan 2026."""
    try:
        return f"{datetime.fromisoformat(created):%d %b %Y}".removeprefix("0")
    except ValueError:
        return created


def several(values: Iterable[str], most: int = 4) -> str:
    """The distinct values, shortened."""
    found = list(dict.fromkeys(values))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return _short(", ".join(found[:most])) + more


def _left_out(episodes: Sequence[Trajectory], problems: Sequence[Attempts]) -> Iterator[str]:
    every = {(each.problem.id, each.episode_id) for each in episodes}
    if out := len(every) - sum(len(each.episodes) for each in problems):
        yield f"trajectories without a turn, left out: {out}"


def _bins(speedups: Sequence[float | None]) -> list[dict[str, Any]]:
    """From `low` to below `high`: first those without a timed kernel, then the range of others."""
    known = [value for value in speedups if value is not None]
    counts = Counter(bisect_right(EDGES, value) - 1 for value in known if value > 0)
    ends = [*pairwise(EDGES), (EDGES[-1], None)]
    used = range(min(counts), max(counts) + 1) if counts else range(0)
    return [
        {"low": None, "high": None, "count": sum(value <= 0 for value in known)},
        *({"low": ends[at][0], "high": ends[at][1], "count": counts[at]} for at in used),
    ]


def _kinds(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """The numbers of turns by outcome, by stage and then by frequency."""
    found = Counter((turn.category, turn.kind, is_hack(turn.outcome)) for turn in turns)
    kinds = [
        {"category": category, "kind": kind, "turns": count, "hack": hack}
        for (category, kind, hack), count in found.items()
    ]
    order = list(MARKS)
    return sorted(kinds, key=lambda it: (order.index(it["category"]), -it["turns"], it["kind"]))


def _in_order(attempts: Attempts) -> list[Sample]:
    """The samples, then the other episodes."""
    samples = set(map(id, attempts.samples))
    return [*attempts.samples, *(each for each in attempts.episodes if id(each) not in samples)]


def _each_turn(attempts: Attempts) -> Iterator[tuple[Sample, int, Turn]]:
    """Each turn once with its number, and the first trajectory that has it, samples first."""
    seen: set[int] = set()
    for sample in _in_order(attempts):
        for played in sample.played:
            if id(played) not in seen:
                seen.add(id(played))
                yield sample, played.number, played.turn


def _short(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= 200 else f"{line[:200]} ..."


def _place(sample: Sample, pages: Pages) -> dict[str, str]:
    episode = sample.trajectory
    page = pages.get((episode.problem.id, episode.episode_id), "")
    return {"page": page, "id": clean(episode.episode_id)}


def _problem(
    attempts: Attempts, numbers: ProblemMetrics, baseline: Baseline, pages: Pages
) -> dict[str, Any]:
    """One problem with its trajectories, `top` the fastest; `more` of them have no line."""
    lines = [
        {
            "place": _place(sample, pages),
            "sample": sample.trajectory.sample,
            "marks": "".join(mark_of(played.turn) for played in sample.played),
            "best": sample.speedup(baseline) or None,
            "best_turn": sample.best_turn,
            "stop": sample.trajectory.stop_reason or "running",
            "counts": any(sample is each for each in attempts.samples),
        }
        for sample in _in_order(attempts)
    ]
    own = list(filter(None, dict.fromkeys(line["place"]["page"] for line in lines)))
    shown = lines[:MOST_LINES] if own else lines
    held = [held_roofline(played.turn.outcome) for played in attempts.turns]
    return {
        "numbers": numbers.model_dump(mode="json") | {"problem": clean(numbers.problem)},
        "roofline": max((each.fraction for each in held if each), default=None),
        "top": max(lines, key=lambda line: line["best"] or 0.0),
        "lines": shown,
        "pages": own,
        "more": len(lines) - len(shown),
    }
