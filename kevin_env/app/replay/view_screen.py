"""The view of one trajectory, or of two side by side."""

from rich.text import Text

from kevin_env.app.replay.layout import Layout, layout
from kevin_env.app.replay.panes import lines_of_pane, pane_lines
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    bar,
    beside,
    ends,
    fit,
    heading,
    join,
    paragraph,
    rule,
    shifted,
    sparkline,
    speedup,
    table_line,
    text,
    that_fit,
    verdict,
    window,
)
from kevin_env.app.replay.reward import return_sum, returns_of, score_sum
from kevin_env.app.replay.rows import MARKS
from kevin_env.app.replay.state import PANES, Pane, Size, State, View
from kevin_env.app.screen import COLOURS

_VERDICT = 24


def view_screen(state: State, size: Size) -> list[Text]:
    """Every line of the view but the foot."""
    room = layout(state, size)
    if len(state.views) == 2:
        left, right = (
            _half(state, view, room, n == state.focus) for n, view in enumerate(state.views)
        )
        return [_title(state, size.columns), *beside(left, right)]
    view = state.view
    top = [_title(state, size.columns), _facts(view, size.columns)]
    if room.side:
        return [*top, rule(size.columns), *beside(_side(view, room), _pane(state, view, room))]
    return [*top, *_stack(state, view, room)]


def _half(state: State, view: View, room: Layout, focused: bool) -> list[Text]:
    name = f"{'▶' if focused else ' '} {view.row.problem}  {view.row.model}"
    lines = [text(name, "bold" if focused else DIM), *_stack(state, view, room)]
    return [fit(line, room.pane_width) for line in lines]


def _stack(state: State, view: View, room: Layout) -> list[Text]:
    """The timeline above the pane."""
    width = room.pane_width
    above = (
        [*_timeline(view, width, room.timeline), _sparklines(view, width), rule(width)]
        if room.timeline
        else []
    )
    return [*above, *_pane(state, view, room)]


def _title(state: State, width: int) -> Text:
    if len(state.views) == 2:
        return ends(
            text(" comparing two trajectories", "bold"), text(f"{state.title} ", DIM), width
        )
    row, listing = state.view.row, state.listing
    place = f"{listing.at + 1:,}/{len(listing.shown):,} " if len(listing.rows) > 1 else ""
    return ends(
        join((f" {row.problem}", "bold"), (f"  {state.title}", DIM)), text(place, DIM), width
    )


def _facts(view: View, width: int) -> Text:
    episode, row = view.episode, view.row
    ended = episode.stop_reason or "running"
    of = f" of {episode.config['max_turns']}" if "max_turns" in episode.config else ""
    facts = [
        row.model or "no model",
        row.device or "no device",
        f"{len(episode.turns)}{of} turns",
        ended,
    ]
    timed = [turn for turn in episode.turns if turn.speedup is not None]
    best = max(timed, key=lambda turn: turn.speedup or 0.0, default=None)
    if best is None:
        right = text("no speedup yet ", DIM)
    else:
        right = join(
            ("best ", DIM), (speedup(best.speedup), "bold green"), (f" (turn {best.turn}) ", DIM)
        )
    return ends(text(f" {'  ·  '.join(facts)}", DIM), right, width)


def _columns(view: View, width: int) -> tuple[Column, ...]:
    """Of the timeline; narrower screens leave out the last ones."""
    longest = max((len(f"{turn.category}/{turn.kind}") for turn in view.episode.turns), default=8)
    found = (
        Column("", 1),
        Column("turn", 4, "right"),
        Column("verdict", min(longest, _VERDICT, max(width - 29, 8))),
        Column("speedup", 7, "right"),
        Column("score", 6, "right"),
        Column("return", 6, "right"),
        Column("[95 %]", 13),
        Column("seconds", 7, "right"),
        Column("speedup ", 24),
    )
    return that_fit(found, width)


def _timeline(view: View, width: int, height: int) -> list[Text]:
    turns, returns = view.episode.turns, returns_of(view.episode)
    columns = _columns(view, width - 2)
    top = min(max(view.at - height // 2, 0), max(len(turns) - height, 0))
    most = max((turn.speedup or 0.0 for turn in turns), default=0.0) or 1.0
    lines = [fit(join("  ", heading(columns)), width)]
    for at in range(top, min(top + height, len(turns))):
        line = table_line(columns, _cells(view, at, returns[at], most, columns[-1].width))
        if at == view.at:
            lines.append(fit(Text(f"▌ {line.plain}", "reverse", no_wrap=True, end=""), width))
        else:
            lines.append(fit(join("  ", line), width))
    return lines + [Text(" " * width)] * (height + 1 - len(lines))


def _cells(view: View, at: int, value: float, most: float, room: int) -> dict[str, Text]:
    turn = view.episode.turns[at]
    interval = turn.speedup_interval
    return {
        "": text(MARKS[turn.category], COLOURS[turn.category]),
        "turn": text(str(turn.turn)),
        "verdict": verdict(turn.category, turn.kind),
        "speedup": text(speedup(turn.speedup), "bold green" if (turn.speedup or 0) >= 1 else ""),
        "score": text(f"{turn.score:.2f}", "" if turn.score else DIM),
        "return": text(f"{value:.2f}"),
        "[95 %]": text(f"[{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "", DIM),
        "seconds": text(f"{turn.seconds.total:.1f}", DIM),
        "speedup ": text(bar((turn.speedup or 0.0) / most, room), "cyan"),
    }


def _sparklines(view: View, width: int) -> Text:
    room = max((width - 34) // 2, 4)
    return ends(
        join(*_spark(view, "speedup", room), " ", *_spark(view, "score", room)),
        _return(view),
        width,
    )


def _spark(view: View, name: str, room: int) -> list[tuple[str, str]]:
    """A named sparkline of the last turns."""
    values = [getattr(turn, name) for turn in view.episode.turns]
    return [(f" {name} ", DIM), (sparkline(values[-room:]), "cyan")]


def _return(view: View) -> Text:
    returns = returns_of(view.episode)
    return text(f"return {returns[0]:.3f} " if returns else "", DIM)


def _side(view: View, room: Layout) -> list[Text]:
    """The column beside the pane: timeline, sparklines, and how the turn's score and return came
    about.
    """
    width = room.side
    lines = [*_timeline(view, width, room.timeline), Text()]
    lines += [
        join(*_spark(view, "speedup", width - 10)),
        ends(join(*_spark(view, "score", width - 24)), _return(view), width),
    ]
    if turn := view.turn:
        sums = (
            f"score {turn.turn} = {score_sum(turn, view.episode)}",
            f"return {turn.turn} = {return_sum(view.episode, view.at)}",
        )
        below = [
            *(line for words in sums for line in [Text(), *paragraph(words, width - 1)]),
            Text(),
        ]
        lines += [
            join(" ", line)
            for line in [*below, *paragraph(turn.summary or turn.outcome.message, width - 1, DIM)]
        ]
    return window(lines, 0, room.pane_height + 1, width)


def _pane(state: State, view: View, room: Layout) -> list[Text]:
    """The tabs, and the part of the pane that is on the screen."""
    lines = pane_lines(state, view, room.pane_width)
    pane = [_tabs(state.pane, view, room, len(lines)), *_body(state, view, lines, room)]
    if not room.feedback:
        return pane
    feedback = lines_of_pane(state, view, "feedback", room.feedback)
    title = fit(text("feedback", "bold"), room.feedback)
    return beside(pane, [title, *window(feedback, 0, room.pane_height, room.feedback)])


def _body(state: State, view: View, lines: list[Text], room: Layout) -> list[Text]:
    focused = view is state.view
    lines = [shifted(line, view.shift) for line in lines] if view.shift else lines
    part = window(lines, view.scroll, room.pane_height, room.pane_width)
    if state.search and focused:
        for number, line in enumerate(part, start=view.scroll):
            _show_found(line, state.search, number == state.hit)
    return part


def _show_found(line: Text, words: str, current: bool) -> None:
    plain, at = line.plain.lower(), 0
    while (at := plain.find(words.lower(), at)) >= 0:
        line.stylize("bold reverse yellow" if current else "reverse yellow", at, at + len(words))
        at += len(words)


def _tabs(pane: Pane, view: View, room: Layout, lines: int) -> Text:
    """The panes by number and name, by number alone where there is little room, and how far one has
    read.
    """
    long = room.pane_width >= sum(len(name) + 3 for name in PANES) + 5
    names = [
        f"{number} {name}" if long or name == pane else str(number)
        for number, name in enumerate(PANES, start=1)
    ]
    parts = [
        part
        for name in names
        for part in (" ", (name, "reverse bold" if name.endswith(pane) else DIM))
    ]
    end = view.scroll + room.pane_height
    place = "" if lines <= room.pane_height else f"{min(end * 100 // lines, 100)}%"
    return ends(join(*parts), text(place, DIM), room.pane_width)
