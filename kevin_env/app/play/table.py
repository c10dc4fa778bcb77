"""The table of the turns, the running one included."""

from rich.text import Text

from kevin_env.app.play.state import State
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    fit,
    heading,
    join,
    speedup,
    table_line,
    text,
    that_fit,
    verdict,
)
from kevin_env.app.replay.reward import returns_of
from kevin_env.app.replay.rows import MARKS
from kevin_env.app.screen import COLOURS, best_turn
from kevin_env.record import Turn

_VERDICT = 26


def table_lines(state: State, width: int, most: int) -> list[Text]:
    """A heading, and `most` rows: the last ones, or those around the turn that is looked at. Arrows
    tell of others.
    """
    columns = _columns(state, width - 2)
    count = len(state.turns) + (state.phase != "ended")
    at = count - 1 if state.at is None else state.at
    top = min(max(at - most // 2, 0), max(count - most, 0))
    lines = [fit(join("↑ " if top else "  ", heading(columns)), width)]
    for number in range(top, min(top + most, count)):
        cells = _turn(state, number) if number < len(state.turns) else _running(state)
        line = table_line(columns, cells)
        if number == state.at:
            lines.append(fit(Text(f"▌ {line.plain}", "reverse", no_wrap=True, end=""), width))
        else:
            hidden = number == top + most - 1 < count - 1
            lines.append(fit(join("↓ " if hidden else "  ", line), width))
    return lines + [Text(" " * width)] * (most + 1 - len(lines))


def _columns(state: State, width: int) -> tuple[Column, ...]:
    longest = max((len(_verdict(turn, state.human).plain) for turn in state.turns), default=0)
    found = (
        Column("", 1),
        Column("turn", 4, "right"),
        Column("verdict", min(max(longest, 15), _VERDICT, max(width - 29, 8))),
        Column("speedup", 7, "right"),
        Column("[95 %]", max([6, *(len(_interval(turn)) for turn in state.turns)])),
        Column("score", 6, "right"),
        Column("return", 6, "right"),
        Column("seconds", 7, "right"),
    )
    return that_fit(found, width)


def _turn(state: State, at: int) -> dict[str, Text]:
    turn = state.turns[at]
    best = best_turn(state.turns)
    return {
        "": text(MARKS[turn.category], COLOURS[turn.category]),
        "turn": text(str(turn.turn)),
        "verdict": _verdict(turn, state.human),
        "speedup": text(speedup(turn.speedup), "bold green" if turn is best else ""),
        "[95 %]": text(_interval(turn), DIM),
        "score": text(f"{turn.score:.2f}", "" if turn.score else DIM),
        "return": text(f"{returns_of(state.episode)[at]:.2f}"),
        "seconds": text(f"{turn.seconds.total:.1f}", DIM),
    }


def _interval(turn: Turn) -> str:
    ends = turn.speedup_interval
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""


def _verdict(turn: Turn, human: bool) -> Text:
    """A turn that a person took in the model's place is marked."""
    return join(
        verdict(turn.category, turn.kind), " by hand" if turn.by_person and not human else ""
    )


def _running(state: State) -> dict[str, Text]:
    doing = state.stages[-1][0] if state.phase == "judging" and state.stages else state.phase
    seconds = f"{max(state.now - state.since, 0.0):.1f}" if state.running else ""
    return {
        "": text("▸", "bold"),
        "turn": text(str(state.number), "bold"),
        "verdict": text(doing, "cyan" if state.running else DIM),
        "seconds": text(seconds, "cyan"),
    }
