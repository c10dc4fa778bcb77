"""What an evaluation that runs looks like on a terminal."""

from collections.abc import Sequence

from rich.text import Text

from kevin_env.app.evaluate.board import Board, Lane
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    Size,
    clock,
    fit,
    heading,
    join,
    progress,
    rule,
    sparkline,
    speedup,
    table_line,
    text,
    that_fit,
)

_MOST_ROWS = 24
"""Higher than this it does not become: it shares the terminal with what was there before."""
_AROUND = 7
"""Lines beside problems and news: title, bar, two of facts, two rules, heading."""
_LEAST_NEWS = 3


def render(board: Board, size: Size) -> tuple[Text, ...]:
    """Lines of `size.columns` characters, at most `size.rows`. Nothing in them is markup or an
    escape code.
    """
    with board.lock:
        width = size.columns
        inside = max(min(size.rows - 1, _MOST_ROWS) - _AROUND, 0)
        lanes = _newest(board, min(len(board.lanes), max(inside - _LEAST_NEWS, 0)))
        columns = _columns(board, width - 1)
        done = progress(board.done / max(board.planned, 1), progress_text(board), width)
        lines = [_title(board, width), done, *_facts(board), rule(width)]
        lines += [join(" ", heading(columns))]
        lines += [join(" ", table_line(columns, _row(board, lane))) for lane in lanes]
        news = list(board.news)[-max(inside - len(lanes), 0) :] if inside > len(lanes) else []
        lines += [rule(width), *(join(" ", line) for line in news)]
        return tuple(fit(line, width) for line in lines[: max(size.rows - 1, 1)])


def progress_text(board: Board) -> str:
    """How far it is, how fast, and how long it will take."""
    words = f"{board.done} of {board.planned} turns, {clock(board.clock() - board.begun)} gone"
    rate, left = board.rate, board.seconds_left
    if rate is None or left is None:
        return words
    return f"{words}, {60 * rate:.1f} a minute" + (
        f", about {clock(left)} left" if board.left else ""
    )


def best_text(board: Board) -> str:
    """How many problems are solved, and the fastest kernel of them all."""
    lanes = list(board.lanes.values())
    solved = f"{sum(lane.correct for lane in lanes)} of {len(lanes)} problems solved"
    timed = [(lane.best.speedup, lane) for lane in lanes if lane.best]
    if not timed:
        return solved
    best, lane = max(timed, key=lambda pair: pair[0])
    return f"{solved}, best {speedup(best)} on {lane.id}"


def _title(board: Board, width: int) -> Text:
    return fit(text(f" {board.title}", "bold"), width)


def _facts(board: Board) -> tuple[Text, Text]:
    lanes = board.lanes.values()
    over, all_of_them = (
        sum(len(lane.over) for lane in lanes),
        sum(len(lane.turns) for lane in lanes),
    )
    waiting = [whom for lane in lanes for whom in lane.waiting.values()]
    now = f"{waiting.count('model')} wait for the model, {waiting.count('judge')} for the judge"
    return text(f" {over} of {all_of_them} samples ended, {now}"), text(
        f" {best_text(board)}", "green"
    )


def _newest(board: Board, count: int) -> Sequence[Lane]:
    """The problems where something goes on or went on last, in their own order."""
    order = {id: number for number, id in enumerate(board.lanes)}
    lanes = sorted(
        board.lanes.values(), key=lambda lane: (not lane.waiting, -lane.touched, order[lane.id])
    )
    return sorted(lanes[:count], key=lambda lane: order[lane.id])


def _columns(board: Board, width: int) -> tuple[Column, ...]:
    longest = max(map(len, board.lanes), default=0)
    samples = min(max(board.shape.samples, 7), 32)
    found = (
        Column("problem", min(max(longest, 7), max(width - 40, 16))),
        Column("ended", 7, "right"),
        Column("best", 7, "right"),
        Column("sample", 6, "right"),
        Column("turn", 4, "right"),
        Column("samples", samples),
        Column("model", 5, "right"),
        Column("judge", 5, "right"),
    )
    return that_fit(found, width)


def _row(board: Board, lane: Lane) -> dict[str, Text]:
    best, waiting = lane.best, list(lane.waiting.values())
    style = "red" if lane.failed else "bold" if waiting else ""
    known = "correct" if lane.correct else ""
    return {
        "problem": text(lane.id, style),
        "ended": text(f"{len(lane.over)}/{len(lane.turns)}", DIM),
        "best": text(speedup(best.speedup) if best else known, "green"),
        "sample": text(str(best.sample) if best else "", DIM),
        "turn": text(str(best.turn) if best else "", DIM),
        "samples": text(
            sparkline([each or None for each in lane.turns[:32]], board.shape.turns), "cyan"
        ),
        "model": text(str(waiting.count("model") or ""), DIM),
        "judge": text(str(waiting.count("judge") or ""), DIM),
    }
