"""A trajectory as Markdown, for an issue or a notebook."""

import re

from kevin_env.advantage import returns_of
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.describe import (
    Code,
    Prose,
    episode_facts,
    formula,
    pane_blocks,
    return_sum,
    score_sum,
)
from kevin_env.app.replay.diffs import base_of, diff_lines
from kevin_env.app.screen import COLUMNS
from kevin_env.record import Trajectory
from kevin_env.render import turn_cells

_SIGNIFICANT = re.compile(r"([\\`*_{}\[\]()#+!|~>$-])")


def markdown(episode: Trajectory) -> str:
    """The whole episode: a table of turns, then each turn's kernel, diff and feedback."""
    facts = episode_facts(episode) | {"episode": episode.episode_id}
    del facts["problem"]  # it is the title
    head = [
        f"# {inline(episode.problem.id)}",
        "",
        *(f"- {name}: {inline(value)}" for name, value in facts.items()),
        "",
    ]
    table = [f"| {' | '.join(COLUMNS)} |", "|--:|:--|:--|--:|--:|--:|"]
    for turn, value in zip(episode.turns, returns_of(episode), strict=True):
        cells = turn_cells(turn, value)
        table.append(f"| {' | '.join(inline(cells[name]) for name in COLUMNS)} |")
    table += ["", f"`{formula(episode)}`", ""]
    turns = (line for at in range(len(episode.turns)) for line in _turn(episode, at))
    return "\n".join([*head, *table, *turns])


def inline(words: str) -> str:
    """Untrusted text escaped for a line of Markdown."""
    escaped = _SIGNIFICANT.sub(r"\\\1", " ".join(clean(words).split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def fence(words: str, language: str = "") -> list[str]:
    """Untrusted text in a fence that it cannot close."""
    text = clean(words).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(longest + 1, 3)
    return [f"{ticks}{language}", text, ticks, ""]


def _turn(episode: Trajectory, at: int) -> list[str]:
    turn = episode.turns[at]
    lines = [f"## Turn {turn.turn}: {inline(f'{turn.category}/{turn.kind}')}", ""]
    lines += [
        f"`s_{turn.turn} = {score_sum(turn, episode)}`, "
        f"`R_{turn.turn} = {return_sum(episode, at)}`",
        "",
    ]
    if turn.summary:
        lines += [inline(turn.summary), ""]
    for block in pane_blocks(episode, at, "kernel"):
        if isinstance(block, Code):
            lines += fence(block.code, "python")
        elif isinstance(block, Prose) and not block.style:
            lines += fence(block.text)
    lines += _changes(episode, at)
    for block in pane_blocks(episode, at, "feedback"):
        if isinstance(block, Prose):
            lines += ["Feedback:", "", *fence(block.text)]
    return lines


def _changes(episode: Trajectory, at: int) -> list[str]:
    turn = episode.turns[at]
    _, before = base_of(episode.turns, at, "previous")
    if turn.submission is None or before is None or before.submission is None:
        return []
    lines = diff_lines(before.submission.code, turn.submission.code)
    body = "\n".join(
        f"@@ {line.text} @@" if line.tag == "gap" else f"{line.tag}{line.text}" for line in lines
    )
    return [f"Changes from turn {before.turn}:", "", *fence(body, "diff")] if body else []
