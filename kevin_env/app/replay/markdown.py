"""A trajectory as Markdown, for an issue or a notebook."""

import re
from collections.abc import Iterator, Sequence

from kevin_env.advantage import returns_of
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.describe import (
    Bars,
    Block,
    Code,
    Diff,
    Facts,
    Log,
    Pane,
    Prose,
    Section,
    episode_facts,
    formula,
    pane_blocks,
    return_sum,
    score_sum,
)
from kevin_env.app.screen import COLUMNS
from kevin_env.extract import fenced
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
    return [fenced(clean(words).rstrip("\n"), language), ""]


def _turn(episode: Trajectory, at: int) -> Iterator[str]:
    turn = episode.turns[at]
    yield from (f"## Turn {turn.turn}: {inline(f'{turn.category}/{turn.kind}')}", "")
    score, value = score_sum(turn, episode), return_sum(episode, at)
    yield from (f"`s_{turn.turn} = {score}`, `R_{turn.turn} = {value}`", "")
    if turn.summary:
        yield from (inline(turn.summary), "")
    panes: tuple[Pane, ...] = ("kernel", "diff", "feedback")
    for pane in panes:
        yield from ("Feedback:", "") if pane == "feedback" else ()
        for block in pane_blocks(episode, at, pane):
            yield from _block(block)


def _block(block: Block) -> Sequence[str]:
    match block:
        case Section(title):
            return f"### {inline(title)}", ""
        case Prose(_, "aside"):
            return ()
        case Prose(words, style):
            return [inline(words), ""] if style else fence(words)
        case Facts(pairs):
            return [*(f"- {name}: {inline(value)}" for name, value in pairs), ""]
        case Code(code):
            return fence(code, "python")
        case Diff():
            lines = "\n".join(
                f"@@ {each.text} @@" if each.tag == "gap" else f"{each.tag}{each.text}"
                for each in block.lines
            )
            title = f"Changes from turn {block.before.turn}:"
            return [title, "", *fence(lines, "diff")] if lines else ()
        case Log(name, words):
            return [f"{name}:", "", *fence(words)]
        case Bars(seconds, total):
            return [f"- {name}: {n:.3f} s" for name, n in (*seconds, ("total", total))]
