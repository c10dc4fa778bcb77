"""The pane with figures: how score and return are computed, measurements, and seconds."""

from collections.abc import Mapping

from rich.text import Text

from kevin_env.app.replay.pieces import DIM, bar, join, paragraph, text
from kevin_env.app.replay.reward import formula, return_sum, score_sum
from kevin_env.judge.api import Seconds
from kevin_env.outcome import Correct
from kevin_env.record import Trajectory, Turn
from kevin_env.render import speedup_text
from kevin_env.roofline import Roofline
from kevin_env.wording import decimal, duration

STAGES = ("queue", "build", "load", "verify", "time")
_NAME = 12


def numbers_pane(episode: Trajectory, at: int, width: int) -> list[Text]:
    """Score and return written out, measurements, seconds of each stage, and tokens."""
    turn = episode.turns[at]
    parts = {
        f"score of turn {turn.turn}": paragraph(score_sum(turn, episode), width),
        f"return of turn {turn.turn}": [
            *paragraph(return_sum(episode, at), width),
            *paragraph(formula(episode), width, DIM),
        ],
        "measured": _named(measured(turn)),
        "seconds": _seconds(turn.seconds, width),
        "tokens": _tokens(turn),
    }
    known = ((text(title, "bold"), *lines, Text()) for title, lines in parts.items() if lines)
    return [line for part in known for line in part]


def measured(turn: Turn) -> dict[str, str]:
    """The measurements of a correct kernel as text; empty for any other."""
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
    if outcome.max_unseen_gain:
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


def _named(facts: Mapping[str, str]) -> list[Text]:
    return [join((f"{name:<{_NAME}}", DIM), value) for name, value in facts.items()]


def _seconds(seconds: Seconds, width: int) -> list[Text]:
    room, total = max(min(width - _NAME - 12, 60), 4), seconds.total
    stages = [(name, getattr(seconds, name)) for name in (*STAGES, "profile")]
    lines = [
        join((f"{name:<{_NAME}}", DIM), f"{value:8.3f}  ", (bar(value / total, room), "cyan"))
        for name, value in stages
        if value
    ]
    return [*lines, join((f"{'total':<{_NAME}}", DIM), (f"{total:8.3f}", "bold"))]


def _tokens(turn: Turn) -> list[Text]:
    used = turn.usage.model_dump() if turn.usage else {}
    known = {name: value for name, value in used.items() if value is not None}
    return [join((f"{name.replace('_', ' '):<20}", DIM), f"{n:,}") for name, n in known.items()]
