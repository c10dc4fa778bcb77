"""The panes with figures: where the time went, and how scores and returns came about."""

from rich.text import Text

from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    bar,
    heading,
    join,
    paragraph,
    table_line,
    text,
)
from kevin_env.app.replay.reward import formula, return_sum, returns_of, score_sum
from kevin_env.judge.api import Seconds
from kevin_env.outcome import Correct
from kevin_env.record import Trajectory, Turn
from kevin_env.render import speedup_text
from kevin_env.roofline import Roofline
from kevin_env.wording import decimal, duration

STAGES = ("queue", "build", "load", "verify", "time")
_NAME = 12


def timings_pane(episode: Trajectory, at: int, width: int) -> list[Text]:
    """Seconds of each stage with bars, of every turn below; measured times and tokens."""
    turn = episode.turns[at]
    total = turn.seconds.total
    room = max(min(width - _NAME - 12, 60), 4)
    done = [text("seconds of this turn", "bold")]
    for stage in (*STAGES, *(("profile",) if turn.seconds.profile else ())):
        seconds = getattr(turn.seconds, stage)
        share = seconds / total if total else 0.0
        done.append(
            join((f"{stage:<{_NAME}}", DIM), f"{seconds:8.3f}  ", (bar(share, room), "cyan"))
        )
    done.append(join((f"{'total':<{_NAME}}", DIM), (f"{total:8.3f}", "bold")))
    done += [Text(), *_measured(turn), *_tokens(turn)]
    return [*done, text("seconds of every turn", "bold"), *_every_turn(episode, at)]


def reward_pane(episode: Trajectory, at: int, width: int) -> list[Text]:
    """This turn's score and return written out, then those of every turn."""
    turn, returns = episode.turns[at], returns_of(episode)
    done = [
        text(f"score of turn {turn.turn}", "bold"),
        *paragraph(f"s_{turn.turn} = {score_sum(turn, episode)}", width),
    ]
    done += [
        Text(),
        text(f"return of turn {turn.turn}", "bold"),
        *paragraph(formula(episode), width, DIM),
    ]
    done += [
        *paragraph(f"R_{turn.turn} = {return_sum(episode, at)}", width),
        Text(),
        text("every turn", "bold"),
    ]
    top = max((abs(each) for each in returns), default=0.0) or 1.0
    room = max(min(width - 36, 40), 4)
    columns = (
        Column("turn", 4, "right"),
        Column("score", 8, "right"),
        Column("return", 8, "right"),
        Column("", room),
    )
    done.append(heading(columns))
    for number, (each, value) in enumerate(zip(episode.turns, returns, strict=True)):
        style = "bold" if number == at else ""
        cells = {"turn": text(str(each.turn), style), "score": text(f"{each.score:.3f}", style)}
        done.append(
            table_line(
                columns,
                cells
                | {"return": text(f"{value:.3f}", style), "": text(bar(value / top, room), "cyan")},
            )
        )
    return done


def measured(turn: Turn) -> dict[str, str]:
    """What was measured of a correct kernel, in words; empty for any other."""
    outcome = turn.outcome
    if not isinstance(outcome, Correct):
        return {}
    low_high = outcome.speedup_interval
    facts = {
        "speedup": speedup_text(outcome.speedup) or "too noisy to tell",
        "interval": f"{low_high[0]:.3f}x to {low_high[1]:.3f}x (95 %)" if low_high else "-",
        "reference": _call(outcome.reference_seconds),
        "submission": _call(outcome.submission_seconds),
    }
    if outcome.max_unseen_gain is not None:
        facts["unseen gain"] = f"at most {outcome.max_unseen_gain:.1%} of its time"
    if outcome.roofline is not None:
        facts |= _held(outcome.roofline)
    if outcome.threads is not None:
        facts["threads"] = f"{outcome.threads.busy:.1f} of {outcome.threads.of} busy"
    return facts


def _held(roofline: Roofline) -> dict[str, str]:
    """A time against its roofline."""
    peak, top = decimal(roofline.memory_ceiling, "B/s"), decimal(roofline.compute_ceiling, "FLOP/s")
    return {
        "roofline": f"{roofline.fraction:.1%} of {duration(roofline.seconds)}, "
        f"bound by {roofline.bound}",
        "bandwidth": f"{decimal(roofline.bandwidth, 'B/s')} of {peak}, "
        f"{decimal(roofline.bytes, 'B')}",
        "rate": f"{decimal(roofline.rate, 'FLOP/s')} of {top}, {decimal(roofline.flops, 'FLOP')}",
    }


def _call(seconds: float | None) -> str:
    return "-" if seconds is None else f"{duration(seconds)} a call"


def _measured(turn: Turn) -> list[Text]:
    lines = [join((f"{name:<{_NAME}}", DIM), value) for name, value in measured(turn).items()]
    return [text("measured", "bold"), *lines, Text()] if lines else []


def _tokens(turn: Turn) -> list[Text]:
    if turn.usage is None:
        return []
    known = {name: value for name, value in turn.usage.model_dump().items() if value is not None}
    lines = [
        join((f"{name.replace('_', ' '):<20}", DIM), f"{value:,}") for name, value in known.items()
    ]
    return [text("tokens", "bold"), *lines, Text()] if lines else []


def _every_turn(episode: Trajectory, at: int) -> list[Text]:
    columns = (
        Column("turn", 4, "right"),
        *(Column(name, 8, "right") for name in (*STAGES, "total")),
    )
    done = [heading(columns)]
    for number, turn in enumerate(episode.turns):
        style = "bold" if number == at else ""
        cells = {name: text(_short(turn.seconds, name), style) for name in (*STAGES, "total")}
        done.append(table_line(columns, cells | {"turn": text(str(turn.turn), style)}))
    return done


def _short(seconds: Seconds, name: str) -> str:
    value = getattr(seconds, name)
    return f"{value:.2f}" if value else "-"
